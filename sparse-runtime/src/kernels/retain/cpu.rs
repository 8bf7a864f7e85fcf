//! Rows of a list on the CPU.

use crate::formats::{
    ColumnId, Csr, CsrView, DenseView, IdsView, RowSparse, RowSparseView, with_id_type,
};
use crate::kernels::index_set::IndexSet;
use crate::kernels::{Context, ahead};
use crate::lanes::same_type;
use crate::with_column_ids;
use sparse_core::element::Float;
use std::ops::Range;

/// Of a dense array: the rows are stored.
pub fn dense_ids<T: Float>(
    out: &mut RowSparse<T>,
    x: DenseView<'_, T>,
    ids: IdsView<'_>,
    context: &mut Context,
) {
    row_sparse_ids(out, RowSparseView::table(*x.shape(), x.values()), ids, context);
}

/// So many runs of rows wait to be copied.
const WAITING: usize = 4;

/// Of a csr matrix.
pub fn csr_ids<T: Float>(
    out: &mut Csr<T>,
    x: CsrView<'_, T>,
    ids: IdsView<'_>,
    context: &mut Context,
) {
    let (n_rows, list) = (x.n_rows(), ids);
    with_id_type!(x.n_cols(), |I| out.rebuild::<I, _>(x.n_cols(), |parts| {
        with_column_ids!(x.columns(), |ids| {
            let (starts, ends) = (x.starts(), x.ends());
            parts.indptr.reserve(x.n_rows());
            let mut copy = |rows: Range<usize>| {
                if rows.is_empty() {
                    return;
                }
                let before = parts.values.len() as u64;
                // Those in between are empty.
                parts.indptr.resize(rows.start + 1, before);
                let start = starts[rows.start];
                parts.indptr.extend(ends[rows.clone()].iter().map(|end| end - start + before));
                let entries = start as usize..ends[rows.end - 1] as usize;
                match same_type(&ids[entries.clone()]) {
                    Some(ids) => parts.columns.extend_from_slice(ids),
                    None => {
                        let ids = ids[entries.clone()].iter();
                        parts.columns.extend(ids.map(|id| I::from_index(id.at())));
                    }
                }
                parts.values.extend_from_slice(&x.values()[entries]);
            };
            // Rows that follow each other are copied as one, when memory had the time of some runs to bring their entries.
            let (mut waiting, mut newest) = ([const { 0..0 }; WAITING], 0);
            each_row(n_rows, list, &mut context.ids, |row| {
                let (start, end) = (starts[row] as usize, ends[row] as usize);
                ahead::ask_for_run(ids, x.values(), start, end);
                let run = &mut waiting[newest];
                if run.start < run.end && row == run.end && starts[row] == ends[row - 1] {
                    run.end += 1;
                } else {
                    newest = (newest + 1) % WAITING;
                    copy(std::mem::replace(&mut waiting[newest], row..row + 1));
                }
            });
            waiting.rotate_left((newest + 1) % WAITING);
            waiting.into_iter().for_each(copy);
            let end = parts.values.len() as u64;
            parts.indptr.resize(x.n_rows() + 1, end);
        });
    }));
}

/// Of a row_sparse array: those that it stores.
pub fn row_sparse_ids<T: Float>(
    out: &mut RowSparse<T>,
    x: RowSparseView<'_, T>,
    ids: IdsView<'_>,
    context: &mut Context,
) {
    let list = ids;
    out.rebuild(*x.shape(), |ids, values| {
        each_row(x.shape().n_rows(), list, &mut context.ids, |row| {
            if let Some(stored) = x.row(row) {
                ids.push(row as u64);
                values.extend_from_slice(stored);
            }
        });
    });
}

/// Calls `visit` with the rows of a list that there are, each once, ascending. O(length of the list).
#[inline(always)]
fn each_row(n_rows: usize, list: IdsView<'_>, set: &mut IndexSet, mut visit: impl FnMut(usize)) {
    if list.iter().is_sorted_by(|row, next| row < next) {
        // What most lists are: the rows of another array, or those of a batch.
        list.iter().take_while(|row| *row < n_rows).for_each(visit);
        return;
    }
    set.begin(n_rows);
    list.iter().filter(|row| *row < n_rows).for_each(|row| set.insert(row));
    set.finish(&mut visit);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::formats::{Dense, RowSelection};

    #[test]
    fn runs_of_rows_come_in_their_order() {
        // Rows of 0 to 2 entries, as a matrix and as a selection whose rows lie in reverse.
        let row = |row: usize| (0..row % 3).map(move |k| (2 * k + row % 2, (10 * row + k) as f32));
        let x = Csr::from_rows(5, (0..40).map(|i| Vec::from_iter(row(i)))).unwrap();
        let backwards = Csr::from_rows(5, (0..40).rev().map(|i| Vec::from_iter(row(i)))).unwrap();
        let mut selection = RowSelection::new();
        let reversed = Vec::from_iter((0..40).rev());
        let picked = selection.gather(&backwards, &reversed).unwrap();
        let (mut out, mut context) = (Csr::default(), Context::default());
        for n_runs in 0..9 {
            let kept = |i: usize| i / 4 < n_runs && i % 4 < 3;
            let list = (0..40).filter(|i| kept(*i)).map(|i| i as u64).collect::<Vec<_>>();
            let list = Dense::from(list);
            let rows = (0..40).map(|i| Vec::from_iter(row(i).filter(|_| kept(i))));
            let expected = Csr::from_rows(5, rows).unwrap();
            for view in [x.view(), picked] {
                csr_ids(&mut out, view, IdsView::U64(list.view()), &mut context);
                assert_eq!(out, expected, "{n_runs} runs");
            }
        }
    }
}

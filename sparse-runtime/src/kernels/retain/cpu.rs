//! Rows of a list on the CPU.

use crate::formats::{
    ColumnId, Csr, CsrView, DenseView, IdsView, RowSparse, RowSparseView, with_id_type,
};
use crate::kernels::Context;
use crate::kernels::index_set::IndexSet;
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
            // Rows that follow each other are copied as one.
            let mut run = 0..0;
            each_row(n_rows, list, &mut context.ids, |row| {
                if !run.is_empty() && row == run.end && starts[row] == ends[row - 1] {
                    run.end += 1;
                } else {
                    copy(std::mem::replace(&mut run, row..row + 1));
                }
            });
            copy(run);
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

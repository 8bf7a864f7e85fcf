//! Rows of a list on the CPU.

use crate::formats::{
    ColumnId, Csr, CsrView, DenseView, IdsView, RowSparse, RowSparseView, with_ids,
};
use crate::kernels::Context;
use crate::kernels::index_set::IndexSet;
use crate::with_column_ids;
use nnz_device::prefetch::prefetch_runs;
use sparse_core::element::{Float, Id};

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
    let list = ids;
    with_column_ids!(x.columns(), |ids| with_ids!(IdsView, list, |list| {
        match in_order(list.values(), x.n_rows()) {
            Some(rows) => copy_rows(out, x, ids, rows),
            None => copy_rows(out, x, ids, members(x.n_rows(), list.values(), &mut context.ids)),
        }
    }));
}

/// Entries are asked for so many rows of the list before they are copied.
const ROWS_AHEAD: usize = 3;

/// Copies rows that ascend and are there, each to its place; the other rows are empty. Those that
/// follow each other are copied as one.
fn copy_rows<T: Float, I: ColumnId, N: Id>(
    out: &mut Csr<T>,
    x: CsrView<'_, T>,
    ids: &[I],
    rows: &[N],
) {
    let (starts, ends) = (x.starts(), x.ends());
    let row_at = |place: usize| rows.get(place)?.index();
    out.rebuild::<I, _>(x.n_cols(), |parts| {
        parts.indptr.reserve(x.n_rows());
        let mut place = 0;
        while let Some(first) = row_at(place) {
            let mut last = first;
            place += 1;
            while row_at(place) == Some(last + 1) && starts[last + 1] == ends[last] {
                last += 1;
                place += 1;
            }
            let (start, end) = (starts[first], ends[last]);
            if let Some(row) = row_at(place + ROWS_AHEAD) {
                // As many entries there as there are here: how many there will be does not pay to
                // know.
                let distance = starts[row].wrapping_sub(start);
                let [start, end] = [start, end].map(|entry| entry.wrapping_add(distance) as usize);
                prefetch_runs(ids, x.values(), start, end);
            }
            let before = parts.values.len() as u64;
            // Those in between are empty.
            parts.indptr.resize(first + 1, before);
            parts.indptr.extend(ends[first..=last].iter().map(|end| end - start + before));
            let entries = start as usize..end as usize;
            parts.columns.extend_from_slice(&ids[entries.clone()]);
            parts.values.extend_from_slice(&x.values()[entries]);
        }
        parts.indptr.resize(x.n_rows() + 1, parts.values.len() as u64);
    });
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

/// Calls `visit` with the rows of a list that there are, each once, ascending. O(length of the
/// list).
#[inline(always)]
fn each_row(n_rows: usize, list: IdsView<'_>, set: &mut IndexSet, visit: impl FnMut(usize)) {
    with_ids!(IdsView, list, |list| match in_order(list.values(), n_rows) {
        Some(rows) => rows.iter().filter_map(|row| row.index()).for_each(visit),
        None => mark(n_rows, list.values(), set).finish(visit),
    });
}

/// The rows of a list that there are, where it ascends: what most lists do that are the rows of
/// another array, or those of a batch.
fn in_order<N: Id>(list: &[N], n_rows: usize) -> Option<&[N]> {
    let is_sorted = list.is_sorted_by(|row, next| row < next);
    // Negative ones come first.
    let is_negative = list.first().is_some_and(|row| row.index().is_none());
    (is_sorted && !is_negative)
        .then(|| &list[..list.partition_point(|row| row.index().is_some_and(|row| row < n_rows))])
}

/// Those of a list in any order, each once, ascending.
fn members<'s, N: Id>(n_rows: usize, list: &[N], set: &'s mut IndexSet) -> &'s [u64] {
    mark(n_rows, list, set).finish_in_order()
}

fn mark<'s, N: Id>(n_rows: usize, list: &[N], set: &'s mut IndexSet) -> &'s mut IndexSet {
    set.begin(n_rows);
    let there = list.iter().filter_map(|row| row.index()).filter(|row| *row < n_rows);
    there.for_each(|row| set.insert(row));
    set
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
            let rows = (0..40).map(|i| Vec::from_iter(row(i).filter(|_| kept(i))));
            let expected = Csr::from_rows(5, rows).unwrap();
            // With rows that are not there; and in no order, some of them twice.
            let ascending = Vec::from_iter(list.iter().copied().chain([40, 1 << 40]));
            let mixed = list.iter().rev().chain(&list[list.len() / 2..]);
            let mixed = Vec::from_iter(mixed.map(|row| *row as i64).chain([-1, 40, i64::MIN]));
            let (ascending, mixed) = (Dense::from(ascending), Dense::from(mixed));
            for view in [x.view(), picked] {
                for list in [IdsView::U64(ascending.view()), IdsView::I64(mixed.view())] {
                    csr_ids(&mut out, view, list, &mut context);
                    assert_eq!(out, expected, "{n_runs} runs");
                }
            }
        }
    }
}

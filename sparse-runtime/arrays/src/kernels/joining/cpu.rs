//! Joined arrays on the CPU.

use super::Join;
use crate::formats::{
    ColumnId, ColumnIdsView, Csr, CsrView, Dense, DenseView, RowSparse, RowSparseView, with_id_type,
};
use crate::kernels::Context;
use crate::with_column_ids;
use sparse_core::element::Float;

/// Of dense arrays. O(size).
pub(in crate::kernels) fn join_dense_dense<T: Float>(
    out: &mut Dense<T>,
    lhs: DenseView<'_, T>,
    rhs: DenseView<'_, T>,
    join: Join,
    _context: &mut Context,
) {
    out.reset_for_overwrite(join.shape());
    interleave(out.values_mut(), lhs.values(), rhs.values(), join);
}

/// Of csr matrices, by rows or by columns. O(rows + nnz).
pub(in crate::kernels) fn join_csr_csr<T: Float>(
    out: &mut Csr<T>,
    lhs: CsrView<'_, T>,
    rhs: CsrView<'_, T>,
    join: Join,
    _context: &mut Context,
) {
    let by_rows = join.axis == 0;
    let n_cols = if by_rows { lhs.n_cols() } else { lhs.n_cols() + rhs.n_cols() };
    with_id_type!(n_cols, |I| out.rebuild::<I, _>(n_cols, |parts| {
        let nnz = lhs.nnz() + rhs.nnz();
        parts.columns.reserve(nnz);
        parts.values.reserve(nnz);
        let mut row_of = |x: CsrView<'_, T>, row: usize, shift: usize, ends: bool| {
            let (ids, values) = x.row(row).unwrap_or((ColumnIdsView::default(), &[]));
            let columns = &mut parts.columns;
            with_column_ids!(ids, |ids| {
                columns.extend(ids.iter().map(|id| I::from_index(id.at() + shift)));
            });
            parts.values.extend_from_slice(values);
            if ends {
                parts.finish_row();
            }
        };
        if by_rows {
            (0..lhs.n_rows()).for_each(|row| row_of(lhs, row, 0, true));
            (0..rhs.n_rows()).for_each(|row| row_of(rhs, row, 0, true));
        } else {
            for row in 0..lhs.n_rows() {
                row_of(lhs, row, 0, false);
                row_of(rhs, row, lhs.n_cols(), true);
            }
        }
    }));
}

/// Of row_sparse arrays: along the first axis the rows of both; along another one the rows that
/// either stores. O(values of the rows stored).
pub(in crate::kernels) fn join_row_sparse_row_sparse<T: Float>(
    out: &mut RowSparse<T>,
    lhs: RowSparseView<'_, T>,
    rhs: RowSparseView<'_, T>,
    join: Join,
    _context: &mut Context,
) {
    let shape = join.shape();
    let n_rows = lhs.shape().n_rows();
    out.rebuild(shape, |ids, values| {
        if join.axis == 0 {
            ids.extend(lhs.iter_rows().map(|(id, _)| id as u64));
            ids.extend(rhs.iter_rows().map(|(id, _)| (n_rows + id) as u64));
            values.extend_from_slice(lhs.values());
            values.extend_from_slice(rhs.values());
            return;
        }
        let row_size = shape.row_size();
        let [left, right] = [join.left, join.right].map(|shape| shape.with_n_rows(1));
        let of_row = Join { left, right, ..join };
        let (mut at, mut other) = (0, 0);
        loop {
            let (first, second) = (lhs.row_id(at), rhs.row_id(other));
            let Some(id) = [first, second].into_iter().flatten().min() else { break };
            let start = values.len();
            values.resize(start + row_size, T::zero());
            let a = lhs.stored_row(at).filter(|_| first == Some(id));
            let b = rhs.stored_row(other).filter(|_| second == Some(id));
            at += usize::from(a.is_some());
            other += usize::from(b.is_some());
            ids.push(id as u64);
            let (a, b) = (a.unwrap_or_default(), b.unwrap_or_default());
            interleave(&mut values[start..], a, b, of_row);
        }
    });
}

/// Runs of both in turn. One that is empty leaves zeros where its elements would be.
fn interleave<T: Float>(out: &mut [T], lhs: &[T], rhs: &[T], join: Join) {
    let [first, second] =
        [join.left, join.right].map(|shape| shape[join.axis..].iter().product::<usize>());
    let runs = out.chunks_exact_mut((first + second).max(1));
    for (index, out) in runs.enumerate() {
        let (a, b) = out.split_at_mut(first);
        if let Some(lhs) = lhs.get(index * first..(index + 1) * first) {
            a.copy_from_slice(lhs);
        }
        if let Some(rhs) = rhs.get(index * second..(index + 1) * second) {
            b.copy_from_slice(rhs);
        }
    }
}

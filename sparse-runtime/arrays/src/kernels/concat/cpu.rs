//! Joined arrays on the CPU.

use crate::formats::{
    ColumnId, ColumnIdsView, Csr, CsrView, Dense, DenseView, RowSparse, RowSparseView, Shape,
    with_id_type,
};
use crate::kernels::Context;
use crate::with_column_ids;
use sparse_core::element::Float;
use sparse_core::shapes::place_of;

/// Of dense arrays. O(size).
pub fn dense_dense<T: Float>(
    out: &mut Dense<T>,
    lhs: DenseView<'_, T>,
    rhs: DenseView<'_, T>,
    axis: i64,
    _context: &mut Context,
) {
    let axis = place_of(axis, lhs.shape().rank()).unwrap_or(0);
    out.reset_for_overwrite(joined(lhs.shape(), rhs.shape(), axis));
    interleave(out.values_mut(), lhs.values(), rhs.values(), lhs.shape(), rhs.shape(), axis);
}

/// Of csr matrices, by rows or by columns. O(rows + nnz).
pub fn csr_csr<T: Float>(
    out: &mut Csr<T>,
    lhs: CsrView<'_, T>,
    rhs: CsrView<'_, T>,
    axis: i64,
    _context: &mut Context,
) {
    let by_rows = place_of(axis, 2) == Some(0);
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

/// Of row_sparse arrays: along the first axis the rows of both; along another one the rows that either stores. O(values of the
/// rows stored).
pub fn row_sparse_row_sparse<T: Float>(
    out: &mut RowSparse<T>,
    lhs: RowSparseView<'_, T>,
    rhs: RowSparseView<'_, T>,
    axis: i64,
    _context: &mut Context,
) {
    let axis = place_of(axis, lhs.shape().rank()).unwrap_or(0);
    let shape = joined(lhs.shape(), rhs.shape(), axis);
    let n_rows = lhs.shape().n_rows();
    out.rebuild(shape, |ids, values| {
        if axis == 0 {
            ids.extend(lhs.iter_rows().map(|(id, _)| id as u64));
            ids.extend(rhs.iter_rows().map(|(id, _)| (n_rows + id) as u64));
            values.extend_from_slice(lhs.values());
            values.extend_from_slice(rhs.values());
            return;
        }
        let row_size = shape.row_size();
        let (left, right) = (lhs.shape().with_n_rows(1), rhs.shape().with_n_rows(1));
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
            interleave(&mut values[start..], a, b, &left, &right, axis);
        }
    });
}

/// The shape of both.
pub(crate) fn joined(lhs: &Shape, rhs: &Shape, axis: usize) -> Shape {
    let mut dims = [0; crate::formats::MAX_RANK];
    dims[..lhs.rank()].copy_from_slice(lhs);
    dims[axis] += rhs[axis];
    Shape::new(&dims[..lhs.rank()])
}

/// Runs of both in turn. One that is empty leaves zeros where its elements would be.
pub(crate) fn interleave<T: Float>(
    out: &mut [T],
    lhs: &[T],
    rhs: &[T],
    left: &Shape,
    right: &Shape,
    axis: usize,
) {
    let run = |shape: &Shape| shape[axis..].iter().product::<usize>();
    let (first, second) = (run(left), run(right));
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

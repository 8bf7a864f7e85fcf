//! Outer products on the CPU.

use crate::formats::{Dense, DenseView, RowSparse, RowSparseView};
use crate::kernels::Context;
use sparse_core::element::Float;

/// Dense by dense.
pub fn dense_dense<T: Float>(
    out: &mut Dense<T>,
    lhs: DenseView<'_, T>,
    rhs: DenseView<'_, T>,
    _context: &mut Context,
) {
    out.reset_for_overwrite([lhs.shape().n_rows(), rhs.shape().n_rows()]);
    multiply(out.values_mut(), lhs.values(), rhs.values());
}

/// Dense by row_sparse: columns that are not stored are zero.
pub fn dense_row_sparse<T: Float>(
    out: &mut Dense<T>,
    lhs: DenseView<'_, T>,
    rhs: RowSparseView<'_, T>,
    _context: &mut Context,
) {
    out.reset([lhs.shape().n_rows(), rhs.shape().n_rows()]);
    multiply_stored(out.values_mut(), lhs.values(), rhs);
}

/// Row_sparse by dense: the rows are those of the left side.
pub fn row_sparse_dense<T: Float>(
    out: &mut RowSparse<T>,
    lhs: RowSparseView<'_, T>,
    rhs: DenseView<'_, T>,
    _context: &mut Context,
) {
    out.rebuild([lhs.shape().n_rows(), rhs.shape().n_rows()], |ids, values| {
        ids.extend(lhs.iter_rows().map(|(id, _)| id as u64));
        values.resize(lhs.n_stored() * rhs.values().len(), T::zero());
        multiply(values, lhs.values(), rhs.values());
    });
}

/// Row_sparse by row_sparse: the rows are those of the left side.
pub fn row_sparse_row_sparse<T: Float>(
    out: &mut RowSparse<T>,
    lhs: RowSparseView<'_, T>,
    rhs: RowSparseView<'_, T>,
    _context: &mut Context,
) {
    let n_cols = rhs.shape().n_rows();
    out.rebuild([lhs.shape().n_rows(), n_cols], |ids, values| {
        ids.extend(lhs.iter_rows().map(|(id, _)| id as u64));
        values.resize(lhs.n_stored() * n_cols, T::zero());
        multiply_stored(values, lhs.values(), rhs);
    });
}

/// A row of products for each element of the left side.
fn multiply<T: Float>(out: &mut [T], lhs: &[T], rhs: &[T]) {
    for (out, x) in out.chunks_exact_mut(rhs.len().max(1)).zip(lhs) {
        out.iter_mut().zip(rhs).for_each(|(out, y)| *out = T::narrow(x.widen() * y.widen()));
    }
}

/// The same where only some columns are not zero.
fn multiply_stored<T: Float>(out: &mut [T], lhs: &[T], rhs: RowSparseView<'_, T>) {
    for (out, x) in out.chunks_exact_mut(rhs.shape().n_rows().max(1)).zip(lhs) {
        for (id, y) in rhs.iter_rows() {
            y.iter().for_each(|y| out[id] = T::narrow(x.widen() * y.widen()));
        }
    }
}

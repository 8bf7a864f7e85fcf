//! Means on the CPU.

use crate::formats::{CsrView, Dense, DenseView, RowSparseView};
use crate::kernels::Context;
use crate::kernels::sum::cpu::{reduce_csr, reduce_dense, reduce_row_sparse};
use sparse_core::element::Float;

/// Means of a dense array.
pub fn dense<T: Float>(
    out: &mut Dense<T>,
    x: DenseView<'_, T>,
    axis: Option<i64>,
    keepdims: bool,
    context: &mut Context,
) {
    reduce_dense(out, x, axis, keepdims, true, context);
}

/// Means of a csr matrix.
pub fn csr<T: Float>(
    out: &mut Dense<T>,
    x: CsrView<'_, T>,
    axis: Option<i64>,
    keepdims: bool,
    context: &mut Context,
) {
    reduce_csr(out, x, axis, keepdims, true, context);
}

/// Means of a row_sparse array.
pub fn row_sparse<T: Float>(
    out: &mut Dense<T>,
    x: RowSparseView<'_, T>,
    axis: Option<i64>,
    keepdims: bool,
    context: &mut Context,
) {
    reduce_row_sparse(out, x, axis, keepdims, true, context);
}

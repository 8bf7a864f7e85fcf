//! The position of the largest element on the CPU.

use crate::formats::{CsrView, Dense, DenseView, RowSparseView};
use crate::kernels::{Context, position};
use sparse_core::element::Float;
use sparse_core::ir::Axes;

/// Of a dense array.
pub fn dense<T: Float>(
    out: &mut Dense<u64>,
    x: DenseView<'_, T>,
    axis: Axes,
    keepdims: bool,
    _context: &mut Context,
) {
    position::dense(out, x, axis, keepdims, true);
}

/// Of a csr matrix.
pub fn csr<T: Float>(
    out: &mut Dense<u64>,
    x: CsrView<'_, T>,
    axis: Axes,
    keepdims: bool,
    context: &mut Context,
) {
    position::csr(out, x, axis, keepdims, true, context);
}

/// Of a row_sparse array.
pub fn row_sparse<T: Float>(
    out: &mut Dense<u64>,
    x: RowSparseView<'_, T>,
    axis: Axes,
    keepdims: bool,
    _context: &mut Context,
) {
    position::row_sparse(out, x, axis, keepdims, true);
}

//! Zeros on the CPU.

use crate::formats::{Csr, CsrView, Dense, DenseView, RowSparse, RowSparseView};
use crate::kernels::Context;
use sparse_core::element::Float;

/// A dense array of zeros.
pub fn dense<T: Float>(out: &mut Dense<T>, x: DenseView<'_, T>, _context: &mut Context) {
    out.reset(*x.shape());
}

/// A csr matrix that stores nothing.
pub fn csr<T: Float>(out: &mut Csr<T>, x: CsrView<'_, T>, _context: &mut Context) {
    out.reset(x.n_rows(), x.n_cols());
}

/// A row_sparse array that stores nothing.
pub fn row_sparse<T: Float>(
    out: &mut RowSparse<T>,
    x: RowSparseView<'_, T>,
    _context: &mut Context,
) {
    out.reset(*x.shape());
}

//! The cast to row_sparse on the CPU.

use crate::formats::{CsrView, DenseView, RowSparse, RowSparseView};
use crate::kernels::{Context, converted};
use sparse_core::element::Float;

/// The rows that have an element other than zero.
pub fn dense<T: Float>(out: &mut RowSparse<T>, x: DenseView<'_, T>, _context: &mut Context) {
    out.assign_dense(x);
}

/// The rows that have a stored entry.
pub fn csr<T: Float>(out: &mut RowSparse<T>, x: CsrView<'_, T>, _context: &mut Context) {
    converted(out.assign_csr(x));
}

/// A copy, stored rows of zeros included.
pub fn row_sparse<T: Float>(
    out: &mut RowSparse<T>,
    x: RowSparseView<'_, T>,
    _context: &mut Context,
) {
    out.assign_row_sparse(x);
}

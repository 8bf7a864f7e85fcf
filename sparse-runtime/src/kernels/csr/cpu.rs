//! The cast to csr on the CPU.

use crate::formats::{Csr, CsrView, DenseView, RowSparseView};
use crate::kernels::{Context, converted};
use sparse_core::element::Float;

/// What is not zero.
pub fn dense<T: Float>(out: &mut Csr<T>, x: DenseView<'_, T>, _context: &mut Context) {
    converted(out.assign_dense(x));
}

/// A copy, stored zeros included.
pub fn csr<T: Float>(out: &mut Csr<T>, x: CsrView<'_, T>, _context: &mut Context) {
    out.assign_csr(x);
}

/// What is not zero in the stored rows.
pub fn row_sparse<T: Float>(out: &mut Csr<T>, x: RowSparseView<'_, T>, _context: &mut Context) {
    converted(out.assign_row_sparse(x));
}

//! The cast to csr on the CPU.

use crate::formats::{Csr, CsrView, DenseView, RowSparseView};
use crate::kernels::{Context, converted};
use sparse_core::element::{Factor, Float};

/// What is not zero.
pub fn dense<T: Float>(out: &mut Csr<T>, x: DenseView<'_, T>, _context: &mut Context) {
    converted(out.assign_dense(x));
}

/// A copy, stored zeros included; of a pattern its ones.
pub fn csr<T: Float, V: Factor<T>>(out: &mut Csr<T>, x: CsrView<'_, V>, _context: &mut Context) {
    out.assign_csr_by(x, V::number);
}

/// What is not zero in the stored rows.
pub fn row_sparse<T: Float>(out: &mut Csr<T>, x: RowSparseView<'_, T>, _context: &mut Context) {
    converted(out.assign_row_sparse(x));
}

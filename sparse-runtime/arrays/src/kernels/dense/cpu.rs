//! The cast to dense on the CPU.

use crate::formats::{CsrView, Dense, DenseView, RowSparseView};
use crate::kernels::{Context, converted};
use sparse_core::element::{Factor, Float};

/// A copy.
pub fn dense<T: Float>(out: &mut Dense<T>, x: DenseView<'_, T>, _context: &mut Context) {
    out.assign_dense(x);
}

/// Zeros and what is stored.
pub fn csr<T: Float, V: Factor<T>>(out: &mut Dense<T>, x: CsrView<'_, V>, _context: &mut Context) {
    converted(out.assign_csr_by(x, V::number));
}

/// Zeros and the stored rows.
pub fn row_sparse<T: Float>(out: &mut Dense<T>, x: RowSparseView<'_, T>, _context: &mut Context) {
    converted(out.assign_row_sparse(x));
}

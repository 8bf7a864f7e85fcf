//! Casts on the CPU, and zeros.

use crate::formats::{Csr, CsrView, Dense, DenseView, RowSparse, RowSparseView};
use crate::kernels::{Context, converted};
use sparse_core::element::{Factor, Float};

/// A copy.
pub fn dense_dense<T: Float>(out: &mut Dense<T>, x: DenseView<'_, T>, _context: &mut Context) {
    out.assign_dense(x);
}

/// Zeros and what is stored.
pub fn dense_csr<T: Float, V: Factor<T>>(
    out: &mut Dense<T>,
    x: CsrView<'_, V>,
    _context: &mut Context,
) {
    converted(out.assign_csr_by(x, V::number));
}

/// Zeros and the stored rows.
pub fn dense_row_sparse<T: Float>(
    out: &mut Dense<T>,
    x: RowSparseView<'_, T>,
    _context: &mut Context,
) {
    converted(out.assign_row_sparse(x));
}

/// What is not zero.
pub fn csr_dense<T: Float>(out: &mut Csr<T>, x: DenseView<'_, T>, _context: &mut Context) {
    converted(out.assign_dense(x));
}

/// A copy, stored zeros included; of a pattern its ones.
pub fn csr_csr<T: Float, V: Factor<T>>(
    out: &mut Csr<T>,
    x: CsrView<'_, V>,
    _context: &mut Context,
) {
    out.assign_csr_by(x, V::number);
}

/// What is not zero in the stored rows.
pub fn csr_row_sparse<T: Float>(out: &mut Csr<T>, x: RowSparseView<'_, T>, _context: &mut Context) {
    converted(out.assign_row_sparse(x));
}

/// The rows that have an element other than zero.
pub fn row_sparse_dense<T: Float>(
    out: &mut RowSparse<T>,
    x: DenseView<'_, T>,
    _context: &mut Context,
) {
    out.assign_dense(x);
}

/// The rows that have a stored entry.
pub fn row_sparse_csr<T: Float>(out: &mut RowSparse<T>, x: CsrView<'_, T>, _context: &mut Context) {
    converted(out.assign_csr(x));
}

/// A copy, stored rows of zeros included.
pub fn row_sparse_row_sparse<T: Float>(
    out: &mut RowSparse<T>,
    x: RowSparseView<'_, T>,
    _context: &mut Context,
) {
    out.assign_row_sparse(x);
}

/// A dense array of zeros.
pub fn zeros_like_dense<T: Float>(out: &mut Dense<T>, x: DenseView<'_, T>, _context: &mut Context) {
    out.reset(*x.shape());
}

/// A csr matrix that stores nothing.
pub fn zeros_like_csr<T: Float>(out: &mut Csr<T>, x: CsrView<'_, T>, _context: &mut Context) {
    out.reset(x.n_rows(), x.n_cols());
}

/// A row_sparse array that stores nothing.
pub fn zeros_like_row_sparse<T: Float>(
    out: &mut RowSparse<T>,
    x: RowSparseView<'_, T>,
    _context: &mut Context,
) {
    out.reset(*x.shape());
}

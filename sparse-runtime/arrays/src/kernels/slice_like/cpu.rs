//! Parts as large as another array on the CPU.

use crate::formats::{Csr, CsrView, Dense, DenseView, Extents, RowSparse, RowSparseView, Shape};
use crate::kernels::Context;
use crate::kernels::parts::Part;
use sparse_core::element::Float;
use sparse_core::ir::Axes;

/// Of a dense array.
pub fn dense_like<T: Float>(
    out: &mut Dense<T>,
    x: DenseView<'_, T>,
    like: Shape,
    axes: Axes,
    from_end: bool,
    _context: &mut Context,
) {
    Part::like(x.extents(), &like, axes, from_end).of_dense(out, x);
}

/// Of a csr matrix.
pub fn csr_like<T: Float>(
    out: &mut Csr<T>,
    x: CsrView<'_, T>,
    like: Shape,
    axes: Axes,
    from_end: bool,
    _context: &mut Context,
) {
    Part::like(x.extents(), &like, axes, from_end).of_csr(out, x);
}

/// Of a row_sparse array: rows that it does not store are not stored.
pub fn row_sparse_like<T: Float>(
    out: &mut RowSparse<T>,
    x: RowSparseView<'_, T>,
    like: Shape,
    axes: Axes,
    from_end: bool,
    _context: &mut Context,
) {
    Part::like(x.extents(), &like, axes, from_end).of_row_sparse(out, x);
}

//! Parts on the CPU.

use crate::formats::{Csr, CsrView, Dense, DenseView, Extents, RowSparse, RowSparseView};
use crate::kernels::Context;
use crate::kernels::parts::Part;
use sparse_core::element::Float;
use sparse_core::ir::List;

/// Of a dense array.
pub fn dense<T: Float>(
    out: &mut Dense<T>,
    x: DenseView<'_, T>,
    begin: Option<List>,
    end: Option<List>,
    step: Option<List>,
    _context: &mut Context,
) {
    Part::of_lists(x.extents(), begin, end, step).of_dense(out, x);
}

/// Of a csr matrix.
pub fn csr<T: Float>(
    out: &mut Csr<T>,
    x: CsrView<'_, T>,
    begin: Option<List>,
    end: Option<List>,
    step: Option<List>,
    _context: &mut Context,
) {
    Part::of_lists(x.extents(), begin, end, step).of_csr(out, x);
}

/// Of a row_sparse array: rows that it does not store are not stored.
pub fn row_sparse<T: Float>(
    out: &mut RowSparse<T>,
    x: RowSparseView<'_, T>,
    begin: Option<List>,
    end: Option<List>,
    step: Option<List>,
    _context: &mut Context,
) {
    Part::of_lists(x.extents(), begin, end, step).of_row_sparse(out, x);
}

//! The gradient of `slice` on the CPU.

use crate::formats::{Csr, CsrView, Dense, DenseView, Extents, RowSparse, RowSparseView, Shape};
use crate::kernels::Context;
use crate::kernels::parts::Part;
use sparse_core::element::Float;
use sparse_core::ir::List;

/// Zeros, and the part in its place.
pub fn dense_like<T: Float>(
    out: &mut Dense<T>,
    part: DenseView<'_, T>,
    like: Shape,
    begin: Option<List>,
    end: Option<List>,
    step: Option<List>,
    _context: &mut Context,
) {
    Part::of_lists(like, begin, end, step).place_dense(out, part);
}

/// The rows of the part, and no others.
pub fn dense_row_sparse_by_rows<T: Float>(
    out: &mut RowSparse<T>,
    part: DenseView<'_, T>,
    like: RowSparseView<'_, T>,
    begin: Option<List>,
    end: Option<List>,
    step: Option<List>,
    _context: &mut Context,
) {
    Part::of_lists(like.extents(), begin, end, step).place_rows(out, part);
}

/// What the part stores.
pub fn csr_like<T: Float>(
    out: &mut Csr<T>,
    part: CsrView<'_, T>,
    like: Shape,
    begin: Option<List>,
    end: Option<List>,
    step: Option<List>,
    _context: &mut Context,
) {
    Part::of_lists(like, begin, end, step).place_csr(out, part);
}

/// The rows that the part stores.
pub fn row_sparse_like<T: Float>(
    out: &mut RowSparse<T>,
    part: RowSparseView<'_, T>,
    like: Shape,
    begin: Option<List>,
    end: Option<List>,
    step: Option<List>,
    _context: &mut Context,
) {
    Part::of_lists(like, begin, end, step).place_row_sparse(out, part);
}

//! Element-wise functions of one operand on the CPU.

use crate::formats::{Csr, CsrView, Dense, DenseView, RowSparse, RowSparseView};
use crate::kernels::Context;
use sparse_core::element::Float;

/// f of every element.
pub fn dense<T: Float>(
    out: &mut Dense<T>,
    x: DenseView<'_, T>,
    f: impl Fn(T) -> T + Sync + Copy,
    _context: &mut Context,
) {
    out.reset_for_overwrite(*x.shape());
    for (result, &x) in out.values_mut().iter_mut().zip(x.values()) {
        *result = f(x);
    }
}

/// f of every stored element.
pub fn csr<T: Float>(
    out: &mut Csr<T>,
    x: CsrView<'_, T>,
    f: impl Fn(T) -> T + Sync + Copy,
    _context: &mut Context,
) {
    out.assign_csr(x);
    out.values_mut().iter_mut().for_each(|value| *value = f(*value));
}

/// f of every element of the stored rows.
pub fn row_sparse<T: Float>(
    out: &mut RowSparse<T>,
    x: RowSparseView<'_, T>,
    f: impl Fn(T) -> T + Sync + Copy,
    _context: &mut Context,
) {
    out.assign_row_sparse(x);
    out.values_mut().iter_mut().for_each(|value| *value = f(*value));
}

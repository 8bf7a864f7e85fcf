//! The logarithm of sums of exponentials on the CPU.

use crate::formats::{Dense, DenseView};
use crate::kernels::Context;
use crate::kernels::rows::rows;
use sparse_core::element::Float;

/// Of each row of a dense matrix. `-inf` for a row without elements.
pub fn dense<T: Float>(out: &mut Dense<T>, x: DenseView<'_, T>, _context: &mut Context) {
    out.reset_for_overwrite([x.shape().n_rows()]);
    for (out, row) in out.values_mut().iter_mut().zip(rows(x)) {
        let largest = row.iter().copied().fold(T::neg_infinity(), T::max);
        let total: f64 = row.iter().map(|&x| (x.widen() - largest.widen()).as_f64().exp()).sum();
        *out = match largest.is_finite() {
            true => T::narrow(largest.widen() + T::Accumulator::of(total.ln())),
            false => largest,
        };
    }
}

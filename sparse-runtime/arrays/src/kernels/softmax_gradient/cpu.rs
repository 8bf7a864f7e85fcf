//! The gradient of softmax on the CPU.

use crate::formats::{Dense, DenseView};
use crate::kernels::Context;
use crate::kernels::lookup::Lookup;
use sparse_core::element::Float;

/// y · (g - Σ g y) along an axis.
pub fn dense_dense<T: Float>(
    out: &mut Dense<T>,
    grad: DenseView<'_, T>,
    y: DenseView<'_, T>,
    axis: i64,
    _context: &mut Context,
) {
    out.assign_dense(grad);
    let Lookup { outer, extent, inner, .. } = Lookup::new(y.shape(), axis, false, false);
    let (grad, y) = (out.values_mut(), y.values());
    for start in
        (0..outer).flat_map(|before| (0..inner).map(move |at| before * extent * inner + at))
    {
        let along = || (0..extent).map(|at| start + at * inner);
        let total: T::Accumulator = along().map(|at| grad[at].widen() * y[at].widen()).sum();
        for at in along() {
            grad[at] = T::narrow(y[at].widen() * (grad[at].widen() - total));
        }
    }
}

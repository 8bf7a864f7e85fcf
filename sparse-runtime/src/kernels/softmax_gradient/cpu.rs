//! The gradient of softmax on the CPU.

use crate::formats::{Dense, DenseView};
use crate::kernels::Context;
use sparse_core::element::Float;

/// y · (g - Σ g y) in each row.
pub fn dense_dense<T: Float>(
    out: &mut Dense<T>,
    grad: DenseView<'_, T>,
    y: DenseView<'_, T>,
    _context: &mut Context,
) {
    out.assign_dense(grad);
    let row_size = y.shape().row_size().max(1);
    let rows = out.values_mut().chunks_exact_mut(row_size);
    for (grad, y) in rows.zip(y.values().chunks_exact(row_size)) {
        let inner: T::Accumulator = grad.iter().zip(y).map(|(&g, &y)| g.widen() * y.widen()).sum();
        for (g, &y) in grad.iter_mut().zip(y) {
            *g = T::narrow(y.widen() * (g.widen() - inner));
        }
    }
}

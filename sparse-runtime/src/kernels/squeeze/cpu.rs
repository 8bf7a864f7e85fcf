//! Axes of extent 1 removed on the CPU.

use crate::formats::{Dense, DenseView, MAX_RANK, Shape};
use crate::kernels::Context;
use sparse_core::element::Float;
use sparse_core::ir::Axes;

/// A copy under the other shape.
pub fn dense<T: Float>(
    out: &mut Dense<T>,
    x: DenseView<'_, T>,
    axis: Axes,
    _context: &mut Context,
) {
    let (mut dims, mut rank) = ([1; MAX_RANK], 0);
    for (place, &extent) in x.shape().iter().enumerate() {
        if extent != 1 || !axis.contain(place, x.shape().rank()) {
            dims[rank] = extent;
            rank += 1;
        }
    }
    let shape = Shape::new(&dims[..rank]);
    out.reset_for_overwrite(shape);
    out.values_mut().copy_from_slice(x.values());
}

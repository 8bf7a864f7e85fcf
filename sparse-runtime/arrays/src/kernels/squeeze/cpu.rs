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
    out.reset_for_overwrite(squeezed(x.shape(), axis));
    out.values_mut().copy_from_slice(x.values());
}

/// The shape without those axes.
pub(crate) fn squeezed(shape: &Shape, axis: Axes) -> Shape {
    let (mut dims, mut rank) = ([1; MAX_RANK], 0);
    for (place, &extent) in shape.iter().enumerate() {
        if extent != 1 || !axis.contain(place, shape.rank()) {
            dims[rank] = extent;
            rank += 1;
        }
    }
    Shape::new(&dims[..rank])
}

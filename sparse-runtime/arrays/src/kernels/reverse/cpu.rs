//! The opposite order on the CPU.

use crate::formats::{Dense, DenseView, Shape};
use crate::kernels::Context;
use crate::kernels::strided::{Strided, gathered, steps};
use sparse_core::element::Float;
use sparse_core::ir::Axes;

/// Of a dense array.
pub fn dense<T: Float>(
    out: &mut Dense<T>,
    x: DenseView<'_, T>,
    axis: Axes,
    _context: &mut Context,
) {
    gathered(out, x, reversed(x.shape(), axis));
}

/// The same shape, and how the elements lie in an array.
pub(crate) fn reversed(shape: &Shape, axis: Axes) -> (Shape, Strided) {
    let steps = steps(shape);
    let turned = |place: usize| axis.contain(place, shape.rank());
    let last = |place: usize| shape[place].saturating_sub(1) * steps[place];
    let start = (0..shape.rank()).filter(|place| turned(*place)).map(last).sum();
    let strided = (0..shape.rank()).fold(Strided::at(start), |strided, place| {
        let step = steps[place] as isize;
        strided.axis(shape[place], if turned(place) { -step } else { step })
    });
    (*shape, strided)
}

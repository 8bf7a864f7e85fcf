//! The opposite order on the CPU.

use crate::formats::{Dense, DenseView};
use crate::kernels::Context;
use crate::kernels::strided::{Strided, steps};
use sparse_core::element::Float;
use sparse_core::ir::Axes;

/// Of a dense array.
pub fn dense<T: Float>(
    out: &mut Dense<T>,
    x: DenseView<'_, T>,
    axis: Axes,
    _context: &mut Context,
) {
    let (shape, steps) = (x.shape(), steps(x.shape()));
    let turned = |place: usize| axis.contain(place, shape.rank());
    let last = |place: usize| shape[place].saturating_sub(1) * steps[place];
    let start = (0..shape.rank()).filter(|place| turned(*place)).map(last).sum();
    let strided = (0..shape.rank()).fold(Strided::at(start), |strided, place| {
        let step = steps[place] as isize;
        strided.axis(shape[place], if turned(place) { -step } else { step })
    });
    out.reset_for_overwrite(*shape);
    strided.gather(out.values_mut(), x.values());
}

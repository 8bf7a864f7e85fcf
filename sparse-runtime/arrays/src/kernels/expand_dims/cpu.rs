//! One more axis on the CPU.

use crate::formats::{Dense, DenseView, MAX_RANK, Shape};
use crate::kernels::Context;
use sparse_core::element::Float;
use sparse_core::shapes::place_of;

/// A copy under the other shape.
pub fn dense<T: Float>(out: &mut Dense<T>, x: DenseView<'_, T>, axis: i64, _context: &mut Context) {
    out.reset_for_overwrite(expanded(x.shape(), axis).0);
    out.values_mut().copy_from_slice(x.values());
}

/// The shape with an axis of extent 1 more, and the place of that.
pub(crate) fn expanded(shape: &Shape, axis: i64) -> (Shape, usize) {
    let place = place_of(axis, shape.rank() + 1).unwrap_or(0);
    let mut dims = [1; MAX_RANK];
    let rank = (shape.rank() + 1).min(MAX_RANK);
    for (at, dim) in dims[..rank].iter_mut().enumerate().filter(|(at, _)| *at != place) {
        *dim = shape[if at < place { at } else { at - 1 }];
    }
    (Shape::new(&dims[..rank]), place)
}

//! One more axis on the CPU.

use crate::formats::{Dense, DenseView, MAX_RANK, Shape};
use crate::kernels::Context;
use sparse_core::element::Float;
use sparse_core::shapes::place_of;

/// A copy under the other shape.
pub fn dense<T: Float>(out: &mut Dense<T>, x: DenseView<'_, T>, axis: i64, _context: &mut Context) {
    let place = place_of(axis, x.shape().rank() + 1).unwrap_or(0);
    let mut dims = [1; MAX_RANK];
    let rank = (x.shape().rank() + 1).min(MAX_RANK);
    for (at, dim) in dims[..rank].iter_mut().enumerate().filter(|(at, _)| *at != place) {
        *dim = x.shape()[if at < place { at } else { at - 1 }];
    }
    let shape = Shape::new(&dims[..rank]);
    out.reset_for_overwrite(shape);
    out.values_mut().copy_from_slice(x.values());
}

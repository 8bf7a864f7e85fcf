//! An array repeated as a whole on the CPU.

use crate::formats::{Dense, DenseView, MAX_RANK, Shape};
use crate::kernels::Context;
use crate::kernels::strided::{Strided, gathered, tiled};
use sparse_core::element::Float;
use sparse_core::ir::List;

/// Of a dense array.
pub fn dense<T: Float>(
    out: &mut Dense<T>,
    x: DenseView<'_, T>,
    reps: Option<List>,
    _context: &mut Context,
) {
    gathered(out, x, all_tiles(x.shape(), reps));
}

/// The shape of the result, and how its elements lie in an array.
pub(crate) fn all_tiles(shape: &Shape, reps: Option<List>) -> (Shape, Strided) {
    let reps = reps.unwrap_or_default();
    let mut dims = [1; MAX_RANK];
    for (axis, extent) in shape.iter().enumerate() {
        dims[axis] = extent * reps.get(axis).map_or(1, |times| times.max(0) as usize);
    }
    (Shape::new(&dims[..shape.rank()]), tiled(shape, reps))
}

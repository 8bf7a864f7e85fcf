//! An array repeated as a whole on the CPU.

use crate::formats::{Dense, DenseView, MAX_RANK, Shape};
use crate::kernels::Context;
use crate::kernels::strided::tiled;
use sparse_core::element::Float;
use sparse_core::ir::List;

/// Of a dense array.
pub fn dense<T: Float>(
    out: &mut Dense<T>,
    x: DenseView<'_, T>,
    reps: Option<List>,
    _context: &mut Context,
) {
    let reps = reps.unwrap_or_default();
    let mut dims = [1; MAX_RANK];
    for (axis, extent) in x.shape().iter().enumerate() {
        dims[axis] = extent * reps.get(axis).map_or(1, |times| times.max(0) as usize);
    }
    out.reset_for_overwrite(Shape::new(&dims[..x.shape().rank()]));
    tiled(x.shape(), reps).gather(out.values_mut(), x.values());
}

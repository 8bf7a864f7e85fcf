//! Elements repeated on the CPU.

use crate::formats::{Dense, DenseView, MAX_RANK, Shape};
use crate::kernels::Context;
use crate::kernels::strided::repeated;
use sparse_core::element::Float;
use sparse_core::shapes::place_of;

/// Of a dense array.
pub fn dense<T: Float>(
    out: &mut Dense<T>,
    x: DenseView<'_, T>,
    repeats: i64,
    axis: i64,
    _context: &mut Context,
) {
    let (rank, mut dims) = (x.shape().rank(), [1; MAX_RANK]);
    dims[..rank].copy_from_slice(x.shape());
    if let Some(axis) = place_of(axis, rank) {
        dims[axis] *= repeats.max(0) as usize;
    }
    out.reset_for_overwrite(Shape::new(&dims[..rank]));
    repeated(x.shape(), repeats, axis).gather(out.values_mut(), x.values());
}

//! Elements repeated on the CPU.

use crate::formats::{Dense, DenseView, MAX_RANK, Shape};
use crate::kernels::Context;
use crate::kernels::strided::{Strided, gathered, repeated};
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
    gathered(out, x, all_repetitions(x.shape(), repeats, axis));
}

/// The shape of the result, and how its elements lie in an array.
pub(crate) fn all_repetitions(shape: &Shape, repeats: i64, axis: i64) -> (Shape, Strided) {
    let (rank, mut dims) = (shape.rank(), [1; MAX_RANK]);
    dims[..rank].copy_from_slice(shape);
    if let Some(axis) = place_of(axis, rank) {
        dims[axis] *= repeats.max(0) as usize;
    }
    (Shape::new(&dims[..rank]), repeated(shape, repeats, axis))
}

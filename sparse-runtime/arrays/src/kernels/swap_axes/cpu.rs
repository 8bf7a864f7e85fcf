//! Two axes exchanged on the CPU.

use crate::formats::{Dense, DenseView, MAX_RANK, Shape};
use crate::kernels::Context;
use crate::kernels::strided::permuted;
use sparse_core::element::Float;
use sparse_core::shapes::place_of;

/// Of a dense array.
pub fn dense<T: Float>(
    out: &mut Dense<T>,
    x: DenseView<'_, T>,
    first: i64,
    second: i64,
    _context: &mut Context,
) {
    let (rank, order) = (x.shape().rank(), order(x.shape(), first, second));
    permuted(out, x, &order[..rank]);
}

/// For each axis of the result that of the operand.
pub(crate) fn order(shape: &Shape, first: i64, second: i64) -> [usize; MAX_RANK] {
    let (rank, mut order) = (shape.rank(), [0; MAX_RANK]);
    order.iter_mut().enumerate().for_each(|(axis, place)| *place = axis);
    if let (Some(first), Some(second)) = (place_of(first, rank), place_of(second, rank)) {
        order.swap(first, second);
    }
    order
}

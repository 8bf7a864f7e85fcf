//! Axes in another order on the CPU.

use crate::formats::{Dense, DenseView, MAX_RANK, Shape};
use crate::kernels::Context;
use crate::kernels::strided::permuted;
use sparse_core::element::Float;
use sparse_core::ir::List;
use sparse_core::shapes::place_of;

/// Of a dense array.
pub fn dense<T: Float>(
    out: &mut Dense<T>,
    x: DenseView<'_, T>,
    axes: Option<List>,
    inverse: bool,
    _context: &mut Context,
) {
    let (rank, order) = (x.shape().rank(), order(x.shape(), axes, inverse));
    permuted(out, x, &order[..rank]);
}

/// For each axis of the result that of the operand.
pub(crate) fn order(shape: &Shape, axes: Option<List>, inverse: bool) -> [usize; MAX_RANK] {
    let (rank, mut order) = (shape.rank(), [0; MAX_RANK]);
    for (to, axis) in axes.unwrap_or_default().values().enumerate().take(rank) {
        let from = place_of(axis, rank).unwrap_or(to);
        match inverse {
            false => order[to] = from,
            true => order[from] = to,
        }
    }
    order
}

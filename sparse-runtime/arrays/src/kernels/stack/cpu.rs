//! Stacked arrays on the CPU.

use crate::formats::{Dense, DenseView};
use crate::kernels::Context;
use crate::kernels::concat::cpu::{interleave, joined};
use crate::kernels::expand_dims::cpu::expanded;
use sparse_core::element::Float;

/// Of dense arrays.
pub fn dense_dense<T: Float>(
    out: &mut Dense<T>,
    lhs: DenseView<'_, T>,
    rhs: DenseView<'_, T>,
    axis: i64,
    _context: &mut Context,
) {
    let (one, axis) = expanded(lhs.shape(), axis);
    out.reset_for_overwrite(joined(&one, &one, axis));
    interleave(out.values_mut(), lhs.values(), rhs.values(), &one, &one, axis);
}

//! Sorting on the CPU.

use crate::formats::{Dense, DenseView};
use crate::kernels::Context;
use crate::kernels::order::{First, ranked};
use sparse_core::element::Float;

/// Along an axis.
pub fn dense<T: Float>(
    out: &mut Dense<T>,
    x: DenseView<'_, T>,
    axis: i64,
    descending: bool,
    context: &mut Context,
) {
    out.reset_for_overwrite(*x.shape());
    let first = if descending { First::Largest } else { First::Smallest };
    let out = out.values_mut();
    ranked(x, axis, usize::MAX, first, &mut context.ranked, |at, value, _| out[at] = value);
}

//! The largest and smallest elements on the CPU.

use crate::formats::{Dense, DenseView};
use crate::kernels::Context;
use crate::kernels::order::{First, chosen, ranked};
use sparse_core::element::Float;

/// Along an axis.
pub fn dense<T: Float>(
    out: &mut Dense<T>,
    x: DenseView<'_, T>,
    k: i64,
    axis: i64,
    smallest: bool,
    context: &mut Context,
) {
    let k = usize::try_from(k).unwrap_or(0);
    out.reset_for_overwrite(chosen(x.shape(), axis, k));
    let first = if smallest { First::Smallest } else { First::Largest };
    let out = out.values_mut();
    ranked(x, axis, k, first, &mut context.ranked, |at, value, _| out[at] = value);
}

//! The gradient of `repeat` on the CPU.

use crate::formats::{Dense, DenseView, Shape};
use crate::kernels::Context;
use crate::kernels::context::in_sums;
use crate::kernels::strided::repeated;
use sparse_core::element::Float;

/// The sum of the repetitions.
pub fn dense_like<T: Float>(
    out: &mut Dense<T>,
    sum: DenseView<'_, T>,
    like: Shape,
    repeats: i64,
    axis: i64,
    context: &mut Context,
) {
    out.reset(like);
    let strided = repeated(&like, repeats, axis);
    in_sums(out.values_mut(), &mut context.sums, |sums| {
        strided.scatter(sums, sum.values(), T::as_f64);
    });
}

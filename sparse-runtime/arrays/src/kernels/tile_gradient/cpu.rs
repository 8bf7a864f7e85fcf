//! The gradient of `tile` on the CPU.

use crate::formats::{Dense, DenseView, Shape};
use crate::kernels::Context;
use crate::kernels::context::in_sums;
use crate::kernels::strided::tiled;
use sparse_core::element::Float;
use sparse_core::ir::List;

/// The sum of the repetitions.
pub fn dense_like<T: Float>(
    out: &mut Dense<T>,
    sum: DenseView<'_, T>,
    like: Shape,
    reps: Option<List>,
    context: &mut Context,
) {
    out.reset(like);
    let strided = tiled(&like, reps.unwrap_or_default());
    in_sums(out.values_mut(), &mut context.sums, |sums| {
        strided.scatter(sums, sum.values(), T::as_f64);
    });
}

//! Changes of shape and order on the CPU.

use crate::formats::{Dense, DenseView, Shape};
use crate::kernels::Context;
use crate::kernels::context::in_sums;
use crate::kernels::strided::Strided;
use sparse_core::element::Float;

/// A copy in a shape of as many elements.
pub(in crate::kernels) fn copied_dense<T: Float>(
    out: &mut Dense<T>,
    x: DenseView<'_, T>,
    shape: Shape,
    _context: &mut Context,
) {
    out.reset_for_overwrite(shape);
    out.values_mut().copy_from_slice(x.values());
}

/// The elements of a result of a shape, as they lie in an array.
pub(in crate::kernels) fn moved_dense<T: Float>(
    out: &mut Dense<T>,
    x: DenseView<'_, T>,
    (shape, along): (Shape, Strided),
    _context: &mut Context,
) {
    out.reset_for_overwrite(shape);
    along.gather(out.values_mut(), x.values());
}

/// The sums of what was repeated, where `along` says how a result that repeats lies in an array of
/// a shape.
pub(in crate::kernels) fn summed_dense<T: Float>(
    out: &mut Dense<T>,
    x: DenseView<'_, T>,
    (shape, along): (Shape, Strided),
    context: &mut Context,
) {
    out.reset(shape);
    in_sums(out.values_mut(), &mut context.sums, |sums| {
        along.scatter(sums, x.values(), T::as_f64);
    });
}

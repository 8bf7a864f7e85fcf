//! The gradient of `repeat` on a GPU.

use crate::device::cuda::Cuda;
use crate::formats::{Dense, DenseView, Shape};
use crate::kernels::cuda::{CudaContext, GpuFloat, moved};
use crate::kernels::strided::repeated;

/// The sum of the repetitions.
pub fn dense_like<T: GpuFloat>(
    out: &mut Dense<T, Cuda>,
    sum: DenseView<'_, T, Cuda>,
    like: Shape,
    repeats: i64,
    axis: i64,
    context: &mut CudaContext,
) {
    let repetitions = repeated(&like, repeats, axis);
    moved::sums_of_repetitions(out, sum, like, repetitions, context);
}

//! Sums over what was broadcast, on a GPU.

use crate::device::cuda::Cuda;
use crate::formats::{Dense, DenseView, Shape};
use crate::kernels::cuda::{CudaContext, GpuFloat};
use crate::kernels::reduce;

/// The sum to a shape that broadcasts to that of the array.
pub fn dense_like<T: GpuFloat>(
    out: &mut Dense<T, Cuda>,
    x: DenseView<'_, T, Cuda>,
    like: Shape,
    context: &mut CudaContext,
) {
    reduce::cuda::sum_to(out, x, like, context);
}

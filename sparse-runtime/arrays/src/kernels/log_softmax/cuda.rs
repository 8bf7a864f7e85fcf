//! The logarithm of softmax on a GPU.

use crate::device::cuda::Cuda;
use crate::formats::{Dense, DenseView};
use crate::kernels::cuda::{CudaContext, GpuFloat};
use crate::kernels::softmax;

/// Along an axis.
pub fn dense<T: GpuFloat>(
    out: &mut Dense<T, Cuda>,
    x: DenseView<'_, T, Cuda>,
    axis: i64,
    context: &mut CudaContext,
) {
    softmax::cuda::of_lines(out, x, axis, true, context);
}

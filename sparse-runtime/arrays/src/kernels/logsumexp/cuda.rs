//! The logarithm of a row's sum of exponentials on a GPU.

use crate::device::cuda::Cuda;
use crate::formats::{Dense, DenseView};
use crate::kernels::cuda::{CudaContext, GpuFloat};
use crate::kernels::softmax;

/// Of each row of a dense matrix. `-inf` for a row without elements.
pub fn dense<T: GpuFloat>(
    out: &mut Dense<T, Cuda>,
    x: DenseView<'_, T, Cuda>,
    context: &mut CudaContext,
) {
    softmax::cuda::log_of_sums(out, x, context);
}

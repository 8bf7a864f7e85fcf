//! The gradient of softmax on a GPU.

use crate::device::cuda::Cuda;
use crate::formats::{Dense, DenseView};
use crate::kernels::cuda::{CudaContext, GpuFloat};
use crate::kernels::softmax;

/// y · (g - Σ g y) along an axis.
pub fn dense_dense<T: GpuFloat>(
    out: &mut Dense<T, Cuda>,
    grad: DenseView<'_, T, Cuda>,
    y: DenseView<'_, T, Cuda>,
    axis: i64,
    context: &mut CudaContext,
) {
    softmax::cuda::gradient(out, grad, y, axis, context);
}

//! The gradient of a change of shape on a GPU.

use crate::device::cuda::Cuda;
use crate::formats::{Dense, DenseView, Shape};
use crate::kernels::cuda::{CudaContext, GpuFloat, moved};

/// A copy in the shape of another array.
pub fn dense_like<T: GpuFloat>(
    out: &mut Dense<T, Cuda>,
    x: DenseView<'_, T, Cuda>,
    like: Shape,
    context: &mut CudaContext,
) {
    moved::copied(out, x, like, context);
}

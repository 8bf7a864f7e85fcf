//! One more axis on a GPU.

use super::cpu::expanded;
use crate::device::cuda::Cuda;
use crate::formats::{Dense, DenseView};
use crate::kernels::cuda::{CudaContext, GpuFloat, moved};

/// A copy under the other shape.
pub fn dense<T: GpuFloat>(
    out: &mut Dense<T, Cuda>,
    x: DenseView<'_, T, Cuda>,
    axis: i64,
    context: &mut CudaContext,
) {
    moved::copied(out, x, expanded(x.shape(), axis).0, context);
}

//! Axes of extent 1 removed on a GPU.

use super::cpu::squeezed;
use crate::device::cuda::Cuda;
use crate::formats::{Dense, DenseView};
use crate::kernels::cuda::{CudaContext, GpuFloat, moved};
use sparse_core::ir::Axes;

/// A copy under the other shape.
pub fn dense<T: GpuFloat>(
    out: &mut Dense<T, Cuda>,
    x: DenseView<'_, T, Cuda>,
    axis: Axes,
    context: &mut CudaContext,
) {
    moved::copied(out, x, squeezed(x.shape(), axis), context);
}

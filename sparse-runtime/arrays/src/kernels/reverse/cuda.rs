//! The opposite order on a GPU.

use super::cpu::reversed;
use crate::device::cuda::Cuda;
use crate::formats::{Dense, DenseView};
use crate::kernels::cuda::{CudaContext, GpuFloat, moved};
use sparse_core::ir::Axes;

/// Of a dense array.
pub fn dense<T: GpuFloat>(
    out: &mut Dense<T, Cuda>,
    x: DenseView<'_, T, Cuda>,
    axis: Axes,
    context: &mut CudaContext,
) {
    moved::gathered(out, x, reversed(x.shape(), axis), context);
}

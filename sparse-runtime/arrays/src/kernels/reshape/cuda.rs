//! The same elements under another shape on a GPU.

use super::cpu::reshaped;
use crate::device::cuda::Cuda;
use crate::formats::{Dense, DenseView};
use crate::kernels::cuda::{CudaContext, GpuFloat, moved};
use sparse_core::ir::List;

/// A copy under the other shape.
pub fn dense<T: GpuFloat>(
    out: &mut Dense<T, Cuda>,
    x: DenseView<'_, T, Cuda>,
    shape: Option<List>,
    context: &mut CudaContext,
) {
    moved::copied(out, x, reshaped(x.shape(), shape), context);
}

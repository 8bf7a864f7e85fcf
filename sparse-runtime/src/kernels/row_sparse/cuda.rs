//! The cast to row_sparse on a GPU.

use crate::device::cuda::Cuda;
use crate::formats::{RowSparse, RowSparseView};
use crate::kernels::cuda::{CudaContext, GpuFloat, Pattern};
use crate::kernels::dense;

/// A copy.
pub fn row_sparse<T: GpuFloat>(
    out: &mut RowSparse<T, Cuda>,
    x: RowSparseView<'_, T, Cuda>,
    context: &mut CudaContext,
) {
    let gpu = context.gpu();
    gpu.attempt(out, |out| dense::cuda::numbers(gpu, x.give(gpu, out)?, x.values()));
}

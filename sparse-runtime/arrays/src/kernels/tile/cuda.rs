//! An array repeated as a whole on a GPU.

use super::cpu::all_tiles;
use crate::device::cuda::Cuda;
use crate::formats::{Dense, DenseView};
use crate::kernels::cuda::{CudaContext, GpuFloat, moved};
use sparse_core::ir::List;

/// Of a dense array.
pub fn dense<T: GpuFloat>(
    out: &mut Dense<T, Cuda>,
    x: DenseView<'_, T, Cuda>,
    reps: Option<List>,
    context: &mut CudaContext,
) {
    moved::gathered(out, x, all_tiles(x.shape(), reps), context);
}

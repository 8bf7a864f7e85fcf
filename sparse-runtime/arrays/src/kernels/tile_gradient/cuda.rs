//! The gradient of `tile` on a GPU.

use crate::device::cuda::Cuda;
use crate::formats::{Dense, DenseView, Shape};
use crate::kernels::cuda::{CudaContext, GpuFloat, moved};
use crate::kernels::strided::tiled;
use sparse_core::ir::List;

/// The sum of the repetitions.
pub fn dense_like<T: GpuFloat>(
    out: &mut Dense<T, Cuda>,
    sum: DenseView<'_, T, Cuda>,
    like: Shape,
    reps: Option<List>,
    context: &mut CudaContext,
) {
    let tiles = tiled(&like, reps.unwrap_or_default());
    moved::sums_of_repetitions(out, sum, like, tiles, context);
}

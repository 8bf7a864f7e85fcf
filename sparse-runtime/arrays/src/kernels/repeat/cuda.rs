//! Elements repeated on a GPU.

use super::cpu::all_repetitions;
use crate::device::cuda::Cuda;
use crate::formats::{Dense, DenseView};
use crate::kernels::cuda::{CudaContext, GpuFloat, moved};

/// Of a dense array.
pub fn dense<T: GpuFloat>(
    out: &mut Dense<T, Cuda>,
    x: DenseView<'_, T, Cuda>,
    repeats: i64,
    axis: i64,
    context: &mut CudaContext,
) {
    moved::gathered(out, x, all_repetitions(x.shape(), repeats, axis), context);
}

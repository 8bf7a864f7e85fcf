//! Positions in order on a GPU.

use crate::device::cuda::Cuda;
use crate::formats::{Dense, DenseView};
use crate::kernels::cuda::{CudaContext, GpuFloat};
use crate::kernels::order::First;
use crate::kernels::sort;

/// Along an axis.
pub fn dense<T: GpuFloat>(
    out: &mut Dense<u64, Cuda>,
    x: DenseView<'_, T, Cuda>,
    axis: i64,
    descending: bool,
    context: &mut CudaContext,
) {
    let first = if descending { First::Largest } else { First::Smallest };
    sort::cuda::positions(out, x, axis, usize::MAX, first, context);
}

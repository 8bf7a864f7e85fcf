//! The positions of the largest and smallest elements on a GPU.

use crate::device::cuda::Cuda;
use crate::formats::{Dense, DenseView};
use crate::kernels::cuda::{CudaContext, GpuFloat};
use crate::kernels::order::First;
use crate::kernels::sort;

/// Along an axis.
pub fn dense<T: GpuFloat>(
    out: &mut Dense<u64, Cuda>,
    x: DenseView<'_, T, Cuda>,
    k: i64,
    axis: i64,
    smallest: bool,
    context: &mut CudaContext,
) {
    let first = if smallest { First::Smallest } else { First::Largest };
    sort::cuda::positions(out, x, axis, usize::try_from(k).unwrap_or(0), first, context);
}

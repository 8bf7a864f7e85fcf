//! Stacked arrays on a GPU.

use crate::device::cuda::Cuda;
use crate::formats::{Dense, DenseView};
use crate::kernels::concat::cuda::join;
use crate::kernels::cuda::{CudaContext, GpuFloat};
use crate::kernels::expand_dims::cpu::expanded;

/// Of dense arrays.
pub fn dense_dense<'a, T: GpuFloat>(
    out: &mut Dense<T, Cuda>,
    lhs: DenseView<'a, T, Cuda>,
    rhs: DenseView<'a, T, Cuda>,
    axis: i64,
    context: &mut CudaContext,
) {
    let (one, axis) = expanded(lhs.shape(), axis);
    join(out, (lhs, &one), (rhs, &one), axis, context);
}

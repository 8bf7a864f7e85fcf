//! Two axes exchanged on a GPU.

use super::cpu::order;
use crate::device::cuda::Cuda;
use crate::formats::{Dense, DenseView};
use crate::kernels::cuda::{CudaContext, GpuFloat, moved};
use crate::kernels::strided::in_order;

/// Of a dense array.
pub fn dense<T: GpuFloat>(
    out: &mut Dense<T, Cuda>,
    x: DenseView<'_, T, Cuda>,
    first: i64,
    second: i64,
    context: &mut CudaContext,
) {
    let order = order(x.shape(), first, second);
    moved::gathered(out, x, in_order(x.shape(), &order[..x.shape().rank()]), context);
}

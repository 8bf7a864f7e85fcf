//! Axes in another order on a GPU.

use super::cpu::order;
use crate::device::cuda::Cuda;
use crate::formats::{Dense, DenseView};
use crate::kernels::cuda::{CudaContext, GpuFloat, moved};
use crate::kernels::strided::in_order;
use sparse_core::ir::List;

/// Of a dense array.
pub fn dense<T: GpuFloat>(
    out: &mut Dense<T, Cuda>,
    x: DenseView<'_, T, Cuda>,
    axes: Option<List>,
    inverse: bool,
    context: &mut CudaContext,
) {
    let order = order(x.shape(), axes, inverse);
    moved::gathered(out, x, in_order(x.shape(), &order[..x.shape().rank()]), context);
}

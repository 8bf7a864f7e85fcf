//! The gradient of `pick` on a GPU.

use crate::device::cuda::Cuda;
use crate::formats::{Dense, DenseView, IdsView, Shape};
use crate::kernels::cuda::{CudaContext, GpuFloat};
use crate::kernels::lookup::Lookup;
use crate::kernels::pick;

/// Zeros, and each element where it was picked.
pub fn dense_ids_like<T: GpuFloat>(
    out: &mut Dense<T, Cuda>,
    grad: DenseView<'_, T, Cuda>,
    ids: IdsView<'_, Cuda>,
    like: Shape,
    axis: i64,
    clip: bool,
    wrap: bool,
    context: &mut CudaContext,
) {
    let gpu = context.gpu();
    let lookup = Lookup::new(&like, axis, clip, wrap);
    gpu.attempt(out, |out| {
        let out = out.zeros_on(gpu, like)?;
        pick::cuda::place(gpu, out, grad.values(), ids, lookup)
    });
}

//! The cast to csr on a GPU.

use crate::device::cuda::Cuda;
use crate::formats::{Csr, CsrView};
use crate::kernels::cuda::{CudaContext, GpuFloat};
use crate::kernels::dense;
use sparse_core::element::Factor;

/// A copy, stored zeros included; of a pattern its ones.
pub fn csr<T: GpuFloat, V: Factor<T>>(
    out: &mut Csr<T, Cuda>,
    x: CsrView<'_, V, Cuda>,
    context: &mut CudaContext,
) {
    let gpu = context.gpu();
    gpu.attempt(out, |out| dense::cuda::numbers(gpu, out.take_pattern(gpu, x)?, x.values()));
}

//! The cast to csr on a GPU.

use crate::device::cuda::Cuda;
use crate::formats::{Csr, CsrView, DenseView, RowSparseView};
use crate::kernels::cuda::csr_rows::{self, Source};
use crate::kernels::cuda::{CudaContext, GpuFloat};
use crate::kernels::dense as of_dense;
use sparse_core::element::Factor;

/// A copy, stored zeros included; of a pattern its ones.
pub fn csr<T: GpuFloat, V: Factor<T>>(
    out: &mut Csr<T, Cuda>,
    x: CsrView<'_, V, Cuda>,
    context: &mut CudaContext,
) {
    let gpu = context.gpu();
    gpu.attempt(out, |out| of_dense::cuda::numbers(gpu, out.take_pattern(gpu, x)?, x.values()));
}

/// What is not zero.
pub fn dense<T: GpuFloat>(
    out: &mut Csr<T, Cuda>,
    x: DenseView<'_, T, Cuda>,
    context: &mut CudaContext,
) {
    row_sparse(out, RowSparseView::all_on_gpu(x), context);
}

/// What is not zero in the stored rows.
pub fn row_sparse<T: GpuFloat>(
    out: &mut Csr<T, Cuda>,
    x: RowSparseView<'_, T, Cuda>,
    context: &mut CudaContext,
) {
    let shape = [x.shape().n_rows(), x.shape().row_size()];
    csr_rows::make(out, shape, Source::not_zero(x), context);
}

//! The gradient of pairwise interactions with respect to what x stores, on a GPU.

use crate::device::cuda::Cuda;
use crate::formats::{Csr, CsrView, Dense, DenseView, RowSparseView};
use crate::kernels::cuda::{CudaContext, GpuFloat};
use crate::kernels::pairwise_interaction;

/// At the pattern of a csr.
pub fn csr_dense_dense<T: GpuFloat>(
    out: &mut Csr<T, Cuda>,
    x: CsrView<'_, T, Cuda>,
    v: DenseView<'_, T, Cuda>,
    grad: DenseView<'_, T, Cuda>,
    context: &mut CudaContext,
) {
    csr_row_sparse_dense(out, x, RowSparseView::all_on_gpu(v), grad, context);
}

/// The same for a row_sparse table.
pub fn csr_row_sparse_dense<T: GpuFloat>(
    out: &mut Csr<T, Cuda>,
    x: CsrView<'_, T, Cuda>,
    v: RowSparseView<'_, T, Cuda>,
    grad: DenseView<'_, T, Cuda>,
    context: &mut CudaContext,
) {
    pairwise_interaction::cuda::slope(out, x, v, grad, context);
}

/// Of a dense matrix.
pub fn dense_dense_dense<T: GpuFloat>(
    out: &mut Dense<T, Cuda>,
    x: DenseView<'_, T, Cuda>,
    v: DenseView<'_, T, Cuda>,
    grad: DenseView<'_, T, Cuda>,
    context: &mut CudaContext,
) {
    pairwise_interaction::cuda::dense::slope(out, x, v, grad, context);
}

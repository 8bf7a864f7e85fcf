//! The gradient of pairwise interactions with respect to their table, on a GPU.

use crate::device::cuda::Cuda;
use crate::formats::{CsrView, Dense, DenseView, RowSparseView};
use crate::kernels::cuda::{CudaContext, GpuFloat, Rows};
use crate::kernels::pairwise_interaction;
use sparse_core::element::Factor;

/// A row for each column that occurs in a csr.
pub fn csr_dense_dense<T: GpuFloat, V: Factor<T>, O: Rows<T>>(
    out: &mut O,
    x: CsrView<'_, V, Cuda>,
    v: DenseView<'_, T, Cuda>,
    grad: DenseView<'_, T, Cuda>,
    context: &mut CudaContext,
) {
    csr_row_sparse_dense(out, x, RowSparseView::all_on_gpu(v), grad, context);
}

/// The same for a row_sparse table.
pub fn csr_row_sparse_dense<T: GpuFloat, V: Factor<T>, O: Rows<T>>(
    out: &mut O,
    x: CsrView<'_, V, Cuda>,
    v: RowSparseView<'_, T, Cuda>,
    grad: DenseView<'_, T, Cuda>,
    context: &mut CudaContext,
) {
    pairwise_interaction::cuda::gradient(out, x, v, grad, context);
}

/// Of a dense matrix.
pub fn dense_dense_dense<T: GpuFloat>(
    out: &mut Dense<T, Cuda>,
    x: DenseView<'_, T, Cuda>,
    v: DenseView<'_, T, Cuda>,
    grad: DenseView<'_, T, Cuda>,
    context: &mut CudaContext,
) {
    pairwise_interaction::cuda::dense::gradient(out, x, v, grad, context);
}

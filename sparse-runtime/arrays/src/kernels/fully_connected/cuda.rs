//! Fully connected layers on a GPU.

use crate::device::cuda::Cuda;
use crate::formats::{CsrView, Dense, DenseView, RowSparseView};
use crate::kernels::cuda::{CudaContext, GpuFloat};
use crate::kernels::dot::cuda as dot;
use sparse_core::element::Factor;

/// Dense by dense.
pub fn dense_dense<T: GpuFloat>(
    out: &mut Dense<T, Cuda>,
    x: DenseView<'_, T, Cuda>,
    weight: DenseView<'_, T, Cuda>,
    context: &mut CudaContext,
) {
    dot::dense_dense(out, x, weight, false, true, context);
}

/// Dense by dense, with a bias.
pub fn dense_dense_dense<T: GpuFloat>(
    out: &mut Dense<T, Cuda>,
    x: DenseView<'_, T, Cuda>,
    weight: DenseView<'_, T, Cuda>,
    bias: DenseView<'_, T, Cuda>,
    context: &mut CudaContext,
) {
    dense_dense(out, x, weight, context);
    dot::add_to_rows(out, bias, context);
}

/// Dense by row_sparse: a unit whose row is not stored gives zero.
pub fn dense_row_sparse<T: GpuFloat>(
    out: &mut Dense<T, Cuda>,
    x: DenseView<'_, T, Cuda>,
    weight: RowSparseView<'_, T, Cuda>,
    context: &mut CudaContext,
) {
    dot::dense_row_sparse_transposed(out, x, weight, false, context);
}

/// Dense by row_sparse, with a bias.
pub fn dense_row_sparse_dense<T: GpuFloat>(
    out: &mut Dense<T, Cuda>,
    x: DenseView<'_, T, Cuda>,
    weight: RowSparseView<'_, T, Cuda>,
    bias: DenseView<'_, T, Cuda>,
    context: &mut CudaContext,
) {
    dense_row_sparse(out, x, weight, context);
    dot::add_to_rows(out, bias, context);
}

/// Csr by dense.
pub fn csr_dense<T: GpuFloat, V: Factor<T>>(
    out: &mut Dense<T, Cuda>,
    x: CsrView<'_, V, Cuda>,
    weight: DenseView<'_, T, Cuda>,
    context: &mut CudaContext,
) {
    dot::csr_dense(out, x, weight, true, context);
}

/// Csr by dense, with a bias.
pub fn csr_dense_dense<T: GpuFloat, V: Factor<T>>(
    out: &mut Dense<T, Cuda>,
    x: CsrView<'_, V, Cuda>,
    weight: DenseView<'_, T, Cuda>,
    bias: DenseView<'_, T, Cuda>,
    context: &mut CudaContext,
) {
    csr_dense(out, x, weight, context);
    dot::add_to_rows(out, bias, context);
}

/// Csr by row_sparse: a unit whose row is not stored gives zero.
pub fn csr_row_sparse<T: GpuFloat, V: Factor<T>>(
    out: &mut Dense<T, Cuda>,
    x: CsrView<'_, V, Cuda>,
    weight: RowSparseView<'_, T, Cuda>,
    context: &mut CudaContext,
) {
    dot::csr_row_sparse_transposed(out, x, weight, context);
}

/// Csr by row_sparse, with a bias.
pub fn csr_row_sparse_dense<T: GpuFloat, V: Factor<T>>(
    out: &mut Dense<T, Cuda>,
    x: CsrView<'_, V, Cuda>,
    weight: RowSparseView<'_, T, Cuda>,
    bias: DenseView<'_, T, Cuda>,
    context: &mut CudaContext,
) {
    csr_row_sparse(out, x, weight, context);
    dot::add_to_rows(out, bias, context);
}

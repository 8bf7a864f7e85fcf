//! The position of the smallest element on a GPU.

use crate::device::cuda::Cuda;
use crate::formats::{CsrView, Dense, DenseView, RowSparseView};
use crate::kernels::argmax;
use crate::kernels::cuda::{CudaContext, GpuFloat};
use sparse_core::ir::Axes;

/// Of a dense array.
pub fn dense<T: GpuFloat>(
    out: &mut Dense<u64, Cuda>,
    x: DenseView<'_, T, Cuda>,
    axis: Axes,
    keepdims: bool,
    context: &mut CudaContext,
) {
    argmax::cuda::of_dense(out, x, axis, keepdims, false, context);
}

/// Of a csr matrix.
pub fn csr<T: GpuFloat>(
    out: &mut Dense<u64, Cuda>,
    x: CsrView<'_, T, Cuda>,
    axis: Axes,
    keepdims: bool,
    context: &mut CudaContext,
) {
    argmax::cuda::of_csr(out, x, axis, keepdims, false, context);
}

/// Of a row_sparse array.
pub fn row_sparse<T: GpuFloat>(
    out: &mut Dense<u64, Cuda>,
    x: RowSparseView<'_, T, Cuda>,
    axis: Axes,
    keepdims: bool,
    context: &mut CudaContext,
) {
    argmax::cuda::of_row_sparse(out, x, axis, keepdims, false, context);
}

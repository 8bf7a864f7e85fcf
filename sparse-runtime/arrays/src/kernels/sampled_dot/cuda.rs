//! Products at a pattern on a GPU.

use crate::device::cuda::Cuda;
use crate::formats::{Csr, CsrView, DenseView, RowSparse, RowSparseView};
use crate::kernels::cuda::{CudaContext, GpuFloat};
use crate::kernels::dot;

/// Of two dense matrices.
pub fn dense_dense_csr<T: GpuFloat>(
    out: &mut Csr<T, Cuda>,
    lhs: DenseView<'_, T, Cuda>,
    rhs: DenseView<'_, T, Cuda>,
    like: CsrView<'_, T, Cuda>,
    transpose_lhs: bool,
    transpose_rhs: bool,
    context: &mut CudaContext,
) {
    let rhs = (RowSparseView::all_on_gpu(rhs), !transpose_rhs);
    dot::cuda::at_pattern(out, (lhs, transpose_lhs), rhs, like, context);
}

/// Of a dense matrix and a row_sparse one that is read transposed; a row that is not stored is
/// zero.
pub fn dense_row_sparse_transposed_csr<T: GpuFloat>(
    out: &mut Csr<T, Cuda>,
    lhs: DenseView<'_, T, Cuda>,
    rhs: RowSparseView<'_, T, Cuda>,
    like: CsrView<'_, T, Cuda>,
    transpose_lhs: bool,
    context: &mut CudaContext,
) {
    dot::cuda::at_pattern(out, (lhs, transpose_lhs), (rhs, false), like, context);
}

/// Of a dense matrix and a row_sparse one, or of two vectors; a row that is not stored is zero.
pub fn dense_row_sparse_csr<T: GpuFloat>(
    out: &mut Csr<T, Cuda>,
    lhs: DenseView<'_, T, Cuda>,
    rhs: RowSparseView<'_, T, Cuda>,
    like: CsrView<'_, T, Cuda>,
    transpose_lhs: bool,
    context: &mut CudaContext,
) {
    if rhs.shape().rank() == 1 {
        dot::cuda::at_pattern(out, (lhs, transpose_lhs), (rhs, false), like, context);
    } else {
        dot::cuda::at_pattern_by_stored_rows(out, (lhs, transpose_lhs), rhs, like, context);
    }
}

/// Of two dense matrices at the rows that a row_sparse array stores.
pub fn dense_dense_row_sparse<T: GpuFloat>(
    out: &mut RowSparse<T, Cuda>,
    lhs: DenseView<'_, T, Cuda>,
    rhs: DenseView<'_, T, Cuda>,
    like: RowSparseView<'_, T, Cuda>,
    transpose_lhs: bool,
    transpose_rhs: bool,
    context: &mut CudaContext,
) {
    dot::cuda::at_rows(out, (lhs, transpose_lhs), (rhs, transpose_rhs), like, context);
}

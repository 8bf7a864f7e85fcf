//! Parts on a GPU.

use crate::device::cuda::Cuda;
use crate::formats::{Csr, CsrView, Dense, DenseView, RowSparse, RowSparseView};
use crate::kernels::cuda::{CudaContext, GpuFloat, parts};
use crate::kernels::parts::Part;
use sparse_core::ir::List;

/// Of a dense array.
pub fn dense<T: GpuFloat>(
    out: &mut Dense<T, Cuda>,
    x: DenseView<'_, T, Cuda>,
    begin: Option<List>,
    end: Option<List>,
    step: Option<List>,
    context: &mut CudaContext,
) {
    parts::of_dense(out, x, Part::of_lists(*x.shape(), begin, end, step), context);
}

/// Of a csr matrix.
pub fn csr<T: GpuFloat>(
    out: &mut Csr<T, Cuda>,
    x: CsrView<'_, T, Cuda>,
    begin: Option<List>,
    end: Option<List>,
    step: Option<List>,
    context: &mut CudaContext,
) {
    parts::of_csr(
        out,
        x,
        Part::of_lists([x.n_rows(), x.n_cols()].into(), begin, end, step),
        context,
    );
}

/// Of a row_sparse array: rows that it does not store are not stored.
pub fn row_sparse<T: GpuFloat>(
    out: &mut RowSparse<T, Cuda>,
    x: RowSparseView<'_, T, Cuda>,
    begin: Option<List>,
    end: Option<List>,
    step: Option<List>,
    context: &mut CudaContext,
) {
    parts::of_row_sparse(out, x, Part::of_lists(*x.shape(), begin, end, step), context);
}

//! Parts as large as another array on a GPU.

use crate::device::cuda::Cuda;
use crate::formats::{Csr, CsrView, Dense, DenseView, RowSparse, RowSparseView, Shape};
use crate::kernels::cuda::{CudaContext, GpuFloat, parts};
use crate::kernels::parts::Part;
use sparse_core::ir::Axes;

/// Of a dense array.
pub fn dense_like<T: GpuFloat>(
    out: &mut Dense<T, Cuda>,
    x: DenseView<'_, T, Cuda>,
    like: Shape,
    axes: Axes,
    from_end: bool,
    context: &mut CudaContext,
) {
    parts::of_dense(out, x, Part::like(*x.shape(), &like, axes, from_end), context);
}

/// Of a csr matrix.
pub fn csr_like<T: GpuFloat>(
    out: &mut Csr<T, Cuda>,
    x: CsrView<'_, T, Cuda>,
    like: Shape,
    axes: Axes,
    from_end: bool,
    context: &mut CudaContext,
) {
    parts::of_csr(
        out,
        x,
        Part::like([x.n_rows(), x.n_cols()].into(), &like, axes, from_end),
        context,
    );
}

/// Of a row_sparse array: rows that it does not store are not stored.
pub fn row_sparse_like<T: GpuFloat>(
    out: &mut RowSparse<T, Cuda>,
    x: RowSparseView<'_, T, Cuda>,
    like: Shape,
    axes: Axes,
    from_end: bool,
    context: &mut CudaContext,
) {
    parts::of_row_sparse(out, x, Part::like(*x.shape(), &like, axes, from_end), context);
}

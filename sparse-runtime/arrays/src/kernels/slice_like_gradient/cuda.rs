//! The gradient of `slice_like` on a GPU.

use crate::device::cuda::Cuda;
use crate::formats::{Csr, CsrView, Dense, DenseView, RowSparse, RowSparseView, Shape};
use crate::kernels::cuda::{CudaContext, GpuFloat, parts};
use crate::kernels::parts::Part;
use sparse_core::ir::Axes;

/// Zeros, and the part in its place.
pub fn dense_like<T: GpuFloat>(
    out: &mut Dense<T, Cuda>,
    part: DenseView<'_, T, Cuda>,
    like: Shape,
    axes: Axes,
    from_end: bool,
    context: &mut CudaContext,
) {
    parts::place_dense(out, part, Part::like(like, part.shape(), axes, from_end), context);
}

/// The rows of the part, and no others.
pub fn dense_like_by_rows<T: GpuFloat>(
    out: &mut RowSparse<T, Cuda>,
    part: DenseView<'_, T, Cuda>,
    like: Shape,
    axes: Axes,
    from_end: bool,
    context: &mut CudaContext,
) {
    parts::place_rows(out, part, Part::like(like, part.shape(), axes, from_end), context);
}

/// What the part stores.
pub fn csr_like<T: GpuFloat>(
    out: &mut Csr<T, Cuda>,
    part: CsrView<'_, T, Cuda>,
    like: Shape,
    axes: Axes,
    from_end: bool,
    context: &mut CudaContext,
) {
    parts::place_csr(
        out,
        part,
        Part::like(like, &[part.n_rows(), part.n_cols()].into(), axes, from_end),
        context,
    );
}

/// The rows that the part stores.
pub fn row_sparse_like<T: GpuFloat>(
    out: &mut RowSparse<T, Cuda>,
    part: RowSparseView<'_, T, Cuda>,
    like: Shape,
    axes: Axes,
    from_end: bool,
    context: &mut CudaContext,
) {
    parts::place_row_sparse(out, part, Part::like(like, part.shape(), axes, from_end), context);
}

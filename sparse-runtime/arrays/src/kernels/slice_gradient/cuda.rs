//! The gradient of `slice` on a GPU.

use crate::device::cuda::Cuda;
use crate::formats::{Csr, CsrView, Dense, DenseView, RowSparse, RowSparseView, Shape};
use crate::kernels::cuda::{CudaContext, GpuFloat, parts};
use crate::kernels::parts::Part;
use sparse_core::ir::List;

/// Zeros, and the part in its place.
pub fn dense_like<T: GpuFloat>(
    out: &mut Dense<T, Cuda>,
    part: DenseView<'_, T, Cuda>,
    like: Shape,
    begin: Option<List>,
    end: Option<List>,
    step: Option<List>,
    context: &mut CudaContext,
) {
    parts::place_dense(out, part, Part::of_lists(like, begin, end, step), context);
}

/// The rows of the part, and no others.
pub fn dense_like_by_rows<T: GpuFloat>(
    out: &mut RowSparse<T, Cuda>,
    part: DenseView<'_, T, Cuda>,
    like: Shape,
    begin: Option<List>,
    end: Option<List>,
    step: Option<List>,
    context: &mut CudaContext,
) {
    parts::place_rows(out, part, Part::of_lists(like, begin, end, step), context);
}

/// What the part stores.
pub fn csr_like<T: GpuFloat>(
    out: &mut Csr<T, Cuda>,
    part: CsrView<'_, T, Cuda>,
    like: Shape,
    begin: Option<List>,
    end: Option<List>,
    step: Option<List>,
    context: &mut CudaContext,
) {
    parts::place_csr(out, part, Part::of_lists(like, begin, end, step), context);
}

/// The rows that the part stores.
pub fn row_sparse_like<T: GpuFloat>(
    out: &mut RowSparse<T, Cuda>,
    part: RowSparseView<'_, T, Cuda>,
    like: Shape,
    begin: Option<List>,
    end: Option<List>,
    step: Option<List>,
    context: &mut CudaContext,
) {
    parts::place_row_sparse(out, part, Part::of_lists(like, begin, end, step), context);
}

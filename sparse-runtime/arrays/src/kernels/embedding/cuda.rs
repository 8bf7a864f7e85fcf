//! Rows of a table on a GPU: what `take` gives along the first axis.

use crate::device::cuda::Cuda;
use crate::formats::{Dense, DenseView, IdsView, RowSparseView};
use crate::kernels::cuda::{CudaContext, GpuFloat};
use crate::kernels::take;

/// Rows of a dense table.
pub fn ids_dense<T: GpuFloat>(
    out: &mut Dense<T, Cuda>,
    ids: IdsView<'_, Cuda>,
    weight: DenseView<'_, T, Cuda>,
    context: &mut CudaContext,
) {
    take::cuda::dense_ids(out, weight, ids, 0, false, false, context);
}

/// Rows of a row_sparse table; one that is not stored is zero.
pub fn ids_row_sparse<T: GpuFloat>(
    out: &mut Dense<T, Cuda>,
    ids: IdsView<'_, Cuda>,
    weight: RowSparseView<'_, T, Cuda>,
    context: &mut CudaContext,
) {
    take::cuda::row_sparse_ids_by_rows(out, weight, ids, 0, false, false, context);
}

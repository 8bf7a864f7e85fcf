//! The cast to row_sparse on a GPU.

use crate::device::cuda::Cuda;
use crate::formats::{CsrView, DenseView, RowSparse, RowSparseView};
use crate::kernels::cuda::row_lists::{self, Place, Stored, Values};
use crate::kernels::cuda::{CudaContext, GpuFloat, Pattern};
use crate::kernels::dense;
use crate::kernels::strided::Strided;

/// The rows that have an element other than zero.
pub fn dense<T: GpuFloat>(
    out: &mut RowSparse<T, Cuda>,
    x: DenseView<'_, T, Cuda>,
    context: &mut CudaContext,
) {
    let along = Strided::at(0).axis(x.shape().row_size(), 1);
    let positions = row_lists::all(x.shape().n_rows());
    let place = Place { of: RowSparseView::all_on_gpu(x), positions, along };
    row_lists::make(out, *x.shape(), Stored::NotZero(x), Values::Gathered(&place), context);
}

/// The rows that have a stored entry.
pub fn csr<T: GpuFloat>(
    out: &mut RowSparse<T, Cuda>,
    x: CsrView<'_, T, Cuda>,
    context: &mut CudaContext,
) {
    let shape = [x.n_rows(), x.n_cols()].into();
    row_lists::make(out, shape, Stored::NotEmpty(x), Values::Entries(x), context);
}

/// A copy.
pub fn row_sparse<T: GpuFloat>(
    out: &mut RowSparse<T, Cuda>,
    x: RowSparseView<'_, T, Cuda>,
    context: &mut CudaContext,
) {
    let gpu = context.gpu();
    gpu.attempt(out, |out| dense::cuda::numbers(gpu, x.give(gpu, out)?, x.values()));
}

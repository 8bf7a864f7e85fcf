//! Zeros on a GPU.

use crate::device::cuda::{Cuda, CudaSlice};
use crate::formats::{Csr, CsrView, Dense, DenseView, RowSparse, RowSparseView};
use crate::kernels::cuda::{CudaContext, GpuFloat};

/// A dense array of zeros.
pub fn dense<T: GpuFloat>(
    out: &mut Dense<T, Cuda>,
    x: DenseView<'_, T, Cuda>,
    context: &mut CudaContext,
) {
    let gpu = context.gpu();
    gpu.attempt(out, |out| out.zeros_on(gpu, *x.shape()).map(drop));
}

/// A csr matrix that stores nothing.
pub fn csr<T: GpuFloat>(
    out: &mut Csr<T, Cuda>,
    x: CsrView<'_, T, Cuda>,
    context: &mut CudaContext,
) {
    let gpu = context.gpu();
    gpu.attempt(out, |out| out.reset_on(gpu, [x.n_rows(), x.n_cols()]));
}

/// A row_sparse array that stores nothing.
pub fn row_sparse<T: GpuFloat>(
    out: &mut RowSparse<T, Cuda>,
    x: RowSparseView<'_, T, Cuda>,
    context: &mut CudaContext,
) {
    let gpu = context.gpu();
    gpu.attempt(out, |out| out.store_rows(gpu, *x.shape(), CudaSlice::default()).map(drop));
}

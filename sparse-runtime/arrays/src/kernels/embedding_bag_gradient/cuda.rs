//! The gradient of sums of rows of a table on a GPU.

use crate::device::cuda::Cuda;
use crate::formats::{CsrView, DenseView};
use crate::kernels::cuda::{CudaContext, GpuFloat, Rows};
use crate::kernels::embedding_bag;
use sparse_core::element::Factor;

/// A row for each column that occurs in the bags.
pub fn csr_dense<T: GpuFloat, V: Factor<T>, O: Rows<T>>(
    out: &mut O,
    bags: CsrView<'_, V, Cuda>,
    grad: DenseView<'_, T, Cuda>,
    mean: bool,
    weighted: bool,
    context: &mut CudaContext,
) {
    embedding_bag::cuda::gradient(out, bags, grad, mean, weighted, context);
}

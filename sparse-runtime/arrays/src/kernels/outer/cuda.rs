//! Outer products on a GPU: the elements of a column times those of a row.

use crate::device::cuda::Cuda;
use crate::formats::{Dense, DenseView, RowSparse, RowSparseView};
use crate::kernels::cuda::row_lists::Stored;
use crate::kernels::cuda::{CudaContext, GpuFloat, ScalarFunction};
use crate::kernels::{binary, dot};
use sparse_core::ir::Attributes;
use sparse_core::operators::find;

/// Dense by dense.
pub fn dense_dense<T: GpuFloat>(
    out: &mut Dense<T, Cuda>,
    lhs: DenseView<'_, T, Cuda>,
    rhs: DenseView<'_, T, Cuda>,
    context: &mut CudaContext,
) {
    // The table has it.
    let product = find("multiply").and_then(|of| ScalarFunction::new(of, &Attributes::default()));
    if let Some(product) = product {
        let column = lhs.reshaped([lhs.values().len(), 1].into());
        let row = rhs.reshaped([1, rhs.values().len()].into());
        binary::cuda::dense_dense(out, column, row, product, context);
    }
}

/// Dense by row_sparse: columns that are not stored are zero.
pub fn dense_row_sparse<T: GpuFloat>(
    out: &mut Dense<T, Cuda>,
    lhs: DenseView<'_, T, Cuda>,
    rhs: RowSparseView<'_, T, Cuda>,
    context: &mut CudaContext,
) {
    let gpu = context.gpu();
    let width = rhs.shape().n_rows();
    gpu.attempt(out, |out| {
        let out = out.zeros_on(gpu, [lhs.values().len(), width].into())?;
        let (columns, _) = rhs.stored_on_gpu();
        dot::cuda::outer(gpu, out, lhs.values(), rhs.values(), columns, width)
    });
}

/// Row_sparse by dense: the rows are those of the left side.
pub fn row_sparse_dense<T: GpuFloat>(
    out: &mut RowSparse<T, Cuda>,
    lhs: RowSparseView<'_, T, Cuda>,
    rhs: DenseView<'_, T, Cuda>,
    context: &mut CudaContext,
) {
    row_sparse_row_sparse(out, lhs, RowSparseView::all_on_gpu(rhs), context);
}

/// Row_sparse by row_sparse: the rows are those of the left side.
pub fn row_sparse_row_sparse<T: GpuFloat>(
    out: &mut RowSparse<T, Cuda>,
    lhs: RowSparseView<'_, T, Cuda>,
    rhs: RowSparseView<'_, T, Cuda>,
    context: &mut CudaContext,
) {
    let CudaContext { gpu, occurrences, list, .. } = context;
    let (n_rows, width) = (lhs.shape().n_rows(), rhs.shape().n_rows());
    gpu.attempt(out, |out| {
        Stored::Of(lhs).find(n_rows, list, occurrences, gpu)?;
        let out = out.store_rows(gpu, [n_rows, width].into(), occurrences.columns())?;
        out.zero()?;
        let (columns, _) = rhs.stored_on_gpu();
        dot::cuda::outer(gpu, out, lhs.values(), rhs.values(), columns, width)
    });
}

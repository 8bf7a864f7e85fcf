//! Repetition at a pattern on a GPU.

use crate::device::cuda::Cuda;
use crate::formats::{Csr, CsrView, DenseView, RowSparse, RowSparseView, Shape};
use crate::kernels::binary::cuda::{self as binary, WithDense};
use crate::kernels::broadcast::strides;
use crate::kernels::broadcast_like::cpu::{share, with_axes};
use crate::kernels::broadcast_like::cuda::{fill, repeat_at_pattern};
use crate::kernels::cuda::row_lists::store_rows_of;
use crate::kernels::cuda::{CudaContext, GpuFloat, ScalarFunction};
use crate::kernels::reduce::Over;
use sparse_core::ir::Axes;

/// A dense array repeated to the shape of a csr matrix.
pub fn dense_csr<T: GpuFloat>(
    out: &mut Csr<T, Cuda>,
    x: DenseView<'_, T, Cuda>,
    like: CsrView<'_, T, Cuda>,
    axis: Axes,
    exclude: bool,
    mean: bool,
    context: &mut CudaContext,
) {
    let gpu = context.gpu();
    let shape = Shape::from([like.n_rows(), like.n_cols()]);
    let source = with_axes(x.shape(), &shape, Over { axis, keepdims: false, exclude });
    let share = share(shape.size(), x.shape().size(), mean);
    let [row_step, column_step, ..] = strides(&source, &shape);
    gpu.attempt(out, |out| {
        let out = out.take_pattern(gpu, like)?;
        repeat_at_pattern(gpu, out, x.values(), [row_step, column_step], share, like)
    });
}

/// A number repeated to the shape of a csr matrix.
pub fn scalar_csr<T: GpuFloat>(
    out: &mut Csr<T, Cuda>,
    x: f64,
    like: CsrView<'_, T, Cuda>,
    _axis: Axes,
    _exclude: bool,
    mean: bool,
    context: &mut CudaContext,
) {
    let gpu = context.gpu();
    let size = Shape::from([like.n_rows(), like.n_cols()]).size();
    gpu.attempt(out, |out| {
        let out = out.take_pattern(gpu, like)?;
        fill(gpu, out, x * share::<f64>(size, 1, mean))
    });
}

/// A dense array repeated to the shape of a row_sparse array, at the rows that this stores.
pub fn dense_row_sparse<T: GpuFloat>(
    out: &mut RowSparse<T, Cuda>,
    x: DenseView<'_, T, Cuda>,
    like: RowSparseView<'_, T, Cuda>,
    axis: Axes,
    exclude: bool,
    mean: bool,
    context: &mut CudaContext,
) {
    let source = with_axes(x.shape(), like.shape(), Over { axis, keepdims: false, exclude });
    let share: f64 = share(like.shape().size(), x.shape().size(), mean);
    // The table has it.
    if let Some(f) = ScalarFunction::first_times(share) {
        let f = WithDense { f, sparse_first: false };
        binary::row_sparse_dense(out, like, x.reshaped(source), f, context);
    }
}

/// A number repeated to the shape of a row_sparse array, at the rows that this stores.
pub fn scalar_row_sparse<T: GpuFloat>(
    out: &mut RowSparse<T, Cuda>,
    x: f64,
    like: RowSparseView<'_, T, Cuda>,
    _axis: Axes,
    _exclude: bool,
    mean: bool,
    context: &mut CudaContext,
) {
    let gpu = context.gpu();
    let shape = *like.shape();
    gpu.attempt(out, |out| {
        let out = store_rows_of(gpu, out, shape, like)?;
        fill(gpu, out, x * share::<f64>(shape.size(), 1, mean))
    });
}

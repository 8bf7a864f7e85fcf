//! Sums over what was broadcast, on a GPU.

use crate::device::cuda::Cuda;
use crate::formats::{Csr, CsrView, Dense, DenseView, RowSparse, RowSparseView, Shape};
use crate::kernels::cuda::{CudaContext, GpuFloat};
use crate::kernels::{csr, dense, reduce, row_sparse};

/// The sum to a shape that broadcasts to that of the array.
pub fn dense_like<T: GpuFloat>(
    out: &mut Dense<T, Cuda>,
    x: DenseView<'_, T, Cuda>,
    like: Shape,
    context: &mut CudaContext,
) {
    reduce::cuda::sum_to(out, *x.shape(), like, |out, over, sum| {
        reduce::cuda::dense(out, x, over, sum, context);
    });
}

/// Of a csr matrix: dense, or csr where the shapes are equal.
pub fn csr_like<T: GpuFloat, O: SumOfCsr<T>>(
    out: &mut O,
    x: CsrView<'_, T, Cuda>,
    like: Shape,
    context: &mut CudaContext,
) {
    out.sum_of_csr(x, like, context);
}

/// Of a row_sparse array: dense, or row_sparse where the shapes are equal.
pub fn row_sparse_like<T: GpuFloat, O: SumOfRowSparse<T>>(
    out: &mut O,
    x: RowSparseView<'_, T, Cuda>,
    like: Shape,
    context: &mut CudaContext,
) {
    out.sum_of_row_sparse(x, like, context);
}

/// An array on a GPU that the sum of a csr matrix to a shape may be.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a sum of a csr matrix of `{T}` on a GPU",
    note = "that is a `Dense<{T}, Cuda>`, or where the shapes are equal a `Csr<{T}, Cuda>`"
)]
pub trait SumOfCsr<T: GpuFloat> {
    /// Becomes it.
    #[doc(hidden)]
    fn sum_of_csr(&mut self, x: CsrView<'_, T, Cuda>, like: Shape, context: &mut CudaContext);
}

impl<T: GpuFloat> SumOfCsr<T> for Dense<T, Cuda> {
    fn sum_of_csr(&mut self, x: CsrView<'_, T, Cuda>, like: Shape, context: &mut CudaContext) {
        let shape = Shape::from([x.n_rows(), x.n_cols()]);
        if shape == like {
            return dense::cuda::csr(self, x, context);
        }
        reduce::cuda::sum_to(self, shape, like, |out, over, sum| {
            reduce::cuda::csr(out, x, over, sum, context);
        });
    }
}

/// A copy.
impl<T: GpuFloat> SumOfCsr<T> for Csr<T, Cuda> {
    fn sum_of_csr(&mut self, x: CsrView<'_, T, Cuda>, _like: Shape, context: &mut CudaContext) {
        csr::cuda::csr(self, x, context);
    }
}

/// An array on a GPU that the sum of a row_sparse array to a shape may be.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a sum of a row_sparse array of `{T}` on a GPU",
    note = "that is a `Dense<{T}, Cuda>`, or where the shapes are equal a `RowSparse<{T}, Cuda>`"
)]
pub trait SumOfRowSparse<T: GpuFloat> {
    /// Becomes it.
    #[doc(hidden)]
    fn sum_of_row_sparse(
        &mut self,
        x: RowSparseView<'_, T, Cuda>,
        like: Shape,
        context: &mut CudaContext,
    );
}

impl<T: GpuFloat> SumOfRowSparse<T> for Dense<T, Cuda> {
    fn sum_of_row_sparse(
        &mut self,
        x: RowSparseView<'_, T, Cuda>,
        like: Shape,
        context: &mut CudaContext,
    ) {
        if *x.shape() == like {
            return dense::cuda::row_sparse(self, x, context);
        }
        reduce::cuda::sum_to(self, *x.shape(), like, |out, over, sum| {
            reduce::cuda::row_sparse(out, x, over, sum, context);
        });
    }
}

/// A copy.
impl<T: GpuFloat> SumOfRowSparse<T> for RowSparse<T, Cuda> {
    fn sum_of_row_sparse(
        &mut self,
        x: RowSparseView<'_, T, Cuda>,
        _like: Shape,
        context: &mut CudaContext,
    ) {
        row_sparse::cuda::row_sparse(self, x, context);
    }
}

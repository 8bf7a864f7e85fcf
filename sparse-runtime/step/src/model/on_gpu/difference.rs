//! Gradients less those of another model, for rules that correct gradients.

use crate::optimizer::cuda::CudaGradient;
use nnz_arrays::kernels::cuda::table::{Given, GpuArray, GpuOperand};
use nnz_arrays::kernels::cuda::{CudaContext, GpuFloat};
use sparse_core::ir::Attributes;
use sparse_core::operators::find;
use sparse_core::storage::Storage;

/// The difference of two gradients of one parameter, by the kernel of the operator; `None` where
/// GPUs have none.
pub(super) fn difference<'w, T: GpuFloat>(
    gradient: CudaGradient<'w, T>,
    other: CudaGradient<'w, T>,
    context: &mut CudaContext,
) -> Option<GpuArray<T>> {
    let (kernel, result) = match gradient {
        CudaGradient::Dense(_) => ("subtract_dense_dense", Storage::Dense),
        CudaGradient::RowSparse(_) => ("subtract_row_sparse_row_sparse", Storage::RowSparse),
    };
    let operator = find("subtract")?;
    let (mut out, attributes) = (GpuArray::default(), Attributes::default());
    let operands = [gradient, other].map(|of| match of {
        CudaGradient::Dense(of) => GpuOperand::Dense(of),
        CudaGradient::RowSparse(of) => GpuOperand::RowSparse(of),
    });
    let given = Given { operator, result, operands: &operands, attributes: &attributes };
    T::kernel(operator, kernel)?(&mut out, &given, context)?;
    Some(out)
}

/// An array as the gradient that it is.
pub(super) fn as_gradient<T: GpuFloat>(array: &GpuArray<T>) -> Option<CudaGradient<'_, T>> {
    match array.operand() {
        GpuOperand::Dense(gradient) => Some(CudaGradient::Dense(gradient)),
        GpuOperand::RowSparse(gradient) => Some(CudaGradient::RowSparse(gradient)),
        _ => None,
    }
}

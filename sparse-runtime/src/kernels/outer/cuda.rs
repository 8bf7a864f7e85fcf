//! Outer products on a GPU: the elements of a column times those of a row.

use crate::device::cuda::Cuda;
use crate::formats::{Dense, DenseView};
use crate::kernels::binary;
use crate::kernels::cuda::{CudaContext, GpuFloat, ScalarFunction};
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

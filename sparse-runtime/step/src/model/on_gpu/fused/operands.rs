//! Operands of a launch that every kind of scores has.

use crate::model::on_gpu::rows::KeptRows;
use nnz_arrays::device::cuda::Cuda;
use nnz_arrays::formats::DenseView;
use nnz_arrays::kernels::cuda::{GpuFloat, Labels};

/// The operands that do not depend on the kind of terms.
pub(super) struct CommonOperands<'w, T: GpuFloat> {
    pub(super) bias: Option<DenseView<'w, T, Cuda>>,
    pub(super) labels: Labels<'w, T>,
    pub(super) row_weights: Option<DenseView<'w, T, Cuda>>,
    /// Of scores that are linear.
    pub(super) kept: KeptRows<'w, T>,
}

//! Derivatives that are kept of samples, as arguments of kernels.

use crate::optimizer::Usage;
use nnz_arrays::device::cuda::CudaSlice;
use nnz_arrays::kernels::cuda::GpuFloat;
use nnz_device::cuda::Launch;

/// What texts of kernels say of samples: its name and its text.
pub(crate) const SAMPLES: (&str, &str) =
    ("model/on_gpu/rows/samples.cuh", include_str!("samples.cuh"));

/// What a kernel reads and writes of samples, as `samples.cuh` has it; nothing where no derivatives
/// are kept.
#[derive(Clone, Copy, Debug)]
pub(crate) struct KeptRows<'a, T: GpuFloat> {
    /// What becomes of a derivative and the old one.
    pub(crate) usage: Usage,
    /// `columns` derivatives a sample.
    pub(crate) derivatives: CudaSlice<'a, T>,
    /// The sample of each row of the batch.
    pub(crate) ids: CudaSlice<'a, u64>,
}

impl<T: GpuFloat> Default for KeptRows<'_, T> {
    fn default() -> Self {
        let (derivatives, ids) = (CudaSlice::default(), CudaSlice::default());
        KeptRows { usage: Usage::Nothing, derivatives, ids }
    }
}

impl<T: GpuFloat> KeptRows<'_, T> {
    /// Whether they are those of so many rows, each with so many derivatives of a sample that there
    /// is.
    pub(crate) fn are_of(&self, n_rows: usize, columns: usize) -> bool {
        let whole = columns > 0 && self.derivatives.len().is_multiple_of(columns);
        self.usage == Usage::Nothing || self.ids.len() == n_rows && whole
    }

    /// The arguments of a kernel.
    pub(crate) fn given_to<'g>(self, launch: Launch<'g>) -> Launch<'g> {
        launch.reads(self.ids).writes(self.derivatives).size(self.usage as usize)
    }
}

//! Derivatives of a batch by its scores on a GPU, corrected by those that are kept of samples,
//! where a kernel of its own has computed them.

use super::KeptRows;
use super::kept_rows::SAMPLES;
use nnz_arrays::device::cuda::{Cuda, CudaSlice, Unit, Word};
use nnz_arrays::formats::{Dense, DenseView};
use nnz_arrays::kernels::cuda::{CudaContext, GpuFloat};
use nnz_device::cuda::text_of_files;
use nnz_device::cuda::{Blocks, Launch};
use std::sync::LazyLock;

const THREADS: u32 = 256;

/// Corrects the derivatives of a mean over rows, each with its weight if there are weights. `None`
/// where those that are kept are not of such rows: nothing is launched then. O(derivatives).
pub(crate) fn correct<T: GpuFloat>(
    derivatives: &mut Dense<T, Cuda>,
    row_weights: Option<DenseView<'_, T, Cuda>>,
    kept: KeptRows<'_, T>,
    context: &mut CudaContext,
) -> Option<()> {
    let gpu = &context.gpu().clone();
    let mut are_of_rows = true;
    gpu.attempt(derivatives, |derivatives| {
        let derivatives = derivatives.view();
        let (n_rows, k) = (derivatives.shape().n_rows(), derivatives.shape().row_size());
        are_of_rows =
            kept.are_of(n_rows, k) && row_weights.is_none_or(|of| of.values().len() == n_rows);
        if !are_of_rows {
            return Ok(());
        }
        let (words, derivatives) = ([("REAL", Word::Name(T::TYPE.name()))], derivatives.values());
        let launch = Launch::new(gpu, gpu.kernel(&unit(&words), "correct_rows")?);
        let launch = launch.reads(row_weights.map_or_else(CudaSlice::default, |of| of.values()));
        let launch = kept.given_to(launch).writes(derivatives).size(k).size(derivatives.len());
        let launch = launch.f64(1.0 / n_rows.max(1) as f64);
        // SAFETY: there are a weight and a sample for each row, and derivatives of each sample, as
        // many as a row has.
        unsafe { launch.launch(Blocks::of(derivatives.len(), THREADS as usize, THREADS)) }
    });
    are_of_rows.then_some(())
}

fn unit<'a>(words: &'a [(&'static str, Word)]) -> Unit<'a> {
    let text = {
        static TEXT: LazyLock<String> = LazyLock::new(|| {
            text_of_files(&[
                SAMPLES,
                ("model/on_gpu/rows/corrected.cu", include_str!("corrected.cu")),
            ])
        });
        TEXT.as_str()
    };
    Unit { file: "model/on_gpu/rows/corrected.cu", text, words }
}

/// Visits its unit.
pub(crate) fn for_each_unit(visit: &mut dyn FnMut(&Unit<'_>)) {
    visit(&unit(&[("REAL", Word::Name("f32"))]));
}

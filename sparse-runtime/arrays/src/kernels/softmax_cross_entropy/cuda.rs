//! The cross entropy of a softmax on a GPU: a warp for each row, whatever the labels are.

use crate::device::cuda::{Blocks, Cuda, CudaError, Gpu, Launch, Unit, Word, text_of};
use crate::formats::{Dense, Shape};
use crate::kernels::cuda::loss::{mean_of_parts, words_of_labels};
use crate::kernels::cuda::{CudaContext, GpuFloat, LossOperands};

/// What texts of this loss share: its name and its text.
pub const HEADER: (&str, &str) = (
    "kernels/softmax_cross_entropy/softmax_cross_entropy.cuh",
    include_str!("softmax_cross_entropy.cuh"),
);

const THREADS: u32 = 256;

/// How many rows a part of a sum has at least.
const LEAST_PART: usize = 1 << 8;

/// At most so many parts, which one thread adds.
const MOST_PARTS: usize = 512;

/// The mean over the rows, in an array of rank 0; 0 for no rows.
pub fn mean<T: GpuFloat>(
    out: &mut Dense<T, Cuda>,
    of: LossOperands<'_, T>,
    context: &mut CudaContext,
) {
    let gpu = &context.gpu().clone();
    let partial = &mut context.partial;
    gpu.attempt(out, |out| {
        let out = out.reset_on(gpu, Shape::from([]))?;
        let n_rows = of.n_rows();
        let part = n_rows.div_ceil(MOST_PARTS).max(LEAST_PART);
        let parts = n_rows.div_ceil(part);
        partial.resize_for_overwrite(gpu, parts, "partial sums of a loss")?;
        let launch = launch(gpu, of, "cross_entropy_parts")?.writes(partial.as_slice());
        let launch = launch.size(n_rows).size(of.scores.shape().row_size()).size(part);
        // SAFETY: there is a label and a weight for each row, or a target for each score, and a sum
        // for each part.
        unsafe { launch.launch(Blocks { x: parts, y: 1, threads: THREADS }) }?;
        mean_of_parts(gpu, out, partial.as_slice(), n_rows)
    });
}

/// The gradient of the mean with respect to the scores.
pub fn gradient<T: GpuFloat>(
    out: &mut Dense<T, Cuda>,
    of: LossOperands<'_, T>,
    context: &mut CudaContext,
) {
    let gpu = context.gpu();
    gpu.attempt(out, |out| {
        let (shape, n_rows) = (*of.scores.shape(), of.n_rows());
        let out = out.reset_on(gpu, shape)?;
        let launch = launch(gpu, of, "cross_entropy_gradient")?.writes(out);
        let launch = launch.size(n_rows).size(shape.row_size()).f64(1.0 / n_rows.max(1) as f64);
        // SAFETY: there is a label and a weight for each row, or a target for each score, and a
        // result for each score.
        unsafe { launch.launch(Blocks::of(n_rows, THREADS as usize / 32, THREADS)) }
    });
}

/// A launch that has its operands.
fn launch<'a, T: GpuFloat>(
    gpu: &'a Gpu,
    of: LossOperands<'_, T>,
    name: &'static str,
) -> Result<Launch<'a>, CudaError> {
    let words = words_of_labels(T::TYPE.name(), of.labels.class(), of.labels.id());
    let launch = Launch::new(gpu, gpu.kernel(&unit(&words), name)?).reads(of.scores.values());
    let launch = of.labels.classes_read_by(launch);
    Ok(of.labels.read_by(launch).reads(of.weights()))
}

fn unit<'a>(words: &'a [(&'static str, Word)]) -> Unit<'a> {
    let text = text_of!(
        "kernels/cuda/labels.cuh",
        "kernels/softmax_cross_entropy/softmax_cross_entropy.cuh",
        "kernels/softmax_cross_entropy/softmax_cross_entropy.cu"
    );
    Unit { file: "kernels/softmax_cross_entropy/softmax_cross_entropy.cu", text, words }
}

/// Visits one of each kind of these units.
pub(crate) fn for_each_unit(visit: &mut dyn FnMut(&Unit<'_>)) {
    visit(&unit(&words_of_labels("f32", "u32", "u32")));
    visit(&unit(&words_of_labels("f32", "i64", "u64")));
}

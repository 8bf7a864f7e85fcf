//! Losses on a GPU that are a sum over the scores of a row, and their gradients, by the formulas of their row of the table.

use super::{CudaContext, GpuFloat, Numbers};
use crate::device::cuda::{Blocks, Cuda, CudaError, CudaSlice, Gpu, Launch, Unit, Word};
use crate::formats::{Dense, DenseView, Shape};
use sparse_core::ir::Attributes;
use sparse_core::operators::{ElementLoss, Kind, Operator, find};

const THREADS: u32 = 256;

/// How many elements a part of a sum has at least.
const LEAST_PART: usize = 1 << 13;

/// At most so many parts, which one thread adds.
const MOST_PARTS: usize = 512;

/// The formulas of a loss of the operator table, with its attributes.
#[derive(Clone, Copy, Debug)]
pub struct LossFunction {
    operator: &'static Operator,
    element: ElementLoss,
    numbers: Numbers,
}

/// The dense operands of a loss.
#[derive(Clone, Copy)]
pub struct LossOperands<'a, T: GpuFloat> {
    /// A row of scores for each row of the batch.
    pub scores: DenseView<'a, T, Cuda>,
    /// A label for each score.
    pub labels: DenseView<'a, T, Cuda>,
    /// A weight for each row.
    pub weights: Option<DenseView<'a, T, Cuda>>,
}

impl LossFunction {
    /// Those of a loss or of the gradient of one; `None` for any other operator, and for a loss that is no sum over the scores.
    ///
    /// ```
    /// use sparse_core::{ir::Attributes, operators::find};
    /// use sparse_runtime::kernels::cuda::LossFunction;
    /// let of = |name| LossFunction::new(find(name)?, &Attributes::default());
    /// assert!(of("logistic").is_some() && of("logistic_gradient").is_some());
    /// assert!(of("softmax_cross_entropy").is_none());
    /// ```
    pub fn new(operator: &'static Operator, attributes: &Attributes) -> Option<Self> {
        let loss = match operator.kind {
            Kind::LossGradient(loss) => find(loss)?,
            _ => operator,
        };
        let Kind::Loss { element: Some(element), .. } = loss.kind else { return None };
        Some(LossFunction { operator: loss, element, numbers: Numbers::new(operator, attributes)? })
    }

    fn words(&self, real: &'static str) -> [(&'static str, Word); 3] {
        [
            ("REAL", Word::Name(real)),
            ("LOSS", Word::Formula(self.operator, self.element.loss)),
            ("SLOPE", Word::Formula(self.operator, self.element.slope)),
        ]
    }
}

impl<T: GpuFloat> LossOperands<'_, T> {
    fn read_by<'l>(&self, launch: Launch<'l>) -> Launch<'l> {
        let weights = self.weights.map_or_else(CudaSlice::default, |weights| weights.values());
        launch.reads(self.scores.values()).reads(self.labels.values()).reads(weights)
    }

    fn n_rows(&self) -> usize {
        self.scores.shape().n_rows()
    }
}

/// The mean over the rows, in an array of rank 0; 0 for no rows.
pub fn mean<T: GpuFloat>(
    out: &mut Dense<T, Cuda>,
    of: LossOperands<'_, T>,
    function: LossFunction,
    context: &mut CudaContext,
) {
    let gpu = &context.gpu().clone();
    let partial = &mut context.partial;
    gpu.attempt(out, |out| {
        let out = out.reset_on(gpu, Shape::from([]))?;
        let n = of.scores.values().len();
        let part = n.div_ceil(MOST_PARTS).max(LEAST_PART);
        let parts = n.div_ceil(part);
        partial.resize_for_overwrite(gpu, parts, "partial sums of a loss")?;
        let words = function.words(T::TYPE.name());
        let launch = of.read_by(kernel(gpu, &words, "loss_parts")?);
        let launch = function.numbers.read_by(launch).writes(partial.as_slice());
        let launch = launch.size(n).size(of.scores.shape().row_size()).size(part);
        // SAFETY: there is a label for each score, a weight for each row, and a sum for each part.
        unsafe { launch.launch(Blocks { x: parts, y: 1, threads: THREADS }) }?;
        let launch = kernel(gpu, &words, "loss_mean")?.reads(partial.as_slice()).size(parts);
        let launch = launch.f64(of.n_rows().max(1) as f64).writes(out);
        // SAFETY: there are as many sums, and `out` has one element.
        unsafe { launch.launch(Blocks { x: 1, y: 1, threads: 32 }) }
    });
}

/// The gradient of the mean with respect to the scores.
pub fn gradient<T: GpuFloat>(
    out: &mut Dense<T, Cuda>,
    of: LossOperands<'_, T>,
    function: LossFunction,
    context: &mut CudaContext,
) {
    let gpu = context.gpu();
    gpu.attempt(out, |out| {
        let shape = *of.scores.shape();
        let out = out.reset_on(gpu, shape)?;
        let words = function.words(T::TYPE.name());
        let launch = of.read_by(kernel(gpu, &words, "loss_gradient")?);
        let launch = function.numbers.read_by(launch).writes(out).size(out.len());
        let launch = launch.size(shape.row_size()).f64(1.0 / of.n_rows().max(1) as f64);
        // SAFETY: there is a label and a result for each score, and a weight for each row.
        unsafe { launch.launch(Blocks::of(out.len(), THREADS as usize, THREADS)) }
    });
}

fn kernel<'a>(
    gpu: &'a Gpu,
    words: &[(&'static str, Word)],
    name: &'static str,
) -> Result<Launch<'a>, CudaError> {
    Ok(Launch::new(gpu, gpu.kernel(&unit(words), name)?))
}

fn unit<'a>(words: &'a [(&'static str, Word)]) -> Unit<'a> {
    Unit { file: "kernels/cuda/loss.cu", text: include_str!("loss.cu"), words }
}

/// The unit of a loss.
pub(super) fn with_unit(real: &'static str, of: LossFunction, visit: &mut dyn FnMut(&Unit<'_>)) {
    visit(&unit(&of.words(real)));
}

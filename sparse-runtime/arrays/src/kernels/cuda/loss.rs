//! Losses on a GPU that are a sum over the scores of a row, and their gradients, by the formulas of
//! their row of the table.

use super::array::GpuOperand;
use super::{CudaContext, GpuFloat, Numbers};
use crate::device::cuda::{Blocks, Cuda, CudaError, CudaSlice, Gpu, Launch, Unit, Word, text_of};
use crate::formats::cuda::ArrayArguments;
use crate::formats::{CsrView, Dense, DenseView, IdsView, Shape};
use sparse_core::ir::Attributes;
use sparse_core::operators::{ElementLoss, Kind, Operator, find};
use sparse_core::storage::ElementType;
use std::fmt;

/// What texts that read labels share: its name and its text.
pub const LABELS: (&str, &str) = ("kernels/cuda/labels.cuh", include_str!("labels.cuh"));

/// What texts of losses share: its name and its text.
pub const LOSS: (&str, &str) = ("kernels/cuda/loss.cuh", include_str!("loss.cuh"));

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

/// The labels of a loss.
#[derive(Clone, Copy)]
pub enum Labels<'a, T: GpuFloat> {
    /// A label for each score.
    Dense(DenseView<'a, T, Cuda>),
    /// The same; what is not stored is 0.
    Csr(CsrView<'a, T, Cuda>),
    /// A class for each row, below the number of its scores.
    Classes(IdsView<'a, Cuda>),
}

impl<'a, T: GpuFloat> GpuOperand<'a, T> {
    /// As the labels of a loss.
    pub fn labels(self) -> Option<Labels<'a, T>> {
        match self {
            GpuOperand::Dense(labels) => Some(Labels::Dense(labels)),
            GpuOperand::Csr(labels) => Some(Labels::Csr(labels)),
            GpuOperand::Ids(labels) => Some(Labels::Classes(labels)),
            _ => None,
        }
    }
}

impl<T: GpuFloat> fmt::Debug for Labels<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Labels::Dense(_) => "Dense",
            Labels::Csr(_) => "Csr",
            Labels::Classes(_) => "Classes",
        })
    }
}

/// The operands of a loss.
#[derive(Clone, Copy)]
pub struct LossOperands<'a, T: GpuFloat> {
    /// A row of scores for each row of the batch.
    pub scores: DenseView<'a, T, Cuda>,
    /// The labels.
    pub labels: Labels<'a, T>,
    /// A weight for each row.
    pub weights: Option<DenseView<'a, T, Cuda>>,
}

impl<T: GpuFloat> fmt::Debug for LossOperands<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LossOperands").field("labels", &self.labels).finish_non_exhaustive()
    }
}

impl LossFunction {
    /// Those of a loss or of the gradient of one; `None` for any other operator, and for a loss
    /// that is no sum over the scores.
    ///
    /// ```
    /// use nnz::core::{ir::Attributes, operators::find};
    /// use nnz::kernels::cuda::LossFunction;
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

    fn words(&self, real: &'static str, id: &'static str) -> [(&'static str, Word); 5] {
        let [loss, slope] = self.formulas();
        let [real, class, id] = words_of_labels(real, ElementType::U32.name(), id);
        [real, class, id, loss, slope]
    }

    /// What a score and its label come to.
    pub fn formulas(&self) -> [(&'static str, Word); 2] {
        [
            ("LOSS", Word::Formula(self.operator, self.element.loss)),
            ("SLOPE", Word::Formula(self.operator, self.element.slope)),
        ]
    }

    /// Its attributes.
    pub fn numbers(&self) -> Numbers {
        self.numbers
    }
}

/// The words of a text about labels: the types of numbers, of classes, and of the columns of a csr.
pub fn words_of_labels(
    real: &'static str,
    class: &'static str,
    id: &'static str,
) -> [(&'static str, Word); 3] {
    [("REAL", Word::Name(real)), ("CLASS", Word::Name(class)), ("LABEL_ID", Word::Name(id))]
}

impl<'a, T: GpuFloat> Labels<'a, T> {
    /// The type of classes among them, as texts call it.
    pub fn class(&self) -> &'static str {
        match self {
            Labels::Classes(ids) => ids.type_name(),
            Labels::Dense(_) | Labels::Csr(_) => ElementType::U32.name(),
        }
    }

    /// Classes, or nothing.
    pub fn classes_read_by<'l>(&self, launch: Launch<'l>) -> Launch<'l> {
        match self {
            Labels::Classes(ids) => launch.ids(*ids),
            Labels::Dense(_) | Labels::Csr(_) => launch.reads(CudaSlice::<u32>::default()),
        }
    }

    /// The type of columns among them, as texts call it.
    pub fn id(&self) -> &'static str {
        match self {
            Labels::Csr(labels) => labels.columns().type_name(),
            Labels::Dense(_) | Labels::Classes(_) => ElementType::U32.name(),
        }
    }

    /// Dense labels, or nothing, and then those of a csr, or nothing.
    pub fn read_by<'l>(&self, launch: Launch<'l>) -> Launch<'l> {
        match self {
            Labels::Dense(labels) => launch.reads(labels.values()).no_csr::<T>(),
            Labels::Csr(labels) => launch.reads(CudaSlice::<T>::default()).csr(*labels),
            Labels::Classes(_) => launch.reads(CudaSlice::<T>::default()).no_csr::<T>(),
        }
    }
}

impl<T: GpuFloat> LossOperands<'_, T> {
    fn read_by<'l>(&self, launch: Launch<'l>) -> Launch<'l> {
        self.labels.read_by(launch.reads(self.scores.values())).reads(self.weights())
    }

    /// The weights of the rows; nothing where there are none.
    pub(crate) fn weights(&self) -> CudaSlice<'_, T> {
        self.weights.map_or_else(CudaSlice::default, |weights| weights.values())
    }

    pub(crate) fn n_rows(&self) -> usize {
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
        let words = function.words(T::TYPE.name(), of.labels.id());
        let launch = of.read_by(kernel(gpu, &words, "loss_parts")?);
        let launch = function.numbers.read_by(launch).writes(partial.as_slice());
        let launch = launch.size(n).size(of.scores.shape().row_size()).size(part);
        // SAFETY: there is a label for each score, a weight for each row, and a sum for each part.
        unsafe { launch.launch(Blocks { x: parts, y: 1, threads: THREADS }) }?;
        mean_of_parts(gpu, out, partial.as_slice(), of.n_rows())
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
        let words = function.words(T::TYPE.name(), of.labels.id());
        let launch = of.read_by(kernel(gpu, &words, "loss_gradient")?);
        let launch = function.numbers.read_by(launch).writes(out).size(out.len());
        let launch = launch.size(shape.row_size()).f64(1.0 / of.n_rows().max(1) as f64);
        // SAFETY: there is a label and a result for each score, and a weight for each row.
        unsafe { launch.launch(Blocks::of(out.len(), THREADS as usize, THREADS)) }
    });
}

/// The sum of the partial sums of a loss, over the number of rows.
pub fn mean_of_parts<T: GpuFloat>(
    gpu: &Gpu,
    out: CudaSlice<'_, T>,
    partial: CudaSlice<'_, f64>,
    n_rows: usize,
) -> Result<(), CudaError> {
    let words = [("REAL", Word::Name(T::TYPE.name()))];
    let launch = Launch::new(gpu, gpu.kernel(&unit_of_mean(&words), "mean_of_parts")?);
    let launch = launch.reads(partial).size(partial.len());
    let launch = launch.f64(n_rows.max(1) as f64).writes(out);
    // SAFETY: there are as many sums, and `out` has one element.
    unsafe { launch.launch(Blocks { x: 1, y: 1, threads: 32 }) }
}

fn kernel<'a>(
    gpu: &'a Gpu,
    words: &[(&'static str, Word)],
    name: &'static str,
) -> Result<Launch<'a>, CudaError> {
    Ok(Launch::new(gpu, gpu.kernel(&unit(words), name)?))
}

fn unit<'a>(words: &'a [(&'static str, Word)]) -> Unit<'a> {
    let text = text_of!("kernels/cuda/labels.cuh", "kernels/cuda/loss.cuh", "kernels/cuda/loss.cu");
    Unit { file: "kernels/cuda/loss.cu", text, words }
}

fn unit_of_mean<'a>(words: &'a [(&'static str, Word)]) -> Unit<'a> {
    Unit { file: "kernels/cuda/mean.cu", text: include_str!("mean.cu"), words }
}

/// The unit of a loss.
pub(super) fn with_unit(real: &'static str, of: LossFunction, visit: &mut dyn FnMut(&Unit<'_>)) {
    visit(&unit(&of.words(real, ElementType::U32.name())));
}

/// Visits the units that all losses share.
pub(super) fn for_each_unit(visit: &mut dyn FnMut(&Unit<'_>)) {
    visit(&unit_of_mean(&[("REAL", Word::Name(ElementType::F32.name()))]));
}

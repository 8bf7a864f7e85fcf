//! A batch of a generalised linear model on a GPU, up to the derivatives of its loss by the scores:
//! one kernel, whose scores need not be written.
//!
//! Sums of products and losses are those of the kernels that compute them one by one, from the same
//! texts.

use super::KeptRows;
use super::kept_rows::SAMPLES;
use crate::model::on_gpu::rows::row_results::{RowResults, Run};
use nnz_arrays::device::cuda::{Cuda, CudaBuffer, CudaSlice, Gpu, Unit, Word};
use nnz_arrays::formats::cuda::ArrayArguments;
use nnz_arrays::formats::{CsrView, DenseView};
use nnz_arrays::kernels::cuda::loss;
use nnz_arrays::kernels::cuda::loss::{mean_of_parts, words_of_labels};
use nnz_arrays::kernels::cuda::{CudaContext, GpuFloat, Labels, LossFunction, Numbers};
use nnz_arrays::kernels::dot::cpu::by_rows;
use nnz_arrays::kernels::dot::cuda::{Groups, words as words_of_products};
use nnz_arrays::kernels::{dot, pairwise_interaction, softmax_cross_entropy};
use nnz_device::cuda::text_of_files;
use nnz_device::cuda::{Destination, Launch};
use sparse_core::element::Factor;
use sparse_core::ir::Attributes;
use sparse_core::operators::{Kind, Operator};
use sparse_core::storage::ElementType;
use std::sync::LazyLock;

/// How many scores a row has at most.
pub(crate) const MOST_SCORES: usize = Groups::MOST_COLUMNS;

/// A loss that a group of lanes computes of a row.
#[derive(Clone, Copy, Debug)]
pub(crate) enum RowLoss {
    /// A sum over the scores.
    Elements(LossFunction),
    /// The cross entropy of their softmax.
    CrossEntropy,
}

impl RowLoss {
    /// That of a loss of the operator table.
    pub(crate) fn new(operator: &'static Operator, attributes: &Attributes) -> Option<Self> {
        match operator.kind {
            Kind::Loss { element: Some(_), .. } => {
                LossFunction::new(operator, attributes).map(RowLoss::Elements)
            }
            Kind::Loss { element: None, .. } => Some(RowLoss::CrossEntropy),
            _ => None,
        }
    }

    /// Its attributes.
    pub(crate) fn numbers(&self) -> Numbers {
        match self {
            RowLoss::Elements(function) => function.numbers(),
            RowLoss::CrossEntropy => Numbers::default(),
        }
    }
}

/// What a batch is computed from.
#[derive(Clone, Copy)]
pub(crate) struct LinearRows<'a, T: GpuFloat, V: Factor<T>> {
    /// The rows.
    pub(crate) x: CsrView<'a, V, Cuda>,
    /// What they are multiplied with.
    pub(crate) weights: DenseView<'a, T, Cuda>,
    /// The factors of their interactions, of a model with one score.
    pub(crate) factors: Option<DenseView<'a, T, Cuda>>,
    /// One number, or one for each score of a row.
    pub(crate) bias: Option<DenseView<'a, T, Cuda>>,
    /// A label for each score, or a class for each row.
    pub(crate) labels: Labels<'a, T>,
    /// A weight for each row.
    pub(crate) row_weights: Option<DenseView<'a, T, Cuda>>,
    /// Derivatives of samples that the rows' are corrected by.
    pub(crate) kept: KeptRows<'a, T>,
}

/// What is computed of a batch.
pub(crate) struct LinearResults<'o, T: GpuFloat> {
    /// The scores, the loss and its derivatives.
    pub(crate) rows: RowResults<'o, T>,
    /// Of the interactions, for each row, the sums over the entries of each column of the factors:
    /// what their gradient reads, where it is not made.
    pub(crate) factor_sums: Option<&'o mut CudaBuffer<f64>>,
}

impl<T: GpuFloat> Destination for LinearResults<'_, T> {
    fn store_nothing(&mut self, gpu: &Gpu) {
        self.rows.store_nothing(gpu);
        if let Some(sums) = &mut self.factor_sums {
            sums.store_nothing(gpu);
        }
    }
}

/// Computes a batch, whose rows have at most [`MOST_SCORES`] scores. O(nnz · scores of a row).
pub(crate) fn compute<T: GpuFloat, V: Factor<T>>(
    mut out: LinearResults<'_, T>,
    of: &LinearRows<'_, T, V>,
    loss: RowLoss,
    context: &mut CudaContext,
) {
    let gpu = &context.gpu().clone();
    let partial = &mut context.partial;
    gpu.attempt(&mut out, |out| {
        let (n_rows, k) = (of.x.n_rows(), of.weights.shape().row_size());
        let shape = by_rows(n_rows, k, of.weights.shape());
        let [scores, mean, gradient] = out.rows.reset_on(gpu, shape)?;
        let width = of.factors.map_or(0, |factors| factors.shape().row_size());
        let factor_sums = match &mut out.factor_sums {
            Some(sums) => {
                sums.resize_for_overwrite(gpu, n_rows * width, "sums over the rows of a batch")?;
                sums.as_slice()
            }
            None => CudaSlice::default(),
        };
        let groups = match k {
            _ if of.factors.is_some() => Groups { steps: 1, ..Groups::for_columns(width) },
            1 => Groups::for_entries(of.x.values().len(), n_rows),
            _ => Groups::for_columns(k),
        };
        let run = Run::new(n_rows, groups.lanes);
        run.reset_on(gpu, partial)?;
        let id = of.x.columns().type_name();
        let factors = of.factors.map_or_else(CudaSlice::default, |factors| factors.values());
        let kind = Scores::of(k, of.factors.is_some());
        let types = [of.labels.class(), of.labels.id()];
        let words = KernelWords::new::<T, V>(id, groups, kind, types, loss);
        let launch = Launch::new(gpu, gpu.kernel(&words.unit(), "linear_rows")?).csr(of.x);
        let launch = launch.reads(of.weights.values()).size(of.weights.shape().n_rows());
        let launch = launch.reads(factors).size(width).writes(factor_sums);
        let bias = of.bias.map_or_else(CudaSlice::default, |bias| bias.values());
        let launch = launch.reads(bias).size(usize::from(bias.len() > 1));
        let launch = of.labels.read_by(of.labels.classes_read_by(launch));
        let launch = launch.reads(of.row_weights.map_or_else(CudaSlice::default, |of| of.values()));
        let launch = loss.numbers().read_by(launch).writes(partial.as_slice());
        let launch = launch.writes(scores).writes(gradient);
        let launch = of.kept.given_to(launch);
        let launch = launch.size(n_rows).size(k).size(run.rows).f64(1.0 / n_rows.max(1) as f64);
        // SAFETY: columns are below the rows of the weights, as many as those of the factors, whose
        // sums have room for each row; there are a bias and a result for each score, a label for
        // each score or row, a weight for each row, and a sum for each part; where derivatives are
        // kept, there is a sample for each row, with one for each score.
        unsafe { launch.launch(run.blocks()) }?;
        mean_of_parts(gpu, mean, partial.as_slice(), n_rows)
    });
}

/// What scores a row has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Scores {
    Single,
    WithFactors,
    Several,
}

impl Scores {
    fn of(k: usize, factors: bool) -> Self {
        match k {
            1 if factors => Scores::WithFactors,
            1 => Scores::Single,
            _ => Scores::Several,
        }
    }
}

/// The words of the kernel; the last two are about losses that are formulas.
struct KernelWords {
    loss: RowLoss,
    words: [(&'static str, Word); 11],
}

impl KernelWords {
    fn new<T: GpuFloat, V: Factor<T>>(
        id: &'static str,
        groups: Groups,
        scores: Scores,
        [class, label_id]: [&'static str; 2],
        loss: RowLoss,
    ) -> Self {
        let real = T::TYPE.name();
        let [real, value, id, lanes, steps] = words_of_products(real, V::TYPE.name(), id, groups);
        let [_, class, label_id] = words_of_labels(T::TYPE.name(), class, label_id);
        let [of_loss, of_slope] = match &loss {
            RowLoss::Elements(function) => function.formulas(),
            RowLoss::CrossEntropy => ["LOSS", "SLOPE"].map(|name| (name, Word::Number(0))),
        };
        let single = ("SINGLE", Word::Number(u64::from(scores != Scores::Several)));
        let factors = ("FACTORS", Word::Number(u64::from(scores == Scores::WithFactors)));
        let words =
            [real, value, id, lanes, steps, class, label_id, single, factors, of_loss, of_slope];
        KernelWords { loss, words }
    }

    fn unit(&self) -> Unit<'_> {
        let (text, words) = match self.loss {
            RowLoss::Elements(_) => {
                let text = {
                    static TEXT: LazyLock<String> = LazyLock::new(|| {
                        text_of_files(&[
                            dot::cuda::HEADER,
                            pairwise_interaction::cuda::HEADER,
                            loss::LABELS,
                            loss::LOSS,
                            SAMPLES,
                            ("model/on_gpu/rows/linear_rows.cu", include_str!("linear_rows.cu")),
                        ])
                    });
                    TEXT.as_str()
                };
                (text, &self.words[..])
            }
            RowLoss::CrossEntropy => {
                let text = {
                    static TEXT: LazyLock<String> = LazyLock::new(|| {
                        text_of_files(&[
                            dot::cuda::HEADER,
                            pairwise_interaction::cuda::HEADER,
                            loss::LABELS,
                            softmax_cross_entropy::cuda::HEADER,
                            SAMPLES,
                            ("model/on_gpu/rows/linear_rows.cu", include_str!("linear_rows.cu")),
                        ])
                    });
                    TEXT.as_str()
                };
                (text, &self.words[..9])
            }
        };
        Unit { file: "model/on_gpu/rows/linear_rows.cu", text, words }
    }
}

/// Visits the units of a loss: of one score and of several.
pub(crate) fn with_units(loss: RowLoss, visit: &mut dyn FnMut(&Unit<'_>)) {
    let types = [ElementType::U32.name(); 2];
    visit(
        &KernelWords::new::<f32, f32>(
            "u32",
            Groups::for_entries(32, 1),
            Scores::Single,
            types,
            loss,
        )
        .unit(),
    );
    visit(
        &KernelWords::new::<f32, f32>("u32", Groups::for_columns(7), Scores::Several, types, loss)
            .unit(),
    );
}

/// Visits those of the loss that is no formula, and of other types.
pub(crate) fn for_each_unit(visit: &mut dyn FnMut(&Unit<'_>)) {
    use sparse_core::element::Unit as Ones;
    let loss = RowLoss::CrossEntropy;
    with_units(loss, visit);
    let widest = Groups::for_columns(MOST_SCORES);
    visit(
        &KernelWords::new::<f64, Ones>("u64", widest, Scores::Several, ["i64", "u64"], loss).unit(),
    );
    let types = [ElementType::U32.name(); 2];
    let groups = Groups::for_columns(16);
    visit(&KernelWords::new::<f32, f32>("u32", groups, Scores::WithFactors, types, loss).unit());
}

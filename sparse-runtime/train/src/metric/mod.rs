//! Metrics: measures of outputs against labels, exact over a whole data set.
//!
//! A [`Metric`] such as `Mse` starts an [`Accumulator`], which gets the batches one after the
//! other, in any cut, and can be merged with accumulators of other batches. Sums are exact and
//! rounded once, so neither the cut nor the order changes a bit of the value (only [`Pearson`] and
//! [`BatchMean`] agree up to rounding). Samples may have weights.
//!
//! ```
//! use nnz::formats::Dense;
//! use nnz::metric::{Accuracy, LabelsView, Metric, Mse};
//!
//! let outputs = Dense::from_rows(&[[0.9f32], [0.2], [0.7]]);
//! let labels = Dense::from_rows(&[[1.0f32], [-1.0], [-1.0]]);
//! let labels = LabelsView::Real(labels.view());
//! assert_eq!(Accuracy.evaluate(outputs.view(), labels)?, 2.0 / 3.0);
//!
//! let mut mse = Mse.start();
//! assert!(mse.value().is_err()); // nothing seen yet
//! # Ok::<(), nnz::Error>(())
//! ```
//!
//! Labels of a binary metric are positive from 1/2 on, as predicted probabilities are: -1/1, 0/1
//! and labels that are probabilities are all valid. Class ids are compared as ids, with the columns
//! of outputs `[n, k]`, also for k = 1.
//!
//! **Metrics see scores.** In f32 a sigmoid is 1 from a score of 17.5 on: the probabilities have
//! lost the order of the scores and the size of errors. Where the first output of a model is a link
//! of scores ([`Model::linked_scores`](nnz_step::model::Model::linked_scores): a sigmoid, softmax
//! or exponential), metrics of order rank by the scores, and log losses are computed as the loss
//! is, without clipping. All other metrics see the link of the scores in `f64`.
//!
//! **A metric may have no value**, as the AUC of data without a negative sample.
//! [`Accumulator::value`] says [why](NoValue), and so do the errors of
//! [`score`](crate::training::score()) and of a run with that metric.

mod accuracy;
mod batch_mean;
mod calibration;
mod confusion;
mod error;
mod exact_sum;
mod link;
mod log_loss;
mod loss;
mod mean;
mod mean_errors;
mod pearson;
mod perplexity;
mod ranked;
mod ranked_lists;
mod renamed;
mod top_k_accuracy;

pub use accuracy::Accuracy;
pub use batch_mean::BatchMean;
pub use calibration::{Calibration, CalibrationBin, SeenCalibration};
pub use confusion::{F1, Matthews, Precision, Recall};
pub use error::{MetricError, NoValue};
pub(crate) use exact_sum::ExactSum;
pub use log_loss::LogLoss;
pub use loss::Loss;
pub use mean_errors::{Mae, Mse, Rmse};
pub use pearson::Pearson;
pub use perplexity::Perplexity;
pub use ranked::{Auc, PrAuc};
pub use ranked_lists::RankedLists;
pub use renamed::Named;
pub use top_k_accuracy::TopKAccuracy;

use nnz_arrays::formats::{DenseView, IdsView};
use nnz_arrays::with_ids;
use nnz_step::model::{Link, Scores};
use sparse_core::element::Float;
use std::any::Any;
use std::fmt::Debug;

/// A measure of outputs against labels.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a metric",
    note = "`nnz::metric` has them, such as `Mse` and `Auc`; for your own, implement `Metric` and \
            its `Accumulator`"
)]
pub trait Metric: Debug + Send + Sync + 'static {
    /// The name in reports: `mse`, `accuracy`.
    fn name(&self) -> &'static str;

    /// An empty accumulator.
    fn start(&self) -> Box<dyn Accumulator>;

    /// The value for complete outputs, of either element type.
    ///
    /// # Errors
    ///
    /// As [`Accumulator::update`]; [`MetricError::NoValue`].
    fn evaluate<T: Float>(
        &self,
        outputs: DenseView<'_, T>,
        labels: LabelsView<'_, T>,
    ) -> crate::Result<f64>
    where
        Self: Sized,
    {
        let mut seen = [self.start()];
        Widened::default().update(Predicted::Outputs(outputs), labels, None, &mut seen)?;
        let value = seen[0].value();
        Ok(value.map_err(|why| MetricError::NoValue { metric: self.name(), why })?)
    }
}

/// The accumulated state of a metric.
#[diagnostic::on_unimplemented(
    message = "`{Self}` does not accumulate a metric",
    note = "implement `Accumulator` for it: what it takes from a batch, how two are merged, and \
            the value so far"
)]
pub trait Accumulator: Any + Send {
    /// Adds one batch: `outputs` of shape `[n]` or `[n, k]`, one row for each sample of the labels,
    /// without padding.
    ///
    /// # Errors
    ///
    /// Shapes that do not fit, or an output that the metric does not accept; nothing is added then.
    fn update(
        &mut self,
        outputs: DenseView<'_, f64>,
        labels: LabelsView<'_, f64>,
    ) -> Result<(), MetricError> {
        self.update_weighted(outputs, labels, RowWeights::ONES)
    }

    /// [`update`](Self::update) with a weight for each sample: a sample of weight 2 counts as two.
    ///
    /// # Errors
    ///
    /// As [`update`](Self::update).
    fn update_weighted(
        &mut self,
        outputs: DenseView<'_, f64>,
        labels: LabelsView<'_, f64>,
        weights: RowWeights<'_>,
    ) -> Result<(), MetricError>;

    /// [`update_weighted`](Self::update_weighted) by the scores of which outputs are a link, for a
    /// metric that is more exact so. Returns false, and adds nothing, for a metric of the outputs:
    /// it then gets the outputs, computed in `f64`.
    ///
    /// # Errors
    ///
    /// As [`update`](Self::update).
    fn update_scores(
        &mut self,
        scores: Scores<'_, f64>,
        labels: LabelsView<'_, f64>,
        weights: RowWeights<'_>,
    ) -> Result<bool, MetricError> {
        let _ = (scores, labels, weights);
        Ok(false)
    }

    /// The value over everything so far.
    ///
    /// # Errors
    ///
    /// Why there is none, as without samples.
    fn value(&self) -> Result<f64, NoValue>;

    /// Adds the state of another accumulator of the same metric.
    ///
    /// # Errors
    ///
    /// [`MetricError::OtherMetric`].
    fn merge(&mut self, other: &dyn Accumulator) -> Result<(), MetricError>;

    /// Clears the state.
    fn reset(&mut self);

    /// The state as numbers, for a checkpoint within an epoch.
    fn numbers(&self) -> Vec<f64>;

    /// Restores a state from the [`numbers`](Self::numbers) of an accumulator of the same metric.
    ///
    /// # Errors
    ///
    /// [`MetricError::OtherMetric`] for numbers that are no state of such an accumulator.
    fn set_numbers(&mut self, numbers: &[f64]) -> Result<(), MetricError>;
}

/// The weights of the samples of a batch: at least 0 and finite.
#[derive(Clone, Copy, Debug)]
pub struct RowWeights<'a>(Option<&'a [f64]>);

impl<'a> RowWeights<'a> {
    /// Every sample counts once.
    pub const ONES: RowWeights<'static> = RowWeights(None);

    /// A weight for each sample.
    ///
    /// # Errors
    ///
    /// [`MetricError::Weight`] for the first weight that is negative, infinite or NaN; a number of
    /// weights that differs from that of samples.
    pub fn new(weights: &'a [f64], n_rows: usize) -> Result<Self, MetricError> {
        if weights.len() != n_rows {
            return Err(MetricError::WeightCount { weights: weights.len(), rows: n_rows });
        }
        let is_weight = |weight: f64| weight >= 0.0 && weight.is_finite();
        match weights.iter().position(|weight| !is_weight(*weight)) {
            Some(row) => Err(MetricError::Weight { row, value: weights[row] }),
            None => Ok(RowWeights(Some(weights))),
        }
    }

    /// The weight of a sample; 1 beyond the last.
    #[inline]
    pub fn of(&self, row: usize) -> f64 {
        self.0.and_then(|weights| weights.get(row)).copied().unwrap_or(1.0)
    }
}

/// The labels of a batch.
#[derive(Clone, Copy, Debug)]
pub enum LabelsView<'a, T: Float> {
    /// Numbers: `[n]` or `[n, k]`.
    Real(DenseView<'a, T>),
    /// Class ids of any type: `[n]` or `[n, 1]`.
    Classes(IdsView<'a>),
}

impl<T: Float> LabelsView<'_, T> {
    /// The number of samples.
    pub fn n_rows(&self) -> usize {
        match self {
            LabelsView::Real(labels) => labels.shape().n_rows(),
            LabelsView::Classes(labels) => labels.shape().n_rows(),
        }
    }

    /// The number of elements of a label.
    pub fn row_size(&self) -> usize {
        match self {
            LabelsView::Real(labels) => labels.shape().row_size(),
            LabelsView::Classes(labels) => labels.shape().row_size(),
        }
    }

    /// Element `i` as a number; `i` below `n_rows() * row_size()`.
    fn number(&self, i: usize) -> f64 {
        match self {
            LabelsView::Real(labels) => labels.values()[i].as_f64(),
            LabelsView::Classes(labels) => labels.number(i) as f64,
        }
    }
}

/// The predictions of a model for a batch.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Predicted<'a, T: Float> {
    /// Its outputs.
    Outputs(DenseView<'a, T>),
    /// The scores of which its outputs are a link.
    Scores(Scores<'a, T>),
}

/// Buffers for outputs and labels in `f64`, reused from batch to batch.
#[derive(Debug, Default)]
pub(crate) struct Widened {
    /// Outputs or scores.
    outputs: Vec<f64>,
    /// The link of the scores.
    linked: Vec<f64>,
    labels: Vec<f64>,
    weights: Vec<f64>,
}

impl Widened {
    /// Passes a batch of any element type to accumulators.
    pub(crate) fn update<T: Float>(
        &mut self,
        predicted: Predicted<'_, T>,
        labels: LabelsView<'_, T>,
        weights: Option<DenseView<'_, T>>,
        accumulators: &mut [Box<dyn Accumulator>],
    ) -> crate::Result<()> {
        let (outputs, link) = match predicted {
            Predicted::Outputs(outputs) => (outputs, None),
            Predicted::Scores(Scores { link, values }) => (values, Some(link)),
        };
        let widen = |to: &mut Vec<f64>, from: &[T]| {
            to.clear();
            to.extend(from.iter().map(|value| value.as_f64()));
        };
        widen(&mut self.outputs, outputs.values());
        let labels = match labels {
            LabelsView::Real(labels) => {
                widen(&mut self.labels, labels.values());
                LabelsView::Real(DenseView::new(*labels.shape(), &self.labels)?)
            }
            // Made anew with the shorter lifetime of the widened values.
            LabelsView::Classes(labels) => LabelsView::Classes(with_ids!(IdsView, labels, |ids| {
                DenseView::new(*ids.shape(), ids.values())?.into()
            })),
        };
        let outputs = DenseView::new(*outputs.shape(), &self.outputs)?;
        let weights = match weights {
            Some(weights) => {
                widen(&mut self.weights, weights.values());
                RowWeights::new(&self.weights, outputs.shape().n_rows())?
            }
            None => RowWeights::ONES,
        };
        let Some(link) = link else {
            for accumulator in accumulators {
                accumulator.update_weighted(outputs, labels, weights)?;
            }
            return Ok(());
        };
        let scores = Scores { link, values: outputs };
        self.linked.clear();
        for accumulator in accumulators {
            if accumulator.update_scores(scores, labels, weights)? {
                continue;
            }
            // For the first that asks.
            if self.linked.is_empty() {
                self.linked.extend_from_slice(outputs.values());
                link::apply(link, &mut self.linked, outputs.shape().row_size());
            }
            let outputs = DenseView::new(*outputs.shape(), &self.linked)?;
            accumulator.update_weighted(outputs, labels, weights)?;
        }
        Ok(())
    }
}

/// The other accumulator as one of this type.
fn same<'a, A: Accumulator>(
    name: &'static str,
    other: &'a dyn Accumulator,
) -> Result<&'a A, MetricError> {
    let other: &dyn Any = other;
    other.downcast_ref().ok_or(MetricError::OtherMetric { metric: name })
}

/// Refuses outputs and labels with different numbers of samples.
fn same_rows(
    metric: &'static str,
    outputs: &DenseView<'_, f64>,
    labels: &LabelsView<'_, f64>,
) -> Result<usize, MetricError> {
    let n_rows = outputs.shape().n_rows();
    if n_rows == labels.n_rows() {
        return Ok(n_rows);
    }
    Err(MetricError::RowCount { metric, outputs: n_rows, labels: labels.n_rows() })
}

/// Refuses NaN among scores: a prediction by it would depend on the comparison.
fn no_nan(metric: &'static str, outputs: &DenseView<'_, f64>) -> Result<(), MetricError> {
    match outputs.values().iter().position(|score| score.is_nan()) {
        Some(at) => {
            Err(MetricError::NotANumber { metric, row: at / outputs.shape().row_size().max(1) })
        }
        None => Ok(()),
    }
}

/// Refuses labels of several columns.
fn one_label_a_row(metric: &'static str, labels: &LabelsView<'_, f64>) -> Result<(), MetricError> {
    if labels.row_size() == 1 || labels.n_rows() == 0 {
        return Ok(());
    }
    Err(MetricError::LabelColumns { metric, columns: labels.row_size() })
}

/// An output beside its label.
struct Element {
    row: usize,
    output: f64,
    label: f64,
}

/// The outputs beside their labels, where every element is compared.
fn elements<'o, 'l>(
    metric: &'static str,
    outputs: &DenseView<'o, f64>,
    labels: &LabelsView<'l, f64>,
) -> Result<impl Iterator<Item = Element> + use<'o, 'l>, MetricError> {
    let n_rows = same_rows(metric, outputs, labels)?;
    if n_rows > 0 && outputs.shape().row_size() != labels.row_size() {
        return Err(MetricError::Elements {
            metric,
            outputs: *outputs.shape(),
            labels: labels.row_size(),
        });
    }
    let labels = *labels;
    let row_size = outputs.shape().row_size().max(1);
    let outputs = outputs.values().iter().enumerate();
    Ok(outputs.map(move |(i, &output)| Element {
        row: i / row_size,
        output,
        label: labels.number(i),
    }))
}

/// Refuses anything but class ids with a column of scores each.
fn class_labels<'a>(
    metric: &'static str,
    outputs: &DenseView<'_, f64>,
    labels: &LabelsView<'a, f64>,
) -> Result<IdsView<'a>, MetricError> {
    one_label_a_row(metric, labels)?;
    let n_classes = outputs.shape().row_size();
    if labels.n_rows() == 0 {
        return Ok(IdsView::default());
    }
    if outputs.shape().rank() < 2 || n_classes == 0 {
        return Err(MetricError::ScoresNeeded { metric, outputs: *outputs.shape() });
    }
    let LabelsView::Classes(classes) = labels else {
        return Err(MetricError::LabelsNotClasses { metric, classes: n_classes });
    };
    match classes.first_beyond(n_classes) {
        None => Ok(*classes),
        Some((row, class)) => {
            Err(MetricError::ClassOutOfRange { metric, row, class, classes: n_classes })
        }
    }
}

/// Whether a label or a probability stands for the positive class.
fn is_positive(probability: f64) -> bool {
    probability >= 0.5
}

/// The class that a score of the positive class stands for, by its probability. `None` where that
/// is not a matter of the score's sign.
fn score_is_positive(link: Link) -> Option<fn(f64) -> bool> {
    match link {
        Link::Sigmoid => Some(|score| score >= 0.0),
        Link::Softmax | Link::Exp => None,
    }
}

/// Whether outputs are one probability a row, that of the positive class. Class ids go with scores
/// `[n, k]` of k classes, be it one; with outputs `[n]` they are 0 and 1.
fn is_one_probability(outputs: &DenseView<'_, f64>, labels: &LabelsView<'_, f64>) -> bool {
    let is_matrix = outputs.shape().rank() > 1;
    outputs.shape().row_size() <= 1 && !(is_matrix && matches!(labels, LabelsView::Classes(_)))
}

/// The position of the largest score, the first of equal ones.
fn largest(scores: &[f64]) -> usize {
    let mut best = 0;
    for (class, score) in scores.iter().enumerate() {
        if *score > scores[best] {
            best = class;
        }
    }
    best
}

#[cfg(test)]
mod tests;

//! Metrics over the batches that a model sees.

use super::TrainError;
use crate::error::Result;
use crate::metric::{Accumulator, LabelsView, Metric, NoValue, Predicted, Widened};
use nnz_arrays::formats::{Dense, DenseView, Ids, IdsView};
use nnz_arrays::in_library;
use nnz_arrays::with_ids;
use nnz_data::{Batch, WEIGHT};
use nnz_step::model::{AnyModel, InputInfo, InputRole, ModelFacts, Scores};
use sparse_core::element::Float;
use std::borrow::Cow;

/// Metrics of the first output of a model against its first label that is not a weight, without
/// padding.
pub(super) struct Measure {
    names: Vec<&'static str>,
    accumulators: Vec<Box<dyn Accumulator>>,
    /// The position of the label among the model's inputs, and whether it holds numbers rather than
    /// ids.
    label: (usize, bool),
    /// The position of the label that weighs samples, if the model declares one.
    weight: Option<usize>,
    widened: Widened,
}

/// Labels and weights of a batch, without its outputs and the rows of padding.
pub(super) struct BatchLabels<T: Float> {
    /// Including those of padding.
    n_rows: usize,
    labels: OwnedLabels<T>,
    weights: Option<Dense<T>>,
}

enum OwnedLabels<T: Float> {
    Real(Dense<T>),
    Classes(Ids),
}

impl Measure {
    /// Metrics for a model; an empty list fits any model.
    pub(super) fn new(model: &ModelFacts, metrics: &[Box<dyn Metric>]) -> Result<Self> {
        let label = label_of(model.inputs);
        if let (None, Some(metric)) = (label, metrics.first()) {
            return Err(TrainError::NoLabel { model: model.name, metric: metric.name() }.into());
        }
        Ok(Measure {
            names: metrics.iter().map(|metric| metric.name()).collect(),
            accumulators: metrics.iter().map(|metric| metric.start()).collect(),
            ..Measure::for_label(model, label)
        })
    }

    /// Metrics that have been started, for a model with a label.
    pub(super) fn of_accumulators(
        model: &ModelFacts,
        accumulators: Vec<Box<dyn Accumulator>>,
    ) -> Result<Self> {
        let label = label_of(model.inputs);
        if label.is_none() && !accumulators.is_empty() {
            return Err(TrainError::NoLabel { model: model.name, metric: "of accumulators" }.into());
        }
        Ok(Measure { accumulators, ..Measure::for_label(model, label) })
    }

    /// The accumulators, with what they have seen.
    pub(super) fn into_accumulators(self) -> Vec<Box<dyn Accumulator>> {
        self.accumulators
    }

    /// No metrics yet.
    fn for_label(model: &ModelFacts, label: Option<(usize, bool)>) -> Self {
        Measure {
            names: Vec::new(),
            accumulators: Vec::new(),
            label: label.unwrap_or_default(),
            weight: model.inputs.iter().position(is_weight),
            widened: Widened::default(),
        }
    }

    /// True without metrics.
    #[inline]
    pub(super) fn is_empty(&self) -> bool {
        self.accumulators.is_empty()
    }

    /// Adds a batch whose outputs the model has just computed.
    #[inline]
    pub(super) fn update<T: Float>(
        &mut self,
        model: &dyn AnyModel<T>,
        batch: &dyn Batch<'_, T>,
    ) -> Result<()> {
        if self.is_empty() { Ok(()) } else { self.add(model, batch) }
    }

    fn add<T: Float>(&mut self, model: &dyn AnyModel<T>, batch: &dyn Batch<'_, T>) -> Result<()> {
        let measure = self;
        in_library!(<T> Measure::add_batch::<T> => (
            measure: &mut Measure,
            model: &dyn AnyModel<T>,
            batch: &dyn Batch<'_, T>,
        ) -> Result<()>)
    }

    fn add_batch<T: Float>(
        &mut self,
        model: &dyn AnyModel<T>,
        batch: &dyn Batch<'_, T>,
    ) -> Result<()> {
        let n_rows = batch.n_rows() - batch.n_padding().min(batch.n_rows());
        let predicted = predicted(model, batch.n_rows(), n_rows)?;
        let labels = self.labels(batch, n_rows)?;
        let weights = self.weights(batch, n_rows)?;
        self.widened.update(predicted, labels, weights, &mut self.accumulators)
    }

    /// Labels and weights of a batch, to be kept until its outputs are there. `None` without
    /// metrics.
    pub(super) fn copy_labels<T: Float>(
        &self,
        batch: &dyn Batch<'_, T>,
    ) -> Result<Option<BatchLabels<T>>> {
        if self.is_empty() {
            return Ok(None);
        }
        let n_rows = batch.n_rows() - batch.n_padding().min(batch.n_rows());
        let labels = match self.labels(batch, n_rows)? {
            LabelsView::Real(labels) => OwnedLabels::Real(labels.to_owned()),
            LabelsView::Classes(labels) => {
                OwnedLabels::Classes(with_ids!(IdsView, labels, |ids| ids.to_owned().into()))
            }
        };
        let weights = self.weights(batch, n_rows)?.map(|weights| weights.to_owned());
        Ok(Some(BatchLabels { n_rows: batch.n_rows(), labels, weights }))
    }

    /// Adds a batch by its labels; the model has its outputs.
    pub(super) fn update_from_labels<T: Float>(
        &mut self,
        model: &dyn AnyModel<T>,
        batch: &BatchLabels<T>,
    ) -> Result<()> {
        let (labels, n_rows) = match &batch.labels {
            OwnedLabels::Real(labels) => (LabelsView::Real(labels.view()), labels.shape().n_rows()),
            OwnedLabels::Classes(ids) => (LabelsView::Classes(ids.view()), ids.shape().n_rows()),
        };
        let weights = batch.weights.as_ref().map(|weights| weights.view());
        let predicted = predicted(model, batch.n_rows, n_rows)?;
        self.widened.update(predicted, labels, weights, &mut self.accumulators)
    }

    fn labels<'b, T: Float>(
        &self,
        batch: &dyn Batch<'b, T>,
        n_rows: usize,
    ) -> Result<LabelsView<'b, T>> {
        let (position, is_real) = self.label;
        Ok(if is_real {
            LabelsView::Real(batch.dense(position)?.rows(0..n_rows)?)
        } else {
            LabelsView::Classes(batch.ids(position)?.rows(0..n_rows)?)
        })
    }

    fn weights<'b, T: Float>(
        &self,
        batch: &dyn Batch<'b, T>,
        n_rows: usize,
    ) -> Result<Option<DenseView<'b, T>>> {
        match self.weight {
            Some(position) => Ok(Some(batch.dense(position)?.rows(0..n_rows)?)),
            None => Ok(None),
        }
    }

    /// The state of each metric.
    pub(super) fn states(&self) -> Vec<Vec<f64>> {
        self.accumulators.iter().map(|accumulator| accumulator.numbers()).collect()
    }

    /// Continues from the [`states`](Self::states) of the same metrics; from the start without any.
    pub(super) fn restore(&mut self, states: &[Vec<f64>]) -> Result<()> {
        if states.is_empty() {
            return Ok(());
        }
        if states.len() != self.accumulators.len() {
            return Err(TrainError::OtherMetrics {
                expected: states.len(),
                found: self.accumulators.len(),
            }
            .into());
        }
        for (accumulator, numbers) in self.accumulators.iter_mut().zip(states) {
            accumulator.set_numbers(numbers)?;
        }
        Ok(())
    }

    /// Names and values, for `data`, and a fresh start.
    ///
    /// # Errors
    ///
    /// [`TrainError::NoValue`] for the first metric without a value.
    pub(super) fn take(&mut self, data: &'static str) -> Result<Vec<Measured>, TrainError> {
        let values = self.take_values().map(|(metric, value)| match value {
            Ok(value) => Ok((Cow::Borrowed(metric), value)),
            Err(why) => Err(TrainError::NoValue { metric, data, why }),
        });
        // All of them start afresh.
        values.collect::<Vec<_>>().into_iter().collect()
    }

    /// Names and values, NaN where there is none, and a fresh start.
    pub(super) fn take_or_nan(&mut self) -> Vec<Measured> {
        let values = self.take_values();
        values.map(|(name, value)| (Cow::Borrowed(name), value.unwrap_or(f64::NAN))).collect()
    }

    fn take_values(&mut self) -> impl Iterator<Item = (&'static str, Result<f64, NoValue>)> {
        self.names.iter().copied().zip(&mut self.accumulators).map(|(name, accumulator)| {
            let value = accumulator.value();
            accumulator.reset();
            (name, value)
        })
    }
}

fn is_label(input: &InputInfo) -> bool {
    input.role == InputRole::Label
}

/// Whether it weighs samples.
fn is_weight(input: &InputInfo) -> bool {
    is_label(input) && input.name == WEIGHT && input.element.is_float()
}

/// The position of the first label that is not a weight, and whether it holds numbers.
fn label_of(inputs: &[InputInfo]) -> Option<(usize, bool)> {
    let position = inputs.iter().position(|input| is_label(input) && !is_weight(input))?;
    Some((position, inputs[position].element.is_float()))
}

/// A metric by its name, and its value.
pub(super) type Measured = (Cow<'static, str>, f64);

/// The input of metrics for the first `n_real` samples of a batch of `n_rows`: the first output of
/// a model that has just computed it, or the scores of which it is a link.
fn predicted<T: Float>(
    model: &dyn AnyModel<T>,
    n_rows: usize,
    n_real: usize,
) -> Result<Predicted<'_, T>> {
    let outputs = first_output(model, n_rows, "metrics")?;
    Ok(match model.linked_scores() {
        Some(Scores { link, values }) if values.shape() == outputs.shape() => {
            Predicted::Scores(Scores { link, values: values.rows(0..n_real)? })
        }
        _ => Predicted::Outputs(outputs.rows(0..n_real)?),
    })
}

/// The first output of a model that has just computed its outputs for a batch, if it is dense and
/// has a row for each sample of the batch.
pub(super) fn first_output<'m, T: Float>(
    model: &'m dyn AnyModel<T>,
    n_rows: usize,
    purpose: &'static str,
) -> Result<DenseView<'m, T>> {
    let problem = match model.dense_output(0) {
        Some(output) if output.shape().rank() > 0 && output.shape().n_rows() == n_rows => {
            return Ok(output);
        }
        Some(output) => format!("has shape {} for {n_rows} rows", output.shape()),
        None => match model.facts().outputs.first() {
            Some(output) if !output.element.is_float() => format!("`{}` holds ids", output.name),
            Some(output) => format!("`{}` is {}", output.name, output.storage),
            None => "there is none".to_owned(),
        },
    };
    Err(TrainError::Output { model: model.facts().name, purpose, problem }.into())
}

//! Metrics over the batches that a model sees.

use super::TrainError;
use crate::data::{Batch, WEIGHT};
use crate::error::Result;
use crate::metric::{Accumulator, LabelsView, Metric, Widened};
use crate::model::{InputInfo, InputRole, Model};
use std::borrow::Cow;

/// Metrics at work: the first output of a model against its first label that is no weight, without the rows of padding.
pub(super) struct Measure {
    names: Vec<&'static str>,
    accumulators: Vec<Box<dyn Accumulator>>,
    /// The position of the label among the model's inputs, and whether it holds numbers rather than ids.
    label: (usize, bool),
    /// The position of the label that weighs rows, where the model declares one.
    weight: Option<usize>,
    widened: Widened,
}

impl Measure {
    /// For a model; nothing to measure is fine for any.
    pub(super) fn new<M: Model>(metrics: &[Box<dyn Metric>]) -> Result<Self> {
        let is_label = |input: &InputInfo| input.role == InputRole::Label;
        let is_weight =
            |input: &InputInfo| is_label(input) && input.name == WEIGHT && input.element.is_float();
        let label = M::INPUTS
            .iter()
            .position(|input| is_label(input) && !is_weight(input))
            .map(|position| (position, M::INPUTS[position].element.is_float()));
        if let (None, Some(metric)) = (label, metrics.first()) {
            return Err(TrainError::NoLabel { model: M::NAME, metric: metric.name() }.into());
        }
        Ok(Measure {
            names: metrics.iter().map(|metric| metric.name()).collect(),
            accumulators: metrics.iter().map(|metric| metric.start()).collect(),
            label: label.unwrap_or_default(),
            weight: M::INPUTS.iter().position(is_weight),
            widened: Widened::default(),
        })
    }

    /// True if there is nothing to measure.
    #[inline]
    pub(super) fn is_empty(&self) -> bool {
        self.accumulators.is_empty()
    }

    /// Takes in a batch whose outputs the model has just computed.
    #[inline]
    pub(super) fn update<'b, M: Model, B: Batch<'b, M::Element>>(
        &mut self,
        model: &M,
        batch: &B,
    ) -> Result<()> {
        if self.is_empty() {
            return Ok(());
        }
        let outputs = first_output(model, batch.n_rows(), "metrics")?;
        let n_rows = batch.n_rows() - batch.n_padding().min(batch.n_rows());
        let outputs = outputs.rows(0..n_rows)?;
        let (position, is_real) = self.label;
        let labels = if is_real {
            LabelsView::Real(batch.dense(position)?.rows(0..n_rows)?)
        } else {
            LabelsView::Classes(batch.ids(position)?.rows(0..n_rows)?)
        };
        let weights = match self.weight {
            Some(position) => Some(batch.dense(position)?.rows(0..n_rows)?),
            None => None,
        };
        self.widened.update(outputs, labels, weights, &mut self.accumulators)
    }

    /// What each metric has seen.
    pub(super) fn states(&self) -> Vec<Vec<f64>> {
        self.accumulators.iter().map(|accumulator| accumulator.numbers()).collect()
    }

    /// Goes on from what [`states`](Self::states) gave for the same metrics; from the start where there is nothing.
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

    /// Names and values, and a fresh start.
    pub(super) fn take(&mut self) -> Vec<(Cow<'static, str>, f64)> {
        let names = self.names.iter().copied();
        names
            .zip(&mut self.accumulators)
            .map(|(name, accumulator)| {
                let value = accumulator.value();
                accumulator.reset();
                (Cow::Borrowed(name), value)
            })
            .collect()
    }
}

/// The first output of a model that has just computed its outputs for a batch, if it is dense and has a row
/// for each row of the batch.
pub(super) fn first_output<'m, M: Model>(
    model: &'m M,
    n_rows: usize,
    purpose: &'static str,
) -> Result<crate::formats::DenseView<'m, M::Element>> {
    let problem = match model.dense_output(0) {
        Some(output) if output.shape().rank() > 0 && output.shape().n_rows() == n_rows => {
            return Ok(output);
        }
        Some(output) => format!("has shape {} for {n_rows} rows", output.shape()),
        None => match M::OUTPUTS.first() {
            Some(output) if !output.element.is_float() => format!("`{}` holds ids", output.name),
            Some(output) => format!("`{}` is {}", output.name, output.storage),
            None => "there is none".to_owned(),
        },
    };
    Err(TrainError::Output { model: M::NAME, purpose, problem }.into())
}

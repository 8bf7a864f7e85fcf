//! Metrics that are a mean over everything seen, or a function of one.

use super::{Accumulator, LabelsView, MetricError, same};
use crate::formats::DenseView;

/// A metric that follows from a mean.
pub(super) trait OfMean: Copy + PartialEq + Send + 'static {
    /// The metric's name.
    const NAME: &'static str;

    /// The sum of a batch's terms, and how many there are.
    fn terms(
        &self,
        outputs: &DenseView<'_, f64>,
        labels: &LabelsView<'_, f64>,
    ) -> Result<(f64, usize), MetricError>;

    /// The metric, from the mean of the terms.
    fn of_mean(mean: f64) -> f64 {
        mean
    }
}

/// What a metric that follows from a mean has seen.
pub(super) struct SeenMean<M> {
    metric: M,
    mean: Mean,
}

impl<M: OfMean> SeenMean<M> {
    /// Nothing seen.
    pub(super) fn start(metric: M) -> Box<dyn Accumulator> {
        Box::new(SeenMean { metric, mean: Mean::default() })
    }
}

impl<M: OfMean> Accumulator for SeenMean<M> {
    fn update(
        &mut self,
        outputs: DenseView<'_, f64>,
        labels: LabelsView<'_, f64>,
    ) -> Result<(), MetricError> {
        let (sum, count) = self.metric.terms(&outputs, &labels)?;
        self.mean.add(sum, count);
        Ok(())
    }

    fn value(&self) -> f64 {
        M::of_mean(self.mean.value())
    }

    fn merge(&mut self, other: &dyn Accumulator) -> Result<(), MetricError> {
        let other = same::<Self>(M::NAME, other)?;
        if self.metric != other.metric {
            return Err(MetricError::OtherMetric { metric: M::NAME });
        }
        self.mean.merge(&other.mean);
        Ok(())
    }

    fn reset(&mut self) {
        self.mean = Mean::default();
    }
}

/// A sum in `f64` and what it is divided by.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Mean {
    sum: f64,
    count: u64,
}

impl Mean {
    /// Takes in the sum of `count` terms.
    pub(super) fn add(&mut self, sum: f64, count: usize) {
        self.sum += sum;
        self.count += count as u64;
    }

    /// Takes in another mean.
    pub(super) fn merge(&mut self, other: &Mean) {
        self.sum += other.sum;
        self.count += other.count;
    }

    /// The mean, or NaN over nothing.
    pub(super) fn value(&self) -> f64 {
        self.sum / self.count as f64
    }
}

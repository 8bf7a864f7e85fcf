//! Metrics that are a mean over all samples, or a function of one.

use super::exact_sum::ExactSum;
use super::{Accumulator, LabelsView, MetricError, NoValue, RowWeights, same};
use nnz_arrays::formats::DenseView;
use nnz_step::model::Scores;

/// A metric that follows from a mean.
pub(super) trait OfMean: Copy + PartialEq + Send + 'static {
    /// The metric's name.
    const NAME: &'static str;

    /// Passes the terms of a batch to `add`, each with its sample.
    fn terms(
        &self,
        outputs: &DenseView<'_, f64>,
        labels: &LabelsView<'_, f64>,
        add: impl FnMut(usize, f64),
    ) -> Result<(), MetricError>;

    /// [`terms`](Self::terms) by the scores of which outputs are a link; false if it is computed
    /// from the outputs.
    fn terms_of_scores(
        &self,
        scores: &Scores<'_, f64>,
        labels: &LabelsView<'_, f64>,
        add: impl FnMut(usize, f64),
    ) -> Result<bool, MetricError> {
        let _ = (scores, labels, add);
        Ok(false)
    }

    /// The metric, from the mean of the terms.
    fn of_mean(mean: f64) -> f64 {
        mean
    }
}

/// The accumulator of a metric that follows from a mean.
pub(super) struct SeenMean<M> {
    metric: M,
    mean: Mean,
}

impl<M: OfMean> SeenMean<M> {
    /// An empty accumulator.
    pub(super) fn start(metric: M) -> Box<dyn Accumulator> {
        Box::new(SeenMean { metric, mean: Mean::default() })
    }
}

impl<M: OfMean> Accumulator for SeenMean<M> {
    fn update_weighted(
        &mut self,
        outputs: DenseView<'_, f64>,
        labels: LabelsView<'_, f64>,
        weights: RowWeights<'_>,
    ) -> Result<(), MetricError> {
        // A batch that is refused halfway changes nothing.
        let mut mean = self.mean.clone();
        self.metric.terms(&outputs, &labels, |row, term| mean.add(term, weights.of(row)))?;
        self.mean = mean;
        Ok(())
    }

    fn update_scores(
        &mut self,
        scores: Scores<'_, f64>,
        labels: LabelsView<'_, f64>,
        weights: RowWeights<'_>,
    ) -> Result<bool, MetricError> {
        let mut mean = self.mean.clone();
        let add = |row, term| mean.add(term, weights.of(row));
        let is_seen = self.metric.terms_of_scores(&scores, &labels, add)?;
        if is_seen {
            self.mean = mean;
        }
        Ok(is_seen)
    }

    fn value(&self) -> Result<f64, NoValue> {
        NoValue::unless_finite(M::of_mean(self.mean.value()?))
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

    fn numbers(&self) -> Vec<f64> {
        self.mean.numbers()
    }

    fn set_numbers(&mut self, numbers: &[f64]) -> Result<(), MetricError> {
        self.mean =
            Mean::of_numbers(numbers).ok_or(MetricError::OtherMetric { metric: M::NAME })?;
        Ok(())
    }
}

/// Makes an [`OfMean`] a [`Metric`](super::Metric).
macro_rules! by_mean {
    ($Metric:ident) => {
        impl $crate::metric::Metric for $Metric {
            fn name(&self) -> &'static str {
                <Self as $crate::metric::mean::OfMean>::NAME
            }

            fn start(&self) -> Box<dyn $crate::metric::Accumulator> {
                $crate::metric::mean::SeenMean::start(*self)
            }
        }
    };
}
pub(super) use by_mean;

/// A weighted sum of terms and that of their weights, both exact.
#[derive(Clone, Debug, Default)]
pub(super) struct Mean {
    sum: ExactSum,
    weight: ExactSum,
}

impl Mean {
    /// Adds a term. A term of weight 0 is skipped, even if it is infinite.
    #[inline]
    pub(super) fn add(&mut self, term: f64, weight: f64) {
        if weight == 0.0 {
            return;
        }
        self.sum.add(weight * term);
        self.weight.add(weight);
    }

    /// Adds another mean.
    pub(super) fn merge(&mut self, other: &Mean) {
        self.sum.merge(&other.sum);
        self.weight.merge(&other.weight);
    }

    /// The numbers of the two sums.
    pub(super) fn numbers(&self) -> Vec<f64> {
        self.sum.numbers().chain(self.weight.numbers()).collect()
    }

    /// The mean with these numbers.
    pub(super) fn of_numbers(numbers: &[f64]) -> Option<Self> {
        let (sum, weight) = numbers.split_at_checked(ExactSum::N_NUMBERS)?;
        Some(Mean { sum: ExactSum::of_numbers(sum)?, weight: ExactSum::of_numbers(weight)? })
    }

    /// The mean, which may be infinite or NaN.
    pub(super) fn value(&self) -> Result<f64, NoValue> {
        match self.weight.value() {
            0.0 => Err(NoValue::NothingSeen),
            weight => Ok(self.sum.value() / weight),
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::metric::{LabelsView, Metric, Mse, Pearson, RowWeights};
    use nnz_arrays::formats::Dense;

    #[test]
    fn a_row_of_weight_0_is_not_there() {
        let outputs = Dense::from_rows(&[[f64::INFINITY], [1.0], [2.0], [4.0]]);
        let labels = Dense::from_rows(&[[0.0], [1.0], [3.0], [5.0]]);
        let weights = RowWeights::new(&[0.0, 1.0, 1.0, 2.0], 4).unwrap();
        let metrics: [(&dyn Metric, f64); 2] = [(&Mse, 0.75), (&Pearson, 0.9864400504156211)];
        for (metric, expected) in metrics {
            let mut seen = metric.start();
            let labels = LabelsView::Real(labels.view());
            seen.update_weighted(outputs.view(), labels, weights).unwrap();
            let value = seen.value().unwrap();
            assert!((value - expected).abs() < 1e-12, "{}: {value}", metric.name());
        }
    }
}

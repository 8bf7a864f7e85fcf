//! Right and wrong predictions of two classes, counted.

use super::exact_sum::ExactSum;
use super::{
    Accumulator, LabelsView, MetricError, RowWeights, class_labels, is_positive, largest, no_nan,
    one_label_a_row, same, same_rows,
};
use crate::formats::DenseView;

/// The weights of rows by predicted and true class: without weights, how many there are.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Confusion {
    pub(super) true_positives: f64,
    pub(super) false_positives: f64,
    pub(super) true_negatives: f64,
    pub(super) false_negatives: f64,
}

/// The sums of these weights, in the order of the fields.
#[derive(Clone, Debug, Default)]
struct Counts([ExactSum; 4]);

impl Counts {
    fn count(&mut self, predicted: bool, positive: bool, weight: f64) {
        let cell = match (predicted, positive) {
            (true, true) => 0,
            (true, false) => 1,
            (false, false) => 2,
            (false, true) => 3,
        };
        self.0[cell].add(weight);
    }

    fn confusion(&self) -> Confusion {
        let [true_positives, false_positives, true_negatives, false_negatives] =
            self.0.each_ref().map(ExactSum::value);
        Confusion { true_positives, false_positives, true_negatives, false_negatives }
    }
}

/// What a metric that follows from these numbers has seen.
pub(super) struct SeenConfusion {
    metric: &'static str,
    value: fn(&Confusion) -> f64,
    counts: Counts,
}

impl SeenConfusion {
    /// Nothing seen. `value` is not asked about no rows.
    pub(super) fn start(
        metric: &'static str,
        value: fn(&Confusion) -> f64,
    ) -> Box<dyn Accumulator> {
        Box::new(SeenConfusion { metric, value, counts: Counts::default() })
    }
}

impl Accumulator for SeenConfusion {
    fn update_weighted(
        &mut self,
        outputs: DenseView<'_, f64>,
        labels: LabelsView<'_, f64>,
        weights: RowWeights<'_>,
    ) -> Result<(), MetricError> {
        let n_rows = same_rows(self.metric, &outputs, &labels)?;
        one_label_a_row(self.metric, &labels)?;
        no_nan(self.metric, &outputs)?;
        match outputs.shape().row_size() {
            _ if n_rows == 0 => {}
            1 => {
                for (row, &output) in outputs.values().iter().enumerate() {
                    let positive = labels.number(row) > 0.0;
                    self.counts.count(is_positive(output), positive, weights.of(row));
                }
            }
            2 => {
                let classes = class_labels(self.metric, &outputs, &labels)?;
                let scores = outputs.values().chunks_exact(2);
                for (row, (scores, class)) in scores.zip(classes.iter()).enumerate() {
                    self.counts.count(largest(scores) == 1, class == 1, weights.of(row));
                }
            }
            _ => {
                return Err(MetricError::NotBinary {
                    metric: self.metric,
                    outputs: *outputs.shape(),
                });
            }
        }
        Ok(())
    }

    fn value(&self) -> f64 {
        let counts = self.counts.confusion();
        let Confusion { true_positives, false_positives, true_negatives, false_negatives } = counts;
        let total = true_positives + false_positives + true_negatives + false_negatives;
        if total == 0.0 { f64::NAN } else { (self.value)(&counts) }
    }

    fn merge(&mut self, other: &dyn Accumulator) -> Result<(), MetricError> {
        let other = same::<Self>(self.metric, other)?;
        if self.metric != other.metric {
            return Err(MetricError::OtherMetric { metric: self.metric });
        }
        for (sum, other) in self.counts.0.iter_mut().zip(&other.counts.0) {
            sum.merge(other);
        }
        Ok(())
    }

    fn reset(&mut self) {
        self.counts = Counts::default();
    }

    fn numbers(&self) -> Vec<f64> {
        self.counts.0.iter().flat_map(ExactSum::numbers).collect()
    }

    fn set_numbers(&mut self, numbers: &[f64]) -> Result<(), MetricError> {
        let other = MetricError::OtherMetric { metric: self.metric };
        let sums = numbers.chunks(ExactSum::N_NUMBERS).map(ExactSum::of_numbers);
        let sums = sums.collect::<Option<Vec<_>>>().and_then(|sums| sums.try_into().ok());
        self.counts = Counts(sums.ok_or(other)?);
        Ok(())
    }
}

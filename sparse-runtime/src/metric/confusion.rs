//! Right and wrong predictions of two classes, counted.

use super::{
    Accumulator, LabelsView, MetricError, class_labels, is_positive, largest, one_label_a_row,
    same, same_rows,
};
use crate::formats::DenseView;

/// The numbers of rows by predicted and true class.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Confusion {
    pub(super) true_positives: u64,
    pub(super) false_positives: u64,
    pub(super) true_negatives: u64,
    pub(super) false_negatives: u64,
}

impl Confusion {
    pub(super) fn is_empty(&self) -> bool {
        self.true_positives + self.false_positives + self.true_negatives + self.false_negatives == 0
    }

    fn count(&mut self, predicted: bool, positive: bool) {
        *match (predicted, positive) {
            (true, true) => &mut self.true_positives,
            (true, false) => &mut self.false_positives,
            (false, false) => &mut self.true_negatives,
            (false, true) => &mut self.false_negatives,
        } += 1;
    }
}

/// What a metric that follows from these numbers has seen.
pub(super) struct SeenConfusion {
    metric: &'static str,
    value: fn(&Confusion) -> f64,
    counts: Confusion,
}

impl SeenConfusion {
    /// Nothing seen. `value` is not asked about no rows.
    pub(super) fn start(
        metric: &'static str,
        value: fn(&Confusion) -> f64,
    ) -> Box<dyn Accumulator> {
        Box::new(SeenConfusion { metric, value, counts: Confusion::default() })
    }
}

impl Accumulator for SeenConfusion {
    fn update(
        &mut self,
        outputs: DenseView<'_, f64>,
        labels: LabelsView<'_, f64>,
    ) -> Result<(), MetricError> {
        let n_rows = same_rows(self.metric, &outputs, &labels)?;
        one_label_a_row(self.metric, &labels)?;
        match outputs.shape().row_size() {
            _ if n_rows == 0 => {}
            1 => {
                for (row, &output) in outputs.values().iter().enumerate() {
                    self.counts.count(is_positive(output), labels.number(row) > 0.0);
                }
            }
            2 => {
                let classes = class_labels(self.metric, &outputs, &labels)?;
                for (scores, class) in outputs.values().chunks_exact(2).zip(classes.iter()) {
                    self.counts.count(largest(scores) == 1, class == 1);
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
        if self.counts.is_empty() { f64::NAN } else { (self.value)(&self.counts) }
    }

    fn merge(&mut self, other: &dyn Accumulator) -> Result<(), MetricError> {
        let other = same::<Self>(self.metric, other)?;
        if self.metric != other.metric {
            return Err(MetricError::OtherMetric { metric: self.metric });
        }
        self.counts.true_positives += other.counts.true_positives;
        self.counts.false_positives += other.counts.false_positives;
        self.counts.true_negatives += other.counts.true_negatives;
        self.counts.false_negatives += other.counts.false_negatives;
        Ok(())
    }

    fn reset(&mut self) {
        self.counts = Confusion::default();
    }
}

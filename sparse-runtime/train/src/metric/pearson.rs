//! The linear correlation of outputs and labels.

use super::{
    Accumulator, Element, LabelsView, Metric, MetricError, NoValue, RowWeights, elements, same,
};
use nnz_arrays::formats::DenseView;

/// Pearson's correlation coefficient over all elements: `Σ (o - ō) (l - l̄) / √(Σ (o - ō)² Σ (l -
/// l̄)²)` for outputs `o` and labels `l` with means `ō` and `l̄`.
///
/// Means and sums are updated together (Welford, Chan), in one pass without cancellation. No value
/// if outputs or labels are all equal.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Pearson;

/// Means, and sums of products of deviations from them.
#[derive(Clone, Copy, Default)]
struct Seen {
    count: f64,
    mean_output: f64,
    mean_label: f64,
    outputs: f64,
    labels: f64,
    both: f64,
}

const NAME: &str = "pearson";

impl Metric for Pearson {
    fn name(&self) -> &'static str {
        NAME
    }

    fn start(&self) -> Box<dyn Accumulator> {
        Box::new(Seen::default())
    }
}

impl Seen {
    /// Adds sums of the same form; one element is the sum of itself.
    fn add(&mut self, other: &Seen) {
        let count = self.count + other.count;
        if count == 0.0 {
            return;
        }
        let output = other.mean_output - self.mean_output;
        let label = other.mean_label - self.mean_label;
        let share = other.count / count;
        let weight = self.count * share;
        self.outputs += other.outputs + output * output * weight;
        self.labels += other.labels + label * label * weight;
        self.both += other.both + output * label * weight;
        self.mean_output += output * share;
        self.mean_label += label * share;
        self.count = count;
    }
}

impl Accumulator for Seen {
    fn update_weighted(
        &mut self,
        outputs: DenseView<'_, f64>,
        labels: LabelsView<'_, f64>,
        weights: RowWeights<'_>,
    ) -> Result<(), MetricError> {
        for Element { row, output, label } in elements(NAME, &outputs, &labels)? {
            let count = weights.of(row);
            // A row of weight 0 is not there, even if its output is infinite.
            if count == 0.0 {
                continue;
            }
            let one = Seen { count, mean_output: output, mean_label: label, ..Seen::default() };
            self.add(&one);
        }
        Ok(())
    }

    fn value(&self) -> Result<f64, NoValue> {
        match (self.count, self.outputs, self.labels) {
            (0.0, ..) => Err(NoValue::NothingSeen),
            (_, 0.0, _) => Err(NoValue::EqualOutputs),
            (.., 0.0) => Err(NoValue::EqualLabels),
            // Two roots: the product of the sums may be beyond the range.
            (_, outputs, labels) => {
                NoValue::unless_finite(self.both / (outputs.sqrt() * labels.sqrt()))
            }
        }
    }

    fn merge(&mut self, other: &dyn Accumulator) -> Result<(), MetricError> {
        self.add(same::<Self>(NAME, other)?);
        Ok(())
    }

    fn reset(&mut self) {
        *self = Self::default();
    }

    fn numbers(&self) -> Vec<f64> {
        let Seen { count, mean_output, mean_label, outputs, labels, both } = *self;
        vec![count, mean_output, mean_label, outputs, labels, both]
    }

    fn set_numbers(&mut self, numbers: &[f64]) -> Result<(), MetricError> {
        let &[count, mean_output, mean_label, outputs, labels, both] = numbers else {
            return Err(MetricError::OtherMetric { metric: NAME });
        };
        *self = Seen { count, mean_output, mean_label, outputs, labels, both };
        Ok(())
    }
}

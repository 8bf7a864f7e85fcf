//! What is done to outputs after the model: predictions cut to a range, probabilities turned into
//! the label of a class.

use nnz::formats::DenseView;
use nnz::metric::{Accumulator, LabelsView, Metric, MetricError, NoValue, RowWeights};
use nnz::prelude::*;
use std::any::Any;
use std::fmt::Write;

/// A change of the line of a sample.
#[derive(Clone, Debug)]
pub(crate) enum Change {
    /// The first number is cut to a range.
    Clip(f64, f64),
    /// The label of the largest number, of the first of those that are as large.
    Label(Vec<f64>),
}

impl Change {
    /// Changes the line of a sample.
    pub(crate) fn apply(&self, line: &mut String) {
        let first = line.split('\t').next().unwrap_or_default();
        match self {
            Change::Clip(low, high) => {
                let Ok(number) = first.parse::<f64>() else { return };
                if number < *low || number > *high {
                    let rest = line.split_off(first.len());
                    line.clear();
                    // A string takes whatever is written to it.
                    let _ = write!(line, "{}{rest}", number.clamp(*low, *high));
                }
            }
            Change::Label(labels) => {
                let mut largest = (f64::NEG_INFINITY, 0);
                for (class, number) in line.split('\t').enumerate() {
                    let number = number.parse().unwrap_or(f64::NEG_INFINITY);
                    if number > largest.0 {
                        largest = (number, class);
                    }
                }
                line.clear();
                let _ = write!(line, "{}", labels.get(largest.1).copied().unwrap_or(f64::NAN));
            }
        }
    }
}

/// A metric of outputs that are cut to a range.
#[derive(Debug)]
pub(crate) struct Clipped<M> {
    pub(crate) metric: M,
    pub(crate) low: f64,
    pub(crate) high: f64,
}

impl<M: Metric> Metric for Clipped<M> {
    fn name(&self) -> &'static str {
        self.metric.name()
    }

    fn start(&self) -> Box<dyn Accumulator> {
        Box::new(Seen { low: self.low, high: self.high, seen: self.metric.start() })
    }
}

struct Seen {
    low: f64,
    high: f64,
    seen: Box<dyn Accumulator>,
}

impl Accumulator for Seen {
    fn update_weighted(
        &mut self,
        outputs: DenseView<'_, f64>,
        labels: LabelsView<'_, f64>,
        weights: RowWeights<'_>,
    ) -> Result<(), MetricError> {
        let cut = outputs.values().iter().map(|output| output.clamp(self.low, self.high));
        match Dense::new(*outputs.shape(), cut.collect()) {
            Ok(cut) => self.seen.update_weighted(cut.view(), labels, weights),
            // As many values as there were have the shape that they had.
            Err(_) => self.seen.update_weighted(outputs, labels, weights),
        }
    }

    fn value(&self) -> Result<f64, NoValue> {
        self.seen.value()
    }

    fn merge(&mut self, other: &dyn Accumulator) -> Result<(), MetricError> {
        let any: &dyn Any = other;
        match any.downcast_ref::<Seen>() {
            Some(other) => self.seen.merge(&*other.seen),
            None => self.seen.merge(other),
        }
    }

    fn reset(&mut self) {
        self.seen.reset();
    }

    fn numbers(&self) -> Vec<f64> {
        self.seen.numbers()
    }

    fn set_numbers(&mut self, numbers: &[f64]) -> Result<(), MetricError> {
        self.seen.set_numbers(numbers)
    }
}

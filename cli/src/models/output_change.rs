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
    /// The label of the predicted class stands in the place of the numbers.
    Label(ClassNames),
}

/// The labels of classes, and which is predicted.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct ClassNames {
    pub(crate) names: Vec<String>,
    /// Of two classes, from which number on the second is predicted; of any number of classes that
    /// of the largest number is, the first of those that are as large.
    pub(crate) threshold: Option<f64>,
}

impl ClassNames {
    /// The label of a sample with these numbers.
    fn of(&self, mut numbers: impl Iterator<Item = f64>) -> &str {
        let class = match self.threshold {
            Some(threshold) => usize::from(numbers.next().unwrap_or(0.0) >= threshold),
            None => {
                let mut largest = (f64::NEG_INFINITY, 0);
                for (class, number) in numbers.enumerate() {
                    if number > largest.0 {
                        largest = (number, class);
                    }
                }
                largest.1
            }
        };
        self.names.get(class).map_or("", String::as_str)
    }
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
            Change::Label(names) => {
                let numbers = line.split('\t');
                let numbers = numbers.map(|text| text.parse().unwrap_or(f64::NEG_INFINITY));
                *line = names.of(numbers).to_owned();
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
        let (low, high) = (self.low, self.high);
        let change = move |output: f64| output.clamp(low, high);
        Box::new(Changed { change, seen: self.metric.start() })
    }
}

/// A metric of scores that are positive from 0 on: the metric compares predictions with 1/2.
#[derive(Debug)]
pub(crate) struct Margin<M>(pub(crate) M);

impl<M: Metric> Metric for Margin<M> {
    fn name(&self) -> &'static str {
        self.0.name()
    }

    fn start(&self) -> Box<dyn Accumulator> {
        let change = |score: f64| if score < 0.0 { 0.0 } else { 1.0 };
        Box::new(Changed { change, seen: self.0.start() })
    }
}

/// A metric of changed outputs.
struct Changed<C> {
    change: C,
    seen: Box<dyn Accumulator>,
}

impl<C: Fn(f64) -> f64 + Send + 'static> Accumulator for Changed<C> {
    fn update_weighted(
        &mut self,
        outputs: DenseView<'_, f64>,
        labels: LabelsView<'_, f64>,
        weights: RowWeights<'_>,
    ) -> Result<(), MetricError> {
        let changed = outputs.values().iter().map(|output| (self.change)(*output));
        match Dense::new(*outputs.shape(), changed.collect()) {
            Ok(changed) => self.seen.update_weighted(changed.view(), labels, weights),
            // As many values as there were have the shape that they had.
            Err(_) => self.seen.update_weighted(outputs, labels, weights),
        }
    }

    fn value(&self) -> Result<f64, NoValue> {
        self.seen.value()
    }

    fn merge(&mut self, other: &dyn Accumulator) -> Result<(), MetricError> {
        let any: &dyn Any = other;
        match any.downcast_ref::<Self>() {
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

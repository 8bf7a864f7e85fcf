//! Mean squared error.

use super::mean::Mean;
use super::{Accumulator, LabelsView, Metric, MetricError, same, same_rows};
use crate::formats::DenseView;

/// Mean squared error: the mean over all elements of `(output - label)²`.
#[derive(Clone, Copy, Debug, Default)]
pub struct Mse;

#[derive(Default)]
struct Seen(Mean);

const NAME: &str = "mse";

impl Metric for Mse {
    fn name(&self) -> &'static str {
        NAME
    }

    fn start(&self) -> Box<dyn Accumulator> {
        Box::new(Seen::default())
    }
}

impl Accumulator for Seen {
    fn update(
        &mut self,
        outputs: DenseView<'_, f64>,
        labels: LabelsView<'_, f64>,
    ) -> Result<(), MetricError> {
        let (sum, count) = squared_error(NAME, &outputs, &labels)?;
        self.0.add(sum, count);
        Ok(())
    }

    fn value(&self) -> f64 {
        self.0.value()
    }

    fn merge(&mut self, other: &dyn Accumulator) -> Result<(), MetricError> {
        self.0.merge(&same::<Self>(NAME, other)?.0);
        Ok(())
    }

    fn reset(&mut self) {
        *self = Self::default();
    }
}

/// The sum of the squared errors of a batch, and the number of elements.
pub(super) fn squared_error(
    metric: &'static str,
    outputs: &DenseView<'_, f64>,
    labels: &LabelsView<'_, f64>,
) -> Result<(f64, usize), MetricError> {
    let n_rows = same_rows(metric, outputs, labels)?;
    if n_rows > 0 && outputs.shape().row_size() != labels.row_size() {
        return Err(MetricError::Elements {
            metric,
            outputs: *outputs.shape(),
            labels: labels.row_size(),
        });
    }
    let error = |(i, output): (usize, &f64)| (output - labels.number(i)).powi(2);
    let sum = outputs.values().iter().enumerate().map(error).sum();
    Ok((sum, outputs.values().len()))
}

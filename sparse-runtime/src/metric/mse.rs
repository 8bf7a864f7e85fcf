//! Mean squared error.

use super::mean::{OfMean, SeenMean};
use super::{Accumulator, LabelsView, Metric, MetricError, elements};
use crate::formats::DenseView;

/// Mean squared error: the mean over all elements of `(output - label)²`.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Mse;

impl Metric for Mse {
    fn name(&self) -> &'static str {
        Self::NAME
    }

    fn start(&self) -> Box<dyn Accumulator> {
        SeenMean::start(*self)
    }
}

impl OfMean for Mse {
    const NAME: &'static str = "mse";

    fn terms(
        &self,
        outputs: &DenseView<'_, f64>,
        labels: &LabelsView<'_, f64>,
    ) -> Result<(f64, usize), MetricError> {
        squared_error(Self::NAME, outputs, labels)
    }
}

/// The sum of the squared errors of a batch, and the number of elements.
pub(super) fn squared_error(
    metric: &'static str,
    outputs: &DenseView<'_, f64>,
    labels: &LabelsView<'_, f64>,
) -> Result<(f64, usize), MetricError> {
    let pairs = elements(metric, outputs, labels)?;
    Ok((pairs.map(|(output, label)| (output - label).powi(2)).sum(), outputs.values().len()))
}

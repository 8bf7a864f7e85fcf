//! Mean squared error.

use super::mean::{OfMean, SeenMean};
use super::{Accumulator, Element, LabelsView, Metric, MetricError, elements};
use nnz_arrays::formats::DenseView;

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
        add: impl FnMut(usize, f64),
    ) -> Result<(), MetricError> {
        squared_errors(Self::NAME, outputs, labels, add)
    }
}

/// The squared errors of a batch.
pub(super) fn squared_errors(
    metric: &'static str,
    outputs: &DenseView<'_, f64>,
    labels: &LabelsView<'_, f64>,
    mut add: impl FnMut(usize, f64),
) -> Result<(), MetricError> {
    for Element { row, output, label } in elements(metric, outputs, labels)? {
        add(row, (output - label).powi(2));
    }
    Ok(())
}

//! Root mean squared error.

use super::mean::{OfMean, SeenMean};
use super::mse::squared_errors;
use super::{Accumulator, LabelsView, Metric, MetricError};
use nnz_arrays::formats::DenseView;

/// Root mean squared error: the root of the mean over all elements of `(output - label)²`.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Rmse;

impl Metric for Rmse {
    fn name(&self) -> &'static str {
        Self::NAME
    }

    fn start(&self) -> Box<dyn Accumulator> {
        SeenMean::start(*self)
    }
}

impl OfMean for Rmse {
    const NAME: &'static str = "rmse";

    fn terms(
        &self,
        outputs: &DenseView<'_, f64>,
        labels: &LabelsView<'_, f64>,
        add: impl FnMut(usize, f64),
    ) -> Result<(), MetricError> {
        squared_errors(Self::NAME, outputs, labels, add)
    }

    fn of_mean(mean: f64) -> f64 {
        mean.sqrt()
    }
}

//! The mean of outputs that are losses.

use super::mean::{OfMean, SeenMean};
use super::{Accumulator, LabelsView, Metric, MetricError, same_rows};
use crate::formats::DenseView;

/// The mean over all elements of the outputs themselves, for a model whose output is the loss of each row. Labels are not
/// looked at; there is one row of them for each row of the outputs.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Loss;

impl Metric for Loss {
    fn name(&self) -> &'static str {
        Self::NAME
    }

    fn start(&self) -> Box<dyn Accumulator> {
        SeenMean::start(*self)
    }
}

impl OfMean for Loss {
    const NAME: &'static str = "loss";

    fn terms(
        &self,
        outputs: &DenseView<'_, f64>,
        labels: &LabelsView<'_, f64>,
    ) -> Result<(f64, usize), MetricError> {
        same_rows(Self::NAME, outputs, labels)?;
        Ok((outputs.values().iter().sum(), outputs.values().len()))
    }
}

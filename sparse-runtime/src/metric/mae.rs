//! Mean absolute error.

use super::mean::{OfMean, SeenMean};
use super::{Accumulator, LabelsView, Metric, MetricError, elements};
use crate::formats::DenseView;

/// Mean absolute error: the mean over all elements of `|output - label|`.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Mae;

impl Metric for Mae {
    fn name(&self) -> &'static str {
        Self::NAME
    }

    fn start(&self) -> Box<dyn Accumulator> {
        SeenMean::start(*self)
    }
}

impl OfMean for Mae {
    const NAME: &'static str = "mae";

    fn terms(
        &self,
        outputs: &DenseView<'_, f64>,
        labels: &LabelsView<'_, f64>,
    ) -> Result<(f64, usize), MetricError> {
        let pairs = elements(Self::NAME, outputs, labels)?;
        Ok((pairs.map(|(output, label)| (output - label).abs()).sum(), outputs.values().len()))
    }
}

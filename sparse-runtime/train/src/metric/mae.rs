//! Mean absolute error.

use super::mean::{OfMean, SeenMean};
use super::{Accumulator, Element, LabelsView, Metric, MetricError, elements};
use nnz_arrays::formats::DenseView;

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
        mut add: impl FnMut(usize, f64),
    ) -> Result<(), MetricError> {
        for Element { row, output, label } in elements(Self::NAME, outputs, labels)? {
            add(row, (output - label).abs());
        }
        Ok(())
    }
}

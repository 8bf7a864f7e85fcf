//! Root mean squared error.

use super::mean::Mean;
use super::mse::squared_error;
use super::{Accumulator, LabelsView, Metric, MetricError, same};
use crate::formats::DenseView;

/// Root mean squared error: the root of the mean over all elements of `(output - label)²`.
#[derive(Clone, Copy, Debug, Default)]
pub struct Rmse;

#[derive(Default)]
struct Seen(Mean);

const NAME: &str = "rmse";

impl Metric for Rmse {
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
        self.0.value().sqrt()
    }

    fn merge(&mut self, other: &dyn Accumulator) -> Result<(), MetricError> {
        self.0.merge(&same::<Self>(NAME, other)?.0);
        Ok(())
    }

    fn reset(&mut self) {
        *self = Self::default();
    }
}

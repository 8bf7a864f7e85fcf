//! The mean of outputs that are losses.

use super::mean::{OfMean, by_mean};
use super::{LabelsView, MetricError, same_rows};
use nnz_arrays::formats::DenseView;

/// The mean over all elements of the outputs themselves, for a model whose output is the loss of
/// each sample. Labels are not read; there must be one for each sample of the outputs.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Loss;

by_mean!(Loss);

impl OfMean for Loss {
    const NAME: &'static str = "loss";

    fn terms(
        &self,
        outputs: &DenseView<'_, f64>,
        labels: &LabelsView<'_, f64>,
        mut add: impl FnMut(usize, f64),
    ) -> Result<(), MetricError> {
        same_rows(Self::NAME, outputs, labels)?;
        let row_size = outputs.shape().row_size().max(1);
        let losses = outputs.values().iter().enumerate();
        losses.for_each(|(element, loss)| add(element / row_size, *loss));
        Ok(())
    }
}

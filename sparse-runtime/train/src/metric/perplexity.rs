//! Perplexity: the number of classes among which a model hesitates.

use super::log_loss::{negative_logarithms, negative_logarithms_of_scores};
use super::mean::{OfMean, by_mean};
use super::{LabelsView, MetricError};
use nnz_arrays::formats::DenseView;
use nnz_step::model::Scores;

/// The exponential of the mean over samples of `-ln p(label)`: 1 for a model that is certain and
/// right, the number of classes for one that guesses.
///
/// Outputs and labels are those of [`LogLoss`](super::LogLoss).
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Perplexity {
    /// Samples with this class id are not counted, such as padding of a sequence. It need not be
    /// one of the classes: -1 is common.
    pub ignore_label: Option<i64>,
}

by_mean!(Perplexity);

impl OfMean for Perplexity {
    const NAME: &'static str = "perplexity";

    fn terms(
        &self,
        outputs: &DenseView<'_, f64>,
        labels: &LabelsView<'_, f64>,
        add: impl FnMut(usize, f64),
    ) -> Result<(), MetricError> {
        negative_logarithms(Self::NAME, outputs, labels, self.ignore_label, add)
    }

    fn terms_of_scores(
        &self,
        scores: &Scores<'_, f64>,
        labels: &LabelsView<'_, f64>,
        add: impl FnMut(usize, f64),
    ) -> Result<bool, MetricError> {
        negative_logarithms_of_scores(Self::NAME, scores, labels, self.ignore_label, add)
    }

    fn of_mean(mean: f64) -> f64 {
        mean.exp()
    }
}

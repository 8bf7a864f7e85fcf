//! The share of samples whose class is among those with the largest scores.

use super::mean::{OfMean, by_mean};
use super::{LabelsView, MetricError, class_labels, no_nan, same_rows};
use nnz_arrays::formats::DenseView;
use nnz_step::model::Scores;

/// The share of samples whose label is among the `k` classes with the largest scores; of equal
/// scores the first counts.
///
/// Outputs are scores of classes, one a column; labels are class ids. `k` is at least 1, where it
/// is [`Accuracy`](super::Accuracy). Linear in the number of scores.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TopKAccuracy {
    /// The number of classes that count.
    pub k: usize,
}

by_mean!(TopKAccuracy);

impl OfMean for TopKAccuracy {
    const NAME: &'static str = "top_k_accuracy";

    fn terms(
        &self,
        outputs: &DenseView<'_, f64>,
        labels: &LabelsView<'_, f64>,
        mut add: impl FnMut(usize, f64),
    ) -> Result<(), MetricError> {
        if self.k == 0 {
            return Err(MetricError::TopNone { metric: Self::NAME });
        }
        same_rows(Self::NAME, outputs, labels)?;
        let classes = class_labels(Self::NAME, outputs, labels)?;
        no_nan(Self::NAME, outputs)?;
        let rows = outputs.values().chunks_exact(outputs.shape().row_size().max(1));
        let is_right = |scores: &[f64], class: usize| {
            // Those that come before it: a score that is larger, or equal and earlier.
            let before = |(other, &score): (usize, &f64)| {
                score > scores[class] || (score == scores[class] && other < class)
            };
            scores.iter().enumerate().filter(|&entry| before(entry)).count() < self.k
        };
        for (row, (scores, class)) in rows.zip(classes.iter()).enumerate() {
            add(row, f64::from(u8::from(is_right(scores, class))));
        }
        Ok(())
    }

    /// A link keeps the order of a sample's scores.
    fn terms_of_scores(
        &self,
        scores: &Scores<'_, f64>,
        labels: &LabelsView<'_, f64>,
        add: impl FnMut(usize, f64),
    ) -> Result<bool, MetricError> {
        self.terms(&scores.values, labels, add).map(|()| true)
    }
}

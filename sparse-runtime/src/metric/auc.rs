//! Area under the receiver operating characteristic.

use super::{Accumulator, LabelsView, Metric, MetricError, one_label_a_row, same, same_rows};
use crate::formats::DenseView;

/// The area under the ROC curve: the share of (positive, negative) pairs in which the positive row has the
/// higher score, equal scores counting half.
///
/// Exact over the whole set, by ranks (Mann and Whitney): every score is kept, 16 bytes a row, and sorted
/// when the value is asked for, O(n log n). Scores need not be probabilities; a label is positive above 0.
/// NaN where there are no positive or no negative rows.
#[derive(Clone, Copy, Debug, Default)]
pub struct Auc;

#[derive(Default)]
struct Seen(Vec<(f64, bool)>);

const NAME: &str = "auc";

impl Metric for Auc {
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
        let n_rows = same_rows(NAME, &outputs, &labels)?;
        one_label_a_row(NAME, &labels)?;
        if n_rows > 0 && outputs.shape().row_size() != 1 {
            return Err(MetricError::OutputColumns { metric: NAME, outputs: *outputs.shape() });
        }
        if let Some(row) = outputs.values().iter().position(|score| score.is_nan()) {
            return Err(MetricError::NotANumber { metric: NAME, row });
        }
        let scored = outputs.values().iter().enumerate();
        self.0.extend(scored.map(|(row, &score)| (score, labels.number(row) > 0.0)));
        Ok(())
    }

    fn value(&self) -> f64 {
        let mut rows = self.0.clone();
        rows.sort_unstable_by(|a, b| a.0.total_cmp(&b.0));
        // Pairs won, in halves: an integer, so that the order of equal scores cannot matter.
        let (mut won, mut negatives, mut positives) = (0u128, 0u128, 0u128);
        // `==` and not the order's equality: -0.0 and 0.0 are one score.
        for tied in rows.chunk_by(|a, b| a.0 == b.0) {
            let tied_positives = tied.iter().filter(|row| row.1).count() as u128;
            let tied_negatives = tied.len() as u128 - tied_positives;
            won += tied_positives * (2 * negatives + tied_negatives);
            negatives += tied_negatives;
            positives += tied_positives;
        }
        won as f64 / (2 * negatives * positives) as f64
    }

    fn merge(&mut self, other: &dyn Accumulator) -> Result<(), MetricError> {
        self.0.extend(&same::<Self>(NAME, other)?.0);
        Ok(())
    }

    fn reset(&mut self) {
        self.0.clear();
    }
}

//! Area under the receiver operating characteristic.

use super::ranked::SeenRanked;
use super::{Accumulator, Metric, NoValue};

/// The area under the ROC curve: the share of (positive, negative) pairs in which the positive row has the
/// higher score, equal scores counting half, a pair by the product of its weights.
///
/// Exact over the whole set, by ranks (Mann and Whitney): every score is kept, 16 bytes a row, and sorted
/// when the value is asked for, O(n log n). Scores need not be probabilities; a label is positive from 1/2 on.
/// No value where there are no positive or no negative rows.
#[derive(Clone, Copy, Debug, Default)]
pub struct Auc;

impl Metric for Auc {
    fn name(&self) -> &'static str {
        "auc"
    }

    fn start(&self) -> Box<dyn Accumulator> {
        SeenRanked::start(self.name(), |ranked| {
            let (mut won, mut negatives, mut positives) = (0.0, 0.0, 0.0);
            for tied in ranked {
                won += tied.positives * (negatives + 0.5 * tied.negatives);
                negatives += tied.negatives;
                positives += tied.positives;
            }
            match (negatives, positives) {
                (0.0, 0.0) => Err(NoValue::NothingSeen),
                (0.0, _) => Err(NoValue::NoNegative),
                (_, 0.0) => Err(NoValue::NoPositive),
                _ => Ok(won / (negatives * positives)),
            }
        })
    }
}

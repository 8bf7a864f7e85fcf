//! Area under the receiver operating characteristic.

use super::ranked::SeenRanked;
use super::{Accumulator, Metric, NoValue};

/// The area under the ROC curve: the share of (positive, negative) pairs in which the positive
/// sample has the higher score. Equal scores count half, and a pair counts by the product of its
/// weights.
///
/// Exact over the whole set, by ranks (Mann and Whitney): every score is kept, 16 bytes a sample,
/// and sorted when the value is read, O(n log n). Scores need not be probabilities; a label is
/// positive from 1/2 on. No value without positive or without negative samples.
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

//! Area under the precision-recall curve.

use super::ranked::SeenRanked;
use super::{Accumulator, Metric, NoValue};

/// The area under the precision-recall curve, as average precision: `Σ (Rᵢ - Rᵢ₋₁) Pᵢ` over the distinct scores from the largest on, with
/// `Pᵢ` and `Rᵢ` precision and recall of the rows of at least that score. No interpolation, which would be too optimistic
/// (Davis and Goadrich, 2006); the same number as scikit-learn's `average_precision_score`.
///
/// For rare positives, where [`Auc`](super::Auc) is near 1 for any model. A model that guesses has the share of positive rows.
/// What is kept and what it costs is that of [`Auc`](super::Auc). No value where there are no positive rows.
#[doc(alias = "AveragePrecision")]
#[derive(Clone, Copy, Debug, Default)]
pub struct PrAuc;

impl Metric for PrAuc {
    fn name(&self) -> &'static str {
        "pr_auc"
    }

    fn start(&self) -> Box<dyn Accumulator> {
        SeenRanked::start(self.name(), |ranked| {
            let (mut sum, mut negatives, mut positives) = (0.0, 0.0, 0.0);
            for tied in ranked.iter().rev().filter(|tied| tied.positives + tied.negatives > 0.0) {
                positives += tied.positives;
                negatives += tied.negatives;
                sum += tied.positives * (positives / (positives + negatives));
            }
            match (negatives, positives) {
                (0.0, 0.0) => Err(NoValue::NothingSeen),
                (_, 0.0) => Err(NoValue::NoPositive),
                _ => Ok(sum / positives),
            }
        })
    }
}

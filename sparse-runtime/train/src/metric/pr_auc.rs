//! Area under the precision-recall curve.

use super::ranked::SeenRanked;
use super::{Accumulator, Metric, NoValue};

/// The area under the precision-recall curve, as average precision: `Σ (Rᵢ - Rᵢ₋₁) Pᵢ` over the
/// distinct scores from the largest on, with `Pᵢ` and `Rᵢ` precision and recall of the samples with
/// at least that score. There is no interpolation, which would be too optimistic (Davis and
/// Goadrich, 2006); the value equals scikit-learn's `average_precision_score`.
///
/// Use it for rare positives, where [`Auc`](super::Auc) is near 1 for any model. A model that
/// guesses has the share of positive samples. Memory and cost are those of [`Auc`](super::Auc). No
/// value without positive samples.
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

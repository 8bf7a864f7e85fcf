//! The F1 score of the positive class.

use super::confusion::SeenConfusion;
use super::{Accumulator, Metric};

/// The harmonic mean of precision and recall of the positive class: `2 tp / (2 tp + fp + fn)`, with
/// `tp` samples correctly predicted positive, `fp` wrongly, and `fn` positive samples missed; 0 if
/// `tp` is 0.
///
/// With one output a sample, it is the probability of the positive class, predicted from 1/2 on; a
/// label is positive from 1/2 on as well. With two, they are the scores of classes 0 and 1, of
/// which the larger is predicted (0 if they are equal), and labels are class ids.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct F1;

impl Metric for F1 {
    fn name(&self) -> &'static str {
        "f1"
    }

    fn start(&self) -> Box<dyn Accumulator> {
        SeenConfusion::start(self.name(), |counts| {
            if counts.true_positives == 0.0 {
                return 0.0;
            }
            let twice = 2.0 * counts.true_positives;
            twice / (twice + (counts.false_positives + counts.false_negatives))
        })
    }
}

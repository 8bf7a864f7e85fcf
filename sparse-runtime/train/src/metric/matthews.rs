//! The correlation of predicted and true classes.

use super::confusion::SeenConfusion;
use super::{Accumulator, Metric};

/// Matthews' correlation coefficient of two classes:
/// `(tp tn - fp fn) / √((tp + fp) (tp + fn) (tn + fp) (tn + fn))`, from -1 (all wrong) to 1 (all
/// right); 0 where only one class is predicted or occurs.
///
/// Outputs and labels are those of [`F1`](super::F1).
#[doc(alias = "Mcc")]
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Matthews;

impl Metric for Matthews {
    fn name(&self) -> &'static str {
        "mcc"
    }

    fn start(&self) -> Box<dyn Accumulator> {
        SeenConfusion::start(self.name(), |counts| {
            let [tp, fp, tn, fn_] = [
                counts.true_positives,
                counts.false_positives,
                counts.true_negatives,
                counts.false_negatives,
            ];
            let product = (tp + fp) * (tp + fn_) * (tn + fp) * (tn + fn_);
            if product == 0.0 { 0.0 } else { (tp * tn - fp * fn_) / product.sqrt() }
        })
    }
}

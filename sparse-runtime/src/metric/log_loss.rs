//! Negative log-likelihood of predicted probabilities.

use super::mean::Mean;
use super::{Accumulator, LabelsView, Metric, MetricError, one_label_a_row, same, same_rows};
use crate::formats::DenseView;

/// The mean over rows of `-ln p(label)`.
///
/// With one output a row, it is the probability of the positive class; a label is a probability as well (-1
/// counts as 0, so that -1/1 and 0/1 are both understood): `-(t ln p + (1 - t) ln(1 - p))`. With several, they
/// are the probabilities of classes, and labels are class ids.
///
/// Probabilities are clipped to [10⁻¹⁵, 1 - 10⁻¹⁵], so that one wrong certainty costs 34.5 and not infinity.
#[derive(Clone, Copy, Debug, Default)]
pub struct LogLoss;

#[derive(Default)]
struct Seen(Mean);

const NAME: &str = "log_loss";

/// Probabilities are clipped to this distance from 0 and 1.
const CLIP: f64 = 1e-15;

impl Metric for LogLoss {
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
        let n_classes = outputs.shape().row_size();
        let mut sum = 0.0;
        for (row, probabilities) in outputs.values().chunks_exact(n_classes.max(1)).enumerate() {
            sum -= match labels {
                _ if n_classes <= 1 => {
                    let p = clipped(row, probabilities[0])?;
                    let target = labels.number(row).clamp(0.0, 1.0);
                    target * p.ln() + (1.0 - target) * (1.0 - p).ln()
                }
                LabelsView::Classes(classes) => {
                    let class = classes.values()[row];
                    match probabilities.get(class as usize) {
                        Some(&p) => clipped(row, p)?.ln(),
                        None => {
                            return Err(MetricError::ClassOutOfRange {
                                metric: NAME,
                                row,
                                class,
                                classes: n_classes,
                            });
                        }
                    }
                }
                LabelsView::Real(_) => {
                    return Err(MetricError::LabelsNotClasses { metric: NAME, classes: n_classes });
                }
            };
        }
        self.0.add(sum, n_rows);
        Ok(())
    }

    fn value(&self) -> f64 {
        self.0.value()
    }

    fn merge(&mut self, other: &dyn Accumulator) -> Result<(), MetricError> {
        self.0.merge(&same::<Self>(NAME, other)?.0);
        Ok(())
    }

    fn reset(&mut self) {
        *self = Self::default();
    }
}

/// A probability, a little away from 0 and 1. Rounding may take an honest one a little beyond.
fn clipped(row: usize, probability: f64) -> Result<f64, MetricError> {
    if (-1e-6..=1.0 + 1e-6).contains(&probability) {
        return Ok(probability.clamp(CLIP, 1.0 - CLIP));
    }
    Err(MetricError::NotProbability { metric: NAME, row, value: probability })
}

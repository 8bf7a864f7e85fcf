//! Negative log-likelihood of predicted probabilities.

use super::link::{log_sum_exp, softplus};
use super::mean::{OfMean, by_mean};
use super::{LabelsView, MetricError, is_one_probability, no_nan, one_label_a_row, same_rows};
use nnz_arrays::formats::DenseView;
use nnz_step::model::{Link, Scores};

/// The mean over samples of `-ln p(label)`, also called cross-entropy or negative log-likelihood.
///
/// With one output a sample, it is the probability of the positive class; a label is a probability
/// as well (-1 counts as 0, so that -1/1 and 0/1 are both valid): `-(t ln p + (1 - t) ln(1 - p))`.
/// With several, they are the probabilities of classes, and labels are class ids.
///
/// Probabilities are clipped to [10⁻¹⁵, 1 - 10⁻¹⁵], so that one wrong certainty costs 34.5 and not
/// infinity. Probabilities that a model computes from scores by a sigmoid or a softmax are not
/// clipped: the logarithm is computed from the scores, as the loss is, and is finite.
#[doc(alias = "CrossEntropy")]
#[doc(alias = "NegativeLogLikelihood")]
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct LogLoss;

/// Probabilities are clipped to this distance from 0 and 1.
const CLIP: f64 = 1e-15;

by_mean!(LogLoss);

impl OfMean for LogLoss {
    const NAME: &'static str = "log_loss";

    fn terms(
        &self,
        outputs: &DenseView<'_, f64>,
        labels: &LabelsView<'_, f64>,
        add: impl FnMut(usize, f64),
    ) -> Result<(), MetricError> {
        negative_logarithms(Self::NAME, outputs, labels, None, add)
    }

    fn terms_of_scores(
        &self,
        scores: &Scores<'_, f64>,
        labels: &LabelsView<'_, f64>,
        add: impl FnMut(usize, f64),
    ) -> Result<bool, MetricError> {
        negative_logarithms_of_scores(Self::NAME, scores, labels, None, add)
    }
}

/// `-ln p(label)` of each sample of a batch; samples whose label is the class `ignored` are left
/// out.
pub(super) fn negative_logarithms(
    metric: &'static str,
    outputs: &DenseView<'_, f64>,
    labels: &LabelsView<'_, f64>,
    ignored: Option<i64>,
    mut add: impl FnMut(usize, f64),
) -> Result<(), MetricError> {
    same_rows(metric, outputs, labels)?;
    one_label_a_row(metric, labels)?;
    let n_classes = outputs.shape().row_size();
    for (row, probabilities) in outputs.values().chunks_exact(n_classes.max(1)).enumerate() {
        if let LabelsView::Classes(classes) = labels
            && ignored.is_some_and(|ignored| classes.number(row) == i128::from(ignored))
        {
            continue;
        }
        let logarithm = match labels {
            _ if is_one_probability(outputs, labels) => {
                let p = clipped(metric, row, probabilities[0])?;
                let target = labels.number(row).clamp(0.0, 1.0);
                target * p.ln() + (1.0 - target) * (1.0 - p).ln()
            }
            LabelsView::Classes(classes) => {
                match classes.get(row).and_then(|class| probabilities.get(class)) {
                    Some(&p) => clipped(metric, row, p)?.ln(),
                    None => {
                        return Err(MetricError::ClassOutOfRange {
                            metric,
                            row,
                            class: classes.number(row),
                            classes: n_classes,
                        });
                    }
                }
            }
            LabelsView::Real(_) => {
                return Err(MetricError::LabelsNotClasses { metric, classes: n_classes });
            }
        };
        add(row, -logarithm);
    }
    Ok(())
}

/// [`negative_logarithms`] by the scores of which probabilities are a link. False where the link of
/// one score is needed.
pub(super) fn negative_logarithms_of_scores(
    metric: &'static str,
    scores: &Scores<'_, f64>,
    labels: &LabelsView<'_, f64>,
    ignored: Option<i64>,
    mut add: impl FnMut(usize, f64),
) -> Result<bool, MetricError> {
    let (link, outputs) = (scores.link, &scores.values);
    let one_probability = is_one_probability(outputs, labels);
    match link {
        Link::Softmax if one_probability => return Ok(false),
        Link::Exp => return Ok(false),
        Link::Sigmoid | Link::Softmax => {}
    }
    same_rows(metric, outputs, labels)?;
    one_label_a_row(metric, labels)?;
    no_nan(metric, outputs)?;
    let n_classes = outputs.shape().row_size();
    for (row, scores) in outputs.values().chunks_exact(n_classes.max(1)).enumerate() {
        if let LabelsView::Classes(classes) = labels
            && ignored.is_some_and(|ignored| classes.number(row) == i128::from(ignored))
        {
            continue;
        }
        add(
            row,
            match labels {
                _ if one_probability => {
                    let target = labels.number(row).clamp(0.0, 1.0);
                    part(target, -scores[0]) + part(1.0 - target, scores[0])
                }
                LabelsView::Classes(classes) => {
                    let score = classes.get(row).and_then(|class| scores.get(class));
                    let Some(&score) = score else {
                        let class = classes.number(row);
                        return Err(MetricError::ClassOutOfRange {
                            metric,
                            row,
                            class,
                            classes: n_classes,
                        });
                    };
                    match link {
                        Link::Softmax => log_sum_exp(scores) - score,
                        _ => softplus(-score),
                    }
                }
                LabelsView::Real(_) => {
                    return Err(MetricError::LabelsNotClasses { metric, classes: n_classes });
                }
            },
        );
    }
    Ok(true)
}

/// `share · ln(1 + exp(s))`: 0 for an infinite score without a share.
fn part(share: f64, score: f64) -> f64 {
    if share == 0.0 { 0.0 } else { share * softplus(score) }
}

/// A probability, a little away from 0 and 1. Rounding may move a valid one slightly beyond.
fn clipped(metric: &'static str, row: usize, probability: f64) -> Result<f64, MetricError> {
    if (-1e-6..=1.0 + 1e-6).contains(&probability) {
        return Ok(probability.clamp(CLIP, 1.0 - CLIP));
    }
    Err(MetricError::NotProbability { metric, row, value: probability })
}

//! The share of rows that are classified rightly.

use super::mean::{OfMean, SeenMean};
use super::{
    Accumulator, LabelsView, Metric, MetricError, is_positive, largest, one_label_a_row, same_rows,
};
use crate::formats::DenseView;

/// The share of rows whose predicted class is their label.
///
/// With one output a row, it is the probability of the positive class, predicted from 0.5 on; a label is
/// positive above 0. With several, they are scores of classes, of which the largest is predicted (the first
/// of equal ones), and labels are class ids.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Accuracy;

impl Metric for Accuracy {
    fn name(&self) -> &'static str {
        Self::NAME
    }

    fn start(&self) -> Box<dyn Accumulator> {
        SeenMean::start(*self)
    }
}

impl OfMean for Accuracy {
    const NAME: &'static str = "accuracy";

    fn terms(
        &self,
        outputs: &DenseView<'_, f64>,
        labels: &LabelsView<'_, f64>,
    ) -> Result<(f64, usize), MetricError> {
        let n_rows = same_rows(Self::NAME, outputs, labels)?;
        one_label_a_row(Self::NAME, labels)?;
        let n_classes = outputs.shape().row_size();
        let rows = outputs.values().chunks_exact(n_classes.max(1));
        let n_right = match labels {
            _ if n_classes <= 1 => rows
                .enumerate()
                .filter(|&(row, score)| is_positive(score[0]) == (labels.number(row) > 0.0))
                .count(),
            LabelsView::Classes(classes) => {
                rows.zip(classes.iter()).filter(|&(scores, class)| largest(scores) == class).count()
            }
            LabelsView::Real(_) => {
                return Err(MetricError::LabelsNotClasses {
                    metric: Self::NAME,
                    classes: n_classes,
                });
            }
        };
        Ok((n_right as f64, n_rows))
    }
}

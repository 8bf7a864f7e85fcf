//! The share of rows that are classified rightly.

use super::mean::{OfMean, SeenMean};
use super::{
    Accumulator, LabelsView, Metric, MetricError, is_positive, largest, no_nan, one_label_a_row,
    same_rows,
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
        mut add: impl FnMut(usize, f64),
    ) -> Result<(), MetricError> {
        same_rows(Self::NAME, outputs, labels)?;
        one_label_a_row(Self::NAME, labels)?;
        no_nan(Self::NAME, outputs)?;
        let n_classes = outputs.shape().row_size();
        let rows = outputs.values().chunks_exact(n_classes.max(1));
        let mut count = |row, is_right| add(row, f64::from(u8::from(is_right)));
        match labels {
            _ if n_classes <= 1 => {
                for (row, score) in rows.enumerate() {
                    count(row, is_positive(score[0]) == (labels.number(row) > 0.0));
                }
            }
            LabelsView::Classes(classes) => {
                for (row, (scores, class)) in rows.zip(classes.iter()).enumerate() {
                    count(row, largest(scores) == class);
                }
            }
            LabelsView::Real(_) => {
                return Err(MetricError::LabelsNotClasses {
                    metric: Self::NAME,
                    classes: n_classes,
                });
            }
        }
        Ok(())
    }
}

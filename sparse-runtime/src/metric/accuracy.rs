//! The share of rows that are classified rightly.

use super::mean::Mean;
use super::{Accumulator, LabelsView, Metric, MetricError, one_label_a_row, same, same_rows};
use crate::formats::DenseView;

/// The share of rows whose predicted class is their label.
///
/// With one output a row, it is the probability of the positive class, predicted from 0.5 on; a label is
/// positive above 0. With several, they are scores of classes, of which the largest is predicted (the first
/// of equal ones), and labels are class ids.
#[derive(Clone, Copy, Debug, Default)]
pub struct Accuracy;

#[derive(Default)]
struct Seen(Mean);

const NAME: &str = "accuracy";

impl Metric for Accuracy {
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
        let rows = outputs.values().chunks_exact(n_classes.max(1));
        let n_right = match labels {
            _ if n_classes <= 1 => rows
                .enumerate()
                .filter(|&(row, score)| (score[0] >= 0.5) == (labels.number(row) > 0.0))
                .count(),
            LabelsView::Classes(classes) => rows
                .zip(classes.values())
                .filter(|&(scores, &class)| largest(scores) == class as usize)
                .count(),
            LabelsView::Real(_) => {
                return Err(MetricError::LabelsNotClasses { metric: NAME, classes: n_classes });
            }
        };
        self.0.add(n_right as f64, n_rows);
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

/// The position of the largest score, the first of equal ones.
fn largest(scores: &[f64]) -> usize {
    let mut best = 0;
    for (class, score) in scores.iter().enumerate() {
        if *score > scores[best] {
            best = class;
        }
    }
    best
}

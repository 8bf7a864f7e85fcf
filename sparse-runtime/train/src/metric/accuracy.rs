//! The share of samples that are classified correctly.

use super::mean::{OfMean, by_mean};
use super::{
    LabelsView, MetricError, class_labels, is_one_probability, is_positive, largest, no_nan,
    one_label_a_row, same_rows, score_is_positive,
};
use nnz_arrays::formats::DenseView;
use nnz_step::model::Scores;

/// The share of samples whose predicted class is their label.
///
/// With one output a sample, it is the probability of the positive class, predicted from 1/2 on; a
/// label is positive from 1/2 on as well. With several, they are scores of classes, of which the
/// largest is predicted (the first of equal ones), and labels are class ids. Outputs `[n, 1]` are
/// scores of one class if labels are class ids.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Accuracy;

by_mean!(Accuracy);

impl OfMean for Accuracy {
    const NAME: &'static str = "accuracy";

    fn terms(
        &self,
        outputs: &DenseView<'_, f64>,
        labels: &LabelsView<'_, f64>,
        add: impl FnMut(usize, f64),
    ) -> Result<(), MetricError> {
        right(outputs, labels, is_positive, add)
    }

    fn terms_of_scores(
        &self,
        scores: &Scores<'_, f64>,
        labels: &LabelsView<'_, f64>,
        add: impl FnMut(usize, f64),
    ) -> Result<bool, MetricError> {
        let outputs = &scores.values;
        let is_positive = match score_is_positive(scores.link) {
            None if is_one_probability(outputs, labels) => return Ok(false),
            // A link leaves the order of a row's scores as it is.
            other => other.unwrap_or(is_positive),
        };
        right(outputs, labels, is_positive, add).map(|()| true)
    }
}

/// Whether each sample is classified correctly, with one output a sample as `predicts` says.
fn right(
    outputs: &DenseView<'_, f64>,
    labels: &LabelsView<'_, f64>,
    predicts: fn(f64) -> bool,
    mut add: impl FnMut(usize, f64),
) -> Result<(), MetricError> {
    const NAME: &str = Accuracy::NAME;
    same_rows(NAME, outputs, labels)?;
    one_label_a_row(NAME, labels)?;
    no_nan(NAME, outputs)?;
    let n_classes = outputs.shape().row_size();
    let rows = outputs.values().chunks_exact(n_classes.max(1));
    let mut count = |row, is_right| add(row, f64::from(u8::from(is_right)));
    match labels {
        _ if is_one_probability(outputs, labels) => {
            for (row, score) in rows.enumerate() {
                count(row, predicts(score[0]) == is_positive(labels.number(row)));
            }
        }
        LabelsView::Classes(classes) => {
            // Of one class: an id of another one is of labels of two classes, for which there is no
            // score.
            if n_classes == 1 {
                class_labels(NAME, outputs, labels)?;
            }
            for (row, (scores, class)) in rows.zip(classes.iter()).enumerate() {
                count(row, largest(scores) == class);
            }
        }
        LabelsView::Real(_) => {
            return Err(MetricError::LabelsNotClasses { metric: NAME, classes: n_classes });
        }
    }
    Ok(())
}

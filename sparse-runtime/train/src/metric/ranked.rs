//! Metrics of the order in which scores rank positive and negative samples.

use super::{
    Accumulator, LabelsView, MetricError, NoValue, RowWeights, is_positive, no_nan,
    one_label_a_row, same, same_rows,
};
use nnz_arrays::formats::DenseView;
use nnz_step::model::{Link, Scores};

/// Samples of equal score.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Tied {
    /// The weight of the positive samples.
    pub(super) positives: f64,
    /// The weight of the negative samples.
    pub(super) negatives: f64,
}

/// The accumulator of a metric that follows from the order of scores: every sample, 16 bytes each.
pub(super) struct SeenRanked {
    metric: &'static str,
    /// The metric, from the samples by ascending score.
    value: fn(&[Tied]) -> Result<f64, NoValue>,
    rows: Vec<Row>,
}

/// A score, and the weight of its sample, with the sign - if the sample is negative (a 0 may be
/// too).
type Row = [f64; 2];

impl SeenRanked {
    /// An empty accumulator.
    pub(super) fn start(
        metric: &'static str,
        value: fn(&[Tied]) -> Result<f64, NoValue>,
    ) -> Box<dyn Accumulator> {
        Box::new(SeenRanked { metric, value, rows: Vec::new() })
    }
}

impl Accumulator for SeenRanked {
    fn update_weighted(
        &mut self,
        outputs: DenseView<'_, f64>,
        labels: LabelsView<'_, f64>,
        weights: RowWeights<'_>,
    ) -> Result<(), MetricError> {
        let metric = self.metric;
        let n_rows = same_rows(metric, &outputs, &labels)?;
        one_label_a_row(metric, &labels)?;
        if n_rows > 0 && outputs.shape().row_size() != 1 {
            return Err(MetricError::OutputColumns { metric, outputs: *outputs.shape() });
        }
        no_nan(metric, &outputs)?;
        let scored = outputs.values().iter().enumerate();
        self.rows.extend(scored.map(|(row, &score)| {
            let weight = weights.of(row);
            [score, if is_positive(labels.number(row)) { weight } else { -weight }]
        }));
        Ok(())
    }

    fn update_scores(
        &mut self,
        scores: Scores<'_, f64>,
        labels: LabelsView<'_, f64>,
        weights: RowWeights<'_>,
    ) -> Result<bool, MetricError> {
        match scores.link {
            Link::Sigmoid | Link::Exp => {
                self.update_weighted(scores.values, labels, weights).map(|()| true)
            }
            // The order of the samples is not that of their scores, which count within a row.
            Link::Softmax => Ok(false),
        }
    }

    fn value(&self) -> Result<f64, NoValue> {
        let mut rows = self.rows.clone();
        // A total order, so that sums of weights do not depend on the order in which rows were
        // seen. Not the sign of a zero: -0.0 and 0.0 are one score.
        rows.sort_unstable_by(|a, b| {
            (a[0] + 0.0).total_cmp(&(b[0] + 0.0)).then(a[1].total_cmp(&b[1]))
        });
        let tied = rows.chunk_by(|a, b| a[0] == b[0]).map(|rows| {
            let mut tied = Tied::default();
            for &[_, weight] in rows {
                match weight.is_sign_positive() {
                    true => tied.positives += weight,
                    false => tied.negatives -= weight,
                }
            }
            tied
        });
        (self.value)(&tied.collect::<Vec<_>>())
    }

    fn merge(&mut self, other: &dyn Accumulator) -> Result<(), MetricError> {
        let other = same::<Self>(self.metric, other)?;
        if self.metric != other.metric {
            return Err(MetricError::OtherMetric { metric: self.metric });
        }
        self.rows.extend(&other.rows);
        Ok(())
    }

    fn reset(&mut self) {
        self.rows.clear();
    }

    fn numbers(&self) -> Vec<f64> {
        self.rows.as_flattened().to_vec()
    }

    fn set_numbers(&mut self, numbers: &[f64]) -> Result<(), MetricError> {
        let (rows, []) = numbers.as_chunks() else {
            return Err(MetricError::OtherMetric { metric: self.metric });
        };
        self.rows = rows.to_vec();
        Ok(())
    }
}

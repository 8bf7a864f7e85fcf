//! Metrics of the order in which scores rank positive and negative samples.

use super::{
    Accumulator, LabelsView, Metric, MetricError, NoValue, RowWeights, is_positive, no_nan,
    one_label_a_row, same, same_rows,
};
use nnz_arrays::formats::DenseView;
use nnz_step::model::{Link, Scores};

/// Samples of equal score.
#[derive(Clone, Copy, Debug, Default)]
struct Tied {
    /// The weight of the positive samples.
    positives: f64,
    /// The weight of the negative samples.
    negatives: f64,
}

/// Metrics that follow from the samples by ascending score.
macro_rules! metrics {
    ($($(#[$docs:meta])* $Metric:ident $name:literal = $value:expr;)*) => {$(
        $(#[$docs])*
        #[derive(Clone, Copy, Debug, Default)]
        pub struct $Metric;

        impl Metric for $Metric {
            fn name(&self) -> &'static str {
                $name
            }

            fn start(&self) -> Box<dyn Accumulator> {
                SeenRanked::start($name, $value)
            }
        }
    )*};
}

metrics! {
    /// The area under the ROC curve: the share of (positive, negative) pairs in which the positive
    /// sample has the higher score. Equal scores count half, and a pair counts by the product of
    /// its weights.
    ///
    /// Exact over the whole set, by ranks (Mann and Whitney): every score is kept, 16 bytes a
    /// sample, and sorted when the value is read, O(n log n). Scores need not be probabilities; a
    /// label is positive from 1/2 on. No value without positive or without negative samples.
    Auc "auc" = |ranked| {
        let (mut won, mut negatives, mut positives) = (0.0, 0.0, 0.0);
        for tied in ranked {
            won += tied.positives * (negatives + 0.5 * tied.negatives);
            negatives += tied.negatives;
            positives += tied.positives;
        }
        match (negatives, positives) {
            (0.0, 0.0) => Err(NoValue::NothingSeen),
            (0.0, _) => Err(NoValue::NoNegative),
            (_, 0.0) => Err(NoValue::NoPositive),
            _ => Ok(won / (negatives * positives)),
        }
    };
    /// The area under the precision-recall curve, as average precision: `Σ (Rᵢ - Rᵢ₋₁) Pᵢ` over the
    /// distinct scores from the largest on, with `Pᵢ` and `Rᵢ` precision and recall of the samples
    /// with at least that score. There is no interpolation, which would be too optimistic (Davis
    /// and Goadrich, 2006); the value equals scikit-learn's `average_precision_score`.
    ///
    /// Use it for rare positives, where [`Auc`] is near 1 for any model. A model that
    /// guesses has the share of positive samples. Memory and cost are those of [`Auc`]. No
    /// value without positive samples.
    #[doc(alias = "AveragePrecision")]
    PrAuc "pr_auc" = |ranked| {
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
    };
}

/// The accumulator of a metric that follows from the order of scores: every sample, 16 bytes each.
struct SeenRanked {
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
    fn start(
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
                if weight.is_sign_positive() {
                    tied.positives += weight
                } else {
                    tied.negatives -= weight
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

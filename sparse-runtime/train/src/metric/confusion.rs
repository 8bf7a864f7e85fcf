//! Counts of correct and wrong predictions of two classes, and metrics of them.

use super::exact_sum::ExactSum;
use super::{
    Accumulator, LabelsView, Metric, MetricError, NoValue, RowWeights, class_labels, is_positive,
    largest, no_nan, one_label_a_row, same, same_rows, score_is_positive,
};
use nnz_arrays::formats::DenseView;
use nnz_step::model::{Link, Scores};

/// The weights of samples by predicted and true class; without weights, their counts.
#[derive(Clone, Copy, Debug, Default)]
struct Confusion {
    true_positives: f64,
    false_positives: f64,
    true_negatives: f64,
    false_negatives: f64,
}

/// Metrics that are a function of these numbers.
macro_rules! metrics {
    ($($(#[$docs:meta])* $Metric:ident $name:literal = $value:expr;)*) => {$(
        $(#[$docs])*
        #[derive(Clone, Copy, Debug, Default, PartialEq)]
        pub struct $Metric;

        impl Metric for $Metric {
            fn name(&self) -> &'static str {
                $name
            }

            fn start(&self) -> Box<dyn Accumulator> {
                SeenConfusion::start($name, $value)
            }
        }
    )*};
}

metrics! {
    /// The harmonic mean of precision and recall of the positive class: `2 tp / (2 tp + fp + fn)`,
    /// with `tp` samples correctly predicted positive, `fp` wrongly, and `fn` positive samples
    /// missed; 0 if `tp` is 0.
    ///
    /// With one output a sample, it is the probability of the positive class, predicted from 1/2
    /// on; a label is positive from 1/2 on as well. With two, they are the scores of classes 0 and
    /// 1, of which the larger is predicted (0 if they are equal), and labels are class ids.
    F1 "f1" = |counts| {
        if counts.true_positives == 0.0 {
            return 0.0;
        }
        let twice = 2.0 * counts.true_positives;
        twice / (twice + (counts.false_positives + counts.false_negatives))
    };
    /// Matthews' correlation coefficient of two classes: `(tp tn - fp fn) / √((tp + fp) (tp + fn)
    /// (tn + fp) (tn + fn))`, from -1 (all wrong) to 1 (all right); 0 where only one class is
    /// predicted or occurs.
    ///
    /// Outputs and labels are those of [`F1`].
    #[doc(alias = "Mcc")]
    Matthews "mcc" = |counts| {
        let [tp, fp, tn, fn_] = [
            counts.true_positives,
            counts.false_positives,
            counts.true_negatives,
            counts.false_negatives,
        ];
        let product = (tp + fp) * (tp + fn_) * (tn + fp) * (tn + fn_);
        if product == 0.0 { 0.0 } else { (tp * tn - fp * fn_) / product.sqrt() }
    };
}

/// The sums of these weights, in the order of the fields.
#[derive(Clone, Debug, Default)]
struct Counts([ExactSum; 4]);

impl Counts {
    fn count(&mut self, predicted: bool, positive: bool, weight: f64) {
        let cell = match (predicted, positive) {
            (true, true) => 0,
            (true, false) => 1,
            (false, false) => 2,
            (false, true) => 3,
        };
        self.0[cell].add(weight);
    }

    fn confusion(&self) -> Confusion {
        let [true_positives, false_positives, true_negatives, false_negatives] =
            self.0.each_ref().map(ExactSum::value);
        Confusion { true_positives, false_positives, true_negatives, false_negatives }
    }
}

/// The accumulator of a metric that follows from these numbers.
struct SeenConfusion {
    metric: &'static str,
    value: fn(&Confusion) -> f64,
    counts: Counts,
}

impl SeenConfusion {
    /// An empty accumulator. `value` is not called without samples.
    fn start(metric: &'static str, value: fn(&Confusion) -> f64) -> Box<dyn Accumulator> {
        Box::new(SeenConfusion { metric, value, counts: Counts::default() })
    }
}

impl SeenConfusion {
    /// Counts a batch, with one output a sample as `predicts` says.
    fn see(
        &mut self,
        outputs: &DenseView<'_, f64>,
        labels: &LabelsView<'_, f64>,
        weights: RowWeights<'_>,
        predicts: fn(f64) -> bool,
    ) -> Result<(), MetricError> {
        let n_rows = same_rows(self.metric, outputs, labels)?;
        one_label_a_row(self.metric, labels)?;
        no_nan(self.metric, outputs)?;
        match outputs.shape().row_size() {
            _ if n_rows == 0 => {}
            1 => {
                // Ids of two classes.
                if let LabelsView::Classes(classes) = labels
                    && let Some((row, class)) = classes.first_beyond(2)
                {
                    let metric = self.metric;
                    return Err(MetricError::ClassOutOfRange { metric, row, class, classes: 2 });
                }
                for (row, &output) in outputs.values().iter().enumerate() {
                    let positive = is_positive(labels.number(row));
                    self.counts.count(predicts(output), positive, weights.of(row));
                }
            }
            2 => {
                let classes = class_labels(self.metric, outputs, labels)?;
                let scores = outputs.values().chunks_exact(2);
                for (row, (scores, class)) in scores.zip(classes.iter()).enumerate() {
                    self.counts.count(largest(scores) == 1, class == 1, weights.of(row));
                }
            }
            _ => {
                return Err(MetricError::NotBinary {
                    metric: self.metric,
                    outputs: *outputs.shape(),
                });
            }
        }
        Ok(())
    }
}

impl Accumulator for SeenConfusion {
    fn update_weighted(
        &mut self,
        outputs: DenseView<'_, f64>,
        labels: LabelsView<'_, f64>,
        weights: RowWeights<'_>,
    ) -> Result<(), MetricError> {
        self.see(&outputs, &labels, weights, is_positive)
    }

    fn update_scores(
        &mut self,
        scores: Scores<'_, f64>,
        labels: LabelsView<'_, f64>,
        weights: RowWeights<'_>,
    ) -> Result<bool, MetricError> {
        let outputs = &scores.values;
        let predicts = match score_is_positive(scores.link) {
            // Of one class there is nothing to tell apart.
            None if scores.link == Link::Softmax && outputs.shape().row_size() == 1 => {
                let (metric, outputs) = (self.metric, *outputs.shape());
                return Err(MetricError::NotBinary { metric, outputs });
            }
            None if outputs.shape().row_size() <= 1 => return Ok(false),
            // A link leaves the order of a row's scores as it is.
            other => other.unwrap_or(is_positive),
        };
        self.see(outputs, &labels, weights, predicts).map(|()| true)
    }

    fn value(&self) -> Result<f64, NoValue> {
        let counts = self.counts.confusion();
        let Confusion { true_positives, false_positives, true_negatives, false_negatives } = counts;
        let total = true_positives + false_positives + true_negatives + false_negatives;
        if total == 0.0 { Err(NoValue::NothingSeen) } else { Ok((self.value)(&counts)) }
    }

    fn merge(&mut self, other: &dyn Accumulator) -> Result<(), MetricError> {
        let other = same::<Self>(self.metric, other)?;
        if self.metric != other.metric {
            return Err(MetricError::OtherMetric { metric: self.metric });
        }
        for (sum, other) in self.counts.0.iter_mut().zip(&other.counts.0) {
            sum.merge(other);
        }
        Ok(())
    }

    fn reset(&mut self) {
        self.counts = Counts::default();
    }

    fn numbers(&self) -> Vec<f64> {
        self.counts.0.iter().flat_map(ExactSum::numbers).collect()
    }

    fn set_numbers(&mut self, numbers: &[f64]) -> Result<(), MetricError> {
        let other = MetricError::OtherMetric { metric: self.metric };
        let sums = numbers.chunks(ExactSum::N_NUMBERS).map(ExactSum::of_numbers);
        let sums = sums.collect::<Option<Vec<_>>>().and_then(|sums| sums.try_into().ok());
        self.counts = Counts(sums.ok_or(other)?);
        Ok(())
    }
}

//! Counts of correct and wrong predictions of two classes, and metrics of them.

use super::exact_sum::ExactSum;
use super::{
    Accumulator, LabelsView, Metric, MetricError, NoValue, RowWeights, class_labels, is_positive,
    largest, no_nan, one_label_a_row, same, same_rows,
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

/// Metrics that are a function of these numbers, with predictions from 1/2 on.
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
                SeenConfusion::start($name, HALF, $value)
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

/// The probability from which the positive class is predicted, unless another is given.
const HALF: f64 = 0.5;

/// Metrics that are a function of these numbers, with predictions from a threshold on.
macro_rules! metrics_at {
    ($($(#[$docs:meta])* $Metric:ident $name:literal = $value:expr;)*) => {$(
        $(#[$docs])*
        #[derive(Clone, Copy, Debug, PartialEq)]
        pub struct $Metric {
            /// The probability from which a sample is predicted positive, from 0 to 1.
            pub threshold: f64,
        }

        /// From 1/2 on.
        impl Default for $Metric {
            fn default() -> Self {
                $Metric { threshold: HALF }
            }
        }

        impl Metric for $Metric {
            fn name(&self) -> &'static str {
                $name
            }

            fn start(&self) -> Box<dyn Accumulator> {
                SeenConfusion::start($name, self.threshold, $value)
            }
        }
    )*};
}

metrics_at! {
    /// The share of the samples predicted positive that are positive, `tp / (tp + fp)`; 0 if none
    /// is predicted positive.
    ///
    /// Outputs and labels are those of [`F1`]. A sample of one output is predicted positive from
    /// the threshold on. With two outputs the larger is predicted, whatever the threshold.
    ///
    /// ```
    /// use nnz::formats::Dense;
    /// use nnz::metric::{LabelsView, Metric, Precision, Recall};
    ///
    /// let outputs = Dense::from_rows(&[[0.9f32], [0.6], [0.3], [0.2]]);
    /// let labels = Dense::from_rows(&[[1.0f32], [0.0], [1.0], [0.0]]);
    /// let labels = LabelsView::Real(labels.view());
    /// assert_eq!(Precision { threshold: 0.25 }.evaluate(outputs.view(), labels)?, 2.0 / 3.0);
    /// assert_eq!(Recall { threshold: 0.25 }.evaluate(outputs.view(), labels)?, 1.0);
    /// assert_eq!(Recall::default().evaluate(outputs.view(), labels)?, 0.5);
    /// # Ok::<(), nnz::Error>(())
    /// ```
    Precision "precision" = |counts| {
        share(counts.true_positives, counts.false_positives)
    };
    /// The share of the positive samples that are predicted positive, `tp / (tp + fn)`; 0 if none
    /// is positive.
    ///
    /// Outputs and labels are those of [`Precision`].
    #[doc(alias = "Sensitivity")]
    Recall "recall" = |counts| {
        share(counts.true_positives, counts.false_negatives)
    };
}

/// `part / (part + rest)`; 0 without either.
fn share(part: f64, rest: f64) -> f64 {
    if part == 0.0 { 0.0 } else { part / (part + rest) }
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
    /// The probability from which a sample of one output is predicted positive.
    threshold: f64,
    value: fn(&Confusion) -> f64,
    counts: Counts,
}

impl SeenConfusion {
    /// An empty accumulator. `value` is not called without samples.
    fn start(
        metric: &'static str,
        threshold: f64,
        value: fn(&Confusion) -> f64,
    ) -> Box<dyn Accumulator> {
        Box::new(SeenConfusion { metric, threshold, value, counts: Counts::default() })
    }
}

impl SeenConfusion {
    /// Counts a batch; one output a sample predicts the positive class from `threshold` on.
    fn see(
        &mut self,
        outputs: &DenseView<'_, f64>,
        labels: &LabelsView<'_, f64>,
        weights: RowWeights<'_>,
        threshold: f64,
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
                    self.counts.count(output >= threshold, positive, weights.of(row));
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
        self.see(&outputs, &labels, weights, self.threshold)
    }

    fn update_scores(
        &mut self,
        scores: Scores<'_, f64>,
        labels: LabelsView<'_, f64>,
        weights: RowWeights<'_>,
    ) -> Result<bool, MetricError> {
        let outputs = &scores.values;
        let threshold = match scores.link {
            // The score of that probability: 0 of 1/2, infinite of 0 and 1.
            Link::Sigmoid => (self.threshold / (1.0 - self.threshold)).ln(),
            // Of one class there is nothing to tell apart.
            Link::Softmax if outputs.shape().row_size() == 1 => {
                let (metric, outputs) = (self.metric, *outputs.shape());
                return Err(MetricError::NotBinary { metric, outputs });
            }
            _ if outputs.shape().row_size() <= 1 => return Ok(false),
            // A link leaves the order of a row's scores as it is.
            _ => self.threshold,
        };
        self.see(outputs, &labels, weights, threshold).map(|()| true)
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

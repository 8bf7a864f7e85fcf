//! The mean of a metric over batches.

use super::mean::Mean;
use super::{Accumulator, LabelsView, Metric, MetricError, NoValue, RowWeights, same};
use nnz_arrays::formats::DenseView;
use nnz_step::model::Scores;

/// The mean over batches of a metric's value on each, all batches with equal weight, as some
/// libraries report metrics.
///
/// Unlike the metric itself it depends on the cut into batches: the root of a mean is not the mean
/// of roots, and a short last batch weighs as much as a full one. It has no value once the metric
/// has none on some batch. It has the metric's name.
///
/// ```
/// use nnz::formats::Dense;
/// use nnz::metric::{BatchMean, LabelsView, Metric, Rmse};
///
/// let (mut exact, mut mean) = (Rmse.start(), BatchMean(Rmse).start());
/// for error in [3.0, 4.0] {
///     let (output, label) = (Dense::from_rows(&[[error]]), Dense::from_rows(&[[0.0]]));
///     exact.update(output.view(), LabelsView::Real(label.view()))?;
///     mean.update(output.view(), LabelsView::Real(label.view()))?;
/// }
/// assert_eq!((exact.value(), mean.value()), (Ok(12.5f64.sqrt()), Ok(3.5)));
/// # Ok::<(), nnz::Error>(())
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct BatchMean<M>(
    /// The metric of a batch.
    pub M,
);

struct Seen {
    metric: &'static str,
    batch: Box<dyn Accumulator>,
    mean: Mean,
    /// The reason why the metric had no value on a batch: the first one.
    absent: Option<NoValue>,
}

impl Seen {
    fn end_batch(&mut self) {
        match self.batch.value() {
            Ok(value) => self.mean.add(value, 1.0),
            Err(why) => {
                self.absent.get_or_insert(why);
                self.mean.add(f64::NAN, 1.0);
            }
        }
    }
}

impl<M: Metric> Metric for BatchMean<M> {
    fn name(&self) -> &'static str {
        self.0.name()
    }

    fn start(&self) -> Box<dyn Accumulator> {
        Box::new(Seen {
            metric: self.name(),
            batch: self.0.start(),
            mean: Mean::default(),
            absent: None,
        })
    }
}

impl Accumulator for Seen {
    fn update_weighted(
        &mut self,
        outputs: DenseView<'_, f64>,
        labels: LabelsView<'_, f64>,
        weights: RowWeights<'_>,
    ) -> Result<(), MetricError> {
        self.batch.reset();
        self.batch.update_weighted(outputs, labels, weights)?;
        if labels.n_rows() > 0 {
            self.end_batch();
        }
        Ok(())
    }

    fn update_scores(
        &mut self,
        scores: Scores<'_, f64>,
        labels: LabelsView<'_, f64>,
        weights: RowWeights<'_>,
    ) -> Result<bool, MetricError> {
        self.batch.reset();
        let is_seen = self.batch.update_scores(scores, labels, weights)?;
        if is_seen && labels.n_rows() > 0 {
            self.end_batch();
        }
        Ok(is_seen)
    }

    fn value(&self) -> Result<f64, NoValue> {
        match self.absent {
            Some(why) => Err(why),
            None => NoValue::unless_finite(self.mean.value()?),
        }
    }

    fn merge(&mut self, other: &dyn Accumulator) -> Result<(), MetricError> {
        let other = same::<Self>(self.metric, other)?;
        // The batches seen last are of no use any more: merging them tells whether the metrics are
        // the same.
        self.batch.merge(&*other.batch)?;
        self.mean.merge(&other.mean);
        self.absent = self.absent.or(other.absent);
        Ok(())
    }

    fn reset(&mut self) {
        (self.mean, self.absent) = (Mean::default(), None);
    }

    fn numbers(&self) -> Vec<f64> {
        self.mean.numbers()
    }

    fn set_numbers(&mut self, numbers: &[f64]) -> Result<(), MetricError> {
        let other = MetricError::OtherMetric { metric: self.metric };
        self.mean = Mean::of_numbers(numbers).ok_or(other)?;
        Ok(())
    }
}

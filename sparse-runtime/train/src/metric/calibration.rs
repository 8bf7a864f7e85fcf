//! Predicted probabilities beside how often the positive class occurs.

use super::exact_sum::ExactSum;
use super::{
    Accumulator, LabelsView, Metric, MetricError, NoValue, RowWeights, one_label_a_row, same,
    same_rows,
};
use nnz_arrays::formats::DenseView;
use sparse_core::picture::{CalibrationPoint, calibration_svg};

/// The expected calibration error: the mean over samples of the distance between the mean predicted
/// probability and the share of positive samples, both of the bin that the sample's prediction is
/// in. Bins divide the probabilities from 0 to 1 into parts of equal width. 0 is best.
///
/// Source: Naeini, Cooper and Hauskrecht, "Obtaining well calibrated probabilities using Bayesian
/// binning", AAAI 2015. Outputs are one probability a sample; a label is a probability as well (-1
/// counts as 0). [`seen`](Self::seen) keeps the bins, for a table.
///
/// ```
/// use nnz::formats::Dense;
/// use nnz::metric::{Accumulator, Calibration, LabelsView};
///
/// let mut seen = Calibration { n_bins: 2 }.seen();
/// let outputs = Dense::from_rows(&[[0.1f64], [0.3], [0.9]]);
/// let labels = Dense::from_rows(&[[0.0f64], [1.0], [1.0]]);
/// seen.update(outputs.view(), LabelsView::Real(labels.view()))?;
/// assert_eq!(seen.bins()[0].share_of_positives(), Some(0.5));
/// # Ok::<(), nnz::Error>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Calibration {
    /// The number of bins; 0 counts as 1.
    pub n_bins: usize,
}

/// Ten bins.
impl Default for Calibration {
    fn default() -> Self {
        Calibration { n_bins: 10 }
    }
}

impl Calibration {
    /// An empty accumulator.
    pub fn seen(&self) -> SeenCalibration {
        SeenCalibration { bins: vec![Sums::default(); self.n_bins.max(1)] }
    }
}

impl Metric for Calibration {
    fn name(&self) -> &'static str {
        NAME
    }

    fn start(&self) -> Box<dyn Accumulator> {
        Box::new(self.seen())
    }
}

const NAME: &str = "calibration_error";

/// The samples whose predicted probability is in a range.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CalibrationBin {
    /// The least probability.
    pub low: f64,
    /// The end: of the last bin the largest probability, of others the least of the next bin.
    pub high: f64,
    /// The weight of the samples; without weights, their number.
    pub weight: f64,
    /// The sum of the predictions, by weight.
    predictions: f64,
    /// The weight of the positive samples.
    positives: f64,
}

impl CalibrationBin {
    /// The mean predicted probability; `None` without samples.
    pub fn mean_prediction(&self) -> Option<f64> {
        (self.weight > 0.0).then(|| self.predictions / self.weight)
    }

    /// The share of positive samples; `None` without samples.
    pub fn share_of_positives(&self) -> Option<f64> {
        (self.weight > 0.0).then(|| self.positives / self.weight)
    }

    /// The table as an SVG picture: the share of positive samples of each bin over its mean
    /// prediction. Bins without samples are left out. The picture has colours for light and for
    /// dark pages. O(bins).
    ///
    /// ```
    /// use nnz::formats::Dense;
    /// use nnz::metric::{Accumulator, Calibration, CalibrationBin, LabelsView};
    ///
    /// let mut seen = Calibration::default().seen();
    /// let outputs = Dense::from_rows(&[[0.12f64], [0.35], [0.91]]);
    /// let labels = Dense::from_rows(&[[0.0f64], [1.0], [1.0]]);
    /// seen.update(outputs.view(), LabelsView::Real(labels.view()))?;
    /// let picture = CalibrationBin::to_svg(&seen.bins());
    /// assert!(picture.starts_with("<svg "));
    /// # Ok::<(), nnz::Error>(())
    /// ```
    pub fn to_svg(bins: &[CalibrationBin]) -> String {
        let points = bins.iter().filter_map(|bin| {
            let (prediction, positives) = (bin.mean_prediction()?, bin.share_of_positives()?);
            Some(CalibrationPoint { prediction, positives, weight: bin.weight })
        });
        calibration_svg("Share of positives by prediction", &points.collect::<Vec<_>>())
    }
}

/// The accumulator of [`Calibration`].
#[derive(Clone, Debug)]
pub struct SeenCalibration {
    bins: Vec<Sums>,
}

/// Of the samples of a bin: weights, weighted predictions, and weights of positive samples.
type Sums = [ExactSum; 3];

impl SeenCalibration {
    /// The bins from the least probabilities on.
    pub fn bins(&self) -> Vec<CalibrationBin> {
        let width = 1.0 / self.bins.len() as f64;
        let bin = |(index, sums): (usize, &Sums)| {
            let [weight, predictions, positives] = sums.each_ref().map(ExactSum::value);
            let (low, high) = (index as f64 * width, (index + 1) as f64 * width);
            CalibrationBin { low, high, weight, predictions, positives }
        };
        self.bins.iter().enumerate().map(bin).collect()
    }
}

impl Accumulator for SeenCalibration {
    fn update_weighted(
        &mut self,
        outputs: DenseView<'_, f64>,
        labels: LabelsView<'_, f64>,
        weights: RowWeights<'_>,
    ) -> Result<(), MetricError> {
        let metric = NAME;
        let n_rows = same_rows(metric, &outputs, &labels)?;
        one_label_a_row(metric, &labels)?;
        if n_rows > 0 && outputs.shape().row_size() != 1 {
            return Err(MetricError::OutputColumns { metric, outputs: *outputs.shape() });
        }
        let probabilities = outputs.values();
        // Rounding may move a probability slightly beyond.
        let is_probability = |p: &f64| (-1e-6..=1.0 + 1e-6).contains(p);
        if let Some(row) = probabilities.iter().position(|p| !is_probability(p)) {
            return Err(MetricError::NotProbability { metric, row, value: probabilities[row] });
        }
        let n_bins = self.bins.len();
        for (row, &probability) in probabilities.iter().enumerate() {
            let (weight, probability) = (weights.of(row), probability.clamp(0.0, 1.0));
            let bin = ((probability * n_bins as f64) as usize).min(n_bins - 1);
            let positive = labels.number(row).clamp(0.0, 1.0);
            for (sum, term) in
                self.bins[bin].iter_mut().zip([1.0, probability, positive].map(|x| weight * x))
            {
                sum.add(term);
            }
        }
        Ok(())
    }

    fn value(&self) -> Result<f64, NoValue> {
        let (mut distances, mut weights) = (0.0, 0.0);
        for bin in self.bins() {
            weights += bin.weight;
            distances += (bin.predictions - bin.positives).abs();
        }
        if weights == 0.0 { Err(NoValue::NothingSeen) } else { Ok(distances / weights) }
    }

    fn merge(&mut self, other: &dyn Accumulator) -> Result<(), MetricError> {
        let other = same::<Self>(NAME, other)?;
        if self.bins.len() != other.bins.len() {
            return Err(MetricError::OtherMetric { metric: NAME });
        }
        for (sum, other) in self.bins.as_flattened_mut().iter_mut().zip(other.bins.as_flattened()) {
            sum.merge(other);
        }
        Ok(())
    }

    fn reset(&mut self) {
        self.bins.fill(Sums::default());
    }

    fn numbers(&self) -> Vec<f64> {
        self.bins.as_flattened().iter().flat_map(ExactSum::numbers).collect()
    }

    fn set_numbers(&mut self, numbers: &[f64]) -> Result<(), MetricError> {
        let other = MetricError::OtherMetric { metric: NAME };
        let sums = numbers.chunks(ExactSum::N_NUMBERS).map(ExactSum::of_numbers);
        let sums =
            sums.collect::<Option<Vec<_>>>().filter(|sums| sums.len() == 3 * self.bins.len());
        let sums = sums.ok_or(other)?;
        for (sum, restored) in self.bins.as_flattened_mut().iter_mut().zip(sums) {
            *sum = restored;
        }
        Ok(())
    }
}

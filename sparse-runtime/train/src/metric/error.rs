//! Errors of metrics.

use nnz_arrays::formats::Shape;

/// Why a metric has no value over its samples. `Display` continues the name of the data:
/// `has no negative sample`.
#[derive(Clone, Copy, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum NoValue {
    /// No sample was seen.
    #[error("has no sample of a weight above 0")]
    NothingSeen,
    /// There is no sample of the positive class.
    #[error("has no positive sample: no label is 1/2 or above")]
    NoPositive,
    /// There is no sample of the negative class.
    #[error("has no negative sample: no label is below 1/2")]
    NoNegative,
    /// All outputs are equal.
    #[error("gives outputs that are all equal")]
    EqualOutputs,
    /// All labels are equal.
    #[error("has labels that are all equal")]
    EqualLabels,
    /// The value is infinite or not a number.
    #[error("gives the value {0}: outputs or labels are not finite, or too large")]
    NotFinite(f64),
}

sparse_core::debug_of_errors!(NoValue);

impl NoValue {
    /// A value, if it is finite.
    pub(super) fn unless_finite(value: f64) -> Result<f64, NoValue> {
        if value.is_finite() { Ok(value) } else { Err(NoValue::NotFinite(value)) }
    }
}

/// Outputs or labels that do not fit a metric. Every variant names the metric, the value and the
/// place.
#[derive(Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum MetricError {
    /// Different numbers of samples.
    #[error("metric `{metric}`: {outputs} rows of outputs, but {labels} rows of labels")]
    RowCount {
        /// The metric.
        metric: &'static str,
        /// The samples of the outputs.
        outputs: usize,
        /// The samples of the labels.
        labels: usize,
    },
    /// Outputs and labels differ in shape where every element is compared.
    #[error(
        "metric `{metric}`: outputs of shape {outputs}, but labels with {labels} elements a row"
    )]
    Elements {
        /// The metric.
        metric: &'static str,
        /// The outputs' shape.
        outputs: Shape,
        /// The elements of a label.
        labels: usize,
    },
    /// Several labels a sample where one is needed.
    #[error("metric `{metric}` needs one label a row, but there are {columns}")]
    LabelColumns {
        /// The metric.
        metric: &'static str,
        /// The labels of a sample.
        columns: usize,
    },
    /// Several outputs a sample where one is needed.
    #[error("metric `{metric}` needs one score a row, but the outputs have shape {outputs}")]
    OutputColumns {
        /// The metric.
        metric: &'static str,
        /// The outputs' shape.
        outputs: Shape,
    },
    /// Scores of no or of more than two classes where there are two.
    #[error(
        "metric `{metric}` is of two classes: it needs one probability a row, or two scores, but the outputs have shape {outputs}"
    )]
    NotBinary {
        /// The metric.
        metric: &'static str,
        /// The outputs' shape.
        outputs: Shape,
    },
    /// One output a sample where scores of classes are needed.
    #[error(
        "metric `{metric}` needs scores of classes, one a column, but the outputs have shape {outputs}"
    )]
    ScoresNeeded {
        /// The metric.
        metric: &'static str,
        /// The outputs' shape.
        outputs: Shape,
    },
    /// `k` is 0.
    #[error("metric `{metric}` with k = 0 counts no class: k is at least 1")]
    TopNone {
        /// The metric.
        metric: &'static str,
    },
    /// Scores of classes with labels that are not class ids.
    #[error(
        "metric `{metric}`: outputs with {classes} columns are scores of classes, so that the labels must be class ids, not real numbers: declare the label as ids (`label y: dense<u32>[n]`)"
    )]
    LabelsNotClasses {
        /// The metric.
        metric: &'static str,
        /// The columns of the outputs.
        classes: usize,
    },
    /// A class id without a column.
    #[error(
        "metric `{metric}`: row {row} has class {class}, but the outputs have {classes} columns"
    )]
    ClassOutOfRange {
        /// The metric.
        metric: &'static str,
        /// The sample of the batch.
        row: usize,
        /// The class id.
        class: i128,
        /// The columns of the outputs.
        classes: usize,
    },
    /// An output that is not a probability.
    #[error(
        "metric `{metric}`: output {value} in row {row} is not a probability in [0, 1]: name an output that is one, such as `output sigmoid(score)` or `output softmax(scores)`"
    )]
    NotProbability {
        /// The metric.
        metric: &'static str,
        /// The sample of the batch.
        row: usize,
        /// The output.
        value: f64,
    },
    /// Inputs from which the metric cannot be computed.
    #[error("metric `{metric}` has no value: the data {why}")]
    NoValue {
        /// The metric.
        metric: &'static str,
        /// The reason.
        why: NoValue,
    },
    /// A NaN score, which has no order.
    #[error(
        "metric `{metric}`: the score in row {row} is NaN, which predicts nothing: the parameters or features that it is made of are not finite"
    )]
    NotANumber {
        /// The metric.
        metric: &'static str,
        /// The sample of the batch.
        row: usize,
    },
    /// An invalid weight of a sample.
    #[error("the weight of row {row} is {value}, but must be at least 0 and finite")]
    Weight {
        /// The sample of the batch.
        row: usize,
        /// The weight.
        value: f64,
    },
    /// The number of weights differs from that of samples.
    #[error("there are {weights} weights for {rows} rows")]
    WeightCount {
        /// The weights.
        weights: usize,
        /// The samples.
        rows: usize,
    },
    /// Two accumulators of different metrics.
    #[error("metric `{metric}` cannot take in what another metric has seen")]
    OtherMetric {
        /// The metric.
        metric: &'static str,
    },
}

sparse_core::debug_of_errors!(MetricError);

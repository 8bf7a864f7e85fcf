//! What a metric cannot be computed from.

use crate::formats::Shape;

/// Why a metric has no value over what it has seen. `Display` goes on from the name of the data: `has no negative sample`.
#[derive(Clone, Copy, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum NoValue {
    /// Nothing was seen.
    #[error("has no sample of a weight above 0")]
    NothingSeen,
    /// There is no row of the positive class.
    #[error("has no positive sample: no label is 1/2 or above")]
    NoPositive,
    /// There is no row of the negative class.
    #[error("has no negative sample: no label is below 1/2")]
    NoNegative,
    /// All outputs are one number.
    #[error("gives outputs that are all equal")]
    EqualOutputs,
    /// All labels are one number.
    #[error("has labels that are all equal")]
    EqualLabels,
    /// The value is infinite or not a number.
    #[error("gives the value {0}: outputs or labels are not finite, or too large")]
    NotFinite(f64),
}

impl NoValue {
    /// A value, if it is finite.
    pub(super) fn unless_finite(value: f64) -> Result<f64, NoValue> {
        if value.is_finite() { Ok(value) } else { Err(NoValue::NotFinite(value)) }
    }
}

/// Outputs or labels that a metric has no meaning for. Every variant names the metric, the value and the place.
#[derive(Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum MetricError {
    /// Different numbers of rows.
    #[error("metric `{metric}`: {outputs} rows of outputs, but {labels} rows of labels")]
    RowCount {
        /// The metric.
        metric: &'static str,
        /// The rows of the outputs.
        outputs: usize,
        /// The rows of the labels.
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
        /// The elements of a row of labels.
        labels: usize,
    },
    /// Several labels a row where one is needed.
    #[error("metric `{metric}` needs one label a row, but there are {columns}")]
    LabelColumns {
        /// The metric.
        metric: &'static str,
        /// The labels of a row.
        columns: usize,
    },
    /// Several outputs a row where one is needed.
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
    /// One output a row where scores of classes are needed.
    #[error(
        "metric `{metric}` needs scores of classes, one a column, but the outputs have shape {outputs}"
    )]
    ScoresNeeded {
        /// The metric.
        metric: &'static str,
        /// The outputs' shape.
        outputs: Shape,
    },
    /// The best 0 classes.
    #[error("metric `{metric}` with k = 0 counts no class: k is at least 1")]
    TopNone {
        /// The metric.
        metric: &'static str,
    },
    /// Scores of classes with labels that are no class ids.
    #[error(
        "metric `{metric}`: outputs with {classes} columns are scores of classes, so that the labels must be class ids, not real numbers: declare the label as ids (`label y: dense<u32>[n]`)"
    )]
    LabelsNotClasses {
        /// The metric.
        metric: &'static str,
        /// The columns of the outputs.
        classes: usize,
    },
    /// A class id that no column stands for.
    #[error(
        "metric `{metric}`: row {row} has class {class}, but the outputs have {classes} columns"
    )]
    ClassOutOfRange {
        /// The metric.
        metric: &'static str,
        /// The row of the batch.
        row: usize,
        /// The class id.
        class: i128,
        /// The columns of the outputs.
        classes: usize,
    },
    /// An output that should be a probability and is not.
    #[error(
        "metric `{metric}`: output {value} in row {row} is not a probability in [0, 1]: name an output that is one, such as `output sigmoid(score)` or `output softmax(scores)`"
    )]
    NotProbability {
        /// The metric.
        metric: &'static str,
        /// The row of the batch.
        row: usize,
        /// The output.
        value: f64,
    },
    /// Nothing that the metric could be computed from.
    #[error("metric `{metric}` has no value: the data {why}")]
    NoValue {
        /// The metric.
        metric: &'static str,
        /// What is in the way.
        why: NoValue,
    },
    /// A score that is neither above nor below any other.
    #[error(
        "metric `{metric}`: the score in row {row} is NaN, which predicts nothing: the parameters or features that it is made of are not finite"
    )]
    NotANumber {
        /// The metric.
        metric: &'static str,
        /// The row of the batch.
        row: usize,
    },
    /// A weight that no row can have.
    #[error("the weight of row {row} is {value}, but must be at least 0 and finite")]
    Weight {
        /// The row of the batch.
        row: usize,
        /// The weight.
        value: f64,
    },
    /// Not one weight for each row.
    #[error("there are {weights} weights for {rows} rows")]
    WeightCount {
        /// The weights.
        weights: usize,
        /// The rows.
        rows: usize,
    },
    /// Two accumulators of different metrics.
    #[error("metric `{metric}` cannot take in what another metric has seen")]
    OtherMetric {
        /// The metric.
        metric: &'static str,
    },
}

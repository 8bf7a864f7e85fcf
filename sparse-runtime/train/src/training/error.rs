//! Errors of training, scoring and predicting.

use crate::metric::NoValue;
use nnz_arrays::kernels::TooManyThreads;
use sparse_core::storage::ElementType;

/// Training, scoring or predicting cannot continue.
#[derive(Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum TrainError {
    /// The loss is infinite or not a number: the parameters are unusable.
    #[error(
        "the loss is {loss} in epoch {}, batch {} at learning rate {learning_rate}: training has diverged; lower the learning rate, or clip the gradient",
        epoch + 1,
        batch + 1
    )]
    Diverged {
        /// The epoch, from zero.
        epoch: u64,
        /// The batch in the epoch, from zero.
        batch: u64,
        /// The loss.
        loss: f64,
        /// The learning rate of that step.
        learning_rate: f64,
    },
    /// A value that a program computes of a model after an epoch is not finite.
    #[error(
        "{what} is {value} after epoch {}: scale the features, lower the learning rate, or look at the data that it is measured on",
        epoch + 1
    )]
    NotFiniteAfterEpoch {
        /// The quantity that was computed.
        what: String,
        /// Its value.
        value: f64,
        /// The epoch, from zero.
        epoch: u64,
    },
    /// The loss is infinite or not a number, and the batch holds a number that is, or whose square
    /// is.
    #[error(
        "the loss is {loss} in epoch {}, batch {}: sample {sample} (numbered from 0) holds {value} in column {column} of `{input}`, whose square is beyond `{element}`: scale the values, or leave the sample out",
        epoch + 1,
        batch + 1
    )]
    BeyondRange {
        /// The epoch, from zero.
        epoch: u64,
        /// The batch in the epoch, from zero.
        batch: u64,
        /// The loss.
        loss: f64,
        /// The input or label.
        input: &'static str,
        /// The row of the data.
        sample: u64,
        /// The column of the input: the feature.
        column: usize,
        /// The number.
        value: f64,
        /// The element type of the model.
        element: ElementType,
    },
    /// The loss is infinite or not a number before the first update.
    #[error(
        "the loss is {loss} in the first step, before anything was learnt: the largest number of the batch is {value}, in column {column} of `{input}` of sample {sample} (numbered from 0): scale the values, or look at the initial parameters"
    )]
    FirstStep {
        /// The loss.
        loss: f64,
        /// The input or label.
        input: &'static str,
        /// The row of the data.
        sample: u64,
        /// The column of the input: the feature.
        column: usize,
        /// The number.
        value: f64,
    },
    /// The loss on data that a model was scored on is infinite or not a number.
    #[error(
        "the loss on {data} is {loss} in samples {first} to {last} (numbered from 0): parameters or values are not finite or too large; lower the learning rate, or scale the values"
    )]
    ScoreNotFinite {
        /// The data.
        data: &'static str,
        /// The loss of these samples.
        loss: f64,
        /// The first sample, in the order of the data.
        first: u64,
        /// The last sample.
        last: u64,
    },
    /// A parameter that is to be saved holds a number that is infinite or not a number.
    #[error(
        "parameter `{parameter}` holds {value} in row {row}, so that the model is of no use and is not saved: lower the learning rate, or scale the values of the data"
    )]
    ParameterNotFinite {
        /// The parameter.
        parameter: &'static str,
        /// The row, from zero.
        row: usize,
        /// The number.
        value: f64,
    },
    /// A metric has no value.
    #[error("metric `{metric}` has no value: {data} {why}")]
    NoValue {
        /// The metric, by its name in reports.
        metric: &'static str,
        /// The data.
        data: &'static str,
        /// Why there is none.
        why: NoValue,
    },
    /// A watched value is not a number.
    #[error("{watched} is not a number after epoch {}, so that no epoch can be the best", epoch + 1)]
    WatchedNotANumber {
        /// The loss, or the metric.
        watched: String,
        /// The epoch, from zero.
        epoch: u64,
    },
    /// An epoch, or a data set to be scored, has no batch.
    #[error(
        "the data has no batch of rows: it is empty, or has fewer rows than a batch, and `LastBatch` leaves such rows out"
    )]
    NoRows,
    /// A metric was requested for a model without a label.
    #[error("metric `{metric}` compares outputs with a label, but model `{model}` declares none")]
    NoLabel {
        /// The model.
        model: &'static str,
        /// The metric.
        metric: &'static str,
    },
    /// Predictions or a metric were requested for a model whose first output cannot give them.
    #[error("the first output of model `{model}` must be dense for {purpose}, but {problem}")]
    Output {
        /// The model.
        model: &'static str,
        /// The purpose: predictions, or a metric.
        purpose: &'static str,
        /// What the first output is instead.
        problem: String,
    },
    /// Predictions cannot be written.
    #[error("the predictions cannot be written: {problem}")]
    Write {
        /// The file and the message of the system.
        problem: String,
    },
    /// A run cannot be drawn.
    #[error("the run cannot be drawn: {problem}")]
    Plot {
        /// The reason.
        problem: String,
    },
    /// A metric is watched that is not measured.
    #[error(
        "metric `{name}` is watched but not measured (measured: {known}): give it to `Trainer::metric`"
    )]
    UnknownMetric {
        /// The metric.
        name: String,
        /// Those that are measured.
        known: String,
    },
    /// A run is resumed within an epoch with other metrics than it began with.
    #[error(
        "the epoch was begun with {expected} metrics, but {found} are measured now: resume the run with the same"
    )]
    OtherMetrics {
        /// How many there were.
        expected: usize,
        /// How many there are.
        found: usize,
    },
    /// Two metrics would have one name in reports.
    #[error(
        "two metrics are called `{name}`, by which reports and callbacks tell metrics apart: leave one out, or give it another name by `metric::Named`"
    )]
    MetricNamedTwice {
        /// The name.
        name: &'static str,
    },
    /// A callback ended a pass over a piece of data, which has no report then. Parameters and
    /// states are as the steps left them.
    #[error(
        "a callback ended the pass after the updater's step {n_steps}, so that there is no report of the whole of it: the steps made count"
    )]
    Stopped {
        /// The steps that the updater has made.
        n_steps: u64,
    },
    /// A norm that is no bound for gradients.
    #[error("`clip_norm` is {value}, but must be positive")]
    ClipNorm {
        /// The norm.
        value: f64,
    },
    /// Gradients would be clipped by their norm under a rule that corrects them.
    #[error(
        "`clip_norm` cannot be used with `{rule}`: the norm would be that of a gradient before it is corrected; clip each element by `clip_gradient`"
    )]
    ClipCorrected {
        /// The rule.
        rule: &'static str,
    },
    /// A schedule for a rule whose states are valid at one learning rate only.
    #[error(
        "`{rule}` has no schedule: its states are sums at one learning rate, and it lowers the rate of each weight itself; leave `schedule` at `Constant`"
    )]
    OneRate {
        /// The rule.
        rule: &'static str,
    },
    /// A rule keeps derivatives of samples, which this model or data does not allow.
    #[error(
        "`{rule}` keeps the derivatives of each sample's loss by its scores, for models whose scores are linear in csr features and data whose number of rows is known: `{model}` or the data is not so; use `Svrg`"
    )]
    NoDerivatives {
        /// The rule.
        rule: &'static str,
        /// The model.
        model: &'static str,
    },
    /// The columns of an input are the samples, and the samples were to be shuffled.
    #[error(
        "the columns of `{input}` of model `{model}` are the samples, as its rows are, and shuffling would move the rows alone: call `shuffle(false)`, with batches of all samples"
    )]
    ShuffledColumns {
        /// The model.
        model: &'static str,
        /// The input.
        input: &'static str,
    },
    /// A parameter was named that the model does not have.
    #[error("model `{model}` has no parameter `{name}` (it has: {known})")]
    UnknownParameter {
        /// The model.
        model: &'static str,
        /// The name given.
        name: String,
        /// The parameters that it has.
        known: String,
    },
    /// Several workers cannot do what needs a single one.
    #[error("`{what}` cannot be trained or used by several workers: {why}")]
    NotOnWorkers {
        /// A setting, a rule or a model.
        what: &'static str,
        /// The reason.
        why: &'static str,
    },
    /// More threads than exist were requested.
    #[error(transparent)]
    Threads(#[from] TooManyThreads),
    /// The system did not start a thread.
    #[error("thread {number} of {n_threads} cannot be started ({problem}): train on fewer threads")]
    ThreadNotStarted {
        /// The thread, counted from zero.
        number: usize,
        /// The requested number of threads.
        n_threads: usize,
        /// The message of the system.
        problem: String,
    },
    /// A number of hot rows that a thread cannot keep.
    #[error("`Hogwild::hot_rows` is {found}, but a thread keeps copies of {limit} rows at most")]
    HotRows {
        /// The number given.
        found: usize,
        /// The most there may be.
        limit: usize,
    },
    /// Threads cannot train this at once without locks.
    #[error("`{what}` is not for `fit_hogwild`: {why}")]
    NotHogwild {
        /// A setting, a rule, a model or the data.
        what: &'static str,
        /// The reason, and what to do.
        why: &'static str,
    },
}

sparse_core::debug_of_errors!(TrainError);

impl TrainError {
    /// The error of watching a metric that is none of these.
    pub(super) fn unknown_metric(name: &str, known: &[&str]) -> Self {
        let known: Vec<_> = known.iter().map(|name| format!("`{name}`")).collect();
        TrainError::UnknownMetric { name: name.to_owned(), known: known.join(", ") }
    }
}

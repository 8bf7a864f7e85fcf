//! The command line.

use clap::builder::PossibleValuesParser;
use clap::{Parser, ValueEnum};
use nnz::core::update_rules::NAMES;
use std::path::PathBuf;

/// Trains a model on a LibSVM file.
///
/// The objective is the mean loss over the training rows plus l1 · |w|₁ + (l2 / 2) · |w|²; the bias is not in the penalty.
/// The penalties of ftrl are of all steps together, and not in it. The squared error counts half.
///
/// With --json, one object a line and epoch: epoch, objective, train_loss, seconds, samples_per_s and, with --test,
/// test_loss (without penalty), test_accuracy and test_auc (linear: test_rmse; softmax: no test_auc). `seconds` is
/// that epoch's training alone, without reading and evaluating.
#[derive(Debug, Parser)]
#[command(name = "train")]
pub(crate) struct Arguments {
    /// The model.
    #[arg(long, value_enum)]
    pub(crate) model: ModelKind,
    /// The training data: a LibSVM file, gzip if it ends in .gz.
    #[arg(long)]
    pub(crate) data: PathBuf,
    /// Data to test on after every epoch.
    #[arg(long)]
    pub(crate) test: Option<PathBuf>,
    /// Whether columns are counted from zero or one; found out by default.
    #[arg(long, value_enum, default_value = "detect")]
    pub(crate) index_base: Base,
    /// The number of features, if not the largest column of the data.
    #[arg(long)]
    pub(crate) features: Option<usize>,
    /// The update rule.
    #[arg(long, value_parser = PossibleValuesParser::new(NAMES.iter().copied()), default_value = "sgd")]
    pub(crate) optimizer: String,
    /// The step size, if not the rule's own.
    #[arg(long)]
    pub(crate) learning_rate: Option<f64>,
    /// The fraction of the velocity that is kept from step to step.
    #[arg(long)]
    pub(crate) momentum: Option<f64>,
    /// Any other hyperparameter of the update rule, by name: --set epsilon=1e-6.
    #[arg(long, value_name = "NAME=VALUE", value_parser = setting)]
    pub(crate) set: Vec<(String, f64)>,
    /// How the step size changes.
    #[arg(long, value_enum, default_value = "constant")]
    pub(crate) schedule: ScheduleKind,
    /// inverse-scaling: learning_rate / (1 + decay · steps)^power. Exponential: the factor of each epoch.
    #[arg(long, default_value_t = 1e-4)]
    pub(crate) decay: f64,
    /// The power of inverse-scaling.
    #[arg(long, default_value_t = 1.0)]
    pub(crate) power: f64,
    /// The weight of the L1 penalty, of rules that have one.
    #[arg(long)]
    pub(crate) l1: Option<f64>,
    /// The weight of the L2 penalty: the rule's weight decay, or its l2.
    #[arg(long)]
    pub(crate) l2: Option<f64>,
    /// How rows that a batch does not touch are updated; adam has no exact form.
    #[arg(long, value_enum, default_value = "exact")]
    pub(crate) lazy_update: Lazy,
    /// Leave the bias out.
    #[arg(long)]
    pub(crate) no_bias: bool,
    /// Rows of a batch.
    #[arg(long, default_value_t = 1)]
    pub(crate) batch_size: usize,
    /// Passes over the data.
    #[arg(long, default_value_t = 10)]
    pub(crate) epochs: u64,
    /// The seed of order and initial values.
    #[arg(long, default_value_t = 0)]
    pub(crate) seed: u64,
    /// Take the rows as they lie, instead of in a new order every epoch.
    #[arg(long)]
    pub(crate) no_shuffle: bool,
    /// Threads for reading data; a training step runs on one.
    #[arg(long)]
    pub(crate) threads: Option<usize>,
    /// Rows that are evaluated at a time.
    #[arg(long, default_value_t = 1024)]
    pub(crate) eval_batch: usize,
    /// Where to save the model (safetensors).
    #[arg(long)]
    pub(crate) save: Option<PathBuf>,
    /// One JSON object a line and epoch instead of text.
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum ModelKind {
    /// Least squares.
    Linear,
    /// Binary classification.
    Logistic,
    /// Classification into any number of classes.
    Softmax,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum ScheduleKind {
    Constant,
    InverseScaling,
    Exponential,
    Cosine,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum Lazy {
    /// The mathematics of the dense update.
    Exact,
    /// Touched rows only.
    Touched,
    /// Every row at every step.
    Dense,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum Base {
    Detect,
    Zero,
    One,
}

/// A hyperparameter as `NAME=VALUE`.
fn setting(text: &str) -> Result<(String, f64), String> {
    let (name, value) = text.split_once('=').ok_or("a setting is `NAME=VALUE`")?;
    let value = value.parse().map_err(|error| format!("`{value}`: {error}"))?;
    Ok((name.to_owned(), value))
}

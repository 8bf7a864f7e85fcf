//! The command line.

use super::decay::Decay;
use super::hyperparameter_flags;
use super::loss_numbers::LossNumbers;
use super::sizes::LayerSizes;
use super::weights::{ClassWeight, class_weight};
use crate::Failure;
use crate::input::{DataFiles, Reading, TwoLabels};
use crate::models::saved::SavedModel;
use crate::models::{ModelKind, Sizes};
use crate::report::note;
use clap::builder::{PossibleValuesParser, RangedU64ValueParser};
use clap::parser::ValueSource;
use clap::{
    Arg, ArgGroup, ArgMatches, Command, CommandFactory, FromArgMatches, Parser, ValueEnum,
    value_parser,
};
use nnz::data::AnyDataset;
use std::path::PathBuf;

/// Trains a model on a file of text, in memory or streamed.
///
/// Each epoch is told by its progressive loss: the mean of the losses of its samples before the
/// model learnt from them, which costs nothing. With --objective a pass over the training data
/// after each epoch computes the objective as well: the mean loss over the training rows plus
/// l1 · |w|₁ + (l2 / 2) · |w|², over all parameters but biases. Not in it are the penalties of
/// ftrl, which are of all steps together, and decay beside an adaptive step, as of adamw, adagrad
/// and adadelta, which minimises no such sum. The squared error counts half.
///
/// The table has a row after 1, 2, 4, … batches of the first epoch, and one after each epoch: the
/// mean (progressive) loss of the epoch, that of the samples since the row before, loss and metrics
/// on the test data, samples a second, and the seconds since training began. A `*` marks an epoch
/// that is the best so far on the test data.
///
/// With --json, one object a line and epoch: epoch, progressive_loss, seconds, samples_per_s; with
/// --objective, objective and train_loss; with --test, test_loss (without penalty), test_accuracy
/// and test_auc (softmax: no test_auc; models of numbers: test_rmse alone), and best, which is true
/// of the best so far. The first has progress, the rows within the epoch: samples,
/// progressive_loss, since_last, seconds. A run that is resumed prints the epochs that it makes. On
/// the error stream, a line says of each file what it was read
/// as, and a warning where the loss is above that of the best constant. `seconds` is that epoch's
/// training alone, without reading and evaluating.
#[derive(Debug, Parser)]
#[command(name = "train")]
pub(crate) struct Arguments {
    /// Take flags from a TOML file, whose keys are their names without the hyphens: epochs = 3.
    /// Those of the command line win. --save writes such a file, which repeats the run, beside the
    /// model as its name with `.run.toml`.
    #[arg(long, value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,
    /// The model.
    #[arg(long, value_enum)]
    pub(crate) model: ModelKind,
    /// The training data: files that are read as one, folders of files, or - for the standard
    /// input; decompressed if a name ends in .gz or .zst.
    #[arg(id = "data", long = "data", value_name = "FILE", required = true, num_args = 1..)]
    named_data: Vec<PathBuf>,
    /// The files of --data.
    #[arg(skip)]
    pub(crate) data: DataFiles,
    /// Data to test on after every epoch: files that are read as one, or folders of files.
    #[arg(id = "test", long = "test", value_name = "FILE", num_args = 1..)]
    named_test: Vec<PathBuf>,
    /// The files of --test.
    #[arg(skip)]
    pub(crate) test: Option<DataFiles>,
    /// matrix-market and npz: the labels of --test, as --labels are those of --data.
    #[arg(long, value_name = "FILE", requires = "test")]
    pub(crate) test_labels: Option<PathBuf>,
    /// Test on this share of the samples, drawn by --seed, and train on the others.
    #[arg(long, value_name = "SHARE", conflicts_with_all = ["test", "stream"], value_parser = share)]
    pub(crate) holdout: Option<f64>,
    /// Go on from a saved model, with other data: its weights, and how it reads data. With the
    /// state of the update rule too, if --save-state kept it.
    #[arg(long, value_name = "MODEL", conflicts_with_all = ["features", "factors", "hidden", "embedding", "fields", "positive", "quantile", "delta"])]
    pub(crate) init: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) reading: Reading,
    /// The number of features, if not the largest column of the data.
    #[arg(long)]
    pub(crate) features: Option<usize>,
    /// The update rule; svrg and saga have the hyperparameters of sgd, svrg also --set
    /// update_freq=2. saga is for models of sums of columns.
    #[arg(long, value_parser = PossibleValuesParser::new(hyperparameter_flags::names()), default_value = "sgd")]
    pub(crate) optimizer: String,
    /// A hyperparameter of the update rule by its name, as the flags below: --set epsilon=1e-6.
    #[arg(long, value_name = "NAME=VALUE", value_parser = setting)]
    pub(crate) set: Vec<(String, f64)>,
    /// The L2 penalties, where each table has its own.
    #[arg(skip)]
    pub(crate) l2: Option<Decay>,
    /// The hyperparameters given by flags of their own, which the update rules say.
    #[arg(skip)]
    pub(crate) hyperparameters: Vec<(&'static str, f64)>,
    /// The flags of a schedule or a kind of models that were given.
    #[arg(skip)]
    special: Vec<&'static str>,
    /// The largest norm of the gradient of a step, of all parameters together; a longer one is made
    /// shorter.
    #[arg(long, value_name = "NORM")]
    pub(crate) clip_norm: Option<f64>,
    /// How the step size changes.
    #[arg(long, value_enum, default_value = "constant")]
    pub(crate) schedule: ScheduleKind,
    /// inverse-scaling: learning_rate / (1 + decay · steps)^power.
    #[arg(long, default_value_t = 1e-4)]
    pub(crate) decay: f64,
    /// The power of inverse-scaling and polynomial.
    #[arg(long, default_value_t = 1.0)]
    pub(crate) power: f64,
    /// Step: the epochs after which the step size is multiplied by --factor, again and again.
    #[arg(long, default_value_t = 1)]
    pub(crate) every: u64,
    /// Multi-step: the epochs after which the step size is multiplied by --factor, ascending.
    #[arg(long, value_delimiter = ',')]
    pub(crate) milestones: Vec<u64>,
    /// What step, multi-step and, after every epoch, exponential multiply with.
    #[arg(long, default_value_t = 0.5)]
    pub(crate) factor: f64,
    /// Cosine and polynomial: the last step size, as a part of the first.
    #[arg(long, default_value_t = 0.0)]
    pub(crate) end: f64,
    /// The steps in which the step size rises to its first value, before the schedule.
    #[arg(long, default_value_t = 0)]
    pub(crate) warm_up: u64,
    /// How rows that a batch does not touch are updated. Decay that running means see (adam with
    /// --weight-decay) has no exact form, lamb takes dense alone. libFFM does as touched.
    #[arg(long, value_enum, default_value = "exact")]
    pub(crate) lazy_update: Lazy,
    /// Models of two classes: the label of the positive class; any other is negative. If not said,
    /// labels that are -1 and 1, or from 0 to 1, are read as they are; of two others the larger, of
    /// two words the second in byte order, is positive. The model's file keeps it.
    #[arg(long, value_name = "LABEL", allow_negative_numbers = true)]
    pub(crate) positive: Option<String>,
    /// Leave the bias, the parameter `b`, at 0.
    #[arg(long)]
    pub(crate) no_bias: bool,
    /// factorization-machine, field-aware-machine, matrix-factorization and multi-task: the columns
    /// of their tables, those of field-aware-machine for each field.
    #[arg(long, value_name = "K", default_value_t = 8, value_parser = RangedU64ValueParser::<usize>::new().range(1..))]
    pub(crate) factors: usize,
    #[command(flatten)]
    pub(super) sizes: LayerSizes,
    #[command(flatten)]
    pub(crate) loss_numbers: LossNumbers,
    /// Weigh samples by their class: `balanced` gives all classes the same total weight, else each
    /// label that is named has a weight, and others 1. Samples of --test are not weighed so.
    #[arg(long, value_name = "balanced|LABEL=WEIGHT,…", value_parser = class_weight, conflicts_with = "stream")]
    pub(crate) class_weight: Option<ClassWeight>,
    /// Rows of a batch.
    #[arg(long, default_value_t = 1, value_parser = RangedU64ValueParser::<usize>::new().range(1..))]
    pub(crate) batch_size: usize,
    /// Keep the data in memory once more, divided among --threads, so that each reads its own in
    /// steps of large batches; results are the same.
    #[arg(long, requires = "threads", conflicts_with = "stream")]
    pub(crate) divide: bool,
    /// Passes over the data.
    #[arg(long, visible_alias = "passes", default_value_t = 10)]
    pub(crate) epochs: u64,
    /// The seed of order and initial values.
    #[arg(long, default_value_t = 0)]
    pub(crate) seed: u64,
    /// Take the rows as they lie, instead of in a new order every epoch.
    #[arg(long)]
    pub(crate) no_shuffle: bool,
    /// Rows that are evaluated at a time.
    #[arg(long, default_value_t = 1024, value_parser = RangedU64ValueParser::<usize>::new().range(1..))]
    pub(crate) eval_batch: usize,
    /// Where to save the model (safetensors); of ratings with their ids.
    #[arg(long)]
    pub(crate) save: Option<PathBuf>,
    /// Save the state of the update rule as well, beside the model as its name with `.state`:
    /// --init then goes on as if there had been no end, to the bit.
    #[arg(long, requires = "save", conflicts_with = "patience")]
    pub(crate) save_state: bool,
    /// Keep the run in this file after every epoch, and at its end: with --resume it goes on from
    /// there, if it was killed or for more --epochs.
    #[arg(long, value_name = "FILE")]
    pub(crate) checkpoint: Option<PathBuf>,
    /// Keep it after every so many epochs instead.
    #[arg(long, value_name = "EPOCHS", requires = "checkpoint", value_parser = value_parser!(u64).range(1..))]
    pub(crate) checkpoint_every: Option<u64>,
    /// Keep it after every so many batches of an epoch as well.
    #[arg(long, value_name = "BATCHES", requires = "checkpoint", value_parser = value_parser!(u64).range(1..))]
    pub(crate) checkpoint_batches: Option<u64>,
    /// Go on with the run that --checkpoint has kept: the model is to the bit that of a run that
    /// was not ended.
    #[arg(long, requires = "checkpoint")]
    pub(crate) resume: bool,
    /// End the run after so many epochs in a row that were not better on the test data; --save then
    /// writes the best model, whenever there is a better one.
    #[arg(long, value_name = "EPOCHS", requires = "tested")]
    pub(crate) patience: Option<u64>,
    /// End the run after an epoch whose loss is not lower than the best before it by at least so
    /// much, or after --patience such epochs: the loss on the test data, or the progressive loss if
    /// there are none.
    #[arg(long, value_name = "DIFFERENCE", value_parser = tolerance, conflicts_with = "watch")]
    pub(crate) tolerance: Option<f64>,
    /// Compute the objective and the training loss after every epoch, by a pass over the training
    /// data.
    #[arg(long)]
    pub(crate) objective: bool,
    /// Models of numbers: cut predictions to the range of the labels of the training data, `train`,
    /// which of a stream the first epoch finds, or to LOW,HIGH; the model's file says so, and
    /// `predict` does it. Without, they are what the model computes.
    #[arg(long, value_name = "train|LOW,HIGH", value_parser = clip, allow_hyphen_values = true)]
    pub(crate) clip_predictions: Option<Clip>,
    /// What --patience looks at; loss if not said.
    #[arg(long, value_enum, requires = "patience")]
    pub(crate) watch: Option<Watched>,
    /// One JSON object a line and epoch instead of text.
    #[arg(long)]
    pub(crate) json: bool,
    /// Draw loss and metrics by epoch to this file, an SVG picture, at the end.
    #[arg(long, value_name = "FILE.svg", value_parser = svg_file)]
    pub(crate) plot: Option<PathBuf>,
}

/// A file to draw to: at the end of a run it is too late to say what is wrong with its name.
fn svg_file(text: &str) -> Result<PathBuf, String> {
    let path = PathBuf::from(text);
    match path.extension() {
        Some(ending) if ending.eq_ignore_ascii_case("svg") => Ok(path),
        _ => Err("the picture is SVG: name a file that ends in `.svg`".to_owned()),
    }
}

/// What predictions are cut to.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Clip {
    /// The range of the labels of the training data.
    Train,
    /// From one number to another.
    Range(f64, f64),
}

#[derive(Clone, Copy, Debug, PartialEq, ValueEnum)]
pub(crate) enum ScheduleKind {
    Constant,
    Step,
    MultiStep,
    InverseScaling,
    Exponential,
    Polynomial,
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

/// What is compared between epochs, on the test data.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum Watched {
    Loss,
    Accuracy,
    Auc,
    Rmse,
}

impl Arguments {
    /// The subcommand, which has a flag for each hyperparameter that some update rule has.
    pub(crate) fn program() -> Command {
        let flags = hyperparameter_flags::flags();
        let command = Arguments::command().args(flags.into_iter().map(Arg::from));
        let tested = ArgGroup::new("tested").args(["test", "holdout"]);
        let command = command.group(tested);
        // A number below 0 is a wrong value, not an unknown flag.
        command.mut_args(|arg| {
            if arg.get_action().takes_values() { arg.allow_negative_numbers(true) } else { arg }
        })
    }

    /// Those of the command line.
    pub(crate) fn of(matches: &ArgMatches) -> Result<Self, Failure> {
        let mut arguments = Arguments::from_arg_matches(matches)?;
        arguments.data = DataFiles::of(&arguments.named_data)?;
        if !arguments.named_test.is_empty() {
            arguments.test = Some(DataFiles::of(&arguments.named_test)?);
        }
        let is_given = |name| matches.value_source(name) == Some(ValueSource::CommandLine);
        let special = OF_SCHEDULES.iter().map(|(name, _)| *name).chain([FACTORS]);
        arguments.special = special.filter(|name| is_given(name)).collect();
        arguments.l2 = matches.get_one::<Decay>(hyperparameter_flags::L2).cloned();
        let given = |name| match name {
            hyperparameter_flags::L2 => Some((name, arguments.l2.as_ref()?.of_rule())),
            name => Some((name, *matches.get_one::<f64>(name)?)),
        };
        let names = hyperparameter_flags::flags().into_iter().map(|flag| flag.name);
        arguments.hyperparameters = names.filter_map(given).collect();
        Ok(arguments)
    }

    /// Refuses what would be said in vain of this schedule or this model, and a schedule that lacks
    /// what makes it one.
    pub(crate) fn check(&self) -> Result<(), String> {
        let schedule = self.schedule;
        for (flag, kinds) in OF_SCHEDULES {
            if self.special.contains(&flag) && !kinds.contains(&schedule) {
                let (all, kind) =
                    (kinds.iter().map(name_of).collect::<Vec<_>>(), name_of(&schedule));
                return Err(format!(
                    "--{flag} is for --schedule {}, but the schedule is {kind}: leave --{flag} out, or choose another --schedule",
                    one_of(&all),
                ));
            }
        }
        if schedule == ScheduleKind::MultiStep && self.milestones.is_empty() {
            let kind = name_of(&schedule);
            return Err(format!("--schedule {kind}: say after which epochs, --milestones 3,6"));
        }
        if self.special.contains(&FACTORS) && !self.model.has_factors() {
            let all = ModelKind::value_variants().iter().filter(|kind| kind.has_factors());
            return Err(format!(
                "--{FACTORS} is for {}, but the model is {}: leave --{FACTORS} out, or choose another --model",
                one_of(&all.map(name_of).collect::<Vec<_>>()),
                name_of(&self.model),
            ));
        }
        self.loss_numbers.check(self.model)?;
        self.sizes.check(self.model)?;
        if self.clip_predictions.is_some() && !self.model.is_number() {
            let all = ModelKind::value_variants().iter().filter(|kind| kind.is_number());
            return Err(format!(
                "--clip-predictions is for {}, but the model is {}: leave it out, or choose another --model",
                one_of(&all.map(name_of).collect::<Vec<_>>()),
                name_of(&self.model),
            ));
        }
        Ok(())
    }

    /// The labels of two classes, where the model has two and does not read them as they are.
    pub(crate) fn two_labels(
        &self,
        data: &AnyDataset,
        names: &[String],
    ) -> Result<Option<TwoLabels>, Failure> {
        match (self.model.has_two_classes(), self.positive.as_deref()) {
            (true, asked) => TwoLabels::find(asked, data, &self.data, names),
            (false, None) => Ok(None),
            (false, Some(_)) => Err(format!(
                "--positive is for models of two classes, but the model is {}: leave it out",
                name_of(&self.model)
            )
            .into()),
        }
    }

    /// The sizes of the model.
    pub(crate) fn sizes(&self) -> Sizes<'_> {
        self.sizes.of(self.factors)
    }

    /// The share of the rule's penalty that a parameter takes, where --l2 says it for each table.
    pub(crate) fn share_of_decay(&self, parameter: &str) -> Option<f64> {
        self.l2.as_ref()?.share(parameter)
    }

    /// Refuses to go on from a model of another kind.
    pub(crate) fn check_init(&self, saved: &SavedModel) -> Result<(), String> {
        if saved.kind.base() == self.model {
            return Ok(());
        }
        Err(format!(
            "--init: `{}` is of --model {}, not {}",
            saved.path.display(),
            name_of(&saved.kind.base()),
            name_of(&self.model)
        ))
    }

    /// The data to train on, and what --holdout leaves to test on.
    pub(crate) fn held_out(
        &self,
        data: AnyDataset,
    ) -> Result<(AnyDataset, Option<AnyDataset>), Failure> {
        let (Some(share), AnyDataset::Memory(all)) = (self.holdout, &data) else {
            return Ok((data, None));
        };
        let (train, test) = all.split(1.0 - share, self.seed)?;
        if train.n_rows() == 0 || test.n_rows() == 0 {
            return Err(format!(
                "--holdout {share} of {} samples leaves none to train or to test on",
                all.n_rows()
            )
            .into());
        }
        note(format_args!("held out: {} of {} samples", test.n_rows(), all.n_rows()));
        Ok((AnyDataset::Memory(train), Some(AnyDataset::Memory(test))))
    }

    /// Refuses columns that the model would not read.
    pub(crate) fn check_schema(&self, schema: Option<&str>) -> Result<(), String> {
        let columns = || schema.iter().flat_map(|schema| schema.split(','));
        let of_kind = |kind| {
            let is_it = move |column: &&str| column.rsplit(':').next().map(str::trim) == Some(kind);
            columns().map(str::trim).filter(is_it)
        };
        if let Some(column) = of_kind("weight").nth(1) {
            return Err(format!(
                "--schema: `{column}` is a second column of weights: make it `ignore`"
            ));
        }
        let n_labels = self.model.n_labels();
        match of_kind("label").nth(n_labels) {
            Some(column) => Err(format!(
                "--schema: `{column}` is label {}, but {} has {n_labels}: make it `ignore`",
                n_labels + 1,
                name_of(&self.model),
            )),
            None => Ok(()),
        }
    }
}

/// A choice, as on the command line.
pub(super) fn name_of(choice: &impl ValueEnum) -> String {
    choice.to_possible_value().map_or_else(String::new, |value| value.get_name().to_owned())
}

/// `a, b or c`.
fn one_of(names: &[String]) -> String {
    match names {
        [first @ .., last] if !first.is_empty() => format!("{} or {last}", first.join(", ")),
        _ => names.concat(),
    }
}

/// The flag of tables.
const FACTORS: &str = "factors";

/// The flags that some schedules read.
const OF_SCHEDULES: [(&str, &[ScheduleKind]); 6] = [
    ("decay", &[ScheduleKind::InverseScaling]),
    ("power", &[ScheduleKind::InverseScaling, ScheduleKind::Polynomial]),
    ("every", &[ScheduleKind::Step]),
    ("milestones", &[ScheduleKind::MultiStep]),
    ("factor", &[ScheduleKind::Step, ScheduleKind::MultiStep, ScheduleKind::Exponential]),
    ("end", &[ScheduleKind::Cosine, ScheduleKind::Polynomial]),
];

/// A range as `train` or `LOW,HIGH`.
fn clip(text: &str) -> Result<Clip, String> {
    if text == "train" {
        return Ok(Clip::Train);
    }
    let ends = text.split_once(',').ok_or("it is `train`, or `LOW,HIGH` such as `1,5`")?;
    let number = |text: &str| match text.trim().parse::<f64>() {
        Ok(number) if number.is_finite() => Ok(number),
        _ => Err(format!("`{text}` is not a finite number")),
    };
    let (low, high) = (number(ends.0)?, number(ends.1)?);
    if low > high {
        return Err(format!("{low} is above {high}: the lower end comes first"));
    }
    Ok(Clip::Range(low, high))
}

/// A part of the samples that leaves some on both sides.
pub(super) fn share(text: &str) -> Result<f64, String> {
    match text.parse() {
        Ok(share) if share > 0.0 && share < 1.0 => Ok(share),
        _ => Err("it is a share of the samples, above 0 and below 1".to_owned()),
    }
}

/// A difference of losses.
fn tolerance(text: &str) -> Result<f64, String> {
    match text.parse() {
        Ok(tolerance) if tolerance >= 0.0 && f64::is_finite(tolerance) => Ok(tolerance),
        _ => Err("it is a difference of losses, at least 0".to_owned()),
    }
}

/// A hyperparameter as `NAME=VALUE`.
fn setting(text: &str) -> Result<(String, f64), String> {
    let (name, value) = text.split_once('=').ok_or("a setting is `NAME=VALUE`")?;
    let value = value.parse().map_err(|error| format!("`{value}`: {error}"))?;
    Ok((name.to_owned(), value))
}

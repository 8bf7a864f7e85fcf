//! `nnz evaluate`: the loss and the metrics of a saved model on data with labels.
//!
//! ```text
//! cargo run --release -p nnz-cli -- evaluate --model model.safetensors --data later.svm
//! ```

mod ranking;

use crate::input::{DataFiles, Reading, tell_skipped, unknown_ids};
use crate::models::output_change::{Clipped, Margin};
use crate::models::saved::SavedModel;
use crate::models::{ModelVisitor, Task};
use crate::report::evaluation::{Evaluation, MeasuredMetric};
use crate::report::summary::{constant_loss, summary};
use crate::report::{self, note, written};
use crate::{Failure, Program};
use clap::builder::RangedU64ValueParser;
use clap::{Args, CommandFactory, FromArgMatches, Parser};
use nnz::data::AnyDataset;
use nnz::metric::{
    Accumulator, Accuracy, Auc, Calibration, CalibrationBin, LogLoss, Mae, Metric, PrAuc,
    Precision, Recall, Rmse, SeenCalibration,
};
use nnz::prelude::*;
use nnz::training::score_into;
use nnz_device::atomic_write::replace_file;
use ranking::Ranking;
use std::any::Any;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

/// Measures a model that `train --save` wrote on data with labels.
///
/// The loss, which is that of training without penalties, stands beside the loss of the best
/// constant: that of the prediction that is the same for all samples and has the least loss on
/// these data. Models of two classes: log loss, accuracy at 1/2, AUC, the area under the
/// precision-recall curve, precision, recall and their harmonic mean F1 at --threshold, and a
/// calibration table: of the samples whose predicted probability is in a range, the mean prediction
/// beside the share of positive samples. Hinge and squared hinge: the same but log loss and
/// calibration, with predictions from the score 0 on. Models of numbers: root mean squared error
/// and mean absolute error; softmax: log loss and accuracy; multi-task: of its number alone.
/// Ratings with --top-k: precision, recall and NDCG of the first K of all items.
///
/// What the model's file says of data holds here, as for `predict`.
#[derive(Debug, Parser)]
#[command(name = "evaluate")]
struct Arguments {
    /// The model's file.
    #[arg(long)]
    model: PathBuf,
    /// The data, with labels: files that are read as one, folders of files, or - for the standard
    /// input.
    #[arg(long, value_name = "FILE", required = true, num_args = 1..)]
    data: Vec<PathBuf>,
    #[command(flatten)]
    reading: Reading,
    #[command(flatten)]
    measuring: Measuring,
    #[command(flatten)]
    ranking: Ranking,
    /// Rows that are evaluated at a time.
    #[arg(long, default_value_t = 1024, value_parser = RangedU64ValueParser::<usize>::new().range(1..))]
    batch_size: usize,
    /// One JSON object instead of a table; a metric without a value is null.
    #[arg(long)]
    json: bool,
    /// Draw the calibration table to this file, an SVG picture.
    #[arg(long, value_name = "FILE.svg")]
    plot: Option<PathBuf>,
}

/// What is measured of probabilities.
#[derive(Clone, Copy, Debug, Args)]
pub(crate) struct Measuring {
    /// The probability from which a sample counts as predicted positive, for precision and recall.
    #[arg(long, value_name = "PROBABILITY", default_value_t = 0.5, value_parser = probability)]
    pub(crate) threshold: f64,
    /// The number of ranges of the calibration table.
    #[arg(long, value_name = "BINS", default_value_t = 10, value_parser = RangedU64ValueParser::<usize>::new().range(1..=1000))]
    pub(crate) calibration_bins: usize,
}

fn probability(text: &str) -> Result<f64, String> {
    match text.parse() {
        Ok(number) if (0.0..=1.0).contains(&number) => Ok(number),
        _ => Err("it is a probability, from 0 to 1".to_owned()),
    }
}

pub(crate) fn program() -> Program {
    let run = |matches: &_| run(&Arguments::from_arg_matches(matches)?);
    Program { command: Arguments::command(), run }
}

fn run(arguments: &Arguments) -> Result<(), Failure> {
    let saved = SavedModel::open(&arguments.model)?;
    let files = DataFiles::of(&arguments.data)?;
    let reading = saved.reading(&arguments.reading, &files)?;
    let known = saved.known_of_labelled();
    let data = report::reading(&files, || saved.open_labelled(&reading, &files))?;
    note(summary(&reading, &files, &data, Some(&known), None));
    unknown_ids::of_data(&data, &reading, &known).tell();
    let (measuring, rows) = (arguments.measuring, arguments.batch_size);
    let evaluate = Evaluate { saved: &saved, data: &data, measuring, rows };
    let mut evaluation = saved.kind.with(evaluate)?;
    evaluation.ranked =
        ranking::rank(&arguments.ranking, &saved, &reading, &data)?.zip(arguments.ranking.top_k);
    tell_skipped(&data);
    if let Some(path) = &arguments.plot {
        draw(&evaluation, path)?;
    }
    let text = if arguments.json { evaluation.json() } else { evaluation.table() };
    written(writeln!(io::stdout(), "{}", text.trim_end()))
}

/// Draws the calibration table.
fn draw(evaluation: &Evaluation, path: &Path) -> Result<(), Failure> {
    if evaluation.calibration.is_empty() {
        return Err("--plot draws the calibration table, but this model predicts no probability of two classes: leave it out".into());
    }
    let picture = CalibrationBin::to_svg(&evaluation.calibration);
    let written = replace_file(path, |writer| writer.write_all(picture.as_bytes()));
    Ok(written.map_err(|error| format!("--plot {}: {error}", path.display()))?)
}

/// Loads a model and measures it.
pub(crate) struct Evaluate<'a> {
    pub(crate) saved: &'a SavedModel,
    pub(crate) data: &'a AnyDataset,
    pub(crate) measuring: Measuring,
    /// The samples that are evaluated at a time.
    pub(crate) rows: usize,
}

impl ModelVisitor for Evaluate<'_> {
    type Output = Result<Evaluation>;

    fn visit<M: Model<Element = f32>>(
        self,
        make: fn(Dims, Seed) -> Result<M>,
    ) -> Result<Evaluation> {
        let Evaluate { saved, data, measuring, rows } = self;
        let mut model = saved.load_to_score(make)?;
        let task = saved.kind.task();
        let metrics = metrics(task, saved.clip, measuring.threshold);
        let mut accumulators: Vec<Box<dyn Accumulator>> =
            metrics.iter().map(|metric| metric.start()).collect();
        if task == Task::Binary {
            accumulators.push(Box::new(Calibration { n_bins: measuring.calibration_bins }.seen()));
        }
        let scored = score_into(&mut model, data, &mut accumulators, rows)?;
        let mut measured: Vec<MeasuredMetric> = metrics
            .iter()
            .zip(&accumulators)
            .map(|(metric, seen)| MeasuredMetric { name: metric.name(), value: seen.value() })
            .collect();
        measured.extend(harmonic_mean(&measured));
        let bins = accumulators.last().and_then(|seen| {
            let seen: &dyn Any = &**seen;
            seen.downcast_ref::<SeenCalibration>().map(SeenCalibration::bins)
        });
        Ok(Evaluation {
            samples: scored.n_rows,
            loss: scored.loss,
            constant_loss: constant_loss(saved.kind, data),
            metrics: measured,
            threshold: (task == Task::Binary).then_some(measuring.threshold),
            calibration: bins.unwrap_or_default(),
            ranked: None,
        })
    }
}

/// The metrics of the first output of a model of some task.
fn metrics(task: Task, clip: Option<(f64, f64)>, threshold: f64) -> Vec<Box<dyn Metric>> {
    fn clipped(metric: impl Metric, clip: Option<(f64, f64)>) -> Box<dyn Metric> {
        match clip {
            Some((low, high)) => Box::new(Clipped { metric, low, high }),
            None => Box::new(metric),
        }
    }
    match task {
        Task::Number | Task::Quantile | Task::Count | Task::NumberAndBinary => {
            vec![clipped(Rmse, clip), clipped(Mae, clip)]
        }
        Task::Margin => vec![
            Box::new(Margin(Accuracy)),
            Box::new(Auc),
            Box::new(PrAuc),
            Box::new(Margin(Precision { threshold: 0.5 })),
            Box::new(Margin(Recall { threshold: 0.5 })),
        ],
        Task::Binary => vec![
            Box::new(LogLoss),
            Box::new(Accuracy),
            Box::new(Auc),
            Box::new(PrAuc),
            Box::new(Precision { threshold }),
            Box::new(Recall { threshold }),
        ],
        Task::Classes => vec![Box::new(LogLoss), Box::new(Accuracy)],
    }
}

/// F1 of the precision and the recall, if both are there.
fn harmonic_mean(measured: &[MeasuredMetric]) -> Option<MeasuredMetric> {
    let value = |name| {
        let metric = measured.iter().find(|metric| metric.name == name)?;
        metric.value.as_ref().ok().copied()
    };
    let (precision, recall) = (value("precision")?, value("recall")?);
    let sum = precision + recall;
    let f1 = if sum > 0.0 { 2.0 * precision * recall / sum } else { 0.0 };
    Some(MeasuredMetric { name: "f1", value: Ok(f1) })
}

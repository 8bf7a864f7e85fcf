//! Training, for the model and the rule that the command line names.

use super::arguments::{Arguments, ScheduleKind};
use super::keep;
use super::optimizer::{self, Penalty};
use super::run::Run;
use crate::Failure;
use crate::data::tell_skipped;
use crate::models::{ModelKind, ModelVisitor};
use crate::notes::note_of_clip;
use crate::printed::tell;
use crate::summary::{constant_loss, summary_of_pass};
use nnz::core::update_rules::{RuleVisitor, UpdateRule};
use nnz::data::{AnyDataset, Classes, DataSource, IdMap};
use nnz::optimizer::ParameterSpec;
use nnz::prelude::*;
use nnz::training::checkpoint::Attachments;
use nnz::training::{Callback, EpochReport, Evaluation, Moment, ScoreReport, TrainError, score};
use serde::Serialize;
use std::cell::Cell;
use std::fmt::Write as _;
use std::ops::ControlFlow;

/// One epoch, as `--json` prints it. This contract stays; later models add fields.
/// `objective` and `train_loss` are there with `--objective`.
#[derive(Debug, Default, Serialize)]
struct Line {
    epoch: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    objective: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    train_loss: Option<f64>,
    progressive_loss: f64,
    seconds: f64,
    samples_per_s: f64,
    #[serde(skip_serializing_if = "Option::is_none")]
    test_loss: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    test_accuracy: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    test_auc: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    test_rmse: Option<f64>,
}

impl Line {
    /// The first of its losses and metrics that is no finite number.
    fn not_finite(&self) -> Option<(&'static str, f64)> {
        let numbers = [
            ("the objective", self.objective),
            ("the training loss", self.train_loss),
            ("the progressive loss", Some(self.progressive_loss)),
            ("the loss on the test data", self.test_loss),
            ("the accuracy on the test data", self.test_accuracy),
            ("the AUC on the test data", self.test_auc),
            ("the RMSE on the test data", self.test_rmse),
        ];
        let mut known = numbers.into_iter().filter_map(|(name, number)| Some((name, number?)));
        known.find(|(_, number)| !number.is_finite())
    }
}

impl ModelVisitor for Run<'_> {
    type Output = Result<(), Failure>;

    fn visit<M: Model<Element = f32>>(
        self,
        make: fn(Dims, Seed) -> nnz::Result<M>,
    ) -> Self::Output {
        let model = make(self.dims(), Seed(self.arguments.seed))?;
        let trained = optimizer::with(&self.arguments.optimizer, Fit { run: self, model })??;
        // With --patience the best model is in the file already.
        if let (Some(path), None) = (&self.arguments.save, self.arguments.patience) {
            check_finite(&trained)?;
            let clip = self.clipping.range_after_training()?.map(note_of_clip);
            let notes = self.notes.iter().chain(&clip);
            let notes = notes.map(|(name, note)| (*name, &note[..])).collect::<Vec<_>>();
            let ids = keep::ids_by_name(self.ids);
            checkpoint::save_with(&trained, path, Attachments { notes: &notes, ids: &ids })?;
        }
        Ok(())
    }
}

impl Run<'_> {
    /// The extents of the parameters.
    fn dims(&self) -> Dims {
        let (d, k) = (self.train.n_features(), self.arguments.factors);
        match self.arguments.model {
            ModelKind::Linear | ModelKind::Logistic | ModelKind::Poisson | ModelKind::WideDeep => {
                dims! { d: d }
            }
            ModelKind::Softmax => dims! { d: d, k: self.train.classes().map_or(0, Classes::len) },
            ModelKind::FactorizationMachine | ModelKind::MultiTask => dims! { d: d, k: k },
            ModelKind::MatrixFactorization => {
                let n_ids = |column| match self.train {
                    AnyDataset::Memory(data) => data.id_map(column).map_or(0, IdMap::len),
                    AnyDataset::Stream(_) => 0,
                };
                dims! { users: n_ids("user"), items: n_ids("item"), k: k }
            }
        }
    }
}

/// Training with the rule that the command line names: all that is compiled for each pair of a
/// model and a rule.
struct Fit<'a, M> {
    run: Run<'a>,
    model: M,
}

impl<M: Model<Element = f32>> RuleVisitor for Fit<'_, M> {
    /// The trained model.
    type Output = Result<M, Failure>;

    fn visit<R: UpdateRule>(self, rule: R) -> Result<M, Failure> {
        let Fit { run, mut model } = self;
        let objective = Cell::default();
        let mut trainer = trainer(rule, &run, &objective)?;
        let report = match keep::resumed(run.arguments)? {
            Some(path) => trainer.resume(&mut model, run.train, path),
            None => trainer.fit(&mut model, run.train),
        };
        keep::tell_end(&report?);
        Ok(model)
    }
}

/// What is the same for every model.
#[inline(never)]
fn trainer<'a, R: UpdateRule>(
    rule: R,
    run: &'a Run<'a>,
    objective: &'a Cell<Option<Objective>>,
) -> Result<Trainer<'a, R, Evaluated<'a>>, Failure> {
    let arguments = run.arguments;
    let rule = optimizer::configured(rule, arguments)?;
    let penalty = Penalty::of(&rule);
    let mut trainer = Trainer::new(rule)
        .batch_size(arguments.batch_size)
        .epochs(arguments.epochs)
        .shuffle(!arguments.no_shuffle)
        .seed(arguments.seed)
        .schedule(schedule(arguments, run.train.n_rows())?)
        .clip_norm(arguments.clip_norm)
        .parallel(arguments.reading.parallel())
        .progress(Progress::Within)
        .evaluation(Evaluated { run, penalty, objective })
        .callback(Lines::new(run, objective));
    if arguments.no_bias {
        trainer = trainer.learning_rate_scale("b", 0.0);
    }
    keep::attach(trainer, run)
}

/// What an epoch came to on the training data.
#[derive(Clone, Copy, Debug, Default)]
struct Objective {
    train_loss: f64,
    penalty: f64,
}

/// Refuses to save a model whose last step made a number that is not finite.
fn check_finite<M: Model<Element = f32>>(model: &M) -> Result<(), Failure> {
    for parameter in model.parameters() {
        if let Some(value) = parameter.values().iter().find(|value| !value.is_finite()) {
            let name = parameter.name;
            return Err(format!(
                "parameter `{name}` has the value {value} after the last epoch, and nothing is saved: scale the features, or lower --learning-rate"
            )
            .into());
        }
    }
    Ok(())
}

/// What is computed after every epoch; compiled once a model, whatever the rule.
#[derive(Clone, Copy)]
pub(crate) struct Evaluated<'a> {
    run: &'a Run<'a>,
    penalty: Penalty,
    /// For whoever prints it.
    objective: &'a Cell<Option<Objective>>,
}

impl Evaluation<f32> for Evaluated<'_> {
    type Source = AnyDataset;

    fn source(&self) -> Option<&AnyDataset> {
        self.run.test
    }

    #[inline(never)]
    fn evaluate<M: Model<Element = f32>>(
        &self,
        model: &mut M,
        _: &[Box<dyn Metric>],
        _: usize,
    ) -> nnz::Result<Option<ScoreReport>> {
        let (arguments, rows) = (self.run.arguments, self.run.arguments.eval_batch);
        if arguments.objective {
            let train_loss = score(model, self.run.train, &[], rows)?.loss;
            let penalty = penalty_of(model, self.penalty);
            self.objective.set(Some(Objective { train_loss, penalty }));
        }
        let Some(test) = self.run.test else { return Ok(None) };
        score(model, test, &arguments.model.metrics(self.run.clipping.range()), rows).map(Some)
    }
}

/// The penalty of all parameters that the rule shrinks: it costs what their rows do that were
/// written.
fn penalty_of<M: Model<Element = f32>>(model: &M, penalty: Penalty) -> f64 {
    let specs = ParameterSpec::of_model(model);
    let parameters = model.parameters().into_iter().zip(specs);
    parameters
        .map(|(parameter, spec)| match spec.weight_decay_scale {
            0.0 => 0.0,
            scale => scale * penalty.at(parameter.table),
        })
        .sum()
}

/// Prints a line an epoch.
struct Lines<'a> {
    run: &'a Run<'a>,
    objective: &'a Cell<Option<Objective>>,
    /// The mean loss of the best constant, where it is known.
    constant_loss: Option<f64>,
    /// Whether it was said that a constant is better.
    is_warned: bool,
    /// Whether it was said what the labels are.
    are_labels_told: bool,
}

impl<'a> Lines<'a> {
    fn new(run: &'a Run<'a>, objective: &'a Cell<Option<Objective>>) -> Self {
        let constant_loss = constant_loss(run.arguments.model, run.train);
        let are_labels_told = run.train.label_statistics().is_some();
        Lines { run, objective, constant_loss, is_warned: false, are_labels_told }
    }

    /// What the first pass over a stream has shown.
    fn look_at_labels(&mut self) {
        if self.constant_loss.is_none() {
            self.constant_loss = constant_loss(self.run.arguments.model, self.run.train);
        }
        let summary = summary_of_pass(&self.run.arguments.data, self.run.train);
        if let Some(summary) = summary.filter(|_| !self.are_labels_told) {
            self.are_labels_told = true;
            tell(summary);
        }
    }

    /// Says once that a constant is better than what was learnt. The first of several epochs may be
    /// worse, as its samples are predicted before anything is learnt: but not twice as much.
    fn warn(&mut self, report: &EpochReport, loss: f64, what: &str) {
        let Some(constant) = self.constant_loss.filter(|_| !self.is_warned) else { return };
        let is_early = report.epoch == 0 && report.epochs > 1;
        let bound = if is_early { constant + constant.abs() } else { constant };
        // As many digits as sums in single precision have.
        if loss > bound + 1e-4 * bound.abs() + 1e-6 {
            self.is_warned = true;
            tell(format_args!(
                "warning: the {what} loss of epoch {}, {loss:.6}, is above {constant:.6}, that of the best constant: try another --learning-rate, more --epochs, or features of a smaller scale",
                report.epoch + 1
            ));
        }
    }
}

impl Callback for Lines<'_> {
    fn epoch(&mut self, report: &EpochReport, _: &Moment<'_>) -> nnz::Result<ControlFlow<()>> {
        let objective = self.objective.get();
        let tested = report.evaluation.as_ref();
        let metric = |name| tested?.metric(name);
        let line = Line {
            epoch: report.epoch + 1,
            objective: objective.map(|objective| objective.train_loss + objective.penalty),
            train_loss: objective.map(|objective| objective.train_loss),
            progressive_loss: report.loss,
            seconds: report.seconds,
            samples_per_s: report.samples_per_second(),
            test_loss: tested.map(|score| score.loss),
            test_accuracy: metric("accuracy"),
            test_auc: metric("auc"),
            test_rmse: metric("rmse"),
        };
        tell_skipped(self.run.train);
        self.look_at_labels();
        if let Some((what, value)) = line.not_finite() {
            let (what, epoch) = (what.to_owned(), report.epoch);
            return Err(TrainError::NotFiniteAfterEpoch { what, value, epoch }.into());
        }
        self.run.output.line(&text_of(self.run.arguments, &line));
        match objective {
            Some(objective) => self.warn(report, objective.train_loss, "training"),
            None => self.warn(report, report.loss, "progressive"),
        }
        Ok(ControlFlow::Continue(()))
    }
}

fn schedule(arguments: &Arguments, n_rows: Option<usize>) -> Result<Schedule, Failure> {
    let unit = ScheduleUnit::Step;
    let total = || -> Result<u64, Failure> {
        let unknown = "the number of rows of a stream is not known before its first epoch, and this --schedule needs it";
        let steps = n_rows.ok_or(unknown)?.div_ceil(arguments.batch_size.max(1)) as u64;
        Ok(steps.saturating_mul(arguments.epochs).saturating_sub(arguments.warm_up).max(1))
    };
    let (factor, end, power) = (arguments.factor, arguments.end, arguments.power);
    let schedule = match arguments.schedule {
        ScheduleKind::Constant => Schedule::Constant,
        ScheduleKind::Step => {
            Schedule::Step { every: arguments.every, factor, unit: ScheduleUnit::Epoch }
        }
        ScheduleKind::MultiStep => Schedule::MultiStep {
            milestones: arguments.milestones.clone(),
            factor,
            unit: ScheduleUnit::Epoch,
        },
        ScheduleKind::InverseScaling => {
            Schedule::InverseScaling { decay: arguments.decay, power, unit }
        }
        ScheduleKind::Exponential => Schedule::Exponential { factor, unit: ScheduleUnit::Epoch },
        ScheduleKind::Polynomial => Schedule::Polynomial { total: total()?, power, end, unit },
        ScheduleKind::Cosine => Schedule::Cosine { total: total()?, end, unit },
    };
    Ok(match arguments.warm_up {
        0 => schedule,
        steps => schedule.warm_up(steps, unit),
    })
}

fn text_of(arguments: &Arguments, line: &Line) -> String {
    if arguments.json {
        // Numbers and names are nothing that JSON cannot write.
        return serde_json::to_string(line).unwrap_or_default();
    }
    let mut text = format!("epoch {}/{}", line.epoch, arguments.epochs);
    let _ = match (line.objective, line.train_loss) {
        (Some(objective), Some(loss)) => write!(text, "  objective {objective:.6}  loss {loss:.6}"),
        _ => write!(text, "  progressive loss {:.6}", line.progressive_loss),
    };
    let tested = [
        ("loss", line.test_loss),
        ("accuracy", line.test_accuracy),
        ("auc", line.test_auc),
        ("rmse", line.test_rmse),
    ];
    for (name, value) in tested {
        if let Some(value) = value {
            let _ = write!(text, "  test {name} {value:.5}");
        }
    }
    let (seconds, rate) = (line.seconds, line.samples_per_s / 1e6);
    let _ = write!(text, "  {seconds:.2} s  {rate:.2} M samples/s");
    text
}

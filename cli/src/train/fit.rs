//! Training, for the model and the rule that the command line names.

use super::arguments::{Arguments, ScheduleKind};
use super::keep;
use super::optimizer::{self, Penalty};
use crate::Failure;
use crate::data::tell_skipped;
use crate::models::{ModelKind, ModelVisitor};
use nnz::core::update_rules::{RuleVisitor, UpdateRule};
use nnz::data::{AnyDataset, Classes, DataSource, IdMap};
use nnz::optimizer::ParameterSpec;
use nnz::prelude::*;
use nnz::training::{Callback, EpochReport, Evaluation, Moment, ScoreReport, score};
use serde::Serialize;
use std::cell::{Cell, RefCell};
use std::fmt::Write as _;
use std::io::{self, Write as _};
use std::ops::ControlFlow;

/// One epoch, as `--json` prints it. This contract stays; later models add fields.
#[derive(Debug, Default, Serialize)]
struct Line {
    epoch: u64,
    objective: f64,
    train_loss: f64,
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

/// What a model is trained on and how.
#[derive(Clone, Copy)]
pub(crate) struct Run<'a> {
    pub(crate) arguments: &'a Arguments,
    pub(crate) train: &'a AnyDataset,
    pub(crate) test: Option<&'a AnyDataset>,
    /// For the model's file.
    pub(crate) notes: &'a [(&'static str, String)],
    /// What the numbers of users and items stand for.
    pub(crate) ids: Option<&'a (IdMap, IdMap)>,
    pub(crate) output: &'a Output,
}

/// Lines on the standard output. Where they cannot be written, training goes on: the model is not lost with them.
#[derive(Debug, Default)]
pub(crate) struct Output(RefCell<Option<io::Error>>);

impl Output {
    fn line(&self, line: &str) {
        let mut failed = self.0.borrow_mut();
        if failed.is_none() {
            *failed = writeln!(io::stdout(), "{line}").err();
        }
    }

    /// The first error, but for that of a reader who had enough.
    pub(crate) fn finish(self) -> io::Result<()> {
        match self.0.into_inner() {
            Some(error) if error.kind() != io::ErrorKind::BrokenPipe => Err(error),
            _ => Ok(()),
        }
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
            let notes = self.notes.iter().map(|(name, note)| (*name, &note[..]));
            checkpoint::save_with_notes(&trained, path, &notes.collect::<Vec<_>>())?;
            keep::write_ids(path, self.ids)?;
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

/// Training with the rule that the command line names: all that is compiled for each pair of a model and a rule.
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
    objective: &'a Cell<Objective>,
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
        .progress(Progress::Silent)
        .evaluation(Evaluated { run, penalty, objective })
        .callback(Lines { run, objective });
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

/// What is computed after every epoch; compiled once a model, whatever the rule.
#[derive(Clone, Copy)]
pub(crate) struct Evaluated<'a> {
    run: &'a Run<'a>,
    penalty: Penalty,
    /// For whoever prints it.
    objective: &'a Cell<Objective>,
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
        let train_loss = score(model, self.run.train, &[], rows)?.loss;
        self.objective.set(Objective { train_loss, penalty: penalty_of(model, self.penalty) });
        let Some(test) = self.run.test else { return Ok(None) };
        score(model, test, &arguments.model.metrics(), rows).map(Some)
    }
}

/// The penalty of all parameters that the rule shrinks: it costs what their rows do that were written.
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
    objective: &'a Cell<Objective>,
}

impl Callback for Lines<'_> {
    fn epoch(&mut self, report: &EpochReport, _: &Moment<'_>) -> nnz::Result<ControlFlow<()>> {
        let Objective { train_loss, penalty } = self.objective.get();
        let tested = report.evaluation.as_ref();
        let metric = |name| tested?.metric(name);
        let line = Line {
            epoch: report.epoch + 1,
            objective: train_loss + penalty,
            train_loss,
            seconds: report.seconds,
            samples_per_s: report.samples_per_second(),
            test_loss: tested.map(|score| score.loss),
            test_accuracy: metric("accuracy"),
            test_auc: metric("auc"),
            test_rmse: metric("rmse"),
        };
        tell_skipped(self.run.train);
        self.run.output.line(&text_of(self.run.arguments, &line));
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
    let mut text = format!(
        "epoch {}/{}  objective {:.6}  loss {:.6}",
        line.epoch, arguments.epochs, line.objective, line.train_loss
    );
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

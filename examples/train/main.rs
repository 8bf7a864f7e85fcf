//! A general command line: linear, logistic and softmax regression on files of text, in memory or streamed.
//!
//! ```text
//! cargo run --release --example train -- --model logistic --data a9a.gz --test a9a.t.gz --l2 1e-4
//! cargo run --release --example train -- --model logistic --data clicks.tsv --hash-bits 22 --stream 268435456 --threads 4
//! ```

mod arguments;
mod data;
mod models;
mod optimizer;

use arguments::{Arguments, ModelKind, ScheduleKind};
use data::{Data, Mode, Opened, open};
use models::{Linear, LinearNoBias, Logistic, LogisticNoBias, Softmax, SoftmaxNoBias};
use nnz::core::update_rules::{RuleVisitor, UpdateRule, with_rule};
use nnz::data::{Classes, DataError, DataSource};
use nnz::prelude::*;
use nnz::training::score;
use optimizer::Penalty;
use serde::Serialize;
use std::process::ExitCode;

fn main() -> ExitCode {
    let arguments = Arguments::read().unwrap_or_else(|error| error.exit());
    match run(&arguments) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("train: {error}");
            ExitCode::FAILURE
        }
    }
}

/// What went wrong: the library's own error, or the thread pool's.
type Failure = Box<dyn std::error::Error>;

fn run(arguments: &Arguments) -> Result<(), Failure> {
    if let Some(threads) = arguments.threads {
        rayon::ThreadPoolBuilder::new().num_threads(threads).build_global()?;
    }
    optimizer::check(arguments)??;
    let classifies = matches!(arguments.model, ModelKind::Softmax);
    let train = open(arguments, &arguments.data, Mode::Train { classifies })?;
    let (n_features, classes) = (train.n_features, train.classes.as_ref());
    let mode = Mode::Test { n_features, classes };
    let test = arguments.test.as_deref().map(|path| open(arguments, path, mode)).transpose()?;
    match (&train.data, test.as_ref().map(|test| &test.data)) {
        (Data::Memory(data), None) => fit_model(arguments, &train, data, None::<&Dataset>),
        (Data::Memory(data), Some(Data::Memory(test))) => {
            fit_model(arguments, &train, data, Some(test))
        }
        (Data::Memory(data), Some(Data::Stream(test))) => {
            fit_model(arguments, &train, data, Some(test))
        }
        (Data::Stream(data), None) => fit_model(arguments, &train, data, None::<&Dataset>),
        (Data::Stream(data), Some(Data::Memory(test))) => {
            fit_model(arguments, &train, data, Some(test))
        }
        (Data::Stream(data), Some(Data::Stream(test))) => {
            fit_model(arguments, &train, data, Some(test))
        }
    }
}

/// A model is one entry here and one graph in `models`.
fn fit_model<S: DataSource<f32>, E: DataSource<f32>>(
    arguments: &Arguments,
    opened: &Opened,
    train: &S,
    test: Option<&E>,
) -> Result<(), Failure> {
    let (d, seed) = (opened.n_features, Seed(arguments.seed));
    match (arguments.model, arguments.no_bias) {
        (ModelKind::Linear, false) => {
            let model = Linear::new(dims! { d: d }, seed)?;
            fit(arguments, model, |model| model.w.values(), train, test)
        }
        (ModelKind::Linear, true) => {
            let model = LinearNoBias::new(dims! { d: d }, seed)?;
            fit(arguments, model, |model| model.w.values(), train, test)
        }
        (ModelKind::Logistic, false) => {
            let model = Logistic::new(dims! { d: d }, seed)?;
            fit(arguments, model, |model| model.w.values(), train, test)
        }
        (ModelKind::Logistic, true) => {
            let model = LogisticNoBias::new(dims! { d: d }, seed)?;
            fit(arguments, model, |model| model.w.values(), train, test)
        }
        (ModelKind::Softmax, no_bias) => {
            let dims = dims! { d: d, k: opened.classes.as_ref().map_or(0, Classes::len) };
            if no_bias {
                let model = SoftmaxNoBias::new(dims, seed)?;
                fit(arguments, model, |model| model.w.values(), train, test)
            } else {
                let model = Softmax::new(dims, seed)?;
                fit(arguments, model, |model| model.w.values(), train, test)
            }
        }
    }
}

/// One epoch, as `--json` prints it. This contract stays; later models add fields.
#[derive(Debug, Serialize)]
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

fn fit<M: Model<Element = f32>, S: DataSource<f32>, E: DataSource<f32>>(
    arguments: &Arguments,
    model: M,
    weights: impl Fn(&M) -> &[f32],
    train: &S,
    test: Option<&E>,
) -> Result<(), Failure> {
    with_rule(&arguments.optimizer, Fit { arguments, model, weights, train, test })?
}

/// Training, for the rule that the command line names.
struct Fit<'a, M, W, S, E> {
    arguments: &'a Arguments,
    model: M,
    weights: W,
    train: &'a S,
    test: Option<&'a E>,
}

impl<M, W, S, E> RuleVisitor for Fit<'_, M, W, S, E>
where
    M: Model<Element = f32>,
    W: Fn(&M) -> &[f32],
    S: DataSource<f32>,
    E: DataSource<f32>,
{
    type Output = Result<(), Failure>;

    fn visit<R: UpdateRule>(self, rule: R) -> Result<(), Failure> {
        let Fit { arguments, mut model, weights, train, test } = self;
        let rule = optimizer::configured(rule, arguments)?;
        let penalty = Penalty::of(&rule);
        let mut trainer = Trainer::new(rule)
            .batch_size(arguments.batch_size)
            .epochs(arguments.epochs)
            .shuffle(!arguments.no_shuffle)
            .seed(arguments.seed)
            .schedule(schedule(arguments, train.n_rows())?)
            .clip_norm(arguments.clip_norm)
            .progress(Progress::Silent);
        let mut updater = trainer.updater(&model)?;
        let metrics = metrics(arguments.model);
        for epoch in 0..arguments.epochs {
            let report = trainer.fit_epochs(&mut model, &mut updater, train, epoch..epoch + 1)?;
            let trained = report.last().ok_or(DataError::ZeroBatchSize)?;
            let train_loss = score(&mut model, train, &[], arguments.eval_batch)?.loss;
            let tested = match test {
                Some(test) => Some(score(&mut model, test, &metrics, arguments.eval_batch)?),
                None => None,
            };
            let metric = |name| tested.as_ref().and_then(|report| report.metric(name));
            print(
                arguments,
                &Line {
                    epoch: epoch + 1,
                    objective: train_loss + penalty.at(weights(&model)),
                    train_loss,
                    seconds: trained.seconds,
                    samples_per_s: trained.samples_per_second(),
                    test_loss: tested.as_ref().map(|report| report.loss),
                    test_accuracy: metric("accuracy"),
                    test_auc: metric("auc"),
                    test_rmse: metric("rmse"),
                },
            )?;
        }
        if let Some(path) = &arguments.save {
            checkpoint::save(&model, path)?;
        }
        Ok(())
    }
}

fn schedule(arguments: &Arguments, n_rows: Option<usize>) -> Result<Schedule, Failure> {
    let unit = ScheduleUnit::Step;
    let total = || -> Result<u64, Failure> {
        let unknown = "the number of rows of a stream is not known before its first epoch, and this --schedule needs it";
        let steps = n_rows.ok_or(unknown)?.div_ceil(arguments.batch_size.max(1)) as u64;
        Ok((steps * arguments.epochs).saturating_sub(arguments.warm_up).max(1))
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
        ScheduleKind::Exponential => {
            Schedule::Exponential { factor: arguments.decay, unit: ScheduleUnit::Epoch }
        }
        ScheduleKind::Polynomial => Schedule::Polynomial { total: total()?, power, end, unit },
        ScheduleKind::Cosine => Schedule::Cosine { total: total()?, end, unit },
    };
    Ok(match arguments.warm_up {
        0 => schedule,
        steps => schedule.warm_up(steps, unit),
    })
}

fn metrics(model: ModelKind) -> Vec<Box<dyn Metric>> {
    match model {
        ModelKind::Linear => vec![Box::new(Rmse)],
        ModelKind::Logistic => vec![Box::new(Accuracy), Box::new(Auc)],
        ModelKind::Softmax => vec![Box::new(Accuracy)],
    }
}

fn print(arguments: &Arguments, line: &Line) -> Result<(), Failure> {
    if arguments.json {
        println!("{}", serde_json::to_string(line)?);
        return Ok(());
    }
    print!(
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
            print!("  test {name} {value:.5}");
        }
    }
    println!("  {:.2} s  {:.2} M samples/s", line.seconds, line.samples_per_s / 1e6);
    Ok(())
}

//! Whole training runs: parameters after the first steps and after every epoch, metrics, optimizer
//! state.
//!
//! Lazy runs are met by `Touched`; runs that update every row at every step are met by `Dense` and
//! by `Exact`, which is the same mathematics; those whose idle steps change nothing by all three.
//! Each runs through the fused and the unfused step of every model that stands for the graph. On a
//! device that is not the host they are met by what the device has of these, and by the parameters
//! that the host has after each epoch.

use crate::folder::say;
use crate::golden::case::{Tensor, cases, id, numbers};
use crate::golden::compare::Tolerance;
use crate::golden::device::{Device, Failure, Host};
use crate::golden::epochs::Epochs;
use crate::golden::from_zero::FromZero;
use crate::golden::models::{Family, GeneralisedLinear, OfTables, Visit};
use crate::golden::recorded::Recorded;
use crate::golden::rules::configured;
use crate::golden::tally::Tally;
use nnz::core::storage::Storage;
use nnz::core::update_rules::{GroupAdaGrad, StateBlock, UpdateRule};
use nnz::data::{ColumnValues, Dataset};
use nnz::kernels::Array;
use nnz::model::{InputInfo, InputRole, ParameterInfo, ParameterMut, ParameterRef};
use nnz::optimizer::Updater;
use nnz::prelude::*;
use nnz::training::FitReport;
use serde_json::Value;
use std::collections::BTreeMap;

#[test]
fn linear() {
    run_file("train_linear", &Host);
}

#[test]
fn classify() {
    run_file("train_classify", &Host);
}

#[test]
fn models() {
    run_file("train_models", &Host);
}

/// The runs of cases: how many were made, how far, and of which kind a device has none.
#[derive(Default)]
struct Runs {
    made: usize,
    epochs: Epochs,
    not_there: BTreeMap<String, usize>,
}

/// The cases of a file, trained.
pub(crate) fn run_file<D: Device>(file: &str, on: &D) {
    let Some(cases) = cases(file) else { return };
    let mut tally = Tally::new(&format!("{file}{}", D::SUFFIX));
    let mut runs = Runs::default();
    for case in &cases {
        let outcome =
            Recorded::read(case, &cases).map_err(Failure::from).and_then(|recorded| match file {
                "train_models" => run_tables(&recorded, &mut runs, on),
                _ => run_linear(&recorded, &mut runs, on),
            });
        tally.add(id(case), outcome.into());
    }
    let Runs { made, epochs, not_there } = runs;
    let mut text = format!(
        "golden {file}{}: {made} runs of recorded cases (fused and unfused, by each update), {}",
        D::SUFFIX,
        epochs.describe(on)
    );
    for (what, count) in not_there {
        text += &format!("\n  {count} runs not there: {what}");
    }
    say(&text);
    tally.finish();
}

// By hand, for not every rule is to be compiled with every model.

fn run_linear(recorded: &Recorded<'_>, runs: &mut Runs, on: &impl Device) -> Result<(), Failure> {
    match recorded.case["optimizer"].as_str() {
        Some("sgd") => run_case::<Sgd, GeneralisedLinear, _>(recorded, runs, on),
        Some("adam") => run_case::<Adam, GeneralisedLinear, _>(recorded, runs, on),
        Some("adagrad") => run_case::<AdaGrad, GeneralisedLinear, _>(recorded, runs, on),
        Some("ftrl") => run_case::<FromZero, GeneralisedLinear, _>(recorded, runs, on),
        Some("groupadagrad") => run_case::<GroupAdaGrad, GeneralisedLinear, _>(recorded, runs, on),
        name => Err(format!("unknown optimizer {name:?}").into()),
    }
}

fn run_tables(recorded: &Recorded<'_>, runs: &mut Runs, on: &impl Device) -> Result<(), Failure> {
    match recorded.case["optimizer"].as_str() {
        Some("sgd") => run_case::<Sgd, OfTables, _>(recorded, runs, on),
        Some("adam") => run_case::<Adam, OfTables, _>(recorded, runs, on),
        Some("adagrad") => run_case::<AdaGrad, OfTables, _>(recorded, runs, on),
        name => Err(format!("unknown optimizer {name:?}").into()),
    }
}

/// A case of plain SGD, by every model and update.
pub(crate) fn run_sgd(
    case: &Value,
    cases: &[Value],
    epochs: &mut Epochs,
    on: &impl Device,
) -> Result<(), Failure> {
    let (recorded, mut runs) = (Recorded::read(case, cases)?, Runs::default());
    run_case::<Sgd, GeneralisedLinear, _>(&recorded, &mut runs, on)?;
    epochs.add(runs.epochs);
    Ok(())
}

fn run_case<R: UpdateRule, F: Family, D: Device>(
    recorded: &Recorded<'_>,
    runs: &mut Runs,
    on: &D,
) -> Result<(), Failure> {
    let (before, mut missing) = (runs.made, None);
    for model in F::choose(recorded)? {
        for &mode in recorded.lazy_updates() {
            if D::IS_GPU && !R::CATCHES_UP_ON_GPU && mode == LazyUpdate::Exact {
                continue;
            }
            for fused in [true, false] {
                let mut run = Run::<R>::read(recorded, &model, mode, on)?;
                run.followed.one_loop = fused && model.is_one_loop();
                let step = if fused { "fused" } else { "unfused" };
                match model.with_model(fused, on, &mut run) {
                    Ok(()) => {
                        runs.made += 1;
                        runs.epochs.add(run.followed.epochs);
                    }
                    Err(Failure::NotThere(what)) => {
                        *runs.not_there.entry(what.clone()).or_default() += 1;
                        missing = Some(what);
                    }
                    Err(failure) => {
                        return Err(format!("{mode:?}, {step}, {model:?}: {failure}").into());
                    }
                }
            }
        }
    }
    match missing.filter(|_| runs.made == before) {
        Some(what) => Err(Failure::NotThere(what)),
        None => Ok(()),
    }
}

/// A recorded run, ready to be made by a rule.
struct Run<'a, R> {
    rule: R,
    followed: Followed<'a>,
}

impl<'a, R: UpdateRule> Run<'a, R> {
    fn read(
        recorded: &'a Recorded<'a>,
        model: &impl Family,
        mode: LazyUpdate,
        on: &impl Device,
    ) -> Result<Self, String> {
        let n_epochs = recorded.history()?.len();
        let followed = Followed {
            recorded,
            columns: model.columns(recorded)?,
            one_loop: false,
            epochs: Epochs::within(on.most_steps(), n_epochs, recorded.batches()),
            found: Vec::new(),
            found_before: Vec::new(),
        };
        Ok(Run { rule: rule(recorded, mode)?, followed })
    }
}

impl<R: UpdateRule> Visit for Run<'_, R> {
    fn visit<M: Model<Element = f32> + 'static>(
        &mut self,
        new: &dyn Fn() -> nnz::Result<M>,
    ) -> Result<(), Failure> {
        let model = Facts {
            name: M::NAME,
            inputs: M::INPUTS,
            parameters: M::PARAMETERS,
            plan: M::PLAN.to_string(),
            is_fused: M::PLAN.is_fused(),
        };
        let recorded = self.followed.recorded;
        self.followed.follow(&model, &|| {
            let (trainer, model) = (trainer(&self.rule, recorded)?, new()?);
            let updater = trainer.updater(&model)?;
            Ok(Box::new(Begun { trainer, updater, model }))
        })
    }
}

/// What a run needs to know of a model.
struct Facts {
    name: &'static str,
    inputs: &'static [InputInfo],
    parameters: &'static [ParameterInfo],
    plan: String,
    is_fused: bool,
}

/// A model in training, whichever it is and whatever rule trains it, so that what follows it is
/// compiled once.
trait InTraining {
    fn parameters(&self) -> Vec<ParameterRef<'_, f32>>;

    fn parameters_mut(&mut self) -> Vec<ParameterMut<'_, f32>>;

    /// The elements of the first output, if it is dense.
    fn output(&self) -> Option<Vec<f64>>;

    /// A run of one epoch.
    fn fit(self: Box<Self>, data: &Dataset) -> nnz::Result<Box<dyn InTraining>>;

    /// An epoch of a run.
    fn fit_epoch(&mut self, data: &Dataset, epoch: u64) -> nnz::Result<FitReport>;

    /// The states of a parameter: for each element, or row, as many numbers as the rule has.
    fn states(&self, parameter: usize) -> nnz::Result<Vec<Vec<f64>>>;
}

struct Begun<R: UpdateRule, M: Model<Element = f32>> {
    trainer: Trainer<'static, R>,
    updater: Updater<R, f32>,
    model: M,
}

impl<R: UpdateRule, M: Model<Element = f32> + 'static> InTraining for Begun<R, M> {
    fn parameters(&self) -> Vec<ParameterRef<'_, f32>> {
        self.model.parameters()
    }

    fn parameters_mut(&mut self) -> Vec<ParameterMut<'_, f32>> {
        self.model.parameters_mut()
    }

    fn output(&self) -> Option<Vec<f64>> {
        let output = self.model.dense_output(0)?;
        Some(output.values().iter().map(|&value| f64::from(value)).collect())
    }

    fn fit(mut self: Box<Self>, data: &Dataset) -> nnz::Result<Box<dyn InTraining>> {
        self.trainer = self.trainer.epochs(1);
        self.trainer.fit(&mut self.model, data)?;
        Ok(self)
    }

    fn fit_epoch(&mut self, data: &Dataset, epoch: u64) -> nnz::Result<FitReport> {
        self.trainer.fit_epochs(&mut self.model, &mut self.updater, data, epoch..epoch + 1)
    }

    fn states(&self, parameter: usize) -> nnz::Result<Vec<Vec<f64>>> {
        let table = self.model.parameters()[parameter].table;
        let states = self.updater.states(parameter, table)?;
        Ok(states.iter().map(|state| state.values().map(f64::from).collect()).collect())
    }
}

/// A recorded run as it is followed.
struct Followed<'a> {
    recorded: &'a Recorded<'a>,
    /// The inputs and the label, in the order of the model's.
    columns: Vec<Tensor>,
    /// Whether the model's step is one loop.
    one_loop: bool,
    /// How far the device goes.
    epochs: Epochs,
    /// The parameters, each time they are looked at, on the device that this run is made on, and on
    /// the one before it.
    found: Vec<Vec<f64>>,
    found_before: Vec<Vec<f64>>,
}

impl Followed<'_> {
    fn follow(
        &mut self,
        model: &Facts,
        new: &dyn Fn() -> Result<Box<dyn InTraining>, Failure>,
    ) -> Result<(), Failure> {
        if model.is_fused != self.one_loop {
            let message = format!("the step is not planned as it should be: {}", model.plan);
            return Err(message.into());
        }
        self.found_before = std::mem::take(&mut self.found);
        let (case, batch_size) = (self.recorded.case, self.recorded.batch_size);
        for step in case["first_steps"].as_array().map_or(&[][..], |list| list) {
            let number = step["step"].as_u64().ok_or("a step without a number")? as usize;
            let data = self.dataset(model, number * batch_size)?;
            let trained = self.begin(model, new)?.fit(&data)?;
            let when = format!("after step {number}");
            self.compare_parameters(&when, &*trained, &step["params"])?;
            let found = trained.output().ok_or("the output is not dense")?;
            let expected = numbers(&step["output"]).ok_or("an output that is no number")?;
            self.tolerance().compare(&format!("output of step {number}"), found, &expected)?;
        }
        let data = self.dataset(model, self.recorded.label.shape[0])?;
        let mut trained = self.begin(model, new)?;
        let history = &self.recorded.history()?[..self.epochs.followed];
        for (epoch, recorded) in (0..).zip(history) {
            let report = trained.fit_epoch(&data, epoch)?;
            let when = format!("after epoch {epoch}");
            self.compare_parameters(&when, &*trained, &recorded["params"])?;
            let metrics = &report.epochs[0].metrics;
            let metric = metrics.iter().map(|(_, value)| *value);
            let expected = recorded["metric"].as_f64().ok_or("no metric")?;
            self.tolerance().compare(&format!("{when}: metric"), metric, &[expected])?;
        }
        if self.epochs.left_out == 0 {
            self.compare_states(&*trained)?;
        }
        Ok(())
    }

    /// The first `n_rows` rows of the data.
    fn dataset(&self, model: &Facts, n_rows: usize) -> Result<Dataset, String> {
        if model.inputs.len() != self.columns.len() {
            return Err(format!("{} has {} inputs", model.name, model.inputs.len()));
        }
        let mut builder = Dataset::builder();
        for (input, tensor) in model.inputs.iter().zip(&self.columns) {
            let rows = 0..n_rows;
            let values: ColumnValues = match tensor.array()? {
                _ if !input.element.is_float() => {
                    tensor.ids()?.view().rows(rows).map_err(text)?.to_owned().into()
                }
                Array::Csr(csr) => csr.view().rows(rows).map_err(text)?.to_owned().into(),
                Array::Dense(dense) => dense.view().rows(rows).map_err(text)?.to_owned().into(),
                other => return Err(format!("`{}` is {}", tensor.name, other.storage())),
            };
            builder = match input.role {
                InputRole::Label => builder.label(input.name, values),
                _ => builder.input(input.name, values),
            };
        }
        builder.build().map_err(text)
    }

    /// The model as it is at the start, every parameter stored as there; gradients may be sparser.
    fn begin(
        &self,
        model: &Facts,
        new: &dyn Fn() -> Result<Box<dyn InTraining>, Failure>,
    ) -> Result<Box<dyn InTraining>, Failure> {
        let mut begun = new()?;
        if model.parameters.len() != self.recorded.parameters.len() {
            return Err(format!("{} has {} parameters", model.name, model.parameters.len()).into());
        }
        for (mut parameter, info) in begun.parameters_mut().into_iter().zip(model.parameters) {
            let there = self.recorded.parameter(parameter.name)?;
            let is_sparse = there.gradient == Storage::RowSparse;
            if parameter.shape[..] != there.initial.shape[..]
                || info.storage != there.storage
                || (is_sparse && info.gradient != Some(Storage::RowSparse))
            {
                let message = format!(
                    "`{}` is {} of shape {}, its gradient {:?}",
                    info.name, info.storage, parameter.shape, info.gradient
                );
                return Err(message.into());
            }
            for (to, &from) in parameter.values_mut().iter_mut().zip(&there.initial.data) {
                *to = from as f32;
            }
        }
        Ok(begun)
    }

    /// Holds parameters to those recorded, and to those that another device had.
    fn compare_parameters(
        &mut self,
        when: &str,
        trained: &dyn InTraining,
        expected: &Value,
    ) -> Result<(), String> {
        for found in trained.parameters() {
            let expected = numbers(&expected[found.name])
                .filter(|list| !list.is_empty())
                .ok_or_else(|| format!("{when}: `{}` is not recorded", found.name))?;
            let values: Vec<f64> = found.values().iter().map(|&value| f64::from(value)).collect();
            let what = format!("{when}: `{}`", found.name);
            self.tolerance().compare(&what, values.iter().copied(), &expected)?;
            if let Some(before) = self.found_before.get(self.found.len()) {
                let what = format!("{what} of the host");
                Tolerance::TRAINED.compare(&what, values.iter().copied(), before)?;
            }
            self.found.push(values);
        }
        Ok(())
    }

    /// Steps of adam are long where gradients are small, whatever they are rounded to.
    fn tolerance(&self) -> Tolerance {
        match self.recorded.case["optimizer"].as_str() {
            Some("adam") => Tolerance::TRAINED_BY_ADAM,
            _ => Tolerance::TRAINED,
        }
    }

    /// The optimizer states of each parameter, as many as the rule has.
    fn compare_states(&self, trained: &dyn InTraining) -> Result<(), String> {
        for (index, parameter) in trained.parameters().iter().enumerate() {
            let expected = &self.recorded.case["final_states"][parameter.name];
            let expected = Tensor::read_all(expected)?;
            let found = trained.states(index).map_err(text)?;
            let n_states = found.first().map_or(0, Vec::len);
            let what = format!("at the end: states of `{}`", parameter.name);
            if n_states != expected.len() {
                return Err(format!("{what}: {} recorded, {n_states} found", expected.len()));
            }
            for (number, expected) in expected.iter().enumerate() {
                let expected = expected.as_ref().ok_or("a state is null")?.expand();
                let found = found.iter().map(|state| state[number]);
                self.tolerance().compare(&format!("{what}, {number}"), found, &expected)?;
            }
        }
        Ok(())
    }
}

/// What makes a recorded run.
fn trainer<R: UpdateRule>(
    rule: &R,
    recorded: &Recorded<'_>,
) -> Result<Trainer<'static, R>, String> {
    let trainer = Trainer::new(rule.clone())
        .batch_size(recorded.batch_size)
        .epochs(recorded.case["epochs"].as_u64().ok_or("no number of epochs")?)
        .shuffle(false)
        .last_batch(LastBatch::Discard)
        .decay_all()
        .progress(Progress::Silent);
    match recorded.case["metric"].as_str() {
        Some("ce") => Ok(trainer.metric(LogLoss)),
        Some("mse") => Ok(trainer.metric(Mse)),
        metric => Err(format!("unknown metric {metric:?}")),
    }
}

/// The update rule. Recorded gradients are sums over a batch; those of this library are means.
fn rule<R: UpdateRule>(recorded: &Recorded<'_>, lazy_update: LazyUpdate) -> Result<R, String> {
    let mut rule = configured::<R>(R::default(), recorded.case)?;
    rule.set_lazy_update(lazy_update);
    if let Some(rescale) = recorded.case["hyper"]["rescale_grad"].as_f64() {
        let rescale = rescale * recorded.batch_size as f64;
        rule.set("rescale_grad", rescale).map_err(|error| error.to_string())?;
    }
    Ok(rule)
}

fn text(error: impl Into<nnz::Error>) -> String {
    error.into().to_string()
}

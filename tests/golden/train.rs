//! Whole training runs: parameters after the first steps and after every epoch, metrics, optimizer state.
//!
//! Lazy runs are met by `Touched`; runs that update every row at every step are met by `Dense` and by `Exact`,
//! which is the same mathematics; those whose idle steps change nothing by all three. Each runs through the fused and the unfused step of every
//! model that stands for the graph. On a device that is not the host they are met by what the device has of these, and by the parameters that
//! the host has after each epoch.

use crate::case::{Tensor, cases, id, numbers};
use crate::compare::Tolerance;
use crate::device::{Device, Failure, Host};
use crate::epochs::Epochs;
use crate::folder::say;
use crate::models::{Family, GeneralisedLinear, OfTables, Visit};
use crate::recorded::Recorded;
use crate::rules::configured;
use crate::tally::Tally;
use nnz::core::storage::Storage;
use nnz::core::update_rules::{GroupAdaGrad, StateBlock, UpdateRule};
use nnz::data::{ColumnValues, Dataset};
use nnz::kernels::Array;
use nnz::model::InputRole;
use nnz::optimizer::Updater;
use nnz::prelude::*;
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
        Some("sgd") => run_case::<Sgd, GeneralisedLinear>(recorded, runs, on),
        Some("adam") => run_case::<Adam, GeneralisedLinear>(recorded, runs, on),
        Some("adagrad") => run_case::<AdaGrad, GeneralisedLinear>(recorded, runs, on),
        Some("ftrl") => run_case::<Ftrl, GeneralisedLinear>(recorded, runs, on),
        Some("groupadagrad") => run_case::<GroupAdaGrad, GeneralisedLinear>(recorded, runs, on),
        name => Err(format!("unknown optimizer {name:?}").into()),
    }
}

fn run_tables(recorded: &Recorded<'_>, runs: &mut Runs, on: &impl Device) -> Result<(), Failure> {
    match recorded.case["optimizer"].as_str() {
        Some("sgd") => run_case::<Sgd, OfTables>(recorded, runs, on),
        Some("adam") => run_case::<Adam, OfTables>(recorded, runs, on),
        Some("adagrad") => run_case::<AdaGrad, OfTables>(recorded, runs, on),
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
    run_case::<Sgd, GeneralisedLinear>(&recorded, &mut runs, on)?;
    epochs.add(runs.epochs);
    Ok(())
}

fn run_case<R: UpdateRule, F: Family>(
    recorded: &Recorded<'_>,
    runs: &mut Runs,
    on: &impl Device,
) -> Result<(), Failure> {
    let (before, mut missing) = (runs.made, None);
    for model in F::choose(recorded)? {
        for &mode in recorded.lazy_updates() {
            for fused in [true, false] {
                let mut run = Run::<R>::read(recorded, &model, mode, on)?;
                run.one_loop = fused && model.is_one_loop();
                let step = if fused { "fused" } else { "unfused" };
                match model.with_model(fused, on, &mut run) {
                    Ok(()) => {
                        runs.made += 1;
                        runs.epochs.add(run.epochs);
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

/// A recorded run, ready to be made.
struct Run<'a, R> {
    recorded: &'a Recorded<'a>,
    rule: R,
    /// The inputs and the label, in the order of the model's.
    columns: Vec<Tensor>,
    /// Whether the model's step is one loop.
    one_loop: bool,
    /// How far the device goes.
    epochs: Epochs,
    /// The parameters, each time they are looked at, on the device that this run is made on, and on the one before it.
    found: Vec<Vec<f64>>,
    found_before: Vec<Vec<f64>>,
}

impl<'a, R: UpdateRule> Run<'a, R> {
    fn read(
        recorded: &'a Recorded<'a>,
        model: &impl Family,
        mode: LazyUpdate,
        on: &impl Device,
    ) -> Result<Self, String> {
        let n_epochs = recorded.history()?.len();
        Ok(Run {
            recorded,
            rule: rule(recorded, mode)?,
            columns: model.columns(recorded)?,
            one_loop: false,
            epochs: Epochs::within(on.most_steps(), n_epochs, recorded.batches()),
            found: Vec::new(),
            found_before: Vec::new(),
        })
    }

    /// The first `n_rows` rows of the data.
    fn dataset<M: Model<Element = f32>>(&self, n_rows: usize) -> Result<Dataset, String> {
        if M::INPUTS.len() != self.columns.len() {
            return Err(format!("{} has {} inputs", M::NAME, M::INPUTS.len()));
        }
        let mut builder = Dataset::builder();
        for (input, tensor) in M::INPUTS.iter().zip(&self.columns) {
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
    fn model<M: Model<Element = f32>>(
        &self,
        new: &impl Fn() -> nnz::Result<M>,
    ) -> Result<M, Failure> {
        let mut model = new()?;
        if M::PARAMETERS.len() != self.recorded.parameters.len() {
            return Err(format!("{} has {} parameters", M::NAME, M::PARAMETERS.len()).into());
        }
        for (mut parameter, info) in model.parameters_mut().into_iter().zip(M::PARAMETERS) {
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
        Ok(model)
    }

    fn trainer(&self) -> Result<Trainer<'static, R>, String> {
        let trainer = Trainer::new(self.rule.clone())
            .batch_size(self.recorded.batch_size)
            .epochs(self.recorded.case["epochs"].as_u64().ok_or("no number of epochs")?)
            .shuffle(false)
            .last_batch(LastBatch::Discard)
            .decay_all()
            .progress(Progress::Silent);
        match self.recorded.case["metric"].as_str() {
            Some("ce") => Ok(trainer.metric(LogLoss)),
            Some("mse") => Ok(trainer.metric(Mse)),
            metric => Err(format!("unknown metric {metric:?}")),
        }
    }

    /// Holds parameters to those recorded, and to those that another device had.
    fn compare_parameters<M: Model<Element = f32>>(
        &mut self,
        when: &str,
        model: &M,
        expected: &Value,
    ) -> Result<(), String> {
        for found in model.parameters() {
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
    fn compare_states<M: Model<Element = f32>>(
        &self,
        model: &M,
        updater: &Updater<R, f32>,
    ) -> Result<(), String> {
        for (index, parameter) in model.parameters().iter().enumerate() {
            let expected = &self.recorded.case["final_states"][parameter.name];
            let expected = Tensor::read_all(expected)?;
            let found = updater.states(index, parameter.table).map_err(text)?;
            let n_states = found.first().map_or(0, |state| state.values().count());
            let what = format!("at the end: states of `{}`", parameter.name);
            if n_states != expected.len() {
                return Err(format!("{what}: {} recorded, {n_states} found", expected.len()));
            }
            for (number, expected) in expected.iter().enumerate() {
                let expected = expected.as_ref().ok_or("a state is null")?.expand();
                let found =
                    found.iter().map(|state| f64::from(state.values().nth(number).unwrap()));
                self.tolerance().compare(&format!("{what}, {number}"), found, &expected)?;
            }
        }
        Ok(())
    }
}

impl<R: UpdateRule> Visit for Run<'_, R> {
    fn visit<M: Model<Element = f32>>(
        &mut self,
        new: impl Fn() -> nnz::Result<M>,
    ) -> Result<(), Failure> {
        if M::PLAN.is_fused() != self.one_loop {
            return Err(format!("the step is not planned as it should be: {}", M::PLAN).into());
        }
        self.found_before = std::mem::take(&mut self.found);
        let (case, batch_size) = (self.recorded.case, self.recorded.batch_size);
        for step in case["first_steps"].as_array().map_or(&[][..], |list| list) {
            let number = step["step"].as_u64().ok_or("a step without a number")? as usize;
            let data = self.dataset::<M>(number * batch_size)?;
            let mut model = self.model(&new)?;
            self.trainer()?.epochs(1).fit(&mut model, &data)?;
            let when = format!("after step {number}");
            self.compare_parameters(&when, &model, &step["params"])?;
            let output = model.dense_output(0).ok_or("the output is not dense")?;
            let found = output.values().iter().map(|&value| f64::from(value));
            let expected = numbers(&step["output"]).ok_or("an output that is no number")?;
            self.tolerance().compare(&format!("output of step {number}"), found, &expected)?;
        }
        let data = self.dataset::<M>(self.recorded.label.shape[0])?;
        let mut model = self.model(&new)?;
        let mut trainer = self.trainer()?;
        let mut updater = trainer.updater(&model)?;
        let history = &self.recorded.history()?[..self.epochs.followed];
        for (epoch, recorded) in (0..).zip(history) {
            let report = trainer.fit_epochs(&mut model, &mut updater, &data, epoch..epoch + 1)?;
            let when = format!("after epoch {epoch}");
            self.compare_parameters(&when, &model, &recorded["params"])?;
            let metrics = &report.epochs[0].metrics;
            let metric = metrics.iter().map(|(_, value)| *value);
            let expected = recorded["metric"].as_f64().ok_or("no metric")?;
            self.tolerance().compare(&format!("{when}: metric"), metric, &[expected])?;
        }
        if self.epochs.left_out == 0 {
            self.compare_states(&model, &updater)?;
        }
        Ok(())
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

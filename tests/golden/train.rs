//! Whole training runs: parameters after the first steps and after every epoch, metrics, optimizer state.
//!
//! Lazy runs are met by `Touched`; runs that update every row at every step are met by `Dense` and by `Exact`,
//! which is the same mathematics. Each runs through the fused and the unfused step. On a device that is not the host they are met by what the
//! device has of these, and by the parameters that the host has after each epoch.

use crate::case::{Tensor, cases, id, numbers};
use crate::compare::Tolerance;
use crate::device::{Device, Failure, Host};
use crate::folder::say;
use crate::models::{Arrays, Choice, Visit, with_model};
use crate::rules::configured;
use crate::tally::Tally;
use nnz::core::storage::Storage;
use nnz::core::update_rules::{GroupAdaGrad, StateBlock, UpdateRule};
use nnz::data::Dataset;
use nnz::kernels::Array;
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

/// The runs of cases: how many were made, and of which kind a device has none.
#[derive(Default)]
struct Runs {
    made: usize,
    not_there: BTreeMap<String, usize>,
}

/// The cases of a file, trained.
pub(crate) fn run_file<D: Device>(file: &str, on: &D) {
    let Some(cases) = cases(file) else { return };
    let mut tally = Tally::new(&format!("{file}{}", D::SUFFIX));
    let mut runs = Runs::default();
    for case in &cases {
        // By hand, for not every rule is to be compiled with every model.
        let outcome = match case["optimizer"].as_str() {
            Some("sgd") => run_case::<Sgd>(case, &cases, &mut runs, on),
            Some("adam") => run_case::<Adam>(case, &cases, &mut runs, on),
            Some("adagrad") => run_case::<AdaGrad>(case, &cases, &mut runs, on),
            Some("ftrl") => run_case::<Ftrl>(case, &cases, &mut runs, on),
            Some("groupadagrad") => run_case::<GroupAdaGrad>(case, &cases, &mut runs, on),
            name => Err(format!("unknown optimizer {name:?}").into()),
        };
        tally.add(id(case), outcome.into());
    }
    let Runs { made, not_there } = runs;
    let mut text = format!(
        "golden {file}{}: {made} runs of recorded cases (fused and unfused, by each update)",
        D::SUFFIX
    );
    for (what, count) in not_there {
        text += &format!("\n  {count} runs not there: {what}");
    }
    say(&text);
    tally.finish();
}

/// A case of plain SGD, by every model and update.
pub(crate) fn run_sgd(case: &Value, cases: &[Value], on: &impl Device) -> Result<(), Failure> {
    run_case::<Sgd>(case, cases, &mut Runs::default(), on)
}

/// An array of a case's data, which may be that of another case.
pub(crate) fn data(case: &Value, cases: &[Value], name: &str) -> Result<Tensor, String> {
    let of = |case: &Value| {
        let list = case["data"].as_array().map_or(&[][..], |list| list);
        list.iter().find(|tensor| tensor["name"] == name).cloned()
    };
    let here = of(case).ok_or(format!("no data called `{name}`"))?;
    match here["same_as"].as_str() {
        None => Tensor::read(&here),
        Some(other) => {
            let other = cases.iter().find(|case| case["id"] == other);
            let there = other.and_then(of).ok_or(format!("`{name}` is the same as none"))?;
            Tensor::read(&there)
        }
    }
}

fn run_case<R: UpdateRule>(
    case: &Value,
    cases: &[Value],
    runs: &mut Runs,
    on: &impl Device,
) -> Result<(), Failure> {
    let lazy_update = case["hyper"]["lazy_update"].as_bool();
    let modes: &[LazyUpdate] = match (case["optimizer"].as_str(), lazy_update) {
        // Idle steps change nothing.
        (Some("adagrad" | "groupadagrad"), _) => {
            &[LazyUpdate::Dense, LazyUpdate::Exact, LazyUpdate::Touched]
        }
        // There is no closed form.
        (Some("adam"), Some(false)) => &[LazyUpdate::Dense],
        (_, Some(false)) => &[LazyUpdate::Dense, LazyUpdate::Exact],
        _ => &[LazyUpdate::Touched],
    };
    let (before, mut missing) = (runs.made, None);
    for &mode in modes {
        for fused in [true, false] {
            let mut run = Run::<R>::read(case, cases, mode)?;
            let choice = choose(case, &run, fused)?;
            run.one_loop = fused && choice.arrays != Arrays::Dense;
            let step = if fused { "fused" } else { "unfused" };
            match with_model(choice, on, &mut run) {
                Ok(()) => runs.made += 1,
                Err(Failure::NotThere(what)) => {
                    *runs.not_there.entry(what.clone()).or_default() += 1;
                    missing = Some(what);
                }
                Err(failure) => return Err(format!("{mode:?}, {step}: {failure}").into()),
            }
        }
    }
    match missing.filter(|_| runs.made == before) {
        Some(what) => Err(Failure::NotThere(what)),
        None => Ok(()),
    }
}

/// A case, ready to be run.
struct Run<'a, R> {
    case: &'a Value,
    rule: R,
    features: Array<f32>,
    labels: Tensor,
    /// Initial values, by the model's order: weight, then bias.
    parameters: Vec<Tensor>,
    batch_size: usize,
    /// Whether the model's step is one loop.
    one_loop: bool,
    /// The parameters, each time they are looked at, on the device that this run is made on, and on the one before it.
    found: Vec<Vec<f64>>,
    found_before: Vec<Vec<f64>>,
}

impl<'a, R: UpdateRule> Run<'a, R> {
    fn read(case: &'a Value, cases: &[Value], mode: LazyUpdate) -> Result<Self, String> {
        let tensor = |name: &str| data(case, cases, name);
        let [data_name] = words(&case["data_names"])[..] else {
            return Err("not one array of data".into());
        };
        let label_name = case["label_name"].as_str().ok_or("no label")?;
        let batch_size = case["batch_size"].as_u64().ok_or("no batch size")? as usize;
        let parameters: Option<Vec<Tensor>> =
            Tensor::read_all(&case["params"])?.into_iter().collect();
        Ok(Run {
            case,
            rule: rule(case, mode, batch_size)?,
            features: tensor(data_name)?.array()?,
            labels: tensor(label_name)?,
            parameters: parameters.ok_or("a parameter is null")?,
            batch_size,
            one_loop: false,
            found: Vec::new(),
            found_before: Vec::new(),
        })
    }

    /// The first `n_rows` rows of the data.
    fn dataset(&self, n_rows: usize, ids: bool) -> Result<Dataset, String> {
        let builder = match &self.features {
            Array::Csr(csr) => {
                let rows = csr.view().rows(0..n_rows).map_err(text)?;
                Dataset::builder().input("x", rows.to_owned())
            }
            Array::Dense(dense) => {
                let rows = dense.view().rows(0..n_rows).map_err(text)?;
                Dataset::builder().input("x", rows.to_owned())
            }
            other => return Err(format!("data is {}", other.storage())),
        };
        let builder = if ids {
            let ids = self.labels.ids()?;
            builder.label("y", ids.view().rows(0..n_rows).map_err(text)?.to_owned())
        } else {
            let labels = self.labels.array()?;
            let Array::Dense(labels) = labels else { return Err("labels are sparse".into()) };
            builder.label("y", labels.view().rows(0..n_rows).map_err(text)?.to_owned())
        };
        builder.build().map_err(text)
    }

    fn model<M: Model<Element = f32>>(
        &self,
        new: &impl Fn(usize, usize) -> nnz::Result<M>,
    ) -> Result<M, Failure> {
        let [d, k] = self.parameters[0].shape[..] else {
            return Err("the weight is no matrix".into());
        };
        let mut model = new(d, k)?;
        let initial = self.parameters.iter();
        for (mut parameter, initial) in model.parameters_mut().into_iter().zip(initial) {
            if parameter.shape[..] != initial.shape[..] {
                let message = format!("`{}` has shape {}", parameter.name, parameter.shape);
                return Err(message.into());
            }
            for (to, &from) in parameter.values_mut().iter_mut().zip(&initial.data) {
                *to = from as f32;
            }
        }
        Ok(model)
    }

    fn trainer(&self) -> Trainer<'static, R> {
        let trainer = Trainer::new(self.rule.clone())
            .batch_size(self.batch_size)
            .epochs(self.case["epochs"].as_u64().unwrap_or(0))
            .shuffle(false)
            .last_batch(LastBatch::Discard)
            .decay_all()
            .progress(Progress::Silent);
        match self.case["metric"].as_str() {
            Some("ce") => trainer.metric(LogLoss),
            _ => trainer.metric(Mse),
        }
    }

    /// Holds parameters to those recorded, and to those that another device had.
    fn compare_parameters<M: Model<Element = f32>>(
        &mut self,
        when: &str,
        model: &M,
        expected: &Value,
    ) -> Result<(), String> {
        for (found, named) in model.parameters().iter().zip(&self.parameters) {
            let expected = numbers(&expected[named.name.as_str()])
                .filter(|list| !list.is_empty())
                .ok_or_else(|| format!("{when}: `{}` is not recorded", named.name))?;
            let values: Vec<f64> = found.values().iter().map(|&value| f64::from(value)).collect();
            let what = format!("{when}: `{}`", named.name);
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
        match self.case["optimizer"].as_str() {
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
        let parameters = model.parameters();
        for (index, named) in self.parameters.iter().enumerate() {
            let expected = Tensor::read_all(&self.case["final_states"][named.name.as_str()])?;
            let found = updater.states(index, parameters[index].table).map_err(text)?;
            let n_states = found.first().map_or(0, |state| state.values().count());
            let what = format!("at the end: states of `{}`", named.name);
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
        new: impl Fn(usize, usize) -> nnz::Result<M>,
    ) -> Result<(), Failure> {
        if M::PLAN.is_fused() != self.one_loop {
            return Err(format!("the step is not planned as it should be: {}", M::PLAN).into());
        }
        self.found_before = std::mem::take(&mut self.found);
        let ids = M::INPUTS.iter().any(|input| !input.element.is_float());
        for step in self.case["first_steps"].as_array().map_or(&[][..], |list| list) {
            let number = step["step"].as_u64().ok_or("a step without a number")? as usize;
            let data = self.dataset(number * self.batch_size, ids)?;
            let mut model = self.model(&new)?;
            self.trainer().epochs(1).fit(&mut model, &data)?;
            let when = format!("after step {number}");
            self.compare_parameters(&when, &model, &step["params"])?;
            let output = model.dense_output(0).ok_or("the output is not dense")?;
            let found = output.values().iter().map(|&value| f64::from(value));
            let expected = numbers(&step["output"]).ok_or("an output that is no number")?;
            self.tolerance().compare(&format!("output of step {number}"), found, &expected)?;
        }
        let data = self.dataset(self.labels.shape[0], ids)?;
        let mut model = self.model(&new)?;
        let mut trainer = self.trainer();
        let mut updater = trainer.updater(&model)?;
        let history = self.case["history"].as_array().ok_or("no history")?;
        if history.len() as u64 != self.case["epochs"].as_u64().unwrap_or(0) {
            return Err(format!("{} epochs are recorded", history.len()).into());
        }
        for (epoch, recorded) in (0..).zip(history) {
            let report = trainer.fit_epochs(&mut model, &mut updater, &data, epoch..epoch + 1)?;
            let when = format!("after epoch {epoch}");
            self.compare_parameters(&when, &model, &recorded["params"])?;
            let metrics = &report.epochs[0].metrics;
            let metric = metrics.iter().map(|(_, value)| *value);
            let expected = recorded["metric"].as_f64().ok_or("no metric")?;
            self.tolerance().compare(&format!("{when}: metric"), metric, &[expected])?;
        }
        Ok(self.compare_states(&model, &updater)?)
    }
}

/// Which model the recorded graph is. Everything about it is looked at: a graph that differs in anything
/// is unknown.
fn choose<R>(case: &Value, run: &Run<'_, R>, fused: bool) -> Result<Choice, String> {
    let nodes = case["graph"]["nodes"].as_array().ok_or("no graph")?;
    let unknown = || format!("unknown graph {}", case["graph"]);
    let names: Vec<&str> = run.parameters.iter().map(|tensor| tensor.name.as_str()).collect();
    let (data, label) = (words(&case["data_names"])[0], case["label_name"].as_str().unwrap_or(""));
    let mut previous = "";
    let mut ops = Vec::new();
    for node in nodes {
        let (op, inputs) = (node["op"].as_str().unwrap_or(""), words(&node["inputs"]));
        let wired = match (op, &names[..]) {
            ("dot", [weight, ..]) => inputs == [data, weight],
            ("broadcast_add", [_, bias]) => inputs == [previous, bias],
            _ => inputs == [previous, label],
        };
        if !wired || node["attrs"].as_object().is_some_and(|attributes| !attributes.is_empty()) {
            return Err(unknown());
        }
        previous = node["name"].as_str().unwrap_or("");
        ops.push(op);
    }
    let heads = ["LinearRegressionOutput", "LogisticRegressionOutput", "SoftmaxOutput"];
    let (bias, last) = match (&ops[..], names.len()) {
        (["dot", "broadcast_add", last], 2) => (true, *last),
        (["dot", last], 1) => (false, *last),
        _ => return Err(unknown()),
    };
    let head = heads.into_iter().find(|head| *head == last).ok_or_else(unknown)?;
    match (head, case["metric"].as_str()) {
        ("SoftmaxOutput", Some("ce")) => {}
        (head, Some("mse")) if head != "SoftmaxOutput" => {}
        (_, metric) => return Err(format!("unknown metric {metric:?}")),
    }
    let weight = crate::case::storage(&case["params"][0]["param_stype"]);
    let arrays = match (run.features.storage(), weight) {
        (Storage::Csr, Some(Storage::RowSparse)) => Arrays::Sparse,
        (Storage::Csr, Some(Storage::Dense)) => Arrays::DenseWeight,
        (Storage::Dense, Some(Storage::Dense)) => Arrays::Dense,
        (data, weight) => return Err(format!("data is {data}, the weight {weight:?}")),
    };
    Ok(Choice { head, arrays, bias, fused })
}

/// The update rule. Recorded gradients are sums over a batch; those of this library are means.
fn rule<R: UpdateRule>(
    case: &Value,
    lazy_update: LazyUpdate,
    batch_size: usize,
) -> Result<R, String> {
    let mut rule = configured::<R>(R::default(), case)?;
    rule.set_lazy_update(lazy_update);
    if let Some(rescale) = case["hyper"]["rescale_grad"].as_f64() {
        let rescale = rescale * batch_size as f64;
        rule.set("rescale_grad", rescale).map_err(|error| error.to_string())?;
    }
    Ok(rule)
}

fn words(list: &Value) -> Vec<&str> {
    list.as_array().map_or(&[][..], |list| list).iter().filter_map(Value::as_str).collect()
}

fn text(error: impl Into<nnz::Error>) -> String {
    error.into().to_string()
}

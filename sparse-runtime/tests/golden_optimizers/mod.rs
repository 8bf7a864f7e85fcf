//! Recorded steps of update rules: every combination of momentum, weight decay, clipping and
//! rescaling, of dense and row_sparse weights and gradients, lazy and not; with the feature `cuda`
//! on a GPU too, emulated or real.
//!
//! The cases are read from the folder that `NNZ_GOLDEN` names (default `../shared/golden` beside
//! the workspace); without it the tests say that they were skipped, or fail where
//! `NNZ_REQUIRE_DATA=1`.

mod from_zero;
#[cfg(feature = "cuda")]
mod on_gpu;

use from_zero::FromZero;
use nnz_optim::{LazyUpdate, NAMES, RuleError, RuleVisitor, StateBlock, UpdateRule, with_rule};
use serde_json::Value;
use sparse_core::storage::Storage;
use sparse_runtime::formats::{RowSparse, Shape};
use sparse_runtime::optimizer::{ParameterSpec, Updater};
use std::collections::BTreeMap;
use std::io::Write;
use std::marker::PhantomData;
use std::path::PathBuf;

/// Our name of a recorded optimizer, what our hyperparameters are where a case does not say, and
/// our names of its own.
struct Translation {
    rule: &'static str,
    defaults: &'static [(&'static str, f64)],
    names: &'static [(&'static str, &'static str)],
}

/// `None` of a name that is no rule's.
fn rule_of(case: &Value) -> Option<Translation> {
    const WD: (&str, &str) = ("wd", "weight_decay");
    const EPS: (&str, &str) = ("eps", "epsilon");
    let plain = |rule| Translation { rule, defaults: &[], names: &[WD, EPS] };
    Some(match case["optimizer"].as_str()? {
        "nag" => Translation { defaults: &[("nesterov", 1.0)], ..plain("sgd") },
        "groupadagrad" => plain("group-adagrad"),
        "ftrl" => Translation {
            rule: "ftrl",
            defaults: &[("l1", 0.01)],
            names: &[("wd", "l2"), ("lamda1", "l1")],
        },
        "rmsprop" => Translation {
            rule: if case["hyper"]["centered"] == true { "centered-rmsprop" } else { "rmsprop" },
            defaults: &[],
            names: &[WD, ("gamma1", "rho"), ("gamma2", "momentum")],
        },
        "signum" => Translation {
            rule: "signum",
            defaults: &[],
            names: &[WD, ("wd_lh", "decoupled_decay")],
        },
        name => plain(NAMES.iter().find(|known| **known == name)?),
    })
}

/// The modes whose mathematics a case records, without those that the rule refuses.
fn modes(case: &Value) -> &'static [LazyUpdate] {
    const ALL_ROWS: &[LazyUpdate] = &[LazyUpdate::Dense, LazyUpdate::Exact];
    const TOUCHED: &[LazyUpdate] = &[LazyUpdate::Touched];
    let lazy = match case["optimizer"].as_str().unwrap() {
        // Their idle steps change nothing where there is no decay, and with decay their gradients
        // are dense.
        "adagrad" | "groupadagrad" => {
            return &[LazyUpdate::Dense, LazyUpdate::Exact, LazyUpdate::Touched];
        }
        // The reference has no sparse kernel and takes what is missing as zeros.
        _ if !case["fallback_ops"].is_null() => false,
        "rmsprop" | "signum" | "dcasgd" | "lamb" => false,
        "ftrl" => case["weight_stype"] == "row_sparse" && case["grad_stype"] == "row_sparse",
        _ => case["hyper"]["lazy_update"] != false,
    };
    if lazy { TOUCHED } else { ALL_ROWS }
}

/// A tensor of a case.
struct Tensor {
    storage: Storage,
    shape: Vec<usize>,
    data: Vec<f32>,
    indices: Vec<u64>,
}

impl Tensor {
    fn parse(value: &Value) -> Tensor {
        let storage = match value["stype"].as_str().unwrap() {
            "default" => Storage::Dense,
            word => word.parse().unwrap(),
        };
        let integers = |value: &Value| -> Vec<u64> {
            let numbers = value.as_array().map_or(&[][..], |array| array);
            numbers.iter().map(|n| n.as_u64().unwrap()).collect()
        };
        Tensor {
            storage,
            shape: (integers(&value["shape"]).iter().map(|&n| n as usize)).collect(),
            data: value["data"].as_array().unwrap().iter().map(number).collect(),
            indices: integers(&value["indices"]),
        }
    }

    fn row_size(&self) -> usize {
        self.shape[1..].iter().product()
    }

    fn row_sparse(&self) -> sparse_runtime::Result<RowSparse> {
        let (indices, data) = (self.indices.clone(), self.data.clone());
        Ok(RowSparse::new(Shape::new(&self.shape), indices, data)?)
    }

    /// Every element; rows that are not stored are zero.
    fn dense(&self) -> Vec<f32> {
        if self.storage == Storage::Dense {
            return self.data.clone();
        }
        let row_size = self.row_size();
        let mut dense = vec![0.0; self.shape[0] * row_size];
        for (row, values) in self.indices.iter().zip(self.data.chunks(row_size)) {
            dense[*row as usize * row_size..][..row_size].copy_from_slice(values);
        }
        dense
    }
}

/// To the error stream itself: the test runner keeps back what a passing test prints.
fn say(line: &str) {
    let _ = writeln!(std::io::stderr(), "{line}");
}

fn number(value: &Value) -> f32 {
    match value.as_str() {
        Some("nan") => f32::NAN,
        Some("inf") => f32::INFINITY,
        Some("-inf") => f32::NEG_INFINITY,
        Some(word) => panic!("`{word}` is no number"),
        None => value.as_f64().unwrap() as f32,
    }
}

/// Where weights are, and are updated.
trait Device: Sized {
    /// Said behind the name of a file.
    const SUFFIX: &'static str;

    /// These weights.
    fn new(values: &[f32], row_size: usize) -> sparse_runtime::Result<Self>;

    /// Refuses what the device does not do.
    fn check<R: UpdateRule>(updater: &Updater<R, f32>) -> sparse_runtime::Result<()>;

    /// One step by this gradient.
    fn apply<R: UpdateRule>(
        &mut self,
        updater: &mut Updater<R, f32>,
        gradient: &Tensor,
    ) -> sparse_runtime::Result<()>;

    /// The weights, as a reader of the whole table has to have them, and each of the states.
    fn read<R: UpdateRule>(
        &mut self,
        updater: &mut Updater<R, f32>,
    ) -> sparse_runtime::Result<(Vec<f32>, Vec<Vec<f32>>)>;
}

/// Weights in a slice.
struct OnHost(Vec<f32>);

impl Device for OnHost {
    const SUFFIX: &'static str = "";

    fn new(values: &[f32], _: usize) -> sparse_runtime::Result<Self> {
        Ok(OnHost(values.to_vec()))
    }

    fn check<R: UpdateRule>(_: &Updater<R, f32>) -> sparse_runtime::Result<()> {
        Ok(())
    }

    fn apply<R: UpdateRule>(
        &mut self,
        updater: &mut Updater<R, f32>,
        gradient: &Tensor,
    ) -> sparse_runtime::Result<()> {
        let w = &mut self.0;
        if gradient.storage == Storage::Dense {
            return Ok(updater.apply_dense(0, &mut w[..], &gradient.data)?);
        }
        let gradient = gradient.row_sparse()?;
        updater.settle_rows(0, &mut w[..], gradient.indices().iter().map(|&row| row as usize))?;
        Ok(updater.apply_row_sparse(0, &mut w[..], gradient.view())?)
    }

    fn read<R: UpdateRule>(
        &mut self,
        updater: &mut Updater<R, f32>,
    ) -> sparse_runtime::Result<(Vec<f32>, Vec<Vec<f32>>)> {
        updater.flush(0, &mut self.0)?;
        Ok((self.0.clone(), each_state(updater.states_apart(0)?)))
    }
}

/// The states of all blocks, one after the other.
fn each_state<S: StateBlock<f32>>(blocks: &[S]) -> Vec<Vec<f32>> {
    let n_states = blocks.first().map_or(0, |block| block.values().count());
    let state = |number| blocks.iter().map(|block| block.values().nth(number).unwrap()).collect();
    (0..n_states).map(state).collect()
}

/// A case in one mode, for the rule that its optimizer is called by.
struct Run<'a, D> {
    case: &'a Value,
    translation: &'a Translation,
    mode: LazyUpdate,
    device: PhantomData<D>,
}

/// What became of a case in one mode.
enum Met {
    AsRecorded,
    /// The rule has no such mode.
    NoMode,
    /// The device has not: why.
    NotThere(String),
}

impl<D: Device> RuleVisitor for Run<'_, D> {
    type Output = Result<Met, String>;

    fn visit<R: UpdateRule>(self, mut rule: R) -> Result<Met, String> {
        rule.set_lazy_update(self.mode);
        for (name, value) in self.translation.defaults {
            rule.set(name, *value).unwrap();
        }
        for (name, value) in self.case["hyper"].as_object().unwrap() {
            // Which mode, and which rule; without momentum `gamma2` says nothing.
            let is_plain = self.translation.rule == "rmsprop";
            if name == "lazy_update" || name == "centered" || is_plain && name == "gamma2" {
                continue;
            }
            let ours = self.translation.names.iter().find(|(theirs, _)| theirs == name);
            let value = value.as_f64().or(value.as_bool().map(|flag| f64::from(u8::from(flag))));
            rule.set(ours.map_or(name.as_str(), |(_, ours)| ours), value.unwrap())
                .map_err(|error| error.to_string())?;
        }
        match rule.check() {
            Err(
                RuleError::NoClosedForm { .. }
                | RuleError::CoupledDecay { .. }
                | RuleError::NeedsAllRows { .. },
            ) => Ok(Met::NoMode),
            Err(error) => Err(error.to_string()),
            Ok(()) => run::<R, D>(self.case, rule),
        }
    }
}

/// Compares all values, or names the first that differs by more than
/// `absolute + relative · |expected|`.
fn compare(
    (absolute, relative): (f32, f32),
    found: &[f32],
    expected: &[f32],
) -> Result<(), String> {
    if found.len() != expected.len() {
        return Err(format!("{} values for {}", found.len(), expected.len()));
    }
    for (i, (a, b)) in found.iter().zip(expected).enumerate() {
        if (a - b).abs() > absolute + relative * b.abs() || a.is_nan() != b.is_nan() {
            return Err(format!("element {i} is {a}, expected {b}"));
        }
    }
    Ok(())
}

/// By how much of itself `1 - beta2` is too large in recorded steps of adam, which compute it in
/// f32 (4.7e-5 for 0.999). The second state has it as a factor, the length of a step its root as a
/// divisor. Ours is computed in f64.
fn excess_of_adam(case: &Value) -> f64 {
    let beta2 = case["hyper"]["beta2"].as_f64().unwrap_or(0.999);
    (f64::from(1.0 - beta2 as f32) / (1.0 - beta2) - 1.0).abs()
}

/// Our states as the reference keeps them: instead of the last change of a weight, dcasgd keeps the
/// weight before it.
fn as_recorded(case: &Value, weights: &[f32], mut states: Vec<Vec<f32>>) -> Vec<Vec<f32>> {
    if case["optimizer"] == "dcasgd" {
        let changes = states.iter_mut().flat_map(|state| state.iter_mut().zip(weights));
        changes.for_each(|(change, weight)| *change = weight - *change);
    }
    states
}

/// What sums of recorded steps are rounded by, absolute: those of ftml and nadam are differences of
/// numbers several times as large as the result.
fn rounding(case: &Value) -> f32 {
    match case["optimizer"].as_str() {
        Some("ftml" | "nadam") => 4e-6,
        _ => 1e-6,
    }
}

/// Recorded weights or states, without the NaN that the reference makes of 0 / 0: adamax divides by
/// the largest gradient so far also where that is 0. Here such a weight stays as it was; what
/// becomes of it later is not recorded, so that ours is put in its place.
fn without_bug(
    case: &Value,
    step: usize,
    recorded: Vec<f32>,
    before: &[f32],
    found: &[f32],
) -> Vec<f32> {
    if case["optimizer"] != "adamax" {
        return recorded;
    }
    let stand_in = if step == 0 { before } else { found };
    recorded.iter().zip(stand_in).map(|(w, other)| if w.is_nan() { *other } else { *w }).collect()
}

fn run<R: UpdateRule, D: Device>(case: &Value, rule: R) -> Result<Met, String> {
    let text = |error: sparse_runtime::Error| error.to_string();
    let of_step = |error: sparse_runtime::model::Error| error.to_string();
    let weight = Tensor::parse(&case["weight"]);
    let gradients: Vec<Tensor> =
        (case["grads"].as_array().unwrap().iter()).map(Tensor::parse).collect();
    let storage = Some(gradients[0].storage);
    let spec = ParameterSpec::new("w", weight.shape[0], weight.row_size(), storage);
    let learning_rate = rule.learning_rate() as f32;
    let mut updater = Updater::<_, f32>::new(rule, vec![spec]).map_err(of_step)?;
    if let Err(error) = D::check(&updater) {
        return Ok(Met::NotThere(error.to_string()));
    }
    let excess = if case["optimizer"] == "adam" { excess_of_adam(case) as f32 } else { 0.0 };
    let mut weights = D::new(&weight.dense(), weight.row_size()).map_err(text)?;
    for (t, gradient) in gradients.iter().enumerate() {
        let mut step = || -> sparse_runtime::Result<()> {
            updater.begin_step()?;
            weights.apply(&mut updater, gradient)?;
            Ok(updater.end_step()?)
        };
        step().map_err(text)?;
        let after = &case[format!("after{}", t + 1)];
        if after.is_null() {
            continue;
        }
        let (w, found) = weights.read(&mut updater).map_err(text)?;
        let place = |what: &str, message| format!("{what} after step {}: {message}", t + 1);
        // No step of adam's is much longer than the learning rate.
        let steps = (t + 1) as f32 * learning_rate;
        let recorded = Tensor::parse(&after["weight"]).dense();
        let expected = without_bug(case, t, recorded, &weight.dense(), &w);
        compare((rounding(case) + steps * excess / 2.0, 1e-5), &w, &expected)
            .map_err(|message| place("weight", message))?;
        let states = after["states"].as_array().unwrap();
        let found = as_recorded(case, &w, found);
        if found.len() != states.len() {
            return Err(place("states", format!("{}, but {} recorded", found.len(), states.len())));
        }
        for (number, (recorded, found)) in states.iter().zip(&found).enumerate() {
            let recorded = Tensor::parse(recorded).dense();
            let expected = without_bug(case, t, recorded, &vec![0.0; found.len()], found);
            compare((rounding(case), 1e-5 + excess), found, &expected)
                .map_err(|message| place(&format!("state {number}"), message))?;
        }
    }
    Ok(Met::AsRecorded)
}

#[test]
fn opt_sgd() {
    run_file::<OnHost>("opt_sgd");
}

#[test]
fn opt_adam() {
    run_file::<OnHost>("opt_adam");
}

#[test]
fn opt_adaptive() {
    run_file::<OnHost>("opt_adaptive");
}

#[test]
fn opt_dense() {
    run_file::<OnHost>("opt_dense");
}

fn run_file<D: Device>(file: &str) {
    let folder = std::env::var_os("NNZ_GOLDEN").map_or_else(
        || PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../../shared/golden")),
        PathBuf::from,
    );
    let path = folder.join(format!("{file}.jsonl"));
    let text = match std::fs::read_to_string(&path) {
        Ok(text) => text,
        Err(error) => {
            assert!(
                std::env::var("NNZ_REQUIRE_DATA").as_deref() != Ok("1"),
                "NNZ_REQUIRE_DATA=1, but {}: {error}",
                path.display()
            );
            say(&format!("SKIPPED golden {file}: {}: {error}", path.display()));
            return;
        }
    };
    let (mut cases, mut runs, mut failures) = (0, 0, Vec::new());
    let mut not_there = BTreeMap::<String, usize>::new();
    for line in text.lines().filter(|line| !line.trim().is_empty()) {
        let case: Value = serde_json::from_str(line).unwrap();
        let id = case["id"].as_str().unwrap_or("?");
        let optimizer = case["optimizer"].as_str().unwrap_or("(none)");
        cases += 1;
        let Some(translation) = rule_of(&case) else {
            failures.push(format!("{id}: unknown optimizer `{optimizer}`"));
            continue;
        };
        let (mut met, mut missing) = (0, 0);
        for &mode in modes(&case) {
            let (case, translation) = (&case, &translation);
            let visitor = Run { case, translation, mode, device: PhantomData::<D> };
            let outcome = match translation.rule {
                "ftrl" => visitor.visit(FromZero::default()),
                name => with_rule(name, visitor).unwrap(),
            };
            match outcome {
                Ok(Met::AsRecorded) => met += 1,
                Ok(Met::NoMode) => {}
                Ok(Met::NotThere(why)) => {
                    missing += 1;
                    *not_there.entry(why).or_default() += 1;
                }
                Err(message) => failures.push(format!("{id} ({mode:?}): {message}")),
            }
        }
        if met + missing == 0 {
            failures.push(format!("{id}: met in no mode"));
        }
        runs += met;
    }
    say(&format!(
        "golden {file}{}: {cases} cases, {runs} runs, {} failed{}",
        D::SUFFIX,
        failures.len(),
        not_there
            .iter()
            .map(|(why, count)| format!("; {count} runs not there, {why}"))
            .collect::<String>()
    ));
    assert!(cases > 0, "{} has no cases", path.display());
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}

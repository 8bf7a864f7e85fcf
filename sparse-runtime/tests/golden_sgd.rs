//! Recorded steps of SGD: every combination of momentum, weight decay, clipping and rescaling, of dense and
//! row_sparse weights and gradients, lazy and not.
//!
//! The cases are read from the folder that `NNZ_GOLDEN` names (default `../shared/golden` beside the
//! workspace); without it the test says that it was skipped, or fails where `NNZ_REQUIRE_DATA=1`.

// A case that cannot be read fails the test.
#![allow(clippy::unwrap_used)]

use serde_json::Value;
use sparse_core::storage::Storage;
use sparse_core::update_rules::{LazyUpdate, Sgd};
use sparse_runtime::formats::{RowSparse, Shape};
use sparse_runtime::optimizer::{ParameterSpec, Updater};
use std::io::Write;
use std::path::PathBuf;

/// Optimizers that may occur in the file and are not built yet. A name that is in neither list fails.
const NOT_BUILT: &[&str] = &[];

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

    /// Every element; rows that are not stored are zero.
    fn dense(&self) -> Vec<f32> {
        if self.storage == Storage::Dense {
            return self.data.clone();
        }
        let row_size: usize = self.shape[1..].iter().product();
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

fn rule(hyper: &Value, lazy_update: LazyUpdate) -> Sgd {
    let mut rule = Sgd { lazy_update, ..Sgd::default() };
    for (name, value) in hyper.as_object().unwrap() {
        let number = value.as_f64();
        match name.as_str() {
            "learning_rate" => rule.learning_rate = number.unwrap(),
            "momentum" => rule.momentum = number.unwrap(),
            "wd" => rule.weight_decay = number.unwrap(),
            "rescale_grad" => rule.rescale_grad = number.unwrap(),
            "clip_gradient" => rule.clip_gradient = Some(number.unwrap()),
            "lazy_update" => {}
            _ => panic!("unknown hyperparameter `{name}`"),
        }
    }
    rule
}

/// Compares all values, or names the first that differs.
fn compare(found: &[f32], expected: &[f32]) -> Result<(), String> {
    if found.len() != expected.len() {
        return Err(format!("{} values for {}", found.len(), expected.len()));
    }
    for (i, (a, b)) in found.iter().zip(expected).enumerate() {
        if (a - b).abs() > 1e-6 + 1e-5 * b.abs() || a.is_nan() != b.is_nan() {
            return Err(format!("element {i} is {a}, expected {b}"));
        }
    }
    Ok(())
}

fn run(case: &Value, lazy_update: LazyUpdate) -> Result<(), String> {
    let weight = Tensor::parse(&case["weight"]);
    let gradients: Vec<Tensor> =
        (case["grads"].as_array().unwrap().iter()).map(Tensor::parse).collect();
    let row_size = weight.shape[1..].iter().product();
    let spec = ParameterSpec::new("w", weight.shape[0], row_size, Some(gradients[0].storage));
    let mut updater = Updater::<_, f32>::new(rule(&case["hyper"], lazy_update), vec![spec])
        .map_err(|error| error.to_string())?;
    let mut w = weight.dense();
    for (t, grad) in gradients.iter().enumerate() {
        let mut step = || -> sparse_runtime::Result<()> {
            updater.begin_step()?;
            if grad.storage == Storage::Dense {
                updater.apply_dense(0, &mut w, &grad.data)?;
            } else {
                let (indices, data) = (grad.indices.clone(), grad.data.clone());
                let grad = RowSparse::new(Shape::new(&grad.shape), indices, data)?;
                updater.settle_rows(0, &mut w, grad.indices().iter().map(|&row| row as usize))?;
                updater.apply_row_sparse(0, &mut w, grad.view())?;
            }
            updater.end_step()
        };
        step().map_err(|error| error.to_string())?;
        let after = &case[format!("after{}", t + 1)];
        if after.is_null() {
            continue;
        }
        // As a reader of the whole table has to.
        updater.flush(0, &mut w).map_err(|error| error.to_string())?;
        let place = |what: &str, message| format!("{what} after step {}: {message}", t + 1);
        compare(&w, &Tensor::parse(&after["weight"]).dense())
            .map_err(|message| place("weight", message))?;
        let states = after["states"].as_array().unwrap();
        let found: Vec<f32> = updater.states(0).unwrap().iter().map(|[m]| *m).collect();
        match states.as_slice() {
            [] if found.is_empty() => {}
            [momentum] => compare(&found, &Tensor::parse(momentum).dense())
                .map_err(|message| place("momentum", message))?,
            _ => return Err(place("states", format!("{} recorded", states.len()))),
        }
    }
    Ok(())
}

#[test]
fn golden_sgd() {
    let folder = std::env::var_os("NNZ_GOLDEN").map_or_else(
        || PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../../shared/golden")),
        PathBuf::from,
    );
    let path = folder.join("opt_sgd.jsonl");
    let text = match std::fs::read_to_string(&path) {
        Ok(text) => text,
        Err(error) => {
            assert!(
                std::env::var("NNZ_REQUIRE_DATA").as_deref() != Ok("1"),
                "NNZ_REQUIRE_DATA=1, but {}: {error}",
                path.display()
            );
            say(&format!("SKIPPED golden_sgd: {}: {error}", path.display()));
            return;
        }
    };
    let (mut cases, mut runs, mut not_built, mut failures) = (0, 0, 0, Vec::new());
    for line in text.lines().filter(|line| !line.trim().is_empty()) {
        let case: Value = serde_json::from_str(line).unwrap();
        let id = case["id"].as_str().unwrap_or("?");
        cases += 1;
        match case["optimizer"].as_str().unwrap_or("(none)") {
            "sgd" => {}
            name if NOT_BUILT.contains(&name) => {
                not_built += 1;
                continue;
            }
            name => {
                failures.push(format!("{id}: unknown optimizer `{name}`"));
                continue;
            }
        }
        let modes: &[LazyUpdate] = match case["hyper"]["lazy_update"].as_bool() {
            Some(false) => &[LazyUpdate::Dense, LazyUpdate::Exact],
            _ => &[LazyUpdate::Touched],
        };
        for &mode in modes {
            runs += 1;
            if let Err(message) = run(&case, mode) {
                failures.push(format!("{id} ({mode:?}): {message}"));
            }
        }
    }
    say(&format!(
        "golden_sgd: {cases} cases, {runs} runs, {} failed, {not_built} of optimizers not built yet {NOT_BUILT:?}",
        failures.len()
    ));
    assert!(cases > 0, "{} has no cases", path.display());
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}

//! The models of the examples on real data, held to results that were computed elsewhere
//! (`README.md` and `reference.json` in the folder of the data; where another source is named, by
//! it).
//!
//! The folder is `NNZ_DATA` (default `../shared/data` beside the repository); without it every test
//! says `SKIPPED`, or fails where `NNZ_REQUIRE_DATA=1`.

// What cannot be read fails the test; of an example, `main` is not called, nor what all of them
// call there.
#![allow(clippy::duplicate_mod, dead_code)]

#[path = "../../examples/factorization_machine.rs"]
mod factorization_machine;
#[path = "../../examples/field_aware.rs"]
mod field_aware;
#[path = "../../examples/linear_regression.rs"]
mod linear_regression;
#[path = "../../examples/logistic_regression.rs"]
mod logistic_regression;
#[path = "../../examples/matrix_factorization.rs"]
mod matrix_factorization;
#[path = "../../examples/multi_task.rs"]
mod multi_task;
#[path = "../../examples/poisson_regression.rs"]
mod poisson_regression;
#[path = "../../examples/softmax_regression.rs"]
mod softmax_regression;
#[path = "../../examples/wide_deep.rs"]
mod wide_deep;

use crate::folder::{find, say};
use nnz::data::{BatchOptions, Batches, DataSource, LibFfm, TextReader};
use nnz::model::Model;
use nnz::prelude::*;

fn data(file: &str) -> Option<String> {
    Some(find("NNZ_DATA", "shared/data", file)?.display().to_string())
}

fn both(train: &str, test: &str) -> Option<(String, String)> {
    data(train).zip(data(test))
}

/// A loss or an error is not larger than it should be by more than `slack`.
#[track_caller]
fn at_most(what: &str, found: f64, reference: f64, slack: f64) {
    say(&format!("models: {what}: {found:.5}, reference {reference}"));
    assert!(found <= reference + slack, "{what} is {found}, the reference {reference}");
}

/// A score that is the better the larger.
#[track_caller]
fn at_least(what: &str, found: f64, reference: f64, slack: f64) {
    say(&format!("models: {what}: {found:.5}, reference {reference}"));
    assert!(found >= reference - slack, "{what} is {found}, the reference {reference}");
}

/// Model and main code: the lines that are neither empty, nor comments, nor imports.
#[test]
fn examples_are_short() {
    for name in [
        "linear_regression",
        "logistic_regression",
        "softmax_regression",
        "poisson_regression",
        "factorization_machine",
        "matrix_factorization",
        "wide_deep",
        "multi_task",
    ] {
        let path = format!("{}/../../examples/{name}.rs", env!("CARGO_MANIFEST_DIR"));
        let text = std::fs::read_to_string(path).unwrap();
        let lines = text.lines().map(str::trim).filter(|line| {
            let others = ["//", "use ", "mod ", "#[path"];
            !line.is_empty() && !others.iter().any(|start| line.starts_with(start))
        });
        let n_lines = lines.count();
        assert!((10..60).contains(&n_lines), "{name}: {n_lines} lines");
    }
}

#[test]
fn least_squares_on_reviews() {
    let Some((train, test)) = both("imdb_rating.train.gz", "imdb_rating.test.gz") else { return };
    let score = linear_regression::fit(&train, &test).unwrap();
    // Ridge regression, lambda = 1e-4.
    at_most("linear: RMSE of stars", score.metric("rmse").unwrap(), 2.178258, 0.01);
}

#[test]
fn logistic_regression_on_the_census() {
    let Some((train, test)) = both("a9a.gz", "a9a.t.gz") else { return };
    let score = logistic_regression::fit(&train, &test).unwrap();
    // The optimum for lambda = 1e-5.
    at_most("logistic: log loss", score.loss, 0.324318, 0.002);
    at_least("logistic: accuracy", score.metric("accuracy").unwrap(), 0.84982, 0.003);
    at_least("logistic: AUC", score.metric("auc").unwrap(), 0.902042, 0.001);
}

#[test]
fn softmax_regression_on_splice_junctions() {
    let Some((train, test)) = both("dna.scale", "dna.scale.t") else { return };
    let score = softmax_regression::fit(&train, &test).unwrap();
    // The optimum for lambda = 1e-3.
    at_most("softmax: cross entropy", score.loss, 0.160687, 0.01);
    at_least("softmax: accuracy", score.metric("accuracy").unwrap(), 0.94857, 0.005);
}

#[test]
fn poisson_regression_on_rings() {
    let Some(file) = data("abalone_scale") else { return };
    let score = poisson_regression::fit(&file, &file).unwrap();
    // scikit-learn 1.9.1: PoissonRegressor(alpha=0, solver="newton-cholesky", tol=1e-12), on the
    // file it was fitted to.
    at_most("poisson: loss", score.loss, -13.147291, 0.005);
    at_most("poisson: RMSE of rings", score.metric("rmse").unwrap(), 2.252679, 0.02);
}

#[test]
fn a_factorization_machine_on_clicks() {
    let Some((train, test)) = both("criteo_tiny.train.ffm.gz", "criteo_tiny.test.ffm.gz") else {
        return;
    };
    let score = factorization_machine::fit(&train, &test, 429_705).unwrap();
    // A factorization machine of 4 factors by L-BFGS, the best of its penalties.
    at_most("machine: log loss", score.loss, 0.5304, 0.0);
    at_least("machine: AUC", score.metric("auc").unwrap(), 0.7198, 0.0);
}

#[test]
fn a_field_aware_machine_on_clicks() {
    let Some((train, test)) = both("criteo_tiny.train.ffm.gz", "criteo_tiny.test.ffm.gz") else {
        return;
    };
    let score = field_aware::fit(&train, &test, 429_705).unwrap();
    // What knows fields is no worse than the best factorization machine that does not.
    at_most("field-aware: log loss", score.loss, 0.5304, 0.0);
    at_least("field-aware: AUC", score.metric("auc").unwrap(), 0.7198, 0.0);
}

/// Of the interaction that its example declares, by differences.
#[test]
fn the_gradient_of_a_field_aware_machine() {
    let reader = TextReader::new(LibFfm::new().n_features(6));
    let text = b"1 0:0:1 1:2:0.5 2:5:-1.5\n0 0:1:2 0:3:1 3:5:0.5\n1 4:4:1\n";
    let data: Dataset = reader.read_bytes("inline", text).unwrap();
    let mut model = field_aware::FieldAware::new(dims! { d: 6 }, Seed(1)).unwrap();
    let options = BatchOptions { batch_size: 3, ..BatchOptions::default() };
    let mut batches = data.batches(field_aware::FieldAware::INPUTS, &options).unwrap();
    batches.start_epoch(0).unwrap();
    let batch = batches.next_batch().unwrap().unwrap();
    let bound = model.bind(&batch).unwrap();
    model.loss_and_grads(&bound).unwrap();
    let gradient = model.gradients().v.to_dense().unwrap();
    // A row for each column of the batch, with one that meets no other.
    assert_eq!(model.gradients().v.indices(), [0, 1, 2, 3, 4, 5]);
    // Ten places: six of the pairs of the first row, four of those of the second that are not among
    // them.
    assert_eq!(gradient.values().iter().filter(|slope| **slope != 0.0).count(), 10 * 2);
    for (place, found) in gradient.values().iter().enumerate() {
        let mut loss_at = |change: f32| {
            model.v.values_mut()[place] += change;
            let loss = model.loss_and_grads(&bound).unwrap();
            model.v.values_mut()[place] -= change;
            loss
        };
        let slope = (loss_at(0.125) - loss_at(-0.125)) / 0.25;
        assert!((f64::from(*found) - slope).abs() < 1e-4, "{place}: {found}, not {slope}");
    }
}

#[test]
fn matrix_factorization_on_films() {
    let Some((train, test)) = both("ml100k.u2.base.gz", "ml100k.u2.test") else { return };
    let score = matrix_factorization::fit(&train, &test).unwrap();
    // Alternating least squares with 8 factors, the worst of its three starts.
    at_most("factorization: RMSE", score.metric("rmse").unwrap(), 0.9122, 0.002);
}

#[test]
fn wide_and_deep_on_clicks() {
    let Some((train, test)) = both("criteo_raw8k.train.tsv.gz", "criteo_raw8k.test.tsv") else {
        return;
    };
    // A step of one row is one loop.
    const { assert!(wide_deep::WideDeep::TRAINS_ROWS) };
    let score = wide_deep::fit(&train, &test).unwrap();
    // The best of logistic regression over its penalties, on the columns that are hashed here.
    at_most("wide and deep: log loss", score.loss, 0.483762, 0.0);
    at_least("wide and deep: AUC", score.metric("auc").unwrap(), 0.717387, 0.0);
}

#[test]
fn two_tasks_on_reviews() {
    let Some((train, test)) = both("imdb_rating.train.gz", "imdb_rating.test.gz") else { return };
    let (rmse, accuracy) = multi_task::fit(&train, &test).unwrap();
    // Each task by itself: ridge regression, lambda = 1e-4, and logistic regression, lambda = 1e-5.
    at_most("two tasks: RMSE of stars", rmse, 2.178258, 0.02);
    at_least("two tasks: accuracy", accuracy, 0.88268, 0.005);
}

//! The command line on real data, held to results that were computed elsewhere (`README.md` and
//! `reference.json` in the folder of the data).
//!
//! The folder is `NNZ_DATA` (default `../shared/data` beside the repository); without it every test
//! says `SKIPPED`, or fails where `NNZ_REQUIRE_DATA=1`.

use crate::command_line;
use crate::folder::{find, say};
use crate::logistic_regression::LogisticRegression;
use nnz::prelude::*;
use serde_json::Value;

fn data(file: &str) -> Option<String> {
    Some(find("NNZ_DATA", "shared/data", file)?.display().to_string())
}

fn both(train: &str, test: &str) -> Option<(String, String)> {
    data(train).zip(data(test))
}

/// The reference optimum of logistic regression without bias on a data set, for a weight of the
/// penalty.
fn logistic_optimum(set: &str, l2: f64) -> Option<Value> {
    let text = std::fs::read_to_string(data("reference.json")?).unwrap();
    let reference: Value = serde_json::from_str(&text).unwrap();
    let found = reference[set]["logistic"].as_array().unwrap().iter().find(|optimum| {
        optimum["lam"].as_f64() == Some(l2) && optimum["bias"].as_bool() != Some(true)
    });
    Some(found.unwrap().clone())
}

#[track_caller]
fn assert_within(what: &str, found: f64, expected: f64, difference: f64) {
    say(&format!("real_data: {what}: {found}, reference {expected}"));
    assert!(
        (found - expected).abs() <= difference,
        "{what} is {found}, which is not within {difference} of {expected}"
    );
}

/// A loss or a share is not larger than the reference.
#[track_caller]
fn at_most(what: &str, found: f64, reference: f64) {
    say(&format!("real_data: {what}: {found:.5}, reference {reference}"));
    assert!(found <= reference, "{what} is {found}, the reference {reference}");
}

/// The lines that `nnz train` prints with `--json`.
fn lines_of_train(arguments: &[&str]) -> Vec<Value> {
    let text = command_line::run("train", &[arguments, &["--json"]].concat());
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// The names in each line, sorted; the numbers are finite, and the epochs count from one.
#[track_caller]
fn check_lines(lines: &[Value], epochs: usize, fields: &[&str]) {
    assert_eq!(lines.len(), epochs);
    for (line, epoch) in lines.iter().zip(1..) {
        assert_eq!(line.get("progress").is_some(), epoch == 1, "{line}");
        assert_eq!(line.get("best").is_some(), fields.contains(&"test_loss"), "{line}");
        let names = line.as_object().unwrap().keys().map(String::as_str);
        let names: Vec<&str> = names.filter(|name| !["best", "progress"].contains(name)).collect();
        assert_eq!(names, fields);
        assert_eq!(line["epoch"].as_u64(), Some(epoch));
        for name in names {
            assert!(line[name].as_f64().is_some_and(f64::is_finite), "{line}");
        }
        assert!(line["seconds"].as_f64() > Some(0.0), "{line}");
        if let Some(objective) = line["objective"].as_f64() {
            assert!(objective >= line["train_loss"].as_f64().unwrap(), "{line}");
        }
    }
}

#[test]
fn the_command_line_reaches_the_optimum_on_a9a() {
    let Some((known, (train, test))) =
        logistic_optimum("a9a", 1e-4).zip(both("a9a.gz", "a9a.t.gz"))
    else {
        return;
    };
    let arguments = [
        ["--model", "logistic"],
        ["--data", &train],
        ["--test", &test],
        ["--l2", "1e-4"],
        ["--learning-rate", "0.05"],
        ["--schedule", "cosine"],
        ["--epochs", "30"],
        ["--threads", "1"],
    ];
    let arguments = [arguments.as_flattened(), &["--no-bias", "--objective"]].concat();
    let lines = lines_of_train(&arguments);
    let fields = [
        "epoch",
        "objective",
        "progressive_loss",
        "samples_per_s",
        "seconds",
        "test_accuracy",
        "test_auc",
        "test_loss",
        "train_loss",
    ];
    check_lines(&lines, 30, &fields);
    let last = |name: &str| lines[29][name].as_f64().unwrap();
    let optimum = known["F"].as_f64().unwrap();
    assert_within("train: a9a objective", last("objective"), optimum, 1e-4 * optimum);
    let tested = |name: &str| known["test"][name].as_f64().unwrap();
    assert_within("train: a9a test accuracy", last("test_accuracy"), tested("acc"), 0.003);
    assert_within("train: a9a test AUC", last("test_auc"), tested("auc"), 0.001);
}

#[test]
fn the_command_line_tells_of_regression_by_its_error() {
    let Some(file) = data("abalone_scale") else { return };
    let arguments = ["--model", "linear", "--data", &file, "--l2", "0.01", "--epochs", "2"];
    let lines = lines_of_train(&arguments);
    check_lines(&lines, 2, &["epoch", "progressive_loss", "samples_per_s", "seconds"]);
    let lines = lines_of_train(&[&arguments[..], &["--test", &file, "--objective"]].concat());
    let fields = [
        "epoch",
        "objective",
        "progressive_loss",
        "samples_per_s",
        "seconds",
        "test_loss",
        "test_rmse",
        "train_loss",
    ];
    check_lines(&lines, 2, &fields);
    // The squared error counts half, and the data is the same.
    let (rmse, loss) = (&lines[1]["test_rmse"], &lines[1]["train_loss"]);
    assert_within(
        "train: half the squared RMSE",
        rmse.as_f64().unwrap().powi(2) / 2.0,
        loss.as_f64().unwrap(),
        1e-4,
    );
}

/// What the reference is held to: a log loss better than that of logistic regression at any of its
/// L2 penalties, of a model whose weights are zero but for a twentieth.
#[test]
fn sparse_weights_on_clicks_by_the_command_line() {
    let Some((train, test)) = both("criteo_tiny.train.ffm.gz", "criteo_tiny.test.ffm.gz") else {
        return;
    };
    let path = std::env::temp_dir().join(format!("nnz-models-{}.safetensors", std::process::id()));
    let saved = path.display().to_string();
    let arguments = [
        ["--model", "logistic"],
        ["--data", &train],
        ["--test", &test],
        ["--features", "429705"],
        ["--optimizer", "ftrl"],
        ["--l1", "1"],
        ["--epochs", "2"],
        ["--save", &saved],
    ];
    let arguments = [arguments.as_flattened(), &["--json"]].concat();
    let lines = command_line::run("train", &arguments);
    let last: Value = serde_json::from_str(lines.lines().last().unwrap()).unwrap();
    at_most("train: log loss of FTRL", last["test_loss"].as_f64().unwrap(), 0.497134);

    let mut model = LogisticRegression::new(dims! { d: 429_705 }, Seed(0)).unwrap();
    checkpoint::load(&mut model, &path).unwrap();
    let n_nonzero = model.w.values().iter().filter(|w| **w != 0.0).count();
    at_most("train: part of the weights that is not zero", n_nonzero as f64 / 429_705.0, 0.05);

    // `predict` and `inspect` know the same model.
    let scores = path.with_extension("tsv");
    let output = scores.display().to_string();
    command_line::run("predict", &["--model", &saved, "--data", &test, "--output", &output]);
    let written = std::fs::read_to_string(&scores).unwrap();
    let written: Vec<f32> = written.lines().map(|line| line.parse().unwrap()).collect();
    let reader = nnz::data::TextReader::new(nnz::data::LibFfm::new().n_features(429_705));
    let data: Dataset = reader.read_path(&test).unwrap();
    assert_eq!(written, nnz::training::predict(&mut model, &data, 100).unwrap().values());
    let shown = command_line::run("inspect", &[&saved, "--top", "1"]);
    assert!(shown.contains(&format!("{n_nonzero} of 429705 not zero")), "{shown}");
    for file in [path, scores] {
        std::fs::remove_file(file).unwrap();
    }
}

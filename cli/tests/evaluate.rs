//! `nnz evaluate` on models whose weights follow by hand from one step a sample.

use crate::command_line::{self, Files};
use serde_json::Value;

/// A model after one epoch of steps of size 1 on single samples, in their order, without a bias.
fn trained(files: &Files, model: &str, text: &str) -> String {
    let (data, saved) = (files.write("train.svm", text), files.path(&format!("{model}.model")));
    let steps = ["--epochs", "1", "--learning-rate", "1", "--no-shuffle", "--no-bias"];
    let arguments = ["--model", model, "--data", &data, "--save", &saved, "--index-base", "one"];
    command_line::run("train", &[&arguments[..], &steps].concat());
    saved
}

#[track_caller]
fn assert_numbers(found: &Value, expected: &[(&str, f64)]) {
    for (name, number) in expected {
        let found = found[name].as_f64().unwrap_or_else(|| panic!("{name}: {found}"));
        assert!((found - number).abs() < 2e-6, "{name} is {found}, not {number}");
    }
}

fn evaluated(arguments: &[&str]) -> Value {
    let line = command_line::run("evaluate", &[arguments, &["--json"]].concat());
    serde_json::from_str(&line).unwrap()
}

/// Weights 1/2, -1/2 and 1, so that the scores are 1/2, 1, 1, -2 and -1.
#[test]
fn binary_metrics_are_those_counted_by_hand() {
    let files = Files::new("evaluate-binary");
    let model = trained(&files, "logistic", "1 1:1\n0 2:1\n1 3:2\n");
    let text = "1 1:1\n0 1:2\n1 3:1\n0 2:4\n1 2:2\n";
    let data = files.write("test.svm", text);
    let evaluate = ["--model", &model[..], "--data", &data];
    let found = evaluated(&evaluate);
    assert_numbers(
        &found,
        &[
            ("samples", 5.0),
            ("loss", 0.708_158),
            ("log_loss", 0.708_158),
            // Three of five are positive.
            ("constant_loss", 0.673_012),
            ("accuracy", 0.6),
            // Of six pairs three are in order, and one is tied.
            ("auc", 3.5 / 6.0),
            ("pr_auc", 1.0 / 6.0 + 2.0 / 9.0 + 0.25),
            ("precision", 2.0 / 3.0),
            ("recall", 2.0 / 3.0),
            ("f1", 2.0 / 3.0),
            ("threshold", 0.5),
        ],
    );
    let found = evaluated(&[&evaluate[..], &["--threshold", "0.7"]].concat());
    assert_numbers(&found, &[("precision", 0.5), ("recall", 1.0 / 3.0), ("f1", 0.4)]);
    let found = evaluated(&[&evaluate[..], &["--calibration-bins", "2"]].concat());
    let bins = &found["calibration"];
    assert_eq!(bins.as_array().unwrap().len(), 2);
    assert_numbers(&bins[0], &[("samples", 2.0), ("mean_prediction", 0.194_072)]);
    assert_numbers(&bins[0], &[("low", 0.0), ("high", 0.5), ("share_of_positives", 0.5)]);
    assert_numbers(&bins[1], &[("samples", 3.0), ("mean_prediction", 0.694_859)]);
    assert_numbers(&bins[1], &[("share_of_positives", 2.0 / 3.0)]);

    let table = command_line::run("evaluate", &evaluate);
    assert!(table.starts_with("samples    5\nloss       0.708158  (0.673012 of the"), "{table}");
    assert!(table.contains("\nprecision  0.666667  (positive from 0.5 on)\n"), "{table}");
    assert!(table.contains("\n0.600 to 0.700     0.6225   1.0000         1\n"), "{table}");

    let picture = files.path("calibration.svg");
    let with_picture = [&evaluate[..], &["--calibration-bins", "2", "--plot", &picture]].concat();
    command_line::run("evaluate", &with_picture);
    let picture = String::from_utf8(files.bytes("calibration.svg")).unwrap();
    // A point for each range, and one in the legend.
    assert_eq!(picture.matches("<circle").count(), 3, "{picture}");

    // The same on the error stream of `predict`, beside the predictions.
    let output = command_line::output("predict", &[&evaluate[..], &["--metrics"]].concat());
    assert_eq!(String::from_utf8(output.stdout).unwrap().lines().count(), 5);
    assert_eq!(String::from_utf8(output.stderr).unwrap(), table);
    let both = [&evaluate[..], &["--metrics", "--no-labels"]].concat();
    assert!(command_line::refused("predict", &both).contains("--metrics needs labels"));
}

#[test]
fn a_metric_without_a_value_is_told_and_null() {
    let files = Files::new("evaluate-none");
    let model = trained(&files, "logistic", "1 1:1\n0 2:1\n");
    let data = files.write("test.svm", "1 1:1\n1 2:1\n");
    let evaluate = ["--model", &model[..], "--data", &data];
    let found = evaluated(&evaluate);
    assert!(found["auc"].is_null() && found.as_object().unwrap().contains_key("auc"), "{found}");
    assert_numbers(&found, &[("recall", 0.5), ("constant_loss", 0.0)]);
    let table = command_line::run("evaluate", &evaluate);
    assert!(table.contains("\nauc        none: the data "), "{table}");
}

/// The weight is 2, so that the predictions are 2, cut to 3 where they are.
#[test]
fn metrics_of_numbers_are_those_counted_by_hand() {
    let files = Files::new("evaluate-numbers");
    let model = trained(&files, "linear", "2 1:1\n");
    let data = files.write("test.svm", "1 1:1\n5 1:1\n");
    let found = evaluated(&["--model", &model, "--data", &data]);
    let numbers = [("loss", 2.5), ("constant_loss", 2.0), ("rmse", 5f64.sqrt()), ("mae", 2.0)];
    assert_numbers(&found, &numbers);
    assert!(found.get("calibration").is_none(), "{found}");
    let plot = ["--model", &model, "--data", &data, "--plot", "never.svg"];
    assert!(command_line::refused("evaluate", &plot).contains("no probability of two classes"));
}

/// The weights of the first column are 2/3, -1/3 and -1/3; labels are those of the model.
#[test]
fn metrics_of_classes_are_those_counted_by_hand() {
    let files = Files::new("evaluate-classes");
    let model = trained(&files, "softmax", "1 1:1\n2 2:1\n5 3:1\n");
    let data = files.write("test.svm", "1 1:3\n5 1:1\n");
    let evaluate = ["--model", &model[..], "--data", &data];
    let expected = [("accuracy", 0.5), ("log_loss", 0.823_183), ("constant_loss", 2f64.ln())];
    assert_numbers(&evaluated(&evaluate), &expected);
    let unknown = files.write("unknown.svm", "3 1:1\n");
    let errors = command_line::refused("evaluate", &["--model", &model, "--data", &unknown]);
    assert!(errors.contains('3') && errors.contains("{1, 2, 5}"), "{errors}");
}

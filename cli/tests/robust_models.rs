//! Hinge losses, Huber's loss, quantiles, and penalties of single tables.

use crate::command_line::{self, Files, refused};
use serde_json::Value;

/// The one weight of a linear model, or another number, by the name of its parameter.
fn weight(model: &str, parameter: &str) -> f64 {
    let shown = command_line::run("inspect", &[model]);
    let (_, after) = shown.split_once(&format!("\n{parameter}: ")).unwrap();
    let line = after.lines().find(|line| line.starts_with("  [")).unwrap();
    line.rsplit('\t').next().unwrap().parse().unwrap()
}

fn last_line(arguments: &[&str]) -> Value {
    let lines = command_line::run("train", &[arguments, &["--json"]].concat());
    serde_json::from_str(lines.lines().last().unwrap()).unwrap()
}

#[test]
fn support_vector_machines_predict_the_positive_class_from_zero_on() {
    let files = Files::new("svm");
    let text: String = (0..200).map(|i| format!("{} {}:1\n", i % 2, 1 + i % 2)).collect();
    let (data, model) = (files.write("rows.svm", &text), files.path("model"));
    for kind in ["hinge", "squared-hinge"] {
        let train = ["--model", kind, "--data", &data, "--test", &data, "--save", &model];
        let line = last_line(&[&train[..], &["--epochs", "20"]].concat());
        assert_eq!((&line["test_accuracy"], &line["test_auc"]), (&1.0.into(), &1.0.into()));
        let scores = command_line::run("predict", &["--model", &model, "--data", &data]);
        let scores: Vec<f64> = scores.lines().map(|line| line.parse().unwrap()).collect();
        assert!(scores[0] < -0.5 && scores[1] > 0.5, "{kind}: {scores:?}");
        let evaluate = ["--model", &model[..], "--data", &data, "--json"];
        let found: Value = serde_json::from_str(&command_line::run("evaluate", &evaluate)).unwrap();
        assert_eq!(found["constant_loss"], 1.0, "{found}");
        assert_eq!((&found["precision"], &found["recall"]), (&1.0.into(), &1.0.into()));
        assert!(found.get("log_loss").is_none() && found.get("calibration").is_none(), "{found}");
    }
}

/// Of the labels 0, 1, …, 9 the quantile at 0.75 is 7, the median between 4 and 5.
#[test]
fn the_bias_of_a_quantile_model_is_the_quantile() {
    let files = Files::new("quantile");
    let text: String = (0..1000).map(|i| format!("{} 1:0\n", i % 10)).collect();
    let (data, model) = (files.write("rows.svm", &text), files.path("model"));
    let train = ["--model", "quantile", "--data", &data, "--save", &model, "--epochs", "30"];
    let train = [&train[..], &["--schedule", "inverse-scaling", "--decay", "0.01"]].concat();
    let train = [&train[..], &["--lr", "1"]].concat();
    command_line::run("train", &[&train[..], &["--quantile", "0.75"]].concat());
    assert!((weight(&model, "b") - 7.0).abs() < 0.2, "{}", weight(&model, "b"));
    assert_eq!(weight(&model, "quantile"), 0.75);
    command_line::run("train", &train);
    assert!((3.9..=5.1).contains(&weight(&model, "b")), "{}", weight(&model, "b"));
    let errors = refused("train", &["--model", "linear", "--data", &data, "--quantile", "0.9"]);
    assert!(errors.contains("--quantile is for --model quantile, but the model is linear"));
    assert!(
        refused("train", &["--model", "quantile", "--data", &data, "--quantile", "1"])
            .contains("above 0 and below 1")
    );
}

/// Of nine labels 0 and one of 100, the mean is 10; with delta = 0.9, Huber's loss is least at 0.1,
/// where nine errors of 0.1 weigh as much as one of 0.9.
#[test]
fn an_outlier_counts_by_its_size_in_hubers_loss() {
    let files = Files::new("huber");
    let text: String =
        (0..1000).map(|i| format!("{} 1:0\n", if i % 10 == 9 { 100 } else { 0 })).collect();
    let (data, model) = (files.write("rows.svm", &text), files.path("model"));
    let train = ["--model", "huber", "--data", &data, "--save", &model, "--epochs", "30"];
    let train = [&train[..], &["--schedule", "inverse-scaling", "--decay", "0.01"]].concat();
    command_line::run("train", &[&train[..], &["--delta", "0.9"]].concat());
    assert!((weight(&model, "b") - 0.1).abs() < 0.02, "{}", weight(&model, "b"));
    assert!((weight(&model, "delta") - 0.9).abs() < 1e-5);
    let errors = refused("train", &["--model", "huber", "--data", &data, "--delta", "0"]);
    assert!(errors.contains("a number above 0"), "{errors}");
}

/// The penalty of all tables is the sum of those of single ones, in what is trained and in the
/// objective.
#[test]
fn penalties_of_single_tables_add_up() {
    let files = Files::new("decay");
    let text: String =
        (0..300).map(|i| format!("{} {}:1 {}:1\n", i % 2, 1 + i % 7, 8 + i % 5)).collect();
    let (data, model) = (files.write("rows.svm", &text), files.path("model"));
    let train = ["--model", "fm", "--data", &data, "--save", &model, "--epochs", "3"];
    let run = |more: &[&str]| {
        let line = last_line(&[&train[..], &["--objective"], more].concat());
        (files.bytes("model"), line["objective"].clone())
    };
    for rule in [&["--optimizer", "sgd"][..], &["--optimizer", "ftrl", "--lr", "0.05"]] {
        let with = |l2: &'static str| run(&[rule, &["--l2", l2]].concat());
        assert_eq!(with("0.01"), with("w=0.01,v=0.01"));
        assert_ne!(with("0.01").0, with("w=0.01").0);
        assert_eq!(with("w=0").0, run(rule).0);
    }
    let penalty = |l2: &str| {
        let more = ["--l2", l2, "--lr", "1e-30", "--lazy-update", "touched"];
        let line = last_line(&[&train[..], &["--objective"], &more].concat());
        line["objective"].as_f64().unwrap() - line["train_loss"].as_f64().unwrap()
    };
    assert!(penalty("w=8") == 0.0 && penalty("v=8") > 0.0);
    for (l2, message) in [
        ("u=1", "--l2: the model has no table `u`: it has w, v, b"),
        ("w=-1", "must be at least 0"),
        ("w=1,v", "one for each table"),
    ] {
        let errors = refused("train", &[&train[..], &["--l2", l2]].concat());
        assert!(errors.contains(message), "{errors}");
    }
    let both = ["--l2", "w=1", "--weight-decay", "1"];
    assert!(refused("train", &[&train[..], &both].concat()).contains("two penalties"));
}

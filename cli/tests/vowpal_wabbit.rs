//! Text of Vowpal Wabbit, crosses, and weights of samples.

use crate::command_line::{self, Files, refused};
use serde_json::Value;

fn evaluated(arguments: &[&str]) -> Value {
    let found = command_line::run("evaluate", &[arguments, &["--json"]].concat());
    serde_json::from_str(&found).unwrap()
}

fn told(subcommand: &str, arguments: &[&str]) -> String {
    let output = command_line::output(subcommand, arguments);
    let told = String::from_utf8(output.stderr).unwrap();
    assert!(output.status.success(), "{arguments:?}: {told}");
    told
}

/// The label is whether site and device are of one kind: no single feature says so.
fn pairs(line: impl Fn(u8, usize, usize) -> String) -> String {
    let row = |i: usize| {
        let (site, device) = (i % 2, i / 2 % 2);
        line(u8::from(site == device), site, device)
    };
    (0..400).map(row).collect()
}

#[test]
fn vowpal_wabbit_text_is_known_by_its_ending_and_by_its_first_line() {
    let files = Files::new("vw");
    let model = files.path("model");
    let text = pairs(|label, site, device| {
        format!("{} 'row |site s{site} |device:0.5 d{device}:2\n", if label == 1 { 1 } else { -1 })
    });
    for (name, reason) in [("rows.vw", "by its ending"), ("rows", "by the `|` of its first line")] {
        let data = files.write(name, &text);
        let train = ["--model", "logistic", "--data", &data, "--save", &model, "--epochs", "5"];
        let said = told("train", &train);
        assert!(said.contains(&format!("{name}: vw, {reason} (guessed); 400 samples")), "{said}");
        assert!(said.contains("labels -1, 1"), "{said}");
        // Without pairs nothing is learnt.
        let evaluate = ["--model", &model[..], "--data", &data];
        assert!(evaluated(&evaluate)["auc"].as_f64().unwrap() < 0.7);
        for pairs in [&["-q", "sd"][..], &["--cross", "site,device"], &["--quadratic", "::"]] {
            command_line::run("train", &[&train[..], pairs].concat());
            assert_eq!(evaluated(&evaluate)["auc"], 1.0, "{pairs:?}");
        }
        // What is scored needs no label, and the crosses stand in the model's file.
        let bare = files.write("bare.vw", "|site s0 |device:0.5 d0:2\n'x |site s0 |device d1\n");
        let predict = ["--model", &model[..], "--data", &bare];
        let scores = command_line::run("predict", &predict);
        let scores: Vec<f64> = scores.lines().map(|line| line.parse().unwrap()).collect();
        assert!(scores[0] > 0.5 && scores[1] < 0.5, "{scores:?}");
        let errors = refused("predict", &[&predict[..], &["-q", "ds"]].concat());
        assert!(errors.contains("the model was trained with `--quadratic ::`"), "{errors}");
    }
    let data = files.write("bad.vw", "1 |a x\n1 |a x:y\n");
    let errors = refused("train", &["--model", "logistic", "--data", &data]);
    assert!(errors.contains("bad.vw:2:8: expected a number after `:`"), "{errors}");
}

#[test]
fn columns_of_a_table_are_crossed() {
    let files = Files::new("cross");
    let model = files.path("model");
    let text = "y,site,device\n".to_owned()
        + &pairs(|label, site, device| format!("{label},s{site},d{device}\n"));
    let data = files.write("rows.csv", &text);
    let train = ["--model", "logistic", "--data", &data, "--label", "y", "--save", &model];
    let evaluate = ["--model", &model[..], "--data", &data];
    command_line::run("train", &train);
    assert!(evaluated(&evaluate)["auc"].as_f64().unwrap() < 0.7);
    command_line::run("train", &[&train[..], &["--cross", "site,device"]].concat());
    assert_eq!(evaluated(&evaluate)["auc"], 1.0);
    let errors = refused("train", &[&train[..], &["--cross", "site,shop"]].concat());
    assert!(errors.contains("`shop` is crossed, but there is no such column"), "{errors}");
    let errors = refused("evaluate", &[&evaluate[..], &["--cross", "device,site"]].concat());
    assert!(errors.contains("trained with `--cross site,device`"), "{errors}");
}

/// A sample of weight 3 counts as three samples: of a passing over all of them in one batch, the
/// steps are the same.
#[test]
fn a_weight_counts_as_so_many_samples() {
    let files = Files::new("weights");
    let bias = |name: &str, text: &str, more: &[&str]| {
        let (data, model) = (files.write(name, text), files.path("model"));
        let train = ["--model", "logistic", "--data", &data, "--save", &model];
        let steps = ["--batch-size", "8", "--epochs", "300", "--lr", "1", "--no-shuffle"];
        command_line::run("train", &[&train[..], &steps, more].concat());
        let shown = command_line::run("inspect", &[&model, "--top", "1"]);
        // A weight that is 0 is not shown.
        let bias = shown.rsplit_once("\n  [0] \t").map_or("0", |(_, bias)| bias.trim());
        bias.parse::<f64>().unwrap()
    };
    // Three to one: ln 3.
    let three = 3f64.ln();
    let close = |bias: f64| assert!((bias - three).abs() < 0.02, "{bias}");
    close(bias("rows.vw", "1 3 | x:0\n-1 1 | x:0\n", &[]));
    close(bias("plain.vw", "1 | x:0\n1 | x:0\n1 | x:0\n-1 | x:0\n", &[]));
    let csv = ["--label", "y", "--weight", "w"];
    close(bias("rows.csv", "y,w,n\n1,3,\n0,1,\n", &csv));
    let svm = "1 1:0\n0 1:0\n";
    close(bias("rows.svm", svm, &["--class-weight", "1=3"]));
    close(bias("two.svm", "4 1:0\n2 1:0\n", &["--class-weight", "4=6,2=2"]));
    let balanced = bias("skew.svm", "1 1:0\n1 1:0\n0 1:0\n", &["--class-weight", "balanced"]);
    assert!(balanced.abs() < 1e-3, "{balanced}");

    // Of every model of one column: the model of rows with weights is that of repeated rows.
    // Initial values that are drawn are the same where tables are.
    for model in [
        "linear",
        "huber",
        "quantile",
        "poisson",
        "logistic",
        "hinge",
        "squared-hinge",
        "wide-deep",
        "ffm",
    ] {
        let weights = |name: &str, text: &str, more: &[&str]| {
            let (data, saved) = (files.write(name, text), files.path("model"));
            let train = ["--model", model, "--data", &data, "--save", &saved, "--label", "y"];
            let steps = ["--batch-size", "9", "--epochs", "20", "--lr", "0.1", "--no-scaling"];
            // Tables of drawn values are shown as a whole.
            let small = ["--hash-bits", "6"];
            command_line::run("train", &[&train[..], &steps, &small, more].concat());
            let csv = command_line::run("inspect", &[&saved, "--csv"]);
            let weight = |line: &str| {
                let (place, weight) = line.rsplit_once(',').unwrap();
                (place.to_owned(), weight.parse::<f64>().unwrap())
            };
            csv.lines().skip(1).map(weight).collect::<Vec<_>>()
        };
        let text = "y,w,n\n1,3,0.5\n0,1,1\n1,2,-1\n";
        let weighted = weights("weighted.csv", text, &["--weight", "w"]);
        let text = "y,n\n1,0.5\n1,0.5\n1,0.5\n0,1\n1,-1\n1,-1\n";
        let repeated = weights("repeated.csv", text, &[]);
        // The mean is over three rows, and over six: weights of 1/2 make them equal.
        let halves = "y,w,n\n1,1.5,0.5\n0,0.5,1\n1,1,-1\n";
        let halves = weights("halves.csv", halves, &["--weight", "w"]);
        assert_eq!(halves.len(), repeated.len(), "{model}");
        for ((place, found), (other, expected)) in halves.iter().zip(&repeated) {
            let is_close = place == other && (found - expected).abs() < 1e-4;
            let is_loss_number = place.starts_with("delta") || place.starts_with("quantile");
            assert!(is_close || is_loss_number, "{model} {place}: {found} {expected}");
        }
        assert_ne!(weighted, halves, "{model}");
    }

    // Losses and metrics of such a model weigh samples too.
    let (data, model) = (files.path("rows.csv"), files.path("model"));
    bias("rows.csv", "y,w,n\n1,3,\n0,1,\n", &csv);
    let found = evaluated(&["--model", &model, "--data", &data]);
    assert_eq!((&found["accuracy"], &found["constant_loss"]), (&0.75.into(), &Value::Null));
    let scores = command_line::run("predict", &["--model", &model, "--data", &data]);
    assert_eq!(scores.lines().count(), 2);

    let data = files.write("rows.svm", svm);
    for (more, message) in [
        (
            &["--model", "poisson", "--class-weight", "balanced"][..],
            "--class-weight is for models of",
        ),
        (&["--model", "linear", "--class-weight", "balanced"], "--class-weight is for models of"),
        (&["--model", "logistic", "--class-weight", "7=2"], "no class has the label 7: they are"),
        (&["--model", "logistic", "--class-weight", "x"], "it is `balanced`, or labels with"),
        (
            &["--model", "logistic", "--class-weight", "1=2", "--optimizer", "rmsprop"],
            "weights of samples are for --optimizer sgd, adagrad, ftrl, adam",
        ),
    ] {
        let errors = refused("train", &[more, &["--data", &data]].concat());
        assert!(errors.contains(message), "{errors}");
    }
    let data = files.path("rows.vw");
    files.write("rows.vw", "1 3 | x:0\n-1 1 | x:0\n");
    let stream = ["--model", "logistic", "--data", &data, "--stream", "1048576"];
    assert!(refused("train", &stream).contains("an importance of 1"));
}

/// 4096 features in 4096 columns: each shares one with probability 1 - 1/e.
#[test]
fn collisions_of_a_hash_are_told_and_bits_are_found() {
    let files = Files::new("collisions");
    let text: String =
        (0..1024).map(|i| format!("1 |a w{i} x{i} y{i} z{i}\n-1 |a w{i}\n")).collect();
    let data = files.write("rows.vw", &text);
    let model = files.path("model");
    let train = ["--model", "logistic", "--data", &data, "--epochs", "1", "--save", &model];
    let said = told("train", &[&train[..], &["-b", "12"]].concat());
    let (before, _) = said.split_once(" % of features share one").unwrap();
    let share: f64 = before.rsplit(' ').next().unwrap().parse().unwrap();
    assert!((share - 63.2).abs() < 3.0, "{said}");
    let said = told("train", &[&train[..], &["-b", "auto"]].concat());
    // 4095 / 2^19 is below 1 %.
    assert!(said.contains("2^19 columns, about 0.8 % of features share one"), "{said}");
    assert!(command_line::run("inspect", &[&model]).contains("hash_bits: 19\n"));
    let errors = refused("train", &[&train[..], &["-b", "many"]].concat());
    assert!(errors.contains("a number of bits, or `auto`"), "{errors}");
}

/// Every model has a variant with weights of samples: rows with weights are rows that are repeated.
#[test]
fn weights_of_samples_are_repetitions_in_models_of_tables_of_their_own() {
    let files = Files::new("weights-of-others");
    let weights = |model: &str, data: &str, more: &[&str]| {
        let saved = files.path("model");
        let train = ["--model", model, "--data", data, "--save", &saved, "--factors", "2"];
        let steps = ["--batch-size", "9", "--epochs", "20", "--lr", "0.1", "--no-shuffle"];
        command_line::run("train", &[&train[..], &steps, more].concat());
        let csv = command_line::run("inspect", &[&saved, "--csv"]);
        let weight = |line: &str| {
            let (place, weight) = line.rsplit_once(',').unwrap();
            (place.to_owned(), weight.parse::<f64>().unwrap())
        };
        csv.lines().skip(1).map(weight).collect::<Vec<_>>()
    };
    let are_close = |found: &[(String, f64)], expected: &[(String, f64)]| {
        assert_eq!(found.len(), expected.len());
        for ((place, found), (other, expected)) in found.iter().zip(expected) {
            assert_eq!(place, other);
            assert!((found - expected).abs() < 1e-4, "{place}: {found} {expected}");
        }
    };
    // The mean is over three rows, and over six: weights of 1/2 make them equal.
    let ratings = ["--format", "ratings"];
    let repeated = "u,i,5\nu,i,5\nu,i,5\nv,i,3\nu,j,1\nu,j,1\n";
    let repeated = weights("mf", &files.write("repeated.txt", repeated), &ratings);
    let halves = files.write("halves.txt", "u,i,5,1.5\nv,i,3,0.5\nu,j,1,1\n");
    let weighed = [&ratings[..], &["--weight", "4"]].concat();
    are_close(&weights("mf", &halves, &weighed), &repeated);
    assert!(weights("mf", &halves, &ratings) != repeated);

    let schema = |more: &str| format!("a:label,b:label,n:numeric{more}");
    let scale = ["--format", "csv", "--hash-bits", "6", "--no-scaling", "--schema"];
    let repeated = "2,1,0.5\n2,1,0.5\n2,1,0.5\n1,0,1\n3,1,-1\n3,1,-1\n";
    let repeated = files.write("repeated.csv", repeated);
    let repeated = weights("multi-task", &repeated, &[&scale[..], &[&schema("")]].concat());
    let halves = files.write("halves.csv", "2,1,0.5,1.5\n1,0,1,0.5\n3,1,-1,1\n");
    let weighed = schema(",w:weight");
    are_close(&weights("multi-task", &halves, &[&scale[..], &[&weighed]].concat()), &repeated);

    for (weight, message) in
        [("2", "the number of a column behind user"), ("w", "the number of a column behind user")]
    {
        let data = files.path("halves.txt");
        let train = ["--model", "mf", "--data", &data, "--format", "ratings", "--weight", weight];
        assert!(refused("train", &train).contains(message));
    }
}

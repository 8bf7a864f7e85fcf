//! Models whose sizes the command line says: layers of wide and deep models, and fields.

use crate::command_line::{self, Files, refused};
use nnz::data::Hashing;
use serde_json::Value;
use std::collections::HashMap;

fn rows() -> String {
    let row = |i: usize| {
        let (a, b) = (1 + i % 3, 4 + i / 3 % 3);
        format!("{} {a}:1 {b}:1\n", usize::from((a + b) % 2 == 0))
    };
    (0..90).map(row).collect()
}

#[test]
fn a_wide_and_deep_model_has_the_layers_that_are_asked_for() {
    let files = Files::new("layers");
    let (data, model) = (files.write("rows.svm", &rows()), files.path("model"));
    let train = ["--model", "wide-deep", "--data", &data, "--save", &model, "--epochs", "2"];
    for (more, name, dims) in [
        (&[][..], "WideDeep", &["\"e\":8", "\"h1\":32"][..]),
        (&["--hidden", "6", "--embedding", "3"], "WideDeep", &["\"e\":3", "\"h1\":6"]),
        (&["--hidden", "16,4"], "WideDeepTwoLayers", &["\"h1\":16", "\"h2\":4"]),
        (&["--hidden", "8,4,2"], "WideDeepThreeLayers", &["\"h1\":8", "\"h2\":4", "\"h3\":2"]),
    ] {
        command_line::run("train", &[&train[..], more].concat());
        let scores = command_line::run("predict", &["--model", &model, "--data", &data]);
        assert_eq!(scores.lines().count(), 90, "{more:?}");
        let json = command_line::run("inspect", &[&model, "--json"]);
        let shown: Value = serde_json::from_str(&json).unwrap();
        assert_eq!(shown["model"], name, "{json}");
        for dim in dims {
            let (name, extent) = dim.split_once(':').unwrap();
            let extent: u64 = extent.parse().unwrap();
            assert_eq!(shown["dims"][name.trim_matches('"')], extent, "{json}");
        }
        let plan = command_line::run("plan", &[&model]);
        assert!(plan.contains(name), "{plan}");
        // What is saved is gone on from, whatever the number of layers.
        let init = [&train[..], &["--init", &model]].concat();
        command_line::run("train", &init);
    }
    for (more, message) in [
        (&["--hidden", "4,4,4,4"][..], "4 layers, of which a model has one to three"),
        (&["--hidden", "4,4", "--optimizer", "rmsprop"], "choose sgd, "),
        (&["--fields", "3"], "--fields is for --model field-aware-machine"),
    ] {
        let errors = refused("train", &[&train[..], more].concat());
        assert!(errors.contains(message), "{errors}");
    }
    let errors = refused("train", &["--model", "linear", "--data", &data, "--hidden", "3"]);
    assert!(errors.contains("--hidden is for --model wide-deep"), "{errors}");
}

/// A sample in the order of the features: its label, and features, fields and values.
type Sample = (f64, Vec<(usize, usize, f64)>);

/// The weights of a field-aware machine, by parameter, feature and position.
type Weights = HashMap<(String, usize, usize), f64>;

const FACTORS: usize = 2;

/// The weight of a place, 0 if it is not stored.
fn weight(weights: &Weights, name: &str, row: usize, column: usize) -> f64 {
    weights.get(&(name.to_owned(), row, column)).copied().unwrap_or(0.0)
}

/// The score of a sample, by the formula of Juan and others.
fn score(weights: &Weights, entries: &[(usize, usize, f64)]) -> f64 {
    let mut score = weight(weights, "b", 0, 0);
    for (place, (i, field_i, xi)) in entries.iter().enumerate() {
        score += weight(weights, "w", *i, 0) * xi;
        for (j, field_j, xj) in &entries[place + 1..] {
            for factor in 0..FACTORS {
                let left = weight(weights, "v", *i, field_j * FACTORS + factor);
                let right = weight(weights, "v", *j, field_i * FACTORS + factor);
                score += xi * xj * left * right;
            }
        }
    }
    score
}

/// A step of gradient descent on the logistic loss of a sample.
fn step(weights: &mut Weights, (label, entries): &Sample, rate: f64) {
    let before = weights.clone();
    let probability = 1.0 / (1.0 + (-score(&before, entries)).exp());
    let slope = probability - label;
    let mut add = |name: &str, row: usize, column: usize, gradient: f64| {
        *weights.entry((name.to_owned(), row, column)).or_default() -= rate * slope * gradient;
    };
    add("b", 0, 0, 1.0);
    for (place, (i, field_i, xi)) in entries.iter().enumerate() {
        add("w", *i, 0, *xi);
        for (j, field_j, xj) in &entries[place + 1..] {
            for factor in 0..FACTORS {
                let (of_i, of_j) = (field_j * FACTORS + factor, field_i * FACTORS + factor);
                add("v", *i, of_i, xi * xj * weight(&before, "v", *j, of_j));
                add("v", *j, of_j, xi * xj * weight(&before, "v", *i, of_i));
            }
        }
    }
}

fn saved_weights(model: &str) -> Weights {
    let csv = command_line::run("inspect", &[model, "--csv"]);
    let weight = |line: &str| {
        let fields: Vec<&str> = line.split(',').collect();
        let place = (fields[0].to_owned(), fields[1].parse().unwrap(), fields[2].parse().unwrap());
        (place, fields.last().unwrap().parse().unwrap())
    };
    csv.lines().skip(1).map(weight).collect()
}

#[test]
fn a_field_aware_machine_learns_as_a_loop_by_hand_does() {
    let files = Files::new("ffm");
    let samples: Vec<Sample> = (0..12)
        .map(|i| {
            let entries = vec![
                (i % 3, 0, 1.0),
                (3 + i % 2, 1, 0.5 + (i % 4) as f64 / 4.0),
                (5 + i / 2 % 3, 2, 1.5),
            ];
            (f64::from(u8::from(i % 3 == i % 2)), entries)
        })
        .collect();
    let line = |(label, entries): &Sample| {
        let entry =
            |(index, field, value): &(usize, usize, f64)| format!(" {field}:{index}:{value}");
        format!("{label}{}\n", entries.iter().map(entry).collect::<String>())
    };
    let text: String = samples.iter().map(line).collect();
    let (data, model) = (files.write("rows.ffm", &text), files.path("model"));
    let train = ["--model", "ffm", "--data", &data, "--save", &model, "--factors", "2"];
    let plain = ["--no-shuffle", "--lr", "0.5"];
    let after = |epochs: &str| {
        command_line::run("train", &[&train[..], &plain, &["--epochs", epochs]].concat());
        saved_weights(&model)
    };
    let mut by_hand = after("1");
    let two = after("2");
    samples.iter().for_each(|sample| step(&mut by_hand, sample, 0.5));
    assert!(by_hand.len() > 30, "{}", by_hand.len());
    for ((name, row, column), expected) in &by_hand {
        let found = weight(&two, name, *row, *column);
        assert!((found - expected).abs() < 1e-5, "{name} {row} {column}: {found} {expected}");
    }
    let scores = command_line::run("predict", &["--model", &model, "--data", &data]);
    for (found, (_, entries)) in scores.lines().zip(&samples) {
        let expected = 1.0 / (1.0 + (-score(&two, entries)).exp());
        assert!((found.parse::<f64>().unwrap() - expected).abs() < 1e-5, "{found} {expected}");
    }
}

/// The label is whether two features of three fields are equal: no feature by itself tells it.
#[test]
fn a_field_aware_machine_learns_what_no_linear_model_can() {
    let files = Files::new("ffm-pairs");
    let row = |i: usize| {
        let (a, b, noise) = (i % 2, i / 2 % 2, i / 4 % 5);
        format!("{} 0:{a}:1 1:{}:1 2:{}:1\n", usize::from(a == b), 2 + b, 4 + noise)
    };
    let data = files.write("rows.ffm", &(0..400).map(row).collect::<String>());
    let model = files.path("model");
    let accuracy = |kind: &str, more: &[&str]| {
        let train = ["--model", kind, "--data", &data, "--save", &model, "--epochs", "20"];
        command_line::run("train", &[&train[..], more].concat());
        let found = command_line::run("evaluate", &["--model", &model, "--data", &data, "--json"]);
        let found: Value = serde_json::from_str(&found).unwrap();
        found["accuracy"].as_f64().unwrap()
    };
    assert!(accuracy("logistic", &["--lr", "0.3"]) < 0.8);
    assert!(accuracy("ffm", &["--lr", "0.3", "--optimizer", "adagrad"]) > 0.99);

    // Decay is that of a dense update, at the cost of the rows of a step.
    let decayed = |more: &[&str]| {
        let train = ["--model", "ffm", "--data", &data, "--save", &model, "--epochs", "1"];
        command_line::run("train", &[&train[..], &["--l2", "0.01"], more].concat());
        saved_weights(&model)
    };
    let (exact, dense) = (decayed(&[]), decayed(&["--lazy-update", "dense"]));
    assert!(exact.len() > 40 && exact.len() == dense.len());
    for (place, exact) in &exact {
        assert!((exact - dense[place]).abs() < 1e-5, "{place:?}: {exact} {}", dense[place]);
    }
    let touched = decayed(&["--lazy-update", "touched"]);
    assert!(exact.iter().any(|(place, exact)| (exact - touched[place]).abs() > 1e-3));

    let one_more = files.write("later.ffm", "1 0:0:1 3:2:1\n");
    let errors = refused("predict", &["--model", &model, "--data", &one_more]);
    assert!(errors.contains("has the field 3, but the model has the fields 0 to 2"), "{errors}");
    let two = files.write("two.ffm", "1 0:0:1 1:0:1\n");
    let errors = refused("train", &["--model", "ffm", "--data", &two]);
    assert!(errors.contains("index 0 is in the fields 0 and 1 of the row"), "{errors}");
    let svm = files.write("rows.svm", "1 1:1\n");
    let errors = refused("train", &["--model", "ffm", "--data", &svm]);
    assert!(errors.contains("field-aware-machine reads fields: those of libffm"), "{errors}");
    let stream = ["--model", "ffm", "--data", &data, "--stream", "1048576"];
    assert!(refused("train", &stream).contains("say it, --fields N"));
    command_line::run("train", &[&stream[..], &["--fields", "3", "--epochs", "1"]].concat());
}

/// The same samples as columns of a table, as namespaces, and as text of libFFM whose indices are
/// the columns of the hash.
#[test]
fn columns_and_namespaces_are_fields_of_a_field_aware_machine() {
    let files = Files::new("ffm-columns");
    let hashing = Hashing::new(12).unwrap();
    let sample = |i: usize| (u8::from(i % 2 == i / 2 % 2), i % 2, i / 2 % 2, i / 4 % 5);
    let text = |line: &dyn Fn((u8, usize, usize, usize)) -> String| -> String {
        (0..200).map(|i| line(sample(i))).collect()
    };
    let table = text(&|(y, a, b, c)| format!("{y},a{a},b{b},c{c}\n"));
    let table = files.write("rows.csv", &format!("y,p,q,r\n{table}"));
    let namespaces = text(&|(y, a, b, c)| format!("{y} |r c{c} |p a{a} |q b{b}\n"));
    let namespaces = files.write("rows.vw", &namespaces);
    let indices = text(&|(y, a, b, c)| {
        let values = [("p", format!("a{a}")), ("q", format!("b{b}")), ("r", format!("c{c}"))];
        let entry = |(field, (name, value)): (usize, &(&str, String))| {
            format!(" {field}:{}:1", hashing.column(name, value.as_bytes()))
        };
        format!("{y}{}\n", values.iter().enumerate().map(entry).collect::<String>())
    });
    let indices = files.write("rows.ffm", &indices);
    let model = files.path("model");
    let trained = |data: &str, more: &[&str]| {
        let train = ["--model", "ffm", "--data", data, "--save", &model, "--factors", "2"];
        let steps = ["--epochs", "20", "--lr", "0.3", "--optimizer", "adagrad"];
        command_line::run("train", &[&train[..], &steps, more].concat());
        let evaluate = ["--model", &model, "--data", data, "--json"];
        let found = command_line::run("evaluate", &evaluate);
        let found: Value = serde_json::from_str(&found).unwrap();
        assert!(found["accuracy"].as_f64().unwrap() > 0.99, "{data}: {found}");
        saved_weights(&model)
    };
    let by_indices = trained(&indices, &["--features", "4096"]);
    assert!(by_indices.len() > 40, "{}", by_indices.len());
    let hash = ["--hash-bits", "12"];
    for data in [&table, &namespaces] {
        let label: &[&str] = if data == &table { &["--label", "y"] } else { &[] };
        assert_eq!(trained(data, &[&hash, label].concat()), by_indices, "{data}");
    }
    let stream = ["--label", "y", "--stream", "1048576", "--no-shuffle"];
    trained(&table, &[&hash[..], &stream].concat());

    trained(&namespaces, &hash);
    let later = files.write("later.vw", "1 |s x\n");
    let errors = refused("predict", &["--model", &model, "--data", &later]);
    assert!(errors.contains("a namespace that is a field of the model, found `s`"), "{errors}");
}

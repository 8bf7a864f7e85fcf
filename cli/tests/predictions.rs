//! What `predict` writes: ids, labels of classes, TSV, CSV, JSON and arrays of NumPy.

use crate::command_line::{self, Files, refused};
use serde_json::Value;
use std::io::Write;
use std::process::Stdio;

/// People who buy from 45 on.
fn people() -> String {
    let line = |row: usize| {
        let age = 18 + row * 37 % 60;
        let bought = if age >= 45 { "yes" } else { "no" };
        let class = ["young", "\"middle, aged\"", "old"][(age - 18) / 20];
        format!("p{row},{bought},{age},{class}\n")
    };
    "name,bought,age,class\n".to_owned() + &(0..300).map(line).collect::<String>()
}

const SCHEMA: &str = "name:ignore,bought:label,age:buckets,class:ignore";

fn trained(files: &Files, model: &str, schema: &str, more: &[&str]) -> (String, String, String) {
    let (data, saved) = (files.write("people.csv", &people()), files.path("model"));
    let train = ["--model", model, "--data", &data, "--schema", schema, "--header"];
    let save = ["--save", &saved[..], "--epochs", "20"];
    let output = command_line::output("train", &[&train[..], &save, more].concat());
    let told = String::from_utf8(output.stderr).unwrap();
    assert!(output.status.success(), "{told}");
    (data, saved, told)
}

#[test]
fn labels_may_be_words() {
    let files = Files::new("words-labels");
    let (data, model, told) = trained(&files, "logistic", SCHEMA, &[]);
    assert!(told.contains("labels no, yes"), "{told}");
    assert!(told.contains("people.csv: yes is positive, no is negative\n"), "{told}");
    let predict = ["--model", &model[..], "--data", &data, "--class"];
    let classes = command_line::run("predict", &predict);
    assert_eq!(classes.lines().count(), 300);
    assert!(classes.lines().all(|line| line == "yes" || line == "no"), "{classes}");
    let evaluate = command_line::run("evaluate", &["--model", &model, "--data", &data, "--json"]);
    let found: Value = serde_json::from_str(&evaluate).unwrap();
    let wrong =
        classes.lines().zip(people().lines().skip(1).map(str::to_owned).collect::<Vec<_>>());
    let right = wrong.filter(|(class, line)| line.split(',').nth(1) == Some(class)).count();
    assert_eq!(found["accuracy"].as_f64().unwrap(), right as f64 / 300.0);

    // The other way round.
    let (_, model, told) = trained(&files, "hinge", SCHEMA, &["--positive", "no"]);
    assert!(told.contains("no is positive, yes is negative"), "{told}");
    let others = command_line::run("predict", &predict);
    let agree = others.lines().zip(classes.lines()).filter(|(a, b)| a == b).count();
    assert!(agree > 250, "{agree}");
    let other = files.write("other.csv", "name,bought,age,class\np,perhaps,30,old\n");
    let errors = refused("evaluate", &["--model", &model, "--data", &other]);
    assert!(
        errors.contains("other.csv:2:3: expected one of the words that are labels"),
        "{errors}"
    );
    let train = ["--model", "logistic", "--data", &data, "--schema", SCHEMA, "--header"];
    let errors = refused("train", &[&train[..], &["--positive", "perhaps"]].concat());
    assert!(errors.contains("has that label: they are no, yes"), "{errors}");
}

#[test]
fn classes_are_told_by_their_names() {
    let files = Files::new("class-names");
    let schema = "name:ignore,bought:ignore,age:buckets,class:label";
    let (data, model, told) = trained(&files, "softmax", schema, &[]);
    assert!(told.contains("classes middle, aged, old, young"), "{told}");
    let predict = ["--model", &model[..], "--data", &data, "--id", "name"];
    let csv = ["--output-format", "csv"];
    let classes = command_line::run("predict", &[&predict[..], &csv, &["--class"]].concat());
    let lines: Vec<&str> = classes.lines().collect();
    assert_eq!(lines[..2], ["name,class", "p0,young"]);
    assert!(lines.iter().any(|line| line.ends_with(",\"middle, aged\"")), "{classes}");
    let numbers = command_line::run("predict", &[&predict[..], &csv].concat());
    assert!(numbers.starts_with("name,\"middle, aged\",old,young\np0,0."), "{numbers}");
    let json = command_line::run("predict", &[&predict[..], &["--output-format", "json"]].concat());
    let first: Value = serde_json::from_str(json.lines().next().unwrap()).unwrap();
    assert_eq!(first["name"], "p0");
    let sum = ["middle, aged", "old", "young"].map(|class| first[class].as_f64().unwrap());
    assert!((sum.iter().sum::<f64>() - 1.0).abs() < 1e-5, "{first}");
}

#[test]
fn formats_of_predictions_hold_the_same_numbers() {
    let files = Files::new("formats");
    let (data, model, _) = trained(&files, "logistic", SCHEMA, &[]);
    let predict = ["--model", &model[..], "--data", &data];
    let tsv = command_line::run("predict", &predict);
    let output = |name: &str, more: &[&str]| {
        let path = files.path(name);
        command_line::run("predict", &[&predict[..], &["--output", &path], more].concat());
        files.bytes(name)
    };
    let id = ["--id", "name"];
    let csv = String::from_utf8(output("scores.csv", &id)).unwrap();
    let json = String::from_utf8(output("scores.jsonl", &id)).unwrap();
    assert!(csv.starts_with("name,probability\np0,0."), "{csv}");
    for (row, number) in tsv.lines().enumerate() {
        assert_eq!(csv.lines().nth(row + 1).unwrap(), format!("p{row},{number}"));
        let line = json.lines().nth(row).unwrap();
        assert_eq!(line, format!("{{\"name\":\"p{row}\",\"probability\":{number}}}"));
    }
    let with_ids = command_line::run("predict", &[&predict[..], &id].concat());
    assert_eq!(
        with_ids.lines().next(),
        csv.lines().nth(1).map(|l| l.replace(',', "\t")).as_deref()
    );
    let npy = output("scores.npy", &[]);
    let length = u16::from_le_bytes([npy[8], npy[9]]) as usize;
    assert_eq!((&npy[..8], (10 + length) % 64), (&b"\x93NUMPY\x01\x00"[..], 0));
    let header = String::from_utf8_lossy(&npy[10..10 + length]);
    assert!(header.contains("'descr': '<f4'") && header.contains("(300,)"), "{header}");
    let numbers = npy[10 + length..].as_chunks::<4>().0.iter().map(|b| f32::from_le_bytes(*b));
    let expected: Vec<f32> = tsv.lines().map(|line| line.parse().unwrap()).collect();
    assert_eq!(numbers.collect::<Vec<_>>(), expected);

    for (more, message) in [
        (&["--output-format", "npy", "--class"][..], "an array of NumPy has numbers alone"),
        (&["--id", "surname"], "there is no column `surname`: there are name, bought"),
    ] {
        let errors = refused("predict", &[&predict[..], more].concat());
        assert!(errors.contains(message), "{errors}");
    }
}

#[test]
fn ids_pass_through_pipes() {
    let files = Files::new("id-pipe");
    let (_, model, _) = trained(&files, "logistic", SCHEMA, &[]);
    let mut command = command_line::command("predict");
    command.args(["--model", &model, "--data", "-", "--id", "name", "--class"]);
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let text = "name,bought,age,class\nanna,yes,70,old\nben,no,20,young\n";
    child.stdin.take().unwrap().write_all(text.as_bytes()).unwrap();
    let output = child.wait_with_output().unwrap();
    assert_eq!(String::from_utf8_lossy(&output.stdout), "anna\tyes\nben\tno\n");
}

#[test]
fn tags_are_ids_and_labels_that_are_read_as_they_are_are_printed() {
    let files = Files::new("tags");
    let data = files.write("rows.vw", "1 'first |a x\n-1 2nd|a y\n");
    let model = files.path("model");
    command_line::run("train", &["--model", "logistic", "--data", &data, "--save", &model]);
    let predict = ["--model", &model[..], "--data", &data, "--id", "tag", "--class"];
    assert_eq!(command_line::run("predict", &predict), "first\t1\n2nd\t-1\n");
    let svm = files.write("rows.svm", "3 1:1\n7 2:1\n");
    command_line::run("train", &["--model", "logistic", "--data", &svm, "--save", &model]);
    let predict = ["--model", &model[..], "--data", &svm, "--class"];
    assert_eq!(command_line::run("predict", &predict), "3\n7\n");
    let errors = refused("predict", &[&predict[..], &["--id", "tag"]].concat());
    assert!(errors.contains("--id tag: libsvm has no such column"), "{errors}");
}

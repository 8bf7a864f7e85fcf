//! Field cases of files that are read on request, or refused with the flag that reads them.

use crate::command_line::{self, Files, refused};
use std::io::{BufRead, BufReader, Write};
use std::process::Stdio;

/// Trains a logistic model for some epochs; returns its file, and what is told of the data.
fn trained(files: &Files, data: &str, more: &[&str]) -> (String, String) {
    let model = files.path("model");
    let train = ["--model", "logistic", "--data", data, "--save", &model, "--epochs", "20"];
    let output = command_line::output("train", &[&train[..], more].concat());
    let told = String::from_utf8(output.stderr).unwrap();
    assert!(output.status.success(), "{more:?}: {told}");
    (model, told)
}

fn scores(model: &str, data: &str, more: &[&str]) -> Vec<f64> {
    let predict = ["--model", model, "--data", data];
    let text = command_line::run("predict", &[&predict[..], more].concat());
    text.lines().map(|line| line.parse().unwrap()).collect()
}

#[test]
fn d2_an_index_in_two_fields_is_added_by_models_without_fields() {
    let files = Files::new("d2");
    let data = files.write("a.ffm", "1 0:0:1 5:38:0.5 13:38:0.5\n0 0:1:1 5:38:0.5 5:38:0.5\n");
    let (model, _) = trained(&files, &data, &[]);
    let once = files.write("once.ffm", "1 0:0:1 5:38:1\n0 0:1:1 5:38:1\n");
    assert_eq!(scores(&model, &data, &[]), scores(&model, &once, &[]));
}

#[test]
fn d10_features_that_the_model_does_not_have_are_told_or_left_out() {
    let files = Files::new("d10");
    let data = files.write("train.svm", "1 1:1 4:1\n0 8:1\n");
    let (model, _) = trained(&files, &data, &["--index-base", "one"]);
    let later = files.write("later.svm", "-1 4:1 9:1\n");
    let predict = ["--model", &model[..], "--data", &later];
    let errors = refused("predict", &predict);
    let expected = "later.svm:1:8: index 9 is unknown: the model has 8 features; --unknown ignore";
    assert!(errors.contains(expected), "{errors}");
    let known = files.write("known.svm", "-1 4:1\n");
    assert_eq!(scores(&model, &later, &["--unknown", "ignore"]), scores(&model, &known, &[]));
    let csv = files.write("a.csv", "1,a\n");
    let train = ["--model", "logistic", "--data", &csv, "--schema", "y:label,c:categorical"];
    let errors = refused("train", &[&train[..], &["--unknown", "ignore"]].concat());
    assert!(errors.contains("--unknown is for libsvm, libffm, matrices"), "{errors}");
}

#[test]
fn d12_of_any_two_labels_one_is_positive() {
    let files = Files::new("d12");
    let data = files.write("two.svm", "2 1:1\n4 2:1\n2 1:1\n4 2:1\n");
    let (model, told) = trained(&files, &data, &["--test", &data]);
    assert!(told.contains("two.svm: 4 is positive, 2 is negative\n"), "{told}");
    let of_four = scores(&model, &data, &[]);
    assert!(of_four[0] < 0.5 && of_four[1] > 0.5, "{of_four:?}");
    // The model's file knows which.
    let found = command_line::run("evaluate", &["--model", &model, "--data", &data, "--json"]);
    assert!(found.contains("\"accuracy\":1.0"), "{found}");
    let stream = ["--model", &model, "--data", &data, "--stream", "1048576"];
    let errors = refused("evaluate", &stream);
    assert!(errors.contains("4 is positive, 2 is negative, which holds for data in"), "{errors}");
    let other = files.write("other.svm", "3 1:1\n");
    let errors = refused("evaluate", &["--model", &model, "--data", &other]);
    assert!(errors.contains("the label 3"), "{errors}");

    let (model, told) = trained(&files, &data, &["--positive", "2"]);
    assert!(told.contains("two.svm: 2 is positive, 4 is negative\n"), "{told}");
    assert!(scores(&model, &data, &[])[0] > 0.5);
    let three = files.write("three.svm", "1 1:1\n2 2:1\n3 3:1\n");
    let train = ["--model", "logistic", "--data", &three];
    let errors = refused("train", &train);
    assert!(errors.contains("three.svm` has the labels 1, 2, 3, and the model has"), "{errors}");
    let errors = refused("train", &[&train[..], &["--positive", "5"]].concat());
    assert!(errors.contains("no sample of `") && errors.contains("they are 1, 2, 3"), "{errors}");
    let (model, _) = trained(&files, &three, &["--positive", "2"]);
    let of_two = scores(&model, &three, &[]);
    assert!(of_two[1] > 0.5 && of_two[0] < 0.5 && of_two[2] < 0.5, "{of_two:?}");
    let (_, told) = trained(&files, &files.write("usual.svm", "1 1:1\n-1 2:1\n"), &[]);
    assert!(!told.contains("is positive"), "{told}");
}

#[test]
fn d14_indices_of_64_bits_are_folded_or_named_by_their_line() {
    let files = Files::new("d14");
    let text = "0 5:1\n1 72048431380967004:1 9223372036854775806:2\n";
    let data = files.write("hashed.svm", text);
    let errors = refused("train", &["--model", "logistic", "--data", &data]);
    let expected = "hashed.svm`: line 2: index 72048431380967004 is beyond what a table can have";
    assert!(errors.contains(expected) && errors.contains("--hash-bits"), "{errors}");
    let (model, told) = trained(&files, &data, &["--hash-bits", "16"]);
    assert!(told.contains("; 2^16 columns; labels 0, 1\n"), "{told}");
    let found = scores(&model, &data, &[]);
    assert!(found[0] < 0.5 && found[1] > 0.5, "{found:?}");
}

#[test]
fn d15_samples_to_score_may_have_any_label_or_none() {
    let files = Files::new("d15");
    let data = files.write("train.svm", "1 1:1\n0 2:1\n");
    let (model, _) = trained(&files, &data, &[]);
    let expected = scores(&model, &data, &[]);
    for text in ["? 1:1\n? 2:1\n", "1:1\n2:1\n", "user7 1:1\nuser9 2:1\n"] {
        let bare = files.write("bare.svm", text);
        assert_eq!(scores(&model, &bare, &[]), expected, "{text}");
        assert_eq!(scores(&model, &bare, &["--stream", "1048576"]), expected, "{text}");
    }
}

#[test]
fn d16_rows_in_any_order_are_read_on_request() {
    let files = Files::new("d16");
    let data = files.write("rows.svm", "-1 15515:1 280:1 2:1\n1 3:1 3:1\n");
    let train = ["--model", "logistic", "--data", &data];
    let errors = refused("train", &train);
    assert!(errors.contains("must ascend: --unsorted sort sorts them"), "{errors}");
    let errors = refused("train", &[&train[..], &["--unsorted", "sort"]].concat());
    assert!(errors.contains("index 3 occurs twice in the row: --repeated add"), "{errors}");
    let flags = ["--unsorted", "sort", "--repeated", "add"];
    let (_, told) = trained(&files, &data, &flags);
    assert!(told.contains("; 2 samples; 15515 columns"), "{told}");
    let (_, streamed) = trained(&files, &data, &[&flags[..], &["--stream", "1048576"]].concat());
    assert!(streamed.contains("; 15515 columns"), "{streamed}");
}

#[test]
fn d20_files_of_other_formats_are_named() {
    let files = Files::new("d20");
    let refusal = |name: &str, bytes: &[u8]| {
        std::fs::write(files.0.join(name), bytes).unwrap();
        refused("train", &["--model", "logistic", "--data", &files.path(name)])
    };
    let errors = refusal("rows.svm", b"PAR1\x15\x04\x15");
    let lead = if cfg!(feature = "parquet") {
        "read its columns as a table, by `Delimited` (`--format csv`)"
    } else {
        "enable the feature `parquet` of `nnz` or of its program"
    };
    assert!(errors.contains(&format!("rows.svm` is a Parquet file: {lead}")), "{errors}");
    if cfg!(not(feature = "parquet")) {
        let errors = refusal("rows.parquet", b"PAR1\x15\x04\x15");
        assert!(errors.contains("which this build does not read: enable its feature"), "{errors}");
        assert!(errors.contains("cargo install nnz-cli --features parquet"), "{errors}");
    }
    let errors = refusal("rows.txt", b"\x1f\x8b\x08\0\0\0\0\0");
    assert!(errors.contains("is compressed by gzip: give it a name that ends in .gz"), "{errors}");
    // Text of Vowpal Wabbit is known by its first line; said to be LibSVM, it is named.
    let data = files.write("vw.svm", "1 |site a b |ad c:2\n-1 |site b\n");
    command_line::run("train", &["--model", "logistic", "--data", &data]);
    let libsvm = ["--model", "logistic", "--data", &data, "--format", "libsvm"];
    let errors = refused("train", &libsvm);
    assert!(errors.contains("`|site` is a namespace of Vowpal Wabbit's text"), "{errors}");
}

/// The next line is written once the prediction of the one before has come.
#[test]
fn d22_a_pipe_gets_a_line_for_a_line() {
    let files = Files::new("d22");
    let data = files.write("train.svm", "1 1:1\n0 2:1\n");
    let (model, _) = trained(&files, &data, &[]);
    let expected = command_line::run("predict", &["--model", &model, "--data", &data]);
    let mut command = command_line::command("predict");
    command.args(["--model", &model, "--data", "-", "--output", "-"]);
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let mut input = child.stdin.take().unwrap();
    let mut output = BufReader::new(child.stdout.take().unwrap());
    for (line, expected) in ["1 1:1\n", "\n? 2:1\n"].iter().zip(expected.lines()) {
        input.write_all(line.as_bytes()).unwrap();
        let mut found = String::new();
        output.read_line(&mut found).unwrap();
        assert_eq!(found.trim_end(), expected);
    }
    // Several lines at once, the last of them without an end.
    input.write_all(b"1 1:1\n0 2:1").unwrap();
    drop(input);
    let rest: Vec<String> = output.lines().map(Result::unwrap).collect();
    assert_eq!(rest, expected.lines().collect::<Vec<_>>());
    assert!(child.wait().unwrap().success());

    let mut command = command_line::command("predict");
    command.args(["--model", &model, "--data", "-"]);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    child.stdin.take().unwrap().write_all(b"1 1:1\n\n1 1:x\n").unwrap();
    let output = child.wait_with_output().unwrap();
    let errors = String::from_utf8(output.stderr).unwrap();
    assert!(!output.status.success() && errors.contains("-:3:5: expected a number"), "{errors}");
    let file = files.path("scores");
    let errors = refused("predict", &["--model", &model, "--data", "-", "--output", &file]);
    assert!(errors.contains("leave --output and --metrics out"), "{errors}");
}

/// What comes through a pipe is trained on as what is in a file.
#[test]
fn d22_a_pipe_is_read_once_for_training() {
    if cfg!(unix) {
        let files = Files::new("d22-train");
        let text = "1 1:1\n0 2:1\n";
        let data = files.write("train.svm", text);
        let model = |name: &str, data: &str, input: &str| {
            let saved = files.path(name);
            let mut command = command_line::command("train");
            command.args(["--model", "logistic", "--data", data, "--save", &saved]);
            let mut child = command.stdin(Stdio::piped()).stdout(Stdio::null()).spawn().unwrap();
            child.stdin.take().unwrap().write_all(input.as_bytes()).unwrap();
            assert!(child.wait().unwrap().success());
            files.bytes(name)
        };
        assert_eq!(model("of-pipe", "-", text), model("of-file", &data, ""));
    }
}

//! The four lines of NumPy in docs/model_file.md score as the program does.

use crate::command_line::{self, Files};
use crate::poisson_regression::PoissonRegression;
use nnz::prelude::*;
use nnz::training::checkpoint::Attachments;
use std::process::Command;

/// The lines of the page.
fn lines_of_numpy() -> String {
    let page = include_str!("../../docs/model_file.md");
    let (_, after) = page.split_once("```python\n").unwrap();
    after.split_once("```").unwrap().0.to_owned()
}

#[test]
fn four_lines_of_numpy_score_as_the_program_does() {
    let has_numpy = Command::new("python3").args(["-c", "import numpy"]).output();
    if !has_numpy.is_ok_and(|output| output.status.success()) {
        eprintln!("skipped: there is no python3 with numpy");
        return;
    }
    let files = Files::new("numpy");
    let row = |i: usize| format!("{} {}:0.5 {}:{}\n", i % 2, 1 + i % 5, 6 + i % 4, i % 7);
    let data = files.write("rows.svm", &(0..60).map(row).collect::<String>());
    let model = files.path("model.safetensors");
    command_line::run("train", &["--model", "logistic", "--data", &data, "--save", &model]);
    let expected = command_line::run("predict", &["--model", &model, "--data", &data]);
    let read = "\
import json
import numpy as np
rows = [line.split()[1:] for line in open('rows.svm')]
X = np.zeros((len(rows), 9))
for i, row in enumerate(rows):
    for entry in row:
        column, value = entry.split(':')
        X[i, int(column) - 1] = float(value)
np.set_printoptions(precision=17, threshold=10**6)
";
    let lines = lines_of_numpy();
    assert_eq!(lines.lines().count(), 4);
    let script = read.to_owned() + &lines;
    let python = Command::new("python3").args(["-c", &script]).current_dir(&files.0).output();
    let python = python.unwrap();
    let errors = String::from_utf8_lossy(&python.stderr);
    assert!(python.status.success(), "{errors}");
    let found = String::from_utf8(python.stdout).unwrap().replace(['[', ']'], " ");
    let found: Vec<f64> = found.split_whitespace().map(|word| word.parse().unwrap()).collect();
    let expected: Vec<f64> = expected.lines().map(|line| line.parse().unwrap()).collect();
    assert_eq!(found.len(), expected.len());
    for (found, expected) in found.iter().zip(&expected) {
        assert!((found - expected).abs() < 1e-6, "{found} {expected}");
    }
}

/// The graph of an example is that of the program.
#[test]
fn a_noted_range_without_numbers_is_refused() {
    let files = Files::new("noted-range");
    let data = files.write("rows.svm", "1 1:1\n5 2:1\n");
    let saved = files.path("model");
    let model = PoissonRegression::new(dims! { d: 2 }, Seed(0)).unwrap();
    let predict = ["--model", &saved[..], "--data", &data];
    let save = |range: &str| {
        let notes = [("format", "libsvm"), ("index_base", "one"), ("clip_predictions", range)];
        let attachments = Attachments { notes: &notes, ids: &[] };
        checkpoint::save_with(&model, &saved, attachments).unwrap();
    };
    save("2,5");
    assert_eq!(command_line::run("predict", &predict), "2\n2\n");
    for range in ["5,1", "nan,1", "1,nan", "1", "a,b", ""] {
        save(range);
        let errors = command_line::refused("predict", &predict);
        assert!(errors.contains("the note `clip_predictions` of the model is"), "{errors}");
    }
}

//! What is seen of a run: the table, the mark of the best epoch, the last line, and the same as
//! JSON.

use crate::command_line::{self, Files};
use serde_json::Value;

fn rows(n: usize) -> String {
    let row = |i: usize| format!("{} {}:1 {}:1\n", (i * 7 + i / 3) % 2, 1 + i % 11, 12 + i % 5);
    (0..n).map(row).collect()
}

#[test]
fn the_table_has_a_row_at_doubling_counts_and_one_an_epoch() {
    let files = Files::new("table");
    let (data, model) = (files.write("rows.svm", &rows(1000)), files.path("model"));
    let train = ["--model", "logistic", "--data", &data, "--epochs", "2"];
    let shown = command_line::run("train", &[&train[..], &["--save", &model]].concat());
    let lines: Vec<&str> = shown.lines().collect();
    assert_eq!(lines[0].split_whitespace().collect::<Vec<_>>(), ["mean", "since", "samples"]);
    let titles = ["epoch", "samples", "loss", "last", "a", "second", "seconds"];
    assert_eq!(lines[1].split_whitespace().collect::<Vec<_>>(), titles);
    let samples = |line: &&str| line.split_whitespace().nth(1).unwrap().parse::<u64>().unwrap();
    let counts: Vec<u64> = lines[2..lines.len() - 1].iter().map(samples).collect();
    assert_eq!(counts, [1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1000, 1000]);
    let first: Vec<&str> = lines[2].split_whitespace().collect();
    assert_eq!(first[2..4], ["0.693147", "0.693147"]);
    let last = lines.last().unwrap();
    assert!(last.starts_with("epoch 2: mean loss 0.") && last.ends_with(&format!("in {model}")));
    let width = lines[1].len();
    assert!(lines[2..lines.len() - 1].iter().all(|line| line.len() == width), "{shown}");
    let bare = command_line::run("train", &train);
    assert!(bare.ends_with("not saved: --save FILE keeps a model\n"), "{bare}");
    // A bar is for terminals.
    assert!(!shown.contains('\r') && !shown.contains('\x1b'));
}

#[test]
fn the_best_epoch_is_marked_and_told() {
    let files = Files::new("best");
    let (data, model) = (files.write("rows.svm", &rows(400)), files.path("model"));
    let test = files.write("test.svm", &rows(90));
    let train = ["--model", "logistic", "--data", &data, "--test", &test, "--epochs", "6"];
    let train = [&train[..], &["--lr", "0.7", "--save", &model]].concat();
    let json = command_line::run("train", &[&train[..], &["--json"]].concat());
    let epochs: Vec<Value> = json.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let losses: Vec<f64> = epochs.iter().map(|line| line["test_loss"].as_f64().unwrap()).collect();
    let is_best = |epoch: usize| losses[..epoch].iter().all(|before| *before > losses[epoch]);
    for (epoch, line) in epochs.iter().enumerate() {
        assert_eq!(line["best"], is_best(epoch), "{line}");
        assert_eq!(line.get("progress").is_some(), epoch == 0);
    }
    let progress = epochs[0]["progress"].as_array().unwrap();
    assert_eq!(progress.len(), 9);
    assert_eq!(progress[8]["samples"], 256);

    let shown = command_line::run("train", &train);
    let lines: Vec<&str> = shown.lines().collect();
    assert!(lines[..2].iter().all(|line| line.len() <= 80), "{shown}");
    let rows = &lines[lines.len() - 7..lines.len() - 1];
    for (epoch, row) in rows.iter().enumerate() {
        assert_eq!(row.as_bytes()[5] == b'*', is_best(epoch), "{shown}");
    }
    let best = (0..6).rev().find(|epoch| is_best(*epoch)).unwrap();
    let told = format!("best: epoch {}, test loss {:.6}; ", best + 1, losses[best]);
    assert!(shown.lines().last().unwrap().starts_with(&told), "{shown}");
    let patient = command_line::run("train", &[&train[..], &["--patience", "9"]].concat());
    assert!(patient.ends_with(&format!("; saved in {model}\n")), "{patient}");
}

#[test]
fn a_run_ends_where_the_loss_falls_by_less_than_the_tolerance() {
    let files = Files::new("tolerance");
    let data = files.write("rows.svm", &rows(400));
    let train = ["--model", "logistic", "--data", &data, "--json", "--epochs", "40"];
    let losses = |more: &[&str]| {
        let lines = command_line::run("train", &[&train[..], more].concat());
        let loss = |line: &str| {
            let line: Value = serde_json::from_str(line).unwrap();
            line["progressive_loss"].as_f64().unwrap()
        };
        lines.lines().map(loss).collect::<Vec<f64>>()
    };
    let all = losses(&[]);
    assert_eq!(all.len(), 40);
    let tolerance = 1e-3;
    let mut best = f64::INFINITY;
    let mut epochs = 0;
    for loss in all {
        epochs += 1;
        if best - loss <= tolerance {
            break;
        }
        best = loss;
    }
    assert_eq!(losses(&["--tolerance", "1e-3"]).len(), epochs);
    assert!(epochs < 40);
}

#[test]
fn a_run_is_drawn_by_epochs() {
    let files = Files::new("plot");
    let (data, test) = (files.write("rows.svm", &rows(300)), files.write("test.svm", &rows(90)));
    let train = ["--model", "logistic", "--data", &data, "--test", &test, "--epochs", "3"];
    command_line::run("train", &[&train[..], &["--plot", &files.path("run.svg")]].concat());
    let picture = String::from_utf8(files.bytes("run.svg")).unwrap();
    assert!(picture.contains(">loss</text>") && picture.contains("best: epoch"), "{picture}");
    assert!(picture.contains(">training</text>") && picture.contains(">evaluation</text>"));
    // Before the run, not after it.
    let refused = command_line::refused("train", &[&train[..], &["--plot", "run.png"]].concat());
    assert!(refused.contains("name a file that ends in `.svg`"), "{refused}");
}

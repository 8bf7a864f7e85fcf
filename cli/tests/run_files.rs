//! Runs that are described by a TOML file, and the file that repeats a run.

use crate::command_line::{Files, refused, run};

/// Rows of two features of 40, whose label is the parity of the first.
fn rows() -> String {
    let row = |row: usize| format!("{} {}:1 {}:0.5\n", row % 2, 1 + row % 20, 21 + row * 7 % 20);
    (0..200).map(row).collect()
}

#[test]
fn a_run_is_repeated_to_the_bit_by_the_file_beside_its_model() {
    let files = Files::new("run-file");
    let data = files.write("rows.svm", &rows());
    let (first, again) = (files.path("first"), files.path("again"));
    for more in [
        &["--optimizer", "adamw", "--learning-rate", "3e-2", "--l2=1e-4", "--no-bias"][..],
        &["--optimizer", "svrg", "--set", "update_freq=2", "--holdout", "0.25", "--seed", "7"],
        &["--schedule", "multi-step", "--milestones", "1,2", "--nesterov", "--momentum", "0.9"],
        &["--class-weight", "0=2", "--positive", "1", "--batch-size", "16", "--no-shuffle"],
    ] {
        let flags = ["--model", "logistic", "--data", &data, "--epochs", "3", "--save", &first];
        run("train", &[&flags[..], more].concat());
        let file = files.path("first.run.toml");
        run("train", &["--config", &file, "--save", &again]);
        assert_eq!(files.bytes("first"), files.bytes("again"), "{more:?}");
        let text = |name| String::from_utf8(files.bytes(name)).unwrap();
        let moved = text("first.run.toml").replace(&first, &again);
        assert_eq!(moved, text("again.run.toml"));
        assert!(moved.contains("model = \"logistic\"\n"), "{moved}");
    }
}

#[test]
fn flags_win_over_the_file() {
    let files = Files::new("run-file-flags");
    let data = files.write("rows.svm", &rows());
    let text = format!(
        "model = 'logistic'\ndata = ['{data}']\njson = true\nno-bias = false\nholdout = 0.5\n\
         optimizer = 'svrg'\nset = {{ update_freq = 2 }}\npasses = 3\n"
    );
    let file = files.write("run.toml", &text);
    let lines = run("train", &["--config", &file]);
    assert_eq!(lines.lines().count(), 3);
    assert!(lines.contains("test_loss"), "{lines}");
    // An alias of a flag of the file, and a flag that excludes another one.
    let config = format!("--config={file}");
    let lines = run("train", &[&config, "--epochs", "2", "--test", &data]);
    assert_eq!(lines.lines().count(), 2);
}

#[test]
fn keys_and_values_that_no_flag_takes_are_refused() {
    let files = Files::new("run-file-refused");
    for (text, problem) in [
        ("epoch = 3", "there is no flag `epoch`: is it `epochs`?"),
        ("batch_size = 3", "there is no flag `batch_size`: is it `batch-size`?"),
        ("lambda = 3", "there is no hyperparameter `lambda`"),
        ("qqqqq = 3", "there is no flag `qqqqq`: `nnz train --help` lists them"),
        ("resume = true", "`resume` is of one call, not of a run"),
        ("no-bias = 3", "`no-bias` is true or false, not 3"),
        ("epochs = [1, 2]", "`epochs` takes one text or number, not [1, 2]"),
        ("epochs = ", "run.toml: TOML parse error at line 1"),
        ("epochs = -1", "invalid value '-1' for '--epochs"),
    ] {
        let file = files.write("run.toml", text);
        let error = refused("train", &["--config", &file, "--model", "linear", "--data", "x"]);
        assert!(error.contains(problem), "{text}: {error}");
    }
    let data = files.write("rows.svm", &rows());
    let (model, own) = (files.path("own"), files.write("own.run.toml", "# Mine.\n"));
    let train = ["--model", "logistic", "--data", &data, "--save", &model];
    let error = refused("train", &train);
    assert!(error.contains(&format!("`{own}` is not written by `nnz train`")), "{error}");
    assert_eq!(files.bytes("own.run.toml"), b"# Mine.\n");
}

//! Training that goes on from a saved model with other data, and on a part of the data.

use crate::command_line::{self, Files, refused};
use crate::logistic_regression::LogisticRegression;
use nnz::prelude::*;

/// Samples of some day, LibSVM.
fn day(first: usize) -> String {
    let line = |row: usize| {
        let label = usize::from(row.is_multiple_of(3));
        format!("{label} {}:1 {}:0.5 {}:2\n", row % 7 + 1, row % 11 + 10, row * row % 23 + 30)
    };
    (first..first + 40).map(line).collect()
}

/// The weights of a model's file.
fn weights(path: &str) -> Vec<f32> {
    let mut model = LogisticRegression::new(dims! { d: 60 }, Seed(0)).unwrap();
    checkpoint::load(&mut model, path).unwrap();
    model.w.values().iter().chain(model.b.values()).copied().collect()
}

#[test]
fn days_in_a_row_equal_passes_of_one_process_to_the_bit() {
    let files = Files::new("days");
    let days = [files.write("monday.svm", &day(0)), files.write("tuesday.svm", &day(1000))];
    let model = files.path("model");
    let rule = ["--model", "logistic", "--optimizer", "adam", "--epochs", "1", "--seed", "3"];
    let train = [&rule[..], &["--batch-size", "4", "--save", &model]].concat();
    let first = ["--data", &days[0], "--features", "60", "--index-base", "one", "--save-state"];
    command_line::run("train", &[&train[..], &first].concat());
    let monday = files.bytes("model");
    let second = ["--data", &days[1], "--init", &model];
    let output = command_line::output("train", &[&train[..], &second, &["--save-state"]].concat());
    let told = String::from_utf8(output.stderr).unwrap();
    assert!(output.status.success() && told.contains("going on with the state in"), "{told}");

    let mut trainer = Trainer::new(Adam::default()).batch_size(4).seed(3);
    let mut by_hand = LogisticRegression::new(dims! { d: 60 }, Seed(3)).unwrap();
    let mut updater = trainer.updater(&by_hand).unwrap();
    for day in &days {
        let reader = libsvm::Reader::new().index_base(IndexBase::One).n_features(60);
        let data = reader.read_path(day).unwrap();
        trainer.partial_fit(&mut by_hand, &mut updater, &data).unwrap();
    }
    let expected: Vec<f32> = by_hand.w.values().iter().chain(by_hand.b.values()).copied().collect();
    assert_eq!(weights(&model), expected);

    // A state is that of its model; without one the rule begins anew, from the same weights.
    std::fs::write(&model, &monday).unwrap();
    let errors = refused("train", &[&train[..], &second].concat());
    assert!(errors.contains("is the state of other weights than the model has"), "{errors}");
    files.forget("model.state");
    command_line::run("train", &[&train[..], &second].concat());
    let anew = weights(&model);
    assert!(anew != expected && anew.len() == expected.len());
    let sgd = ["--model", "logistic", "--data", &days[0], "--save", &model, "--save-state"];
    command_line::run("train", &[&sgd[..], &["--features", "60"]].concat());
    let errors = refused("train", &[&train[..], &second].concat());
    assert!(errors.contains("model.state` to begin with no state"), "{errors}");
}

#[test]
fn what_goes_on_reads_as_the_model_says() {
    let files = Files::new("goes-on");
    let model = files.path("model");
    let monday = files.write("monday.txt", "2\tgood film\n5\tbad film\n");
    let train = ["--save", &model, "--epochs", "3"];
    let first = ["--model", "logistic", "--data", &monday, "--hash-bits", "9", "--ngrams", "2"];
    command_line::run("train", &[&train[..], &first].concat());
    // One label of the two occurs, and the name says another format.
    let tuesday = files.write("tuesday", "5\tgood again\n");
    let second = ["--model", "logistic", "--data", &tuesday, "--init", &model];
    command_line::run("train", &[&train[..], &second].concat());
    let shown = command_line::run("inspect", &[&model]);
    for note in ["hash_bits: 9\n", "ngrams: 2\n", "positive: 5\n", "negative: 2\n"] {
        assert!(shown.contains(note), "{note}: {shown}");
    }
    for (more, message) in [
        (&["--model", "linear", "--data", &tuesday][..], "` is of --model logistic, not linear"),
        (&["--model", "logistic", "--data", &tuesday, "--hash-bits", "8"], "trained with `--hash"),
        (&["--model", "logistic", "--data", &tuesday, "--features", "8"], "cannot be used with"),
    ] {
        let errors = refused("train", &[&train[..], &["--init", &model], more].concat());
        assert!(errors.contains(message), "{errors}");
    }
    let ratings = files.write("ratings", "a,x,1\nb,y,2\n");
    let mf = ["--model", "mf", "--format", "ratings", "--save", &model, "--data"];
    command_line::run("train", &[&mf[..], &[&ratings]].concat());
    let later = files.write("later", "b,x,2\n");
    command_line::run("train", &[&mf[..], &[&later, "--init", &model]].concat());
    let predict = ["--model", &model[..], "--data", &ratings];
    assert_eq!(command_line::run("predict", &predict).lines().count(), 2);
}

#[test]
fn a_share_of_the_data_is_held_out_to_test_on() {
    let files = Files::new("holdout");
    let data = files.write("rows.svm", &day(0));
    let train = ["--model", "logistic", "--data", &data, "--json"];
    let held = ["--holdout", "0.25", "--patience", "3", "--epochs", "4"];
    let output = command_line::output("train", &[&train[..], &held].concat());
    let told = String::from_utf8(output.stderr).unwrap();
    assert!(told.contains("held out: 10 of 40 samples\n"), "{told}");
    let line = String::from_utf8(output.stdout).unwrap();
    assert!(line.contains("\"test_auc\":"), "{line}");
    for (more, message) in [
        (&["--holdout", "1"][..], "above 0 and below 1"),
        (&["--holdout", "0.1", "--test", &data], "cannot be used with"),
        (&["--holdout", "0.001"], "leaves none to train or to test on"),
        (&["--patience", "3"], "--test"),
    ] {
        let errors = refused("train", &[&train[..], more].concat());
        assert!(errors.contains(message), "{more:?}: {errors}");
    }
}

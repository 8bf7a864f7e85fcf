//! Users and items that a model of ratings does not know.

use crate::command_line::{self, Files, refused};
use std::collections::HashMap;

/// The biases of a model by its JSON: `mean`, `of_user` and `of_item`.
fn weights(model: &str) -> HashMap<(String, usize), f64> {
    let csv = command_line::run("inspect", &[model, "--csv"]);
    let weight = |line: &str| {
        let fields: Vec<&str> = line.split(',').collect();
        let row = fields[1].parse().unwrap();
        ((fields[0].to_owned(), row), fields.last().unwrap().parse().unwrap())
    };
    csv.lines().skip(1).filter(|line| !line.starts_with(['p', 'q'])).map(weight).collect()
}

#[test]
fn unknown_users_and_items_are_scored_by_the_mean_and_the_biases_that_are_known() {
    let files = Files::new("unknown-ids");
    let text = "u,i,5\nu,j,4\nv,i,2\nv,j,1\n";
    let (data, model) = (files.write("ratings", text), files.path("model"));
    let train = ["--model", "mf", "--format", "ratings", "--data", &data, "--save", &model];
    command_line::run("train", &[&train[..], &["--factors", "2", "--lr", "0.05"]].concat());
    let weights = weights(&model);
    let weight = |name: &str, row| weights.get(&(name.to_owned(), row)).copied().unwrap_or(0.0);
    let later = files.write("later", "u,new,3\nnew,j,3\nnewer,newest,3\nv,i,2\n");
    let predict = ["--model", &model[..], "--data", &later];
    let output = command_line::output("predict", &predict);
    let told = String::from_utf8(output.stderr).unwrap();
    let expected =
        "unknown to the model: the users of 2 samples, the items of 2: scored by the mean";
    assert!(told.contains(expected) && told.matches("unknown to").count() == 1, "{told}");
    let scores: Vec<f64> = String::from_utf8(output.stdout)
        .unwrap()
        .lines()
        .map(|line| line.parse().unwrap())
        .collect();
    let mean = weight("mean", 0);
    let by_hand = [mean + weight("of_user", 0), mean + weight("of_item", 1), mean];
    for (score, expected) in scores.iter().zip(by_hand) {
        assert!((score - expected).abs() < 1e-5, "{scores:?} {by_hand:?}");
    }
    // Those that are known are scored as before.
    let known = files.write("known", "v,i,2\n");
    let alone = command_line::run("predict", &["--model", &model, "--data", &known]);
    assert_eq!(alone.trim().parse::<f64>().unwrap(), scores[3]);

    let evaluate = ["--model", &model[..], "--data", &later];
    let measured = command_line::run("evaluate", &evaluate);
    assert!(measured.contains("samples    4\n") || measured.contains("samples  4\n"), "{measured}");
    // Recommendations are for users that are known.
    let ranked = command_line::run("evaluate", &[&evaluate[..], &["--top-k", "1"]].concat());
    assert!(ranked.contains("precision@1"), "{ranked}");
    for subcommand in ["predict", "evaluate"] {
        let errors = refused(subcommand, &[&evaluate[..], &["--unknown", "refuse"]].concat());
        let expected = "later:1:3: the item `new` is not among the 2 that are known: --unknown";
        assert!(errors.contains(expected), "{errors}");
    }
    // A model that learns has no rows for them.
    let errors = refused("train", &[&train[..], &["--test", &later]].concat());
    assert!(errors.contains("the training data has no such id; --skip leaves"), "{errors}");
    let errors = refused("train", &[&train[..], &["--unknown", "ignore"]].concat());
    assert!(errors.contains("--unknown: the model knows the users and items of its"), "{errors}");
}

//! CSV by its header: the schema is inferred, printed, kept, edited and read.

use crate::command_line::{self, Files, refused};

/// People who buy from 45 on, in shops that say nothing.
fn people(separator: char) -> String {
    let line = |row: usize| {
        let (age, shop) = (18 + row * 37 % 60, ["Lido", "Rialto", "\"San Marco\""][row % 3]);
        let bought = u8::from(age >= 45);
        [&format!("p{row}"), &bought.to_string(), &age.to_string(), shop, ""]
            .join(&separator.to_string())
            + "\n"
    };
    let header = ["name", "bought", "age", "shop", "remark"].join(&separator.to_string()) + "\n";
    header + &(0..300).map(line).collect::<String>()
}

#[test]
fn a_label_named_by_the_header_is_enough() {
    let files = Files::new("tables");
    let (data, schema) = (files.write("people.csv", &people(',')), files.path("schema"));
    let model = files.path("model");
    let train = ["--model", "logistic", "--data", &data, "--save", &model];
    let first = ["--label", "bought", "--schema-out", &schema];
    let output = command_line::output("train", &[&train[..], &first].concat());
    let told = String::from_utf8(output.stderr).unwrap();
    let inferred = "name:categorical,bought:label,age:numeric,shop:categorical,remark:ignore";
    assert!(told.contains(&format!("people.csv: schema {inferred}\n")), "{told}");
    assert!(told.contains("`age` less "), "{told}");
    assert_eq!(std::fs::read_to_string(&schema).unwrap(), format!("{inferred}\n"));

    // Edited: a name is no feature.
    std::fs::write(&schema, inferred.replace("name:categorical", "name:ignore")).unwrap();
    let second = ["--schema", &schema, "--header"];
    command_line::run("train", &[&train[..], &second].concat());
    let evaluate = ["--model", &model[..], "--data", &data];
    let found = command_line::run("evaluate", &[&evaluate[..], &["--json"]].concat());
    let found: serde_json::Value = serde_json::from_str(&found).unwrap();
    assert!(found["auc"].as_f64().unwrap() > 0.99, "{found}");
    assert_eq!(command_line::run("predict", &evaluate).lines().count(), 300);
    let bare = files.write("bare.csv", "name,age,shop,remark\np1,60,Lido,\np2,20,Lido,\n");
    let bare = ["--model", &model, "--data", &bare, "--no-labels"];
    let scores = command_line::run("predict", &bare);
    let scores: Vec<f64> = scores.lines().map(|line| line.parse().unwrap()).collect();
    assert!(scores[0] > 0.5 && scores[1] < 0.5, "{scores:?}");

    let errors = refused("train", &[&train[..], &["--label", "sold"]].concat());
    assert!(
        errors.contains("the header has no column `sold`: it has name, bought, age"),
        "{errors}"
    );
    let errors = refused("train", &train);
    assert!(errors.contains("say which column is the label, `--label NAME`"), "{errors}");
    if cfg!(unix) {
        let pipe = ["--model", "logistic", "--data", "-", "--format", "csv", "--label", "bought"];
        assert!(refused("train", &pipe).contains("a pipe is read once"));
    }
    let svm = files.write("rows.svm", "1 1:1\n");
    let errors = refused("train", &["--model", "linear", "--data", &svm, "--label", "y"]);
    assert!(errors.contains("--label is for csv"), "{errors}");
}

#[test]
fn separators_are_said_once() {
    let files = Files::new("separators");
    let model = files.path("model");
    for (name, separator) in [(";", ';'), ("tab", '\t')] {
        let data = files.write("people", &people(separator));
        let train = ["--model", "logistic", "--data", &data, "--save", &model];
        let csv = ["--format", "csv", "--label", "bought", "--separator", name];
        command_line::run("train", &[&train[..], &csv].concat());
        let predict = ["--model", &model[..], "--data", &data];
        assert_eq!(command_line::run("predict", &predict).lines().count(), 300, "{name}");
    }
    let train = ["--model", "logistic", "--data", &files.path("people"), "--format", "csv"];
    let errors = refused("train", &[&train[..], &["--separator", "ab"]].concat());
    assert!(errors.contains("one ASCII character, or `tab`"), "{errors}");
}

#[test]
fn numbers_are_scaled_as_the_command_line_says() {
    let files = Files::new("scaling");
    let (data, model) = (files.write("people.csv", &people(',')), files.path("model"));
    let train = ["--model", "logistic", "--data", &data, "--label", "bought", "--save", &model];
    let shown = |scaling: &str| {
        command_line::run("train", &[&train[..], &["--scaling", scaling]].concat());
        assert_eq!(
            command_line::run("predict", &["--model", &model, "--data", &data]).lines().count(),
            300
        );
        command_line::run("inspect", &[&model])
    };
    assert!(shown("standard").contains("\nscales: age:4"));
    assert!(shown("deviation").contains("\nscales: age:0:1"));
    assert!(shown("buckets").contains(",age:buckets,"));
    assert!(!shown("none").contains("\nscales: "));
    command_line::run("train", &train);
    let predict = ["--model", &model, "--data", &data, "--scaling", "none"];
    assert!(refused("predict", &predict).contains("--scaling: the model's file says how"));
}

#[test]
fn lists_missing_words_and_quoted_line_ends_are_read() {
    let files = Files::new("lists");
    let line = |i: usize| {
        let tags = ["a|b", "b", "", "a"][i % 4];
        let age = if i.is_multiple_of(5) { "NA".to_owned() } else { i.to_string() };
        format!("{},\"{tags}\",\"two\nlines\",{age}\n", u8::from(tags.contains('a')))
    };
    let text = "y,tags,note,age\n".to_owned() + &(0..200).map(line).collect::<String>();
    let (data, model) = (files.write("rows.csv", &text), files.path("model"));
    let train = ["--model", "logistic", "--data", &data, "--header", "--save", &model];
    let schema = ["--schema", "y:label,tags:list,note:categorical,age:numeric"];
    let errors = refused("train", &[&train[..], &schema].concat());
    assert!(errors.contains("rows.csv:3:"), "{errors}");
    command_line::run("train", &[&train[..], &schema, &["--na", "NA"]].concat());
    let evaluate = ["--model", &model[..], "--data", &data];
    let found = command_line::run("evaluate", &[&evaluate[..], &["--json"]].concat());
    let found: serde_json::Value = serde_json::from_str(&found).unwrap();
    assert_eq!((&found["samples"], &found["auc"]), (&200.into(), &1.0.into()));
    assert_eq!(command_line::run("predict", &evaluate).lines().count(), 200);
    assert!(command_line::run("inspect", &[&model]).contains("\nna: NA\n"));
}

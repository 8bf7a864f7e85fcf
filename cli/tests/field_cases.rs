//! Files that were misread in silence, numbers that were wrong in silence: small inputs whose right
//! value is known.

use crate::command_line::{self, Files, refused};
use serde_json::Value;

/// What `nnz train` says on the error stream; it must succeed.
fn told(arguments: &[&str]) -> String {
    let output = command_line::output("train", arguments);
    let told = String::from_utf8(output.stderr).unwrap();
    assert!(output.status.success(), "{arguments:?}: {told}");
    told
}

/// The last line of `nnz train --json`.
fn last_line(arguments: &[&str]) -> Value {
    let lines = command_line::run("train", &[arguments, &["--json"]].concat());
    serde_json::from_str(lines.lines().last().unwrap()).unwrap()
}

fn numbers(text: &str) -> Vec<f64> {
    text.lines().map(|line| line.parse().unwrap()).collect()
}

#[test]
fn d1_numbers_in_a_txt_file_are_not_taken_for_words() {
    let files = Files::new("d1");
    for text in ["1\t1:1 3:1\n0\t2:1\n", "1\t0.5\t3\n0\t0.1\t7\n"] {
        let data = files.write("a.txt", text);
        let train = ["--model", "logistic", "--data", &data];
        let errors = refused("train", &train);
        assert!(errors.contains("a.txt:1:3: ") && errors.contains("of another format"), "{errors}");
        assert!(errors.contains("is read as words, by its ending; say another --format"));
        // Said, it is words.
        assert!(
            told(&[&train[..], &["--format", "words"]].concat()).contains("words, by --format")
        );
    }
}

#[test]
fn d3_predict_refuses_to_skip() {
    let files = Files::new("d3");
    let (data, model) = (files.write("rows.svm", "1 1:1\n0 2:1\n"), files.path("model"));
    command_line::run("train", &["--model", "logistic", "--data", &data, "--save", &model]);
    let bad = files.write("bad.svm", "1 1:1\n0 2:x\n1 1:1\n");
    let errors = refused("predict", &["--model", &model, "--data", &bad, "--skip", "10"]);
    assert!(errors.contains("--skip would leave lines out"), "{errors}");
    assert!(refused("predict", &["--model", &model, "--data", &bad]).contains("bad.svm:2:5: "));
}

/// A blank line and a comment are no samples, in any format, and have no line.
#[test]
fn d3_predict_writes_a_line_for_each_sample_and_none_for_a_blank_line() {
    let files = Files::new("d3-blank");
    let model = files.path("model");
    let predicted = |arguments: &[&str]| {
        let scores = command_line::run("predict", arguments);
        scores.lines().count()
    };
    for (name, train, rows, n) in [
        ("rows.svm", "1 1:1\n0 2:1\n", "\n1 1:1\n\n# none\n  \n0 2:1\n1 1:1\n\n", 3),
        ("rows.txt", "1\ta b\n0\tc\n", "1\ta\n\n0\tc d\n", 2),
        ("rows.ffm", "1 0:1:1\n0 1:2:1\n", "1 0:1:1\n\n\n0 1:2:1\n", 2),
    ] {
        let data = files.write(name, train);
        command_line::run("train", &["--model", "logistic", "--data", &data, "--save", &model]);
        let data = files.write(name, rows);
        let predict = ["--model", &model, "--data", &data];
        assert_eq!(predicted(&predict), n, "{name}");
        assert_eq!(predicted(&[&predict[..], &["--stream", "1048576"]].concat()), n, "{name}");
    }
    // Of texts alone each line is one.
    let data = files.write("rows.txt", "1\ta b\n0\tc\n");
    command_line::run("train", &["--model", "logistic", "--data", &data, "--save", &model]);
    let data = files.write("rows.txt", "a\n\nc d\n");
    assert_eq!(predicted(&["--model", &model, "--data", &data, "--no-labels"]), 3);
    let help = command_line::run("predict", &["--help"]);
    assert!(help.contains("Blank lines and comments are no samples"), "{help}");
}

#[test]
fn d4_a_header_is_not_scored() {
    let files = Files::new("d4");
    let model = files.path("model");
    let data = files.write("train.csv", "y,town\n1,Rome\n0,Oslo\n");
    let csv = ["--model", "logistic", "--data", &data, "--schema", "y:label,town:categorical"];
    assert!(refused("train", &csv).contains("train.csv:1:1: the first line is a header"));
    command_line::run("train", &[&csv[..], &["--header", "--save", &model]].concat());
    let (titled, bare) =
        (files.write("titled.csv", "town\nRome\nOslo\n"), files.write("bare.csv", "Rome\nOslo\n"));
    let model = &model[..];
    let predict = |data, more: &[&'static str]| {
        [&["--model", model, "--data", data, "--no-labels"], more].concat()
    };
    let scores = command_line::run("predict", &predict(&titled, &[]));
    assert_eq!(scores.lines().count(), 2);
    assert_eq!(command_line::run("predict", &predict(&bare, &["--no-header"])), scores);
    assert!(refused("predict", &predict(&bare, &[])).contains("the header has `Rome`"));
}

#[test]
fn d5_a_softmax_model_keeps_the_labels_of_its_classes() {
    let files = Files::new("d5");
    let (data, model) = (files.write("rows.svm", "1 1:1\n5 3:1\n2 2:1\n"), files.path("model"));
    let train = ["--model", "softmax", "--data", &data, "--save", &model, "--epochs", "30"];
    assert!(told(&train).contains("classes 1, 2, 5"));
    let predict = ["--model", &model, "--data", &data];
    let labels = command_line::run("predict", &[&predict[..], &["--print-label"]].concat());
    assert_eq!(labels, "1\n5\n2\n");
    let (file, by_file) = (files.path("labels"), ["--print-label", "--output"]);
    command_line::run("predict", &[&predict[..], &by_file, &[&file]].concat());
    assert_eq!(files.bytes("labels"), labels.as_bytes());
    assert_eq!(
        command_line::run("predict", &predict).lines().next().unwrap().split('\t').count(),
        3
    );
    let shown = command_line::run("inspect", &[&model]);
    assert!(shown.contains("classes: 1, 2, 5\n") && shown.contains(", class 5]"), "{shown}");
}

#[test]
fn d6_features_are_shown_by_the_numbers_of_the_file() {
    let files = Files::new("d6");
    let model = files.path("model");
    for (text, features) in [("1 1:1\n0 3:1\n", [1, 3]), ("1 0:1\n0 3:1\n", [0, 3])] {
        let data = files.write("rows.svm", text);
        command_line::run("train", &["--model", "logistic", "--data", &data, "--save", &model]);
        let shown = command_line::run("inspect", &[&model, "--top", "2"]);
        for feature in features {
            assert!(shown.contains(&format!("  [{feature}] ")), "{feature}: {shown}");
        }
    }
}

#[test]
fn d7_and_d9_what_would_be_read_in_part_is_refused() {
    let files = Files::new("d7");
    let data = files.write("cr.csv", "1,10,5,100\r2,11,3,101\r");
    let mf = ["--model", "mf", "--format", "ratings", "--data"];
    assert!(refused("train", &[&mf[..], &[&data]].concat()).contains("carriage return (CR)"));
    let data = files.write("index.csv", ",User_id,Item_id,Score\n0,303,103,0\n");
    let errors = refused("train", &[&mf[..], &[&data]].concat());
    assert!(errors.contains("4 titles, of which number 1 is nothing"), "{errors}");
    let data = files.write("labels.svm", "1 1:1\n0 2:1\n-1 3:1\n");
    let errors = refused("train", &["--model", "logistic", "--data", &data]);
    assert!(errors.contains("both the negative class"), "D13: {errors}");
    told(&["--model", "linear", "--data", &data]);
}

/// N10: the RMSE of predictions as they are written is that of the loss; what they are cut to is
/// said, and stands in the model's file.
#[test]
fn n10_predictions_are_cut_only_when_asked() {
    let files = Files::new("n10");
    let model = files.path("model");
    let rating = |user: usize, item: usize| [2.0, 4.0, 6.0, 8.0, 10.0][(user * 2 + item) % 5];
    let pairs = (0..40).map(|pair| (pair % 8, pair / 8));
    let ratings: Vec<f64> = pairs.clone().map(|(user, item)| rating(user, item)).collect();
    let text: String = pairs
        .zip(&ratings)
        .map(|((user, item), rating)| format!("u{user},i{item},{rating}\n"))
        .collect();
    let data = files.write("ratings", &text);
    let train = [
        &["--model", "mf", "--format", "ratings", "--data", &data, "--test", &data][..],
        &["--epochs", "60", "--learning-rate", "0.05", "--save", &model],
    ]
    .concat();
    let predict = ["--model", &model[..], "--data", &data];
    let rmse = |scores: &[f64]| {
        let squares = scores.iter().zip(&ratings).map(|(score, rating)| (score - rating).powi(2));
        (squares.sum::<f64>() / ratings.len() as f64).sqrt()
    };
    let line = last_line(&train);
    let scores = numbers(&command_line::run("predict", &predict));
    assert!(scores.iter().any(|score| *score > 5.0), "{scores:?}");
    let of_loss = (2.0 * line["test_loss"].as_f64().unwrap()).sqrt();
    assert!((rmse(&scores) - of_loss).abs() < 1e-4, "{of_loss} {line}");
    assert!((line["test_rmse"].as_f64().unwrap() - of_loss).abs() < 1e-4);

    for (clip, low, high) in [("train", 2.0, 10.0), ("3,7.5", 3.0, 7.5)] {
        let line = last_line(&[&train[..], &["--clip-predictions", clip]].concat());
        let scores = numbers(&command_line::run("predict", &predict));
        assert!(scores.iter().all(|score| (low..=high).contains(score)), "{scores:?}");
        assert!((line["test_rmse"].as_f64().unwrap() - rmse(&scores)).abs() < 1e-4);
        let shown = command_line::run("inspect", &[&model]);
        assert!(shown.contains(&format!("clip_predictions: {low},{high}\n")), "{shown}");
    }
    for (model, clip, message) in [
        (
            "logistic",
            "train",
            "--clip-predictions is for linear, huber, quantile, poisson, matrix-factorization",
        ),
        ("mf", "5,1", "5 is above 1"),
        ("mf", "all", "it is `train`, or `LOW,HIGH`"),
    ] {
        let errors = refused(
            "train",
            &["--model", model, "--data", &data, "--format", "ratings", "--clip-predictions", clip],
        );
        assert!(errors.contains(message), "{errors}");
    }
}

/// 4000 people of age 18 to 80 and income 15,000 to 120,000, in towns that say nothing: P(1) =
/// σ((age − 45)/10 + (income − 50,000)/20,000).
fn people() -> String {
    let mut state = 1u64;
    let mut uniform = || {
        // Knuth's MMIX generator.
        state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (state >> 11) as f64 / (1u64 << 53) as f64
    };
    let mut text = String::new();
    for _ in 0..4000 {
        let (age, income) = (18.0 + 62.0 * uniform(), 15e3 + 105e3 * uniform());
        let score: f64 = (age - 45.0) / 10.0 + (income - 5e4) / 2e4;
        let label = u8::from(uniform() < 1.0 / (1.0 + (-score).exp()));
        let town = ["Rome", "Oslo", "Bern"][(3.0 * uniform()) as usize];
        text += &format!("{label},{age:.0},{income:.0},{town}\n");
    }
    text
}

#[test]
fn d17_numbers_of_any_size_are_learnt_from() {
    let files = Files::new("d17");
    let data = files.write("people.csv", &people());
    let model = files.path("model");
    let schema = "bought:label,age:numeric,income:numeric,town:categorical";
    let train = ["--model", "logistic", "--data", &data, "--test", &data, "--schema", schema];
    let train = [&train[..], &["--save", &model, "--epochs", "3"]].concat();
    let line = last_line(&train);
    let auc = line["test_auc"].as_f64().unwrap();
    assert!(auc > 0.85, "{line}");
    let saying = told(&train);
    assert!(saying.contains("`age` less ") && !saying.contains("warning"), "{saying}");
    let shown = command_line::run("inspect", &[&model]);
    assert!(shown.contains("scales: age:4"), "{shown}");
    // `predict` scales by the same numbers, of a file of one line as well.
    let scores = command_line::run("predict", &["--model", &model, "--data", &data]);
    let one = files.write("one.csv", people().split_inclusive('\n').next().unwrap());
    let score = command_line::run("predict", &["--model", &model, "--data", &one]);
    assert_eq!(Some(score.trim_end()), scores.lines().next());

    // As they are, they are no help, which is said; of a stream as of data in memory.
    let warning = |more: &[&str]| {
        let saying = told(&[&train[..], &["--no-scaling"], more].concat());
        assert_eq!(saying.matches("warning").count(), 1, "{saying}");
        let (_, warning) = saying.split_once("warning: the progressive loss of ").unwrap();
        assert!(warning.contains("of the best constant: try another --learning-rate"), "{saying}");
        let (_, constant) = warning.split_once(" is above ").unwrap();
        constant.split_once(',').unwrap().0.to_owned()
    };
    assert_eq!(warning(&[]), warning(&["--stream", "1048576"]));
}

/// The losses of the best constants, of data in memory and of a stream: the labels of a stream are
/// known after its first epoch, which is the only one here.
#[test]
fn a_loss_above_that_of_the_best_constant_is_told_of_streams_too() {
    let files = Files::new("constant");
    for (model, labels, constant) in [
        ("linear", ["1", "3", "1", "3"], "0.500000"),
        ("logistic", ["1", "-1", "-1", "-1"], "0.562335"),
        ("poisson", ["0", "0", "0", "8"], "0.613706"),
        ("softmax", ["5", "1", "2", "2"], "1.039721"),
    ] {
        let lines = (0..1000).map(|i| format!("{} 0:1 {}:1\n", labels[i % 4], 1 + i % 7));
        let data = files.write("rows.svm", &lines.collect::<String>());
        let train = ["--model", model, "--data", &data, "--epochs", "1", "--learning-rate", "1e-9"];
        let features = ["--features", "8", "--index-base", "zero"];
        for more in [&[][..], &["--stream", "1048576"]] {
            let said = told(&[&train[..], &features, more].concat());
            assert!(said.contains(&format!(", is above {constant}, that of")), "{model}: {said}");
        }
    }
}

/// The range of the labels of a stream is known after its first epoch; it is that of the same data
/// in memory, in what is printed and in the files of models.
#[test]
fn n10_predictions_of_a_model_of_a_stream_are_cut_to_the_range_of_its_labels() {
    let files = Files::new("n10-stream");
    let text: String = (0..400).map(|i| format!("{},{}\n", 2 + i % 3, i % 5)).collect();
    let data = files.write("rows.csv", &text);
    let model = files.path("model");
    let train = [
        &["--model", "linear", "--data", &data, "--test", &data, "--learning-rate", "0.9"][..],
        &["--schema", "y:label,c:categorical", "--clip-predictions", "train", "--no-shuffle"],
        &["--save", &model, "--json"],
    ]
    .concat();
    let run = |more: &[&str]| {
        let lines = command_line::run("train", &[&train[..], more].concat());
        let shown = command_line::run("inspect", &[&model]);
        assert!(shown.contains("clip_predictions: 2,4\n"), "{shown}");
        files.forget("model");
        lines
    };
    let rmse = |lines: &str| {
        let line: Value = serde_json::from_str(lines.lines().last().unwrap()).unwrap();
        line["test_rmse"].as_f64().unwrap()
    };
    let stream = ["--stream", "1048576"];
    let epochs = ["--epochs", "2"];
    let of_stream = rmse(&run(&[&epochs[..], &stream].concat()));
    assert_eq!(of_stream, rmse(&run(&epochs)));
    // The best of the epochs, and a run that has no epoch left.
    run(&[&["--epochs", "3", "--patience", "2"], &stream[..]].concat());
    let checkpoint = files.path("run");
    let kept = ["--epochs", "1", "--checkpoint", &checkpoint];
    run(&[&kept[..], &stream].concat());
    run(&[&kept[..], &stream, &["--resume"]].concat());
}

#[test]
fn what_a_file_was_read_as_is_told() {
    let files = Files::new("told");
    let words = files.write("titanic.txt", "1\ta b\n0\tc\n1\td\n");
    let svm = files.write("rows", "1 1:1\n0 2:1\n");
    let many: String = (0..20).map(|row| format!("{row} 0:1\n")).collect();
    let many = files.write("many.svm", &many);
    let ratings = files.write("ratings.csv", "a,x,1\nb,y,2\nc,x,4\n");
    for (arguments, expected) in [
        (
            &["--model", "logistic", "--data", &words][..],
            "titanic.txt: words, by its ending (guessed); 3 samples; 2^20 columns; labels 0, 1\n",
        ),
        (
            &["--model", "logistic", "--data", &svm, "--test", &svm],
            "rows: libsvm, since its ending is of no other format (guessed); 2 samples; 2 columns; counted from one, as in the training data; labels 0, 1\n",
        ),
        (
            &["--model", "linear", "--format", "libsvm", "--data", &many],
            "many.svm: libsvm, by --format; 20 samples; 1 column, as many as occur (guessed); counted from zero (guessed); labels 0 to 19\n",
        ),
        (
            &["--model", "mf", "--format", "ratings", "--data", &ratings],
            "ratings.csv: ratings, by --format; 3 samples; 3 users; 2 items; labels `rating` 1, 2, 4\n",
        ),
        (
            &["--model", "logistic", "--data", &words, "--stream", "1048576"],
            "titanic.txt: words, by its ending (guessed); samples streamed; 2^20 columns\n",
        ),
        (
            &["--model", "logistic", "--data", &words, "--stream", "1048576"],
            "titanic.txt: 3 samples; labels 0, 1\n",
        ),
        (
            &["--model", "linear", "--data", &many, "--stream", "1048576"],
            "many.svm: libsvm, since its ending is of no other format (guessed); 20 samples, streamed; 1 column, as many as occur (guessed); counted from zero (guessed); labels 0 to 19\n",
        ),
    ] {
        let told = told(&[arguments, &["--epochs", "1"]].concat());
        assert!(told.contains(expected), "{told}");
    }
}

#[test]
fn n7_a_loss_that_is_not_finite_is_an_error_and_nothing_is_saved() {
    let files = Files::new("n7");
    let data = files.write("rows.svm", "1 1:1e30\n0 1:1e30\n1 1:1e30\n");
    let model = files.path("model");
    let train = ["--model", "logistic", "--data", &data, "--save", &model, "--epochs", "1"];
    for more in [&["--objective"][..], &["--test", &data]] {
        let errors = refused("train", &[&train[..], more].concat());
        assert!(!std::path::Path::new(&model).exists(), "{errors}");
    }
}

/// What can be known before anything is read is refused then.
#[test]
fn what_cannot_be_saved_is_refused_before_training() {
    let files = Files::new("unsavable");
    let data = files.write("rows.svm", "1 1:1\n0 2:1\n");
    let (new, model) = (files.path("new/"), files.path("model"));
    let train = ["--model", "logistic", "--data", &data, "--save"];
    let errors = refused("train", &[&train[..], &[&new]].concat());
    assert!(errors.contains("is a folder: name a file in it"), "{errors}");
    command_line::run("train", &[&train[..], &[&model]].concat());
    let predict = ["--model", &model, "--data", &data, "--output"];
    assert!(refused("predict", &[&predict[..], &[&new]].concat()).contains("is a folder"));
    if cfg!(target_os = "linux") {
        let pipe = files.path("pipe");
        let made = std::process::Command::new("mkfifo").arg(&pipe).status();
        if made.is_ok_and(|status| status.success()) {
            let errors = refused("train", &[&train[..], &[&pipe]].concat());
            assert!(errors.contains("is a pipe that nothing reads"), "{errors}");
            assert!(
                refused("predict", &[&predict[..], &[&pipe]].concat()).contains("nothing reads")
            );
        }
        let full = || std::fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
        for (subcommand, arguments) in [
            ("train", &train[..4]),
            ("predict", &predict[..4]),
            ("inspect", &[&model[..]]),
            ("generate", &["2", "9", "1", &files.path("made")]),
        ] {
            let mut command = command_line::command(subcommand);
            let output = command.args(arguments).stdout(full()).output().unwrap();
            let errors = String::from_utf8(output.stderr).unwrap();
            assert!(!output.status.success(), "{subcommand}");
            assert!(errors.contains("the standard output"), "{subcommand}: {errors}");
        }
    }
}

/// What a file of others says does not write to the terminal of whoever looks at it.
#[test]
fn notes_are_shown_with_their_escapes_escaped() {
    let files = Files::new("escapes");
    let data = files.write("rows.csv", "1,a\n0,b\n");
    let model = files.path("model");
    let schema = "y:label,to\u{1b}[31mwn:categorical";
    command_line::run(
        "train",
        &["--model", "logistic", "--data", &data, "--schema", schema, "--save", &model],
    );
    let names = files.write("names", "\u{1b}[2Jred\n");
    let shown = command_line::run("inspect", &[&model, "--names", &names]);
    assert!(!shown.contains('\u{1b}') && shown.contains("to\\u{1b}[31mwn"), "{shown}");
}

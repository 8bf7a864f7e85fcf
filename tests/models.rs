//! The models of the examples on real data, held to results that were computed elsewhere (`README.md` and `reference.json` in the
//! folder of the data; where another source is named, by it).
//!
//! The folder is `NNZ_DATA` (default `../shared/data` beside the repository); without it every test says `SKIPPED`, or
//! fails where `NNZ_REQUIRE_DATA=1`.

// What cannot be read fails the test; of an example, `main` is not called, nor what all of them call there.
#![allow(clippy::unwrap_used, clippy::duplicate_mod, dead_code, unreachable_pub)]
#![cfg(feature = "gzip")]

mod command_line;
mod folder;

#[path = "../examples/factorization_machine.rs"]
mod factorization_machine;
#[path = "../examples/field_aware.rs"]
mod field_aware;
#[path = "../examples/linear_regression.rs"]
mod linear_regression;
#[path = "../examples/logistic_regression.rs"]
mod logistic_regression;
#[path = "../examples/matrix_factorization.rs"]
mod matrix_factorization;
#[path = "../examples/multi_task.rs"]
mod multi_task;
#[path = "../examples/poisson_regression.rs"]
mod poisson_regression;
#[path = "../examples/softmax_regression.rs"]
mod softmax_regression;
#[path = "../examples/wide_deep.rs"]
mod wide_deep;

use folder::{find, say};
use logistic_regression::LogisticRegression;
use nnz::data::{BatchOptions, Batches, DataSource, LibFfm, TextReader};
use nnz::model::Model;
use nnz::prelude::*;

fn data(file: &str) -> Option<String> {
    Some(find("NNZ_DATA", "shared/data", file)?.display().to_string())
}

fn both(train: &str, test: &str) -> Option<(String, String)> {
    data(train).zip(data(test))
}

/// A loss or an error is not larger than it should be by more than `slack`.
#[track_caller]
fn at_most(what: &str, found: f64, reference: f64, slack: f64) {
    say(&format!("models: {what}: {found:.5}, reference {reference}"));
    assert!(found <= reference + slack, "{what} is {found}, the reference {reference}");
}

/// A score that is the better the larger.
#[track_caller]
fn at_least(what: &str, found: f64, reference: f64, slack: f64) {
    say(&format!("models: {what}: {found:.5}, reference {reference}"));
    assert!(found >= reference - slack, "{what} is {found}, the reference {reference}");
}

/// Model and main code: the lines that are neither empty, nor comments, nor imports.
#[test]
fn examples_are_short() {
    for name in [
        "linear_regression",
        "logistic_regression",
        "softmax_regression",
        "poisson_regression",
        "factorization_machine",
        "matrix_factorization",
        "wide_deep",
        "multi_task",
    ] {
        let path = format!("{}/examples/{name}.rs", env!("CARGO_MANIFEST_DIR"));
        let text = std::fs::read_to_string(path).unwrap();
        let lines = text.lines().map(str::trim).filter(|line| {
            let others = ["//", "use ", "mod ", "#[path"];
            !line.is_empty() && !others.iter().any(|start| line.starts_with(start))
        });
        let n_lines = lines.count();
        assert!((10..60).contains(&n_lines), "{name}: {n_lines} lines");
    }
}

#[test]
fn least_squares_on_reviews() {
    let Some((train, test)) = both("imdb_rating.train.gz", "imdb_rating.test.gz") else { return };
    let score = linear_regression::fit(&train, &test).unwrap();
    // Ridge regression, lambda = 1e-4.
    at_most("linear: RMSE of stars", score.metric("rmse").unwrap(), 2.178258, 0.01);
}

#[test]
fn logistic_regression_on_the_census() {
    let Some((train, test)) = both("a9a.gz", "a9a.t.gz") else { return };
    let score = logistic_regression::fit(&train, &test).unwrap();
    // The optimum for lambda = 1e-5.
    at_most("logistic: log loss", score.loss, 0.324318, 0.002);
    at_least("logistic: accuracy", score.metric("accuracy").unwrap(), 0.84982, 0.003);
    at_least("logistic: AUC", score.metric("auc").unwrap(), 0.902042, 0.001);
}

#[test]
fn softmax_regression_on_splice_junctions() {
    let Some((train, test)) = both("dna.scale", "dna.scale.t") else { return };
    let score = softmax_regression::fit(&train, &test).unwrap();
    // The optimum for lambda = 1e-3.
    at_most("softmax: cross entropy", score.loss, 0.160687, 0.01);
    at_least("softmax: accuracy", score.metric("accuracy").unwrap(), 0.94857, 0.005);
}

#[test]
fn poisson_regression_on_rings() {
    let Some(file) = data("abalone_scale") else { return };
    let score = poisson_regression::fit(&file, &file).unwrap();
    // scikit-learn 1.9.1: PoissonRegressor(alpha=0, solver="newton-cholesky", tol=1e-12), on the file it was fitted to.
    at_most("poisson: loss", score.loss, -13.147291, 0.005);
    at_most("poisson: RMSE of rings", score.metric("rmse").unwrap(), 2.252679, 0.02);
}

#[test]
fn a_factorization_machine_on_clicks() {
    let Some((train, test)) = both("criteo_tiny.train.ffm.gz", "criteo_tiny.test.ffm.gz") else {
        return;
    };
    let score = factorization_machine::fit(&train, &test, 429_705).unwrap();
    // A factorization machine of 4 factors by L-BFGS, the best of its penalties.
    at_most("machine: log loss", score.loss, 0.5304, 0.0);
    at_least("machine: AUC", score.metric("auc").unwrap(), 0.7198, 0.0);
}

#[test]
fn a_field_aware_machine_on_clicks() {
    let Some((train, test)) = both("criteo_tiny.train.ffm.gz", "criteo_tiny.test.ffm.gz") else {
        return;
    };
    let score = field_aware::fit(&train, &test, 429_705).unwrap();
    // What knows fields is no worse than the best factorization machine that does not.
    at_most("field-aware: log loss", score.loss, 0.5304, 0.0);
    at_least("field-aware: AUC", score.metric("auc").unwrap(), 0.7198, 0.0);
}

/// Of the interaction that its example declares, by differences.
#[test]
fn the_gradient_of_a_field_aware_machine() {
    let reader = TextReader::new(LibFfm::new().n_features(6));
    let text = b"1 0:0:1 1:2:0.5 2:5:-1.5\n0 0:1:2 0:3:1 3:5:0.5\n1 4:4:1\n";
    let data: Dataset = reader.read_bytes("inline", text).unwrap();
    let mut model = field_aware::FieldAware::new(dims! { d: 6 }, Seed(1)).unwrap();
    let options = BatchOptions { batch_size: 3, ..BatchOptions::default() };
    let mut batches = data.batches(field_aware::FieldAware::INPUTS, &options).unwrap();
    batches.start_epoch(0).unwrap();
    let batch = batches.next_batch().unwrap().unwrap();
    let bound = model.bind(&batch).unwrap();
    model.loss_and_grads(&bound).unwrap();
    let gradient = model.gradients().v.to_dense().unwrap();
    // A row for each column of the batch, with one that meets no other.
    assert_eq!(model.gradients().v.indices(), [0, 1, 2, 3, 4, 5]);
    // Ten places: six of the pairs of the first row, four of those of the second that are not among them.
    assert_eq!(gradient.values().iter().filter(|slope| **slope != 0.0).count(), 10 * 2);
    for (place, found) in gradient.values().iter().enumerate() {
        let mut loss_at = |change: f32| {
            model.v.values_mut()[place] += change;
            let loss = model.loss_and_grads(&bound).unwrap();
            model.v.values_mut()[place] -= change;
            loss
        };
        let slope = (loss_at(0.125) - loss_at(-0.125)) / 0.25;
        assert!((f64::from(*found) - slope).abs() < 1e-4, "{place}: {found}, not {slope}");
    }
}

#[test]
fn matrix_factorization_on_films() {
    let Some((train, test)) = both("ml100k.u2.base.gz", "ml100k.u2.test") else { return };
    let score = matrix_factorization::fit(&train, &test).unwrap();
    // Alternating least squares with 8 factors, the worst of its three starts.
    at_most("factorization: RMSE", score.metric("rmse").unwrap(), 0.9122, 0.002);
}

#[test]
fn wide_and_deep_on_clicks() {
    let Some((train, test)) = both("criteo_raw8k.train.tsv.gz", "criteo_raw8k.test.tsv") else {
        return;
    };
    // A step of one row is one loop.
    const { assert!(wide_deep::WideDeep::TRAINS_ROWS) };
    let score = wide_deep::fit(&train, &test).unwrap();
    // The best of logistic regression over its penalties, on the columns that are hashed here.
    at_most("wide and deep: log loss", score.loss, 0.483762, 0.0);
    at_least("wide and deep: AUC", score.metric("auc").unwrap(), 0.717387, 0.0);
}

#[test]
fn two_tasks_on_reviews() {
    let Some((train, test)) = both("imdb_rating.train.gz", "imdb_rating.test.gz") else { return };
    let (rmse, accuracy) = multi_task::fit(&train, &test).unwrap();
    // Each task by itself: ridge regression, lambda = 1e-4, and logistic regression, lambda = 1e-5.
    at_most("two tasks: RMSE of stars", rmse, 2.178258, 0.02);
    at_least("two tasks: accuracy", accuracy, 0.88268, 0.005);
}

/// What the reference is held to: a log loss better than that of logistic regression at any of its L2 penalties, of a model whose weights
/// are zero but for a twentieth.
#[test]
fn sparse_weights_on_clicks_by_the_command_line() {
    let Some((train, test)) = both("criteo_tiny.train.ffm.gz", "criteo_tiny.test.ffm.gz") else {
        return;
    };
    let path = std::env::temp_dir().join(format!("nnz-models-{}.safetensors", std::process::id()));
    let saved = path.display().to_string();
    let arguments = [
        ["--model", "logistic"],
        ["--data", &train],
        ["--test", &test],
        ["--features", "429705"],
        ["--optimizer", "ftrl"],
        ["--l1", "1"],
        ["--epochs", "2"],
        ["--save", &saved],
    ];
    let arguments = [arguments.as_flattened(), &["--json"]].concat();
    let Some(lines) = command_line::run("train", &arguments) else { return };
    let last: serde_json::Value = serde_json::from_str(lines.lines().last().unwrap()).unwrap();
    at_most("train: log loss of FTRL", last["test_loss"].as_f64().unwrap(), 0.497134, 0.0);

    let mut model = LogisticRegression::new(dims! { d: 429_705 }, Seed(0)).unwrap();
    checkpoint::load(&mut model, &path).unwrap();
    let n_nonzero = model.w.values().iter().filter(|w| **w != 0.0).count();
    at_most("train: part of the weights that is not zero", n_nonzero as f64 / 429_705.0, 0.05, 0.0);

    // `predict` and `inspect` know the same model.
    let scores = path.with_extension("tsv");
    let output = scores.display().to_string();
    command_line::run("predict", &["--model", &saved, "--data", &test, "--output", &output]);
    let written = std::fs::read_to_string(&scores).unwrap();
    let written: Vec<f32> = written.lines().map(|line| line.parse().unwrap()).collect();
    let reader = nnz::data::TextReader::new(nnz::data::LibFfm::new().n_features(429_705));
    let data: Dataset = reader.read_path(&test).unwrap();
    assert_eq!(written, nnz::training::predict(&mut model, &data, 100).unwrap().values());
    let shown = command_line::run("inspect", &[&saved, "--top", "1"]).unwrap();
    assert!(shown.contains(&format!("{n_nonzero} of 429705 not zero")), "{shown}");
    for file in [path, scores] {
        std::fs::remove_file(file).unwrap();
    }
}

/// Columns of later files are counted from where those of the training data were, whether they show it or not; every model is made.
#[test]
fn the_command_line_carries_what_it_found_out() {
    let folder = std::env::temp_dir().join(format!("nnz-carried-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let file = |name: &str, text: &str| {
        let path = folder.join(name);
        std::fs::write(&path, text).unwrap();
        path.display().to_string()
    };
    let train = file("train.svm", "1 0:1 2:1\n0 1:1 3:1\n1 0:1\n0 1:1\n");
    let (test, saved) = (file("test.svm", "1 2:1\n0 1:1\n"), file("model", ""));
    let arguments = ["--data", &train, "--test", &test, "--epochs", "20", "--learning-rate", "1"];
    let arguments = [&arguments[..], &["--model", "logistic", "--save", &saved, "--json"]].concat();
    let Some(lines) = command_line::run("train", &arguments) else { return };
    assert!(lines.lines().last().unwrap().contains("\"test_auc\":1.0"), "{lines}");
    let scores = command_line::run("predict", &["--model", &saved, "--data", &test]).unwrap();
    let scores: Vec<f32> = scores.lines().map(|line| line.parse().unwrap()).collect();
    assert!(scores[0] > 0.6 && scores[1] < 0.1, "{scores:?}");

    let two_labels = file("two.csv", "1,0,a\n2,1,b\n");
    let (tabs, ratings) = (file("clicks.tsv", &criteo_line()), file("ratings", "a,x,1\nb,y,2\n"));
    let schema = ["--format", "csv", "--schema", "stars:label,good:label,word:categorical"];
    for (model, data, more) in [
        ("linear", &train, &[][..]),
        ("softmax", &train, &[]),
        ("poisson", &train, &[]),
        ("factorization-machine", &train, &["--factors", "2"]),
        ("wide-deep", &tabs, &["--hash-bits", "8"]),
        ("multi-task", &two_labels, &schema),
        ("matrix-factorization", &ratings, &["--format", "ratings", "--factors", "2"]),
    ] {
        let arguments = [&["--model", model, "--data", data, "--epochs", "1"], more].concat();
        let line = command_line::run("train", &arguments).unwrap();
        assert!(line.starts_with("epoch 1/1  objective "), "{model}: {line}");
    }
    std::fs::remove_dir_all(folder).unwrap();
}

/// The scores of rows are those of the same rows without labels, in every format that can leave them out.
#[test]
fn the_command_line_scores_rows_without_labels() {
    let folder = std::env::temp_dir().join(format!("nnz-unlabelled-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let file = |name: &str, text: &str| {
        let path = folder.join(name);
        std::fs::write(&path, text).unwrap();
        path.display().to_string()
    };
    let (criteo, saved) = (criteo_line(), folder.join("model").display().to_string());
    let csv = ["--format", "csv", "--schema", "y:label,age:numeric,town:categorical"];
    for (model, labelled, without, more) in [
        ("logistic", "1\ta b c\n0\tb d\n", "a b c\nb d\n", &["--format", "words"][..]),
        ("logistic", "1,40,Rome\n0,7,Oslo\n", "40,Rome\n7,Oslo\n", &csv),
        ("wide-deep", &criteo, &criteo[2..], &["--format", "criteo"]),
        ("logistic", "1 0:3:1\n0 1:4:1\n", "0:3:1\n1:4:1\n", &["--format", "libffm"]),
        ("matrix-factorization", "a,x,1\nb,y,2\n", "a,x\nb,y\n", &["--format", "ratings"]),
    ] {
        let (train, bare) = (file("labelled", labelled), file("bare", without));
        let arguments = [&["--model", model, "--data", &train, "--save", &saved], more].concat();
        if command_line::run("train", &arguments).is_none() {
            return;
        }
        let predict = ["--model", &saved, "--data"];
        let expected = command_line::run("predict", &[&predict[..], &[&train]].concat()).unwrap();
        for way in [&[][..], &["--cache"], &["--stream", "1048576"]] {
            let arguments = [&predict[..], &[&bare, "--no-labels"], way].concat();
            let scores = command_line::run("predict", &arguments).unwrap();
            assert_eq!(scores, expected, "{arguments:?}");
        }
        let _ = std::fs::remove_file(format!("{bare}.cache"));
        // Who forgets to say so is told.
        assert!(
            !command_line::output("predict", &[&predict[..], &[&bare]].concat())
                .unwrap()
                .status
                .success()
        );
    }
    let text = file("rows.svm", "1 1:1\n0 2:1\n");
    let train = ["--model", "logistic", "--data", &text, "--save", &saved];
    command_line::run("train", &train).unwrap();
    let predict = ["--model", &saved, "--data", &text, "--no-labels"];
    let refused = command_line::output("predict", &predict).unwrap();
    let errors = String::from_utf8_lossy(&refused.stderr);
    assert!(errors.contains("whose rows begin with a label"), "{errors}");
    std::fs::remove_dir_all(folder).unwrap();
}

/// How many threads there are, and whether they have data of their own, changes no bit of the model. Batches have entries enough to be shared.
#[test]
fn the_command_line_divides_data_among_threads() {
    let folder = std::env::temp_dir().join(format!("nnz-divided-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let path = |name: &str| folder.join(name).display().to_string();
    let (data, saved) = (path("data.svm"), path("model"));
    let row = |row: usize| {
        let column = |place: usize| 1 + place * 500 + (row * (place + 7)) % 500;
        let entries = (0..20).map(|place| format!(" {}:0.{}", column(place), 1 + row % 9));
        format!("{}{}\n", row % 2, entries.collect::<String>())
    };
    std::fs::write(&data, (0..18_000).map(row).collect::<String>()).unwrap();
    let common = ["--model", "logistic", "--data", &data, "--batch-size", "8192", "--save", &saved];
    let trained = |more: &[&str]| {
        command_line::run("train", &[&common, more].concat())?;
        Some(std::fs::read(&saved).unwrap())
    };
    let Some(one) = trained(&[]) else { return };
    for more in [&["--threads", "2"][..], &["--threads", "2", "--divide"]] {
        assert!(trained(more).unwrap() == one, "{more:?}");
    }
    for (more, message) in [
        (&["--divide"][..], "--threads"),
        (&["--divide", "--threads", "2", "--stream", "1000000"], "cannot be used with"),
    ] {
        let output = command_line::output("train", &[&common, more].concat()).unwrap();
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(!output.status.success() && errors.contains(message), "{more:?}: {errors}");
    }
    std::fs::remove_dir_all(folder).unwrap();
}

/// What would be lost or mean something else than it says ends a command before it reads data; nothing is written.
#[test]
fn the_command_line_refuses_what_it_cannot_keep() {
    let folder = std::env::temp_dir().join(format!("nnz-refused-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let file = |name: &str, text: &str| {
        let path = folder.join(name);
        std::fs::write(&path, text).unwrap();
        path.display().to_string()
    };
    let text = "1,0.5\n0,-1\n";
    let (data, other) = (file("data.csv", text), file("other.csv", text));
    let saved = folder.join("model").display().to_string();
    let [same, device] = [folder.join("./data.csv").display().to_string(), "/dev/null".to_owned()];
    let schema = ["--schema", "y:label,x:numeric"];
    let endless = ["--epochs", "18446744073709551615", "--schedule", "cosine", "--end", "inf"];
    let once = ["--epochs", "1"];
    let train = ["--model", "logistic", "--data", &data];
    let trained = [&train[..], &schema, &once, &["--save", &saved]].concat();
    if command_line::run("train", &trained).is_none() {
        return;
    }
    let predict = ["--model", &saved, "--data", &data];
    let bytes = std::fs::read(&saved).unwrap();
    let (cache, named) = (file("data.csv.cache", ""), file("ids.users", text));
    let ids = folder.join("ids").display().to_string();
    let by_ids = ["--model", "matrix-factorization", "--data", &named];
    for (example, arguments, more, message) in [
        ("train", &train[..], &["--save", &same][..], "would be lost: write to another file"),
        ("train", &train, &["--test", &other, "--save", &other], "would be lost"),
        ("train", &train, &["--cache", "--save", &cache], "would be lost"),
        ("train", &by_ids, &["--save", &ids], "would be lost"),
        ("predict", &predict, &["--output", &same], "would be lost"),
        ("predict", &predict, &["--cache", "--output", &cache], "would be lost"),
        ("predict", &predict, &["--output", &saved], "would be lost"),
        ("train", &train, &[], "data.csv` is read as csv, by its ending or `--format csv`: say"),
        ("predict", &predict, &["--format", "libsvm"], "the model was trained with `--format csv`"),
        ("predict", &predict, &["--schema", "x:numeric"], "was trained with `--schema y:label,x:"),
        (
            "train",
            &train,
            &["--l2", "1", "--weight-decay", "2"],
            "`weight_decay` is given twice, as `weight_decay` and as `l2`: say it once",
        ),
        ("train", &train, &["--nesterov", "0.5"], "sgd: `nesterov` is 0.5, but must be 0 or 1"),
        ("train", &train, &["--threads", "100000"], "100000 is not in 1..=1024"),
        // So many steps are no overflow: what is wrong with the schedule is told.
        (
            "train",
            &train,
            &[&schema[..], &endless].concat(),
            "`end` is inf, but must be at least 0 and finite",
        ),
    ] {
        let arguments = [arguments, more].concat();
        let output = command_line::output(example, &arguments).unwrap();
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(!output.status.success() && errors.contains(message), "{arguments:?}: {errors}");
    }
    assert_eq!(std::fs::read_to_string(&data).unwrap(), text);
    assert_eq!(std::fs::read(&saved).unwrap(), bytes);

    // What the model's file says need not be said again; a device may be written to.
    let noted = file("later.txt", text);
    let scores = command_line::run("predict", &["--model", &saved, "--data", &noted]).unwrap();
    assert_eq!(scores.lines().count(), 2);
    if cfg!(unix) {
        command_line::run("predict", &[&predict[..], &["--output", &device]].concat());
    }

    // Decay is part of what Adam minimises, and beside what AdamW does.
    let epoch = |rule: &str| -> serde_json::Value {
        let more = ["--optimizer", rule, "--lazy-update", "touched", "--weight-decay", "1"];
        let arguments = [&train[..], &schema, &once, &more, &["--json"]].concat();
        serde_json::from_str(&command_line::run("train", &arguments).unwrap()).unwrap()
    };
    let (adam, adamw) = (epoch("adam"), epoch("adamw"));
    assert!(adam["objective"].as_f64() > adam["train_loss"].as_f64(), "{adam}");
    assert_eq!(adamw["objective"], adamw["train_loss"]);
    std::fs::remove_dir_all(folder).unwrap();
}

/// A line of Criteo's log: a label, 13 counts, 26 categories.
fn criteo_line() -> String {
    let counts = (0..13).map(|count| count.to_string());
    let categories = (0..26).map(|category| format!("c{category}"));
    let fields: Vec<String> =
        ["1".to_owned()].into_iter().chain(counts).chain(categories).collect();
    fields.join("\t") + "\n"
}

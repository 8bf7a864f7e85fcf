//! Training on real data, against optima and one-pass results that were computed elsewhere
//! (`reference.json` in the folder of the data: Newton's method in f64, and scikit-learn as a
//! second answer).
//!
//! The folder is `NNZ_DATA` (default `../shared/data` beside the repository); without it every test
//! says `SKIPPED`, or fails where `NNZ_REQUIRE_DATA=1`. Each takes a few seconds in the test
//! profile.

// What cannot be read fails the test.
use crate::folder::{find, say};
use nnz::core::element::Float;
use nnz::data::ColumnValues;
use nnz::formats::RowSelection;
use nnz::prelude::*;
use serde_json::Value;
use std::io::Read;
use std::path::PathBuf;

graph! {
    /// Logistic regression without bias.
    model Logistic {
        input x: csr[n, d];
        label y: dense[n, 1];
        param w: row_sparse[d, 1] = Zeros;
        let score = dot(x, w);
        loss logistic(score, y);
        output probability = sigmoid(score);
    }

    /// The same in `f64`.
    model LogisticF64 {
        dtype = f64;
        input x: csr[n, d];
        label y: dense[n, 1];
        param w: row_sparse[d, 1] = Zeros;
        let score = dot(x, w);
        loss logistic(score, y);
    }

    /// Softmax regression in `f64`.
    model SoftmaxF64 {
        dtype = f64;
        input x: csr[n, d];
        label y: dense<u32>[n];
        param w: row_sparse[d, 20] = Zeros;
        let score = dot(x, w);
        loss softmax_cross_entropy(score, y);
    }

    /// Softmax regression without bias.
    model Softmax {
        input x: csr[n, d];
        label y: dense<u32>[n];
        param w: row_sparse[d, k] = Zeros;
        let score = dot(x, w);
        loss softmax_cross_entropy(score, y);
        output probability = softmax(score);
    }

    /// Least squares without bias.
    model LeastSquares {
        input x: csr[n, d];
        label y: dense[n, 1];
        param w: row_sparse[d, 1] = Zeros;
        let prediction = dot(x, w);
        loss squared_error(prediction, y);
        output prediction;
    }
}

fn data(file: &str) -> Option<PathBuf> {
    find("NNZ_DATA", "shared/data", file)
}

/// What is known of a data set.
fn reference(set: &str) -> Option<Value> {
    let text = std::fs::read_to_string(data("reference.json")?).unwrap();
    let reference: Value = serde_json::from_str(&text).unwrap();
    Some(reference[set].clone())
}

fn features(reference: &Value) -> usize {
    reference["stats"]["cols"].as_u64().unwrap() as usize
}

/// The reference optimum of a family (`logistic`, `softmax`, `ridge`) for a weight of the penalty,
/// without bias.
fn optimum(reference: &Value, family: &str, l2: f64) -> Value {
    let optima = reference[family].as_array().unwrap();
    let found = optima.iter().find(|optimum| {
        optimum["lam"].as_f64() == Some(l2) && optimum["bias"].as_bool() != Some(true)
    });
    found.unwrap_or_else(|| panic!("no {family} optimum for {l2}")).clone()
}

/// The mean loss over all rows plus (l2 / 2) · |w|².
fn objective<M: Model>(model: &mut M, data: &Dataset<M::Element>, l2: f64) -> f64 {
    let loss = nnz::training::score(model, data, &[], 1024).unwrap().loss;
    let weights = model.parameters()[0].values();
    loss + l2 / 2.0 * weights.iter().map(|w| w.as_f64().powi(2)).sum::<f64>()
}

/// A trainer whose learning rate falls along half a cosine to 0.
fn decaying(
    data: &Dataset,
    l2: f64,
    learning_rate: f64,
    batch_size: usize,
    epochs: u64,
) -> Trainer<'static, Sgd> {
    let steps = data.n_rows().div_ceil(batch_size) as u64 * epochs;
    Trainer::new(Sgd { learning_rate, weight_decay: l2, ..Sgd::default() })
        .batch_size(batch_size)
        .epochs(epochs)
        .schedule(Schedule::Cosine { total: steps, end: 0.0, unit: ScheduleUnit::Step })
        .progress(Progress::Silent)
}

#[track_caller]
fn assert_within(what: &str, found: f64, expected: f64, difference: f64) {
    say(&format!("real_data: {what}: {found}, reference {expected}"));
    assert!(
        (found - expected).abs() <= difference,
        "{what} is {found}, which is not within {difference} of {expected}"
    );
}

#[test]
fn logistic_regression_on_a9a_reaches_the_optimum() {
    let (Some(known), Some(train), Some(test)) =
        (reference("a9a"), data("a9a.gz"), data("a9a.t.gz"))
    else {
        return;
    };
    let (l2, d) = (1e-4, features(&known));
    let known = optimum(&known, "logistic", l2);
    let reader = libsvm::Reader::new().index_base(IndexBase::One).n_features(d);
    let (train, test) = (reader.read_path(train).unwrap(), reader.read_path(test).unwrap());
    let mut model = Logistic::new(dims! { d: d }, Seed(0)).unwrap();
    let mut trainer = decaying(&train, l2, 0.05, 1, 30).metric(Accuracy).metric(Auc);
    trainer.fit(&mut model, &train).unwrap();
    let optimum = known["F"].as_f64().unwrap();
    let found = objective(&mut model, &train, l2);
    assert_within("a9a objective", found, optimum, 1e-4 * optimum);
    assert!(found > optimum - 1e-6 * optimum, "{found} is below the optimum {optimum}");
    let score = trainer.score(&mut model, &test).unwrap();
    let metric = |name| score.metric(name).unwrap();
    let tested = |name: &str| known["test"][name].as_f64().unwrap();
    assert_within("a9a test accuracy", metric("accuracy"), tested("acc"), 0.003);
    assert_within("a9a test AUC", metric("auc"), tested("auc"), 0.001);
    assert_within("a9a test log loss", score.loss, tested("logloss"), 0.001);
}

#[test]
fn softmax_regression_on_news_reaches_the_accuracy() {
    let (Some(set), Some(train), Some(test)) =
        (reference("news20_bydate"), data("news20_bydate.train.gz"), data("news20_bydate.test.gz"))
    else {
        return;
    };
    let d = features(&set);
    let reader = libsvm::Reader::new().index_base(IndexBase::One).n_features(d);
    let (train, classes) = reader.read_path(train).unwrap().into_classes().unwrap();
    let test = reader.read_path(test).unwrap().with_classes(&classes).unwrap();
    for (l2, learning_rate, epochs) in [(1e-4, 2.0, 10), (1e-5, 5.0, 10)] {
        let known = optimum(&set, "softmax", l2);
        let mut model = Softmax::new(dims! { d: d, k: classes.len() }, Seed(0)).unwrap();
        let mut trainer = decaying(&train, l2, learning_rate, 1, epochs).metric(Accuracy);
        trainer.fit(&mut model, &train).unwrap();
        let optimum = known["F"].as_f64().unwrap();
        let found = objective(&mut model, &train, l2);
        assert_within(&format!("news objective, l2 {l2}"), found, optimum, 0.01 * optimum);
        let accuracy = trainer.score(&mut model, &test).unwrap().metric("accuracy").unwrap();
        let tested = known["test"]["acc"].as_f64().unwrap();
        assert_within(&format!("news test accuracy, l2 {l2}"), accuracy, tested, 0.01);
    }
}

#[test]
fn least_squares_on_abalone_reaches_the_optimum() {
    let (Some(known), Some(file)) = (reference("abalone_scale"), data("abalone_scale")) else {
        return;
    };
    let (l2, d) = (0.01, features(&known));
    let known = optimum(&known, "ridge", l2);
    let train = libsvm::Reader::new().n_features(d).read_path(file).unwrap();
    let mut model = LeastSquares::new(dims! { d: d }, Seed(0)).unwrap();
    let mut trainer = decaying(&train, l2, 0.1, 8, 40).metric(Rmse);
    trainer.fit(&mut model, &train).unwrap();
    let optimum = known["F"].as_f64().unwrap();
    let found = objective(&mut model, &train, l2);
    assert_within("abalone objective", found, optimum, 1e-4 * optimum);
    assert!(found > optimum - 1e-6 * optimum, "{found} is below the optimum {optimum}");
    let rmse = trainer.score(&mut model, &train).unwrap().metric("rmse").unwrap();
    let known = known["train_rmse"].as_f64().unwrap();
    assert_within("abalone train RMSE", rmse, known, 0.005);
}

/// A training file in `f64`, with labels -1 and 1.
fn read_binary(set: &str, d: usize) -> Option<Dataset<f64>> {
    let reader = libsvm::Reader::new().element::<f64>().n_features(d);
    let name = match set {
        "heart_scale" => "heart_scale".to_owned(),
        "a9a" | "w8a" => format!("{set}.gz"),
        "imdb_binary" => "imdb_rating.train.gz".to_owned(),
        "criteo_tiny" => "criteo_tiny.train.ffm.gz".to_owned(),
        _ => format!("{set}.train.gz"),
    };
    let path = data(&name)?;
    if set == "criteo_tiny" {
        // `label field:index:value …` from zero; a linear model has no use for the fields.
        let mut text = String::new();
        let file = std::fs::File::open(path).unwrap();
        flate2::read::MultiGzDecoder::new(file).read_to_string(&mut text).unwrap();
        let words = text.split_inclusive(char::is_whitespace).map(|word| {
            let field = word.split_once(':').filter(|(_, rest)| rest.contains(':'));
            field.map_or(word, |(_, rest)| rest)
        });
        let text: String = words.collect();
        let reader = reader.index_base(IndexBase::Zero);
        return Some(reader.read(&name, text.as_bytes()).unwrap());
    }
    let data = reader.index_base(IndexBase::One).read_path(path).unwrap();
    if set != "imdb_binary" {
        return Some(data);
    }
    let Some(ColumnValues::Dense(ratings)) = data.labels() else { panic!("no ratings") };
    let labels = ratings.values().iter().map(|&stars| if stars >= 7.0 { 1.0 } else { -1.0 });
    Some(Dataset::new(data.features().unwrap().clone(), labels.collect()).unwrap())
}

/// One pass in file order, one row at a time, in `f64`: every digit of the fused step is held to
/// the reference.
#[test]
fn one_pass_of_sgd_is_the_reference_to_nine_digits() {
    for set in
        ["heart_scale", "a9a", "w8a", "rcv1_small", "imdb_binary", "ipinyou_small", "criteo_tiny"]
    {
        let Some(known) = reference(set) else { return };
        let d = features(&known);
        let Some(data) = read_binary(set, d) else { return };
        let known = &known["oracles"]["sgd"];
        let mut model = LogisticF64::new(dims! { d: d }, Seed(0)).unwrap();
        assert!(LogisticF64::PLAN.is_fused(), "{}", LogisticF64::PLAN);
        let mut trainer = Trainer::new(Sgd { learning_rate: 0.1, ..Sgd::default() })
            .epochs(1)
            .shuffle(false)
            .progress(Progress::Silent);
        let report = trainer.fit(&mut model, &data).unwrap();
        let check = |what: &str, found: f64, known: &Value| {
            let expected = known.as_f64().unwrap();
            assert_within(&format!("{set} {what}"), found, expected, 1e-9 * expected);
        };
        check("progressive log loss", report.epochs[0].loss, &known["progressive_logloss"]);
        let weights = model.w.values();
        let norm = weights.iter().map(|w| w.abs()).sum();
        check("L1 norm", norm, &known["w_l1"]);
        let nonzero = weights.iter().filter(|w| **w != 0.0).count();
        assert_eq!(Some(nonzero as u64), known["w_nnz"].as_u64(), "{set}");
        let loss = trainer.score(&mut model, &data).unwrap().loss;
        check("log loss of the final weights", loss, &known["final_train_logloss"]);
    }
}

/// The objective after each snapshot's epochs is that of a dense implementation in `f64`, and ends
/// at the optimum.
#[test]
fn svrg_is_the_reference_to_nine_digits() {
    // As many snapshots as it takes to a relative suboptimality of 1e-6.
    for (set, snapshots) in [("a9a", 7), ("rcv1_small", 5), ("imdb_binary", 6)] {
        let Some(known) = reference(set) else { return };
        let d = features(&known);
        let Some(data) = read_binary(set, d) else { return };
        let trace = &known["svrg"];
        let (l2, learning_rate) = (trace["lam"].as_f64().unwrap(), trace["eta"].as_f64().unwrap());
        let optimum = optimum(&known, "logistic", l2)["F"].as_f64().unwrap();
        // Step t is of row 7919 t, modulo the rows.
        let n = data.n_rows();
        let order: Vec<usize> = (0..n).map(|t| 7919 * t % n).collect();
        let features =
            RowSelection::new().gather(data.features().unwrap(), &order).unwrap().to_owned();
        let Some(ColumnValues::Dense(labels)) = data.labels() else { panic!("no labels") };
        let labels = order.iter().map(|row| labels.values()[*row]).collect();
        let data = Dataset::new(features, labels).unwrap();

        let mut model = LogisticF64::new(dims! { d: d }, Seed(0)).unwrap();
        let rule = Sgd { learning_rate, weight_decay: l2, ..Sgd::default() };
        let mut trainer =
            Trainer::new(Svrg { update_freq: 2, rule }).shuffle(false).progress(Progress::Silent);
        let mut updater = trainer.updater(&model).unwrap();
        for snapshot in 0..snapshots {
            let epochs = 2 * snapshot..2 * snapshot + 2;
            trainer.fit_epochs(&mut model, &mut updater, &data, epochs).unwrap();
            let found = objective(&mut model, &data, l2);
            let expected = trace["F"][snapshot as usize].as_f64().unwrap();
            let what = format!("{set} objective after snapshot {snapshot}");
            assert_within(&what, found, expected, 1e-9 * expected);
        }
        let found = objective(&mut model, &data, l2);
        assert_within(&format!("{set} objective"), found, optimum, 1e-6 * optimum);
    }
}

/// At the largest rate that the theory of SVRG knows, 1 / L, on rows of tf-idf. Columns are idle
/// for thousands of steps there: who moves them by `steps · rate · mean` without the decay in
/// between stalls at a relative suboptimality of 1e-2.
#[test]
fn exact_catching_up_does_not_stall() {
    let Some(known) = reference("rcv1_small") else { return };
    let d = features(&known);
    let Some(data) = read_binary("rcv1_small", d) else { return };
    for l2 in [1e-3, 1e-4] {
        let optimum = optimum(&known, "logistic", l2)["F"].as_f64().unwrap();
        // Rows have unit norm.
        let rule = Sgd { learning_rate: 1.0 / (0.25 + l2), weight_decay: l2, ..Sgd::default() };
        let mut svrg = LogisticF64::new(dims! { d: d }, Seed(0)).unwrap();
        Trainer::new(Svrg { update_freq: 2, rule: rule.clone() })
            .epochs(20)
            .progress(Progress::Silent)
            .fit(&mut svrg, &data)
            .unwrap();
        let found = objective(&mut svrg, &data, l2);
        assert_within(
            &format!("rcv1_small svrg objective, l2 {l2}"),
            found,
            optimum,
            1e-6 * optimum,
        );
        // SAGA is proved at a third of it.
        let rule = Sgd { learning_rate: rule.learning_rate / 3.0, ..rule };
        let mut saga = LogisticF64::new(dims! { d: d }, Seed(0)).unwrap();
        Trainer::new(Saga { rule })
            .epochs(40)
            .progress(Progress::Silent)
            .fit(&mut saga, &data)
            .unwrap();
        let found = objective(&mut saga, &data, l2);
        assert_within(
            &format!("rcv1_small saga objective, l2 {l2}"),
            found,
            optimum,
            1e-6 * optimum,
        );
    }
}

#[test]
fn svrg_reaches_the_optimum_of_unbalanced_rows() {
    let Some(known) = reference("w8a") else { return };
    let d = features(&known);
    let Some(data) = read_binary("w8a", d) else { return };
    let l2 = 1e-3;
    let optimum = optimum(&known, "logistic", l2)["F"].as_f64().unwrap();
    let mut model = LogisticF64::new(dims! { d: d }, Seed(0)).unwrap();
    let rule = Sgd { learning_rate: 0.05, weight_decay: l2, ..Sgd::default() };
    Trainer::new(Svrg { update_freq: 2, rule })
        .epochs(12)
        .progress(Progress::Silent)
        .fit(&mut model, &data)
        .unwrap();
    assert_within("w8a objective", objective(&mut model, &data, l2), optimum, 1e-6 * optimum);
}

#[test]
fn svrg_reaches_the_optimum_of_a_softmax() {
    let Some((set, train)) = reference("news20_bydate").zip(data("news20_bydate.train.gz")) else {
        return;
    };
    let d = features(&set);
    let reader = libsvm::Reader::new().index_base(IndexBase::One).element::<f64>().n_features(d);
    let (data, _) = reader.read_path(train).unwrap().into_classes().unwrap();
    let l2 = 1e-3;
    let optimum = optimum(&set, "softmax", l2)["F"].as_f64().unwrap();
    let mut model = SoftmaxF64::new(dims! { d: d }, Seed(0)).unwrap();
    let rule = Sgd { learning_rate: 1.0, weight_decay: l2, ..Sgd::default() };
    Trainer::new(Svrg { update_freq: 1, rule })
        .epochs(4)
        .progress(Progress::Silent)
        .fit(&mut model, &data)
        .unwrap();
    assert_within("news objective", objective(&mut model, &data, l2), optimum, 1e-6 * optimum);
}

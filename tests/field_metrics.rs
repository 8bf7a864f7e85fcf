//! Metrics of models whose output is a link of a score, in each kind of step: they see the scores
//! in the place of probabilities that f32 rounds to 1.

#![allow(clippy::unwrap_used)]

use nnz::data::Dataset;
use nnz::metric::{Accuracy, Auc, LogLoss, TopKAccuracy};
use nnz::model::Model;
use nnz::prelude::*;

graph! {
    /// One loop.
    model Fused {
        input x: csr[n, d];
        label y: dense[n, 1];
        param w: row_sparse[d, 1] = Zeros;
        let score = dot(x, w);
        loss logistic(score, y);
        output probability = sigmoid(score);
    }

    /// The score of the output is not that of the loss, and nothing else reads it.
    model Unfused {
        fuse = off;
        input x: csr[n, d];
        label y: dense[n, 1];
        param w: row_sparse[d, 1] = Zeros;
        let half = 0.5 * dot(x, w);
        loss logistic(half, y);
        output probability = sigmoid(2.0 * half);
    }

    /// Many rows are one pass through layers.
    model Layered {
        input x: csr[n, d];
        label y: dense[n, 1];
        param w: row_sparse[d, 1] = Zeros;
        param v: row_sparse[d, 1] = Zeros;
        param h: dense[1, 1] = Constant(1.0);
        let score = dot(dot(x, w), h) + dot(x, v);
        loss logistic(score, y);
        output probability = sigmoid(score);
    }

    /// The score is an output as well.
    model Both {
        input x: csr[n, d];
        label y: dense[n, 1];
        param w: row_sparse[d, 1] = Zeros;
        let score = dot(x, w);
        loss logistic(score, y);
        output probability = sigmoid(score);
        output score;
    }

    model Classes {
        input x: csr[n, d];
        label y: dense<u32>[n];
        param w: row_sparse[d, 3] = Zeros;
        let scores = dot(x, w);
        loss softmax_cross_entropy(scores, y);
        output probabilities = softmax(scores);
    }

    model OneClass {
        input x: csr[n, d];
        label y: dense<u32>[n];
        param w: row_sparse[d, 1] = Zeros;
        let scores = dot(x, w);
        loss softmax_cross_entropy(scores, y);
        output probabilities = softmax(scores);
    }
}

const SCORES: [f32; 8] = [-40.0, -20.0, -18.0, -17.5, 17.5, 18.0, 20.0, 40.0];
const LABELS: [f32; 8] = [0.0, 1.0, 0.0, 0.0, 1.0, 0.0, 1.0, 1.0];

/// A column of its own for each sample.
fn one_column_each() -> Csr {
    Csr::from_rows(8, (0..8).map(|row| [(row, 1.0)])).unwrap()
}

/// At a rate that moves nothing, so that metrics of training are those of scoring.
fn trainer(batch_size: usize) -> Trainer<'static, Sgd> {
    let rule = Sgd { learning_rate: 1e-30, ..Sgd::default() };
    let trainer = Trainer::new(rule).batch_size(batch_size).epochs(1).progress(Progress::Silent);
    trainer.metric(Auc).metric(LogLoss).metric(Accuracy)
}

fn check(metric: impl Fn(&str) -> Option<f64>) {
    assert_eq!((metric("auc"), metric("accuracy")), (Some(0.75), Some(0.75)));
    let log_loss = metric("log_loss").unwrap();
    assert!((log_loss - 4.750_000_01).abs() < 1e-8, "{log_loss}");
}

fn check_model<M: Model<Element = f32>>(mut model: M) {
    let data = Dataset::new(one_column_each(), LABELS.to_vec()).unwrap();
    model.parameters_mut()[0].values_mut().copy_from_slice(&SCORES);
    for batch_size in [8, 3, 1] {
        let report = trainer(batch_size).fit(&mut model, &data).unwrap();
        check(|name| report.epochs[0].metric(name));
    }
    let report = trainer(8).score(&mut model, &data).unwrap();
    check(|name| report.metric(name));
}

#[test]
fn n4_metrics_see_scores_in_every_kind_of_step() {
    let dims = || dims! { d: 8 };
    check_model(Fused::new(dims(), Seed(0)).unwrap());
    check_model(Unfused::new(dims(), Seed(0)).unwrap());
    check_model(Layered::new(dims(), Seed(0)).unwrap());
    check_model(Both::new(dims(), Seed(0)).unwrap());
}

#[test]
fn n4_outputs_stay_as_they_are() {
    let mut model = Both::new(dims! { d: 8 }, Seed(0)).unwrap();
    model.w.values_mut().copy_from_slice(&SCORES);
    let x = one_column_each();
    let outputs = model.forward(&BothBatch { x: x.view(), ..Default::default() }).unwrap();
    assert_eq!(outputs.probability.values()[4..], [1.0; 4]);
    assert_eq!(outputs.score.values(), SCORES);
    let scores = model.linked_scores().unwrap();
    assert_eq!(scores.values.values(), SCORES);
}

#[test]
fn n4_probabilities_of_classes_that_are_zero_have_the_log_loss_of_their_scores() {
    let mut model = Classes::new(dims! { d: 2 }, Seed(0)).unwrap();
    model.w.values_mut().copy_from_slice(&[900.0, 1.0, 2.0, -900.0, 3.0, 900.0]);
    let x = Csr::from_rows(2, [[(0, 1.0f32)], [(1, 1.0)]]).unwrap();
    let data = Dataset::<f32>::builder().input("x", x).label("y", vec![2u32, 1]).build().unwrap();
    let mut trainer = trainer(2);
    let error = trainer.fit(&mut model, &data).unwrap_err().to_string();
    // Of three classes there is no AUC: the metric says so before the first step.
    assert!(error.contains("metric `auc` needs one score a row"), "{error}");
    let rule = Sgd { learning_rate: 1e-30, ..Sgd::default() };
    let trainer = Trainer::new(rule).batch_size(2).epochs(1).progress(Progress::Silent);
    let mut trainer = trainer.metric(LogLoss).metric(TopKAccuracy { k: 2 });
    let report = trainer.fit(&mut model, &data).unwrap();
    assert_eq!(report.epochs[0].metric("log_loss"), Some((898.0 + 897.0) / 2.0));
    assert_eq!(report.epochs[0].metric("top_k_accuracy"), Some(1.0));
}

#[test]
fn n9_softmax_over_one_class_has_accuracy_one_in_a_model() {
    let mut model = OneClass::new(dims! { d: 8 }, Seed(0)).unwrap();
    let data = Dataset::<f32>::builder().input("x", one_column_each());
    let data = data.label("y", vec![0u32; 8]).build().unwrap();
    let rule = Sgd { learning_rate: 0.1, ..Sgd::default() };
    let trainer = Trainer::new(rule).batch_size(4).epochs(1).progress(Progress::Silent);
    let mut trainer = trainer.metric(Accuracy).metric(LogLoss);
    trainer.fit(&mut model, &data).unwrap();
    let report = trainer.score(&mut model, &data).unwrap();
    assert_eq!((report.metric("accuracy"), report.metric("log_loss")), (Some(1.0), Some(0.0)));
    assert_eq!(report.loss, 0.0);
}

#[test]
fn n8_a_model_of_labels_that_are_probabilities_is_measured_by_one_half() {
    let mut model = Fused::new(dims! { d: 8 }, Seed(0)).unwrap();
    let labels = [0.1f32, 0.2, 0.8, 0.9, 0.1, 0.2, 0.8, 0.9];
    let scores = labels.map(|label| (label / (1.0 - label)).ln());
    model.w.values_mut().copy_from_slice(&scores);
    let data = Dataset::new(one_column_each(), labels.to_vec()).unwrap();
    let report = trainer(4).score(&mut model, &data).unwrap();
    assert_eq!((report.metric("accuracy"), report.metric("auc")), (Some(1.0), Some(1.0)));
}

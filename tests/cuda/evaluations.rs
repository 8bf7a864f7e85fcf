//! Evaluation on a GPU, where a batch is copied while the one before it is computed, and read when
//! it was asked for.

use crate::device::{Count, count, fail, gpu, is_real};
use crate::named::{self, Ratings, WideDeep};
use crate::uploads::{COLUMNS, data, model};
use crate::{Logistic, near};
use nnz::data::{BatchOptions, Batches, DataSource, Labels, LastBatch, Order};
use nnz::device::cuda::CudaError;
use nnz::metric::{Auc, LogLoss};
use nnz::model::{ModelError, OnGpu};
use nnz::optimizer::Updater;
use nnz::prelude::*;
use nnz::training::{predict, score, write_predictions};

const OPTIONS: BatchOptions = BatchOptions {
    batch_size: 16,
    order: Order::Sequential,
    last_batch: LastBatch::Short,
    labels: Labels::Required,
};

/// The mean loss and the first outputs of all rows, batch by batch.
fn one_by_one<M: Model<Element = f32>>(model: &mut M, data: &Dataset) -> (f64, Vec<f32>) {
    let mut batches = data.batches(M::INPUTS, &OPTIONS).unwrap();
    let (mut sum, mut n_rows, mut outputs) = (0.0, 0, Vec::new());
    while let Some(batch) = batches.next_batch().unwrap() {
        let batch = model.bind(&batch).unwrap();
        let loss = model.loss(&batch).unwrap();
        let output = model.dense_output(0).unwrap();
        sum += loss * output.shape().n_rows() as f64;
        n_rows += output.shape().n_rows();
        outputs.extend_from_slice(output.values());
    }
    (sum / n_rows as f64, outputs)
}

fn hold<M: Model<Element = f32>>(host: &M, data: &Dataset) {
    let (mut host, mut there) = (host.clone(), OnGpu::new(host, &gpu()).unwrap());
    let (loss, outputs) = one_by_one(&mut there, data);
    let metrics: [Box<dyn Metric>; 1] = [Box::new(Mse)];
    let scored = score(&mut there, data, &metrics, OPTIONS.batch_size).unwrap();
    assert_eq!(scored.loss.to_bits(), loss.to_bits());
    let expected = score(&mut host, data, &metrics, OPTIONS.batch_size).unwrap();
    assert_eq!(scored.n_rows, expected.n_rows);
    for ((name, found), (_, expected)) in scored.metrics.iter().zip(&expected.metrics) {
        assert!((found - expected).abs() < 1e-5, "{name}: {found} {expected}");
    }
    let predicted = predict(&mut there, data, OPTIONS.batch_size).unwrap();
    let bits = |values: &[f32]| values.iter().map(|value| value.to_bits()).collect::<Vec<_>>();
    assert_eq!(bits(predicted.values()), bits(&outputs));
    let mut text = Vec::new();
    write_predictions(&mut there, data, OPTIONS.batch_size, &mut text).unwrap();
    let lines = std::str::from_utf8(&text).unwrap().lines();
    let written: Vec<f32> = lines.map(|line| line.parse().unwrap()).collect();
    assert_eq!(bits(&written), bits(&outputs));
}

#[test]
fn scores_and_predictions_are_those_of_one_batch_after_the_other() {
    hold(&Logistic::new(dims! { d: COLUMNS }, Seed(3)).unwrap(), &data());
    hold(&WideDeep::new(named::sizes::<WideDeep>(COLUMNS), Seed(3)).unwrap(), &data());
    hold(&Ratings::new(named::sizes::<Ratings>(1), Seed(3)).unwrap(), &named::rated(150));
}

twins! {
    /// Ranked by its score.
    Linked, LinkedOff {
        input x: csr[n, d];
        label y: dense[n, 1];
        param w: row_sparse[d, 1] = Zeros;
        let score = dot(x, w);
        loss logistic(score, y);
        output probability = sigmoid(score);
    }
}

graph! {
    /// The score of the output is not that of the loss.
    model Halved {
        fuse = off;
        input x: csr[n, d];
        label y: dense[n, 1];
        param w: row_sparse[d, 1] = Zeros;
        let half = 0.5 * dot(x, w);
        loss logistic(half, y);
        output probability = sigmoid(2.0 * half);
    }
}

/// Of scores whose probabilities are all 0 or 1 in `f32`, by batches of several sizes.
fn hold_linked<M: Model<Element = f32>>(mut host: M) {
    let scores = [-40.0, -20.0, -18.0, -17.5, 17.5, 18.0, 20.0, 40.0];
    host.parameters_mut()[0].values_mut().copy_from_slice(&scores);
    let x = Csr::from_rows(8, (0..8).map(|row| [(row, 1.0f32)])).unwrap();
    let data = Dataset::new(x, vec![0.0, 1.0, 0.0, 0.0, 1.0, 0.0, 1.0, 1.0]).unwrap();
    let rule = Sgd { learning_rate: 1e-30, ..Sgd::default() };
    for batch_size in [8, 3, 1] {
        let mut there = OnGpu::new(&host, &gpu()).unwrap();
        let mut trainer = Trainer::new(rule.clone()).batch_size(batch_size).epochs(1);
        trainer = trainer.metric(Auc).metric(LogLoss).progress(Progress::Silent);
        let held = |metric: &dyn Fn(&str) -> Option<f64>| {
            assert_eq!(metric("auc"), Some(0.75), "12 of 16 pairs, in batches of {batch_size}");
            let log_loss = metric("log_loss").unwrap();
            assert!((log_loss - 4.750_000_01).abs() < 1e-6, "{log_loss}");
        };
        let report = trainer.fit(&mut there, &data).unwrap();
        held(&|name| report.epochs[0].metric(name));
        let report = trainer.score(&mut there, &data).unwrap();
        held(&|name| report.metric(name));
    }
}

#[test]
fn n4_metrics_see_the_scores_of_a_gpu() {
    hold_linked(Linked::new(dims! { d: 8 }, Seed(0)).unwrap());
    hold_linked(LinkedOff::new(dims! { d: 8 }, Seed(0)).unwrap());
    hold_linked(Halved::new(dims! { d: 8 }, Seed(0)).unwrap());
}

/// Two batches are asked for before either is read, and a step is made between.
#[test]
fn batches_are_read_in_their_order() {
    let (data, mut there) = (data(), model());
    let mut updater = Updater::for_model(Sgd::default(), &there).unwrap();
    let mut batches = data.batches(Logistic::INPUTS, &OPTIONS).unwrap();
    let mut all = Vec::new();
    for _ in 0..2 {
        let batch = batches.next_batch().unwrap().unwrap();
        let batch = there.bind(&batch).unwrap();
        let expected = there.loss(&batch).unwrap();
        all.push((expected.to_bits(), there.outputs()[0].values().to_vec()));
    }
    let mut again = data.batches(Logistic::INPUTS, &OPTIONS).unwrap();
    for _ in 0..2 {
        let batch = again.next_batch().unwrap().unwrap();
        let batch = there.bind(&batch).unwrap();
        there.begin_evaluation(&batch, true).unwrap();
    }
    let batch = again.next_batch().unwrap().unwrap();
    let batch = there.bind(&batch).unwrap();
    there.train_step(&batch, &mut updater).unwrap();
    for (loss, outputs) in all {
        assert_eq!(there.end_evaluation().unwrap().to_bits(), loss);
        assert_eq!(there.outputs()[0].values(), outputs);
    }
    // Without labels there is no loss.
    there.begin_evaluation(&batch, false).unwrap();
    assert!(there.end_evaluation().unwrap().is_nan());
    let found = there.outputs()[0].values().to_vec();
    near(&found, there.forward(&batch).unwrap()[0].values(), "outputs");
    let error = there.end_evaluation().unwrap_err();
    assert!(
        matches!(error, nnz::model::Error::Model(ModelError::NotBegun { model: "Logistic" })),
        "{error}"
    );
    let mut host = there.into_host().unwrap();
    let error = host.begin_evaluation(&batch, true).unwrap_err();
    assert!(matches!(error, nnz::model::Error::Model(ModelError::NotBegun { .. })), "{error}");
}

#[test]
fn a_batch_that_is_evaluated_is_waited_for_by_its_events_alone() {
    if is_real() {
        return;
    }
    let (data, mut there) = (data(), model());
    score(&mut there, &data, &[], OPTIONS.batch_size).unwrap();
    let counts = || [Count::StreamWaits, Count::EventWaits].map(count);
    let before = counts();
    score(&mut there, &data, &[], OPTIONS.batch_size).unwrap();
    let [streams, events] = counts();
    // Of each of the ten the outputs and the loss.
    assert_eq!([streams - before[0], events - before[1]], [0, 20]);
}

#[test]
fn what_is_wrong_with_a_batch_is_said_and_nothing_of_it_is_left() {
    let host = Ratings::new(named::sizes::<Ratings>(1), Seed(3)).unwrap();
    let mut there = OnGpu::new(&host, &gpu()).unwrap();
    let ids = |beyond: u32| (0..50u32).map(move |at| if at == 40 { beyond } else { at % 3 });
    let data = Dataset::builder()
        .input("user", ids(1).collect::<Vec<_>>())
        .input("item", ids(1000).collect::<Vec<_>>())
        .label("rating", Dense::<f32>::zeros([50]))
        .build()
        .unwrap();
    let error = score(&mut there, &data, &[], OPTIONS.batch_size).unwrap_err();
    assert!(error.to_string().contains("1000"), "{error}");
    let error = there.end_evaluation().unwrap_err();
    assert!(matches!(error, nnz::model::Error::Model(ModelError::NotBegun { .. })), "{error}");
    let rated = named::rated(20);
    assert!(score(&mut there, &rated, &[], OPTIONS.batch_size).unwrap().loss.is_finite());
    if is_real() {
        return;
    }
    fail(c"loss_parts");
    let error = score(&mut there, &rated, &[], OPTIONS.batch_size).unwrap_err();
    let Error::Cuda(CudaError::Kernel { kernels, .. }) = &error else { panic!("{error:?}") };
    assert!(kernels.contains(&"loss_parts"), "{error:?}");
}

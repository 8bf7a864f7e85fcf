//! Trainers on a linear regression written by hand.

mod agreement;
mod caught;
mod faults;
mod finite;
mod gradients;
pub(crate) mod linear;
mod other_data;
mod padded;
mod pieces;
mod precision;
mod racing;
mod resume;
mod starts;
mod traffic;

use super::*;
use crate::metric::{Accuracy, Auc, Metric, Mse, Rmse};
use crate::schedule::{Schedule, ScheduleUnit};
use chacha20::ChaCha8Rng;
use linear::Linear;
use nnz_arrays::formats::Csr;
use nnz_data::{BatchOptions, DataSource, Dataset, LastBatch};
use nnz_optim::{Ftrl, LazyUpdate, Sgd};
use nnz_step::model::Model;
use rand::{RngExt, SeedableRng};
use sparse_core::element::Float;
use std::ops::ControlFlow;

const D: usize = 20;

/// `n` rows of three features each, whose label is `Σ (column + 1) · value + 3`.
pub(crate) fn data<T: Float>(n: usize) -> Dataset<T> {
    let mut random = ChaCha8Rng::seed_from_u64(5);
    let (mut rows, mut labels) = (Vec::new(), Vec::new());
    for _ in 0..n {
        let first = random.random_range(0..D - 2);
        let row: Vec<(usize, T)> =
            [0, 1, 2].map(|k| (first + k, T::of(random.random::<f64>() - 0.5))).to_vec();
        let terms = row.iter().map(|(column, value)| (column + 1) as f64 * value.as_f64());
        labels.push(T::of(terms.sum::<f64>() + 3.0));
        rows.push(row);
    }
    Dataset::new(Csr::from_rows(D, rows).unwrap(), labels).unwrap()
}

fn sgd(learning_rate: f64, momentum: f64) -> Sgd {
    Sgd { learning_rate, momentum, ..Sgd::default() }
}

fn quiet(rule: Sgd) -> Trainer<'static, Sgd> {
    Trainer::new(rule).progress(Progress::Silent)
}

fn fitted(trainer: &mut Trainer<'_, Sgd>, data: &Dataset<f64>) -> (Vec<f64>, FitReport) {
    let mut model = Linear::<f64>::new(D);
    let report = trainer.fit(&mut model, data).unwrap();
    let mut parameters = model.w.values().to_vec();
    parameters.extend(model.b.values());
    (parameters, report)
}

#[test]
fn it_learns_the_weights() {
    let data = data::<f64>(400);
    let mut trainer = quiet(sgd(0.05, 0.9)).epochs(30).metric(Mse).metric(Rmse);
    let (parameters, report) = fitted(&mut trainer, &data);
    for (column, weight) in parameters[..D].iter().enumerate() {
        assert!((weight - (column + 1) as f64).abs() < 1e-6, "{column}: {weight}");
    }
    assert!((parameters[D] - 3.0).abs() < 1e-6);
    assert_eq!(report.epochs.len(), 30);
    assert!(report.epochs[0].loss > 1.0 && report.last().unwrap().loss < 1e-9);
    // The progressive loss of this model is half its mean squared error.
    let first = &report.epochs[0];
    assert!((first.metric("mse").unwrap() - 2.0 * first.loss).abs() < 1e-9 * first.loss);
    assert_eq!(first.metric("rmse").unwrap(), first.metric("mse").unwrap().sqrt());
    assert_eq!((first.n_rows, first.epoch, first.epochs), (400, 0, 30));
    assert!(report.seconds() > 0.0 && !report.stopped);
}

/// Batch sizes 1 and 32, momentum and decay: exact lazy updates and updates of every row are one
/// trajectory.
#[test]
fn exact_and_dense_are_one_trajectory() {
    let data = data::<f64>(300);
    for batch_size in [1, 32] {
        let schedule =
            Schedule::InverseScaling { decay: 0.01, power: 0.5, unit: ScheduleUnit::Step };
        let run = |lazy_update| {
            let rule = Sgd { weight_decay: 0.01, lazy_update, ..sgd(0.05, 0.9) };
            let mut trainer = quiet(rule).batch_size(batch_size).epochs(3);
            trainer = trainer.schedule(schedule.clone());
            fitted(&mut trainer, &data)
        };
        let ((exact, exact_report), (dense, dense_report)) =
            (run(LazyUpdate::Exact), run(LazyUpdate::Dense));
        let (touched, _) = run(LazyUpdate::Touched);
        for (exact, dense) in exact.iter().zip(&dense) {
            assert!((exact - dense).abs() <= 1e-11 * dense.abs().max(1e-3), "{exact} {dense}");
        }
        for (exact, dense) in exact_report.epochs.iter().zip(&dense_report.epochs) {
            assert!((exact.loss - dense.loss).abs() <= 1e-11 * dense.loss);
        }
        assert!(exact.iter().zip(&touched).any(|(a, b)| (a - b).abs() > 1e-4));
    }
}

#[test]
fn what_becomes_of_the_last_rows() {
    let data = data::<f64>(10);
    let rows = |last_batch, epochs| {
        let mut trainer = quiet(sgd(0.01, 0.0)).batch_size(4).epochs(epochs).last_batch(last_batch);
        let (_, report) = fitted(&mut trainer, &data);
        report.epochs.iter().map(|epoch| epoch.n_rows).collect::<Vec<_>>()
    };
    assert_eq!(rows(LastBatch::Short, 2), [10, 10]);
    assert_eq!(rows(LastBatch::Discard, 2), [8, 8]);
    assert_eq!(rows(LastBatch::Pad, 2), [10, 10]); // twelve are learnt from
    assert_eq!(rows(LastBatch::RollOver, 3), [8, 12, 8]);
}

/// Rows that roll over may fill no batch in an epoch, but not in none at all: there would be
/// nothing learnt, and a loss that is no number.
#[test]
fn rows_that_never_fill_a_batch_are_an_error() {
    let fit = |n_rows, epochs, workers: usize| {
        let data = data::<f64>(n_rows);
        let mut model = Linear::<f64>::new(D);
        let mut trainer =
            quiet(sgd(0.01, 0.0)).batch_size(4).epochs(epochs).last_batch(LastBatch::RollOver);
        let report = match workers {
            0 => trainer.fit(&mut model, &data)?,
            _ => trainer.fit_on_threads(&mut model, &data, workers)?,
        };
        Ok::<_, crate::Error>(Vec::from_iter(report.epochs.iter().map(|epoch| epoch.n_rows)))
    };
    for workers in [0, 1, 2] {
        assert_eq!(fit(3, 2, workers).unwrap(), [0, 4], "{workers}");
        let error = fit(3, 1, workers).unwrap_err();
        assert!(matches!(error, crate::Error::Train(TrainError::NoRows)), "{workers}: {error}");
    }
}

/// Rows of padding are learnt from, but not measured.
#[test]
fn padding_is_not_measured() {
    let data = data::<f64>(5);
    let mut report = Vec::new();
    for last_batch in [LastBatch::Short, LastBatch::Pad] {
        let mut trainer = quiet(sgd(1e-300, 0.0)).batch_size(4).epochs(1).last_batch(last_batch);
        trainer = trainer.metric(Mse).shuffle(false);
        report.push(fitted(&mut trainer, &data).1.epochs[0].metric("mse").unwrap());
    }
    assert_eq!(report[0], report[1]);
}

#[test]
fn order_follows_from_the_seed() {
    let data = data::<f64>(50);
    let run = |shuffle, seed| {
        fitted(&mut quiet(sgd(0.1, 0.0)).epochs(2).shuffle(shuffle).seed(seed), &data).0
    };
    assert_eq!(run(true, 3), run(true, 3));
    assert_ne!(run(true, 3), run(true, 4));
    assert_ne!(run(true, 3), run(false, 3));
    assert_eq!(run(false, 3), run(false, 4));
}

#[test]
fn a_run_can_be_continued() {
    let data = data::<f64>(60);
    let schedule = Schedule::Exponential { factor: 0.99, unit: ScheduleUnit::Step };
    let mut trainer = quiet(sgd(0.1, 0.9)).epochs(4).batch_size(7).schedule(schedule);
    let (whole, _) = fitted(&mut trainer, &data);
    let mut model = Linear::<f64>::new(D);
    let mut updater = trainer.updater(&model).unwrap();
    for epochs in [0..1, 1..4] {
        trainer.fit_epochs(&mut model, &mut updater, &data, epochs).unwrap();
    }
    assert_eq!(model.w.values(), &whole[..D]);
}

#[test]
fn the_rate_follows_the_schedule() {
    let data = data::<f64>(10);
    let by_epoch = Schedule::Step { every: 1, factor: 0.5, unit: ScheduleUnit::Epoch };
    let (_, report) = fitted(&mut quiet(sgd(0.08, 0.0)).epochs(3).schedule(by_epoch), &data);
    let rates: Vec<f64> = report.epochs.iter().map(|epoch| epoch.learning_rate).collect();
    assert_eq!(rates, [0.08, 0.04, 0.02]);
    let by_step = Schedule::InverseScaling { decay: 1.0, power: 1.0, unit: ScheduleUnit::Step };
    let (_, report) = fitted(&mut quiet(sgd(0.08, 0.0)).epochs(2).schedule(by_step), &data);
    // Steps 9 and 19 are the last of their epochs.
    let rates: Vec<f64> = report.epochs.iter().map(|epoch| epoch.learning_rate).collect();
    assert_eq!(rates, [0.08 * (1.0 / 10.0), 0.08 * (1.0 / 20.0)]);
}

#[test]
fn evaluation_and_callbacks_see_every_epoch() {
    let (train, test) = (data::<f64>(100), data::<f64>(30));
    let mut seen = Vec::new();
    let mut trainer = quiet(sgd(0.1, 0.0)).epochs(10).metric(Mse).evaluation(&test).callback(
        |report: &EpochReport| {
            seen.push(report.evaluation.clone().unwrap());
            if report.epoch == 2 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        },
    );
    let mut model = Linear::<f64>::new(D);
    let report = trainer.fit(&mut model, &train).unwrap();
    assert!(report.stopped);
    let after = trainer.score(&mut model, &test).unwrap();
    drop(trainer);
    assert_eq!(seen.len(), 3);
    assert_eq!(seen[2], after);
    assert!(seen[2].loss < seen[0].loss);
    let absent: Option<&Dataset<f64>> = None;
    let report = quiet(sgd(0.1, 0.0)).epochs(1).evaluation(absent).fit(&mut model, &train);
    assert_eq!(report.unwrap().epochs[0].evaluation, None);
}

/// The epochs of a run whose loss on the evaluation set is as given, and the best of them.
fn watched(losses: &[f64], patience: u64, min_delta: f64) -> (usize, f64) {
    let (data, file) = (data::<f64>(5), std::env::temp_dir());
    let file = file.join(format!("nnz-best-{}-{patience}-{min_delta}", std::process::id()));
    let mut stopping = EarlyStopping::patience(patience).min_delta(min_delta);
    let mut best = BestModel::new(&file);
    /// Puts the losses into the reports that the others see.
    struct Scripted<'s>(&'s [f64], [&'s mut dyn Callback; 2]);
    impl Callback for Scripted<'_> {
        fn epoch(
            &mut self,
            report: &EpochReport,
            at: &Moment<'_>,
        ) -> crate::Result<ControlFlow<()>> {
            let loss = self.0[report.epoch as usize];
            let report = EpochReport { loss, ..report.clone() };
            let [stopping, best] = &mut self.1;
            let _ = best.epoch(&report, at)?;
            stopping.epoch(&report, at)
        }
    }
    let mut model = Linear::<f64>::new(D);
    // Each epoch moves the bias, so that models of epochs differ.
    let mut trainer = quiet(sgd(0.1, 0.0)).epochs(losses.len() as u64);
    trainer = trainer.callback(Scripted(losses, [&mut stopping, &mut best]));
    let mut biases = Vec::new();
    let mut trainer =
        trainer.callback(Monitor::new(|_, parameters| biases.push(parameters[1].norm)));
    let report = trainer.fit(&mut model, &data).unwrap();
    drop(trainer);
    checkpoint::load(&mut model, &file).unwrap();
    std::fs::remove_file(file).unwrap();
    let best = biases.iter().position(|bias| *bias == model.b.values()[0].abs()).unwrap();
    (report.epochs.len(), losses[best])
}

#[test]
fn early_stopping_and_the_best_model() {
    assert_eq!(watched(&[5.0, 4.0, 4.5, 4.2, 3.0, 2.0], 2, 0.0), (4, 4.0));
    assert_eq!(watched(&[5.0, 4.0, 4.5, 3.5, 3.6, 3.7, 1.0], 2, 0.0), (6, 3.5));
    // Better, but not by as much as is asked for.
    assert_eq!(watched(&[5.0, 4.9, 4.8, 1.0], 2, 0.5), (3, 4.8));
    assert_eq!(watched(&[5.0, 4.0, 3.0], 1, 0.0), (3, 3.0));
    let by_metric = |watch| {
        let stopping = EarlyStopping::patience(1).watch(watch);
        let mut trainer = quiet(sgd(0.05, 0.0)).epochs(6).metric(Mse).callback(stopping);
        let mut model = Linear::<f64>::new(D);
        let fitted = trainer.fit(&mut model, &data::<f64>(50));
        // One that is not measured is told before the first step.
        assert_eq!(fitted.is_ok(), model.b.values()[0] != 0.0);
        fitted.map(|report| report.epochs.len())
    };
    assert_eq!(by_metric(Watch::smallest("mse")).unwrap(), 6);
    assert_eq!(by_metric(Watch::largest("mse")).unwrap(), 2);
    assert_eq!(
        by_metric(Watch::largest("auc")).unwrap_err().to_string(),
        "metric `auc` is watched but not measured (measured: `mse`): give it to `Trainer::metric`"
    );
}

/// Callbacks begin anew with each run of a trainer; pieces of data that are learnt from one after
/// the other are one run.
#[test]
fn a_trainer_is_used_again() {
    let (data, largest) = (data::<f64>(50), || Watch::largest("mse"));
    let file = std::env::temp_dir().join(format!("nnz-again-{}", std::process::id()));
    let mut trainer = quiet(sgd(0.05, 0.0)).epochs(6).metric(Mse);
    trainer = trainer.callback(EarlyStopping::patience(3).watch(largest()));
    trainer = trainer.callback(BestModel::new(&file).watch(largest()));
    let mut seen = Vec::new();
    for _ in 0..2 {
        let (parameters, report) = fitted(&mut trainer, &data);
        let best = std::fs::read(&file).unwrap();
        std::fs::remove_file(&file).unwrap();
        seen.push((parameters, report.epochs.len(), best));
    }
    assert_eq!((seen[0].1, &seen[0]), (4, &seen[1]));
    let mut model = Linear::<f64>::new(D);
    let mut updater = trainer.updater(&model).unwrap();
    for _ in 0..2 {
        trainer.partial_fit(&mut model, &mut updater, &data).unwrap();
    }
    // The best was the last of the run before.
    assert!(!file.exists());
}

#[test]
fn a_rule_of_one_rate_refuses_schedules() {
    let (mut model, data) = (Linear::<f64>::new(D), data::<f64>(5));
    let mut fit = |schedule| {
        let mut trainer = Trainer::new(Ftrl::default()).progress(Progress::Silent).epochs(1);
        trainer = trainer.schedule(schedule);
        trainer.fit(&mut model, &data).map(|report| report.epochs.len())
    };
    assert_eq!(fit(Schedule::Constant).unwrap(), 1);
    let falling = Schedule::Exponential { factor: 0.5, unit: ScheduleUnit::Epoch };
    for schedule in [falling, Schedule::Constant.warm_up(10, ScheduleUnit::Step)] {
        assert_eq!(
            fit(schedule).unwrap_err().to_string(),
            "`ftrl` has no schedule: its states are sums at one learning rate, and it lowers the rate of each weight itself; \
             leave `schedule` at `Constant`"
        );
    }
}

/// Told after 1, 2, 4, … batches of each epoch, and what is told adds up; nothing that is trained
/// depends on it.
#[test]
fn progressive_loss_and_monitor() {
    let data = data::<f64>(20);
    let rule = Sgd { weight_decay: 0.01, ..sgd(0.1, 0.5) };
    let (expected, _) = fitted(&mut quiet(rule.clone()).epochs(2).batch_size(2), &data);
    let (mut lines, mut seen) = (Vec::new(), Vec::new());
    let mut trainer = quiet(rule).epochs(2).batch_size(2);
    trainer = trainer.callback(ProgressiveLoss::doubling().to(|line| lines.push(*line)));
    let monitor = Monitor::new(|at, parameters| seen.push((at, parameters.to_vec())));
    let mut trainer = trainer.callback(monitor.every_batches(4));
    let (parameters, report) = fitted(&mut trainer, &data);
    drop(trainer);
    assert_eq!(parameters, expected);
    let rows: Vec<_> = lines.iter().map(|line| (line.epoch, line.n_rows)).collect();
    assert_eq!(rows, [(0, 2), (0, 4), (0, 8), (0, 16), (1, 2), (1, 4), (1, 8), (1, 16)]);
    let first: f64 =
        lines[..4].iter().zip([2.0, 2.0, 4.0, 8.0]).map(|(l, n)| l.since_last * n).sum();
    assert!((first - 16.0 * lines[3].loss).abs() < 1e-12 * first);
    assert!(lines[4].since_last == lines[4].loss && lines[4].loss < report.epochs[0].loss);
    let line = ProgressiveLine { epoch: 0, n_rows: 8192, loss: 0.412_345, since_last: 0.398_765 };
    let text = "epoch 1        8192 rows  loss 0.412345  since last 0.398765";
    assert_eq!(line.to_string(), text);
    let places: Vec<_> = seen.iter().map(|(at, _)| (at.epoch, at.batch)).collect();
    assert_eq!(places, [(0, 4), (0, 8), (1, 0), (1, 4), (1, 8), (2, 0)]);
    let [w, b] = &seen[5].1[..] else { panic!("{seen:?}") };
    let norm = |values: &[f64]| values.iter().map(|w| w * w).sum::<f64>().sqrt();
    assert_eq!((w.norm, b.norm), (norm(&parameters[..D]), parameters[D].abs()));
    let not_zero = parameters[..D].iter().filter(|w| **w != 0.0).count() as u64;
    assert_eq!((w.name, w.n_rows, w.n_rows_not_zero), ("w", D as u64, not_zero));
    assert_eq!((w.n_rows_touched, b.n_rows_touched), (Some(not_zero), None));
}

/// The mean over the data, whatever the batches.
#[test]
fn scores_and_predictions_do_not_depend_on_batches() {
    let data = data::<f64>(103);
    let mut model = Linear::<f64>::new(D);
    model.w.values_mut().iter_mut().enumerate().for_each(|(i, w)| *w = (i as f64).sin());
    let metrics: Vec<Box<dyn Metric>> = vec![Box::new(Mse)];
    let scores = [1, 7, 103, 1000].map(|size| score(&mut model, &data, &metrics, size).unwrap());
    let predictions = [1, 7, 103, 1000].map(|size| predict(&mut model, &data, size).unwrap());
    for (score, prediction) in scores.iter().zip(&predictions) {
        assert_eq!(score.n_rows, 103);
        assert!((score.loss - scores[0].loss).abs() < 1e-13 * scores[0].loss);
        assert!((score.metric("mse").unwrap() - 2.0 * score.loss).abs() < 1e-12 * score.loss);
        assert_eq!(prediction.shape()[..], [103, 1]);
        assert_eq!(prediction, &predictions[0]);
    }
    let unlabelled = Dataset::features_only(data.features().unwrap().clone()).unwrap();
    assert_eq!(quiet(sgd(0.1, 0.0)).predict(&mut model, &unlabelled).unwrap(), predictions[0]);
    assert!(score(&mut model, &unlabelled, &metrics, 10).is_err());
    assert!(predict(&mut model, &data, 0).is_err());
}

#[test]
fn divergence_ends_training_where_it_happens() {
    let data = data::<f64>(50);
    let mut model = Linear::<f64>::new(D);
    let error = quiet(sgd(1e200, 0.0)).fit(&mut model, &data).unwrap_err();
    let crate::Error::Train(TrainError::Diverged { epoch: 0, batch, loss, learning_rate }) = error
    else {
        panic!("{error}");
    };
    assert!(batch > 0 && batch < 10 && !loss.is_finite() && learning_rate == 1e200);
    let text = error.to_string();
    assert!(text.contains(&format!("in epoch 1, batch {}", batch + 1)), "{text}");
}

#[test]
fn which_parameters_decay() {
    let model = Linear::<f64>::new(D);
    let scales = |trainer: Trainer<'_, Sgd>| -> Vec<f64> {
        let updater = trainer.updater(&model).unwrap();
        updater.parameters().map(|spec| spec.weight_decay_scale).collect()
    };
    assert_eq!(scales(quiet(sgd(0.1, 0.0))), [1.0, 0.0]);
    assert_eq!(scales(quiet(sgd(0.1, 0.0)).decay_all()), [1.0, 1.0]);
    assert_eq!(scales(quiet(sgd(0.1, 0.0)).weight_decay_exempt(["w"])), [0.0, 0.0]);
    let error = quiet(sgd(0.1, 0.0)).weight_decay_exempt(["v"]).updater(&model).unwrap_err();
    assert_eq!(error.to_string(), "model `Linear` has no parameter `v` (it has: w, b)");
}

#[test]
fn what_does_not_fit_is_refused_before_the_first_step() {
    let data = data::<f64>(10);
    let mut model = Linear::<f64>::new(D);
    let mut refused = |mut trainer: Trainer<'_, Sgd>| {
        let error = trainer.fit(&mut model, &data).unwrap_err().to_string();
        assert!(model.w.values().iter().all(|w| *w == 0.0));
        error
    };
    assert!(refused(quiet(sgd(-1.0, 0.0))).contains("`learning_rate` is -1"));
    assert!(refused(quiet(sgd(1.0, 0.0)).batch_size(0)).contains("batch"));
    let schedule = Schedule::Exponential { factor: 0.0, unit: ScheduleUnit::Step };
    assert!(refused(quiet(sgd(1.0, 0.0)).schedule(schedule)).contains("`factor` is 0"));
    let large = quiet(sgd(1.0, 0.0)).batch_size(11).last_batch(LastBatch::Discard);
    assert!(refused(large).contains("no batch of rows"));
    let empty = Dataset::new(Csr::<f64>::zeros(0, D), vec![]).unwrap();
    assert!(quiet(sgd(1.0, 0.0)).score(&mut model, &empty).is_err());
    assert_eq!(predict(&mut model, &empty, 1).unwrap().shape().n_rows(), 0);
}

#[test]
fn predictions_and_metrics_need_a_dense_output() {
    let data = data::<f64>(10);
    let mut model = Linear::<f64, { linear::WITHOUT_OUTPUT }>::new(D);
    let message = |error: crate::Error| error.to_string();
    let error = message(predict(&mut model, &data, 4).unwrap_err());
    assert!(error.starts_with("the first output of model `Linear` must be dense for predictions"));
    let error = message(quiet(sgd(0.1, 0.0)).metric(Mse).fit(&mut model, &data).unwrap_err());
    assert!(error.contains("must be dense for metrics"), "{error}");
    quiet(sgd(0.1, 0.0)).fit(&mut model, &data).unwrap();
}

/// A metric that has no meaning for the outputs ends the epoch; rows that wait are settled all the
/// same.
#[test]
fn an_error_within_an_epoch_leaves_settled_parameters() {
    let data = data::<f64>(40);
    let mut model = Linear::<f64>::new(D);
    let rule = Sgd { weight_decay: 0.1, ..sgd(0.1, 0.9) };
    let mut updater = nnz_step::optimizer::Updater::for_model(rule, &model).unwrap();
    let options = BatchOptions::default();
    let mut batches = data.batches(Linear::<f64>::INPUTS, &options).unwrap();
    struct After(u64);
    impl BatchHook<Linear<f64>> for After {
        fn after_step<'b, B: nnz_data::Batch<'b, f64>>(
            &mut self,
            _: &Linear<f64>,
            _: &B,
            _: f64,
        ) -> crate::Result<()> {
            self.0 -= 1;
            if self.0 == 0 { Err(TrainError::NoRows.into()) } else { Ok(()) }
        }
    }
    let result = fit_epoch(&mut model, &mut updater, &mut batches, 0, &mut After(25));
    assert!(result.is_err());
    let settled = model.w.values().to_vec();
    updater.flush_model(&mut model).unwrap();
    assert_eq!(model.w.values(), settled);
    assert_eq!(updater.clock(), 25);
}

#[test]
fn single_precision_and_binary_metrics() {
    let mut random = ChaCha8Rng::seed_from_u64(6);
    let rows: Vec<Vec<(usize, f32)>> =
        (0..200).map(|_| vec![(random.random_range(0..D), 1.0)]).collect();
    let labels = rows.iter().map(|row| if row[0].0 < D / 2 { 1.0 } else { -1.0 });
    let data = Dataset::new(Csr::from_rows(D, rows.clone()).unwrap(), labels.collect()).unwrap();
    let mut model = Linear::<f32>::new(D);
    let mut trainer = quiet(sgd(0.2, 0.0)).epochs(20).metric(Accuracy).metric(Auc);
    trainer.fit(&mut model, &data).unwrap();
    let report = trainer.score(&mut model, &data).unwrap();
    assert_eq!((report.metric("accuracy"), report.metric("auc")), (Some(1.0), Some(1.0)));
}

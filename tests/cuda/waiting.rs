//! Exact updates of rows that wait for steps without a gradient, against the same on the CPU.

use crate::device::{Count, count, gpu, is_real, limit_memory};
use crate::fused::N_COLS;
use crate::named::{self, Bags, Mixed, Ratings, Sentences, WideDeep};
use crate::uploads::{self, Machine};
use crate::{Logistic, LogisticOff};
use nnz::core::update_rules::UpdateRule;
use nnz::data::{BatchOptions, Batches, DataSource};
use nnz::model::OnGpu;
use nnz::optimizer::Updater;
use nnz::prelude::*;
use nnz::training::{Checkpoints, fit_epoch};

graph! {
    /// An output reads all rows, so that none waits beyond a step.
    model Summed {
        input x: csr[n, d];
        label y: dense[n, 1];
        param w: row_sparse[d, 1] = Normal { mean: 0.0, std: 0.5 };
        loss logistic(dot(x, w), y);
        output total = sum(w);
    }
}

pub(crate) fn rule() -> Sgd {
    Sgd { learning_rate: 0.1, momentum: 0.8, weight_decay: 0.05, ..Sgd::default() }
}

pub(crate) fn schedule() -> Schedule {
    Schedule::InverseScaling { decay: 0.1, power: 1.0, unit: ScheduleUnit::Step }
}

pub(crate) fn trainer<R: UpdateRule>(rule: R) -> Trainer<'static, R> {
    Trainer::new(rule).batch_size(12).epochs(3).seed(5).decay_all().progress(Progress::Silent)
}

pub(crate) fn values<M: Model>(model: &M) -> Vec<f64> {
    let parameters = model.parameters();
    let values = parameters.iter().flat_map(|of| of.values().iter());
    values.map(|value| nnz::core::element::Float::as_f64(*value)).collect()
}

pub(crate) fn close(found: &[f64], expected: &[f64], tolerance: f64, what: &str) {
    assert_eq!(found.len(), expected.len());
    for (found, expected) in found.iter().zip(expected) {
        let bound = tolerance * expected.abs().max(1.0);
        assert!((found - expected).abs() <= bound, "{what}: {found} {expected}");
    }
}

/// Trains on both devices, at a rate that stays and at one that changes with every step.
fn hold<M: Model<Element = f32>, R: UpdateRule>(host: &M, data: &Dataset, rule: &R) {
    for schedule in [Schedule::Constant, schedule()] {
        let (mut host, mut there) = (host.clone(), OnGpu::try_new(host, &gpu()).unwrap());
        let mut again = there.clone();
        let batch_size = data.n_rows().div_ceil(13);
        let trainer = || trainer(rule.clone()).schedule(schedule.clone()).batch_size(batch_size);
        let expected = trainer().fit(&mut host, data).unwrap();
        let found = trainer().fit(&mut there, data).unwrap();
        for (found, expected) in found.epochs.iter().zip(&expected.epochs) {
            assert!((found.loss - expected.loss).abs() < 1e-4, "{found:?} {expected:?}");
        }
        close(&values(&there), &values(&host), 1e-4, M::NAME);
        trainer().fit(&mut again, data).unwrap();
        assert_eq!(values(&again), values(&there), "the same bits again");
    }
}

#[test]
fn models_are_trained_as_on_the_cpu() {
    let (data, d) = (uploads::data(), uploads::COLUMNS);
    hold(&Logistic::new(dims! { d: d }, Seed(3)).unwrap(), &data, &rule());
    hold(&Machine::new(dims! { d: d, k: 4 }, Seed(3)).unwrap(), &data, &rule());
    hold(&WideDeep::new(named::sizes::<WideDeep>(d), Seed(3)).unwrap(), &data, &rule());
    let ratings = Ratings::new(named::sizes::<Ratings>(d), Seed(3)).unwrap();
    hold(&ratings, &named::rated(150), &rule());
    let l1 = AdaGrad { learning_rate: 0.1, l1: 0.01, ..AdaGrad::default() };
    hold(&Bags::new(named::sizes::<Bags>(N_COLS), Seed(3)).unwrap(), &named::data(), &l1);
}

#[test]
fn steps_that_make_their_gradients_settle_rows_as_well() {
    let (data, d) = (uploads::data(), uploads::COLUMNS);
    hold(&LogisticOff::new(dims! { d: d }, Seed(3)).unwrap(), &data, &rule());
    hold(&Summed::new(dims! { d: d }, Seed(3)).unwrap(), &data, &rule());
    let data = named::data();
    // Products of rows of tables.
    let slow = Sgd { learning_rate: 0.005, ..rule() };
    hold(&Mixed::new(named::sizes::<Mixed>(N_COLS), Seed(3)).unwrap(), &data, &slow);
    hold(&Sentences::new(named::sizes::<Sentences>(N_COLS), Seed(3)).unwrap(), &data, &slow);
}

/// Steps of rows that wait are graphs and wait for nothing, as others.
#[test]
fn such_a_step_waits_for_nothing_and_is_a_graph() {
    if is_real() {
        return;
    }
    let data = uploads::data();
    let host = Logistic::new(dims! { d: uploads::COLUMNS }, Seed(3)).unwrap();
    let mut there = OnGpu::new(&host, &gpu()).unwrap();
    let mut updater = Updater::for_model(rule(), &there).unwrap();
    updater.set_records_outputs(false);
    let options = BatchOptions { batch_size: 8, ..BatchOptions::default() };
    let mut batches = data.batches(Logistic::INPUTS, &options).unwrap();
    let counts = || {
        [Count::StreamWaits, Count::EventWaits, Count::Launches, Count::GraphLaunches].map(count)
    };
    let mut steps = Vec::new();
    while let Some(batch) = batches.next_batch().unwrap() {
        let batch = there.bind(&batch).unwrap();
        there.take_batch(&batch).unwrap();
        let before = counts();
        there.begin_step_on_taken(&mut updater, None, |_| ()).unwrap();
        let after = counts();
        steps.push([0, 1, 2, 3].map(|of| after[of] - before[of]));
    }
    assert!(steps.iter().all(|[stream, event, ..]| [stream, event] == [&0, &0]), "{steps:?}");
    assert!(
        steps[6..16].iter().all(|[.., launches, graphs]| [launches, graphs] == [&0, &2]),
        "{steps:?}"
    );
}

/// A run that is saved within epochs and resumed has the bits of one that is not ended, rows that
/// wait and all.
#[test]
fn a_run_is_resumed_within_an_epoch_to_the_bit() {
    let data = uploads::data();
    let host = Logistic::new(dims! { d: uploads::COLUMNS }, Seed(3)).unwrap();
    let path = std::env::temp_dir().join(format!("nnz-waiting-{}.safetensors", std::process::id()));
    let trainer = || trainer(rule()).schedule(schedule());
    let mut whole = OnGpu::new(&host, &gpu()).unwrap();
    // Saved as often, and never ended.
    let saves = || Checkpoints::new(&path).every_batches(5);
    trainer().callback(saves()).fit(&mut whole, &data).unwrap();
    let mut part = OnGpu::new(&host, &gpu()).unwrap();
    trainer().callback(saves()).callback(StopAfter(5)).fit(&mut part, &data).unwrap();
    let mut resumed = OnGpu::new(&host, &gpu()).unwrap();
    trainer().callback(saves()).resume(&mut resumed, &data, &path).unwrap();
    assert_eq!(values(&resumed), values(&whole));
    // The host goes on with what a GPU has saved.
    let mut part = OnGpu::new(&host, &gpu()).unwrap();
    trainer().callback(saves()).callback(StopAfter(5)).fit(&mut part, &data).unwrap();
    let mut on_host = host.clone();
    trainer().resume(&mut on_host, &data, &path).unwrap();
    close(&values(&on_host), &values(&whole), 1e-4, "resumed on the host");
    std::fs::remove_file(&path).unwrap();
}

/// Ends a run after so many batches of its first epoch.
pub(crate) struct StopAfter(pub(crate) u64);

impl nnz::training::Callback for StopAfter {
    fn next_batch(&self, n_batches: u64) -> Option<u64> {
        (n_batches < self.0).then_some(self.0)
    }

    fn batch(&mut self, _: &nnz::training::Moment<'_>) -> nnz::Result<std::ops::ControlFlow<()>> {
        Ok(std::ops::ControlFlow::Break(()))
    }
}

/// Parameters that are asked for within an epoch come back with what their rows wait for.
#[test]
fn weights_that_are_looked_at_within_an_epoch_go_on_waiting() {
    let data = uploads::data();
    let host = Logistic::new(dims! { d: uploads::COLUMNS }, Seed(3)).unwrap();
    let run = |looks: bool| {
        let mut there = OnGpu::new(&host, &gpu()).unwrap();
        let mut updater = Updater::for_model(rule(), &there).unwrap();
        let options = BatchOptions { batch_size: 8, ..BatchOptions::default() };
        let mut batches = data.batches(Logistic::INPUTS, &options).unwrap();
        let mut step = 0;
        while let Some(batch) = batches.next_batch().unwrap() {
            let batch = there.bind(&batch).unwrap();
            there.train_step(&batch, &mut updater).unwrap();
            step += 1;
            if looks && step % 4 == 0 {
                assert!(there.parameters_mut()[0].values_mut().iter().any(|w| *w != 0.0));
            }
        }
        if looks {
            // Weights are on the host already, and states are not.
            there.parameters_mut();
        }
        updater.flush_model(&mut there).unwrap();
        values(&there)
    };
    assert_eq!(run(true), run(false));
}

/// A step that lacks memory has brought rows up to date already, which changes nothing of what
/// comes after it.
#[test]
fn a_step_that_fails_leaves_rows_as_they_wait() {
    if is_real() {
        return;
    }
    let data = uploads::data();
    let host = Logistic::new(dims! { d: uploads::COLUMNS }, Seed(3)).unwrap();
    let run = |fails: bool| {
        let mut there = OnGpu::new(&host, &gpu()).unwrap();
        let mut updater = Updater::for_model(rule(), &there).unwrap();
        let of_size = |batch_size| BatchOptions { batch_size, ..BatchOptions::default() };
        let mut batches = data.batches(Logistic::INPUTS, &of_size(8)).unwrap();
        for _ in 0..6 {
            let batch = batches.next_batch().unwrap().unwrap();
            let batch = there.bind(&batch).unwrap();
            there.train_step(&batch, &mut updater).unwrap();
        }
        if fails {
            updater.flush_model(&mut there).unwrap();
            let mut large = data.batches(Logistic::INPUTS, &of_size(100)).unwrap();
            let large = large.next_batch().unwrap().unwrap();
            let batch = there.bind(&large).unwrap();
            // There is room for the batch.
            there.forward(&batch).unwrap();
            there.forward(&batch).unwrap();
            let small = batches.next_batch().unwrap().unwrap();
            there.train_step(&there.bind(&small).unwrap(), &mut updater).unwrap();
            // Weights that were looked at are on either device when the step begins.
            there.parameters_mut();
            // For its entries, but not for where their columns end.
            limit_memory(4 * batch.x.nnz());
            let error = there.train_step(&batch, &mut updater).unwrap_err();
            limit_memory(usize::MAX);
            assert!(matches!(error, nnz::model::Error::Cuda(_)), "{error}");
        } else {
            let small = batches.next_batch().unwrap().unwrap();
            there.train_step(&there.bind(&small).unwrap(), &mut updater).unwrap();
        }
        updater.flush_model(&mut there).unwrap();
        values(&there)
    };
    close(&run(true), &run(false), 1e-6, "after a step that failed");
}

/// A flush ends an epoch by hand as it does that of a trainer.
#[test]
fn an_epoch_leaves_no_row_waiting() {
    let data = uploads::data();
    let host = Logistic::new(dims! { d: uploads::COLUMNS }, Seed(3)).unwrap();
    let mut there = OnGpu::new(&host, &gpu()).unwrap();
    let mut updater = Updater::for_model(rule(), &there).unwrap();
    let options = BatchOptions { batch_size: 8, ..BatchOptions::default() };
    for epoch in 0..2 {
        let mut batches = data.batches(Logistic::INPUTS, &options).unwrap();
        fit_epoch(&mut there, &mut updater, &mut batches, epoch, &mut ()).unwrap();
        assert!(updater.is_settled());
    }
}

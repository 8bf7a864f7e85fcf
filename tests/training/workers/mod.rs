//! Training by several workers has the bits of training by one, and ends when one of them does.

mod resume;
mod steps;

use nnz::core::update_rules::UpdateRule;
use nnz::data::{BatchOptions, DataError, DataSource, DatasetBatches};
use nnz::model::InputInfo;
use nnz::prelude::*;
use nnz::store::{OneProcess, StoreError, Threads};
use nnz::training::{EpochReport, Monitor, TrainError};
use std::ops::ControlFlow;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread::{self, ThreadId};

graph! {
    /// Tables that are read by rows, one that is read whole, and a frozen one.
    model Machine {
        dtype = f64;
        input x: csr[n, d];
        label y: dense[n, 1];
        param w: row_sparse[d, 1] = Zeros;
        param v: row_sparse[d, 3] = Normal { mean: 0.0, std: 0.1 };
        param h: dense[1, 2] = Normal { mean: 0.0, std: 0.5 };
        param(frozen) shift: dense[1] = Constant(0.25);
        let score = dot(x, w) + pairwise_interaction(x, v) + shift;
        let hidden = tanh(dot(score, h));
        loss logistic(score + sum(hidden, axis = 1, keepdims = true), y);
        output probability = sigmoid(score);
    }

    /// A state that follows from whole batches.
    model Centred {
        input x: csr[n, d];
        label y: dense[n, 1];
        state mean: dense[1] = Zeros;
        param w: row_sparse[d, 1] = Zeros;
        let score = dot(x, w);
        update mean = 0.9 * mean + 0.1 * sum(score, axis = 0);
        loss logistic(score - mean, y);
        output score;
    }
}

const D: usize = 300;

/// Rows of six columns each, and labels.
fn data() -> Dataset<f64> {
    let mut text = String::new();
    // The last batch of 16 is short, and has fewer rows than there are leaves.
    for row in 0..101usize {
        text += if row * 7 % 5 < 2 { "1" } else { "0" };
        let mut columns: Vec<_> = (0..6).map(|k| (row * row + 17 * k + k * k) % D).collect();
        columns.sort_unstable();
        columns.dedup();
        for column in columns {
            text += &format!(" {column}:{}", ((row + column) as f64 * 0.37).sin());
        }
        text.push('\n');
    }
    libsvm::Reader::new()
        .element::<f64>()
        .n_features(D)
        .read_bytes("rows", text.as_bytes())
        .unwrap()
}

fn machine() -> Machine {
    Machine::new(dims! { d: D }, Seed(3)).unwrap()
}

fn trainer<R: UpdateRule>(rule: R) -> Trainer<'static, R> {
    Trainer::new(rule).batch_size(16).epochs(3).seed(5).progress(Progress::Silent)
}

fn values(model: &Machine) -> Vec<f64> {
    model.parameters().iter().flat_map(|parameter| parameter.values().to_vec()).collect()
}

fn bits(values: &[f64]) -> Vec<u64> {
    values.iter().map(|value| value.to_bits()).collect()
}

/// One worker and several, one process, and the trainer without workers.
fn is_the_same_on_any_number_of_workers<R: UpdateRule>(
    rule: R,
    epochs: u64,
    clip_norm: Option<f64>,
) {
    let data = data();
    let unit = ScheduleUnit::Step;
    let schedule = || Schedule::InverseScaling { decay: 0.1, power: 0.5, unit };
    let run = |fit: &dyn Fn(&mut Trainer<'static, R>, &mut Machine) -> f64| {
        let mut model = machine();
        let trainer = trainer(rule.clone()).epochs(epochs).schedule(schedule());
        let mut trainer = trainer.clip_norm(clip_norm);
        let loss = fit(&mut trainer, &mut model);
        (values(&model), loss)
    };
    let (expected, loss) = run(&|trainer, model| {
        trainer.fit_as_worker(model, &data, OneProcess).unwrap().last().unwrap().loss
    });
    for n_workers in [1, 3, 8] {
        let (found, its_loss) = run(&|trainer, model| {
            trainer.fit_on_threads(model, &data, n_workers).unwrap().last().unwrap().loss
        });
        assert_eq!(bits(&found), bits(&expected), "{} on {n_workers} workers", R::NAME);
        assert_eq!(its_loss.to_bits(), loss.to_bits());
    }
    let (alone, its_loss) =
        run(&|trainer, model| trainer.fit(model, &data).unwrap().last().unwrap().loss);
    let furthest = (distances(&alone, &expected)).fold(0.0, f64::max);
    assert!(furthest < 1e-10, "{}: {furthest} from training without workers", R::NAME);
    assert!((its_loss - loss).abs() < 1e-10);
    assert!(distances(&values(&machine()), &expected).any(|moved| moved > 1e-2));
}

fn distances<'a>(found: &'a [f64], expected: &'a [f64]) -> impl Iterator<Item = f64> + 'a {
    found.iter().zip(expected).map(|(found, expected)| (found - expected).abs())
}

#[test]
fn training_is_the_same_on_any_number_of_workers() {
    let rule = Sgd { learning_rate: 0.2, momentum: 0.9, weight_decay: 0.01, ..Sgd::default() };
    is_the_same_on_any_number_of_workers(rule.clone(), 3, None);
    // Of some steps the norm is above it, of others below.
    is_the_same_on_any_number_of_workers(rule.clone(), 3, Some(0.1));
    // Three epochs with one snapshot, then another.
    is_the_same_on_any_number_of_workers(Svrg { update_freq: 3, rule }, 4, None);
}

#[test]
fn worker_0_evaluates_and_callbacks_end_the_run() {
    let data = data();
    let mut model = machine();
    let mut trainer =
        trainer(AdaGrad::default()).epochs(9).metric(LogLoss).evaluation(&data).callback(
            |report: &EpochReport| match report.epoch {
                0 => ControlFlow::Continue(()),
                _ => ControlFlow::Break(()),
            },
        );
    let report = trainer.fit_on_threads(&mut model, &data, 2).unwrap();
    assert_eq!((report.epochs.len(), report.stopped), (2, true));
    let evaluation = report.last().unwrap().evaluation.clone().unwrap();
    assert_eq!(evaluation, trainer.score(&mut model, &data).unwrap());
    assert_eq!(evaluation.n_rows, 101);
}

/// Data that only one worker cannot read: the calling thread, or one of the others.
struct Fails<'d> {
    data: &'d Dataset<f64>,
    caller: ThreadId,
    fails_caller: bool,
    failures: AtomicUsize,
    panics: bool,
}

impl<'d> Fails<'d> {
    fn new(data: &'d Dataset<f64>, fails_caller: bool, panics: bool) -> Self {
        let caller = thread::current().id();
        Fails { data, caller, fails_caller, failures: AtomicUsize::new(0), panics }
    }
}

impl DataSource<f64> for Fails<'_> {
    type Batches<'s>
        = DatasetBatches<'s, f64>
    where
        Self: 's;

    fn n_rows(&self) -> Option<usize> {
        DataSource::n_rows(self.data)
    }

    fn batches<'s>(
        &'s self,
        inputs: &[InputInfo],
        options: &BatchOptions,
    ) -> nnz::data::Result<DatasetBatches<'s, f64>> {
        let is_chosen = (thread::current().id() == self.caller) == self.fails_caller;
        let fails = is_chosen && self.failures.fetch_add(1, Ordering::Relaxed) == 0;
        if fails && self.panics {
            panic!("no such disk");
        } else if fails {
            Err(DataError::ZeroBatchSize.into())
        } else {
            self.data.batches(inputs, options)
        }
    }
}

#[test]
fn a_worker_that_fails_or_panics_ends_the_run_with_its_own_error() {
    let data = data();
    for (fails_caller, panics) in [(false, false), (false, true), (true, false)] {
        let source = Fails::new(&data, fails_caller, panics);
        let mut model = machine();
        match trainer(Sgd::default()).fit_on_threads(&mut model, &source, 3).unwrap_err() {
            Error::Data(DataError::ZeroBatchSize) if !panics => {}
            Error::Store(StoreError::Panicked { message, .. }) if panics => {
                assert_eq!(message, "no such disk");
            }
            other => panic!("{other}"),
        }
    }
}

#[test]
fn a_panic_on_the_calling_thread_goes_on_there_once_the_others_have_ended() {
    let data = data();
    let source = Fails::new(&data, true, true);
    let mut model = machine();
    let run = || trainer(Sgd::default()).fit_on_threads(&mut model, &source, 3).map(|_| ());
    let panic = catch_unwind(AssertUnwindSafe(run)).unwrap_err();
    assert_eq!(panic.downcast_ref::<&str>(), Some(&"no such disk"));
}

#[test]
fn what_workers_cannot_do_is_refused() {
    let data = data();
    let what = |result: nnz::Result<_>| match result.map(|_: nnz::training::FitReport| ()) {
        Err(Error::Train(TrainError::NotOnWorkers { what, .. })) => what,
        other => panic!("{other:?}"),
    };
    let mut model = machine();
    let svrg = Svrg { update_freq: 1, rule: Sgd::default() };
    let clipped = trainer(svrg).clip_norm(1.0).fit_on_threads(&mut model, &data, 2);
    assert!(matches!(clipped, Err(Error::Train(TrainError::ClipCorrected { rule: "svrg" }))));
    let clipped = trainer(Sgd::default()).clip_norm(-1.0).fit_on_threads(&mut model, &data, 2);
    assert!(matches!(clipped, Err(Error::Train(TrainError::ClipNorm { value: -1.0 }))));
    let monitor = Monitor::new(|_, _| {}).every_batches(2).gradients();
    let watched = trainer(Sgd::default()).callback(monitor);
    assert_eq!(
        what({ watched }.fit_on_threads(&mut model, &data, 2)),
        "a callback that sees gradients"
    );
    let saga = Saga { rule: Sgd::default() };
    assert_eq!(what(trainer(saga).fit_as_worker(&mut model, &data, OneProcess)), "saga");
    let mut centred = Centred::new(dims! { d: D }, Seed(1)).unwrap();
    let narrow = nnz::data::synthetic::click_log(20, D, 6, 1).unwrap();
    assert_eq!(what(trainer(Sgd::default()).fit_on_threads(&mut centred, &narrow, 2)), "Centred");
    let leaves = trainer(Sgd::default()).leaves(6).fit_on_threads(&mut model, &data, 2);
    assert!(matches!(leaves, Err(Error::Store(StoreError::LeafCount { found: 6 }))));
    let none = trainer(Sgd::default()).fit_on_threads(&mut model, &data, 0);
    assert!(matches!(none, Err(Error::Store(StoreError::Communicator(_)))));
    assert!(Threads::group(0).is_err());
}

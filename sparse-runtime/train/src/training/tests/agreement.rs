//! Workers that disagree in any setting end before the first step, with the setting's name.

use super::linear::Linear;
use super::*;
use crate::error::{Error, Result};
use crate::store::{Communicator, CommunicatorError, OneProcess, Parcels, StoreError, Threads};
use nnz_data::DatasetBatches;
use nnz_optim::{AdaGrad, Svrg, UpdateRule};
use nnz_step::model::InputInfo;
use std::collections::BTreeSet;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::thread;

type SgdTrainer = Trainer<'static, Sgd>;

fn trainer() -> SgdTrainer {
    quiet(sgd(0.05, 0.5)).batch_size(8).epochs(2).seed(1).setting("made by", "hand")
}

fn fit<R: UpdateRule>(mut trainer: Trainer<'_, R>, end: impl Communicator) -> Result<FitReport> {
    trainer.fit_as_worker(&mut Linear::<f64>::new(D), &data::<f64>(40), end)
}

/// The setting in which worker 1 of two differs, its value there and that of worker 0: both say so.
fn difference(
    first: impl FnOnce(Threads) -> Result<FitReport> + Send,
    second: impl FnOnce(Threads) -> Result<FitReport> + Send,
) -> [String; 3] {
    let [one, other] = <[Threads; 2]>::try_from(Threads::group(2).unwrap()).unwrap();
    let results = thread::scope(|scope| {
        let workers =
            [scope.spawn(|| first(one).map(|_| ())), scope.spawn(|| second(other).map(|_| ()))];
        workers.map(|worker| worker.join().unwrap())
    });
    let [first, second] = results.map(|result| match result {
        Err(Error::Store(StoreError::Disagreement { rank: 1, name, found, expected })) => {
            [name, found, expected]
        }
        other => panic!("{other:?}"),
    });
    assert_eq!(first, second);
    first
}

/// A change of a trainer, with the setting that it changes and its value, at worker 1 and 0.
type Case = ([&'static str; 3], fn(SgdTrainer) -> SgdTrainer);

fn with_rule(mut trainer: SgdTrainer, change: impl FnOnce(&mut Sgd)) -> SgdTrainer {
    change(&mut trainer.rule);
    trainer
}

const CASES: [Case; 22] = [
    (["learning_rate", "0.15", "0.05"], |t| with_rule(t, |rule| rule.learning_rate = 0.15)),
    (["momentum", "0.25", "0.5"], |t| with_rule(t, |rule| rule.momentum = 0.25)),
    (["nesterov", "1.0", "0.0"], |t| with_rule(t, |rule| rule.nesterov = true)),
    (["weight_decay", "0.1", "0.0"], |t| with_rule(t, |rule| rule.weight_decay = 0.1)),
    (["clip_gradient", "0.5", "none"], |t| with_rule(t, |rule| rule.clip_gradient = Some(0.5))),
    (["rescale_grad", "0.5", "1.0"], |t| with_rule(t, |rule| rule.rescale_grad = 0.5)),
    (["lazy_update", "Touched", "Exact"], |t| {
        with_rule(t, |rule| rule.lazy_update = LazyUpdate::Touched)
    }),
    (["weight_decay_scale of w", "0.5", "1.0"], |t| t.weight_decay_scale("w", 0.5)),
    (["weight_decay_scale of b", "0.5", "0.0"], |t| t.weight_decay_scale("b", 0.5)),
    (["learning_rate_scale of w", "0.5", "1.0"], |t| t.learning_rate_scale("w", 0.5)),
    (["learning_rate_scale of b", "0.5", "1.0"], |t| t.learning_rate_scale("b", 0.5)),
    (["epochs", "3", "2"], |t| t.epochs(3)),
    (["batch_size", "10", "8"], |t| t.batch_size(10)),
    (["last_batch", "Discard", "Short"], |t| t.last_batch(LastBatch::Discard)),
    (["order", "Shuffled { seed: 2 }", "Shuffled { seed: 1 }"], |t| t.seed(2)),
    (["order", "Sequential", "Shuffled { seed: 1 }"], |t| t.shuffle(false)),
    (["schedule", "", "Constant"], |t| {
        let unit = ScheduleUnit::Epoch;
        t.schedule(Schedule::InverseScaling { decay: 0.1, power: 0.5, unit })
    }),
    (["clip_norm", "Some(1.0)", "None"], |t| t.clip_norm(1.0)),
    (["leaves", "16", "8"], |t| t.leaves(16)),
    (["made by", "machine", "hand"], |mut t| {
        t.config.more_settings.clear();
        t.setting("made by", "machine")
    }),
    (["made by", "none", "hand"], |mut t| {
        t.config.more_settings.clear();
        t
    }),
    (["more", "1", "none"], |t| t.setting("more", "1")),
];

#[test]
fn each_setting_of_a_trainer_in_which_a_worker_differs_is_named() {
    for ([name, found, expected], change) in CASES {
        let seen = difference(|end| fit(trainer(), end), |end| fit(change(trainer()), end));
        let [its_name, its_value, first_value] = &seen;
        assert_eq!((&its_name[..], &first_value[..]), (name, expected));
        // The value of a schedule is as long as its text.
        assert!(*its_value == found || found.is_empty(), "{seen:?}");
    }
}

/// What no trainer sets: the settings of rules, models and data.
fn differences_of_others() -> Vec<[String; 3]> {
    let first = || |end: Threads| fit(trainer(), end);
    let on = |data: Dataset<f64>| {
        move |end: Threads| trainer().fit_as_worker(&mut Linear::<f64>::new(D), &data, end)
    };
    vec![
        difference(first(), |end| {
            let adagrad = Trainer::new(AdaGrad::default()).progress(Progress::Silent);
            fit(adagrad.batch_size(8).epochs(2).seed(1), end)
        }),
        difference(|end| fit(svrg(1), end), |end| fit(svrg(2), end)),
        difference(first(), |end| {
            let mut model = Linear::<f64, 7>::new(D);
            trainer().fit_as_worker(&mut model, &data::<f64>(40), end)
        }),
        difference(first(), |end| {
            let mut model = Linear::<f32>::new(D);
            trainer().fit_as_worker(&mut model, &data::<f32>(40), end)
        }),
        difference(first(), |end| {
            let mut model = Linear::<f64>::new(D + 1);
            trainer().fit_as_worker(&mut model, &data::<f64>(40), end)
        }),
        difference(first(), |end| {
            let mut model = Linear::<f64>::new(D);
            model.w.values_mut()[3] = 0.5;
            trainer().fit_as_worker(&mut model, &data::<f64>(40), end)
        }),
        difference(first(), |end| {
            let mut model = Linear::<f64>::new(D);
            model.b.values_mut()[0] = -0.0;
            trainer().fit_as_worker(&mut model, &data::<f64>(40), end)
        }),
        difference(first(), on(data(41))),
        difference(first(), on(other_label())),
    ]
}

fn svrg(update_freq: u64) -> Trainer<'static, Svrg<Sgd>> {
    Trainer::new(Svrg { update_freq, rule: sgd(0.05, 0.0) }).progress(Progress::Silent)
}

/// As many samples as the others have, one label of which is another.
fn other_label() -> Dataset<f64> {
    let data = data::<f64>(40);
    let mut labels: Vec<f64> = (0..40).map(f64::from).collect();
    labels[7] += 0.5;
    Dataset::new(data.features().unwrap().clone(), labels).unwrap()
}

#[test]
fn rules_models_and_data_in_which_a_worker_differs_are_named() {
    let seen = differences_of_others();
    let names = seen.iter().map(|[name, ..]| &name[..]);
    let expected = [
        "rule",
        "variance_reduction",
        "fingerprint of the graph",
        "element type",
        "dimension d",
        "initial values of w",
        "initial values of b",
        "rows of the data",
        "fingerprint of the data",
    ];
    assert_eq!(Vec::from_iter(names), expected);
    assert_eq!(seen[0][1..], ["adagrad", "sgd"]);
    assert_eq!(seen[4][1..], ["21", "20"]);
    assert_eq!(seen[7][1..], ["41", "40"]);
}

/// A communicator of two that keeps what its first exchange would send.
#[derive(Default)]
struct Spy {
    sent: Vec<u8>,
}

impl Communicator for Spy {
    fn rank(&self) -> usize {
        0
    }

    fn size(&self) -> usize {
        2
    }

    fn exchange(
        &mut self,
        outgoing: &mut Parcels,
        _: &mut Parcels,
    ) -> Result<(), CommunicatorError> {
        self.sent = outgoing.iter().next().unwrap().to_vec();
        Err(CommunicatorError::PeerLost { rank: 1, here: 0 })
    }
}

/// The tests above change each setting on which workers agree, except for the version of the
/// library, the name of a model of the same graph, and `l1`, which is not for momentum. A run that
/// starts elsewhere is below.
#[test]
fn no_setting_is_left_out_of_these_tests() {
    let mut spy = Spy::default();
    assert!(fit(trainer(), &mut spy).is_err());
    let settings: Vec<(String, String)> = serde_json::from_slice(&spy.sent[8..]).unwrap();
    let others = ["version of nnz", "model", "l1", "first batch"];
    let changed = CASES.iter().map(|([name, ..], _)| (*name).to_owned());
    let changed = changed.chain(differences_of_others().into_iter().map(|[name, ..]| name));
    let tested: BTreeSet<String> = changed.chain(others.map(str::to_owned)).collect();
    for (name, value) in settings {
        assert!(tested.contains(&name), "`{name}` = {value}");
    }
}

#[test]
fn a_worker_that_resumes_and_one_that_begins_disagree() {
    let file = super::resume::File::new("disagree");
    let mut first = trainer().callback(Checkpoints::new(&file.0));
    first.fit_on_threads(&mut Linear::<f64>::new(D), &data::<f64>(40), 2).unwrap();
    let [name, found, expected] = difference(
        |end| fit(trainer().epochs(3), end),
        |end| {
            let mut model = Linear::<f64>::new(D);
            trainer().epochs(3).resume_as_worker(&mut model, &data::<f64>(40), end, &file.0)
        },
    );
    assert_eq!([&name[..], &found, &expected], ["first batch", "0 of epoch 2", "0 of epoch 0"]);
}

#[test]
fn one_group_has_several_runs() {
    let mut end = OneProcess;
    let first = fit(trainer(), &mut end).unwrap();
    let again = fit(trainer(), &mut end).unwrap();
    assert_eq!(first.last().unwrap().loss, again.last().unwrap().loss);
    let runs = |end: Threads| {
        let mut end = end;
        fit(trainer(), &mut end)?;
        fit(trainer(), &mut end)
    };
    thread::scope(|scope| {
        let workers: Vec<_> = Threads::group(3)
            .unwrap()
            .into_iter()
            .map(|end| scope.spawn(move || runs(end).map(|_| ())))
            .collect();
        workers.into_iter().for_each(|worker| worker.join().unwrap().unwrap());
    });
}

/// Data that panics where it is to be read.
struct Panicking(Dataset<f64>);

impl DataSource<f64> for Panicking {
    type Batches<'s> = DatasetBatches<'s, f64>;

    fn n_rows(&self) -> Option<usize> {
        DataSource::n_rows(&self.0)
    }

    fn fingerprint(&self) -> nnz_data::Result<Option<u64>> {
        self.0.fingerprint()
    }

    fn batches<'s>(
        &'s self,
        _: &[InputInfo],
        _: &BatchOptions,
    ) -> nnz_data::Result<DatasetBatches<'s, f64>> {
        panic!("no such disk")
    }
}

/// The error of worker 0 of two where `fails` is worker 1, whose end is kept beyond it.
fn error_of_the_other(fails: impl FnOnce(&mut Threads) + Send) -> String {
    let [mut first, mut second] = <[Threads; 2]>::try_from(Threads::group(2).unwrap()).unwrap();
    thread::scope(|scope| {
        let failing = scope.spawn(move || {
            fails(&mut second);
            second
        });
        let error = fit(trainer(), &mut first).unwrap_err().to_string();
        drop(failing.join());
        error
    })
}

#[test]
fn a_failure_of_one_worker_is_the_error_of_the_others() {
    let refused = fit(trainer().clip_norm(-1.0), OneProcess).unwrap_err().to_string();
    let error = error_of_the_other(|end| {
        assert!(fit(trainer().clip_norm(-1.0), end).is_err());
    });
    assert!(error.starts_with("worker 1 has failed") && error.contains(&refused), "{error}");
}

#[test]
fn a_panic_of_one_worker_is_the_error_of_the_others_and_goes_on() {
    let error = error_of_the_other(|end| {
        let data = Panicking(data(40));
        let mut model = Linear::<f64>::new(D);
        let run = AssertUnwindSafe(|| trainer().fit_as_worker(&mut model, &data, end).is_err());
        let panic = catch_unwind(run).unwrap_err();
        assert_eq!(panic.downcast_ref::<&str>(), Some(&"no such disk"));
    });
    let expected = "worker 1 has panicked: no such disk";
    assert!(error.starts_with("worker 1 has failed") && error.contains(expected), "{error}");
}

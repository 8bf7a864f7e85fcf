//! The worker of a job: trains models, with an accident if its arguments say so.

use nnz::core::update_rules::UpdateRule;
use nnz::data::synthetic;
use nnz::prelude::*;
use nnz::store::{
    Communicator, CommunicatorError, Deadlines, Outcome, Parcels, StoreError, Waiting,
};
use nnz::training::{Checkpoints, EpochReport};
use nnz_mpi::Group;
use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::process::ExitCode;
use std::thread;
use std::time::Duration;

/// The first argument of a worker.
pub(crate) const WORD: &str = "worker";

graph! {
    model Clicks {
        input x: csr<unit>[n, d];
        label y: dense[n, 1];
        param w: row_sparse[d, 1] = Zeros;
        let score = dot(x, w);
        loss logistic(score, y);
        output probability = sigmoid(score);
    }

    /// Tables that are read by rows, and one that is read whole.
    model Machine {
        input x: csr<unit>[n, d];
        label y: dense[n, 1];
        param w: row_sparse[d, 1] = Zeros;
        param v: row_sparse[d, 4] = Normal { mean: 0.0, std: 0.05 };
        param b: dense[1] = Zeros;
        let score = dot(x, w) + pairwise_interaction(x, v) + b;
        loss logistic(score, y);
        output probability = sigmoid(score);
    }
}

const D: usize = 2000;

/// The pairs of a model and a rule.
pub(crate) const CASES: [&str; 4] =
    ["clicks-adagrad", "clicks-svrg", "machine-ftrl", "machine-momentum"];

/// Arguments, by name.
#[derive(Clone, Debug, Default)]
pub(crate) struct Arguments(BTreeMap<String, String>);

impl Arguments {
    pub(crate) fn read<'w>(words: impl IntoIterator<Item = &'w str>) -> Self {
        let pairs = words.into_iter().map(|word| {
            let (name, value) = word.split_once('=').unwrap_or((word, "1"));
            (name.to_owned(), value.to_owned())
        });
        Arguments(pairs.collect())
    }

    fn text(&self, name: &str) -> Option<&str> {
        self.0.get(name).map(String::as_str)
    }

    fn number(&self, name: &str, otherwise: u64) -> u64 {
        self.text(name).and_then(|text| text.parse().ok()).unwrap_or(otherwise)
    }

    /// Whether something is to happen to the worker of this rank.
    fn is_odd(&self, name: &str, rank: usize) -> bool {
        self.text(name).is_some_and(|odd| odd == rank.to_string())
    }
}

/// Where the workers of a run are.
pub(crate) enum Workers<C> {
    Threads(usize),
    This(C),
}

/// Trains by one of [`CASES`]: a number that any change of any bit of the model changes.
pub(crate) fn train<C: Communicator>(
    case: &str,
    arguments: &Arguments,
    workers: Workers<C>,
) -> Result<u64> {
    let rank = match &workers {
        Workers::This(end) => end.rank(),
        Workers::Threads(_) => 0,
    };
    let learning_rate = if arguments.is_odd("odd-rate", rank) { 0.15 } else { 0.05 };
    let sgd = Sgd { learning_rate, ..Sgd::default() };
    match case {
        "clicks-adagrad" => {
            let rule = AdaGrad { learning_rate, ..AdaGrad::default() };
            fit(clicks()?, rule, arguments, workers)
        }
        "clicks-svrg" => fit(clicks()?, Svrg { update_freq: 2, rule: sgd }, arguments, workers),
        "machine-ftrl" => {
            let rule = Ftrl { learning_rate, l1: 1e-4, ..Ftrl::default() };
            fit(machine()?, rule, arguments, workers)
        }
        "machine-momentum" => fit(machine()?, Sgd { momentum: 0.9, ..sgd }, arguments, workers),
        other => panic!("there is no case {other}"),
    }
}

fn clicks() -> Result<Clicks> {
    Clicks::new(dims! { d: D }, Seed(42))
}

fn machine() -> Result<Machine> {
    Machine::new(dims! { d: D }, Seed(42))
}

fn fit<M: Model<Element = f32> + Send, R: UpdateRule, C: Communicator>(
    mut model: M,
    rule: R,
    arguments: &Arguments,
    workers: Workers<C>,
) -> Result<u64> {
    let rank = match &workers {
        Workers::This(end) => end.rank(),
        Workers::Threads(_) => 0,
    };
    let data = synthetic::click_log(700, D, 8, 7)?.into_units()?;
    let epochs = if arguments.is_odd("odd-epochs", rank) { 4 } else { 3 };
    let mut trainer =
        Trainer::new(rule).batch_size(96).epochs(epochs).seed(5).progress(Progress::Silent);
    let busy = Duration::from_millis(arguments.number("busy", 0));
    trainer = trainer.callback(move |_: &EpochReport| {
        thread::sleep(busy);
        ControlFlow::Continue(())
    });
    if let Some(path) = arguments.text("checkpoint") {
        trainer = trainer.callback(Checkpoints::new(path).every_batches(3));
    }
    match (workers, arguments.text("resume")) {
        (Workers::Threads(n), _) => trainer.fit_on_threads(&mut model, &data, n)?,
        (Workers::This(end), None) => trainer.fit_as_worker(&mut model, &data, end)?,
        (Workers::This(end), Some(path)) => {
            trainer.resume_as_worker(&mut model, &data, end, path)?
        }
    };
    let values = model.parameters().into_iter().flat_map(|parameter| parameter.values().to_vec());
    Ok(values.fold(0, |sum: u64, value| {
        (sum.rotate_left(5) ^ u64::from(value.to_bits())).wrapping_mul(0x9e37_79b9_7f4a_7c15)
    }))
}

/// What happens to a worker in its exchange number `at`.
struct Accident<'g> {
    group: &'g mut Group,
    what: Option<String>,
    at: u64,
    n_exchanges: u64,
}

impl Communicator for Accident<'_> {
    fn rank(&self) -> usize {
        self.group.rank()
    }

    fn size(&self) -> usize {
        self.group.size()
    }

    fn exchange(
        &mut self,
        outgoing: &mut Parcels,
        incoming: &mut Parcels,
    ) -> std::result::Result<(), CommunicatorError> {
        self.n_exchanges += 1;
        if self.n_exchanges == self.at {
            let signal = match self.what.as_deref() {
                Some("kill") => Some(libc::SIGKILL),
                Some("stop") => Some(libc::SIGSTOP),
                Some("exit") => std::process::exit(0),
                Some("panic") => panic!("an accident"),
                Some("error") => {
                    let (here, problem) = (self.rank(), "an accident".to_owned());
                    return Err(CommunicatorError::Failed { here, problem });
                }
                _ => None,
            };
            if let Some(signal) = signal {
                // SAFETY: a signal to this process.
                unsafe { libc::raise(signal) };
            }
        }
        self.group.exchange(outgoing, incoming)
    }

    fn set_waiting(&mut self, waiting: Waiting) {
        self.group.set_waiting(waiting);
    }

    fn end(&mut self, outcome: Outcome<'_>) -> std::result::Result<(), CommunicatorError> {
        self.group.end(outcome)
    }
}

/// A worker as a user writes it: its errors are returned.
pub(crate) fn main(words: &[String]) -> ExitCode {
    let arguments = Arguments::read(words.iter().map(String::as_str));
    match work(&arguments) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("Error: {error}");
            ExitCode::FAILURE
        }
    }
}

fn work(arguments: &Arguments) -> Result<()> {
    let deadline = |name, otherwise| Duration::from_millis(arguments.number(name, otherwise));
    let deadlines = Deadlines { step: deadline("step", 30_000), pause: deadline("pause", 30_000) };
    let mut group = nnz_mpi::group()?
        .deadlines(deadlines)
        .max_message(arguments.number("max-message", 1 << 26) as usize);
    if arguments.is_odd("returns", group.rank()) {
        return Err(StoreError::LeafCount { found: 6 }.into());
    }
    let cases = arguments.text("cases").unwrap_or(CASES[0]);
    for case in cases.split(',') {
        let is_odd = arguments.is_odd("who", group.rank());
        let end = Accident {
            what: arguments.text("accident").filter(|_| is_odd).map(str::to_owned),
            at: arguments.number("at", 40),
            n_exchanges: 0,
            group: &mut group,
        };
        let bits = train(case, arguments, Workers::This(end))?;
        if group.rank() == 0 {
            println!("{case} {bits:016x}");
        }
    }
    group.end(Outcome::Done)?;
    Ok(())
}

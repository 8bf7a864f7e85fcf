//! Processor time of a worker's step beside that of a step of `fit`, one thread each.
//!
//! ```text
//! cargo run --release --manifest-path benches/workers/Cargo.toml [-- FILTER… [ROUNDS]]
//! ```
//!
//! A row is a model, its samples a step, and a number of workers that are threads of this process.
//! `fit` is the processor time of all threads, `busiest` that of the worker that used most outside
//! of exchanges, `all` the sum of these; each is the difference of a run of three epochs and one of
//! a single epoch, by the number of steps in between: the least of all rounds. `exchanges` and
//! `bytes` are of one step, bytes those of the worker that sent most. A row is measured if its name
//! contains every filter.

mod counted;
mod models;

use counted::{Counted, Used, of_process, of_thread};
use models::{Clicks, Machine, WideDeep};
use nnz::data::synthetic;
use nnz::kernels::Parallel;
use nnz::prelude::*;
use nnz::store::Threads;
use std::error::Error;
use std::thread;

type Outcome<T> = Result<T, Box<dyn Error + Send + Sync>>;

const SAMPLES: usize = 1 << 18;
const FEATURES: usize = 1 << 20;
const ENTRIES: usize = 39;
const SIZES: [usize; 4] = [1, 2, 4, 8];
const EPOCHS: u64 = 2;

fn main() -> Outcome<()> {
    let (rounds, filters): (Vec<_>, Vec<_>) =
        std::env::args().skip(1).partition(|word| word.parse::<usize>().is_ok());
    let rounds = rounds.first().and_then(|word| word.parse().ok()).unwrap_or(3);
    let data = synthetic::click_log(SAMPLES, FEATURES, ENTRIES, 7)?;
    println!(
        "| model, samples a step | workers | `fit`, ms | busiest, ms | all, ms | all / `fit` | exchanges | bytes |\n\
         |---|---|---|---|---|---|---|---|"
    );
    for batch_size in [8192, 65_536] {
        let dims = || dims! { d: FEATURES };
        let of = Row { data: &data, batch_size, rounds, filters: &filters };
        of.measure("clicks", || Clicks::new(dims(), Seed(1)))?;
        of.measure("machine k = 16", || Machine::new(dims(), Seed(1)))?;
        of.measure("wide & deep", || WideDeep::new(dims(), Seed(1)))?;
    }
    Ok(())
}

struct Row<'a> {
    data: &'a Dataset,
    batch_size: usize,
    rounds: usize,
    filters: &'a [String],
}

impl Row<'_> {
    fn measure<M: Model<Element = f32> + Send + 'static>(
        &self,
        model: &str,
        new: impl Fn() -> nnz::Result<M>,
    ) -> Outcome<()> {
        let name = format!("{model}, {}", self.batch_size);
        if !self.filters.iter().all(|filter| name.contains(filter)) {
            return Ok(());
        }
        let model = new()?;
        let least = |of: &dyn Fn() -> Outcome<f64>| {
            (0..self.rounds).try_fold(f64::INFINITY, |least, _| {
                Ok::<_, Box<dyn Error + Send + Sync>>(least.min(of()?))
            })
        };
        let steps = (EPOCHS * (SAMPLES / self.batch_size) as u64) as f64;
        let fit = least(&|| Ok(self.fit(&model, 1 + EPOCHS)? - self.fit(&model, 1)?))?;
        for size in SIZES {
            let (mut busiest, mut all) = (f64::INFINITY, f64::INFINITY);
            let (mut exchanges, mut bytes) = (0.0, 0.0);
            for _ in 0..self.rounds {
                let (long, short) =
                    (self.workers(&model, size, 1 + EPOCHS)?, self.workers(&model, size, 1)?);
                let of = |of: &dyn Fn(&Used) -> f64| {
                    let both = long.iter().zip(&short);
                    Vec::from_iter(both.map(|(long, short)| (of(long) - of(short)) / steps))
                };
                let most = |list: &[f64]| list.iter().copied().fold(0.0, f64::max);
                let seconds = of(&|used| used.seconds);
                busiest = most(&seconds).min(busiest);
                all = seconds.iter().sum::<f64>().min(all);
                exchanges = most(&of(&|used| used.exchanges as f64));
                bytes = most(&of(&|used| used.bytes as f64));
            }
            println!(
                "| {name} | {size} | {:.2} | {:.2} | {:.2} | {:.2} | {exchanges:.1} | {bytes:.0} |",
                fit / steps * 1e3,
                busiest * 1e3,
                all * 1e3,
                all * steps / fit
            );
        }
        Ok(())
    }

    fn trainer(&self, epochs: u64) -> Trainer<'static, AdaGrad> {
        Trainer::new(AdaGrad { learning_rate: 0.05, ..AdaGrad::default() })
            .batch_size(self.batch_size)
            .epochs(epochs)
            .seed(3)
            .parallel(Parallel::Threads(1))
            .progress(Progress::Silent)
    }

    /// Processor seconds of a run of `fit`.
    fn fit<M: Model<Element = f32> + 'static>(&self, model: &M, epochs: u64) -> Outcome<f64> {
        let mut model = model.clone();
        let began = of_process();
        self.trainer(epochs).fit(&mut model, self.data)?;
        Ok(of_process() - began)
    }

    /// What each worker uses in a run.
    fn workers<M: Model<Element = f32> + Send>(
        &self,
        model: &M,
        size: usize,
        epochs: u64,
    ) -> Outcome<Vec<Used>> {
        let work = |end: Threads, mut model: M| {
            let (began, mut end) = (of_thread(), Counted::new(end));
            self.trainer(epochs).fit_as_worker(&mut model, self.data, &mut end)?;
            Ok::<_, Box<dyn Error + Send + Sync>>(end.used_since(began))
        };
        thread::scope(|scope| {
            let ends = Threads::group(size)?.into_iter();
            let workers: Vec<_> = ends
                .map(|end| {
                    let (work, model) = (&work, model.clone());
                    scope.spawn(move || work(end, model))
                })
                .collect();
            let used = workers.into_iter().map(|worker| match worker.join() {
                Ok(used) => used,
                Err(_) => Err("a worker panicked".into()),
            });
            used.collect()
        })
    }
}

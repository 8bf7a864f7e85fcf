//! Steps of large batches on two threads, against the same on one: the time of the wall. Of
//! logistic regression a batch of 4096 rows is just above the size from which two threads share it,
//! of the machine one of 2048.

use super::deep::{self, WideDeep};
use super::emitted::Emitted;
use super::factors::{self, Factors, ITEMS, USERS};
use super::linear::{Logistic, RATE};
use super::machine::Machine;
use super::softmax::{self, Softmax};
use crate::data::Data;
use crate::workload::{Error, Named, Workload, fingerprint};
use nnz::optimizer::UpdateRule;
use nnz::prelude::*;
use std::borrow::Borrow;
use std::hint;
use std::rc::Rc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;

/// The steps before the time is taken: the clock by which a step is shared or not tries both ways
/// often at first, and ever more rarely.
const SETTLED: usize = 64;

/// The batch of models that are measured with one rule.
const BATCH: usize = 8192;

pub fn workloads(data: &Data) -> Vec<Named<'_>> {
    let mut all = vec![
        Named::new("2 threads, arithmetic alone", || Ok(arithmetic())),
        Named::new("2 threads, a line there and back", round_trips),
    ];
    let (rate, lazy_update) = (f64::from(RATE), LazyUpdate::Touched);
    let sgd = sgd(RATE);
    let adagrad = AdaGrad { learning_rate: rate, ..AdaGrad::default() };
    for bits in [20, 24] {
        all.push(two_at_once(data, bits, sgd.clone()));
        all.push(two_at_once(data, bits, adagrad.clone()));
    }
    for bits in [20, 24] {
        all.push(divided(data, bits, sgd.clone()));
        all.push(divided(data, bits, adagrad.clone()));
    }
    for bits in [20, 24] {
        for batch in [1024, 4096, 8192, 65536] {
            let ftrl = Ftrl { learning_rate: rate, l1: 1e-4, lazy_update, ..Ftrl::default() };
            let adam = Adam { learning_rate: 1e-3, lazy_update, ..Adam::default() };
            all.push(logistic(data, bits, batch, sgd.clone()));
            all.push(logistic(data, bits, batch, adagrad.clone()));
            all.push(logistic(data, bits, batch, ftrl));
            all.push(logistic(data, bits, batch, adam));
        }
    }
    for batch in [1024, 2048, 8192] {
        all.push(machine(data, batch, sgd.clone()));
        all.push(machine(data, batch, adagrad.clone()));
    }
    all.push(softmax(data, softmax::sgd()));
    all.push(softmax(data, softmax::adagrad()));
    all.push(wide_and_deep(data));
    all.push(one_column());
    for batch in [BATCH, 65536] {
        all.push(factors(batch));
    }
    all
}

/// What two threads are worth on this machine while it is measured: they read and write no memory.
fn arithmetic<'a>() -> Workload<'a> {
    const STEPS: u64 = 50_000_000;
    fn steps(seed: u64) -> u64 {
        (0..STEPS).fold(seed, |x, step| x.wrapping_mul(6_364_136_223_846_793_005) ^ step)
    }
    let both = |found: &mut u64| {
        *found = thread::scope(|scope| {
            let other = scope.spawn(|| steps(1));
            steps(2) ^ other.join().unwrap_or_default()
        });
    };
    let result = |found: &u64| *found as f64;
    Workload::per_second("G steps/s", 2e-9 * STEPS as f64)
        .wall()
        .tolerance(0.0)
        .contestant("two threads", 0, both, result)
        .contestant("one thread", 0, |found| *found = steps(1) ^ steps(2), result)
}

/// How often a line of the cache goes from one thread to the other and back, against one thread
/// that writes and reads it by itself: what each reads that the other has written costs that, and
/// virtual processors may be moved from cores that share a cache to others at any moment.
fn round_trips<'a>() -> Result<Workload<'a>, Error> {
    const TRIPS: u64 = 200_000;
    if thread::available_parallelism()?.get() < 2 {
        return Err("two threads would wait for each other on one processor".into());
    }
    fn wait(line: &AtomicU64, value: u64) {
        while line.load(Ordering::Acquire) != value {
            hint::spin_loop();
        }
    }
    let both = |line: &mut AtomicU64| {
        *line = AtomicU64::new(0);
        let line = &*line;
        thread::scope(|scope| {
            scope.spawn(|| {
                (0..TRIPS).for_each(|trip| {
                    wait(line, 2 * trip + 1);
                    line.store(2 * trip + 2, Ordering::Release);
                });
            });
            (0..TRIPS).for_each(|trip| {
                line.store(2 * trip + 1, Ordering::Release);
                wait(line, 2 * trip + 2);
            });
        });
    };
    let alone = |line: &mut AtomicU64| {
        (1..=2 * TRIPS).for_each(|value| {
            line.store(value, Ordering::Release);
            wait(line, value);
        });
    };
    let result = |line: &AtomicU64| line.load(Ordering::Acquire) as f64;
    Ok(Workload::per_second("M trips/s", TRIPS as f64 / 1e6)
        .wall()
        .tolerance(0.0)
        .contestant("two threads", AtomicU64::new(0), both, result)
        .contestant("one thread", AtomicU64::new(0), alone, result))
}

/// What two threads are worth to two models that have nothing in common but the data, each trained
/// on one of them: what a step on two threads may reach where memory is the limit.
fn two_at_once<R: UpdateRule>(data: &Data, bits: u32, rule: R) -> Named<'_> {
    let name =
        format!("2 threads, two models at once, logistic 2^{bits} {} batch {BATCH}", R::NAME);
    Named::new(name, move || {
        let log = data.log(bits)?;
        let make = || -> Result<[_; 2], Error> {
            let one = || {
                let model = Logistic::new(dims! { d: log.n_features() }, Seed(0))?;
                Emitted::new(model, rule.clone(), BATCH)
            };
            Ok([one()?, one()?])
        };
        let both = move |[first, second]: &mut [Emitted<Logistic, R>; 2]| {
            thread::scope(|scope| {
                scope.spawn(|| first.run(log));
                second.run(log);
            });
        };
        let in_turn = move |models: &mut [Emitted<Logistic, R>; 2]| {
            models.iter_mut().for_each(|model| model.run(log));
        };
        let result = |[first, second]: &[Emitted<Logistic, R>; 2]| {
            fingerprint_of(first.model.w.values()) + fingerprint_of(second.model.w.values())
        };
        Ok(Workload::per_second("M samples/s", 2.0 * log.n_rows() as f64 / 1e6)
            .wall()
            .tolerance(0.0)
            .contestant("two threads", make()?, both, result)
            .contestant("one thread", make()?, in_turn, result))
    })
}

fn logistic<R: UpdateRule>(data: &Data, bits: u32, batch: usize, rule: R) -> Named<'_> {
    let name = format!("2 threads, logistic 2^{bits} {} batch {batch}", R::NAME);
    Named::new(name, move || {
        let log = data.log(bits)?;
        let make = || Ok(Logistic::new(dims! { d: log.n_features() }, Seed(0))?);
        compare(log, batch, rule, make, |model| fingerprint_of(model.w.values()))
    })
}

/// Data that lie in memory once more, divided for both threads, against one thread on the data as
/// they are.
fn divided<R: UpdateRule>(data: &Data, bits: u32, rule: R) -> Named<'_> {
    let name = format!("2 threads, data divided, logistic 2^{bits} {} batch {BATCH}", R::NAME);
    Named::new(name, move || {
        let log = data.log(bits)?;
        let divided = Rc::new(log.clone().divided_for(2)?);
        let make = || Ok(Logistic::new(dims! { d: log.n_features() }, Seed(0))?);
        compare_with(divided, log, BATCH, rule, make, |model| fingerprint_of(model.w.values()))
    })
}

fn machine<R: UpdateRule>(data: &Data, batch: usize, rule: R) -> Named<'_> {
    let name = format!("2 threads, machine k = 16 {} batch {batch}", R::NAME);
    Named::new(name, move || {
        let log = data.log(20)?;
        let make = || Ok(Machine::new(dims! { d: log.n_features() }, Seed(0))?);
        compare(log, batch, rule, make, |model| fingerprint_of(model.v.values()))
    })
}

fn softmax<R: UpdateRule>(data: &Data, rule: R) -> Named<'_> {
    Named::new(format!("2 threads, softmax 20 classes {} batch {BATCH}", R::NAME), move || {
        let news = data.news()?;
        let make = || Ok(Softmax::new(dims! { d: news.n_features() }, Seed(0))?);
        compare(news, BATCH, rule, make, |model| fingerprint_of(model.w.values()))
    })
}

fn wide_and_deep(data: &Data) -> Named<'_> {
    Named::new(format!("2 threads, wide & deep 16-32 sgd batch {BATCH}"), move || {
        let log = data.log(20)?;
        let make = || Ok(WideDeep::new(dims! { d: log.n_features() }, Seed(0))?);
        compare(log, BATCH, sgd(deep::RATE), make, |model| fingerprint_of(model.t.values()))
    })
}

/// A batch of which one column has every entry, so that it is not divided.
fn one_column<'a>() -> Named<'a> {
    const SAMPLES: usize = 1 << 24;
    Named::new("2 threads, one column, logistic sgd batch 2^24", || {
        let indptr = (0..=SAMPLES as u64).collect();
        let x = Csr::new(1, indptr, vec![0u32; SAMPLES], vec![1.0f32; SAMPLES])?;
        let labels =
            (0..SAMPLES).map(|row| if row % 3 == 0 { 1.0 } else { 0.0 }).collect::<Vec<_>>();
        let log = Rc::new(Dataset::new(x, labels)?);
        let make = || Ok(Logistic::new(dims! { d: 1 }, Seed(0))?);
        compare(log, SAMPLES, sgd(RATE), make, |model| fingerprint_of(model.w.values()))
    })
}

fn factors<'a>(batch: usize) -> Named<'a> {
    Named::new(format!("2 threads, matrix factorization k = 16 sgd batch {batch}"), move || {
        let ratings = Rc::new(factors::dataset(&factors::ratings())?);
        let make = || Ok(Factors::new(dims! { users: USERS, items: ITEMS }, Seed(0))?);
        compare(ratings, batch, sgd(factors::RATE), make, |model| fingerprint_of(model.p.values()))
    })
}

fn sgd(rate: f32) -> Sgd {
    Sgd { learning_rate: f64::from(rate), ..Sgd::default() }
}

fn fingerprint_of(values: &[f32]) -> f64 {
    fingerprint(values.iter().copied())
}

/// Two threads against one. The results have the same bits.
fn compare<'a, M: Model<Element = f32> + 'a, R: UpdateRule>(
    data: impl Borrow<Dataset> + Clone + 'a,
    batch: usize,
    rule: R,
    make: impl Fn() -> Result<M, Error>,
    result: impl Fn(&M) -> f64 + Copy + 'a,
) -> Result<Workload<'a>, Error> {
    compare_with(data.clone(), data, batch, rule, make, result)
}

/// The same, of data that each way has for itself.
fn compare_with<'a, M: Model<Element = f32> + 'a, R: UpdateRule>(
    of_two: impl Borrow<Dataset> + 'a,
    of_one: impl Borrow<Dataset> + 'a,
    batch: usize,
    rule: R,
    make: impl Fn() -> Result<M, Error>,
    result: impl Fn(&M) -> f64 + Copy + 'a,
) -> Result<Workload<'a>, Error> {
    let two = Emitted::new(make()?, rule.clone(), batch)?.on_threads(2);
    let one = Emitted::new(make()?, rule, batch)?;
    let n_rows = of_one.borrow().n_rows();
    let (samples, n_steps) = (n_rows as f64 / 1e6, (n_rows / batch).max(1));
    let run_two = move |emitted: &mut Emitted<M, R>| emitted.run(of_two.borrow());
    let run_one = move |emitted: &mut Emitted<M, R>| emitted.run(of_one.borrow());
    let result = move |emitted: &Emitted<M, R>| result(&emitted.model);
    Ok(Workload::per_second("M samples/s", samples)
        .wall()
        .tolerance(0.0)
        .warm_up(SETTLED.div_ceil(n_steps))
        .contestant("nnz", two, run_two, result)
        .contestant("one thread", one, run_one, result))
}

//! A worker that fails, ends or stalls ends the others, each with rank, call and step.

use super::*;
use crate::error::Error;
use nnz_arrays::formats::RowSparse;
use nnz_optim::Sgd;
use nnz_step::optimizer::ParameterSpec;
use sparse_core::storage::Storage;
use std::thread;
use std::time::{Duration, Instant};

const SHORT: Deadlines =
    Deadlines { step: Duration::from_millis(300), pause: Duration::from_secs(20) };

/// The step in which worker 1 has its accident.
const STEP: u64 = 3;

/// Steps of one key, with something that happens before one of them.
fn steps<C: Communicator>(
    mut end: C,
    mut before: impl FnMut(u64, &mut C) -> crate::Result<()>,
) -> crate::Result<()> {
    for step in 0..10 {
        before(step, &mut end)?;
        let mut store = KvStore::new(&mut end, 8)?;
        store.init(ParameterSpec::new("w", 4, 1, Some(Storage::RowSparse)), &[0.0f32; 4])?;
        store.set_optimizer(Sgd::default())?;
        let gradient = RowSparse::new([4, 1], vec![2], vec![1.0f32])?;
        let mut sum = LeafSum::new();
        for leaf in store.own_leaves() {
            sum.add(leaf, gradient.view(), 0.125)?;
        }
        store.push("w", &mut sum)?;
    }
    Ok(())
}

/// The errors of workers 0 and 2 of three, where `accident` happens to worker 1 in step 3. None
/// takes longer than `within`.
fn others(
    within: Duration,
    accident: impl Fn(&mut Threads) -> crate::Result<()> + Sync,
) -> [CommunicatorError; 2] {
    let ends = Threads::group(3).unwrap().into_iter().map(|end| end.deadlines(SHORT));
    let accident = &accident;
    let found = thread::scope(|scope| {
        let workers: Vec<_> = ends
            .map(|end| {
                scope.spawn(move || {
                    let began = Instant::now();
                    let rank = end.rank();
                    let result = steps(end, |step, end| match (rank, step) {
                        (1, STEP) => accident(end),
                        _ => Ok(()),
                    });
                    if rank != 1 {
                        assert!(began.elapsed() < within, "worker {rank}: {:?}", began.elapsed());
                    }
                    result
                })
            })
            .collect();
        let ended = workers.into_iter().map(|worker| worker.join().unwrap());
        ended.collect::<Vec<_>>()
    });
    [0, 2].map(|rank| match &found[rank] {
        Err(Error::Store(StoreError::Exchange { call: "push", error, .. })) => error.clone(),
        other => panic!("worker {rank}: {other:?}"),
    })
}

#[test]
fn a_worker_that_fails_ends_the_others_with_its_error() {
    let refused = StoreError::LeafCount { found: 6 };
    let errors = others(Duration::from_secs(10), |end| {
        let error = Error::from(refused.clone());
        end.end(Outcome::Failed(&error)).unwrap();
        Err(error)
    });
    for (here, error) in [0, 2].into_iter().zip(errors) {
        match &error {
            CommunicatorError::PeerFailed { rank: 1, here: found, problem } => {
                assert_eq!((*found, problem), (here, &refused.to_string()));
            }
            // By the other that worker 1 has ended.
            CommunicatorError::PeerLost { .. } => {}
            other => panic!("{other}"),
        }
    }
}

#[test]
fn a_worker_that_returns_without_a_word_ends_the_others() {
    let errors =
        others(Duration::from_secs(10), |_| Err(StoreError::LeafCount { found: 6 }.into()));
    for error in errors {
        assert!(matches!(error, CommunicatorError::PeerLost { .. }), "{error}");
    }
}

#[test]
fn a_worker_that_stalls_ends_the_others_at_the_deadline() {
    let mut is_seen = false;
    let errors = others(Duration::from_secs(10), |_| {
        thread::sleep(Duration::from_millis(1500));
        Err(StoreError::LeafCount { found: 6 }.into())
    });
    for error in errors {
        match error {
            CommunicatorError::Deadline { rank, waited, .. } => {
                assert!(rank == 1 && waited >= SHORT.step, "{rank}, {waited:?}");
                is_seen = true;
            }
            // One of the two has ended before the other's deadline.
            CommunicatorError::PeerLost { rank, .. } => assert_ne!(rank, 1),
            other => panic!("{other}"),
        }
    }
    assert!(is_seen);
}

/// The longer deadline holds while worker 0 evaluates.
#[test]
fn a_pause_is_no_stall() {
    let ends = Threads::group(2).unwrap().into_iter().map(|end| end.deadlines(SHORT));
    thread::scope(|scope| {
        for mut end in ends {
            scope.spawn(move || {
                let (mut outgoing, mut incoming) = (Parcels::new(2), Parcels::new(2));
                end.set_waiting(Waiting::Pause);
                if end.rank() == 0 {
                    thread::sleep(3 * SHORT.step);
                }
                end.exchange(&mut outgoing, &mut incoming).unwrap();
                end.set_waiting(Waiting::Step);
                if end.rank() == 0 {
                    thread::sleep(3 * SHORT.step);
                    return;
                }
                let error = end.exchange(&mut outgoing, &mut incoming).unwrap_err();
                assert!(matches!(error, CommunicatorError::Deadline { rank: 0, here: 1, .. }));
            });
        }
    });
}

#[test]
fn errors_name_ranks_call_steps_and_seconds() {
    let waited = Duration::from_millis(2512);
    let error = CommunicatorError::Deadline { rank: 1, here: 0, waited };
    let error = StoreError::Exchange { call: "push", n_steps: 12, waited, error };
    assert_eq!(
        error.to_string(),
        "worker 0 has waited 2.5s for worker 1, which gives no sign: it may be stopped, cut off, \
         or busy for longer than `Deadlines` allows (in `push` after 12 steps, 2.5s after it began)"
    );
}

/// Parcels of an exchange are on their way while a worker computes; its memory circulates.
#[test]
fn an_exchange_in_two_halves_is_an_exchange() {
    fn rounds<C: Communicator>(mut end: C) {
        let (rank, size) = (end.rank() as u8, end.size());
        let (mut outgoing, mut incoming) = (Parcels::new(size), Parcels::new(size));
        for round in 0..20 {
            outgoing.clear();
            outgoing.iter_mut().for_each(|parcel| parcel.extend([rank, round]));
            end.begin(&mut outgoing).unwrap();
            end.finish(&mut outgoing, &mut incoming).unwrap();
            assert!(incoming.iter().enumerate().all(|(from, found)| found == [from as u8, round]));
        }
    }
    rounds(OneProcess);
    rounds(&mut OneProcess);
    thread::scope(|scope| {
        for end in Threads::group(3).unwrap() {
            scope.spawn(|| rounds(end));
        }
    });
}

#[test]
fn the_first_setting_that_differs_is_named_at_every_worker() {
    let settings = |values: [&str; 3]| {
        let names = ["rule", "learning_rate", "epochs"].into_iter().map(str::to_owned);
        names.zip(values.map(str::to_owned)).collect::<Vec<_>>()
    };
    let found = |of: [Vec<(String, String)>; 3]| {
        thread::scope(|scope| {
            let ends = Threads::group(3).unwrap().into_iter().zip(of);
            let workers: Vec<_> =
                ends.map(|(mut end, own)| scope.spawn(move || agree(&mut end, &own))).collect();
            Vec::from_iter(workers.into_iter().map(|worker| worker.join().unwrap()))
        })
    };
    let same = || settings(["sgd", "0.05", "3"]);
    assert_eq!(found([same(), same(), same()]), [Ok(()), Ok(()), Ok(())]);
    let error = |found: &str, name: &str, expected: &str| StoreError::Disagreement {
        rank: 2,
        name: name.to_owned(),
        found: found.to_owned(),
        expected: expected.to_owned(),
    };
    let rate = error("0.15", "learning_rate", "0.05");
    assert_eq!(
        found([same(), same(), settings(["sgd", "0.15", "4"])]),
        [Err(rate.clone()), Err(rate.clone()), Err(rate)]
    );
    // A setting that only one has.
    let fewer = || same()[..2].to_vec();
    let none = error("none", "epochs", "3");
    assert_eq!(found([same(), same(), fewer()]), [Err(none.clone()), Err(none.clone()), Err(none)]);
    let none = error("3", "epochs", "none");
    assert_eq!(
        found([fewer(), fewer(), same()]),
        [Err(none.clone()), Err(none.clone()), Err(none)]
    );
}

//! The bytes of a run on workers are those of the formula in `docs/distributed.md`.

use super::linear::Linear;
use super::*;
use crate::error::Result;
use crate::store::{Communicator, CommunicatorError, Leaves, Parcels, Threads};
use std::collections::BTreeSet;
use std::ops::Range;
use std::thread;

/// Bytes of a row id, and of a value.
const S: usize = 4;
const B: usize = 8;

const SAMPLES: usize = 40;
const BATCH: usize = 16;

/// A communicator that lists the bytes that it sends to others in each exchange.
struct Counted {
    end: Threads,
    sent: Vec<usize>,
}

impl Communicator for Counted {
    fn rank(&self) -> usize {
        self.end.rank()
    }

    fn size(&self) -> usize {
        self.end.size()
    }

    fn exchange(
        &mut self,
        outgoing: &mut Parcels,
        incoming: &mut Parcels,
    ) -> std::result::Result<(), CommunicatorError> {
        let lengths = outgoing.iter().map(<[u8]>::len).enumerate();
        let to_others = lengths.filter(|(to, _)| *to != self.rank()).map(|(_, len)| len);
        self.sent.push(to_others.sum());
        self.end.exchange(outgoing, incoming)
    }
}

/// The bytes that each worker sends in each exchange of a run, and its report.
fn sent(size: usize, epochs: u64) -> Vec<(Vec<usize>, FitReport)> {
    let data = data::<f64>(SAMPLES);
    let work = |end| {
        let mut end = Counted { end, sent: Vec::new() };
        let mut trainer = quiet(sgd(0.05, 0.5)).batch_size(BATCH).epochs(epochs).shuffle(false);
        let report = trainer.fit_as_worker(&mut Linear::<f64>::new(D), &data, &mut end)?;
        Ok::<_, crate::Error>((end.sent, report))
    };
    thread::scope(|scope| {
        let ends = Threads::group(size).unwrap().into_iter();
        let workers: Vec<_> = ends.map(|end| scope.spawn(move || work(end))).collect();
        let sent = workers.into_iter().map(|worker| worker.join().unwrap());
        sent.collect::<Result<_>>().unwrap()
    })
}

#[test]
fn steps_of_a_run_send_the_bytes_of_the_formula_in_three_exchanges() {
    let data = data::<f64>(SAMPLES);
    let features = data.features().unwrap();
    for size in [1, 2, 4, 8] {
        // A power of two, so that the leaves of a worker are one subtree.
        let (leaves, sent) = (Leaves::new(8).unwrap(), sent(size, 1));
        let mut rows_of_all = 0;
        for (step, first) in (0..SAMPLES).step_by(BATCH).enumerate() {
            let n_samples = BATCH.min(SAMPLES - first);
            let columns = |samples: Range<usize>| {
                let rows = samples.map(|sample| features.view().rows(sample..sample + 1).unwrap());
                rows.flat_map(|row| row.iter_columns()).collect::<BTreeSet<usize>>()
            };
            let own = |rank| {
                let own = leaves.of_worker(rank, size);
                let first_of = |leaf| first + leaves.rows_of(leaf, n_samples).start;
                first_of(own.start)..first_of(own.end)
            };
            let n_leaves = |rank| {
                let own = leaves.of_worker(rank, size);
                own.filter(|leaf| !leaves.rows_of(*leaf, n_samples).is_empty()).count()
            };
            let named = Vec::from_iter((0..size).map(|rank| columns(own(rank))));
            let between = |from: usize, owner: usize| {
                if from == owner {
                    0
                } else {
                    named[from].iter().filter(|row| **row % size == owner).count()
                }
            };
            for (rank, (sent, _)) in sent.iter().enumerate() {
                let others = size - 1;
                let foreign: usize = (0..size).map(|owner| between(rank, owner)).sum();
                let asked: usize = (0..size).map(|from| between(from, rank)).sum();
                rows_of_all += foreign;
                // The bias has one row, of worker 0.
                let [pulled, pushed] = if rank == 0 { [others, 0] } else { [0, 1] };
                let numbers = n_leaves(rank) + usize::from(rank == 0);
                let expected = [
                    others * (8 + 8) + foreign * S,
                    others * 8 + asked * B + pulled * B,
                    others * (8 + 8 + 8 * numbers + 2 * (8 + 24)) + foreign * B + pushed * B,
                ];
                // After the agreement, and the message to go on.
                let begun = if size == 1 { 1 } else { 2 };
                let found = &sent[begun + 3 * step..][..3];
                assert_eq!(found, expected, "step {step} of worker {rank} of {size}");
            }
        }
        assert_eq!(rows_of_all > 0, size > 1);
    }
}

#[test]
fn whole_tables_are_collected_once_and_all_workers_get_the_report() {
    const EPOCHS: usize = 3;
    let workers = sent(4, EPOCHS as u64);
    let steps = SAMPLES.div_ceil(BATCH);
    // Agreement, a message to go on before and after each epoch, two keys by a message and two
    // exchanges each, and the report.
    let expected = 1 + 1 + EPOCHS * (3 * steps + 1) + (1 + 2 * 2) + 1;
    for (sent, report) in &workers {
        assert_eq!(sent.len(), expected);
        assert_eq!(report, &workers[0].1);
        assert_eq!(report.epochs.len(), EPOCHS);
    }
}

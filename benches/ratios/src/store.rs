//! Rows pulled from a store and gradients pushed to it, by one worker and by two, against a loop by
//! hand over one table.

use crate::data::Random;
use crate::workload::{Error, Named, Workload};
use nnz::core::storage::Storage;
use nnz::formats::{RowIdsView, RowSparse};
use nnz::optimizer::ParameterSpec;
use nnz::prelude::*;
use nnz::store::{KvStore, LeafSum, Threads};
use std::thread;

/// Rows of the table, and the elements of each.
const N_ROWS: usize = 1 << 18;
const ROW_SIZE: usize = 16;

/// Parts of a step's batch, each with as many rows of its own, and the steps of a run.
const LEAVES: usize = 8;
const ROWS_OF_LEAF: usize = 2048;
const STEPS: usize = 8;

const KEY: &str = "v";
const RATE: f32 = 0.01;

pub fn workloads<'a>() -> Vec<Named<'a>> {
    let named = |name, pushes| Named::new(name, move || workload(pushes));
    vec![named("store rows pulled", false), named("store rows pulled and pushed", true)]
}

fn workload(pushes: bool) -> Result<Workload<'static>, Error> {
    let rows = STEPS * LEAVES * ROWS_OF_LEAF;
    let steps = steps()?;
    let table = vec![0.5f32; N_ROWS * ROW_SIZE];
    let run = |n_workers| -> Result<_, Error> {
        let (workers, steps) = (workers(n_workers, &table)?, steps.clone());
        let run = move |(workers, sum): &mut (Vec<Worker>, f64)| {
            *sum = all_steps(workers, &steps, pushes).unwrap_or(f64::NAN);
        };
        Ok(((workers, 0.0), run))
    };
    let ((one, run_one), (two, run_two)) = (run(1)?, run(2)?);
    let by_hand = steps.clone();
    Ok(Workload::per_second("M rows/s", rows as f64 / 1e6)
        .wall()
        .contestant("one worker", one, run_one, |(_, sum)| *sum)
        .contestant(
            "by hand",
            (table.clone(), table, 0.0),
            move |(table, pulled, sum)| *sum = steps_by_hand(table, pulled, &by_hand, pushes),
            |(_, _, sum)| *sum,
        )
        .contestant("two workers", two, run_two, |(_, sum)| *sum))
}

/// The gradients of a step's leaves, no two of which have a row in common.
type Step = Vec<RowSparse>;

fn steps() -> Result<Vec<Step>, Error> {
    let mut random = Random(11);
    let mut leaf = |leaf: usize| -> Result<RowSparse, Error> {
        let mut ids: Vec<u64> = (0..ROWS_OF_LEAF)
            .map(|_| (N_ROWS as f64 * random.uniform()) as u64 / LEAVES as u64)
            .map(|id| id * LEAVES as u64 + leaf as u64)
            .collect();
        ids.sort_unstable();
        ids.dedup();
        let values = vec![1.0; ids.len() * ROW_SIZE];
        Ok(RowSparse::new([N_ROWS, ROW_SIZE], ids, values)?)
    };
    (0..STEPS).map(|_| (0..LEAVES).map(&mut leaf).collect()).collect()
}

/// One worker, with the table that it pulls into.
struct Worker {
    store: KvStore<f32, Threads>,
    table: Vec<f32>,
    sum: LeafSum<f32>,
    ids: Vec<u64>,
}

fn workers(n_workers: usize, table: &[f32]) -> Result<Vec<Worker>, Error> {
    let worker = |end| -> Result<Worker, Error> {
        let mut store = KvStore::new(end, LEAVES)?;
        let spec = ParameterSpec::new(KEY, N_ROWS, ROW_SIZE, Some(Storage::RowSparse));
        store.init(spec, table)?;
        store.set_optimizer(Sgd { learning_rate: f64::from(RATE), ..Sgd::default() })?;
        Ok(Worker { store, table: table.to_vec(), sum: LeafSum::new(), ids: Vec::new() })
    };
    Threads::group(n_workers)?.into_iter().map(worker).collect()
}

/// All workers at all steps, each on a thread; the sum of the first elements of the rows pulled.
fn all_steps(workers: &mut [Worker], steps: &[Step], pushes: bool) -> nnz::Result<f64> {
    if let [worker] = workers {
        return worker.run(steps, pushes);
    }
    thread::scope(|scope| {
        let run = |worker: &mut Worker| worker.run(steps, pushes);
        let threads: Vec<_> = workers.iter_mut().map(|w| scope.spawn(move || run(w))).collect();
        threads.into_iter().map(|thread| thread.join().unwrap_or(Ok(f64::NAN))).sum()
    })
}

impl Worker {
    fn run(&mut self, steps: &[Step], pushes: bool) -> nnz::Result<f64> {
        let mut total = 0.0;
        for step in steps {
            let own = self.store.own_leaves();
            self.ids.clear();
            step[own.clone()].iter().for_each(|leaf| self.ids.extend(leaf.indices()));
            // Of runs that ascend, one for each leaf.
            self.ids.sort();
            self.store.pull_rows(KEY, RowIdsView::Listed(self.ids.as_slice()), &mut self.table)?;
            let first = |id: &u64| f64::from(self.table[*id as usize * ROW_SIZE]);
            total += self.ids.iter().map(first).sum::<f64>();
            if pushes {
                for leaf in own {
                    self.sum.add(leaf, step[leaf].view(), 1.0)?;
                }
                self.store.push(KEY, &mut self.sum)?;
            }
        }
        Ok(total)
    }
}

/// Rows copied, and updated in place.
#[inline(never)]
fn steps_by_hand(table: &mut [f32], pulled: &mut [f32], steps: &[Step], pushes: bool) -> f64 {
    let mut total = 0.0;
    for step in steps {
        for leaf in step {
            for id in leaf.indices() {
                let row = *id as usize * ROW_SIZE..(*id as usize + 1) * ROW_SIZE;
                pulled[row.clone()].copy_from_slice(&table[row.clone()]);
                total += f64::from(pulled[row.start]);
            }
        }
        if pushes {
            for leaf in step {
                for (id, gradient) in leaf.indices().iter().zip(leaf.values().chunks(ROW_SIZE)) {
                    let row = *id as usize * ROW_SIZE..(*id as usize + 1) * ROW_SIZE;
                    let weights = table[row].iter_mut().zip(gradient);
                    weights.for_each(|(weight, gradient)| *weight -= RATE * gradient);
                }
            }
        }
    }
    total
}

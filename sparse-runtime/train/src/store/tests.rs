//! Stores of one worker and of several.

use super::*;
use crate::error::Error;
use nnz_arrays::formats::{RowIdsView, RowSparse, RowSparseView};
use nnz_optim::{AdaGrad, Adam, Ftrl, Lamb, LazyUpdate, Sgd, Svrg, UpdateRule};
use nnz_step::optimizer::ParameterSpec;
use sparse_core::storage::Storage;

const LEAVES: usize = 8;
const ROWS: usize = 11;

fn sparse() -> ParameterSpec {
    ParameterSpec::new("w", ROWS, 2, Some(Storage::RowSparse))
}

fn dense() -> ParameterSpec {
    ParameterSpec::new("b", 3, 1, Some(Storage::Dense))
}

/// Numbers that look like noise.
fn noise(seed: u64, at: u64) -> f32 {
    let bits = (seed * 31 + at + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    (bits >> 40) as f32 / (1u64 << 24) as f32 - 0.5
}

fn table(n_values: usize) -> Vec<f32> {
    (0..n_values).map(|at| noise(7, at as u64)).collect()
}

/// The gradient of a leaf of a step; of some leaves it has no row.
fn gradient(step: u64, leaf: usize) -> RowSparse {
    let seed = step * 100 + leaf as u64;
    let ids: Vec<u64> = (0..ROWS as u64).filter(|row| noise(seed, 50 + row) > 0.2).collect();
    let values = (0..2 * ids.len() as u64).map(|at| noise(seed, at)).collect();
    RowSparse::new([ROWS, 2], ids, values).unwrap()
}

/// What a worker does in a run, and what it sees: all bits of it.
type Work<'w> = &'w (dyn Fn(&mut KvStore<f32, Threads>) -> crate::Result<Vec<f32>> + Sync);

/// What worker 0 of `size` sees.
fn on_threads(size: usize, work: Work<'_>) -> Vec<crate::Result<Vec<f32>>> {
    std::thread::scope(|scope| {
        let ends = Threads::group(size).unwrap().into_iter();
        let workers: Vec<_> =
            ends.map(|end| scope.spawn(move || work(&mut KvStore::new(end, LEAVES)?))).collect();
        workers.into_iter().map(|worker| worker.join().unwrap()).collect()
    })
}

/// Some steps of a rule, of which rows are pulled as a worker would.
fn steps<R: UpdateRule, C: Communicator>(
    store: &mut KvStore<f32, C>,
    rule: R,
) -> crate::Result<Vec<f32>> {
    store.init(sparse(), &table(2 * ROWS))?;
    store.init(dense(), &table(3))?;
    store.set_optimizer(rule)?;
    let (mut w, mut b) = (table(2 * ROWS), table(3));
    let (mut of_w, mut of_b) = (LeafSum::new(), LeafSum::new());
    for step in 0..9 {
        store.set_learning_rate(0.1 / (1.0 + step as f64))?;
        for leaf in store.own_leaves() {
            of_w.add(leaf, gradient(step, leaf).view(), 0.125)?;
            let values = table(3 * (leaf + 1));
            of_b.add(leaf, RowSparseView::all([3], &values[3 * leaf..])?, 0.125)?;
        }
        // Rows that the next step reads are settled, whoever asks for them.
        let asked: Vec<u64> = match store.rank() {
            0 => (0..ROWS as u64).filter(|row| noise(step, *row) > 0.3).collect(),
            _ => Vec::new(),
        };
        store.pull_rows("w", RowIdsView::Listed(asked.as_slice()), &mut w)?;
        store.push("w", &mut of_w)?;
        store.push("b", &mut of_b)?;
    }
    store.pull("w", &mut w)?;
    store.pull("b", &mut b)?;
    w.extend(b);
    Ok(w)
}

fn bits(values: &[f32]) -> Vec<u32> {
    values.iter().map(|value| value.to_bits()).collect()
}

fn has_the_same_bits_everywhere<R: UpdateRule>(rule: R) {
    let mut alone = KvStore::new(OneProcess, LEAVES).unwrap();
    let expected = steps(&mut alone, rule.clone()).unwrap();
    assert_ne!(expected[..2 * ROWS], table(2 * ROWS));
    for size in [1, 2, 3, 4, 8, 13] {
        for seen in on_threads(size, &|store| steps(store, rule.clone())) {
            assert_eq!(bits(&seen.unwrap()), bits(&expected), "{} on {size}", R::NAME);
        }
    }
}

#[test]
fn any_number_of_workers_gives_the_same_bits() {
    let sgd = Sgd { momentum: 0.9, weight_decay: 0.01, ..Sgd::default() };
    has_the_same_bits_everywhere(sgd.clone());
    has_the_same_bits_everywhere(Sgd { lazy_update: LazyUpdate::Dense, ..sgd });
    has_the_same_bits_everywhere(AdaGrad::default());
    has_the_same_bits_everywhere(Ftrl { l1: 0.01, ..Ftrl::default() });
    has_the_same_bits_everywhere(Adam { lazy_update: LazyUpdate::Touched, ..Adam::default() });
}

#[test]
fn n16_any_number_of_workers_catches_rows_up_by_adam_to_the_same_bits() {
    has_the_same_bits_everywhere(Adam::default());
}

/// Norms of a whole table are nobody's who owns some of its rows.
#[test]
fn a_rule_by_norms_is_for_one_worker() {
    let rule = Lamb { lazy_update: LazyUpdate::Dense, ..Lamb::default() };
    let mut alone = KvStore::new(OneProcess, LEAVES).unwrap();
    assert!(steps(&mut alone, rule.clone()).is_ok());
    for refused in on_threads(3, &|store| steps(store, rule.clone())) {
        let message = refused.unwrap_err().to_string();
        assert!(message.starts_with("steps of `lamb` depend on norms of whole tables, but 3"));
    }
}

#[test]
fn one_leaf_is_the_update_of_its_gradient() {
    let rule = Sgd { momentum: 0.9, learning_rate: 0.1, ..Sgd::default() };
    let mut store = KvStore::new(OneProcess, 1).unwrap();
    store.init(sparse(), &table(2 * ROWS)).unwrap();
    store.set_optimizer(rule.clone()).unwrap();
    let mut updater = nnz_step::optimizer::Updater::new(rule, vec![sparse()]).unwrap();
    let mut expected = nnz_arrays::parameter_memory::Table::from_values(2, &table(2 * ROWS));
    let mut sum = LeafSum::new();
    for step in 0..5 {
        sum.add(0, gradient(step, 0).view(), 1.0).unwrap();
        store.push("w", &mut sum).unwrap();
        updater.begin_step().unwrap();
        updater.apply_row_sparse(0, &mut expected, gradient(step, 0).view()).unwrap();
        updater.end_step().unwrap();
    }
    updater.flush(0, &mut expected).unwrap();
    let mut found = table(2 * ROWS);
    store.pull("w", &mut found).unwrap();
    assert_eq!(bits(&found), bits(expected.values()));
}

#[test]
fn a_mean_gradient_is_gathered_and_added() {
    // One column, so that everything is done by hand below.
    let spec = || ParameterSpec::new("w", 3, 1, Some(Storage::RowSparse));
    let rule = Svrg { update_freq: 1, rule: Sgd { learning_rate: 0.5, ..Sgd::default() } };
    let work = |store: &mut KvStore<f32, Threads>| {
        store.init(spec(), &[1.0, 2.0, 3.0])?;
        store.set_optimizer(rule.clone())?;
        let of =
            |leaf: usize| RowSparse::new([3, 1], vec![leaf as u64 % 3], vec![1.0 + leaf as f32]);
        let mut sum = LeafSum::new();
        store.begin_mean()?;
        for leaf in store.own_leaves() {
            sum.add(leaf, of(leaf)?.view(), 0.125)?;
        }
        store.push_to_mean("w", &mut sum, 8.0)?;
        store.end_mean(0, 8)?;
        let mut before = vec![0.0; 3];
        store.pull("w", &mut before)?;
        assert_eq!((before, store.n_steps()), (vec![1.0, 2.0, 3.0], 0));
        // A step whose own gradient is 1 for row 0 and nothing else.
        if store.own_leaves().contains(&5) {
            sum.add(5, RowSparse::new([3, 1], vec![0], vec![1.0])?.view(), 1.0)?;
        }
        store.push("w", &mut sum)?;
        let (mut after, mut old) = (vec![0.0; 3], vec![0.0; 3]);
        store.pull("w", &mut after)?;
        store.pull_snapshot_rows("w", RowIdsView::All, &mut old)?;
        assert_eq!(old, [1.0, 2.0, 3.0]);
        Ok(after)
    };
    // Sums of 1 + leaf by leaf modulo 3: 12, 15, 9; over 8 rows.
    let expected = [1.0 - 0.5 * (1.0 + 12.0 / 8.0), 2.0 - 0.5 * 15.0 / 8.0, 3.0 - 0.5 * 9.0 / 8.0];
    for size in [1, 3] {
        for seen in on_threads(size, &work) {
            assert_eq!(seen.unwrap(), expected);
        }
    }
}

#[test]
fn a_push_without_a_rule_replaces() {
    let mut store = KvStore::new(OneProcess, 2).unwrap();
    store.init(sparse(), &table(2 * ROWS)).unwrap();
    let mut sum = LeafSum::new();
    sum.add(0, gradient(1, 0).view(), 1.0).unwrap();
    store.push("w", &mut sum).unwrap();
    let mut found = table(2 * ROWS);
    store.pull("w", &mut found).unwrap();
    let expected = gradient(1, 0);
    for (row, values) in found.chunks(2).enumerate() {
        assert_eq!(values, expected.row(row).unwrap_or(&[0.0, 0.0]));
    }
}

fn error_of(result: crate::Result<impl std::fmt::Debug>) -> StoreError {
    match result.unwrap_err() {
        Error::Store(error) => error,
        other => panic!("{other}"),
    }
}

#[test]
fn what_does_not_fit_is_named_before_anybody_is_called() {
    let mut store = KvStore::<f32, _>::new(OneProcess, 2).unwrap();
    let error = error_of(store.row_sparse_pull("w", &[1]));
    assert_eq!(
        error.to_string(),
        "the store has no key `w` (it has: ): make it by `init` before it is pushed or pulled"
    );
    store.init(sparse(), &table(2 * ROWS)).unwrap();
    store.init(ParameterSpec::new("frozen", 2, 1, None), &[1.0, 2.0]).unwrap();
    let again = error_of(store.init(sparse(), &table(2 * ROWS)));
    assert_eq!(again, StoreError::KeyExists { key: "w".into() });
    let short = error_of(store.init(dense(), &[1.0]));
    assert!(matches!(short, StoreError::ValueCount { n_rows: 3, found: 1, .. }), "{short}");
    let row = error_of(store.row_sparse_pull("w", &[1, ROWS as u64]));
    assert_eq!(row, StoreError::RowOutOfRange { key: "w".into(), row: 11, n_rows: ROWS });
    let mut sum = LeafSum::new();
    let ones = [1.0; 2 * ROWS];
    sum.add(0, RowSparseView::all([ROWS, 2], &ones).unwrap(), 1.0).unwrap();
    let storage = error_of(store.push("w", &mut sum));
    assert!(matches!(storage, StoreError::GradientStorage { found: "dense", .. }), "{storage}");
    sum.clear();
    sum.add(0, RowSparseView::all([2], &ones[..2]).unwrap(), 1.0).unwrap();
    assert_eq!(
        error_of(store.push("frozen", &mut sum)),
        StoreError::Frozen { key: "frozen".into() }
    );
    let shape = error_of(store.push("w", &mut sum));
    assert!(matches!(shape, StoreError::GradientShape { found_rows: 2, .. }), "{shape}");
    assert!(matches!(error_of(store.begin_mean()), StoreError::NoOptimizer { .. }));
    let none = error_of(store.pull_snapshot_rows("w", RowIdsView::All, &mut table(2 * ROWS)));
    assert_eq!(none, StoreError::NoSnapshot { key: "w".into() });
}

#[test]
fn a_worker_that_ends_ends_the_others() {
    // Worker 1 asks for a row that there is not, and goes; 0 and 2 wait for it.
    let seen = on_threads(3, &|store| {
        store.init(sparse(), &table(2 * ROWS))?;
        let rows: &[u64] = if store.rank() == 1 { &[99] } else { &[1] };
        store.row_sparse_pull("w", rows)?;
        store.row_sparse_pull("w", rows).map(|rows| rows.values().to_vec())
    });
    for (rank, result) in seen.into_iter().enumerate() {
        match error_of(result) {
            StoreError::RowOutOfRange { row: 99, .. } => assert_eq!(rank, 1),
            // Of worker 1, or of one that it has ended.
            StoreError::Exchange { error: CommunicatorError::PeerLost { here, .. }, .. } => {
                assert_eq!(here, rank);
                assert_ne!(rank, 1);
            }
            other => panic!("worker {rank}: {other}"),
        }
    }
}

#[test]
fn a_panic_ends_the_others() {
    let [mut first, second] = <[Threads; 2]>::try_from(Threads::group(2).unwrap()).unwrap();
    let dead = std::thread::spawn(move || {
        let _end = second;
        std::panic::resume_unwind(Box::new("no use"));
    });
    let (mut outgoing, mut incoming) = (Parcels::new(2), Parcels::new(2));
    let error = first.exchange(&mut outgoing, &mut incoming).unwrap_err();
    assert_eq!(error, CommunicatorError::PeerLost { rank: 1, here: 0 });
    assert!(dead.join().is_err());
    assert_eq!(Threads::group(0).unwrap_err(), CommunicatorError::NoWorkers);
}

#[test]
fn different_calls_are_noticed() {
    let seen = on_threads(2, &|store| {
        store.init(sparse(), &table(2 * ROWS))?;
        store.init(dense(), &table(3))?;
        match store.rank() {
            0 => store.push("w", &mut LeafSum::new()),
            _ => store.push("b", &mut LeafSum::new()),
        }?;
        Ok(Vec::new())
    });
    for (rank, result) in seen.into_iter().enumerate() {
        assert_eq!(error_of(result), StoreError::OutOfStep { rank: 1 - rank, here: rank });
    }
}

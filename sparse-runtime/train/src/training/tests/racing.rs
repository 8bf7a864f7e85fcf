//! Threads that race for a table lose no steps where they share no rows.

use super::linear::Linear;
use nnz_arrays::formats::Csr;
use nnz_arrays::parameter_memory::Table;
use nnz_optim::{AdaGrad, Racing, Sgd, UpdateRule};
use nnz_step::linear::{Fixed, Scratch, steps};
use nnz_step::optimizer::{HotRows, ParameterSpec, Racer, Shared, Updater};
use sparse_core::storage::Storage;
use std::sync::Arc;

const COLUMNS: usize = 40;
const STEPS: usize = 60;
/// Updated by every step of every thread.
const HOT: [usize; 2] = [3, 17];

/// The weights after steps on three threads, each of which updates two columns of its own, and
/// the hot ones; and the bias, which each thread moves by 1 at each step.
fn train<R: UpdateRule>(rule: R, gradient: f64) -> (Vec<f64>, f64) {
    let spec = ParameterSpec::new("w", COLUMNS, 1, Some(Storage::RowSparse));
    let updater = || Updater::<Racing<R>, f64>::new(Racing(rule.clone()), vec![spec.clone()]);
    let mut model = Linear::<f64>::new(COLUMNS);
    model.b.values_mut()[0] = 5.0;
    let table = Table::from_values(1, &[1.0; COLUMNS]);
    let mut threads: Vec<_> =
        (0..3).map(|_| (updater().unwrap(), Linear::<f64>::new(COLUMNS))).collect();
    let hot = HotRows::new(HOT.into_iter(), 16);
    let shared = Arc::new(Shared::new(&threads[0].0, vec![(0, table, hot)], &mut model));
    std::thread::scope(|scope| {
        for (number, (updater, model)) in threads.iter_mut().enumerate() {
            let shared = &shared;
            scope.spawn(move || {
                let mut columns = [HOT[0], HOT[1], 20 + number, 30 + number];
                columns.sort_unstable();
                let row: Vec<_> = columns.map(|column| (column, 1.0)).to_vec();
                let x = Csr::from_rows(COLUMNS, vec![row; STEPS]).unwrap();
                updater.set_racer(Some(Racer::new(shared, model)));
                let mut unused = Table::zeros(COLUMNS, 1);
                let mut first = 0;
                while first < STEPS {
                    let count = updater.begin_steps((STEPS - first).min(10)).unwrap();
                    let row_function = |_: usize, scores: &mut [f64], _: &mut [f64], _: &mut ()| {
                        scores[0] = gradient;
                        0.0
                    };
                    let (scratch, range) = (&mut Scratch::default(), first..first + count);
                    let (width, kept) = (Fixed::<1>, &mut ());
                    let made = steps(
                        x.view(),
                        range,
                        0,
                        &mut unused,
                        updater,
                        width,
                        scratch,
                        kept,
                        row_function,
                    );
                    updater.end_steps(made.unwrap().n_steps).unwrap();
                    first += count;
                    model.b.values_mut()[0] += count as f64;
                    updater.racer_mut().unwrap().merge(model);
                }
                assert_eq!(updater.clock(), STEPS as u64);
                updater.set_racer(None);
            });
        }
    });
    drop(threads);
    let tables = Arc::into_inner(shared).unwrap().end(&mut model);
    let (_, table, _) = &tables[0];
    (table.values().to_vec(), model.b.values()[0])
}

/// Nothing is lost of what one thread updates, nor of hot rows and biases, whose changes are
/// added up.
#[test]
fn changes_of_threads_add_up() {
    let (weights, bias) = train(Sgd { learning_rate: 0.5, ..Sgd::default() }, 2.0);
    assert_eq!(bias, 5.0 + 3.0 * STEPS as f64);
    for (column, weight) in weights.iter().enumerate() {
        let updates = match column {
            _ if HOT.contains(&column) => 3 * STEPS,
            20..23 | 30..33 => STEPS,
            _ => 0,
        };
        assert_eq!(*weight, 1.0 - updates as f64, "{column}");
    }
}

/// The state of a row is beside it: AdaGrad with gradient 1 moves by `1 / √k` at the k-th
/// update.
#[test]
fn states_are_shared() {
    let rule = AdaGrad { learning_rate: 1.0, epsilon: 1e-12, ..AdaGrad::default() };
    let (weights, _) = train(rule, 1.0);
    let alone: f64 = (1..=STEPS).map(|k| 1.0 / (k as f64).sqrt()).sum();
    for column in [20, 21, 22, 30, 31, 32] {
        assert!((weights[column] - (1.0 - alone)).abs() < 1e-9, "{column}: {}", weights[column]);
    }
    for column in HOT {
        // Threads learn from older sums of squares, so that together they go further than one
        // would, at most thrice as far.
        let way = 1.0 - weights[column];
        assert!(way > alone && way <= 3.0 * alone + 1e-9, "{column}: {way} against {alone}");
    }
}

#[test]
fn other_parameters_are_refused() {
    let spec = ParameterSpec::new("w", COLUMNS, 1, Some(Storage::RowSparse));
    let rule = Racing(Sgd::default());
    let mut updater = Updater::<Racing<Sgd>, f64>::new(rule, vec![spec]).unwrap();
    updater.begin_step().unwrap();
    let error = updater.rows(0, &mut Table::<f64>::zeros(COLUMNS, 1)).unwrap_err();
    assert!(error.to_string().starts_with("parameter `w`: threads share it without locks only"));
}

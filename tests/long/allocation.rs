//! Steady state allocates nothing: counted over 1000 steps, by a global allocator.
use crate::own_process;
use nnz::data::synthetic;
use nnz::formats::Unit;
use nnz::model::RowIds;
use nnz::optimizer::Updater;
use nnz::prelude::*;
use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::sync::atomic::{AtomicU64, Ordering};

thread_local! {
    static ALLOCATIONS: Cell<u64> = const { Cell::new(0) };
}

/// The allocations of all threads.
static OF_ALL: AtomicU64 = AtomicU64::new(0);

/// Counts the allocations of each thread: tests run on several.
struct Counting;

// SAFETY: everything is done by the system's allocator.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count();
        // SAFETY: the caller's promises are passed on.
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        count();
        // SAFETY: as above.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        count();
        // SAFETY: as above.
        unsafe { System.realloc(pointer, layout, size) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: as above.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

fn count() {
    OF_ALL.fetch_add(1, Ordering::SeqCst);
    // Not while a thread ends and its locals are gone.
    let _ = ALLOCATIONS.try_with(|count| count.set(count.get() + 1));
}

/// The allocations of this thread while `body` runs.
pub(crate) fn allocations(body: impl FnOnce()) -> u64 {
    let before = ALLOCATIONS.get();
    body();
    ALLOCATIONS.get() - before
}

graph! {
    /// A factorization machine.
    pub model Machine {
        input x: csr[n, d];
        label y: dense[n, 1];
        param w: row_sparse[d, 1] = Zeros;
        param v: row_sparse[d, 4] = Normal { mean: 0.0, std: 0.1 };
        param b: dense[1] = Zeros;
        let score = dot(x, w) + pairwise_interaction(x, v) + b;
        loss logistic(score, y);
        output score;
    }
}

graph! {
    /// Linear regression.
    pub model Linear {
        input x: csr[n, d];
        label y: dense[n, 1];
        param w: row_sparse[d, 1] = Zeros;
        param b: dense[1] = Zeros;
        let pred = dot(x, w) + b;
        loss squared_error(pred, y);
        output pred;
    }

    /// Logistic regression.
    pub model Logistic {
        input x: csr[n, d];
        label y: dense[n, 1];
        param w: row_sparse[d, 1] = Zeros;
        param b: dense[1] = Zeros;
        let score = dot(x, w) + b;
        loss logistic(score, y);
        output p = sigmoid(score);
    }

    /// Logistic regression on patterns.
    pub model Units {
        input x: csr<unit>[n, d];
        label y: dense[n, 1];
        param w: row_sparse[d, 1] = Zeros;
        param b: dense[1] = Zeros;
        let score = dot(x, w) + b;
        loss logistic(score, y);
        output p = sigmoid(score);
    }

    /// Logistic regression, kernel by kernel.
    pub model Unfused {
        fuse = off;
        input x: csr[n, d];
        label y: dense[n, 1];
        param w: row_sparse[d, 1] = Zeros;
        param b: dense[1] = Zeros;
        let score = dot(x, w) + b;
        loss logistic(score, y);
        output p = sigmoid(score);
    }

    /// Softmax regression.
    pub model Softmax {
        input x: csr[n, d];
        label y: dense<u32>[n];
        param w: row_sparse[d, k] = Zeros;
        param b: dense[k] = Zeros;
        let scores = dot(x, w) + b;
        loss softmax_cross_entropy(scores, y);
        output p = softmax(scores);
    }
}

graph! {
    /// Wide and deep.
    pub model WideDeep {
        input x: csr[n, d];
        label y: dense[n, 1];
        param w: row_sparse[d, 1] = Zeros;
        param t: row_sparse[d, 4] = Normal { mean: 0.0, std: 0.1 };
        param h: dense[4, 3] = Normal { mean: 0.0, std: 0.1 };
        param g: dense[3, 1] = Normal { mean: 0.0, std: 0.1 };
        let hidden = relu(dot(embedding_bag(x, t, mean = true), h));
        let score = dot(x, w) + dot(hidden, g);
        loss logistic(score, y);
        output score;
    }

    /// Two bags of one table, as models of pairs have.
    pub model Pairs {
        input x: csr[n, d];
        input z: csr[n, d];
        label y: dense[n, 1];
        param t: row_sparse[d, 4] = Normal { mean: 0.0, std: 0.1 };
        param h: dense[4, 1] = Normal { mean: 0.0, std: 0.1 };
        let score = dot(embedding_bag(x, t) * embedding_bag(z, t), h);
        loss logistic(score, y);
        output score;
    }

    /// Rows that are read and not updated, and a mean over columns.
    pub model Still {
        input x: csr[n, d];
        input item: dense<u32>[n];
        label y: dense[n];
        param(frozen) known: row_sparse[d, 4] = Normal { mean: 0.0, std: 0.1 };
        param t: row_sparse[d, 4] = Normal { mean: 0.0, std: 0.1 };
        param p: row_sparse[d, 4] = Normal { mean: 0.0, std: 0.1 };
        let others = embedding_bag(x, known) + stop_gradient(take(t, item)) + take(p, item);
        let score = mean(embedding_bag(x, t) * others, axis = 1);
        loss squared_error(score, y);
        output score;
    }

    /// Element-wise operators that are one loop, over what is stored and over dense rows.
    pub model Chained {
        input x: csr[n, d];
        label y: dense[n, 1];
        param w: row_sparse[d, 1] = Zeros;
        param b: dense[1] = Zeros;
        let score = 2.0 * tanh(dot(2.0 * tanh(x), w) + b);
        loss squared_error(score, y);
        output score;
    }

    /// Matrix factorization.
    pub model Factors {
        input user: dense<u32>[n];
        input item: dense<u32>[n];
        label y: dense[n];
        param p: row_sparse[users, 4] = Normal { mean: 0.0, std: 0.1 };
        param q: row_sparse[items, 4] = Normal { mean: 0.0, std: 0.1 };
        let score = sum(take(p, user) * take(q, item), axis = 1);
        loss squared_error(score, y);
        output score;
    }
}

const ROWS: usize = 64;
const FEATURES: usize = 300;

fn features() -> Csr {
    synthetic::random_csr(ROWS, FEATURES, 0.05, 3).unwrap()
}

/// Batches of one row and of 32, after one step on all rows.
macro_rules! steady {
    ($model:expr, $Batch:ident, $y:expr, $lazy_update:expr) => {{
        let (x, y) = (features(), $y);
        steady!($model, $Batch { x, y }, $lazy_update)
    }};
    ($model:expr, $Batch:ident { $($input:ident),* }, $lazy_update:expr) => {{
        let mut model = $model;
        let rule = Sgd {
            learning_rate: 0.01,
            momentum: 0.9,
            weight_decay: 0.01,
            lazy_update: $lazy_update,
            ..Sgd::default()
        };
        let mut updater = Updater::for_model(rule, &model).unwrap();
        let batch = |rows: std::ops::Range<usize>| $Batch {
            $($input: $input.view().rows(rows.clone()).unwrap(),)*
        };
        let range = |step: usize| match step % 2 {
            0 => step % ROWS..step % ROWS + 1,
            _ => step % 32..step % 32 + 32,
        };
        model.train_step(&batch(0..ROWS), &mut updater).unwrap();
        // Gradients may come from a row program, losses from kernels. Kernels choose between two
        // ways by the size of a batch, each with scratch of its own.
        for rows in [0..ROWS, 0..1] {
            model.loss_and_grads(&batch(rows.clone())).unwrap();
            model.loss(&batch(rows)).unwrap();
        }
        let steps = allocations(|| {
            for step in 0..1000 {
                model.train_step(&batch(range(step)), &mut updater).unwrap();
            }
        });
        assert_eq!(steps, 0, "train_step");
        let others = allocations(|| {
            for step in 0..1000 {
                model.forward(&batch(range(step))).unwrap();
                model.loss(&batch(range(step))).unwrap();
                model.loss_and_grads(&batch(range(step))).unwrap();
            }
        });
        assert_eq!(others, 0, "forward, loss, loss_and_grads");
        let mut rows = RowIds::new();
        model.rows_read(&batch(0..ROWS), 0, &mut rows).unwrap();
        let named = allocations(|| {
            for step in 0..1000 {
                model.rows_read(&batch(range(step)), 0, &mut rows).unwrap();
                model.rows_written(&batch(range(step)), 0, &mut rows).unwrap();
            }
        });
        assert_eq!(named, 0, "rows_read, rows_written");
        assert!(model.parameters().iter().any(|p| p.values().iter().any(|value| *value != 0.0)));
    }};
}

fn real_labels() -> Dense {
    Dense::new([ROWS, 1], (0..ROWS).map(|row| (row % 2) as f32).collect()).unwrap()
}

#[test]
fn linear() {
    for lazy_update in [LazyUpdate::Exact, LazyUpdate::Touched, LazyUpdate::Dense] {
        let model = Linear::new(dims! { d: FEATURES }, Seed(0)).unwrap();
        steady!(model, LinearBatch, real_labels(), lazy_update);
    }
}

#[test]
fn logistic() {
    let model = Logistic::new(dims! { d: FEATURES }, Seed(0)).unwrap();
    steady!(model, LogisticBatch, real_labels(), LazyUpdate::Exact);
}

#[test]
fn logistic_on_patterns() {
    let (x, y) = (features().cast::<Unit>(), real_labels());
    let model = Units::new(dims! { d: FEATURES }, Seed(0)).unwrap();
    steady!(model, UnitsBatch { x, y }, LazyUpdate::Exact);
}

#[test]
fn factorization_machine() {
    for lazy_update in [LazyUpdate::Exact, LazyUpdate::Touched] {
        let model = Machine::new(dims! { d: FEATURES }, Seed(0)).unwrap();
        steady!(model, MachineBatch, real_labels(), lazy_update);
    }
}

#[test]
fn wide_and_deep() {
    for lazy_update in [LazyUpdate::Exact, LazyUpdate::Touched] {
        let model = WideDeep::new(dims! { d: FEATURES }, Seed(0)).unwrap();
        steady!(model, WideDeepBatch, real_labels(), lazy_update);
    }
}

#[test]
fn a_table_that_two_lookups_read() {
    let z = synthetic::random_csr(ROWS, FEATURES, 0.05, 4).unwrap();
    let (x, y) = (features(), real_labels());
    let model = Pairs::new(dims! { d: FEATURES }, Seed(0)).unwrap();
    steady!(model, PairsBatch { x, z, y }, LazyUpdate::Exact);
}

#[test]
fn rows_that_are_not_updated() {
    let item = Dense::new([ROWS], (0..ROWS as u32).map(|row| row * 7 % 50).collect()).unwrap();
    let (x, y) = (features(), real_labels().reshape([ROWS]).unwrap());
    let model = Still::new(dims! { d: FEATURES }, Seed(0)).unwrap();
    steady!(model, StillBatch { x, item, y }, LazyUpdate::Exact);
}

#[test]
fn chains() {
    let model = Chained::new(dims! { d: FEATURES }, Seed(0)).unwrap();
    steady!(model, ChainedBatch, real_labels(), LazyUpdate::Exact);
}

#[test]
fn matrix_factorization() {
    let ids = |step: u32| Dense::new([ROWS], (0..ROWS as u32).map(|row| row * step % 50).collect());
    for lazy_update in [LazyUpdate::Exact, LazyUpdate::Touched] {
        let (user, item) = (ids(7).unwrap(), ids(31).unwrap());
        let y = Dense::new([ROWS], (0..ROWS).map(|row| (row % 5) as f32).collect()).unwrap();
        let model = Factors::new(dims! { users: 50, items: 50 }, Seed(0)).unwrap();
        steady!(model, FactorsBatch { user, item, y }, lazy_update);
    }
}

#[test]
fn unfused() {
    for lazy_update in [LazyUpdate::Exact, LazyUpdate::Touched] {
        let model = Unfused::new(dims! { d: FEATURES }, Seed(0)).unwrap();
        steady!(model, UnfusedBatch, real_labels(), lazy_update);
    }
}

#[test]
fn softmax() {
    let labels = Dense::new([ROWS], (0..ROWS as u32).map(|row| row % 5).collect()).unwrap();
    let model = Softmax::new(dims! { d: FEATURES, k: 5 }, Seed(0)).unwrap();
    steady!(model, SoftmaxBatch, labels, LazyUpdate::Exact);
}

/// Steps of one row in one call, of rows that wait for idle steps.
#[test]
fn row_by_row() {
    let (x, y) = (features(), real_labels());
    let mut model = Linear::new(dims! { d: FEATURES }, Seed(0)).unwrap();
    for lazy_update in [LazyUpdate::Exact, LazyUpdate::Touched] {
        let rule = Sgd { momentum: 0.9, weight_decay: 0.01, lazy_update, ..Sgd::default() };
        let mut updater = Updater::for_model(rule, &model).unwrap();
        let batch = LinearBatch { x: x.view(), y: y.view() };
        model.train_rows(&batch, &mut updater).unwrap();
        let steps = allocations(|| {
            for _ in 0..100 {
                assert_eq!(model.train_rows(&batch, &mut updater).unwrap().n_steps, ROWS);
            }
        });
        assert_eq!((steps, updater.clock()), (0, 101 * ROWS as u64));
    }
}

#[test]
fn a_scorer_of_rows_allocates_nothing() {
    let model = Machine::new(dims! { d: FEATURES }, Seed(1)).unwrap();
    let mut scorer = nnz::predictor::Predictor::new(model).scorer().unwrap();
    let rows: Vec<(Vec<u32>, Vec<f32>)> = (features().iter_rows())
        .map(|row| row.map(|(column, value)| (column as u32, value)).unzip())
        .collect();
    let mut score_all = || {
        for (columns, values) in &rows {
            scorer.score_row(columns, values).unwrap();
        }
    };
    score_all();
    assert_eq!(allocations(score_all), 0);
}

/// Steps of a large batch on several threads, none of which allocates: so many that the slower way,
/// shared or not, is tried again.
#[test]
fn several_threads() {
    if !own_process::is_own("allocation::several_threads") {
        return;
    }
    const MANY: usize = 5000;
    let data = synthetic::click_log(MANY, 20_000, 30, 1).unwrap();
    let x = data.features().unwrap();
    let y = Dense::new([MANY, 1], (0..MANY).map(|row| (row % 2) as f32).collect()).unwrap();
    let batch = LinearBatch { x: x.view(), y: y.view() };
    let quiet = (0..50).any(|_| {
        let mut model = Linear::new(dims! { d: 20_000 }, Seed(0)).unwrap();
        model.set_parallel(Parallel::Threads(2));
        let rule = Sgd { momentum: 0.9, weight_decay: 0.01, ..Sgd::default() };
        let mut updater = Updater::for_model(rule, &model).unwrap();
        let mut steps = |count| {
            let before = OF_ALL.load(Ordering::SeqCst);
            (0..count).for_each(|_| {
                model.train_step(&batch, &mut updater).unwrap();
            });
            OF_ALL.load(Ordering::SeqCst) - before
        };
        // Whoever comes first does a part: after some steps each thread has done each.
        steps(20);
        steps(64) == 0
    });
    assert!(quiet);
}

//! Steps of one row that are made in one call, against the same steps one call each, and steps of
//! large batches on several threads, against the same on one: every bit is the same.

use nnz::core::update_rules::{GroupAdaGrad, UpdateRule};
use nnz::data::{BatchOptions, DataSource, Order, synthetic};
use nnz::model::RowSteps;
use nnz::optimizer::Updater;
use nnz::prelude::*;
use nnz::training::{BatchHook, fit_epoch};

graph! {
    /// A bias that is read by the rows and updated by each.
    pub model Linear {
        dtype = f64;
        input x: csr[n, d];
        label y: dense[n, 1];
        param w: row_sparse[d, 1] = Normal { mean: 0.0, std: 0.5 };
        param b: dense[1] = Constant(0.25);
        param slope: dense[1] = Constant(0.75);
        let score = slope * tanh(dot(x, w) + b);
        loss logistic(score, y);
        output p = sigmoid(score);
    }
}

graph! {
    /// Scores that are a product and a bias: their derivatives stand for all gradients.
    pub model Plain {
        dtype = f64;
        input x: csr[n, d];
        label y: dense[n, 1];
        param w: row_sparse[d, 1] = Normal { mean: 0.0, std: 0.5 };
        param b: dense[1] = Zeros;
        let score = dot(x, w) + b;
        loss logistic(score, y);
        output score;
    }
}

graph! {
    /// Several columns, weights of rows.
    pub model Classes {
        input x: csr[n, d];
        input weight: dense[n];
        label y: dense<u32>[n];
        param w: row_sparse[d, 5] = Zeros;
        param b: dense[5] = Zeros;
        param(frozen) scale: dense[5] = Constant(0.5);
        let scores = dot(x, w) * scale + b;
        loss softmax_cross_entropy(scores, y, weight);
        output scores;
    }
}

graph! {
    /// Two tables.
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
    /// Rows that ids name.
    pub model Factors {
        input user: dense<u32>[n];
        input item: dense<u32>[n];
        label y: dense[n];
        param p: row_sparse[d, 4] = Normal { mean: 0.0, std: 0.3 };
        param q: row_sparse[d, 4] = Normal { mean: 0.0, std: 0.3 };
        param of_item: row_sparse[d] = Zeros;
        param b: dense[1] = Zeros;
        let score = sum(take(p, user) * take(q, item), axis = 1) + take(of_item, item) + b;
        loss logistic(score, y);
        output score;
    }
}

graph! {
    /// Bags through dense layers.
    pub model Layers {
        input x: csr[n, d];
        label y: dense[n, 1];
        param w: row_sparse[d, 1] = Zeros;
        param t: row_sparse[d, 4] = Normal { mean: 0.0, std: 0.3 };
        param h: dense[4, 8] = Normal { mean: 0.0, std: 0.3 };
        param b: dense[8] = Zeros;
        param g: dense[8, 1] = Normal { mean: 0.0, std: 0.3 };
        let hidden = tanh(dot(embedding_bag(x, t), h) + b);
        let score = dot(x, w) + dot(hidden, g);
        loss logistic(score, y);
        output score;
    }
}

graph! {
    /// Bags through layers of more elements than a cache has: of larger batches these are kernels'
    /// work.
    pub model LargeLayers {
        input x: csr[n, d];
        label y: dense[n, 1];
        param w: row_sparse[d, 1] = Zeros;
        param t: row_sparse[d, 4] = Normal { mean: 0.0, std: 0.3 };
        param h: dense[4, 1000] = Normal { mean: 0.0, std: 0.1 };
        param g: dense[1000, 1] = Normal { mean: 0.0, std: 0.1 };
        let score = dot(x, w) + dot(relu(dot(embedding_bag(x, t), h)), g);
        loss logistic(score, y);
        output score;
    }
}

graph! {
    /// The first, in kernels one after the other.
    pub model Apart {
        fuse = off;
        dtype = f64;
        input x: csr[n, d];
        label y: dense[n, 1];
        param w: row_sparse[d, 1] = Zeros;
        loss logistic(dot(x, w), y);
    }
}

/// A hook that looks at every step, so that each is a call of its own.
struct Looking(u64);

impl<M: nnz::model::Model> BatchHook<M> for Looking {
    fn after_step<'b, B: nnz::data::Batch<'b, M::Element>>(
        &mut self,
        _: &M,
        _: &B,
        _: f64,
    ) -> nnz::Result<()> {
        self.0 += 1;
        Ok(())
    }
}

/// Two epochs of one model in both ways, for one rule.
macro_rules! both_ways {
    ($model:ident, $rule:expr, $data:expr) => {{
        let (rule, data) = ($rule, $data);
        let run = |looks: bool| {
            let mut model = $model::new(dims! { d: N_FEATURES }, Seed(7)).unwrap();
            let mut updater = Updater::for_model(rule.clone(), &model).unwrap();
            updater.set_records_outputs(false);
            let order = Order::Shuffled { seed: 3 };
            let options = BatchOptions { order, ..Default::default() };
            let mut batches = data.batches($model::INPUTS, &options).unwrap();
            let mut losses = Vec::new();
            for epoch in 0..2 {
                let totals = if looks {
                    let mut hook = Looking(0);
                    let totals =
                        fit_epoch(&mut model, &mut updater, &mut batches, epoch, &mut hook);
                    assert_eq!(hook.0, data.n_rows() as u64);
                    totals.unwrap()
                } else {
                    fit_epoch(&mut model, &mut updater, &mut batches, epoch, &mut ()).unwrap()
                };
                losses.push(totals);
                updater.set_learning_rate(rule.learning_rate() / 2.0).unwrap();
            }
            let values: Vec<Vec<_>> =
                model.parameters().iter().map(|parameter| parameter.values().to_vec()).collect();
            (losses, values, updater.clock())
        };
        let (found, expected) = (run(false), run(true));
        // The losses are summed call by call.
        for (a, b) in found.0.iter().zip(&expected.0) {
            assert_eq!((a.n_rows, a.n_batches), (b.n_rows, b.n_batches));
            assert!((a.loss_sum - b.loss_sum).abs() < 1e-9 * b.loss_sum, "{a:?} {b:?}");
        }
        let same = found.1 == expected.1 && found.2 == expected.2;
        assert!(same, "{} {rule:?}", stringify!($model));
        assert!(
            found.1 != {
                let model = $model::new(dims! { d: N_FEATURES }, Seed(7)).unwrap();
                model.parameters().iter().map(|p| p.values().to_vec()).collect::<Vec<_>>()
            }
        );
    }};
}

const N_FEATURES: usize = 900;

/// More rows than are taken at a time.
fn features<T: nnz::core::element::Float>() -> Csr<T> {
    log(1500, N_FEATURES, 6)
}

fn log<T: nnz::core::element::Float>(n_rows: usize, n_features: usize, n_fields: usize) -> Csr<T> {
    let data = synthetic::click_log(n_rows, n_features, n_fields, 5).unwrap();
    let x = data.features().unwrap().view();
    let rows = (0..x.n_rows()).map(|i| {
        let (columns, values) = x.row(i).unwrap();
        let columns = (0..columns.len()).filter_map(move |at| columns.get(at));
        columns.zip(values).map(|(column, value)| (column, T::of(f64::from(*value)))).collect()
    });
    Csr::from_rows(n_features, rows.collect::<Vec<Vec<_>>>()).unwrap()
}

/// Noise: what is learnt does not matter.
fn labels(modulus: u32) -> Vec<u32> {
    noise(1500, modulus)
}

fn noise(n_rows: u32, modulus: u32) -> Vec<u32> {
    (0..n_rows).map(|i| i.wrapping_mul(2_654_435_761) >> 7).map(|i| i % modulus).collect()
}

fn floats<T: nnz::core::element::Float>(values: &[u32]) -> Dense<T> {
    let values: Vec<T> = values.iter().map(|value| T::of(f64::from(*value))).collect();
    Dense::new([values.len(), 1], values).unwrap()
}

fn linear() -> Dataset<f64> {
    let labels = floats::<f64>(&labels(2));
    Dataset::builder().input("x", features::<f64>()).label("y", labels).build().unwrap()
}

fn machine() -> Dataset<f32> {
    let labels = floats::<f32>(&labels(2));
    Dataset::builder().input("x", features::<f32>()).label("y", labels).build().unwrap()
}

fn classes() -> Dataset<f32> {
    let weights = floats::<f32>(&labels(3)).into_values();
    Dataset::builder()
        .input("x", features::<f32>())
        .input("weight", weights)
        .label("y", labels(5))
        .build()
        .unwrap()
}

/// Users and items of which some have many rows.
fn ratings() -> Dataset<f32> {
    let ids = |multiplier: usize| -> Vec<u32> {
        (0..1500).map(|row| (row * multiplier % (1 + row % 700)) as u32).collect()
    };
    let labels = labels(2).iter().map(|label| *label as f32).collect::<Vec<_>>();
    Dataset::builder()
        .input("user", ids(7))
        .input("item", ids(31))
        .label("y", Dense::new([1500], labels).unwrap())
        .build()
        .unwrap()
}

/// A rule in each of its modes.
fn every_mode<R: UpdateRule>(rule: R) {
    for lazy_update in [LazyUpdate::Exact, LazyUpdate::Touched, LazyUpdate::Dense] {
        let mut rule = rule.clone();
        rule.set_lazy_update(lazy_update);
        if rule.check().is_ok() {
            both_ways(&rule);
        }
    }
}

fn both_ways<R: UpdateRule>(rule: &R) {
    both_ways!(Linear, rule, linear());
    both_ways!(Classes, rule, classes());
    both_ways!(Machine, rule, machine());
    both_ways!(Factors, rule, ratings());
}

#[test]
fn one_call_or_many() {
    // One of each kind: without state, with a state a weight, one of which forgets, one that counts
    // steps, and with a state a row. All rules are compiled for every model, which takes its time.
    every_mode(Sgd::default());
    every_mode(AdaGrad::default());
    every_mode(Ftrl::default());
    every_mode(Adam::default());
    every_mode(GroupAdaGrad::default());
}

#[test]
fn layers() {
    let momentum = Sgd { learning_rate: 0.05, momentum: 0.9, ..Sgd::default() };
    both_ways!(Layers, &momentum, machine());
    both_ways!(Layers, &GroupAdaGrad::default(), machine());
}

#[test]
fn rows_that_wait_for_idle_steps() {
    for lazy_update in [LazyUpdate::Exact, LazyUpdate::Dense] {
        let rule = Sgd {
            learning_rate: 0.05,
            momentum: 0.9,
            weight_decay: 0.01,
            lazy_update,
            ..Sgd::default()
        };
        both_ways(&rule);
    }
}

/// Rows of data of which half are a batch with enough entries for several threads.
const MANY_ROWS: u32 = 7000;

/// Features of which many wait for some steps; tables of four columns are larger than what is read
/// as a small one.
const MANY_FEATURES: usize = 70_000;

/// Three epochs of one model on one thread and on some, for one rule: the last steps are tried on
/// one thread, the others shared. Of two threads also with data that are divided for them, in order
/// and shuffled.
macro_rules! on_threads {
    ($model:ident, $rule:expr, $data:expr) => {{
        let run_on = |data: &Dataset<_>, shuffle, parallel| {
            let mut model = $model::new(dims! { d: MANY_FEATURES }, Seed(7)).unwrap();
            let mut trainer = Trainer::new($rule.clone())
                .batch_size(data.n_rows() / 2)
                .epochs(3)
                .shuffle(shuffle)
                .progress(Progress::Silent)
                .parallel(parallel);
            let report = trainer.fit(&mut model, data).unwrap();
            let losses: Vec<_> = report.epochs.iter().map(|epoch| epoch.loss).collect();
            let values: Vec<Vec<_>> =
                model.parameters().iter().map(|parameter| parameter.values().to_vec()).collect();
            (losses, values)
        };
        let one = run_on($data, false, Parallel::Sequential);
        for threads in [2, 3] {
            let several = run_on($data, false, Parallel::Threads(threads));
            assert!(one.0 == several.0, "{threads} threads, {:?}", $rule);
            assert!(one.1 == several.1, "{} {threads} threads, {:?}", stringify!($model), $rule);
        }
        let divided = $data.clone().divided_for(2).unwrap();
        let two = run_on(&divided, false, Parallel::Threads(2));
        assert!(one == two, "{} of divided data, {:?}", stringify!($model), $rule);
        let shuffled = run_on($data, true, Parallel::Sequential);
        let two = run_on(&divided, true, Parallel::Threads(2));
        assert!(shuffled == two, "{} of divided data, shuffled, {:?}", stringify!($model), $rule);
    }};
}

#[test]
fn one_thread_or_several() {
    let n_rows = MANY_ROWS as usize;
    let x = log::<f64>(n_rows, MANY_FEATURES, 40);
    let narrow = x.cast::<f32>();
    let y = floats::<f64>(&noise(MANY_ROWS, 2));
    let linear = Dataset::builder().input("x", x).label("y", y).build().unwrap();
    let y = floats::<f32>(&noise(MANY_ROWS, 2));
    let machine = Dataset::builder().input("x", narrow).label("y", y).build().unwrap();
    fn every<R: UpdateRule>(rule: R, linear: &Dataset<f64>, machine: &Dataset<f32>) {
        on_threads!(Linear, rule, linear);
        on_threads!(Machine, rule, machine);
    }
    let momentum = Sgd { momentum: 0.9, weight_decay: 0.01, ..Sgd::default() };
    every(Sgd::default(), &linear, &machine);
    every(momentum, &linear, &machine);
    every(AdaGrad::default(), &linear, &machine);
    every(Ftrl::default(), &linear, &machine);
    on_threads!(Plain, Saga { rule: Sgd { weight_decay: 0.01, ..Sgd::default() } }, &linear);
}

#[test]
fn layers_on_one_thread_or_several() {
    // As many entries in fewer rows: the layers cost by the row.
    let x = log::<f32>(MANY_ROWS as usize / 7, MANY_FEATURES, 40 * 7);
    let y = floats::<f32>(&noise(MANY_ROWS / 7, 2));
    let data = Dataset::builder().input("x", x).label("y", y).build().unwrap();
    on_threads!(Layers, Sgd::default(), &data);
    on_threads!(Layers, Sgd { momentum: 0.9, weight_decay: 0.01, ..Sgd::default() }, &data);
    on_threads!(Layers, AdaGrad::default(), &data);
    on_threads!(LargeLayers, Sgd::default(), &data);
    on_threads!(LargeLayers, Ftrl::default(), &data);
}

graph! {
    /// Tables that the columns of one csr name rows of, pooled in each way: their sums lie together
    /// on one thread, and apart on several.
    pub model OneCsr {
        input x: csr[n, d];
        label y: dense[n, 1];
        param w: row_sparse[d, 1] = Normal { mean: 0.0, std: 0.1 };
        param v: row_sparse[d, 8] = Normal { mean: 0.0, std: 0.1 };
        param t: row_sparse[d, 16] = Normal { mean: 0.0, std: 0.1 };
        param c: row_sparse[d, 3] = Normal { mean: 0.0, std: 0.1 };
        param h: dense[16, 3] = Normal { mean: 0.0, std: 0.1 };
        let bags = embedding_bag(x, t, mean = true);
        let deep = sum(tanh(dot(bags, h) + dot(x, c)), axis = 1, keepdims = true);
        let score = dot(x, w) + pairwise_interaction(x, v) + deep;
        loss logistic(score, y);
    }
}

#[test]
fn tables_of_one_csr_on_one_thread_or_several() {
    let x = log::<f32>(MANY_ROWS as usize / 7, MANY_FEATURES, 40 * 7);
    let y = floats::<f32>(&noise(MANY_ROWS / 7, 2));
    let data = Dataset::builder().input("x", x).label("y", y).build().unwrap();
    on_threads!(OneCsr, Sgd::default(), &data);
    on_threads!(OneCsr, Sgd { momentum: 0.9, weight_decay: 0.01, ..Sgd::default() }, &data);
    on_threads!(OneCsr, AdaGrad::default(), &data);
    let clipped = |parallel| {
        let mut model = OneCsr::new(dims! { d: MANY_FEATURES }, Seed(7)).unwrap();
        let mut trainer = Trainer::new(AdaGrad::default())
            .batch_size(data.n_rows() / 2)
            .epochs(3)
            .clip_norm(Some(0.01))
            .progress(Progress::Silent)
            .parallel(parallel);
        trainer.fit(&mut model, &data).unwrap();
        model.parameters().iter().map(|table| table.values().to_vec()).collect::<Vec<_>>()
    };
    assert!(clipped(Parallel::Sequential) == clipped(Parallel::Threads(2)));
}

#[test]
fn several_columns_on_several_threads() {
    let n_rows = MANY_ROWS as usize;
    let x = log::<f32>(n_rows, MANY_FEATURES, 40);
    let weights = floats::<f32>(&noise(MANY_ROWS, 3)).into_values();
    let y = noise(MANY_ROWS, 5);
    let classes =
        Dataset::builder().input("x", x).input("weight", weights).label("y", y).build().unwrap();
    let momentum = Sgd { momentum: 0.9, weight_decay: 0.01, ..Sgd::default() };
    on_threads!(Classes, Sgd::default(), &classes);
    on_threads!(Classes, momentum, &classes);
    on_threads!(Classes, AdaGrad::default(), &classes);
}

/// Whether `Exact` in one call is what `Dense` is step by step. In some orders of the rows these
/// steps amplify what anything is rounded by: how much shows in `Dense` from weights a little off.
#[test]
fn exact_is_dense() {
    const OFF: f64 = 1e-15;
    let rule = Sgd { learning_rate: 0.05, momentum: 0.9, weight_decay: 0.01, ..Sgd::default() };
    let run = |lazy_update, seed: Option<u64>, off: f64| {
        let rule = Sgd { lazy_update, ..rule.clone() };
        let mut model = Linear::new(dims! { d: N_FEATURES }, Seed(7)).unwrap();
        for parameter in model.parameters_mut() {
            parameter.table.values_mut().iter_mut().for_each(|value| *value += off);
        }
        let trainer = Trainer::new(rule).batch_size(1).epochs(2).progress(Progress::Silent);
        let mut trainer = trainer.shuffle(seed.is_some()).seed(seed.unwrap_or(0));
        trainer.fit(&mut model, &linear()).unwrap();
        model.w.values().to_vec()
    };
    for seed in [None, Some(0), Some(1), Some(2), Some(3)] {
        let dense = run(LazyUpdate::Dense, seed, 0.0);
        let farthest = |other: Vec<f64>| {
            let pairs = other.iter().zip(&dense);
            pairs.map(|(a, b)| (a - b).abs() / (1.0 + b.abs())).fold(0.0, f64::max)
        };
        let growth = farthest(run(LazyUpdate::Dense, seed, OFF)) / OFF;
        let apart = farthest(run(LazyUpdate::Exact, seed, 0.0));
        assert!(apart < 1e-13 * growth.max(1.0), "{seed:?}: {apart} by a growth of {growth}");
    }
}

#[test]
fn a_loss_that_is_not_finite_ends_the_steps() {
    let data = linear();
    let mut bad = labels(2).iter().map(|label| f64::from(*label)).collect::<Vec<_>>();
    bad[700] = f64::NAN;
    let bad = Dense::new([1500, 1], bad).unwrap();
    let x = data.features().unwrap();
    let mut model = Linear::new(dims! { d: N_FEATURES }, Seed(7)).unwrap();
    let rule = Sgd { learning_rate: 0.1, momentum: 0.9, ..Sgd::default() };
    let mut updater = Updater::for_model(rule, &model).unwrap();
    updater.set_records_outputs(false);
    let batch = LinearBatch { x: x.view(), y: bad.view() };
    let steps = model.train_rows(&batch, &mut updater).unwrap();
    assert_eq!((steps.n_steps, steps.diverged()), (701, true));
    assert_eq!(updater.clock(), 701);
    // The clock goes on from there.
    updater.flush_model(&mut model).unwrap();
    let again = model.train_rows(&batch, &mut updater).unwrap();
    assert_eq!((again.n_steps, updater.clock()), (1, 702));
}

#[test]
fn a_model_that_is_not_one_loop_says_so() {
    let mut model = Apart::new(dims! { d: N_FEATURES }, Seed(7)).unwrap();
    const { assert!(!Apart::TRAINS_ROWS && Linear::TRAINS_ROWS) };
    let mut updater = Updater::for_model(Sgd::default(), &model).unwrap();
    let (x, y) = (features(), floats(&labels(2)));
    let batch = ApartBatch { x: x.view(), y: y.view() };
    assert_eq!(
        model.train_rows(&batch, &mut updater).unwrap_err().to_string(),
        "model `Apart` makes no steps row by row in one call: give `train_step` batches of one row"
    );
}

#[test]
fn an_error_before_the_first_step_leaves_the_clock() {
    let data = linear();
    let (x, y) = (data.features().unwrap().view(), floats(&labels(2)));
    let rule = Sgd { momentum: 0.9, ..Sgd::default() };
    let run = |disturbed: bool| {
        let mut model = Linear::new(dims! { d: N_FEATURES }, Seed(7)).unwrap();
        let mut updater = Updater::for_model(rule.clone(), &model).unwrap();
        let batch = LinearBatch { x, y: y.view() };
        model.train_rows(&batch, &mut updater).unwrap();
        if disturbed {
            // Begun and not ended.
            assert_eq!(updater.begin_steps(10).unwrap(), 10);
        }
        model.train_step(&batch, &mut updater).unwrap();
        assert_eq!(updater.begin_steps(10).unwrap(), 10);
        updater.end_steps(4).unwrap();
        model.train_rows(&batch, &mut updater).unwrap();
        updater.flush_model(&mut model).unwrap();
        (updater.clock(), model.w.values().to_vec())
    };
    assert_eq!(run(true), run(false));
}

#[test]
fn steps_are_counted() {
    let mut all = RowSteps::default();
    assert!(all.add(0.5) && all.add(1.5) && !all.add(f64::NAN));
    assert!(all.n_steps == 3 && all.diverged());
    let mut both = RowSteps { n_steps: 2, loss_sum: 1.0, last_loss: 0.5 };
    both.extend(RowSteps { n_steps: 1, loss_sum: 3.0, last_loss: 3.0 });
    assert_eq!(both, RowSteps { n_steps: 3, loss_sum: 4.0, last_loss: 3.0 });
}

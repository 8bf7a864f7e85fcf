//! Steps that are one loop over rows named by ids, against the same models unfused, and at what
//! they refuse.

use nnz::core::update_rules::{GroupAdaGrad, UpdateRule};
use nnz::model::ModelError;
use nnz::optimizer::Updater;
use nnz::prelude::*;

twins! {
    /// Numbers in vectors, every kind of term, a chain that the gradient goes back through.
    Factors, FactorsUnfused {
        dtype = f64;
        input user: dense<u32>[n];
        input item: dense<u32>[n];
        input word: dense<u64>[n];
        input weight: dense[n];
        label y: dense[n];
        param p: row_sparse[users, 3] = Normal { mean: 0.0, std: 0.5 };
        param q: row_sparse[items, 3] = Normal { mean: 0.0, std: 0.5 };
        param r: row_sparse[items, 3] = Normal { mean: 0.0, std: 0.5 };
        param s: row_sparse[words, 3] = Normal { mean: 0.0, std: 0.5 };
        param of_user: row_sparse[users] = Normal { mean: 0.0, std: 0.5 };
        param of_item: row_sparse[items] = Normal { mean: 0.0, std: 0.5 };
        param b: dense[1] = Constant(0.25);
        let first = sum(take(p, user) * take(q, item), axis = 1) + take(of_user, user);
        let second = sum(take(s, word) * take(r, item), axis = 1) + take(of_item, item);
        let score = 2.0 * tanh(first + b) + clip(second * second, lower = -0.5, upper = 0.25);
        loss logistic(score, y, weight);
        output score;
        output second;
        output chance = sigmoid(score);
    }

    /// Columns of one number, a width known when the model is made.
    Columns, ColumnsUnfused {
        dtype = f64;
        input user: dense<u32>[n];
        input item: dense<i64>[n];
        label y: dense[n, 1];
        param p: row_sparse[users, k] = Normal { mean: 0.0, std: 0.5 };
        param q: row_sparse[items, k] = Normal { mean: 0.0, std: 0.5 };
        param of_user: row_sparse[users, 1] = Normal { mean: 0.0, std: 0.5 };
        let score = sum(embedding(user, p) * embedding(item, q), axis = 1, keepdims = true)
            + embedding(user, of_user);
        loss squared_error(score, y);
        output score;
    }

    /// No inner product: a rating of items against each other.
    Biases, BiasesUnfused {
        dtype = f64;
        input user: dense<u32>[n];
        label y: dense[n];
        param of_user: row_sparse[users] = Zeros;
        loss poisson(take(of_user, user), y);
    }

    /// Means in place of sums, of a width known when the model is made.
    Means, MeansUnfused {
        dtype = f64;
        input user: dense<u32>[n];
        input item: dense<u32>[n];
        label y: dense[n];
        param p: row_sparse[users, k] = Normal { mean: 0.0, std: 0.5 };
        param q: row_sparse[items, k] = Normal { mean: 0.0, std: 0.5 };
        param of_item: row_sparse[items] = Normal { mean: 0.0, std: 0.5 };
        param b: dense[1] = Constant(0.25);
        let score = mean(take(p, user) * take(q, item), axis = 1) * tanh(take(of_item, item) + b);
        loss squared_error(score, y);
        output score;
    }

    /// The same of a width that the source has, beside a sum.
    FixedMeans, FixedMeansUnfused {
        dtype = f64;
        input user: dense<u32>[n];
        input item: dense<u32>[n];
        label y: dense[n, 1];
        param p: row_sparse[users, 5] = Normal { mean: 0.0, std: 0.5 };
        param q: row_sparse[items, 5] = Normal { mean: 0.0, std: 0.5 };
        param r: row_sparse[items, 5] = Normal { mean: 0.0, std: 0.5 };
        param s: row_sparse[users, 5] = Normal { mean: 0.0, std: 0.5 };
        let mean_of = mean(embedding(user, p) * embedding(item, q), axis = -1, keepdims = true);
        let score = sum(take(s, user) * take(r, item), axis = 1, keepdims = true) + mean_of;
        loss logistic(score, y);
        output score;
        output mean_of;
    }

    /// Means of what layers compute, and of rows as they are.
    Layered, LayeredUnfused {
        dtype = f64;
        input x: csr[n, words];
        input user: dense<u32>[n];
        label y: dense[n];
        param t: row_sparse[words, 3] = Normal { mean: 0.0, std: 0.5 };
        param p: row_sparse[users, 3] = Normal { mean: 0.0, std: 0.5 };
        param h: dense[3, 4] = Normal { mean: 0.0, std: 0.5 };
        let of_user = embedding(user, p);
        let hidden = tanh(dot(embedding_bag(x, t) + of_user, h));
        let score = mean(hidden, axis = 1) * (1.0 + mean(of_user, axis = 1));
        loss squared_error(score, y);
        output score;
        output hidden;
    }

    /// Rows that are read behind `stop_gradient` as well: by other ids of which some are the same,
    /// by columns, by both.
    Stopped, StoppedUnfused {
        dtype = f64;
        input x: csr[n, items];
        input user: dense<u32>[n];
        input item: dense<u32>[n];
        input other: dense<i64>[n];
        label y: dense[n];
        param p: row_sparse[users, 3] = Normal { mean: 0.0, std: 0.5 };
        param q: row_sparse[items, 3] = Normal { mean: 0.0, std: 0.5 };
        param w: row_sparse[items] = Normal { mean: 0.0, std: 0.5 };
        let target = stop_gradient(take(q, other) + embedding_bag(x, q, mean = true));
        let both = take(p, user) * (take(q, item) + target);
        let score = sum(both, axis = 1) + take(w, item) + 0.5 * stop_gradient(dot(x, w));
        loss squared_error(score, y);
        output score;
    }

    /// Rows of parameters that are not trained, by ids, by columns, numbers, beside rows that are.
    Pretrained, PretrainedUnfused {
        dtype = f64;
        input x: csr[n, words];
        input user: dense<u32>[n];
        input word: dense<u64>[n];
        label y: dense[n, 1];
        param(frozen) known: row_sparse[words, 3] = Normal { mean: 0.0, std: 0.5 };
        param(frozen) weight: dense[words, 1] = Normal { mean: 0.0, std: 0.5 };
        param p: row_sparse[users, 3] = Normal { mean: 0.0, std: 0.5 };
        param h: dense[3, 2] = Normal { mean: 0.0, std: 0.5 };
        param g: dense[2, 1] = Normal { mean: 0.0, std: 0.5 };
        let read = embedding(word, known) + embedding_bag(x, known, weighted = true, mean = true);
        let hidden = tanh(dot(read + take(p, user), h));
        let score = dot(hidden, g) + dot(x, weight) * take(weight, word);
        loss logistic(score, y);
        output score;
    }
}

const ROWS: usize = 40;

fn ids<I: nnz::core::element::Element>(below: usize, of: impl Fn(usize) -> I) -> Dense<I> {
    Dense::new([ROWS], (0..ROWS).map(|row| of(row * row % 13 % below)).collect()).unwrap()
}

fn words(below: usize) -> Csr<f64> {
    let row = |row: usize| {
        let of_row = (0..below).filter(move |word| (row + word * word) % 4 == 1);
        of_row.map(move |word| (word, (row % 3) as f64 - 0.5)).collect::<Vec<_>>()
    };
    Csr::from_rows(below, (0..ROWS).map(row)).unwrap()
}

fn labels(rank: usize) -> Dense<f64> {
    let values = (0..ROWS).map(|row| (row % 2) as f64).collect();
    if rank == 1 { Dense::new([ROWS], values) } else { Dense::new([ROWS, 1], values) }.unwrap()
}

/// Steps on a whole batch, on one row, on some.
fn ranges() -> impl Iterator<Item = std::ops::Range<usize>> {
    (0..9).map(|step| match step % 3 {
        0 => 0..ROWS,
        1 => step..step + 1,
        _ => 2 * step..3 * step,
    })
}

#[track_caller]
fn close(found: &[f64], expected: &[f64], what: &str) {
    assert_eq!(found.len(), expected.len());
    for (p, q) in found.iter().zip(expected) {
        assert!((p - q).abs() < 1e-11, "{what}: {p} {q}");
    }
}

fn agree<A, B, R>(
    mut fused: A,
    mut unfused: B,
    rule: &R,
    mut batches: impl FnMut(
        &mut A,
        &mut B,
        &mut Updater<R, f64>,
        &mut Updater<R, f64>,
    ) -> Vec<(f64, f64)>,
) where
    A: Model<Element = f64>,
    B: Model<Element = f64>,
    R: UpdateRule,
{
    let mut a = Updater::for_model(rule.clone(), &fused).unwrap();
    let mut b = Updater::for_model(rule.clone(), &unfused).unwrap();
    let what = format!("{} {rule:?}", A::NAME);
    for (p, q) in batches(&mut fused, &mut unfused, &mut a, &mut b) {
        close(&[p], &[q], &what);
    }
    for index in 0..A::OUTPUTS.len() {
        let (p, q) = (fused.dense_output(index).unwrap(), unfused.dense_output(index).unwrap());
        assert_eq!(p.shape(), q.shape());
        close(p.values(), q.values(), &what);
    }
    a.flush_model(&mut fused).unwrap();
    b.flush_model(&mut unfused).unwrap();
    for (p, q) in fused.parameters().iter().zip(unfused.parameters()) {
        close(p.values(), q.values(), &what);
    }
}

macro_rules! agree {
    ($rule:expr, $fused:ident, $unfused:ident, $batch:ident, $unfused_batch:ident, $dims:expr, { $($name:ident: $array:expr),* }) => {{
        $(let $name = $array;)*
        let (fused, unfused) = ($fused::new($dims, Seed(7)).unwrap(), $unfused::new($dims, Seed(7)).unwrap());
        agree(fused, unfused, $rule, |fused, unfused, a, b| {
            ranges().map(|range| {
                $(let $name = $name.view().rows(range.clone()).unwrap();)*
                let loss = fused.train_step(&$batch { $($name,)* }, a).unwrap();
                (loss, unfused.train_step(&$unfused_batch { $($name,)* }, b).unwrap())
            }).collect()
        });
    }};
}

/// A rule in each of its modes.
fn every_mode<R: UpdateRule>(rule: R) {
    for lazy_update in [LazyUpdate::Exact, LazyUpdate::Touched, LazyUpdate::Dense] {
        let mut rule = rule.clone();
        rule.set_lazy_update(lazy_update);
        if rule.check().is_ok() {
            all_agree(&rule);
        }
    }
}

fn all_agree<R: UpdateRule>(rule: &R) {
    let weights = || Dense::new([ROWS], (0..ROWS).map(|row| (row % 3) as f64).collect()).unwrap();
    agree!(rule, Factors, FactorsUnfused, FactorsBatch, FactorsUnfusedBatch, dims! { users: 13, items: 7, words: 5 }, {
        user: ids(13, |id| id as u32),
        item: ids(7, |id| id as u32),
        word: ids(5, |id| id as u64),
        weight: weights(),
        y: labels(1)
    });
    agree!(rule, Columns, ColumnsUnfused, ColumnsBatch, ColumnsUnfusedBatch, dims! { users: 13, items: 7, k: 11 }, {
        user: ids(13, |id| id as u32),
        item: ids(7, |id| id as i64),
        y: labels(2)
    });
    agree!(rule, Means, MeansUnfused, MeansBatch, MeansUnfusedBatch, dims! { users: 13, items: 7, k: 11 }, {
        user: ids(13, |id| id as u32),
        item: ids(7, |id| id as u32),
        y: labels(1)
    });
    agree!(rule, FixedMeans, FixedMeansUnfused, FixedMeansBatch, FixedMeansUnfusedBatch, dims! { users: 13, items: 7 }, {
        user: ids(13, |id| id as u32),
        item: ids(7, |id| id as u32),
        y: labels(2)
    });
    agree!(rule, Layered, LayeredUnfused, LayeredBatch, LayeredUnfusedBatch, dims! { users: 13, words: 9 }, {
        x: words(9),
        user: ids(13, |id| id as u32),
        y: labels(1)
    });
    agree!(rule, Stopped, StoppedUnfused, StoppedBatch, StoppedUnfusedBatch, dims! { users: 13, items: 7 }, {
        x: words(7),
        user: ids(13, |id| id as u32),
        item: ids(7, |id| id as u32),
        other: ids(6, |id| id as i64),
        y: labels(1)
    });
    agree!(rule, Pretrained, PretrainedUnfused, PretrainedBatch, PretrainedUnfusedBatch, dims! { users: 13, words: 9 }, {
        x: words(9),
        user: ids(13, |id| id as u32),
        word: ids(9, |id| id as u64),
        y: labels(2)
    });
    agree!(rule, Biases, BiasesUnfused, BiasesBatch, BiasesUnfusedBatch, dims! { users: 13 }, {
        user: ids(13, |id| id as u32),
        y: labels(1)
    });
}

#[test]
fn fused_equals_unfused() {
    // One of each kind: without state, with a state a weight, one of which forgets, one that counts
    // steps, and with a state a row. All rules are compiled for every model, which takes its time.
    every_mode(Sgd::default());
    every_mode(AdaGrad::default());
    every_mode(Ftrl::default());
    every_mode(Adam::default());
    every_mode(GroupAdaGrad::default());
}

#[test]
fn rows_that_wait_for_idle_steps() {
    for lazy_update in [LazyUpdate::Exact, LazyUpdate::Dense] {
        let rule = Sgd { momentum: 0.9, weight_decay: 0.1, lazy_update, ..Sgd::default() };
        all_agree(&rule);
    }
}

#[test]
fn the_plan_says_what_is_one_loop() {
    let plan = Columns::PLAN.to_string();
    let words = plan.split_whitespace().collect::<Vec<_>>().join(" ");
    let step = "step: one loop over the rows of the batch (rows named by ids, squared_error(score, y), \
                update of p, q and of_user), marked *";
    assert!(words.contains(step), "{plan}");
    assert!(Factors::PLAN.is_fused() && Biases::PLAN.is_fused());
    assert!(Means::PLAN.is_fused() && FixedMeans::PLAN.is_fused());
    for plan in [Layered::PLAN, Stopped::PLAN, Pretrained::PLAN] {
        let plan = plan.to_string();
        assert!(plan.contains("one loop over the samples, each of which reads"), "{plan}");
    }
    const { assert!(Layered::TRAINS_ROWS && Stopped::TRAINS_ROWS && Pretrained::TRAINS_ROWS) };
    assert!(!FactorsUnfused::PLAN.is_fused());
}

#[test]
fn ids_beyond_a_table_are_typed_errors() {
    let mut model = Biases::new(dims! { users: 5 }, Seed(7)).unwrap();
    let mut updater = Updater::for_model(Sgd::default(), &model).unwrap();
    let (user, y) = (ids(13, |id| id as u32), labels(1));
    let batch = BiasesBatch { user: user.view(), y: y.view() };
    let error = model.train_step(&batch, &mut updater).unwrap_err();
    assert!(matches!(error, nnz::model::Error::Model(ModelError::Id { bound: 5, .. })), "{error}");
    let error = model.train_rows(&batch, &mut updater).unwrap_err();
    assert!(matches!(error, nnz::model::Error::Model(ModelError::Id { bound: 5, .. })), "{error}");
    assert_eq!(updater.clock(), 0);

    let mut model = Columns::new(dims! { users: 13, items: 7, k: 2 }, Seed(7)).unwrap();
    let mut updater = Updater::for_model(Sgd::default(), &model).unwrap();
    let (item, y) = (ids(7, |id| id as i64 - 1), labels(2));
    let batch = ColumnsBatch { user: user.view(), item: item.view(), y: y.view() };
    let error = model.train_step(&batch, &mut updater).unwrap_err();
    assert!(matches!(error, nnz::model::Error::Model(ModelError::Id { bound: 7, .. })), "{error}");
}

#[test]
fn a_large_batch_on_one_thread_or_two() {
    const MANY: usize = 60_000;
    let numbers = |of: usize, below: usize| {
        let id = move |row: usize| row * row.wrapping_mul(of) % 8191 * of % below;
        (0..MANY).map(id).collect::<Vec<_>>()
    };
    let user = numbers(7919, 50).into_iter().map(|id| id as u32).collect::<Vec<_>>();
    let item = numbers(104_729, 30).into_iter().map(|id| id as i64).collect::<Vec<_>>();
    let y = numbers(31, 5).into_iter().map(|y| y as f64).collect::<Vec<_>>();
    let data = Dataset::builder()
        .input("user", Dense::new([MANY], user).unwrap())
        .input("item", Dense::new([MANY], item).unwrap())
        .label("y", Dense::new([MANY, 1], y).unwrap())
        .build()
        .unwrap();
    let [one, two] = [Parallel::Sequential, Parallel::Threads(2)].map(|parallel| {
        let mut model = Columns::new(dims! { users: 50, items: 30, k: 16 }, Seed(7)).unwrap();
        let rule = Sgd { learning_rate: 10.0, ..Sgd::default() };
        let trainer = Trainer::new(rule).batch_size(MANY).epochs(3).progress(Progress::Silent);
        let report = trainer.parallel(parallel).fit(&mut model, &data).unwrap();
        assert!(report.epochs[2].loss < 0.9 * report.epochs[0].loss);
        let values = model.parameters().iter().map(|p| p.values().to_vec()).collect::<Vec<_>>();
        (report.epochs.iter().map(|epoch| epoch.loss).collect::<Vec<_>>(), values)
    });
    assert!(one == two);
}

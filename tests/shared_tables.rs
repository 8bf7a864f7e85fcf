//! Tables that a row of data reads in several places, and what names one row twice: steps that are
//! one loop, against the same models unfused.

use nnz::core::element::{Element, Stored};
use nnz::core::update_rules::{NAMES, RuleVisitor, UpdateRule, with_rule};
use nnz::formats::Unit;
use nnz::optimizer::Updater;
use nnz::prelude::*;

twins! {
    /// Items against items.
    Items, ItemsUnfused {
        dtype = f64;
        input first: dense<u32>[n];
        input second: dense<u64>[n];
        label y: dense[n];
        param q: row_sparse[items, 8] = Normal { mean: 0.0, std: 0.5 };
        param b: row_sparse[items] = Normal { mean: 0.0, std: 0.5 };
        let score = sum(take(q, first) * take(q, second), axis = 1) + take(b, first) - take(b, second);
        loss logistic(score, y);
        output score;
    }

    /// Which of two items a user prefers.
    Preferences, PreferencesUnfused {
        dtype = f64;
        input user: dense<u32>[n];
        input better: dense<u32>[n];
        input worse: dense<u32>[n];
        label y: dense[n, 1];
        param p: row_sparse[users, 4] = Normal { mean: 0.0, std: 0.5 };
        param q: row_sparse[items, 4] = Normal { mean: 0.0, std: 0.5 };
        let of_user = embedding(user, p);
        let score = sum(of_user * embedding(better, q), axis = 1, keepdims = true)
            - sum(of_user * embedding(worse, q), axis = 1, keepdims = true);
        loss logistic(score, y);
        output score;
    }

    /// Two bags of words through one layer.
    Siamese, SiameseUnfused {
        dtype = f64;
        input left: csr[n, words];
        input right: csr<unit>[n, words];
        input kind: dense<i64>[n];
        label y: dense[n, 1];
        param t: row_sparse[words, 3] = Normal { mean: 0.0, std: 0.5 };
        param h: dense[3, 4] = Normal { mean: 0.0, std: 0.5 };
        let a = tanh(dot(embedding_bag(left, t, mean = true), h));
        let b = tanh(dot(embedding_bag(right, t), h) + dot(take(t, kind), h));
        let score = sum(a * b, axis = 1, keepdims = true);
        loss squared_error(score, y);
        output score;
    }

    /// One vector of weights, of two rows of features.
    Linear, LinearUnfused {
        dtype = f64;
        input left: csr[n, words];
        input right: csr[n, words];
        label y: dense[n, 1];
        param w: row_sparse[words, 1] = Normal { mean: 0.0, std: 0.5 };
        param b: dense[1] = Zeros;
        let score = dot(left, w) - dot(right, w) + b;
        loss logistic(score, y);
        output score;
    }
}

const ROWS: usize = 24;

/// Ids of which those of `other(0)` and `other(1)` are equal in every third row.
fn ids<I: Element>(below: usize, other: usize, of: impl Fn(usize) -> I) -> Dense<I> {
    let id = |row: usize| (row * 5 + other * (row % 3)) % below;
    Dense::new([ROWS], (0..ROWS).map(|row| of(id(row))).collect()).unwrap()
}

fn labels(rank: usize) -> Dense<f64> {
    let values = (0..ROWS).map(|row| (row * 7 % 3 % 2) as f64).collect();
    let labels = Dense::new([ROWS], values).unwrap();
    if rank == 1 { labels } else { labels.reshape([ROWS, 1]).unwrap() }
}

const WORDS: usize = 9;

/// Bags, some without words, that share some words with those of another number.
fn bags<V: Stored>(number: usize, of: impl Fn(f64) -> V) -> Csr<V> {
    let has = |row: usize, word: usize| !(row * 3 + word * (number + 1) * 5).is_multiple_of(4);
    let is_empty = |row: usize| row % 5 == number;
    let value = |row: usize, word: usize| 0.25 * (1 + (row + word * 3 + number) % 5) as f64;
    let words = |row: usize| (0..WORDS).filter(move |word| !is_empty(row) && has(row, *word));
    let rows = (0..ROWS).map(|row| words(row).map(|word| (word, of(value(row, word)))).collect());
    Csr::from_rows(WORDS, rows.collect::<Vec<Vec<_>>>()).unwrap()
}

#[track_caller]
fn close(found: &[f64], expected: &[f64], what: &str) {
    assert_eq!(found.len(), expected.len());
    for (p, q) in found.iter().zip(expected) {
        assert!((p - q).abs() < 1e-10, "{what}: {p} {q}");
    }
}

fn same_parameters<A, B, R: UpdateRule>(
    (a, of_a): (&mut A, &mut Updater<R, f64>),
    (b, of_b): (&mut B, &mut Updater<R, f64>),
    what: &str,
) where
    A: Model<Element = f64>,
    B: Model<Element = f64>,
{
    of_a.flush_model(a).unwrap();
    of_b.flush_model(b).unwrap();
    for (p, q) in a.parameters().iter().zip(b.parameters()) {
        close(p.values(), q.values(), &format!("{what}, {}", p.name));
    }
}

/// Steps of whole batches, of single rows and of some, and single rows in one call.
macro_rules! agree {
    ($rule:expr, $fused:ident, $unfused:ident, $batch:ident, $unfused_batch:ident, $dims:expr, { $($name:ident: $array:expr),* }) => {{
        let (rule, what) = ($rule, format!("{} {:?}", $fused::NAME, $rule));
        $(let $name = $array;)*
        let (mut a, mut b) = ($fused::new($dims, Seed(7)).unwrap(), $unfused::new($dims, Seed(7)).unwrap());
        let mut of_a = Updater::for_model(rule.clone(), &a).unwrap();
        let mut of_b = Updater::for_model(rule.clone(), &b).unwrap();
        for range in [0..ROWS, 3..4, 0..1, 4..9, 5..6, 1..2, 9..ROWS] {
            $(let $name = $name.view().rows(range.clone()).unwrap();)*
            let found = a.train_step(&$batch { $($name,)* }, &mut of_a).unwrap();
            let expected = b.train_step(&$unfused_batch { $($name,)* }, &mut of_b).unwrap();
            close(&[found], &[expected], &what);
            close(a.outputs().score.values(), b.outputs().score.values(), &what);
        }
        $(let $name = $name.view();)*
        a.train_rows(&$batch { $($name,)* }, &mut of_a).unwrap();
        for row in 0..ROWS {
            $(let $name = $name.rows(row..row + 1).unwrap();)*
            b.train_step(&$unfused_batch { $($name,)* }, &mut of_b).unwrap();
        }
        same_parameters((&mut a, &mut of_a), (&mut b, &mut of_b), &what);
    }};
}

fn all_agree<R: UpdateRule>(rule: &R) {
    agree!(rule, Items, ItemsUnfused, ItemsBatch, ItemsUnfusedBatch, dims! { items: 11 }, {
        first: ids(11, 0, |id| id as u32),
        second: ids(11, 1, |id| id as u64),
        y: labels(1)
    });
    agree!(
        rule, Preferences, PreferencesUnfused, PreferencesBatch, PreferencesUnfusedBatch,
        dims! { users: 5, items: 11 }, {
            user: ids(5, 2, |id| id as u32),
            better: ids(11, 0, |id| id as u32),
            worse: ids(11, 1, |id| id as u32),
            y: labels(2)
        }
    );
    agree!(rule, Siamese, SiameseUnfused, SiameseBatch, SiameseUnfusedBatch, dims! { words: WORDS }, {
        left: bags(0, |value| value),
        right: bags(1, |_| Unit),
        kind: ids(WORDS, 3, |id| id as i64),
        y: labels(2)
    });
    agree!(rule, Linear, LinearUnfused, LinearBatch, LinearUnfusedBatch, dims! { words: WORDS }, {
        left: bags(0, |value| value),
        right: bags(1, |value| value),
        y: labels(2)
    });
}

/// A rule in each of its modes.
struct EveryMode;

impl RuleVisitor for EveryMode {
    type Output = ();

    fn visit<R: UpdateRule>(self, rule: R) {
        for lazy_update in [LazyUpdate::Exact, LazyUpdate::Touched, LazyUpdate::Dense] {
            let mut rule = rule.clone();
            rule.set_lazy_update(lazy_update);
            if rule.check().is_ok() {
                all_agree(&rule);
            }
        }
    }
}

#[test]
fn fused_equals_unfused_by_every_rule() {
    for name in NAMES {
        with_rule(name, EveryMode).unwrap();
    }
}

#[test]
fn rows_that_wait_for_idle_steps() {
    for lazy_update in [LazyUpdate::Exact, LazyUpdate::Touched, LazyUpdate::Dense] {
        let rule = Sgd { momentum: 0.9, weight_decay: 0.1, lazy_update, ..Sgd::default() };
        all_agree(&rule);
        all_agree(&Sgd { momentum: 0.0, ..rule });
    }
}

/// A row that is named twice is updated once, with the sum of its gradients.
#[test]
fn a_row_named_twice_has_one_update() {
    let mut model = Items::new(dims! { items: 3 }, Seed(1)).unwrap();
    let before = model.q.values().to_vec();
    let bias = model.b.values().to_vec();
    let mut updater = Updater::for_model(AdaGrad::default(), &model).unwrap();
    let (first, second) =
        (Dense::new([1], vec![1u32]).unwrap(), Dense::new([1], vec![1u64]).unwrap());
    let y = Dense::new([1], vec![0.0]).unwrap();
    let batch = ItemsBatch { first: first.view(), second: second.view(), y: y.view() };
    model.train_step(&batch, &mut updater).unwrap();
    // AdaGrad's first step is the rate times the sign of the gradient, 2 · slope · q, of which the
    // sum is one step.
    let rate = AdaGrad::default().learning_rate;
    let after = model.q.values();
    for (place, (before, after)) in before.iter().zip(after).enumerate() {
        let step = if place / 8 == 1 { rate * before.signum() } else { 0.0 };
        assert!((before - step - after).abs() < 1e-4, "{place}: {before} {after}");
    }
    assert_eq!(model.b.values(), bias);
}

#[test]
fn the_plan_says_that_it_is_one_loop() {
    for plan in [Items::PLAN, Preferences::PLAN, Siamese::PLAN, Linear::PLAN] {
        let text = plan.to_string();
        let words = text.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(words.contains("one loop over the samples, each of which reads"), "{text}");
    }
}

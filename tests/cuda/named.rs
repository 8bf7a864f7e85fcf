//! Steps of models whose rows ids or bags name: gradients that go into their update, against the
//! same models with `fuse = off` and on the CPU.

use crate::device::gpu;
use crate::fused::{N_COLS, N_ROWS, features, hold, kernels_of_step, of_entry, trained};
use nnz::core::element::Unit;
use nnz::core::inspect::{Extent, PlanValue};
use nnz::core::update_rules::{LazyUpdate, NAMES, RuleVisitor, UpdateRule, with_rule};
use nnz::model::OnGpu;
use nnz::prelude::*;

twins! {
    /// Matrix factorization.
    Ratings, RatingsOff {
        input user: dense<u32>[n];
        input item: dense<u32>[n];
        label rating: dense[n];
        param p: row_sparse[users, 5] = Normal { mean: 0.0, std: 0.5 };
        param q: row_sparse[items, 5] = Normal { mean: 0.0, std: 0.5 };
        param of_user: row_sparse[users] = Zeros;
        param of_item: row_sparse[items] = Zeros;
        param mean: dense[1] = Zeros;
        let score = sum(take(p, user) * take(q, item), axis = 1)
            + take(of_user, user) + take(of_item, item) + mean;
        loss squared_error(score, rating);
        output prediction = clip(score, lower = 1, upper = 5);
    }

    /// Rows of one table, named twice.
    Alike, AlikeOff {
        input user: dense<u32>[n];
        input item: dense<u32>[n];
        label rating: dense[n];
        param e: row_sparse[users, 3] = Normal { mean: 0.0, std: 0.5 };
        loss squared_error(sum(take(e, user) * take(e, item), axis = 1), rating);
    }

    /// Rows of one table, named by ids of each type and beyond its ends; too wide for one group.
    Wide, WideOff {
        input user: dense<u32>[n];
        input long: dense<u64>[n];
        input signed: dense<i64>[n];
        label rating: dense[n];
        param e: row_sparse[users, 260] = Normal { mean: 0.0, std: 0.1 };
        param of_user: row_sparse[users] = Zeros;
        param h: dense[260] = Normal { mean: 0.0, std: 0.1 };
        let hidden = embedding(user, e) + take(e, long, clip = true) * take(e, signed, wrap = true);
        loss squared_error(sum(hidden * h, axis = 1) + take(of_user, user), rating);
    }

    /// A sentence is a matrix of ids. Rows named more often than one kernel takes them have their
    /// gradient made.
    Sentences, SentencesOff {
        input words: dense<u32>[n, 3];
        input user: dense<u32>[n];
        input item: dense<u32>[n];
        label rating: dense[n];
        param e: row_sparse[users, 4] = Normal { mean: 0.0, std: 0.5 };
        param often: row_sparse[users] = Normal { mean: 0.0, std: 0.5 };
        let product = take(often, user) * take(often, user, wrap = true) * take(often, user, clip = true);
        let more = product * embedding(user, often) * take(often, item);
        loss squared_error(sum(sum(embedding(words, e), axis = 1), axis = 1) + product + more, rating);
    }

    /// Bags of each kind.
    Bags, BagsOff {
        input x: csr[n, d];
        input z: csr<unit>[n, d];
        label y: dense[n, 1];
        param sums: row_sparse[d, 3] = Normal { mean: 0.0, std: 0.5 };
        param means: row_sparse[d, 3] = Normal { mean: 0.0, std: 0.5 };
        param weighted: row_sparse[d, 3] = Normal { mean: 0.0, std: 0.5 };
        param both: row_sparse[d, 3] = Normal { mean: 0.0, std: 0.5 };
        param units: row_sparse[d, 3] = Normal { mean: 0.0, std: 0.5 };
        let hidden = embedding_bag(x, sums) * embedding_bag(x, means, mean = true)
            + embedding_bag(x, weighted, weighted = true) + embedding_bag(x, both, mean = true, weighted = true)
            + embedding_bag(z, units, mean = true);
        loss logistic(sum(hidden, axis = 1, keepdims = true), y);
    }

    /// A wide part and a deep one.
    WideDeep, WideDeepOff {
        input x: csr[n, d];
        label y: dense[n, 1];
        param w: row_sparse[d, 1] = Zeros;
        param t: row_sparse[d, 3] = Normal { mean: 0.0, std: 0.3 };
        param h: dense[3, 17] = Normal { mean: 0.0, std: 0.5 };
        param g: dense[17, 1] = Normal { mean: 0.0, std: 0.5 };
        let score = dot(x, w) + dot(relu(dot(embedding_bag(x, t), h)), g);
        loss logistic(score, y);
        output probability = sigmoid(score);
    }

    /// A table whose gradient has terms of several kinds is updated by a gradient that is made.
    Mixed, MixedOff {
        input x: csr[n, d];
        input user: dense<u32>[n];
        label rating: dense[n];
        param e: row_sparse[d, 3] = Normal { mean: 0.0, std: 0.5 };
        param of_user: row_sparse[users] = Zeros;
        let score = sum(dot(x, e) * take(e, user), axis = 1) + take(of_user, user);
        loss squared_error(score, rating);
    }
}

pub(crate) const N_USERS: usize = 9;
pub(crate) const N_ITEMS: usize = 6;
pub(crate) const N_TIMES: usize = 3;

/// Ids that a batch has several times, and some that none has.
pub(crate) fn data() -> Dataset {
    let of = |step: usize, below: usize| (0..N_ROWS * 3).map(move |at| at * step % below);
    let rows = |step: usize, below: usize| of(step, below).take(N_ROWS);
    let words = of(5, N_USERS - 1).map(|id| id as u32).collect();
    Dataset::builder()
        .input("x", features(of_entry))
        .input("z", pattern())
        .input("user", rows(4, N_USERS - 2).map(|id| id as u32 / 2 * 2).collect::<Vec<_>>())
        .input("item", rows(2, N_ITEMS - 1).map(|id| id as u32).collect::<Vec<_>>())
        .input("long", rows(5, 2 * N_USERS).map(|id| id as u64).collect::<Vec<_>>())
        .input("signed", rows(5, 40).map(|id| id as i64 - 20).collect::<Vec<_>>())
        .input("words", Dense::new([N_ROWS, 3], words).unwrap())
        .label("rating", Dense::from(rows(3, 5).map(|stars| stars as f32).collect::<Vec<_>>()))
        .label("y", Dense::new([N_ROWS, 1], rows(3, 2).map(|y| y as f32).collect()).unwrap())
        .build()
        .unwrap()
}

fn pattern() -> Csr<Unit> {
    let row =
        |row: u32| (0..if row % 3 == 1 { 0 } else { 4 }).map(move |entry| entry * 9 + row % 2);
    let ends = (0..N_ROWS as u32).scan(0, |end, at| {
        *end += row(at).count() as u64;
        Some(*end)
    });
    let indptr = std::iter::once(0).chain(ends).collect();
    Csr::pattern(N_COLS, indptr, (0..N_ROWS as u32).flat_map(row).collect::<Vec<_>>()).unwrap()
}

/// The dimensions that a model has.
pub(crate) fn sizes<M: Model>(n_cols: usize) -> Dims {
    let all = [("d", n_cols), ("users", N_USERS), ("items", N_ITEMS), ("times", N_TIMES)];
    all.into_iter().fold(Dims::new(), |dims, (name, extent)| {
        let is_named = |value: &PlanValue<'_>| value.shape.contains(&Extent::Named(name));
        if M::PLAN.values.iter().any(is_named) { dims.with(name, extent) } else { dims }
    })
}

/// So many ratings.
pub(crate) fn rated(n_rows: usize) -> Dataset {
    let of = |step: usize, below: usize| (0..n_rows).map(move |at| (at * step / 3 % below) as u32);
    Dataset::builder()
        .input("user", of(7, N_USERS).collect::<Vec<_>>())
        .input("item", of(5, N_ITEMS).collect::<Vec<_>>())
        .label("rating", Dense::from(of(4, 5).map(|stars| stars as f32).collect::<Vec<_>>()))
        .build()
        .unwrap()
}

macro_rules! hold_all {
    ($rule:expr, $($fused:ident $unfused:ident),*) => {
        $(hold(
            &$fused::new(sizes::<$fused>(N_COLS), Seed(3)).unwrap(),
            &$unfused::new(sizes::<$unfused>(N_COLS), Seed(3)).unwrap(),
            &data(),
            &$rule,
        );)*
    };
}

#[test]
fn rows_that_ids_name() {
    let rule = Sgd {
        learning_rate: 0.05,
        momentum: 0.5,
        lazy_update: LazyUpdate::Touched,
        ..Sgd::default()
    };
    hold_all!(rule, Ratings RatingsOff, Alike AlikeOff, Wide WideOff, Sentences SentencesOff);
    // Rows that a step does not touch make it too, when the rate has changed.
    let rule = Ftrl { l1: 0.01, ..Ftrl::default() };
    hold_all!(rule, Ratings RatingsOff, Alike AlikeOff);
}

#[test]
fn rows_that_bags_name() {
    let rule = AdaGrad { learning_rate: 0.1, ..AdaGrad::default() };
    hold_all!(rule, Bags BagsOff, WideDeep WideDeepOff, Mixed MixedOff);
}

#[test]
fn modes_that_need_the_gradient_have_it() {
    hold_all!(Adam { lazy_update: LazyUpdate::Dense, ..Adam::default() }, Ratings RatingsOff, WideDeep WideDeepOff);
}

/// A step of each rule is that of the gradient which is made, to the bit where a row's sum has one
/// right side.
struct Same;

impl RuleVisitor for Same {
    type Output = ();

    fn visit<R: UpdateRule>(self, mut rule: R) {
        rule.set_lazy_update(LazyUpdate::Touched);
        if rule.check().is_err() {
            rule.set_lazy_update(LazyUpdate::Dense);
        }
        let data = data();
        let mut fused =
            OnGpu::new(&Ratings::new(sizes::<Ratings>(N_COLS), Seed(3)).unwrap(), &gpu()).unwrap();
        let mut unfused =
            OnGpu::new(&RatingsOff::new(sizes::<RatingsOff>(N_COLS), Seed(3)).unwrap(), &gpu())
                .unwrap();
        let (losses, values) = trained(&mut fused, &data, &rule, N_ROWS);
        let (expected_losses, expected) = trained(&mut unfused, &data, &rule, N_ROWS);
        for (loss, expected) in losses.iter().zip(&expected_losses) {
            assert!((loss - expected).abs() < 1e-5, "{}: {loss} {expected}", R::NAME);
        }
        let before = Ratings::new(sizes::<Ratings>(N_COLS), Seed(3)).unwrap();
        let before: Vec<f32> =
            before.parameters().iter().flat_map(|of| of.values().to_vec()).collect();
        assert_ne!(values, before, "{}", R::NAME);
        for (value, expected) in values.iter().zip(&expected) {
            assert!((value - expected).abs() < 1e-5, "{}: {value} {expected}", R::NAME);
        }
    }
}

#[test]
fn every_rule_updates_the_rows_that_ids_name() {
    for name in NAMES {
        with_rule(name, Same).unwrap();
    }
}

/// How many of the launches are of a kernel.
fn number(launched: &[&str], kernel: &str) -> usize {
    launched.iter().filter(|name| **name == kernel).count()
}

#[test]
fn ids_are_looked_for_once_and_gradients_are_not_made() {
    let fused = Ratings::new(sizes::<Ratings>(N_COLS), Seed(3)).unwrap();
    let step = kernels_of_step(&fused, &data(), false, None);
    // Of users and of items.
    assert_eq!(number(&step, "write_runs"), 2);
    assert_eq!(number(&step, "take_gradient"), 0);
    assert_eq!(
        step[step.len() - 5..],
        ["update_of_sums", "update_of_sums", "update_of_sums", "update_of_sums", "update"]
    );
    // A norm is that of gradients that are there.
    let clipped = kernels_of_step(&fused, &data(), false, Some(1.0));
    assert_eq!((number(&clipped, "take_gradient"), number(&clipped, "update_of_sums")), (4, 0));
    // Two lists of ids are one source, of one sum.
    let alike = kernels_of_step(
        &Alike::new(sizes::<Alike>(N_COLS), Seed(3)).unwrap(),
        &data(),
        false,
        None,
    );
    assert_eq!([number(&alike, "write_runs"), number(&alike, "take_gradient")], [1, 0]);
    assert_eq!(alike.last(), Some(&"update_of_sums"));
    let off = kernels_of_step(
        &AlikeOff::new(sizes::<AlikeOff>(N_COLS), Seed(3)).unwrap(),
        &data(),
        false,
        None,
    );
    assert_eq!(number(&off, "take_gradient"), 2);
}

#[test]
fn the_columns_of_bags_are_those_of_the_wide_part() {
    let fused = WideDeep::new(sizes::<WideDeep>(N_COLS), Seed(3)).unwrap();
    let step = kernels_of_step(&fused, &data(), false, None);
    assert_eq!([number(&step, "write_runs"), number(&step, "update_of_sums")], [1, 2]);
    assert_eq!(number(&step, "csr_transposed_dense"), 0);
    let bags =
        kernels_of_step(&Bags::new(sizes::<Bags>(N_COLS), Seed(3)).unwrap(), &data(), false, None);
    assert_eq!([number(&bags, "write_runs"), number(&bags, "update_of_sums")], [2, 5]);
    // Of the gradients of three means; the values are of one kernel.
    assert_eq!(number(&bags, "shares"), 3);
    let lines = |model: &str| model.lines().filter(|line| line.ends_with("= the update")).count();
    let wide = OnGpu::new(&Wide::new(sizes::<Wide>(N_COLS), Seed(3)).unwrap(), &gpu()).unwrap();
    assert_eq!(lines(&wide.kernels()), 2, "{}", wide.kernels());
    let mixed = OnGpu::new(&Mixed::new(sizes::<Mixed>(N_COLS), Seed(3)).unwrap(), &gpu())
        .unwrap()
        .kernels();
    assert_eq!(lines(&mixed), 1, "{mixed}");
    let often = OnGpu::new(&Sentences::new(sizes::<Sentences>(N_COLS), Seed(3)).unwrap(), &gpu())
        .unwrap()
        .kernels();
    assert_eq!(lines(&often), 1, "{often}");
}

//! Steps that are not one loop but scatter gradients of rows into the update, against the same
//! models unfused.

use nnz::core::update_rules::UpdateRule;
use nnz::optimizer::Updater;
use nnz::prelude::*;
use std::fmt::Debug;
use std::ops::Range;

twins! {
    /// Wide and deep: a sparse linear part, bags of three kinds, an embedding, numbers, dense
    /// layers: one loop over rows of data.
    WideDeep, WideDeepUnfused {
        input x: csr[n, d];
        input user: dense<u32>[n];
        input of_user: dense[n, 2];
        input weight: dense[n];
        label y: dense[n, 1];
        param w: row_sparse[d, 1] = Normal { mean: 0.0, std: 0.5 };
        param sums: row_sparse[d, 3] = Normal { mean: 0.0, std: 0.5 };
        param means: row_sparse[d, 3] = Normal { mean: 0.0, std: 0.5 };
        param weighted: row_sparse[d, 3] = Normal { mean: 0.0, std: 0.5 };
        param users: row_sparse[m, 3] = Normal { mean: 0.0, std: 0.5 };
        param h: dense[5, 2] = Normal { mean: 0.0, std: 0.5 };
        param a: dense[2] = Constant(0.125);
        param g: dense[2, 1] = Normal { mean: 0.0, std: 0.5 };
        param b: dense[1] = Constant(0.25);
        param slope: dense[1] = Constant(0.75);
        param(frozen) scale: dense[2] = Constant(0.5);
        let bags = embedding_bag(x, sums) + embedding_bag(x, means, mean = true)
            + embedding_bag(x, weighted, mean = true, weighted = true);
        let both = concat(tanh(bags + embedding(user, users)), of_user, axis = 1);
        let hidden = tanh(dot(both, h) * scale + a);
        let score = dot(x, w) + dot(slope * hidden, g) + b;
        loss logistic(score, y, weight);
        output score;
        output p = softmax(hidden);
    }

    /// Connected layers, and vectors as weights and scores: one loop over rows of data.
    Vectors, VectorsUnfused {
        input x: csr[n, d];
        input user: dense<u32>[n];
        label y: dense[n];
        param w: row_sparse[d] = Normal { mean: 0.0, std: 0.5 };
        param t: row_sparse[d, 3] = Normal { mean: 0.0, std: 0.5 };
        param users: row_sparse[m, 3] = Normal { mean: 0.0, std: 0.5 };
        param h: dense[4, 3] = Normal { mean: 0.0, std: 0.5 };
        param a: dense[4] = Constant(0.125);
        param g: dense[4] = Normal { mean: 0.0, std: 0.5 };
        param b: dense[] = Constant(0.25);
        let both = embedding_bag(x, t) + embedding(user, users);
        let hidden = tanh(fully_connected(both, h, a));
        let score = dot(x, w) + dot(hidden, g) + b;
        loss logistic(score, y);
        output score;
        output p = softmax(hidden);
    }

    /// Matrix factorization with biases, and two columns of ids in one table.
    Factors, FactorsUnfused {
        input user: dense<u32>[n];
        input items: dense<u32>[n, 2];
        label y: dense[n, 1];
        param p: row_sparse[m, 3] = Normal { mean: 0.0, std: 0.5 };
        param q: row_sparse[d, 3] = Normal { mean: 0.0, std: 0.5 };
        param user_bias: row_sparse[m, 1] = Normal { mean: 0.0, std: 0.5 };
        param b: dense[1] = Constant(0.25);
        let both = sum(take(q, items), axis = 1);
        let score = sum(take(p, user) * both, axis = 1, keepdims = true) + take(user_bias, user) + b;
        loss squared_error(score, y);
        output score;
        output p = sigmoid(score);
    }

    /// A table that is read twice, by columns and by ids, and one that is read as a whole as well.
    Shared, SharedUnfused {
        input x: csr[n, d];
        input z: csr[n, d];
        input item: dense<u64>[n];
        label y: dense[n, 1];
        param w: row_sparse[d, 1] = Normal { mean: 0.0, std: 0.5 };
        param v: row_sparse[d, 1] = Normal { mean: 0.0, std: 0.5 };
        let whole = stop_gradient(mean(dense(v)));
        let score = dot(x, w) + 2.0 * dot(z, w) + take(w, item) + dot(x, v) * whole;
        loss squared_error(score, y);
        output score;
        output p = sigmoid(score);
    }

    /// Layers of more elements than stay in a cache: steps of many rows are kernels'.
    Large, LargeUnfused {
        input x: csr[n, d];
        input user: dense<u32>[n];
        label y: dense[n, 1];
        param t: row_sparse[d, 3] = Normal { mean: 0.0, std: 0.5 };
        param users: row_sparse[m, 3] = Normal { mean: 0.0, std: 0.5 };
        param h: dense[3, 900] = Normal { mean: 0.0, std: 0.1 };
        param a: dense[900] = Constant(0.125);
        param g: dense[900, 1] = Normal { mean: 0.0, std: 0.1 };
        let both = embedding_bag(x, t) + embedding(user, users);
        let score = dot(tanh(dot(both, h) + a), g);
        loss logistic(score, y);
        output score;
        output p = sigmoid(score);
    }

    /// The same where a constant of Rust says so.
    LargeByConstant, LargeByConstantUnfused {
        const UNITS: usize = LARGE;
        input x: csr[n, d];
        input user: dense<u32>[n];
        label y: dense[n, 1];
        param t: row_sparse[d, 3] = Normal { mean: 0.0, std: 0.5 };
        param users: row_sparse[m, 3] = Normal { mean: 0.0, std: 0.5 };
        param h: dense[3, UNITS] = Normal { mean: 0.0, std: 0.1 };
        param a: dense[UNITS] = Constant(0.125);
        param g: dense[UNITS, 1] = Normal { mean: 0.0, std: 0.1 };
        let both = embedding_bag(x, t) + embedding(user, users);
        let score = dot(tanh(dot(both, h) + a), g);
        loss logistic(score, y);
        output score;
        output p = sigmoid(score);
    }

    /// Few elements, as a constant of Rust says.
    SmallByConstant, SmallByConstantUnfused {
        const UNITS: usize = SMALL;
        input x: csr[n, d];
        input user: dense<u32>[n];
        label y: dense[n, 1];
        param t: row_sparse[d, 3] = Normal { mean: 0.0, std: 0.5 };
        param users: row_sparse[m, 3] = Normal { mean: 0.0, std: 0.5 };
        param h: dense[3, UNITS] = Normal { mean: 0.0, std: 0.1 };
        param a: dense[UNITS] = Constant(0.125);
        param g: dense[UNITS, 1] = Normal { mean: 0.0, std: 0.1 };
        let both = embedding_bag(x, t) + embedding(user, users);
        let score = dot(tanh(dot(both, h) + a), g);
        loss logistic(score, y);
        output score;
        output p = sigmoid(score);
    }
}

const LARGE: usize = 900;
const SMALL: usize = 2;
const FEATURES: usize = 6;
const USERS: usize = 4;
const ROWS: usize = 5;

fn csr(rows: [&[(usize, f32)]; ROWS]) -> Csr {
    Csr::from_rows(FEATURES, rows.map(|row| row.to_vec())).unwrap()
}

/// Batches that leave rows idle for a while, name rows of parameters twice, and hold one row or
/// several.
fn ranges() -> impl Iterator<Item = Range<usize>> {
    (0..14usize).map(|step| match step % 4 {
        0 => 0..ROWS,
        3 => 1..4,
        _ => step % ROWS..step % ROWS + 1,
    })
}

/// Steps of both twins: losses, outputs, and parameters, which are looked at between steps too.
fn agree<A, B, R>(
    rule: &R,
    (mut fused, mut unfused): (A, B),
    steps: impl Iterator<Item = (Range<usize>, bool)>,
    mut step: impl FnMut(
        &mut A,
        &mut B,
        Range<usize>,
        &mut Updater<R, f32>,
        &mut Updater<R, f32>,
    ) -> [f64; 2],
) where
    A: Model<Element = f32>,
    B: Model<Element = f32>,
    R: UpdateRule + Debug,
{
    let mut a = Updater::for_model(rule.clone(), &fused).unwrap();
    let mut b = Updater::for_model(rule.clone(), &unfused).unwrap();
    let before: Vec<Vec<f32>> = fused.parameters().iter().map(|p| p.values().to_vec()).collect();
    for (rows, looks) in steps {
        let [loss, other] = step(&mut fused, &mut unfused, rows, &mut a, &mut b);
        assert!((loss - other).abs() < 1e-5 + 1e-4 * other.abs(), "{rule:?}: {loss} {other}");
        for index in 0..2 {
            let found = fused.dense_output(index).unwrap();
            let expected = unfused.dense_output(index).unwrap();
            assert_eq!(found.shape(), expected.shape());
            close(found.values(), expected.values(), rule);
        }
        if looks {
            same_parameters(&mut fused, &mut unfused, &mut a, &mut b);
        }
    }
    same_parameters(&mut fused, &mut unfused, &mut a, &mut b);
    for (index, (parameter, before)) in fused.parameters().iter().zip(&before).enumerate() {
        let is_trained = A::PARAMETERS[index].gradient.is_some();
        assert_eq!(parameter.values() != before, is_trained, "`{}`", parameter.name);
    }
}

fn same_parameters<A, B, R>(
    fused: &mut A,
    unfused: &mut B,
    a: &mut Updater<R, f32>,
    b: &mut Updater<R, f32>,
) where
    A: Model<Element = f32>,
    B: Model<Element = f32>,
    R: UpdateRule + Debug,
{
    a.flush_model(fused).unwrap();
    b.flush_model(unfused).unwrap();
    for (p, q) in fused.parameters().iter().zip(unfused.parameters()) {
        close(p.values(), q.values(), a.rule());
    }
}

#[track_caller]
fn close(found: &[f32], expected: &[f32], rule: &impl Debug) {
    assert_eq!(found.len(), expected.len());
    for (p, q) in found.iter().zip(expected) {
        assert!((p - q).abs() < 1e-5 + 1e-4 * q.abs(), "{rule:?}: {p} {q}");
    }
}

fn all_agree<R: UpdateRule + Debug>(rule: R) {
    let x = csr([
        &[(0, 1.0), (3, 2.0)],
        &[],
        &[(3, -1.0), (5, 0.5)],
        &[(1, 0.5), (2, 4.0), (3, 1.0)],
        &[(0, 2.0)],
    ]);
    let z = csr([&[(3, 1.0)], &[(0, 1.0), (1, -1.0)], &[(3, 0.5)], &[], &[(4, 3.0)]]);
    let y = Dense::new([ROWS, 1], vec![1.0, 0.0, 1.0, 0.25, 0.5]).unwrap();
    let user = Dense::new([ROWS], vec![2u32, 0, 2, 3, 0]).unwrap();
    let items = Dense::new([ROWS, 2], vec![0u32, 3, 5, 5, 3, 1, 0, 4, 2, 2]).unwrap();
    let item = Dense::new([ROWS], vec![3u64, 3, 1, 0, 4]).unwrap();
    let of_user = Dense::new([ROWS, 2], (0..10).map(|i| i as f32 / 4.0 - 1.0).collect()).unwrap();
    let weight = Dense::new([ROWS], vec![1.0f32, 0.5, 2.0, 0.25, 1.5]).unwrap();
    let steps = || ranges().enumerate().map(|(step, rows)| (rows, step % 5 == 4));
    let dims = || dims! { d: FEATURES, m: USERS };
    macro_rules! agree {
        ($fused:ident $fused_batch:ident, $unfused:ident $unfused_batch:ident, $dims:expr, $($input:ident)*) => {
            let models = ($fused::new($dims, Seed(7)).unwrap(), $unfused::new($dims, Seed(7)).unwrap());
            agree(&rule, models, steps(), |fused, unfused, rows, a, b| {
                $(let $input = $input.view().rows(rows.clone()).unwrap();)*
                let loss = fused.train_step(&$fused_batch { $($input,)* }, a);
                let other = unfused.train_step(&$unfused_batch { $($input,)* }, b);
                [loss.unwrap(), other.unwrap()]
            });
        };
    }
    agree!(WideDeep WideDeepBatch, WideDeepUnfused WideDeepUnfusedBatch, dims(), x user of_user weight y);
    agree!(Factors FactorsBatch, FactorsUnfused FactorsUnfusedBatch, dims(), user items y);
    agree!(Large LargeBatch, LargeUnfused LargeUnfusedBatch, dims(), x user y);
    agree!(LargeByConstant LargeByConstantBatch, LargeByConstantUnfused LargeByConstantUnfusedBatch, dims(), x user y);
    agree!(SmallByConstant SmallByConstantBatch, SmallByConstantUnfused SmallByConstantUnfusedBatch, dims(), x user y);
    agree!(Shared SharedBatch, SharedUnfused SharedUnfusedBatch, dims! { d: FEATURES }, x z item y);
    let y = Dense::new([ROWS], y.into_values()).unwrap();
    agree!(Vectors VectorsBatch, VectorsUnfused VectorsUnfusedBatch, dims(), x user y);
}

const MODES: [LazyUpdate; 3] = [LazyUpdate::Exact, LazyUpdate::Touched, LazyUpdate::Dense];

#[test]
fn sgd() {
    for lazy_update in MODES {
        for (momentum, weight_decay) in [(0.0, 0.0), (0.0, 0.1), (0.9, 0.1)] {
            let learning_rate = 0.05;
            all_agree(Sgd { learning_rate, momentum, weight_decay, lazy_update, ..Sgd::default() });
        }
    }
}

#[test]
fn rules_with_state() {
    for lazy_update in MODES {
        all_agree(AdaGrad { learning_rate: 0.05, lazy_update, ..AdaGrad::default() });
        all_agree(Ftrl { learning_rate: 0.05, l1: 0.01, lazy_update, ..Ftrl::default() });
        all_agree(Adam { learning_rate: 0.01, lazy_update, ..Adam::default() });
    }
}

#[test]
fn the_plan_names_the_gradients() {
    // Lines are broken between words.
    let words = |plan: String| plan.split_whitespace().collect::<Vec<_>>().join(" ");
    let plan = words(WideDeep::PLAN.to_string());
    let names = "the gradients of w, sums, means, weighted and users";
    assert!(plan.contains(&format!("{names} are scattered into the update")), "{plan}");
    assert!(plan.contains("step: one loop over the samples, each of which reads"), "{plan}");
    let large = words(Large::PLAN.to_string());
    assert!(large.contains("marked *; a step of one sample is one loop"), "{large}");
    for plan in [LargeByConstant::PLAN, SmallByConstant::PLAN] {
        let plan = words(plan.to_string());
        assert!(plan.contains("if the dense parameters have at most 4096 elements"), "{plan}");
    }
    let shared = words(Shared::PLAN.to_string());
    assert!(shared.contains("the gradients of w and v are scattered"), "{shared}");
    assert!(shared.contains("no loop either (not all that reads `v` names its rows)"), "{shared}");
    const { assert!(WideDeep::TRAINS_ROWS && Vectors::TRAINS_ROWS && !Shared::TRAINS_ROWS) };
    let unfused = WideDeepUnfused::PLAN.to_string();
    assert!(unfused.contains("step: not fused (the model says `fuse = off`)\n"), "{unfused}");
}

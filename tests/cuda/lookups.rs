//! Steps of models whose rows ids name that are one kernel up to the derivatives of their loss, and
//! which are not. Matrix factorization is in `named.rs`.

use crate::device::gpu;
use crate::fused::{N_ROWS, hold, hold_in_64_bits, kernels_of_step};
use crate::named::{N_ITEMS, N_TIMES, N_USERS, Ratings, RatingsOff, data, sizes};
use nnz::core::inspect::PlanStep;
use nnz::core::update_rules::LazyUpdate;
use nnz::model::OnGpu;
use nnz::prelude::*;

twins! {
    /// Biases alone, of one column, and a number in the source.
    Biases, BiasesOff {
        input user: dense<u32>[n];
        input item: dense<u32>[n];
        label y: dense[n, 1];
        param of_user: row_sparse[users, 1] = Normal { mean: 0.0, std: 0.5 };
        param of_item: row_sparse[items, 1] = Normal { mean: 0.0, std: 0.5 };
        let score = 0.25 + take(of_user, user) + embedding(item, of_item) + 0.5;
        loss logistic(score, y);
        output probability = sigmoid(score);
    }

    /// Two inner products, one of them a mean, of rows wider than a group, by ids of each type; a
    /// weight for each row, and no bias.
    Products, ProductsOff {
        input user: dense<u32>[n];
        input item: dense<u64>[n];
        input time: dense<i64>[n];
        label y: dense[n, 1];
        label v: dense[n];
        param p: row_sparse[users, 37] = Normal { mean: 0.0, std: 0.3 };
        param q: row_sparse[items, 37] = Normal { mean: 0.0, std: 0.3 };
        param r: row_sparse[users, 37] = Normal { mean: 0.0, std: 0.3 };
        param s: row_sparse[times, 37] = Normal { mean: 0.0, std: 0.3 };
        param of_time: row_sparse[times, 1] = Zeros;
        let score = take(of_time, time) + sum(take(p, user) * take(q, item), axis = 1, keepdims = true)
            + mean(take(s, time) * take(r, user), axis = 1, keepdims = true);
        loss logistic(score, y, v);
        output score;
    }

    /// A score that is another function of what is read than its sum.
    Squashed, SquashedOff {
        input user: dense<u32>[n];
        input item: dense<u32>[n];
        label rating: dense[n];
        param p: row_sparse[users, 3] = Normal { mean: 0.0, std: 0.5 };
        param q: row_sparse[items, 3] = Normal { mean: 0.0, std: 0.5 };
        let score = 5 * sigmoid(sum(take(p, user) * take(q, item), axis = 1));
        loss squared_error(score, rating);
        output prediction = score;
    }

    /// A number that others read than the scores.
    Shown, ShownOff {
        input user: dense<u32>[n];
        input item: dense<u32>[n];
        label rating: dense[n];
        param of_user: row_sparse[users] = Normal { mean: 0.0, std: 0.5 };
        param of_item: row_sparse[items] = Normal { mean: 0.0, std: 0.5 };
        let bias = take(of_user, user);
        loss squared_error(bias + take(of_item, item), rating);
        output bias;
    }

    /// More tables than one launch takes.
    Many, ManyOff {
        input user: dense<u32>[n];
        label rating: dense[n];
        param a: row_sparse[users] = Zeros;
        param b: row_sparse[users] = Zeros;
        param c: row_sparse[users] = Zeros;
        param d: row_sparse[users] = Zeros;
        param e: row_sparse[users] = Zeros;
        param f: row_sparse[users] = Zeros;
        param g: row_sparse[users] = Zeros;
        param h: row_sparse[users] = Zeros;
        param i: row_sparse[users] = Zeros;
        let score = take(a, user) + take(b, user) + take(c, user) + take(d, user) + take(e, user) + take(f, user)
            + take(g, user) + take(h, user) + take(i, user);
        loss squared_error(score, rating);
    }
}

graph! {
    /// In 64 bits.
    model Long {
        dtype = f64;
        input user: dense<u32>[n];
        input item: dense<u64>[n];
        label rating: dense[n];
        param p: row_sparse[users, 3] = Normal { mean: 0.0, std: 0.5 };
        param q: row_sparse[items, 3] = Normal { mean: 0.0, std: 0.5 };
        param of_user: row_sparse[users] = Zeros;
        param mean: dense[] = Constant(0.25);
        let score = take(of_user, user) + mean + sum(take(p, user) * take(q, item), axis = 1);
        loss squared_error(score, rating);
        output prediction = score;
    }
}

/// Ids that a batch has several times, and some that none has.
fn of_times() -> Dataset {
    let ids = |step: usize, below: usize| (0..N_ROWS).map(move |row| row * step % below);
    let numbers = |step: usize| ids(step, 4).map(|number| number as f32 * 0.5).collect::<Vec<_>>();
    Dataset::builder()
        .input("user", ids(4, N_USERS - 2).map(|id| id as u32).collect::<Vec<_>>())
        .input("item", ids(5, N_ITEMS).map(|id| id as u64).collect::<Vec<_>>())
        .input("time", ids(2, N_TIMES).map(|id| id as i64).collect::<Vec<_>>())
        .label("y", Dense::new([N_ROWS, 1], ids(3, 2).map(|y| y as f32).collect()).unwrap())
        .label("v", Dense::from(numbers(3)))
        .build()
        .unwrap()
}

fn in_one_launch<M: Model<Element = f32>>(model: &M) -> bool {
    assert!(matches!(M::PLAN.step, PlanStep::LookupRows { .. }), "{}", M::PLAN);
    OnGpu::new(model, &gpu()).unwrap().kernels().contains(" = lookup_rows\n")
}

macro_rules! hold_all {
    ($data:expr, $rule:expr, $in_one_launch:literal, $($fused:ident $unfused:ident),*) => {
        $({
            let fused = $fused::new(sizes::<$fused>(1), Seed(3)).unwrap();
            assert_eq!(in_one_launch(&fused), $in_one_launch, "{}", $fused::NAME);
            hold(&fused, &$unfused::new(sizes::<$unfused>(1), Seed(3)).unwrap(), &$data, &$rule);
        })*
    };
}

#[test]
fn sums_of_what_ids_name_are_one_launch() {
    let rule = AdaGrad { learning_rate: 0.1, ..AdaGrad::default() };
    hold_all!(data(), rule, true, Ratings RatingsOff, Biases BiasesOff);
    hold_all!(of_times(), rule, true, Products ProductsOff);
    // It has the derivatives of which gradients are made, too.
    let rule = Adam { lazy_update: LazyUpdate::Dense, ..Adam::default() };
    hold_all!(of_times(), rule, true, Products ProductsOff);
}

#[test]
fn others_are_a_launch_for_each_value() {
    let rule = AdaGrad { learning_rate: 0.1, ..AdaGrad::default() };
    hold_all!(data(), rule, false, Squashed SquashedOff, Shown ShownOff, Many ManyOff);
}

#[test]
fn in_64_bits() {
    let user = Dense::from(vec![2u32, 0, 2, 4, 0]);
    let item = Dense::from(vec![1u64, 1, 0, 2, 1]);
    let rating = Dense::from(vec![1.0f64, -1.0, 0.5, 2.0, 0.0]);
    let batch = LongBatch { user: user.view(), item: item.view(), rating: rating.view() };
    let rule = Sgd { learning_rate: 0.25, ..Sgd::default() };
    let host = Long::new(dims! { users: 5, items: 3 }, Seed(3)).unwrap();
    hold_in_64_bits(host, &batch, rule, "lookup_rows");
}

#[test]
fn a_step_is_a_kernel_for_the_loss_and_one_for_each_update() {
    let fused = Ratings::new(sizes::<Ratings>(1), Seed(3)).unwrap();
    let unfused = RatingsOff::new(sizes::<RatingsOff>(1), Seed(3)).unwrap();
    let (users, items) = (["write_runs"], ["write_runs"]);
    let updates = [&["update_of_sums"; 4][..], &["update"]].concat();
    let of_mean = ["reduce_parts", "combine_parts"];
    let step = [&["lookup_rows", "mean_of_parts"], &of_mean[..], &users, &items, &updates].concat();
    assert_eq!(kernels_of_step(&fused, &data(), false, None), step);
    // Scores are written where the output is computed from them.
    let shown = [&["lookup_rows", "mean_of_parts", "unary"], &step[2..]].concat();
    assert_eq!(kernels_of_step(&fused, &data(), true, None), shown);
    // A launch for each value.
    let forward = [
        &["take", "take", "binary", "reduce_parts", "combine_parts", "take", "binary"][..],
        &["take", "binary", "binary", "loss_parts", "mean_of_parts", "loss_gradient"],
    ];
    let found = kernels_of_step(&unfused, &data(), false, None);
    assert_eq!(found[..13], forward.concat());
    // The products of derivatives with rows of either table.
    let number = |name: &str| found.iter().filter(|of| **of == name).count();
    assert_eq!([number("repeat"), number("binary"), number("take_gradient")], [1, 6, 4]);
}

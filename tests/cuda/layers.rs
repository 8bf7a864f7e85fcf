//! Steps through dense layers, and of scores that are another function of what is read than its
//! sum, as one kernel up to the derivatives by what was read and the gradients of dense parameters;
//! and which are not.

use crate::device::gpu;
use crate::fused::{N_COLS, features, hold, kernels_of_step, of_entry};
use crate::named::{WideDeep, WideDeepOff, sizes};
use nnz::core::update_rules::LazyUpdate;
use nnz::data::{BatchOptions, Batches, DataSource};
use nnz::model::OnGpu;
use nnz::optimizer::Updater;
use nnz::prelude::*;

twins! {
    /// Dense features and rows that ids name, one after the other, through a layer with a bias; a
    /// weight for each row, and a hidden row that is shown.
    Joined, JoinedOff {
        input x: csr[n, d];
        input user: dense<u32>[n];
        input z: dense[n, 3];
        label y: dense[n, 1];
        label v: dense[n];
        param t: row_sparse[d, 5] = Normal { mean: 0.0, std: 0.5 };
        param u: row_sparse[users, 4] = Normal { mean: 0.0, std: 0.5 };
        param h: dense[7, 12] = Normal { mean: 0.0, std: 0.5 };
        param a: dense[7] = Constant(0.1);
        param g: dense[7] = Normal { mean: 0.0, std: 0.5 };
        param scale: dense[] = Constant(0.5);
        let read = concat(concat(embedding_bag(x, t, mean = true), embedding(user, u), axis = 1), z, axis = 1);
        let hidden = tanh(fully_connected(read, h, a));
        let score = sum(hidden * g, axis = 1, keepdims = true) * scale - mean(z, axis = 1, keepdims = true);
        loss logistic(score, y, v);
        output probability = sigmoid(score);
        output hidden;
    }

    /// Classes; a matrix that is used twice, and a table that is read in two places.
    Tied, TiedOff {
        input user: dense<u32>[n];
        input item: dense<u32>[n];
        label class: dense<u32>[n];
        param e: row_sparse[users, 6] = Normal { mean: 0.0, std: 0.5 };
        param h: dense[6, 6] = Normal { mean: 0.0, std: 0.3 };
        param o: dense[6, 4] = Normal { mean: 0.0, std: 0.3 };
        param b: dense[4] = Zeros;
        let hidden = relu(dot(take(e, user) * embedding(item, e), h));
        let score = dot(sigmoid(dot(hidden, h, transpose_rhs = true)), o) + b;
        loss softmax_cross_entropy(score, class);
        output probability = softmax(score);
    }

    /// A function of the sum that a linear model is, of several columns.
    Curved, CurvedOff {
        input x: csr<unit>[n, d];
        label z: dense[n, 3];
        param w: row_sparse[d, 3] = Normal { mean: 0.0, std: 0.5 };
        param scale: dense[3] = Ones;
        let score = 2 * tanh(dot(x, w)) * scale;
        loss huber(score, z, delta = 0.5);
        output score;
    }

    /// A parameter that is not trained, and rows that nothing goes back to.
    Still, StillOff {
        input x: csr[n, d];
        input user: dense<u32>[n];
        label rating: dense[n];
        param t: row_sparse[d, 2] = Normal { mean: 0.0, std: 0.5 };
        param u: row_sparse[users, 2] = Normal { mean: 0.0, std: 0.5 };
        param(frozen) h: dense[2, 2] = Constant(0.5);
        let gate = softmax(dot(embedding(user, u), h));
        let score = sum(dot(x, t) * stop_gradient(gate) + 0.1 * gate, axis = 1);
        loss squared_error(score, rating);
        output gate;
    }

    /// Layers that do not fit into the memory that the threads of a block share.
    Large, LargeOff {
        input user: dense<u32>[n];
        label y: dense[n, 1];
        param u: row_sparse[users, 65] = Normal { mean: 0.0, std: 0.1 };
        param h: dense[65, 64] = Normal { mean: 0.0, std: 0.1 };
        param g: dense[64, 1] = Normal { mean: 0.0, std: 0.1 };
        let score = dot(relu(dot(embedding(user, u), h)), g);
        loss logistic(score, y);
    }
}

graph! {
    /// In 64 bits.
    model Deep {
        dtype = f64;
        input x: csr[n, d];
        label z: csr[n, 2];
        param t: row_sparse[d, 3] = Normal { mean: 0.0, std: 0.5 };
        param h: dense[3, 2] = Normal { mean: 0.0, std: 0.5 };
        param b: dense[2] = Constant(0.25);
        let score = dot(relu(embedding_bag(x, t, mean = true, weighted = true)), h) + b;
        loss logistic(score, z);
        output probability = sigmoid(score);
    }
}

/// So many rows, of each input and label.
fn data(x: Csr) -> Dataset {
    let n = x.n_rows();
    let ids = |step: usize, below: usize| (0..n).map(move |row| (row * step % below) as u32);
    let numbers = |columns: usize, step: usize| {
        let values = (0..n * columns).map(|at| (at * step % 7) as f32 / 4.0 - 0.5);
        Dense::new([n, columns], values.collect()).unwrap()
    };
    Dataset::builder()
        .input("x", x)
        .input("user", ids(4, 7).collect::<Vec<_>>())
        .input("item", ids(2, 5).collect::<Vec<_>>())
        .input("z", numbers(3, 5))
        .label("y", Dense::new([n, 1], ids(5, 2).map(|y| y as f32).collect()).unwrap())
        .label("v", Dense::from(ids(3, 4).map(|v| v as f32 * 0.5).collect::<Vec<_>>()))
        .label("rating", numbers(1, 3).reshape([n]).unwrap())
        .label("class", ids(3, 4).collect::<Vec<_>>())
        .build()
        .unwrap()
}

/// The same with labels where others have dense features.
fn of_labels(x: Csr) -> Dataset {
    let n = x.n_rows();
    let z = (0..n * 3).map(|at| (at * 5 % 3 % 2) as f32).collect();
    Dataset::builder().input("x", x).label("z", Dense::new([n, 3], z).unwrap()).build().unwrap()
}

fn in_one_launch<M: Model<Element = f32>>(model: &M) -> bool {
    OnGpu::new(model, &gpu()).unwrap().kernels().contains(" = layer_rows\n")
}

macro_rules! hold_all {
    ($data:expr, $rule:expr, $($fused:ident $unfused:ident),*) => {
        $({
            let fused = $fused::new(sizes::<$fused>(N_COLS), Seed(3)).unwrap();
            assert!(in_one_launch(&fused), "{}", $fused::NAME);
            hold(&fused, &$unfused::new(sizes::<$unfused>(N_COLS), Seed(3)).unwrap(), &$data, &$rule);
        })*
    };
}

#[test]
fn layers_are_one_launch() {
    let data = data(features(of_entry));
    let rule = AdaGrad { learning_rate: 0.1, ..AdaGrad::default() };
    hold_all!(data, rule, WideDeep WideDeepOff, Joined JoinedOff, Still StillOff);
    let rule = Sgd { learning_rate: 0.25, ..Sgd::default() };
    hold_all!(data, rule, Tied TiedOff, Joined JoinedOff);
    // Gradients of rows that are made.
    let rule = Adam { lazy_update: LazyUpdate::Dense, ..Adam::default() };
    hold_all!(data, rule, Joined JoinedOff);
}

#[test]
fn functions_of_a_linear_model_are_one_launch() {
    let rule = Sgd { learning_rate: 0.25, ..Sgd::default() };
    hold_all!(of_labels(features(|_| 1.0)), rule, Curved CurvedOff);
}

/// More rows than the blocks have at a time, so that each has several.
#[test]
fn blocks_of_many_rows() {
    let rows = (0..5000).map(|row: usize| [(row * 7 % 40, 0.5), (40 + row % 3, -1.0)]);
    let data = data(Csr::from_rows(43, rows).unwrap());
    let mut host = WideDeep::new(sizes::<WideDeep>(43), Seed(3)).unwrap();
    let mut there = OnGpu::new(&host, &gpu()).unwrap();
    let rule = Sgd { learning_rate: 0.5, ..Sgd::default() };
    let mut on_cpu = Updater::for_model(rule.clone(), &host).unwrap();
    let mut on_gpu = Updater::for_model(rule, &there).unwrap();
    let options = BatchOptions { batch_size: 5000, ..BatchOptions::default() };
    let mut batches = data.batches(WideDeep::INPUTS, &options).unwrap();
    let batch = batches.next_batch().unwrap().unwrap();
    let batch = host.bind(&batch).unwrap();
    for _ in 0..2 {
        let expected = host.train_step(&batch, &mut on_cpu).unwrap();
        let found = there.train_step(&batch, &mut on_gpu).unwrap();
        assert!((found - expected).abs() < 1e-5, "{found} {expected}");
    }
    on_cpu.flush_model(&mut host).unwrap();
    let there = there.into_host().unwrap();
    for (found, expected) in there.parameters().iter().zip(host.parameters()) {
        crate::near(found.values(), expected.values(), expected.name);
    }
}

twins! {
    /// A bag through a layer.
    Bag, BagOff {
        input x: csr[n, d];
        label y: dense[n, 1];
        param t: row_sparse[d, 4] = Constant(0.5);
        param h: dense[4, 1] = Constant(1.0);
        param b: dense[1] = Zeros;
        let score = dot(embedding_bag(x, t), h) + b;
        loss squared_error(score, y);
        output score;
    }
}

/// After one step of a batch of equal samples, within 4 units in the last place of the sums in
/// exact numbers.
fn hold_sums<M: Model<Element = f32>>(host: &M) {
    const N: usize = 1 << 15;
    let x = Csr::from_rows(2, (0..N).map(|_| [(1, 1.0f32)])).unwrap();
    let data = Dataset::new(x, vec![2.1; N]).unwrap();
    let mut there = OnGpu::new(host, &gpu()).unwrap();
    let rule = Sgd { learning_rate: 1.0, ..Sgd::default() };
    let mut trainer = Trainer::new(rule).batch_size(N).epochs(1).progress(Progress::Silent);
    trainer.fit(&mut there, &data).unwrap();
    let derivative = f64::from(2.0 - 2.1f32);
    for parameter in there.into_host().unwrap().parameters() {
        let (named, expected) = match parameter.name {
            "t" => (4..8, 0.5 - derivative),
            "h" => (0..4, 1.0 - 0.5 * derivative),
            _ => (0..1, -derivative),
        };
        let ulp = f64::from((expected as f32).next_up()) - f64::from(expected as f32);
        for found in &parameter.values()[named] {
            let error = (f64::from(*found) - expected).abs() / ulp;
            assert!(error <= 4.0, "{} {}: {error} ulps", M::NAME, parameter.name);
        }
    }
}

#[test]
fn n1_dense_parameters_of_a_large_batch_have_the_sum_of_all_samples() {
    hold_sums(&Bag::new(dims! { d: 2 }, Seed(0)).unwrap());
    hold_sums(&BagOff::new(dims! { d: 2 }, Seed(0)).unwrap());
}

#[test]
fn in_64_bits_with_sparse_labels() {
    let x = Csr::from_coo(3, 4, [(0, 1, 1.0f64), (0, 3, -2.0), (2, 1, 0.5)]).unwrap();
    let z = Csr::from_coo(3, 2, [(0, 1, 1.0f64), (2, 0, 1.0)]).unwrap();
    let batch = DeepBatch { x: x.view(), z: z.view() };
    let rule = AdaGrad { learning_rate: 0.25, ..AdaGrad::default() };
    let mut host = Deep::new(dims! { d: 4 }, Seed(3)).unwrap();
    let mut there = OnGpu::new(&host, &gpu()).unwrap();
    let mut on_cpu = Updater::for_model(rule.clone(), &host).unwrap();
    let mut on_gpu = Updater::for_model(rule, &there).unwrap();
    for _ in 0..3 {
        let expected = host.train_step(&batch, &mut on_cpu).unwrap();
        let found = there.train_step(&batch, &mut on_gpu).unwrap();
        assert!((found - expected).abs() < 1e-13, "{found} {expected}");
        let (found, expected) = (&there.outputs()[0], &host.outputs().probability);
        for (found, expected) in found.values().iter().zip(expected.values()) {
            assert!((found - expected).abs() < 1e-13, "{found} {expected}");
        }
    }
    let kernels = there.kernels();
    assert!(kernels.contains(" = layer_rows: layer_rows, layer_sums\n"), "{kernels}");
    on_cpu.flush_model(&mut host).unwrap();
    for (found, expected) in there.into_host().unwrap().parameters().iter().zip(host.parameters()) {
        for (found, expected) in found.values().iter().zip(expected.values()) {
            assert!((found - expected).abs() < 1e-13, "{found} {expected}");
        }
    }
}

#[test]
fn large_layers_are_a_launch_for_each_value() {
    assert!(!in_one_launch(&Large::new(sizes::<Large>(1), Seed(3)).unwrap()));
    let fused = Large::new(sizes::<Large>(1), Seed(3)).unwrap();
    let unfused = LargeOff::new(sizes::<LargeOff>(1), Seed(3)).unwrap();
    hold(&fused, &unfused, &data(features(of_entry)), &Sgd::default());
}

#[test]
fn a_step_is_a_kernel_for_the_loss_one_for_the_sums_and_one_for_each_update() {
    let data = data(features(of_entry));
    let fused = WideDeep::new(sizes::<WideDeep>(N_COLS), Seed(3)).unwrap();
    let unfused = WideDeepOff::new(sizes::<WideDeepOff>(N_COLS), Seed(3)).unwrap();
    let up_to_loss = ["layer_rows", "layer_sums"];
    // The columns of `x` are looked for once.
    let updates = ["write_runs", "update_of_sums", "update_of_sums", "update", "update"];
    let step = [&up_to_loss[..], &updates].concat();
    assert_eq!(kernels_of_step(&fused, &data, false, None), step);
    // Scores are written where the output is computed from them.
    let shown = [&up_to_loss[..], &["unary"], &updates].concat();
    assert_eq!(kernels_of_step(&fused, &data, true, None), shown);
    let of_unfused = kernels_of_step(&unfused, &data, false, None);
    assert!(of_unfused.len() > 2 * step.len(), "{of_unfused:?}");
    // A norm is that of gradients that are there.
    let clipped = kernels_of_step(&fused, &data, false, Some(1.0));
    assert_eq!(clipped[..2], up_to_loss);
    assert!(clipped.contains(&"csr_transposed_dense"), "{clipped:?}");
}

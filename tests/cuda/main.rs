//! Models on a GPU, emulated or with `NNZ_TEST_GPU=1` a real one, against the same on the CPU.
#![allow(clippy::unwrap_used)]

#[path = "../../sparse-runtime/tests/cuda/device.rs"]
mod device;
#[path = "../twins/mod.rs"]
#[macro_use]
mod twins;
#[allow(unreachable_pub, reason = "the models of other tests are")]
mod corrected;
#[allow(unreachable_pub, reason = "the models of other tests are")]
mod evaluations;
mod examples;
#[allow(unreachable_pub, reason = "the models of other tests are")]
mod fused;
mod graphs;
#[allow(unreachable_pub, reason = "the models of other tests are")]
mod layers;
#[allow(unreachable_pub, reason = "the models of other tests are")]
mod lookups;
mod memory;
#[allow(unreachable_pub, reason = "the models of other tests are")]
mod named;
mod outputs;
#[allow(unreachable_pub, reason = "the models of other tests are")]
mod speed;
#[allow(unreachable_pub, reason = "the models of other tests are")]
mod uploads;
mod waiting;
mod waits;

use device::gpu;
use nnz::data::{BatchOptions, Batches, DataSource, synthetic};
use nnz::device::cuda::CudaError;
use nnz::model::OnGpu;
use nnz::optimizer::Updater;
use nnz::prelude::*;
use nnz::training::checkpoint;
use nnz::training::fit_epoch;

fn twice(out: &mut Dense, x: DenseView<'_>) {
    for (out, x) in out.values_mut().iter_mut().zip(x.values()) {
        *out = 2.0 * x;
    }
}

twins! {
    /// Logistic regression.
    Logistic, LogisticOff {
        input x: csr[n, d];
        label y: dense[n, 1];
        param w: row_sparse[d, 1] = Zeros;
        param b: dense[1] = Zeros;
        let score = dot(x, w) + b;
        loss logistic(score, y);
        output probability = sigmoid(score);
    }
}

graph! {
    /// Several scores for each row, and a weight for each row; a launch for each value.
    model Hidden {
        fuse = off;
        input x: csr[n, d];
        input importance: dense[n];
        label y: dense[n, 5];
        param w: row_sparse[d, 5] = Normal { mean: 0.0, std: 0.5 };
        param scale: dense[5] = Ones;
        let score = 2 * tanh(dot(x, w)) * scale;
        loss huber(score, y, importance, delta = 0.5);
        output score;
    }

    /// Trained through an order, with outputs that are ids, or are made of ids that are computed.
    model Ranked {
        input x: csr[n, d];
        label y: dense[n, 3];
        param w: dense[d, 5] = Normal { mean: 0.0, std: 0.5 };
        let score = dot(x, w);
        let best = topk(score, k = 3);
        loss squared_error(best, y);
        output first = argmax(score, axis = 1);
        output positions = topk_ids(score, k = 3);
        output stored = count_stored(x, axis = 1);
        output ordered = argsort(score, axis = 0, descending = true);
        output largest = pick(score, argmax(score, axis = 1));
        output rows = take(w, argmin(x, axis = 1));
        output sorted = sort(score);
    }

    /// Gradients of values that are csr and row_sparse: weights of columns, rows that are taken of
    /// a csr, and rows of a table.
    model Weighted {
        input x: csr[n, d];
        input z: dense[n, d];
        input order: dense<u32>[n];
        label y: dense[n, 1];
        param w: dense[d] = Ones;
        param v: row_sparse[d, 3] = Normal { mean: 0.0, std: 0.5 };
        param u: dense[d, 3] = Normal { mean: 0.0, std: 0.5 };
        let weighted = x * w;
        let score = pairwise_interaction(take(weighted, order), v) + pairwise_interaction(z * w, u);
        loss squared_error(score, y);
        output score;
    }

    operator twice(x) {
        rule dense -> dense = crate::twice;
        shape [n, d] -> [n, d];
    }

    /// Carries a state, which GPUs do not.
    model Stateful {
        input x: dense[n, d];
        state centre: dense[d] = Zeros;
        update centre = 0.5 * centre + 0.5 * mean(x, axis = 0);
        output centred = x - centre;
    }

    /// Has an operator of its own, of which GPUs have no kernel.
    model Own {
        input x: dense[n, 3];
        output y = twice(x);
    }
}

fn near(found: &[f32], expected: &[f32], what: &str) {
    for (found, expected) in found.iter().zip(expected) {
        assert!(
            (found - expected).abs() <= 1e-4 * expected.abs().max(1.0),
            "{what}: {found} {expected}"
        );
    }
}

/// Trains on both devices, and compares all parameters after each epoch.
fn hold<R: nnz::core::update_rules::UpdateRule>(rule: R) {
    let data: Dataset = synthetic::click_log(200, 300, 6, 1).unwrap();
    let mut host = Logistic::new(dims! { d: 300 }, Seed(3)).unwrap();
    let mut there = OnGpu::new(&host, &gpu()).unwrap();
    let mut on_cpu = Updater::for_model(rule.clone(), &host).unwrap();
    let mut on_gpu = Updater::for_model(rule, &there).unwrap();
    let options = BatchOptions { batch_size: 64, ..BatchOptions::default() };
    for epoch in 0..3 {
        let mut batches = data.batches(Logistic::INPUTS, &options).unwrap();
        let expected = fit_epoch(&mut host, &mut on_cpu, &mut batches, epoch, &mut ()).unwrap();
        let mut batches = data.batches(Logistic::INPUTS, &options).unwrap();
        let found = fit_epoch(&mut there, &mut on_gpu, &mut batches, epoch, &mut ()).unwrap();
        assert!((found.mean_loss() - expected.mean_loss()).abs() < 1e-4);
        for (found, expected) in there.parameters().iter().zip(host.parameters()) {
            near(found.values(), expected.values(), R::NAME);
        }
    }
}

#[test]
fn a_model_is_trained_as_on_the_cpu() {
    hold(Sgd { learning_rate: 0.5, ..Sgd::default() });
    hold(Ftrl { l1: 0.01, ..Ftrl::default() });
}

#[test]
fn gradients_are_clipped_by_their_norm_as_on_the_cpu() {
    let data: Dataset = synthetic::click_log(64, 50, 6, 1).unwrap();
    let options = BatchOptions { batch_size: 64, ..BatchOptions::default() };
    let mut batches = data.batches(Logistic::INPUTS, &options).unwrap();
    let batch = batches.next_batch().unwrap().unwrap();
    let host = Logistic::new(dims! { d: 50 }, Seed(3)).unwrap();
    let batch = host.bind(&batch).unwrap();
    // Of which the first is never met, and the second always.
    for max_norm in [1e6, 1e-2] {
        let (mut host, mut there) = (host.clone(), OnGpu::new(&host, &gpu()).unwrap());
        let rule = Sgd { learning_rate: 0.5, ..Sgd::default() };
        let mut on_cpu = Updater::for_model(rule.clone(), &host).unwrap();
        let mut on_gpu = Updater::for_model(rule, &there).unwrap();
        for _ in 0..2 {
            host.clipped_step(&batch, &mut on_cpu, max_norm).unwrap();
            there.clipped_step(&batch, &mut on_gpu, max_norm).unwrap();
        }
        let there = there.into_host().unwrap();
        assert!(host.w.values().iter().any(|w| *w != 0.0));
        near(there.w.values(), host.w.values(), "clipped");
        near(there.b.values(), host.b.values(), "clipped");
    }
}

#[test]
fn a_trained_model_is_saved_and_loaded_and_goes_on() {
    let data: Dataset = synthetic::click_log(100, 50, 6, 1).unwrap();
    let mut there = OnGpu::new(&Logistic::new(dims! { d: 50 }, Seed(3)).unwrap(), &gpu()).unwrap();
    let trainer = || {
        let rule = AdaGrad { learning_rate: 0.1, ..AdaGrad::default() };
        Trainer::new(rule).batch_size(32).epochs(2).progress(Progress::Silent)
    };
    let report = trainer().metric(LogLoss).fit(&mut there, &data).unwrap();
    assert!(report.epochs[1].loss < report.epochs[0].loss, "{report:?}");
    let folder = std::env::temp_dir().join(format!("nnz-cuda-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let path = folder.join("model.safetensors");
    checkpoint::save(&there, &path).unwrap();
    let mut host = Logistic::new(dims! { d: 50 }, Seed(4)).unwrap();
    checkpoint::load(&mut host, &path).unwrap();
    let options = BatchOptions { batch_size: 100, ..BatchOptions::default() };
    let mut batches = data.batches(Logistic::INPUTS, &options).unwrap();
    let batch = batches.next_batch().unwrap().unwrap();
    let batch = host.bind(&batch).unwrap();
    let expected = host.forward(&batch).unwrap().probability.clone();
    near(there.forward(&batch).unwrap()[0].values(), expected.values(), "loaded on the host");
    let other = Logistic::new(dims! { d: 50 }, Seed(5)).unwrap();
    let mut loaded = OnGpu::new(&other, &gpu()).unwrap();
    checkpoint::load(&mut loaded, &path).unwrap();
    near(loaded.forward(&batch).unwrap()[0].values(), expected.values(), "loaded on the GPU");
    std::fs::remove_dir_all(&folder).unwrap();
    let mut copy = there.clone();
    trainer().fit(&mut copy, &data).unwrap();
    near(there.into_host().unwrap().w.values(), host.w.values(), "the model that was copied");
}

#[test]
fn values_of_a_plan_are_those_of_the_cpu() {
    let mut host = Hidden::new(dims! { d: 40 }, Seed(3)).unwrap();
    let mut there = OnGpu::new(&host, &gpu()).unwrap();
    let x =
        Csr::from_coo(3, 40, [(0, 3, 1.0f32), (0, 8, -2.0), (2, 3, 0.5), (2, 39, 4.0)]).unwrap();
    let y = Dense::from_rows(&[[1.0f32; 5], [0.0; 5], [-3.0, 0.25, 0.0, 1.0, 2.0]]);
    let importance = Dense::from(vec![1.0f32, 2.0, 0.5]);
    let batch = HiddenBatch { x: x.view(), y: y.view(), importance: importance.view() };
    let rule = Sgd { learning_rate: 0.5, ..Sgd::default() };
    let mut on_cpu = Updater::for_model(rule.clone(), &host).unwrap();
    let mut on_gpu = Updater::for_model(rule, &there).unwrap();
    for _ in 0..3 {
        let expected = host.train_step(&batch, &mut on_cpu).unwrap();
        let found = there.train_step(&batch, &mut on_gpu).unwrap();
        assert!((found - expected).abs() < 1e-5, "{found} {expected}");
        near(there.outputs()[0].values(), host.outputs().score.values(), "score");
    }
    let kernels = there.kernels();
    for line in [" = tanh_dense: unary\n", " = huber_gradient_dense_dense_dense: loss_gradient\n"] {
        assert!(kernels.contains(line), "{kernels}");
    }
}

#[test]
fn ids_that_a_model_computes_are_those_of_the_cpu() {
    let mut host = Ranked::new(dims! { d: 40 }, Seed(3)).unwrap();
    let mut there = OnGpu::new(&host, &gpu()).unwrap();
    let x =
        Csr::from_coo(3, 40, [(0, 3, 1.0f32), (0, 8, -2.0), (2, 3, 0.5), (2, 39, 4.0)]).unwrap();
    let y = Dense::from_rows(&[[1.0f32; 3], [0.0; 3], [-3.0, 0.25, 0.0]]);
    let batch = RankedBatch { x: x.view(), y: y.view() };
    let rule = Sgd { learning_rate: 0.5, ..Sgd::default() };
    let mut on_cpu = Updater::for_model(rule.clone(), &host).unwrap();
    let mut on_gpu = Updater::for_model(rule, &there).unwrap();
    for _ in 0..3 {
        let expected = host.train_step(&batch, &mut on_cpu).unwrap();
        let found = there.train_step(&batch, &mut on_gpu).unwrap();
        assert!((found - expected).abs() < 1e-5, "{found} {expected}");
        let expected = host.forward(&batch).unwrap();
        there.forward(&batch).unwrap();
        assert_eq!(expected.stored.values(), [2, 0, 2]);
        let ids = [&expected.first, &expected.positions, &expected.stored, &expected.ordered];
        for (index, ids) in ids.into_iter().enumerate() {
            assert_eq!(there.ids_output(index), Some(ids.view()), "{:?}", Ranked::OUTPUTS[index]);
            assert!(there.outputs()[index].values().is_empty());
        }
        for (index, numbers) in [(4, &expected.largest), (5, &expected.rows), (6, &expected.sorted)]
        {
            assert!(there.ids_output(index).is_none());
            assert_eq!(there.outputs()[index].shape(), numbers.shape());
            near(there.outputs()[index].values(), numbers.values(), Ranked::OUTPUTS[index].name);
        }
    }
    near(there.into_host().unwrap().w.values(), host.w.values(), "trained through an order");
}

#[test]
fn gradients_go_through_values_that_are_csr() {
    let mut host = Weighted::new(dims! { d: 40 }, Seed(3)).unwrap();
    let mut there = OnGpu::new(&host, &gpu()).unwrap();
    let entries = [(0, 3, 1.0f32), (0, 8, -2.0), (2, 3, 0.5), (2, 8, 1.0), (2, 39, 4.0)];
    let x = Csr::from_coo(4, 40, entries).unwrap();
    let z = Dense::new([4, 40], (0..160).map(|i| (i * 7 % 11) as f32 / 16.0).collect()).unwrap();
    let y = Dense::from_rows(&[[1.0f32], [0.0], [-3.0], [0.25]]);
    // Rows are taken twice, and not at all.
    let order = Dense::from(vec![2u32, 0, 2, 1]);
    let batch = WeightedBatch { x: x.view(), z: z.view(), order: order.view(), y: y.view() };
    let rule = Sgd { learning_rate: 0.002, ..Sgd::default() };
    let mut on_cpu = Updater::for_model(rule.clone(), &host).unwrap();
    let mut on_gpu = Updater::for_model(rule, &there).unwrap();
    for _ in 0..3 {
        let expected = host.train_step(&batch, &mut on_cpu).unwrap();
        let found = there.train_step(&batch, &mut on_gpu).unwrap();
        near(&[found as f32], &[expected as f32], "loss");
    }
    let kernels = there.kernels();
    for kernel in [
        "take_gradient_csr_ids_like_by_rows",
        "reduce_to_csr_dense",
        "pairwise_interaction_slope_csr_row_sparse_dense",
        "pairwise_interaction_slope_dense_dense_dense",
        "pairwise_interaction_gradient_dense_dense_dense",
        "pairwise_interaction_dense_dense",
    ] {
        assert!(kernels.contains(kernel), "{kernel} in {kernels}");
    }
    let there = there.into_host().unwrap();
    for (found, expected) in there.parameters().iter().zip(host.parameters()) {
        near(found.values(), expected.values(), "a parameter");
    }
}

#[test]
fn what_is_wrong_is_said_before_anything_is_computed() {
    let mut own = Own::new(dims! {}, Seed(1)).unwrap();
    let error = OnGpu::try_new(&own, &gpu()).unwrap_err().to_string();
    assert_eq!(
        error,
        "model `Own` cannot be moved to a GPU, which has no kernel for `twice_dense`: train it on the host"
    );
    let stateful = Stateful::new(dims! { d: 3 }, Seed(1)).unwrap();
    let error = OnGpu::try_new(&stateful, &gpu()).unwrap_err().to_string();
    assert!(
        error.contains("has no kernel for `updates of states`: train it on the host"),
        "{error}"
    );
    let x = Dense::from_rows(&[[1.0f32, 2.0, 3.0]]);
    let batch = OwnBatch { x: x.view() };
    assert_eq!(own.forward(&batch).unwrap().y.values(), [2.0, 4.0, 6.0]);
    let mut there = OnGpu::new(&Logistic::new(dims! { d: 5 }, Seed(1)).unwrap(), &gpu()).unwrap();
    let x = Csr::from_coo(1, 6, [(0, 5, 1.0f32)]).unwrap();
    let batch = LogisticBatch { x: x.view(), ..Default::default() };
    let error = there.forward(&batch).unwrap_err().to_string();
    assert!(error.starts_with("model `Logistic`: `x` has 6 columns, but `d` is 5"), "{error}");
    if !device::is_real() {
        // The emulated GPU has 2³⁰ bytes.
        let mut large = Logistic::new(dims! { d: 1 << 29 }, Seed(1)).unwrap();
        let error = OnGpu::new(&large, &gpu()).unwrap_err();
        assert!(
            matches!(error, nnz::model::Error::Cuda(CudaError::OutOfMemory { bytes, .. }) if bytes == 1 << 31),
            "{error}"
        );
        // The model is what it was.
        let x = Csr::from_coo(1, 1 << 29, [(0, 5, 1.0f32)]).unwrap();
        let batch = LogisticBatch { x: x.view(), ..Default::default() };
        assert_eq!(large.forward(&batch).unwrap().probability.values(), [0.5]);
    }
}

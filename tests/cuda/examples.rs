//! The models of the examples, trained on both devices: parameters are near each other after each
//! epoch, and the same to the bit in another run on the GPU.

use crate::device::gpu;
use crate::named::Ratings;
use crate::near;
use nnz::core::update_rules::UpdateRule;
use nnz::data::{BatchOptions, DataSource, synthetic};
use nnz::model::OnGpu;
use nnz::optimizer::Updater;
use nnz::prelude::*;
use nnz::training::fit_epoch;

graph! {
    /// A factorization machine.
    model Factors {
        input x: csr[n, d];
        label y: dense[n, 1];
        param w: row_sparse[d, 1] = Zeros;
        param v: row_sparse[d, 5] = Normal { mean: 0.0, std: 0.1 };
        param b: dense[1] = Zeros;
        let score = dot(x, w) + pairwise_interaction(x, v) + b;
        loss logistic(score, y);
        output probability = sigmoid(score);
    }

    /// A wide part and a deep one.
    model WideDeep {
        input x: csr[n, d];
        label y: dense[n, 1];
        param w: row_sparse[d, 1] = Zeros;
        param t: row_sparse[d, 3] = Normal { mean: 0.0, std: 0.3 };
        param h: dense[3, 17] = Normal { mean: 0.0, std: 0.5 };
        param a: dense[17] = Zeros;
        param g: dense[17, 1] = Normal { mean: 0.0, std: 0.5 };
        param b: dense[1] = Zeros;
        let hidden = relu(dot(embedding_bag(x, t, mean = true), h) + a);
        let score = dot(x, w) + dot(hidden, g) + b;
        loss logistic(score, y);
        output probability = sigmoid(score);
    }

    /// Several classes.
    model Softmax {
        input x: csr[n, d];
        label y: dense<u32>[n];
        param w: row_sparse[d, 4] = Zeros;
        param b: dense[4] = Zeros;
        let score = dot(x, w) + b;
        loss softmax_cross_entropy(score, y);
        output probability = softmax(score);
    }
}

const EPOCHS: u64 = 3;

fn options() -> BatchOptions {
    BatchOptions { batch_size: 48, ..BatchOptions::default() }
}

/// Trains on both devices.
fn hold<M: Model<Element = f32>, R: UpdateRule>(mut host: M, data: &Dataset, rule: &R) {
    let [mut there, mut again] = [(), ()].map(|()| OnGpu::new(&host, &gpu()).unwrap());
    let mut on_cpu = Updater::for_model(rule.clone(), &host).unwrap();
    let [mut on_gpu, mut anew] =
        [(), ()].map(|()| Updater::for_model(rule.clone(), &there).unwrap());
    for epoch in 0..EPOCHS {
        let batches = || data.batches(M::INPUTS, &options()).unwrap();
        let expected = fit_epoch(&mut host, &mut on_cpu, &mut batches(), epoch, &mut ()).unwrap();
        let found = fit_epoch(&mut there, &mut on_gpu, &mut batches(), epoch, &mut ()).unwrap();
        fit_epoch(&mut again, &mut anew, &mut batches(), epoch, &mut ()).unwrap();
        assert!((found.mean_loss() - expected.mean_loss()).abs() < 1e-4, "{}", M::NAME);
        let copies = again.parameters();
        for ((found, copy), expected) in
            there.parameters().iter().zip(&copies).zip(host.parameters())
        {
            near(found.values(), expected.values(), M::NAME);
            let bits = |values: &[f32]| values.iter().map(|x| x.to_bits()).collect::<Vec<_>>();
            assert_eq!(bits(found.values()), bits(copy.values()), "{}", M::NAME);
        }
    }
}

#[test]
fn models_of_features() {
    let data: Dataset = synthetic::click_log(100, 60, 6, 1).unwrap();
    let rule = Ftrl { l1: 0.01, ..Ftrl::default() };
    hold(Factors::new(dims! { d: 60 }, Seed(3)).unwrap(), &data, &rule);
    hold(WideDeep::new(dims! { d: 60 }, Seed(3)).unwrap(), &data, &rule);
    let x = data.features().unwrap().clone();
    let classes: Vec<u32> = (0..100).map(|row| x.nnz() as u32 * row % 7 % 4).collect();
    let data = Dataset::builder().input("x", x).label("y", classes).build().unwrap();
    let rule = AdaGrad { learning_rate: 0.1, ..AdaGrad::default() };
    hold(Softmax::new(dims! { d: 60 }, Seed(3)).unwrap(), &data, &rule);
}

#[test]
fn a_model_of_look_ups() {
    // Users and items that a batch has several times, and some that none has.
    let of = |step: u32, below: u32| (0..100u32).map(move |row| row * step % below);
    let data = Dataset::builder()
        .input("user", of(7, 23).collect::<Vec<_>>())
        .input("item", of(5, 9).collect::<Vec<_>>())
        .label("rating", of(3, 5).map(|stars| stars as f32 + 1.0).collect::<Vec<_>>())
        .build()
        .unwrap();
    let dims = dims! { users: 30, items: 11 };
    let rule = Sgd { learning_rate: 0.2, ..Sgd::default() };
    hold(Ratings::new(dims, Seed(3)).unwrap(), &data, &rule);
}

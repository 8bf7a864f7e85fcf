//! Dimensions that are constants of Rust.
#![allow(clippy::unwrap_used)]

use nnz::formats::{Csr, Dense};
use nnz::model::Extent;
use nnz::prelude::*;

const CLASSES: usize = 3;

mod settings {
    pub(super) const PAIRS: usize = 2;
}

graph! {
    pub model Softmax {
        const CLASSES;
        input x: csr[n, d];
        label y: dense<u32>[n];
        param w: row_sparse[d, CLASSES] = Constant(0.5);
        let scores = dot(x, w);
        loss softmax_cross_entropy(scores, y);
        output probabilities = softmax(scores);
    }

    /// What is assumed of constants holds: `WIDTH` is 4, and `AGAIN` is `WIDTH`.
    pub model Assumed {
        const WIDTH: usize = 2 * settings::PAIRS;
        const AGAIN: usize = 4;
        input x: dense[n, WIDTH];
        input z: dense[n, AGAIN];
        param(frozen) w: dense[4, 1] = Ones;
        output sum = dot(x, w) + dot(z, w);
    }
}

mod above {
    /// Not the one of the model.
    const A: usize = 100;
    const D: usize = 4;

    nnz::graph! {
        /// Constants of the constants above them; `A` is 2 · 3 + 1 from its own line on, `D` the module's.
        pub model Above {
            const BASE: usize = 3;
            const A = 2 * BASE + A / A;
            const B = if A > BASE { A - BASE } else { A };
            const D;
            const C: usize = [B, A, D].len() + D;
            input x: dense[n, A];
            param w: dense[A, B] = Ones;
            param v: dense[B, C] = Ones;
            param h: row_sparse[D, C] = Ones;
            input k: dense<u32>[n];
            label y: dense[n, C];
            let pred = dot(dot(x, w), v) + embedding(k, h);
            loss squared_error(pred, y);
            output pred;
        }
    }
}

#[test]
fn constants_name_those_above_them() {
    let model = above::Above::new(dims! {}, Seed(1)).unwrap();
    let shapes = [*model.w.shape(), *model.v.shape(), *model.h.shape()];
    assert_eq!(shapes, [[7, 4].into(), [4, 7].into(), [4, 7].into()]);
    assert!(matches!(above::Above::INPUTS[0].shape, [Extent::Named("n"), Extent::Constant(7)]));
    assert!(above::Above::PLAN.to_string().contains("[4, 7]"), "{}", above::Above::PLAN);
}

#[test]
fn a_constant_is_not_asked_for() {
    let model = Softmax::new(dims! { d: 5 }, Seed(1)).unwrap();
    assert_eq!(*model.w.shape(), [5, 3].into());
    assert!(Softmax::new(dims! { d: 5, CLASSES: 3 }, Seed(1)).is_err());
    assert!(matches!(Softmax::PARAMETERS[0].shape, [Extent::Named("d"), Extent::Constant(3)]));
    assert!(Softmax::PLAN.to_string().contains("[n, 3]"), "{}", Softmax::PLAN);
}

#[test]
fn constants_train() {
    let x = Csr::new(5, vec![0, 2, 3], vec![0_u32, 2, 1], vec![1.0, 2.0, 3.0]).unwrap();
    let y = Dense::new([2], vec![0_u32, 2]).unwrap();
    let mut model = Softmax::new(dims! { d: 5 }, Seed(1)).unwrap();
    let batch = SoftmaxBatch { x: x.view(), y: y.view(), ..Default::default() };
    let loss = model.loss_and_grads(&batch).unwrap();
    assert!((loss - 3_f64.ln()).abs() < 1e-6, "{loss}");
    let mut updater = nnz::optimizer::Updater::for_model(Sgd::default(), &model).unwrap();
    assert!((model.train_step(&batch, &mut updater).unwrap() - loss).abs() < 1e-6);
}

#[test]
fn what_is_assumed_is_computed_with() {
    let (x, z) = (Dense::full([2, 4], 1.0), Dense::full([2, 4], 0.5));
    let mut model = Assumed::new(dims! {}, Seed(1)).unwrap();
    let batch = AssumedBatch { x: x.view(), z: z.view(), ..Default::default() };
    assert_eq!(model.forward(&batch).unwrap().sum.values(), [6.0, 6.0]);
    let narrow = Dense::full([2, 3], 1.0);
    let batch = AssumedBatch { x: narrow.view(), z: z.view(), ..Default::default() };
    assert!(model.forward(&batch).is_err());
}

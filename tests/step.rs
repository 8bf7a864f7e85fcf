//! The fused step against the unfused one, and both against arithmetic by hand.

#![allow(clippy::unwrap_used)]

use nnz::optimizer::Updater;
use nnz::prelude::*;

graph! {
    /// Fused.
    pub model Fused {
        input x: csr[n, d];
        label y: dense[n, 1];
        param w: row_sparse[d, 1] = Normal { mean: 0.0, std: 0.5 };
        param b: dense[1] = Constant(0.25);
        let score = 2.0 * tanh(dot(x, w) + b);
        loss logistic(score, y);
        output score;
        output p = sigmoid(score);
    }

    /// The same, unfused.
    pub model Unfused {
        fuse = off;
        input x: csr[n, d];
        label y: dense[n, 1];
        param w: row_sparse[d, 1] = Normal { mean: 0.0, std: 0.5 };
        param b: dense[1] = Constant(0.25);
        let score = 2.0 * tanh(dot(x, w) + b);
        loss logistic(score, y);
        output score;
        output p = sigmoid(score);
    }
}

fn data() -> (Csr, Dense) {
    let x = Csr::from_rows(
        6,
        [vec![(0, 1.0), (3, 2.0)], vec![], vec![(3, -1.0), (5, 0.5)], vec![(1, 0.0), (2, 4.0)]],
    )
    .unwrap();
    (x, Dense::new([4, 1], vec![1.0, 0.0, -1.0, 0.5]).unwrap())
}

#[test]
fn fused_equals_unfused() {
    let (x, y) = data();
    for lazy_update in [LazyUpdate::Exact, LazyUpdate::Touched, LazyUpdate::Dense] {
        let sgd = Sgd {
            learning_rate: 0.3,
            momentum: 0.9,
            weight_decay: 0.1,
            lazy_update,
            ..Sgd::default()
        };
        let mut fused = Fused::new(dims! { d: 6 }, Seed(7)).unwrap();
        let mut unfused = Unfused::new(dims! { d: 6 }, Seed(7)).unwrap();
        let mut a = Updater::for_model(sgd.clone(), &fused).unwrap();
        let mut b = Updater::for_model(sgd, &unfused).unwrap();
        for step in 0..12 {
            let rows = if step % 3 == 0 { 0..4 } else { step % 4..step % 4 + 1 };
            let (x, y) = (x.view().rows(rows.clone()).unwrap(), y.view().rows(rows).unwrap());
            let loss =
                fused.train_step(&FusedBatch { x, y, ..Default::default() }, &mut a).unwrap();
            let other =
                unfused.train_step(&UnfusedBatch { x, y, ..Default::default() }, &mut b).unwrap();
            assert!((loss - other).abs() < 1e-6, "{loss} {other}");
            assert_eq!(fused.outputs().p.shape(), unfused.outputs().p.shape());
            for (p, q) in fused.outputs().p.values().iter().zip(unfused.outputs().p.values()) {
                assert!((p - q).abs() < 1e-6);
            }
        }
        a.flush_model(&mut fused).unwrap();
        b.flush_model(&mut unfused).unwrap();
        for (p, q) in fused.parameters().iter().zip(unfused.parameters()) {
            for (p, q) in p.values().iter().zip(q.values()) {
                assert!((p - q).abs() < 1e-6, "{p} {q}");
            }
        }
    }
}

#[test]
fn the_plan_says_what_was_fused() {
    let (fused, unfused) = (Fused::PLAN.to_string(), Unfused::PLAN.to_string());
    assert!(fused.contains("step: one loop over the rows of x"), "{fused}");
    assert!(unfused.contains("step: not fused (the model says `fuse = off`)"), "{unfused}");
}

#[test]
fn a_batch_that_does_not_fit_is_a_typed_error() {
    let (x, y) = data();
    let mut model = Fused::new(dims! { d: 7 }, Seed(7)).unwrap();
    let batch = FusedBatch { x: x.view(), y: y.view(), ..Default::default() };
    assert_eq!(
        model.loss(&batch).unwrap_err().to_string(),
        "model `Fused`: `x` has extent 6 on axis 1, but 7 is needed"
    );
    let mut model = Fused::new(dims! { d: 6 }, Seed(7)).unwrap();
    let short = y.view().rows(0..3).unwrap();
    let batch = FusedBatch { x: x.view(), y: short, ..Default::default() };
    assert_eq!(
        model.loss(&batch).unwrap_err().to_string(),
        "model `Fused`: `y` has extent 3 on axis 0, but 4 is needed"
    );
    // Predictions read no labels.
    assert_eq!(*model.forward(&batch).unwrap().p.shape(), [4, 1].into());
    let error = Fused::new(dims! { e: 6 }, Seed(7)).unwrap_err();
    assert!(error.to_string().contains("needs the dimension `d`"), "{error}");
}

graph! {
    /// Names that emitted code might use itself.
    pub model Names {
        input batch: csr[n, d];
        label label: dense[n, 1];
        param loss: row_sparse[d, 1] = Zeros;
        param record: dense[1] = Zeros;
        let context = dot(batch, loss) + record;
        loss squared_error(context, label);
        output updater = context;
    }
}

#[test]
fn any_names_will_do() {
    let (x, y) = data();
    let mut model = Names::new(dims! { d: 6 }, Seed(1)).unwrap();
    let mut updater = Updater::for_model(Sgd::default(), &model).unwrap();
    let batch = NamesBatch { batch: x.view(), label: y.view(), ..Default::default() };
    let first = model.train_step(&batch, &mut updater).unwrap();
    let second = model.train_step(&batch, &mut updater).unwrap();
    assert!(second < first);
}

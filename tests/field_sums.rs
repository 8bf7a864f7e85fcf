//! Steps of large batches: what the sums of all samples come to, of tables and of dense parameters.

use nnz::kernels::Parallel;
use nnz::optimizer::Updater;
use nnz::prelude::*;

graph! {
    /// A product and a bias.
    pub model Line {
        input x: csr[n, d];
        label y: dense[n, 1];
        param w: row_sparse[d, 1] = Zeros;
        param b: dense[1] = Zeros;
        let score = dot(x, w) + b;
        loss squared_error(score, y);
        output score;
    }

    /// A bag through a layer.
    pub model Bag {
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

const N: usize = 1 << 18;

/// One column in all samples, and the same label.
fn data(label: f32) -> (Csr, Dense) {
    let x = Csr::from_rows(2, (0..N).map(|_| [(1, 1.0f32)])).unwrap();
    (x, Dense::full([N, 1], label))
}

fn rate_1() -> Sgd {
    Sgd { learning_rate: 1.0, ..Sgd::default() }
}

/// Within some units in the last place of the largest of the numbers.
#[track_caller]
fn within(ulps: f64, found: f32, expected: f64) {
    let expected_f32 = expected.abs() as f32;
    let ulp = f64::from(expected_f32.next_up()) - f64::from(expected_f32);
    let error = (f64::from(found) - expected).abs() / ulp;
    assert!(error <= ulps, "{found}, not {expected}: {error} ulps");
}

#[test]
fn n1_the_bias_of_a_large_batch_has_the_sum_of_all_samples() {
    let (x, y) = data(0.1);
    for parallel in [Parallel::Sequential, Parallel::Threads(2)] {
        let mut model = Line::new(dims! { d: 2 }, Seed(0)).unwrap();
        model.set_parallel(parallel);
        let mut updater = Updater::for_model(rate_1(), &model).unwrap();
        let batch = LineBatch { x: x.view(), y: y.view() };
        model.train_step(&batch, &mut updater).unwrap();
        within(4.0, model.b.values()[0], f64::from(0.1f32));
        within(4.0, model.w.values()[1], f64::from(0.1f32));
        assert_eq!(model.w.values()[0], 0.0);
    }
}

#[test]
fn n1_layers_of_a_large_batch_have_the_sum_of_all_samples() {
    let (x, y) = data(2.1);
    let derivative = f64::from(2.0 - 2.1f32);
    let mut model = Bag::new(dims! { d: 2 }, Seed(0)).unwrap();
    let mut updater = Updater::for_model(rate_1(), &model).unwrap();
    model.train_step(&BagBatch { x: x.view(), y: y.view() }, &mut updater).unwrap();
    for t in &model.t.values()[4..] {
        within(4.0, *t, 0.5 - derivative);
    }
    within(4.0, model.b.values()[0], -derivative);
    for h in model.h.values() {
        within(4.0, *h, 1.0 - 0.5 * derivative);
    }
}

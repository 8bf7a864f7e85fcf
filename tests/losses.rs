//! Every loss in a model: the fused step against the unfused one, with weights of rows and without;
//! what weights mean.

use nnz::core::inspect::PlanStep;
use nnz::optimizer::Updater;
use nnz::prelude::*;

/// Models of two columns, fused and not, that differ in the loss; each trained a few steps both
/// ways.
macro_rules! models {
    ($($fused:ident $fused_batch:ident $unfused:ident $unfused_batch:ident $label:ident [$($ty:tt)*]
        $($weights:ident)? => $test:ident [$($loss:tt)*])*) => {
        $(
            graph! {
                pub model $fused {
                    input x: csr[n, d];
                    label y: $($ty)*;
                    $(label $weights: dense[n];)?
                    param w: row_sparse[d, 2] = Normal { mean: 0.0, std: 0.5 };
                    param b: dense[2] = Constant(0.25);
                    let p = dot(x, w) + b;
                    loss $($loss)*;
                    output p;
                }

                pub model $unfused {
                    fuse = off;
                    input x: csr[n, d];
                    label y: $($ty)*;
                    $(label $weights: dense[n];)?
                    param w: row_sparse[d, 2] = Normal { mean: 0.0, std: 0.5 };
                    param b: dense[2] = Constant(0.25);
                    let p = dot(x, w) + b;
                    loss $($loss)*;
                    output p;
                }
            }

            #[test]
            fn $test() {
                let data = Data::new();
                let sgd = || Sgd { learning_rate: 0.3, momentum: 0.9, ..Sgd::default() };
                let mut fused = $fused::new(dims! { d: 6 }, Seed(7)).unwrap();
                let mut unfused = $unfused::new(dims! { d: 6 }, Seed(7)).unwrap();
                assert!($fused::PLAN.is_fused());
                let mut a = Updater::for_model(sgd(), &fused).unwrap();
                let mut b = Updater::for_model(sgd(), &unfused).unwrap();
                for step in 0..9 {
                    let rows = if step % 3 == 0 { 0..4 } else { step % 4..step % 4 + 1 };
                    let x = data.x.view().rows(rows.clone()).unwrap();
                    $(let $weights = data.v.view().rows(rows.clone()).unwrap();)?
                    let y = data.$label.view().rows(rows).unwrap();
                    let batch = $fused_batch { x, y, $($weights,)? };
                    let loss = fused.train_step(&batch, &mut a).unwrap();
                    let batch = $unfused_batch { x, y, $($weights,)? };
                    let other = unfused.train_step(&batch, &mut b).unwrap();
                    assert!((loss - other).abs() < 1e-5 * (1.0 + other.abs()), "{loss} {other}");
                }
                a.flush_model(&mut fused).unwrap();
                b.flush_model(&mut unfused).unwrap();
                for (p, q) in fused.parameters().iter().zip(unfused.parameters()) {
                    for (p, q) in p.values().iter().zip(q.values()) {
                        assert!((p - q).abs() < 1e-5, "{p} {q}");
                    }
                }
            }
        )*
    };
}

models! {
    Squared SquaredBatch SquaredOff SquaredOffBatch numbers [dense[n, 2]]
        v => squared_error [squared_error(p, y, v)]
    Absolute AbsoluteBatch AbsoluteOff AbsoluteOffBatch numbers [dense[n, 2]]
        v => absolute_error [absolute_error(p, y, weight = v)]
    Huber HuberBatch HuberOff HuberOffBatch numbers [dense[n, 2]]
        v => huber [huber(p, y, delta = 0.5, weight = v)]
    HuberOne HuberOneBatch HuberOneOff HuberOneOffBatch numbers [dense[n, 2]]
        => huber_without_weights [huber(p, y, delta = 2)]
    Logistic LogisticBatch LogisticOff LogisticOffBatch numbers [dense[n, 2]]
        v => logistic [logistic(p, y, v)]
    Hinge HingeBatch HingeOff HingeOffBatch numbers [dense[n, 2]]
        v => hinge [hinge(p, y, v)]
    SquaredHinge SquaredHingeBatch SquaredHingeOff SquaredHingeOffBatch numbers [dense[n, 2]]
        v => squared_hinge [squared_hinge(p, y, v)]
    Poisson PoissonBatch PoissonOff PoissonOffBatch numbers [dense[n, 2]]
        v => poisson [poisson(p, y, v)]
    Classes ClassesBatch ClassesOff ClassesOffBatch classes [dense<u32>[n]]
        v => softmax_cross_entropy_of_classes [softmax_cross_entropy(p, y, v)]
    Targets TargetsBatch TargetsOff TargetsOffBatch numbers [dense[n, 2]]
        v => softmax_cross_entropy_of_targets [softmax_cross_entropy(p, y, v)]
}

struct Data {
    x: Csr,
    numbers: Dense,
    classes: Dense<u32>,
    v: Dense,
}

impl Data {
    fn new() -> Self {
        let rows =
            [vec![(0, 1.0), (3, 2.0)], vec![], vec![(3, -1.0), (5, 0.5)], vec![(1, 0.0), (2, 4.0)]];
        Data {
            x: Csr::from_rows(6, rows).unwrap(),
            numbers: Dense::from_rows(&[[1.0, 0.0], [0.0, 0.25], [0.5, 1.0], [1.0, 1.0]]),
            classes: Dense::new([4], vec![1, 0, 1, 1]).unwrap(),
            v: Dense::new([4], vec![1.0, 0.0, 2.0, 0.5]).unwrap(),
        }
    }
}

graph! {
    /// Labels in csr and weights that are computed: not fused, and it says so.
    pub model Weighted {
        input x: csr[n, d];
        label y: csr[n, 1];
        label v: dense[n];
        param w: row_sparse[d, 1] = Normal { mean: 0.0, std: 0.5 };
        let p = dot(x, w);
        loss logistic(p, y, weight = 2.0 * v - 1.0);
        output p;
    }
}

#[test]
fn a_weight_of_two_is_a_row_twice() {
    assert!(
        matches!(Weighted::PLAN.step, PlanStep::Scattered { reason, .. } if reason.contains("csr"))
    );
    let mut model = Weighted::new(dims! { d: 3 }, Seed(1)).unwrap();
    let once = [vec![(0, 1.0)], vec![(1, -2.0), (2, 1.0)]];
    let twice = [once[0].clone(), once[1].clone(), once[1].clone()];
    let mut run = |rows: &[Vec<(usize, f32)>], labels: &[f32], weights: &[f32]| {
        let x = Csr::from_rows(3, rows.iter().cloned()).unwrap();
        let stored = labels.iter().map(|&label| (label != 0.0).then_some((0, label)));
        let y = Csr::from_rows(1, stored).unwrap();
        let v = Dense::from(weights.to_vec());
        let (x, y, v) = (x.view(), y.view(), v.view());
        let loss = model.loss_and_grads(&WeightedBatch { x, y, v }).unwrap();
        let n = rows.len() as f64;
        let gradient: Vec<f64> =
            model.gradients().w.values().iter().map(|&g| f64::from(g) * n).collect();
        (loss * n, gradient)
    };
    // Weights of 1 and 2, and rows of weight 1.
    let (loss, gradient) = run(&once, &[1.0, 0.0], &[1.0, 1.5]);
    let (expected, expected_gradient) = run(&twice, &[1.0, 0.0, 0.0], &[1.0, 1.0, 1.0]);
    assert!((loss - expected).abs() < 1e-5, "{loss} {expected}");
    for (found, expected) in gradient.iter().zip(expected_gradient) {
        assert!((found - expected).abs() < 1e-5, "{found} {expected}");
    }
}

graph! {
    pub model AtZero {
        dtype = f64;
        param(frozen) zeros: dense[2] = Zeros;
        param v: dense[2] = Zeros;
        loss norm(v) + sum(hypot(v, zeros)) + sum(power(v, 0));
    }
}

/// A corner has a gradient of 0, and so has a constant.
#[test]
fn gradients_at_zero_are_numbers() {
    let mut model = AtZero::new(dims! {}, Seed(1)).unwrap();
    assert_eq!(model.loss_and_grads(&AtZeroBatch::default()).unwrap(), 2.0);
    assert_eq!(model.gradients().v.values(), [0.0, 0.0]);
}

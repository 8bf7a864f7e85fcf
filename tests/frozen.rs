//! Parameters that are not trained, and several losses.
use nnz::formats::{Csr, Dense};
use nnz::optimizer::Updater;
use nnz::prelude::*;

graph! {
    /// Linear in `x`: one loop over its rows.
    pub model Fused {
        input x: csr[n, d];
        label y: dense[n, 1];
        param w: row_sparse[d, 1] = Constant(0.5);
        param(frozen) scale: dense[1] = Constant(2.0);
        param(frozen) shift: dense[1] = Ones;
        let pred = dot(x, w) * scale + shift;
        loss squared_error(pred, y);
        output pred;
    }

    pub model Unfused {
        fuse = off;
        input x: csr[n, d];
        label y: dense[n, 1];
        param w: row_sparse[d, 1] = Constant(0.5);
        param(frozen) scale: dense[1] = Constant(2.0);
        param(frozen) shift: dense[1] = Ones;
        let pred = dot(x, w) * scale + shift;
        loss squared_error(pred, y);
        output pred;
    }

    /// A table that is read by rows and not trained, two losses, one of them weighted.
    pub model Two {
        input x: csr[n, d];
        label y: dense[n, 1];
        label z: dense[n, 1];
        param(frozen) table: row_sparse[d, 2] = Normal { mean: 0.0, std: 1.0 };
        param v: dense[2, 1] = Constant(0.5);
        param b: dense[1] = Zeros;
        let hidden = dot(x, table);
        let first = dot(hidden, v);
        let second = first + b;
        loss 0.5 * squared_error(first, y);
        loss squared_error(second, z);
        output first;
        output second;
    }
}

fn data() -> (Csr, Dense, Dense) {
    let x = Csr::new(3, vec![0, 2, 3], vec![0_u32, 2, 1], vec![1.0, 2.0, 3.0]).unwrap();
    let labels = |values: [f32; 2]| Dense::new([2, 1], values.to_vec()).unwrap();
    (x, labels([1.0, -1.0]), labels([0.5, 2.0]))
}

fn rule() -> Sgd {
    Sgd { learning_rate: 0.1, momentum: 0.9, weight_decay: 0.1, ..Sgd::default() }
}

#[test]
fn a_frozen_parameter_is_read_and_never_written() {
    let (x, y, _) = data();
    let mut fused = Fused::new(dims! { d: 3 }, Seed(1)).unwrap();
    let mut unfused = Unfused::new(dims! { d: 3 }, Seed(1)).unwrap();
    let mut rules = (
        Updater::for_model(rule(), &fused).unwrap(),
        Updater::for_model(rule(), &unfused).unwrap(),
    );
    for _ in 0..3 {
        let (a, b) =
            (FusedBatch { x: x.view(), y: y.view() }, UnfusedBatch { x: x.view(), y: y.view() });
        let loss = fused.train_step(&a, &mut rules.0).unwrap();
        assert!((loss - unfused.train_step(&b, &mut rules.1).unwrap()).abs() < 1e-6);
    }
    assert_ne!(fused.w.values(), [0.5; 3]);
    for (a, b) in fused.w.values().iter().zip(unfused.w.values()) {
        assert!((a - b).abs() < 1e-6, "{a} {b}");
    }
    assert_eq!((fused.scale.values(), fused.shift.values()), (&[2.0][..], &[1.0][..]));
    assert_eq!((unfused.scale.values(), unfused.shift.values()), (&[2.0][..], &[1.0][..]));
    assert_eq!(Fused::PARAMETERS[1].gradient, None);
}

#[test]
fn losses_are_added_with_their_weights() {
    let (x, y, z) = data();
    let mut model = Two::new(dims! { d: 3 }, Seed(4)).unwrap();
    let batch = TwoBatch { x: x.view(), y: y.view(), z: z.view() };
    let table = model.table.values().to_vec();
    let loss = model.loss_and_grads(&batch).unwrap();
    // by hand, with (1/2n) Σ (score - label)² for each
    let outputs = model.forward(&batch).unwrap();
    let error = |scores: &Dense, labels: &Dense| -> f64 {
        let pairs = scores.values().iter().zip(labels.values());
        pairs.map(|(a, b)| f64::from((a - b) * (a - b))).sum::<f64>() / 4.0
    };
    let expected = 0.5 * error(&outputs.first, &y) + error(&outputs.second, &z);
    assert!((loss - expected).abs() < 1e-5 * expected, "{loss} {expected}");
    let slope: f32 = outputs.second.values().iter().zip(z.values()).map(|(a, b)| a - b).sum();
    assert!((model.gradients().b.values()[0] - slope / 2.0).abs() < 1e-4);
    let mut updater = Updater::for_model(rule(), &model).unwrap();
    model.train_step(&batch, &mut updater).unwrap();
    assert_eq!(model.table.values(), table);
}

#[test]
fn a_frozen_parameter_is_saved_and_loaded() {
    let path = std::env::temp_dir().join(format!("nnz-frozen-{}.safetensors", std::process::id()));
    let model = Two::new(dims! { d: 3 }, Seed(4)).unwrap();
    checkpoint::save(&model, &path).unwrap();
    let mut loaded = Two::new(dims! { d: 3 }, Seed(5)).unwrap();
    assert_ne!(loaded.table.values(), model.table.values());
    checkpoint::load(&mut loaded, &path).unwrap();
    assert_eq!(loaded.table.values(), model.table.values());
    std::fs::remove_file(path).unwrap();
}

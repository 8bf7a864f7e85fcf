//! Models whose arrays have 16 bits: they learn what those of 32 bits do, are saved, and sum in 32 bits.
#![cfg(feature = "half")]
#![allow(clippy::unwrap_used)]

use nnz::formats::{bf16, f16};
use nnz::optimizer::Updater;
use nnz::prelude::*;

/// Rows of three features of 60, of the positive class where the first is in the first half.
fn data() -> (Csr, Dense) {
    let first = |row: usize| row * 7 % 60;
    let row = |row: usize| {
        let mut columns = [first(row), (row * 11 + 1) % 60, (row * 13 + 2) % 60];
        columns.sort_unstable();
        let mut columns = columns.to_vec();
        columns.dedup();
        columns.into_iter().map(|column| (column, 1.0)).collect::<Vec<_>>()
    };
    let labels = (0..200).map(|row| if first(row) < 30 { 1.0 } else { 0.0 }).collect();
    (Csr::from_rows(60, (0..200).map(row)).unwrap(), Dense::new([200, 1], labels).unwrap())
}

/// A logistic regression of an element type, and how its loss falls.
macro_rules! logistic {
    ($module:ident, $element:ident) => {
        mod $module {
            use super::*;

            graph! {
                pub(super) model Logistic {
                    dtype = $element;
                    input x: csr[n, d];
                    label y: dense[n, 1];
                    param w: row_sparse[d, 1] = Normal { mean: 0.0, std: 0.01 };
                    param b: dense[1] = Zeros;
                    let score = dot(x, w) + b;
                    loss logistic(score, y);
                    output probability = sigmoid(score);
                }
            }

            /// The loss before and after some steps on all rows, and the model.
            pub(super) fn fitted() -> (f64, f64, Logistic) {
                let (x, y) = data();
                let (x, y) = (x.cast::<$element>(), y.cast::<$element>());
                let batch = LogisticBatch { x: x.view(), y: y.view(), ..Default::default() };
                let mut model = Logistic::new(dims! { d: 60 }, Seed(3)).unwrap();
                let rule = Sgd { learning_rate: 2.0, momentum: 0.5, ..Sgd::default() };
                let mut updater = Updater::for_model(rule, &model).unwrap();
                let before = model.loss(&batch).unwrap();
                for _ in 0..50 {
                    model.train_step(&batch, &mut updater).unwrap();
                }
                updater.flush_model(&mut model).unwrap();
                (before, model.loss(&batch).unwrap(), model)
            }
        }
    };
}

logistic!(single, f32);
logistic!(brain, bf16);
logistic!(ieee, f16);

#[test]
fn halves_learn_what_singles_do() {
    let (before, single, _) = single::fitted();
    assert!(single < 0.8 * before, "{before} {single}");
    // A weight keeps 8 or 11 digits of its binary form, and small steps are rounded away.
    for (name, after, digits) in [("bf16", brain::fitted().1, 8), ("f16", ieee::fitted().1, 11)] {
        let bound = 16.0 * f64::from(digits).exp2().recip() * before;
        assert!((after - single).abs() < bound, "{name}: {after}, f32: {single}");
    }
}

#[test]
fn halves_are_saved_and_loaded() {
    let path = std::env::temp_dir().join(format!("nnz-halves-{}.safetensors", std::process::id()));
    let (_, _, trained) = brain::fitted();
    checkpoint::save(&trained, &path).unwrap();
    let mut loaded = brain::Logistic::new(dims! { d: 60 }, Seed(9)).unwrap();
    assert_ne!(loaded.w.values(), trained.w.values());
    checkpoint::load(&mut loaded, &path).unwrap();
    assert_eq!(loaded.w.values(), trained.w.values());
    assert_eq!(loaded.b.values(), trained.b.values());
    // The elements are those of the model, and not others of the same names.
    let mut other = ieee::Logistic::new(dims! { d: 60 }, Seed(9)).unwrap();
    let refused = checkpoint::load(&mut other, &path).unwrap_err().to_string();
    std::fs::remove_file(&path).unwrap();
    assert!(refused.contains("graph"), "{refused}");
}

graph! {
    /// Each gradient is a sum of 300 ones.
    pub model Sums {
        dtype = bf16;
        input ids: dense<u32>[n];
        input x: dense[n, 1];
        param tiled: dense[2] = Zeros;
        param repeated: dense[2] = Zeros;
        param added: dense[1] = Zeros;
        param taken: row_sparse[3, 1] = Zeros;
        param multiplied: dense[1, 1] = Zeros;
        loss sum(tile(tiled, reps = 300)) + sum(repeat(repeated, repeats = 300, axis = 0))
            + sum(x + added) + sum(embedding(ids, taken)) + sum(dot(x, multiplied));
    }
}

/// In 8 binary digits 256 + 1 is 256.
#[test]
fn gradients_are_summed_in_the_accumulator() {
    let ids = Dense::<u32>::from(vec![1; 300]);
    let x = Dense::full([300, 1], bf16::from_f32(1.0));
    let mut model = Sums::new(dims! {}, Seed(1)).unwrap();
    let batch = SumsBatch { ids: ids.view(), x: x.view(), ..Default::default() };
    model.loss_and_grads(&batch).unwrap();
    let gradients = model.gradients();
    let sum = bf16::from_f32(300.0);
    assert_eq!(gradients.tiled.values(), [sum; 2]);
    assert_eq!(gradients.repeated.values(), [sum; 2]);
    assert_eq!(gradients.added.values(), [sum]);
    assert_eq!(gradients.taken.values(), [sum]);
    assert_eq!(gradients.multiplied.values(), [sum]);
}

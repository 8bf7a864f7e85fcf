//! Models whose arrays have 16 bits: they learn what those of 32 bits do, are saved, and sum in 32
//! bits.
use nnz::core::storage::ElementType;
use nnz::formats::{bf16, f16};
use nnz::optimizer::Updater;
use nnz::predictor::Predictor;
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
                let batch = LogisticBatch { x: x.view(), y: y.view() };
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

/// A trained model is rounded and kept, and scores from the file, of which every thread reads the
/// same bytes.
#[test]
fn a_rounded_model_is_mapped_from_its_file() {
    let path = std::env::temp_dir().join(format!("nnz-rounded-{}.safetensors", std::process::id()));
    let (_, _, mut trained) = single::fitted();
    let (rows, y) = data();
    let batch = single::LogisticBatch { x: rows.view(), y: y.view() };
    let expected = trained.forward(&batch).unwrap().probability.values().to_vec();
    Predictor::<ieee::Logistic>::rounded(&trained).unwrap().save(&path).unwrap();
    // Two bytes for each of 61 weights.
    assert_eq!(checkpoint::read_metadata(&path).unwrap().parameters[0].element, ElementType::F16);
    let predictor = Predictor::<ieee::Logistic>::open(&path).unwrap();
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                let mut scorer = predictor.scorer().unwrap();
                for (row, expected) in rows.iter_rows().zip(&expected) {
                    let (columns, values): (Vec<u32>, Vec<f16>) =
                        row.map(|(column, value)| (column as u32, f16::from_f32(value))).unzip();
                    let found = scorer.score_row(&columns, &values).unwrap()[0].to_f32();
                    // A weight keeps 11 digits of its binary form, and so does the probability.
                    assert!((found - expected).abs() < 2e-3, "{found}, f32: {expected}");
                }
                #[cfg(target_os = "linux")]
                assert!(is_mapped(scorer.model().w.values().as_ptr().addr(), &path));
            });
        }
    });
    std::fs::remove_file(&path).unwrap();
}

/// Whether an address is in the mapping of a file.
#[cfg(target_os = "linux")]
fn is_mapped(address: usize, path: &std::path::Path) -> bool {
    let mappings = std::fs::read_to_string("/proc/self/maps").unwrap();
    let of_file = mappings.lines().filter(|line| line.ends_with(path.to_str().unwrap()));
    let ranges = of_file.map(|line| line.split_once(' ').unwrap().0.split_once('-').unwrap());
    let number = |text| usize::from_str_radix(text, 16).unwrap();
    ranges.into_iter().any(|(from, to)| (number(from)..number(to)).contains(&address))
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
    let batch = SumsBatch { ids: ids.view(), x: x.view() };
    model.loss_and_grads(&batch).unwrap();
    let gradients = model.gradients();
    let sum = bf16::from_f32(300.0);
    assert_eq!(gradients.tiled.values(), [sum; 2]);
    assert_eq!(gradients.repeated.values(), [sum; 2]);
    assert_eq!(gradients.added.values(), [sum]);
    assert_eq!(gradients.taken.values(), [sum]);
    assert_eq!(gradients.multiplied.values(), [sum]);
}

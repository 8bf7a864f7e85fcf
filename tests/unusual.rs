//! Models that few write: of no features, with names of other alphabets, in functions and in macros, of hundreds of operators.

#![allow(clippy::unwrap_used)]

use nnz::optimizer::Updater;
use nnz::prelude::*;

graph! {
    /// Names that are not ASCII.
    pub model Größen {
        input größe: csr[строки, ширина];
        label 目標: dense[строки, 1];
        param β: row_sparse[ширина, 1] = Constant(0.5);
        let ŷ = dot(größe, β);
        loss squared_error(ŷ, 目標);
        output ŷ;
    }

    /// Everything is a number.
    pub model Number {
        param a: dense[] = Constant(3.0);
        loss square(a - 1.0);
        output twice = a * 2.0;
    }
}

/// The words that the language has, as names of what a model declares.
mod words {
    nnz::prelude::graph! {
        pub model Words {
            input model: csr[batch, seed];
            label label: dense[batch, 1];
            param output: row_sparse[seed, 1] = Constant(0.5);
            let loss = dot(model, output);
            loss squared_error(loss, label);
            output input = loss;
        }
    }
}

fn x(rows: usize, columns: usize) -> Csr {
    let entries = |row: usize| (0..columns).map(move |column| (column, (row + column) as f32));
    Csr::from_rows(columns, (0..rows).map(|row| entries(row).collect::<Vec<_>>())).unwrap()
}

#[test]
fn names_of_other_alphabets() {
    let mut model = Größen::new(dims! { ширина: 3 }, Seed(0)).unwrap();
    let (x, y) = (x(2, 3), Dense::new([2, 1], vec![1.0, 0.0]).unwrap());
    let batch = GrößenBatch { größe: x.view(), 目標: y.view(), ..Default::default() };
    assert_eq!(model.forward(&batch).unwrap().ŷ.values(), [1.5, 3.0]);
    let mut updater = Updater::for_model(Sgd::default(), &model).unwrap();
    let before = model.loss(&batch).unwrap();
    model.train_step(&batch, &mut updater).unwrap();
    assert!(model.loss(&batch).unwrap() < before);
}

#[test]
fn words_of_the_language() {
    use words::{Words, WordsBatch};
    let mut model = Words::new(dims! { seed: 3 }, Seed(0)).unwrap();
    let (x, y) = (x(2, 3), Dense::new([2, 1], vec![1.0, 0.0]).unwrap());
    let batch = WordsBatch { model: x.view(), label: y.view(), ..Default::default() };
    assert_eq!(model.forward(&batch).unwrap().input.values(), [1.5, 3.0]);
}

/// A model of no features, a batch of no rows, and both.
#[test]
fn nothing_to_learn_from() {
    for (rows, columns) in [(2, 0), (0, 3), (0, 0)] {
        let mut model = Größen::new(dims! { ширина: columns }, Seed(0)).unwrap();
        let mut updater = Updater::for_model(AdaGrad::default(), &model).unwrap();
        let (x, y) = (x(rows, columns), Dense::new([rows, 1], vec![1.0; rows]).unwrap());
        let batch = GrößenBatch { größe: x.view(), 目標: y.view(), ..Default::default() };
        assert_eq!(model.forward(&batch).unwrap().ŷ.values(), vec![0.0; rows]);
        let loss = model.train_step(&batch, &mut updater).unwrap();
        assert_eq!(loss, if rows == 0 { 0.0 } else { 0.5 }, "{rows} x {columns}");
        assert_eq!(model.β.values(), vec![0.5; columns]);
    }
}

#[test]
fn a_model_of_numbers() {
    let mut model = Number::new(dims! {}, Seed(0)).unwrap();
    let mut updater =
        Updater::for_model(Sgd { learning_rate: 0.25, ..Sgd::default() }, &model).unwrap();
    let batch = NumberBatch::default();
    assert_eq!(model.forward(&batch).unwrap().twice.values(), [6.0]);
    assert_eq!(model.train_step(&batch, &mut updater).unwrap(), 4.0);
    assert_eq!(model.a.values(), [2.0]);
}

/// In a function of a type parameter, and in two functions by one name.
#[test]
fn models_in_functions() {
    fn first<T: Copy + Into<f64>>(factor: T) -> f64 {
        graph! {
            model Local {
                param a: dense[] = Constant(3.0);
                loss square(a);
            }
        }
        let mut model = Local::new(dims! {}, Seed(0)).unwrap();
        factor.into() * model.loss(&LocalBatch::default()).unwrap()
    }
    fn second() -> f64 {
        graph! {
            model Local {
                param a: dense[] = Constant(2.0);
                loss square(a);
            }
        }
        Local::new(dims! {}, Seed(0)).unwrap().loss(&LocalBatch::default()).unwrap()
    }
    assert_eq!([first(2.0f32), second()], [18.0, 4.0]);
}

/// A macro that writes models, with names and numbers of its own.
#[test]
fn models_of_a_macro() {
    macro_rules! linear {
        ($name:ident, $batch:ident, $columns:literal, $weight:ident) => {{
            graph! {
                model $name {
                    input x: csr[n, d];
                    param $weight: row_sparse[d, $columns] = Constant(0.5);
                    output score = dot(x, $weight);
                }
            }
            let mut model = $name::new(dims! { d: 3 }, Seed(0)).unwrap();
            let x = x(2, 3);
            model
                .forward(&$batch { x: x.view(), ..Default::default() })
                .unwrap()
                .score
                .values()
                .to_vec()
        }};
    }
    assert_eq!(linear!(One, OneBatch, 1, weight), [1.5, 3.0]);
    assert_eq!(linear!(Two, TwoBatch, 2, other), [1.5, 1.5, 3.0, 3.0]);
}

graph! {
    block eight(x) { tanh(relu(sigmoid(abs(x) + 1.0) * 2.0 - 0.5)) + x * 0.5 }
    block sixty_four(x) { eight(eight(eight(eight(eight(eight(eight(eight(x)))))))) }

    /// Hundreds of operators in a row, and their gradients.
    pub model Long {
        input x: dense[n, 2];
        label y: dense[n, 1];
        param w: dense[2, 1] = Constant(0.25);
        let score = sixty_four(sixty_four(sixty_four(sixty_four(dot(x, w)))));
        loss squared_error(score, y);
        output score;
    }
}

#[test]
fn hundreds_of_operators() {
    let mut model = Long::new(dims! {}, Seed(0)).unwrap();
    let x = Dense::new([1, 2], vec![1.0, 2.0]).unwrap();
    let y = Dense::new([1, 1], vec![0.5]).unwrap();
    let batch = LongBatch { x: x.view(), y: y.view(), ..Default::default() };
    let one = |x: f64| {
        let sigmoid = 1.0 / (1.0 + (-(x.abs() + 1.0)).exp());
        (sigmoid * 2.0 - 0.5).max(0.0).tanh() + x * 0.5
    };
    let expected = (0..32).fold(0.75, |x, _| one(x));
    let score = f64::from(model.forward(&batch).unwrap().score.values()[0]);
    assert!((score - expected).abs() < 1e-5, "{score} {expected}");
    model.loss_and_grads(&batch).unwrap();
    assert!(model.gradients().w.values().iter().all(|slope| slope.is_finite()));
}

//! Models that few write: of no features, with names of other alphabets, in functions and in
//! macros, of hundreds of operators.

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

    /// An axis that is gone, and one that has one element in some batches.
    pub model Squeezed {
        input z: dense[n, 1, 3];
        label y: dense[n, 3];
        param a: dense[3] = Constant(0.5);
        let score = squeeze(z) * a;
        loss squared_error(score, y);
        output score;
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
    let batch = GrößenBatch { größe: x.view(), 目標: y.view() };
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
    let batch = WordsBatch { model: x.view(), label: y.view() };
    assert_eq!(model.forward(&batch).unwrap().input.values(), [1.5, 3.0]);
}

/// A model of no features, a batch of no rows, and both.
#[test]
fn nothing_to_learn_from() {
    for (rows, columns) in [(2, 0), (0, 3), (0, 0)] {
        let mut model = Größen::new(dims! { ширина: columns }, Seed(0)).unwrap();
        let mut updater = Updater::for_model(AdaGrad::default(), &model).unwrap();
        let (x, y) = (x(rows, columns), Dense::new([rows, 1], vec![1.0; rows]).unwrap());
        let batch = GrößenBatch { größe: x.view(), 目標: y.view() };
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
            model.forward(&$batch { x: x.view() }).unwrap().score.values().to_vec()
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
    let batch = LongBatch { x: x.view(), y: y.view() };
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

graph! {
    /// A product that is turned: entries of the gradient of `w` are those of columns that occur.
    pub model Turned {
        dtype = f64;
        input x: csr[n, d];
        label y: dense[n, 3];
        param w: dense[3, d] = Normal { mean: 0.0, std: 0.5 };
        loss squared_error(dot(x, w, transpose_rhs = true), y);
    }

    /// An interaction beside a product with a vector.
    pub model Vector {
        dtype = f64;
        input x: csr[n, d];
        label y: dense[n, 1];
        param w: row_sparse[d] = Normal { mean: 0.0, std: 0.5 };
        param v: row_sparse[d, 3] = Normal { mean: 0.0, std: 0.5 };
        loss squared_error(pairwise_interaction(x, v) + expand_dims(dot(x, w), axis = 1), y);
    }

    /// Scores of which the columns are normed.
    pub model Columns {
        input x: csr[n, d];
        label y: dense<u32>[n];
        param w: row_sparse[d, 3] = Normal { mean: 0.0, std: 0.5 };
        let scores = dot(x, w);
        loss softmax_cross_entropy(scores, y);
        output shares = softmax(scores, axis = -2);
    }
}

/// The gradients of all parameters, against differences of the loss.
fn hold_gradients<M: Model<Element = f64>>(model: &mut M, batch: &M::Batch<'_>) {
    model.loss_and_grads(batch).unwrap();
    let found: Vec<Vec<f64>> = (0..M::PARAMETERS.len())
        .map(|index| match model.gradient_mut(index).unwrap() {
            nnz::model::GradientMut::Dense(gradient) => gradient.values().to_vec(),
            nnz::model::GradientMut::RowSparse(gradient) => {
                gradient.to_dense().unwrap().values().to_vec()
            }
        })
        .collect();
    for (index, gradient) in found.iter().enumerate() {
        for (place, slope) in gradient.iter().enumerate() {
            let mut at = |change: f64| {
                let add = |model: &mut M, change| {
                    model.parameters_mut()[index].values_mut()[place] += change;
                };
                add(model, change);
                let loss = model.loss(batch).unwrap();
                add(model, -change);
                loss
            };
            let difference = (at(1e-5) - at(-1e-5)) / 2e-5;
            assert!((slope - difference).abs() < 1e-8, "{index} {place}: {slope} {difference}");
        }
    }
}

#[test]
fn gradients_by_entries_and_of_vectors() {
    let rows = [vec![(0, 1.0), (4, -0.5)], vec![], vec![(1, 2.0), (4, 0.25)], vec![(3, -1.5)]];
    let x = Csr::<f64>::from_rows(5, rows).unwrap();
    let label = |columns| {
        let values = (0..4 * columns).map(|at| f64::from(at).sin()).collect();
        Dense::new([4, columns as usize], values).unwrap()
    };
    let (one, three) = (label(1), label(3));
    let mut turned = Turned::new(dims! { d: 5 }, Seed(1)).unwrap();
    let batch = TurnedBatch { x: x.view(), y: three.view() };
    hold_gradients(&mut turned, &batch);
    let mut vector = Vector::new(dims! { d: 5 }, Seed(1)).unwrap();
    let batch = VectorBatch { x: x.view(), y: one.view() };
    hold_gradients(&mut vector, &batch);
}

/// What a step leaves in the outputs is what `forward` computes.
#[test]
fn outputs_of_a_step_are_normed_over_the_axis_that_is_named() {
    let x = Csr::from_rows(5, [vec![(0, 1.0), (4, -0.5)], vec![(1, 2.0)]]).unwrap();
    let y = Dense::new([2], vec![0u32, 2]).unwrap();
    let mut model = Columns::new(dims! { d: 5 }, Seed(1)).unwrap();
    let batch = ColumnsBatch { x: x.view(), y: y.view() };
    let expected = model.forward(&batch).unwrap().shares.values().to_vec();
    for column in 0..3 {
        assert!((expected[column] + expected[3 + column] - 1.0).abs() < 1e-6);
    }
    let mut updater = nnz::optimizer::Updater::for_model(Sgd::default(), &model).unwrap();
    model.train_step(&batch, &mut updater).unwrap();
    let found = model.dense_output(0).unwrap().values().to_vec();
    for (found, expected) in found.iter().zip(&expected) {
        assert!((found - expected).abs() < 1e-6, "{found} {expected}");
    }
}

#[test]
fn a_batch_of_one_row_keeps_its_axis() {
    let z = Dense::new([2, 1, 3], vec![1.0f32, -2.0, 3.0, 4.0, 0.0, 6.0]).unwrap();
    let y = Dense::new([2, 3], vec![0.0f32; 6]).unwrap();
    let mut model = Squeezed::new(dims! {}, Seed(1)).unwrap();
    for row in 0..2 {
        let z = z.view().rows(row..row + 1).unwrap();
        let y = y.view().rows(row..row + 1).unwrap();
        let batch = SqueezedBatch { z, y };
        model.loss_and_grads(&batch).unwrap();
        let score = &model.forward(&batch).unwrap().score;
        assert_eq!(score.shape().as_ref(), [1, 3]);
        let halves: Vec<f32> = z.values().iter().map(|value| value / 2.0).collect();
        assert_eq!(score.values(), halves);
    }
}

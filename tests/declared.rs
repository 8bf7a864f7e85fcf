//! Operators that users declare: values, gradients, storage, and what is asked of their functions.
use nnz::formats::{Csr, Dense, RowSparse};
use nnz::optimizer::Updater;
use nnz::prelude::*;

mod functions {
    use nnz::core::element::Float;
    use nnz::formats::{CsrView, Dense, DenseView, RowSparseView};

    /// x · tanh(log(1 + eˣ)).
    pub(crate) fn mish(x: f64) -> f64 {
        x * x.exp().ln_1p().tanh()
    }

    pub(crate) fn mish_slope(x: f64) -> f64 {
        let t = x.exp().ln_1p().tanh();
        t + x * (1.0 - t * t) / (1.0 + (-x).exp())
    }

    pub(crate) fn cube<T: Float>(x: T) -> T {
        T::of(x.as_f64().powi(3))
    }

    pub(crate) fn cube_slope<T: Float>(x: T) -> T {
        T::of(3.0 * x.as_f64().powi(2))
    }

    pub(crate) fn one_more(x: f64) -> f64 {
        x + 1.0
    }

    /// The length of each row.
    pub(crate) fn row_norms(out: &mut Dense<f64>, x: DenseView<'_, f64>) {
        for (row, norm) in out.values_mut().iter_mut().enumerate() {
            let row = x.row(row).unwrap_or_default();
            *norm = row.iter().map(|value| value * value).sum::<f64>().sqrt();
        }
    }

    /// The product with a table, times a number; for tables stored in either way.
    pub(crate) fn product(
        out: &mut Dense<f64>,
        x: CsrView<'_, f64>,
        w: DenseView<'_, f64>,
        s: f64,
    ) {
        add_rows(out, x, s, |row| w.row(row).unwrap_or_default());
    }

    pub(crate) fn product_of_rows(
        out: &mut Dense<f64>,
        x: CsrView<'_, f64>,
        w: RowSparseView<'_, f64>,
        s: f64,
    ) {
        add_rows(out, x, s, |row| w.row(row).unwrap_or_default());
    }

    fn add_rows<'a>(
        out: &mut Dense<f64>,
        x: CsrView<'_, f64>,
        s: f64,
        table: impl Fn(usize) -> &'a [f64],
    ) {
        for (row, stored) in x.iter_rows().enumerate() {
            let Some(out) = out.row_mut(row) else { continue };
            for (column, value) in stored {
                for (out, weight) in out.iter_mut().zip(table(column)) {
                    *out += s * value * weight;
                }
            }
        }
    }

    /// Of another shape than it should have.
    pub(crate) fn transposed(out: &mut Dense<f64>, x: DenseView<'_, f64>) {
        out.reset([x.shape()[1], x.shape()[0]]);
    }
}

mod library {
    nnz::graph! {
        /// A smooth function of each element.
        pub operator mish(x) {
            each = crate::declared::functions::mish;
            derivative = crate::declared::functions::mish_slope;
            at_zero = 0;
        }

        /// Flat at 0.
        pub operator cube(x) {
            each = crate::declared::functions::cube;
            derivative = crate::declared::functions::cube_slope;
            at_zero = 0;
            slope_at_zero = 0;
        }

        /// Calls an operator that its users need not know.
        pub block activated(x, w) { mish(dot(x, w)) }
    }
}

graph! {
    use library::{activated, cube};

    /// The length of each row; its gradient is the row, made as long as the gradient is.
    operator row_norms(x) {
        rule dense -> dense = functions::row_norms;
        shape [n, k] -> [n];
        gradient x = x * expand_dims(grad / out, axis = 1);
    }

    operator product(x, w, s) {
        rule csr dense scalar -> dense = functions::product;
        rule csr row_sparse scalar -> dense = functions::product_of_rows;
        shape [n, d] [d, k] any -> [n, k];
        gradient w = s * dot(x, grad, transpose_lhs = true);
    }

    operator pretends(x) {
        each = functions::one_more;
        at_zero = 0;
    }

    operator turned(x) { rule dense -> dense = functions::transposed; }

    /// All of them.
    pub model Norms {
        dtype = f64;
        input x: csr[n, d];
        label y: dense[n];
        param w: row_sparse[d, 3] = Normal { mean: 0.0, std: 1.0 };
        param v: dense[d, 3] = Normal { mean: 0.0, std: 1.0 };
        let hidden = product(x, w, 0.5) + product(x, v, 2) + activated(x, v);
        let norms = row_norms(hidden);
        loss squared_error(norms, y);
        output norms;
    }

    /// Elements that are stored stay so, in both directions.
    pub model Stored {
        dtype = f64;
        input x: csr[n, d];
        label y: dense[n, 1];
        param a: dense[d] = Constant(0.5);
        param b: dense[d] = Ones;
        let scaled: csr[n, d] = x * a;
        let cubes: csr[n, d] = cube(scaled);
        let smooth: csr[n, d] = library::mish(x * b);
        loss squared_error(sum(cubes, axis = 1, keepdims = true) + sum(smooth, axis = 1, keepdims = true), y);
        output cubes;
        output smooth;
    }

    pub model Single {
        input x: dense[n, 2];
        output y = cube(x);
    }

    pub model Pretends {
        dtype = f64;
        input x: csr[n, d];
        output y = pretends(x);
    }

    pub model Turned {
        dtype = f64;
        input x: dense[n, d];
        output y = turned(x);
    }
}

fn data() -> Csr<f64> {
    let rows = [vec![(0, 1.0), (2, -2.0)], vec![(1, 3.0)], vec![(0, 0.5), (3, 1.0)]];
    Csr::from_rows(4, rows).unwrap()
}

/// The gradient of every weight against the difference of two losses.
fn check_gradients<M>(
    model: &mut M,
    loss: &mut dyn FnMut(&mut M) -> f64,
    gradients: &[(usize, Vec<f64>)],
) where
    M: Model<Element = f64>,
{
    let step = 1e-6;
    for (parameter, gradient) in gradients {
        for (place, expected) in gradient.iter().enumerate() {
            let mut at = |offset: f64| {
                model.parameters_mut()[*parameter].values_mut()[place] += offset;
                let found = loss(model);
                model.parameters_mut()[*parameter].values_mut()[place] -= offset;
                found
            };
            let difference = (at(step) - at(-step)) / (2.0 * step);
            assert!(
                (difference - expected).abs() < 1e-6,
                "{parameter} {place}: {difference} {expected}"
            );
        }
    }
}

#[test]
fn gradients_of_declared_operators_are_those_of_their_functions() {
    let (x, y) = (data(), Dense::new([3], vec![1.0, -1.0, 0.5]).unwrap());
    let mut model = Norms::new(dims! { d: 4 }, Seed(3)).unwrap();
    let batch = NormsBatch { x: x.view(), y: y.view() };
    // By hand: the rule of `product` and `mish`, row by row.
    let expected: Vec<f64> = (0..3)
        .map(|row| {
            let sum = (0..3).map(|column| {
                let dot = |table: &[f64]| -> f64 {
                    let stored = x.view().iter_rows().nth(row).unwrap();
                    stored.map(|(at, value)| value * table[3 * at + column]).sum()
                };
                let (w, v) = (dot(model.w.values()), dot(model.v.values()));
                let hidden = 0.5 * w + 2.0 * v + functions::mish(v);
                hidden * hidden
            });
            sum.sum::<f64>().sqrt()
        })
        .collect();
    let norms = &model.forward(&batch).unwrap().norms;
    for (found, expected) in norms.values().iter().zip(&expected) {
        assert!((found - expected).abs() < 1e-12, "{found} {expected}");
    }
    model.loss_and_grads(&batch).unwrap();
    // A row_sparse parameter, and its gradient: as the rules of the formula say.
    let (w, v): (&RowSparse<f64>, &RowSparse<f64>) = (&model.gradients().w, &model.gradients().v);
    let gradients = [w, v].map(|gradient| gradient.to_dense().unwrap().values().to_vec());
    let gradients: Vec<_> = gradients.into_iter().enumerate().collect();
    check_gradients(&mut model, &mut |model| model.loss(&batch).unwrap(), &gradients);
}

#[test]
fn what_is_stored_stays_stored() {
    let (x, y) = (data(), Dense::new([3, 1], vec![1.0, -1.0, 0.5]).unwrap());
    let mut model = Stored::new(dims! { d: 4 }, Seed(3)).unwrap();
    let batch = StoredBatch { x: x.view(), y: y.view() };
    let outputs = model.forward(&batch).unwrap();
    let (cubes, smooth): (&Csr<f64>, &Csr<f64>) = (&outputs.cubes, &outputs.smooth);
    let stored = x.values().iter();
    let expected: Vec<f64> = stored.clone().map(|value| (0.5 * value).powi(3)).collect();
    assert_eq!(cubes.values(), expected);
    assert_eq!(smooth.values(), stored.map(|value| functions::mish(*value)).collect::<Vec<_>>());
    assert_eq!(cubes.columns(), x.columns());
    model.loss_and_grads(&batch).unwrap();
    let gradients = model.gradients();
    let gradients = vec![(0, dense_of(&gradients.a)), (1, dense_of(&gradients.b))];
    check_gradients(&mut model, &mut |model| model.loss(&batch).unwrap(), &gradients);
}

fn dense_of(gradient: &Dense<f64>) -> Vec<f64> {
    gradient.values().to_vec()
}

#[test]
fn a_model_of_declared_operators_trains() {
    let (x, y) = (data(), Dense::new([3], vec![1.0, 1.5, 0.5]).unwrap());
    let mut model = Norms::new(dims! { d: 4 }, Seed(3)).unwrap();
    let rule = Sgd { learning_rate: 0.01, ..Sgd::default() };
    let mut updater = Updater::for_model(rule, &model).unwrap();
    let batch = NormsBatch { x: x.view(), y: y.view() };
    let first = model.train_step(&batch, &mut updater).unwrap();
    let last = (0..500).map(|_| model.train_step(&batch, &mut updater).unwrap()).last().unwrap();
    assert!(last < 0.05 * first, "{first} {last}");
}

#[test]
fn a_function_is_that_of_the_models_elements() {
    let x = Dense::from_rows(&[[1.0f32, -2.0]]);
    let mut model = Single::new(dims! {}, Seed(0)).unwrap();
    let batch = SingleBatch { x: x.view() };
    assert_eq!(model.forward(&batch).unwrap().y.values(), [1.0f32, -8.0]);
}

#[test]
fn the_plan_shows_rules_and_functions() {
    let computed = |name: &str| {
        let mut kernels = Norms::PLAN.values.iter().filter_map(|value| value.computed);
        kernels.any(|how| how.kernel == name)
    };
    for kernel in ["product_csr_row_sparse_scalar", "product_csr_dense_scalar", "row_norms_dense"] {
        assert!(computed(kernel), "{kernel}\n{}", Norms::PLAN);
    }
    let plan = Stored::PLAN.to_string();
    // The slope of `mish` at 0 is not said: its gradient is asked for where nothing is stored, if
    // it comes dense.
    assert!(plan.contains("cube_gradient_") && plan.contains("mish_gradient_"), "{plan}");
}

#[test]
fn a_function_that_is_not_what_its_operator_says_is_refused() {
    let error = Pretends::new(dims! {}, Seed(0)).unwrap_err();
    assert_eq!(
        error.to_string(),
        "model `Pretends`: the operator `pretends` says `at_zero = 0`, but its function gives 1 at 0: leave the line out"
    );
    let mut model = Turned::new(dims! {}, Seed(0)).unwrap();
    let x = Dense::from_rows(&[[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]);
    let batch = TurnedBatch { x: x.view() };
    let error = model.forward(&batch).unwrap_err();
    assert_eq!(
        error.to_string(),
        "model `Turned`: the function of the operator `turned` gave an array of shape [3, 2], but its shape rule says [2, 3]"
    );
}

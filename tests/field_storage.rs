//! Gradients of sparse values that are stored where the values are, against slopes: the graphs of
//! the field cases S.

use sparse_core::compile::{Compiled, compile};
use sparse_core::diagnostics::Diagnostic;
use sparse_core::ir::{Kind, parse};
use sparse_core::shapes::Dim;
use sparse_core::storage::{ElementType, Storage};
use sparse_runtime::formats::{Csr, Dense, Shape};
use sparse_runtime::interpreter::evaluate;
use sparse_runtime::kernels::Array;
use std::collections::HashMap;

#[path = "../sparse-core/tests/field_storage/cases.rs"]
#[allow(dead_code)]
mod cases;

use cases::{BY_ROWS, COMPUTED, COMPUTED_ROWS, CONTINUED, CONTINUED_ROWS, DATA, MODELS, OTHERS};

/// What values data and parameters have.
#[derive(Clone, Copy, PartialEq)]
enum Numbers {
    Positive,
    OfBothSigns,
    Ones,
}

/// Numbers other than zero, none twice.
fn number(place: usize, seed: usize) -> f64 {
    let size = 0.3 + 0.37 * ((place * 29 + seed * 17) % 53) as f64 / 53.0;
    if (place * 7 + seed).is_multiple_of(3) { -size } else { size }
}

fn extents(shape: &[Dim]) -> Vec<usize> {
    let extent = |dim: &Dim| match dim {
        Dim::Size(size) => *size as usize,
        Dim::Named(name) if name == "n" => 3,
        Dim::Named(name) if name == "d" => 5,
        _ => 2,
    };
    shape.iter().map(extent).collect()
}

/// Data of 3 or 4 samples and 5 columns: entries here and there, some of them in a column of their
/// own, a sample without any.
fn inputs(compiled: &Compiled, numbers: Numbers) -> HashMap<String, Array<f64>> {
    let graph = &compiled.graph;
    let given = graph.inputs().chain(graph.parameters()).enumerate().map(|(seed, id)| {
        let shape = extents(&graph.shape(id));
        let size: usize = shape.iter().product();
        let value = |place: usize| {
            let value = number(place, seed);
            match numbers {
                Numbers::Positive => value.abs(),
                Numbers::OfBothSigns => value,
                Numbers::Ones => 1.0,
            }
        };
        let array = match (graph.storage(id), graph.value(id).element) {
            (Storage::Csr, _) => {
                let rows = (0..shape[0]).map(|row| match row % 3 {
                    0 => vec![(0, value(row + 1)), (3, value(row + 2))],
                    1 => vec![],
                    _ => vec![(3, value(row + 3)), (4, value(row + 4))],
                });
                Array::Csr(Csr::from_rows(5, rows).unwrap())
            }
            (_, ElementType::F64) => {
                let values = (0..size).map(value).collect();
                Array::Dense(Dense::new(Shape::new(&shape), values).unwrap())
            }
            _ => {
                let ids: Vec<u32> = (0..size as u32).map(|id| (2 * id + 1) % 3).collect();
                Array::Ids(Dense::new(Shape::new(&shape), ids).unwrap().into())
            }
        };
        (graph.label(id), array)
    });
    given.collect()
}

/// A model of the given lines, in f64.
fn compiled(lines: &str) -> (String, Compiled) {
    let text = format!("model M f64\n{}\nloss l\n", lines.replace(" f32 ", " f64 "));
    let compiled = compile(parse(&text).unwrap());
    (text, compiled)
}

fn dense(array: &Array<f64>) -> Vec<f64> {
    match array {
        Array::Dense(array) => array.values().to_vec(),
        Array::Csr(array) => array.view().to_dense().unwrap().values().to_vec(),
        Array::RowSparse(array) => array.view().to_dense().unwrap().values().to_vec(),
        _ => panic!("ids have no gradient"),
    }
}

fn holds(lines: &str, numbers: Numbers) {
    let (text, compiled) = compiled(lines);
    let errors: Vec<String> = compiled.errors().map(Diagnostic::text).collect();
    assert!(errors.is_empty(), "{text}{errors:?}");
    let inputs = inputs(&compiled, numbers);
    let graph = &compiled.graph;
    let found = evaluate(&compiled, &inputs).unwrap_or_else(|error| panic!("{text}{error}"));
    let trained = |id: &_| matches!(graph.value(*id).kind, Kind::Parameter { frozen: false, .. });
    for id in graph.parameters().filter(trained) {
        let name = graph.label(id);
        let gradient = dense(found.gradient(&name).expect(&text));
        let Some(Array::Dense(parameter)) = inputs.get(&name) else { panic!("{text}") };
        assert_eq!(gradient.len(), parameter.values().len(), "{text}");
        for (place, exact) in gradient.into_iter().enumerate() {
            let at = |step: f64| {
                let (mut inputs, mut moved) = (inputs.clone(), parameter.clone());
                moved.values_mut()[place] += step;
                inputs.insert(name.clone(), Array::Dense(moved));
                evaluate(&compiled, &inputs).unwrap().loss()
            };
            let slope = (at(1e-5) - at(-1e-5)) / 2e-5;
            assert!(
                (slope - exact).abs() <= 1e-6 * (1.0 + slope.abs()),
                "element {place} of the gradient of `{name}` is {exact}, not {slope}: {text}"
            );
        }
    }
}

#[test]
fn s_gradients_that_live_at_patterns_are_slopes() {
    for made in COMPUTED {
        for continued in CONTINUED {
            for numbers in [Numbers::Positive, Numbers::OfBothSigns] {
                holds(&format!("{DATA}{made}{continued}"), numbers);
            }
        }
    }
}

#[test]
fn s_gradients_of_functions_of_rows_are_slopes() {
    for (lines, _) in BY_ROWS {
        let table = "w = param row_sparse f32 [d, 1] \"Ones\"";
        holds(&format!("{DATA}{table}\n{lines}\nl = squared_error(p, y)"), Numbers::OfBothSigns);
    }
}

#[test]
fn s_other_gradients_of_computed_csr_values_are_slopes() {
    for lines in OTHERS {
        holds(&format!("{DATA}{}{lines}", COMPUTED[0]), Numbers::Positive);
        // Square roots are of positive numbers.
        if !lines.contains("sqrt") {
            holds(&format!("{DATA}{}{lines}", COMPUTED[0]), Numbers::OfBothSigns);
        }
    }
}

/// `z - x` stores nothing where `s` is 1: its gradient is computed there all the same.
#[test]
fn s_zeros_that_a_sum_leaves_out_have_gradients() {
    for lines in [
        "c = subtract(z, x)\ng = sin(c)\nl = sum(g)",
        "c = subtract(z, x)\ng = transpose(c)\nl = mean(g)",
        "c = subtract(z, x)\nr = row_sparse(c)\ng = sin(r)\nl = sum(g)",
        "c = subtract(z, x)\nh = input dense f32 [n, 2]\nt = dot(c, h, transpose_lhs = true)\ng = sin(t)\nl = sum(g)",
        "t = param dense f32 [d] \"Ones\"\nu = multiply(x, t)\nc = subtract(z, u)\ng = add(c, c)\nl = sum(g)",
        "t = param dense f32 [d] \"Ones\"\nc = subtract(z, x)\ng = multiply(c, t)\nh = tanh(g)\nl = sum(h)",
    ] {
        holds(&format!("{DATA}{}{lines}", COMPUTED[0]), Numbers::Ones);
    }
}

#[test]
fn s_gradients_of_computed_rows_are_slopes() {
    for made in COMPUTED_ROWS {
        for continued in CONTINUED_ROWS {
            for numbers in [Numbers::Positive, Numbers::OfBothSigns] {
                holds(&format!("{DATA}{made}{continued}"), numbers);
            }
        }
    }
}

const IDS: &str = "i = input dense u32 [n]\n";

#[test]
fn s_gradients_of_models_of_all_sorts_are_slopes() {
    for lines in MODELS {
        for numbers in [Numbers::Positive, Numbers::OfBothSigns] {
            holds(&format!("{DATA}{IDS}{lines}"), numbers);
        }
    }
}

/// The same model with dense declarations has the same loss and the same gradients. Products at a
/// pattern, bags and rows that are kept have no dense form.
#[test]
fn s_storage_does_not_change_models_of_all_sorts() {
    let mut n_compared = 0;
    for lines in MODELS {
        let lines = format!("{DATA}{IDS}{lines}");
        let ((text, sparse), (_, whole)) = (
            compiled(&lines),
            compiled(&lines.replace(" csr ", " dense ").replace(" row_sparse ", " dense ")),
        );
        if whole.errors().next().is_some() {
            continue;
        }
        let given = inputs(&sparse, Numbers::OfBothSigns);
        let spread = given.iter().map(|(name, array)| {
            let array = match array {
                Array::Csr(array) => Array::Dense(array.view().to_dense().unwrap()),
                array => array.clone(),
            };
            (name.clone(), array)
        });
        let spread: HashMap<String, Array<f64>> = spread.collect();
        let (found, expected) =
            (evaluate(&sparse, &given).unwrap(), evaluate(&whole, &spread).unwrap());
        let same =
            |found: f64, expected: f64| (found - expected).abs() <= 1e-12 * (1.0 + expected.abs());
        assert!(same(found.loss(), expected.loss()), "{text}");
        for id in sparse.graph.parameters() {
            let name = sparse.graph.label(id);
            let found = dense(found.gradient(&name).expect(&text));
            let expected = dense(expected.gradient(&name).expect(&text));
            let pairs = found.iter().zip(&expected);
            assert!(
                pairs.clone().all(|(x, y)| same(*x, *y)),
                "{name}: {found:?} {expected:?} {text}"
            );
        }
        n_compared += 1;
    }
    assert!(n_compared >= 8, "{n_compared}");
}

/// The gradients of `lines` for a parameter whose elements are as given.
fn gradient_at(lines: &str, parameter: &str, values: &[f64]) -> Vec<f64> {
    let (text, compiled) = compiled(lines);
    let errors: Vec<String> = compiled.errors().map(Diagnostic::text).collect();
    assert!(errors.is_empty(), "{text}{errors:?}");
    let mut inputs = inputs(&compiled, Numbers::Positive);
    let Some(Array::Dense(given)) = inputs.get_mut(parameter) else { panic!("{text}") };
    given.values_mut().copy_from_slice(values);
    let found = evaluate(&compiled, &inputs).unwrap_or_else(|error| panic!("{text}{error}"));
    dense(found.gradient(parameter).expect(&text))
}

#[test]
fn s_gradients_of_powers_are_slopes() {
    for exponent in ["0.3", "0.5", "1", "1.5", "2"] {
        let of_csr = format!("{DATA}{}c = power(z, {exponent})\nl = sum(c)", COMPUTED[0]);
        holds(&of_csr, Numbers::Positive);
        let table = format!(
            "{DATA}w = param row_sparse f32 [d, 1] \"\"\nc = power(w, {exponent})\np = dot(x, c)\nl = squared_error(p, y)"
        );
        holds(&table, Numbers::Positive);
        let of_rows = format!("{DATA}{}c = power(t, {exponent})\nl = sum(c)", COMPUTED_ROWS[1]);
        holds(&of_rows, Numbers::Positive);
    }
}

/// A derivative that is infinite at 0 is taken as 0 there, whether the 0 is stored or not; that of
/// the power 1 is 1.
#[test]
fn s_gradients_of_powers_at_zeros_are_numbers() {
    let at_zeros = [0.0, 0.4, 0.0, 0.0, 0.9];
    let of_csr = |exponent: &str| {
        let lines = format!("{DATA}{}c = power(z, {exponent})\nl = sum(c)", COMPUTED[0]);
        gradient_at(&lines, "s", &at_zeros)
    };
    let (half, one) = (of_csr("0.5"), of_csr("1"));
    assert!([0, 2, 3].iter().all(|place| half[*place] == 0.0), "{half:?}");
    assert!(half[4] > 0.0 && half[4].is_finite(), "{half:?}");
    // Column sums of x, which stores nothing in columns 1 and 2.
    assert!([0, 3, 4].iter().all(|place| one[*place] > 0.0), "{one:?}");
    let table = "w = param row_sparse f32 [d, 1] \"\"\nc = power(w, 0.5)\np = dot(x, c)\nl = squared_error(p, y)";
    let of_table = gradient_at(&format!("{DATA}{table}"), "w", &at_zeros);
    assert!([0, 1, 2, 3].iter().all(|place| of_table[*place] == 0.0), "{of_table:?}");
    assert!(of_table[4] != 0.0 && of_table[4].is_finite(), "{of_table:?}");
}

/// A row of `a` that is 0 is not stored in `r`, nor is what it would add in `t`: it has a gradient
/// all the same.
#[test]
fn s_rows_that_a_cast_leaves_out_have_gradients() {
    let lines = format!(
        "{DATA}a = param dense f32 [n, 4] \"\"\nr = row_sparse(a)\nt = dot(x, r, transpose_lhs = true)\nc = sin(t)\nl = sum(c)"
    );
    let mut values = [0.5; 12];
    values[8..].fill(0.0);
    let gradient = gradient_at(&lines, "a", &values);
    assert!(gradient[8..].iter().all(|slope| *slope > 0.0), "{gradient:?}");
}

/// What is picked of a computed csr has a gradient of every element: a fallback makes it.
#[test]
fn s_picks_of_a_computed_csr_are_right_under_a_fallback() {
    let lines = format!("{DATA}{IDS}{}c = pick(z, i)\nl = squared_error(c, q)", COMPUTED[0]);
    let (_, refused) = compiled(&lines);
    assert!(refused.errors().any(|error| error.text().contains("`pick`")));
    let text =
        format!("model M f64 fallback = allow\n{}\nloss l\n", lines.replace(" f32 ", " f64 "));
    let allowed = compile(parse(&text).unwrap());
    assert!(allowed.errors().next().is_none());
    let inputs = inputs(&allowed, Numbers::OfBothSigns);
    let loss = |step: f64, place: usize| {
        let mut inputs = inputs.clone();
        let Some(Array::Dense(s)) = inputs.get_mut("s") else { panic!("{text}") };
        s.values_mut()[place] += step;
        evaluate(&allowed, &inputs).unwrap().loss()
    };
    let found = evaluate(&allowed, &inputs).unwrap();
    let gradient = dense(found.gradient("s").unwrap());
    for (place, exact) in gradient.iter().enumerate() {
        let slope = (loss(1e-5, place) - loss(-1e-5, place)) / 2e-5;
        assert!((slope - exact).abs() <= 1e-6 * (1.0 + slope.abs()), "{slope} {gradient:?}");
    }
}

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

use cases::{BY_ROWS, COMPUTED, CONTINUED, DATA, OTHERS};

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

fn holds(text: &str, numbers: Numbers) {
    let text = format!("model M f64\n{}\nloss l\n", text.replace(" f32 ", " f64 "));
    let compiled = compile(parse(&text).unwrap());
    let errors: Vec<String> = compiled.errors().map(Diagnostic::text).collect();
    assert!(errors.is_empty(), "{text}{errors:?}");
    let inputs = inputs(&compiled, numbers);
    let graph = &compiled.graph;
    let found = evaluate(&compiled, &inputs).unwrap_or_else(|error| panic!("{text}{error}"));
    let trained = |id: &_| matches!(graph.value(*id).kind, Kind::Parameter { frozen: false, .. });
    for id in graph.parameters().filter(trained) {
        let name = graph.label(id);
        let gradient = match found.gradient(&name).expect(&text) {
            Array::Dense(gradient) => gradient.clone(),
            Array::Csr(gradient) => gradient.view().to_dense().unwrap(),
            Array::RowSparse(gradient) => gradient.view().to_dense().unwrap(),
            _ => panic!("{text}"),
        };
        let Some(Array::Dense(parameter)) = inputs.get(&name) else { panic!("{text}") };
        for place in 0..parameter.values().len() {
            let at = |step: f64| {
                let (mut inputs, mut moved) = (inputs.clone(), parameter.clone());
                moved.values_mut()[place] += step;
                inputs.insert(name.clone(), Array::Dense(moved));
                evaluate(&compiled, &inputs).unwrap().loss()
            };
            let slope = (at(1e-5) - at(-1e-5)) / 2e-5;
            let exact = gradient.values()[place];
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
        "t = param dense f32 [d] \"Ones\"\nu = multiply(x, t)\nc = subtract(z, u)\ng = add(c, c)\nl = sum(g)",
        "t = param dense f32 [d] \"Ones\"\nc = subtract(z, x)\ng = multiply(c, t)\nh = tanh(g)\nl = sum(h)",
    ] {
        holds(&format!("{DATA}{}{lines}", COMPUTED[0]), Numbers::Ones);
    }
}

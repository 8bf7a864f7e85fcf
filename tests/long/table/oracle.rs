//! Every operator, rule and result of the table, on adversarial patterns, against the naive oracle.

use super::applications::{Application, applications, classes, numbers};
use super::given::{Given, operands};
use super::naive::{Naive, evaluate as naive};
use sparse_core::compile::{Compiled, compile};
use sparse_core::diagnostics::Code;
use sparse_core::element::Float;
use sparse_core::ir::{Graph, Kind as ValueKind, Output, Place};
use sparse_core::operators::{self, BinaryFamily, Kind, Operator, Pattern, Rule, Signature};
use sparse_core::passes::kernel_name;
use sparse_core::shapes::{Dim, Dims};
use sparse_core::storage::{ElementType, Storage};
use sparse_runtime::device::Cpu;
use sparse_runtime::formats::{Csr, Dense, RowSparse};
use sparse_runtime::interpreter::evaluate;
use sparse_runtime::kernels::{Array, Kernels};
use std::collections::{BTreeSet, HashMap};

#[test]
fn every_rule_computes_what_the_operator_means_in_f64() {
    every_rule::<f64>(1e-12);
}

#[test]
fn every_rule_computes_what_the_operator_means_in_f32() {
    every_rule::<f32>(2e-6);
}

/// Operands are rounded, the result is once more: each by 2⁻¹¹ of it, and sums of several such
/// operands.
#[cfg(feature = "half")]
#[test]
fn every_rule_computes_what_the_operator_means_in_f16() {
    every_rule::<sparse_core::element::f16>(8.0 * (-11f64).exp2());
}

/// As above, by 2⁻⁸.
#[cfg(feature = "half")]
#[test]
fn every_rule_computes_what_the_operator_means_in_bf16() {
    every_rule::<sparse_core::element::bf16>(8.0 * (-8f64).exp2());
}

fn every_rule<T: Float>(tolerance: f64)
where
    Cpu: Kernels<T>,
{
    let (mut expected, mut run) = (BTreeSet::new(), BTreeSet::new());
    for operator in operators::all() {
        for signature in operator.storage.iter().flat_map(Rule::signatures) {
            for result in signature.results() {
                expected.insert(format!("{}_{}", operator.name, signature.kernel(result)));
                for application in applications(operator, &signature, result) {
                    run.extend(check::<T>(operator, &signature, result, &application, tolerance));
                }
            }
        }
    }
    let missed: Vec<_> = expected.difference(&run).collect();
    assert!(missed.is_empty(), "no test reaches {missed:?}");
}

/// Runs one application on all combinations of patterns. Gives the kernel's name.
fn check<T: Float>(
    operator: &'static Operator,
    signature: &Signature,
    result: Storage,
    application: &Application,
    tolerance: f64,
) -> Option<String>
where
    Cpu: Kernels<T>,
{
    let name = format!("{}_{}", operator.name, signature.kernel(result));
    let context = format!("{name} {:?} {:?}", application.shapes, application.attributes);
    let mut numbers = numbers(&context);
    let classes = classes(operator, &application.attributes, &application.shapes);
    let mut reached = None;
    // Operands of some functions must not be negative for the result to be a number.
    for signed in [true, false] {
        let choices: Vec<Vec<Given>> = signature
            .operands
            .iter()
            .zip(&application.shapes)
            .map(|(pattern, shape)| operands(*pattern, shape, classes, signed, &mut numbers))
            .collect();
        // One graph for each choice of numbers.
        let mut graphs: Vec<(Vec<u64>, Compiled)> = Vec::new();
        for given in combinations(&choices) {
            let scalars = given.iter().filter_map(|given| match given {
                Given::Scalar(number) => Some(number.to_bits()),
                _ => None,
            });
            let scalars: Vec<u64> = scalars.collect();
            let at = graphs.iter().position(|(of, _)| *of == scalars).unwrap_or_else(|| {
                graphs.push((scalars, graph::<T>(operator, signature, application, &given)));
                graphs.len() - 1
            });
            let compiled = &graphs[at].1;
            let errors: Vec<_> = compiled.errors().collect();
            if signature.condition.is_some()
                && errors.iter().any(|error| error.code == Code::WouldBeDense)
            {
                continue;
            }
            assert!(errors.is_empty(), "{context}: {errors:?}");
            // An output that is the operand itself is copied: the application is the first
            // operator.
            let Some(&id) = compiled.plan.all.first() else { continue };
            let kernel = kernel_name(&compiled.graph, id).unwrap();
            if kernel != name {
                // A rewrite, or an earlier rule that covers these operands too.
                continue;
            }
            reached = Some(name.clone());
            let inputs: HashMap<String, Array<T>> = given
                .iter()
                .enumerate()
                .filter_map(|(index, given)| Some((format!("v{index}"), given.array()?)))
                .collect();
            let context = format!("{context} on {given:?}");
            let values =
                evaluate(compiled, &inputs).unwrap_or_else(|error| panic!("{context}: {error}"));
            let found = values.get(id).unwrap();
            assert_eq!(found.storage(), result, "{context}");
            let naive_operands: Vec<Naive> = given.iter().map(Naive::of).collect();
            if let Some(expected) = naive(operator, &application.attributes, &naive_operands) {
                compare(operator, signature, found, &expected, tolerance, &context);
            }
        }
    }
    reached
}

fn graph<T: Float>(
    operator: &'static Operator,
    signature: &Signature,
    application: &Application,
    given: &[Given],
) -> Compiled {
    let mut graph = Graph::new("Rule", T::TYPE);
    let each = signature.operands.iter().zip(&application.shapes).zip(given).enumerate();
    let ids = each.map(|(index, ((pattern, shape), given))| {
        let dims: Dims = shape.iter().map(|extent| Dim::Size(*extent as u64)).collect();
        let (storage, element) = match (pattern, given) {
            (_, Given::Scalar(number)) => return graph.constant(*number, Place(0)),
            (Pattern::Array(storage, _), _) => (*storage, T::TYPE),
            (Pattern::Unit(_), _) => (Storage::Csr, ElementType::Unit),
            (Pattern::Like, _) => (Storage::Dense, T::TYPE),
            _ => (Storage::Dense, ElementType::U32),
        };
        graph.declare(ValueKind::Input, &format!("v{index}"), storage, element, dims, Place(0))
    });
    let ids = ids.collect();
    let value = graph.apply(operator, ids, application.attributes.clone(), Place(0));
    graph.outputs.push(Output { name: "result".into(), value, place: Place(0) });
    compile(graph)
}

/// Every choice of one operand each, no longer than a few hundred.
fn combinations(choices: &[Vec<Given>]) -> Vec<Vec<Given>> {
    choices.iter().fold(vec![vec![]], |prefixes, choices| {
        let longer = prefixes.iter().flat_map(|prefix| {
            choices
                .iter()
                .map(move |choice| prefix.iter().cloned().chain([choice.clone()]).collect())
        });
        longer.collect()
    })
}

fn compare<T: Float>(
    operator: &Operator,
    signature: &Signature,
    found: &Array<T>,
    expected: &Naive,
    tolerance: f64,
    context: &str,
) {
    let (found, stored) = expand(found, context);
    assert_eq!(found.len(), expected.values.len(), "{context}");
    let sparse = signature.result != Storage::Dense;
    for (place, (&found, &value)) in found.iter().zip(&expected.values).enumerate() {
        // Sparse results of these families are computed where the operands are stored, and nowhere
        // else.
        let (value, must_be_stored) = match operator.kind {
            Kind::Binary(BinaryFamily::Union, _)
                if sparse && !signature.operands.contains(&Pattern::Scalar) =>
            {
                (
                    value,
                    match signature.result {
                        Storage::Csr => Some(value != 0.0),
                        _ => Some(expected.stored[place]),
                    },
                )
            }
            Kind::Binary(..) | Kind::Unary(_) if sparse => {
                if expected.stored[place] {
                    (value, Some(true))
                } else {
                    (0.0, Some(false))
                }
            }
            _ => (value, None),
        };
        let same = found == value
            || found.is_nan() && value.is_nan()
            || (found - value).abs() <= tolerance * (1.0 + value.abs());
        assert!(same, "element {place} is {found}, not {value}: {context}");
        if let Some(must) = must_be_stored {
            assert_eq!(stored[place], must, "whether element {place} is stored: {context}");
        }
    }
}

/// All elements, and which are stored; the array's parts pass through the constructor that checks
/// them.
pub(crate) fn expand<T: Float>(array: &Array<T>, context: &str) -> (Vec<f64>, Vec<bool>) {
    let size = array.shape().size();
    let (mut values, mut stored) = (vec![0.0; size], vec![false; size]);
    match array.clone() {
        Array::Dense(array) => {
            let array = Dense::new(*array.shape(), array.into_values()).expect(context);
            values = array.values().iter().map(|value| value.as_f64()).collect();
            stored.fill(true);
        }
        Array::Csr(array) => {
            let array = Csr::from_parts(array.into_parts()).expect(context);
            for (row, entries) in array.iter_rows().enumerate() {
                for (column, value) in entries {
                    values[row * array.n_cols() + column] = value.as_f64();
                    stored[row * array.n_cols() + column] = true;
                }
            }
        }
        Array::RowSparse(array) => {
            let (shape, ids, rows) = array.into_parts();
            let array = RowSparse::new(shape, ids, rows).expect(context);
            for (id, row) in array.view().iter_rows() {
                for (column, value) in row.iter().enumerate() {
                    values[id * row.len() + column] = value.as_f64();
                    stored[id * row.len() + column] = true;
                }
            }
        }
        Array::Unit(_) => panic!("no kernel gives a pattern: {context}"),
        Array::Ids(ids) => {
            values = ids.view().iter().map(|id| id as f64).collect();
            stored.fill(true);
        }
    }
    (values, stored)
}

//! Every gradient of the table against finite differences: the compiled gradient graph, run by the
//! interpreter.
//!
//! The operand whose gradient is asked for is a parameter, or the cast of a dense parameter to the
//! operand's storage. The result becomes a loss in several ways, so that gradients arrive in every
//! storage.

use super::applications::{Application, applications, classes, numbers};
use super::given::{Given, Numbers, operands};
use sparse_core::compile::{Compiled, compile};
use sparse_core::diagnostics::Code;
use sparse_core::ir::{Attributes, Graph, Kind as ValueKind, Place};
use sparse_core::operators::{self, Kind, Operator, Pattern, Signature};
use sparse_core::shapes::{Dim, Dims};
use sparse_core::storage::{ElementType, Storage};
use sparse_runtime::interpreter::evaluate;
use sparse_runtime::kernels::Array;
use std::collections::{BTreeMap, HashMap};

/// Perturbing one element at a time takes long for large operands.
const LARGEST: usize = 60;

/// How a result becomes a loss.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Through {
    /// A sum with dense weights: the gradient that arrives is dense.
    Weights,
    /// A sum with csr weights: the gradient that arrives is csr.
    Pattern,
    /// A product of a csr with it, as models read their tables: the gradient that arrives is
    /// row_sparse. A row_sparse operand is a parameter itself.
    Product,
}

/// One operand of one application.
struct Case<'a> {
    operator: &'static Operator,
    signature: &'a Signature,
    result: Storage,
    application: &'a Application,
    index: usize,
    through: Through,
}

#[test]
fn every_gradient_is_a_derivative() {
    // For each operator and operand: how many gradients were checked of each rule.
    let mut checked: BTreeMap<String, usize> = BTreeMap::new();
    for operator in operators::all() {
        for index in 0..operator.operands.len() {
            if operator.lends_shape_only(index) || !has_gradient(operator, index) {
                continue;
            }
            for rule in operator.storage {
                let signature = rule.signature();
                // Positions and counts do not change with what they are of.
                if signature.gives_ids
                    || !matches!(signature.operands.get(index), Some(Pattern::Array(..)))
                {
                    continue;
                }
                let operand = operator.operands[index];
                let name = format!("{} {}, {operand}", operator.name, rule.text());
                let count = checked.entry(name).or_default();
                for result in signature.results() {
                    for application in &applications(operator, &signature, result) {
                        for through in [Through::Weights, Through::Pattern, Through::Product] {
                            let signature = &signature;
                            *count += check(&Case {
                                operator,
                                signature,
                                result,
                                application,
                                index,
                                through,
                            });
                        }
                    }
                }
            }
        }
    }
    let unchecked: Vec<&str> =
        checked.iter().filter(|(_, count)| **count == 0).map(|(name, _)| name.as_str()).collect();
    assert!(unchecked.is_empty(), "the rules that no gradient was checked of: {unchecked:?}");
}

fn has_gradient(operator: &Operator, index: usize) -> bool {
    operator.gradient.iter().any(|gradient| {
        gradient.operand == operator.operands[index]
            && gradient.formula.is_ok()
            && !gradient.is_surrogate
    })
}

/// Checks a gradient on a few patterns of the other operands. Gives how many were checked.
fn check(case: &Case<'_>) -> usize {
    let Case { operator, signature, application, index, .. } = *case;
    let size: usize = application.shapes[index].iter().product();
    if size > LARGEST {
        return 0;
    }
    let context = format!(
        "gradient of {}_{} for `{}`, {:?} {:?} {:?}",
        operator.name,
        signature.kernel(case.result),
        operator.operands[index],
        application.shapes,
        application.attributes,
        case.through
    );
    let mut numbers = numbers(&context);
    let classes = classes(operator, &application.attributes, &application.shapes);
    let mut checked = 0;
    // Numbers are in the graph; without one it is the same in every round.
    let has_numbers = signature.operands.contains(&Pattern::Scalar);
    let mut compiled: Option<Compiled> = None;
    for round in 0..4 {
        // Of positive numbers every function has a value; of the others, most.
        let signed = round % 2 == 1;
        let mut given = Vec::new();
        let each = signature.operands.iter().zip(&application.shapes);
        for (place, (pattern, shape)) in each.enumerate() {
            let choices = operands(*pattern, shape, classes, signed, &mut numbers);
            given.push(if place == index {
                let mut values = values(size, signed, &mut numbers);
                // What a sparse operand does not store has a gradient too.
                if round >= 2 && is_smooth_at_zero(operator) {
                    values.iter_mut().step_by(2).for_each(|value| *value = 0.0);
                }
                Given::Dense(shape.clone(), values)
            } else {
                choices[(round + 1) % choices.len()].clone()
            });
        }
        if has_numbers || compiled.is_none() {
            compiled = graph(case, &given);
        }
        let Some(compiled) = &compiled else {
            return checked;
        };
        // A refusal is an answer: a dense gradient of a table, a reason written in the row, or that
        // no rule covers the storage of the gradient that arrives. What may not be refused is a
        // dense gradient of a dense operand.
        let errors: Vec<_> = compiled.errors().collect();
        let sparse = signature.operands[index] != Pattern::Array(Storage::Dense, false);
        if errors.iter().any(|error| match error.code {
            Code::DenseGradient | Code::NoGradient => true,
            Code::WouldBeDense => {
                sparse || signature.condition.is_some() || case.through != Through::Weights
            }
            _ => false,
        }) {
            continue;
        }
        assert!(errors.is_empty(), "{context}: {errors:?}");
        let mut inputs: HashMap<String, Array<f64>> = HashMap::new();
        for (place, given) in given.iter().enumerate() {
            inputs.extend(given.array().map(|array| (format!("v{place}"), array)));
        }
        let graph = &compiled.graph;
        for id in graph.inputs().filter(|id| graph.label(*id) == "weights") {
            let shape: Vec<usize> = graph.shape(id).iter().map(extent).collect();
            let pattern = Pattern::Array(graph.storage(id), false);
            // The second choice stores everything.
            let weights = operands(pattern, &shape, 1, true, &mut numbers).swap_remove(1);
            inputs.extend(weights.array().map(|array| ("weights".to_owned(), array)));
        }
        compare(compiled, &inputs, index, &format!("{context} on {given:?}"));
        checked += 1;
    }
    checked
}

/// Whether a function of one operand has a finite derivative at 0, the same from both sides.
fn is_smooth_at_zero(operator: &Operator) -> bool {
    if !matches!(operator.kind, Kind::Unary(_)) || !operator.attributes.is_empty() {
        return false;
    }
    let at = |x: f64| operator.elementwise(&Attributes::default(), &[x]).unwrap();
    let (right, left) = (at(1e-5) - at(0.0), at(0.0) - at(-1e-5));
    // And no corner in the derivative, as |x| in `x / (1 + |x|)` makes.
    let slope = |step: f64| (at(step) - at(-step)) / (2.0 * step);
    right.abs() < 1e-4 && (right - left).abs() < 1e-8 && (slope(1e-5) - slope(1e-6)).abs() < 1e-7
}

/// Different numbers, none of them zero and none twice, so that no function has a corner there.
fn values(size: usize, signed: bool, numbers: &mut Numbers) -> Vec<f64> {
    let step = 0.8 / size.max(1) as f64;
    let each = (0..size).map(|place| {
        let value = 0.100_37 + step * (place as f64 + numbers.below(900) as f64 / 1000.0);
        if signed && numbers.below(2) == 0 { -value } else { value }
    });
    each.collect()
}

fn extent(dim: &Dim) -> usize {
    match dim {
        Dim::Size(size) => *size as usize,
        _ => panic!("all extents are numbers"),
    }
}

/// The operator, and its result made a loss; `None` where it cannot be in this way.
fn graph(case: &Case<'_>, given: &[Given]) -> Option<Compiled> {
    let Case { operator, signature, application, index, through, .. } = *case;
    let mut graph = Graph::new("Gradient", ElementType::F64);
    let apply = |graph: &mut Graph, name: &str, operands| {
        let operator = operators::find(name).unwrap();
        graph.apply(operator, operands, Attributes::default(), Place(0))
    };
    let mut ids = Vec::new();
    for (place, pattern) in signature.operands.iter().enumerate() {
        let name = format!("v{place}");
        let shape = &application.shapes[place];
        let dims: Dims = shape.iter().map(|extent| Dim::Size(*extent as u64)).collect();
        let (storage, element) = match (pattern, &given[place]) {
            (_, Given::Scalar(number)) => {
                ids.push(graph.constant(*number, Place(0)));
                continue;
            }
            (Pattern::Array(storage, _), _) => (*storage, ElementType::F64),
            (Pattern::Like, _) => (Storage::Dense, ElementType::F64),
            _ => (Storage::Dense, ElementType::U32),
        };
        if place != index {
            ids.push(graph.declare(ValueKind::Input, &name, storage, element, dims, Place(0)));
            continue;
        }
        let kind = ValueKind::Parameter { initializer: String::new(), frozen: false, decay: None };
        let direct = storage == Storage::RowSparse && through == Through::Product;
        let declared = if direct { storage } else { Storage::Dense };
        let id = graph.declare(kind, &name, declared, element, dims, Place(0));
        ids.push(if declared == storage {
            id
        } else {
            apply(&mut graph, storage.name(), vec![id])
        });
    }
    let result = graph.apply(operator, ids, application.attributes.clone(), Place(0));
    // The shape of the result, from a trial.
    let mut trial = graph.clone();
    sparse_core::passes::infer_shapes(&mut trial);
    let shape = trial.shape(result);
    let weights = |graph: &mut Graph, storage, shape| {
        graph.declare(ValueKind::Input, "weights", storage, ElementType::F64, shape, Place(0))
    };
    let weighted = match through {
        Through::Weights if matches!(operator.kind, Kind::Loss { .. }) => {
            let factor = graph.constant(0.75, Place(0));
            apply(&mut graph, "multiply", vec![result, factor])
        }
        Through::Weights => {
            let weights = weights(&mut graph, Storage::Dense, shape.clone());
            apply(&mut graph, "multiply", vec![result, weights])
        }
        Through::Pattern if case.result == Storage::Csr => {
            let weights = weights(&mut graph, Storage::Csr, shape.clone());
            apply(&mut graph, "multiply", vec![result, weights])
        }
        Through::Product if case.result != Storage::Csr && shape.len() == 2 => {
            let read = vec![Dim::Size(3), shape[0].clone()];
            let weights = weights(&mut graph, Storage::Csr, read);
            let product = apply(&mut graph, "dot", vec![weights, result]);
            // Squared, so that the gradient differs from column to column.
            apply(&mut graph, "square", vec![product])
        }
        _ => return None,
    };
    let loss = if shape.is_empty() { weighted } else { apply(&mut graph, "sum", vec![weighted]) };
    graph.losses.push(loss);
    Some(compile(graph))
}

/// The gradient that the graph computes with the change of the loss: along four directions, which
/// have a part of each element, and element by element if that does not agree.
fn compare(compiled: &Compiled, inputs: &HashMap<String, Array<f64>>, index: usize, context: &str) {
    let name = format!("v{index}");
    // Changes of the loss need no gradients.
    let needed = compiled.graph.ancestors(compiled.graph.losses.iter().copied());
    let mut only_loss = compiled.clone();
    only_loss.plan.all.retain(|id| needed[id.0]);
    let run = |compiled: &Compiled, inputs: &HashMap<String, Array<f64>>| match evaluate(
        compiled, inputs,
    ) {
        Ok(values) => (values.loss(), values.gradient(&name).cloned()),
        Err(error) => panic!("{context}: {error}"),
    };
    let gradient = match run(compiled, inputs).1.expect(context) {
        Array::Dense(gradient) => gradient,
        Array::Csr(gradient) => gradient.view().to_dense().unwrap(),
        Array::RowSparse(gradient) => gradient.view().to_dense().unwrap(),
        Array::Ids(_) | Array::Unit(_) => panic!("{context}"),
    };
    let Some(Array::Dense(parameter)) = inputs.get(&name) else { panic!("{context}") };
    // The derivative of the loss when each element moves by its part of a direction.
    let numeric = |direction: &[f64]| {
        let at = |step: f64| {
            let (mut inputs, mut moved) = (inputs.clone(), parameter.clone());
            let each = moved.values_mut().iter_mut().zip(direction);
            each.for_each(|(value, part)| *value += step * part);
            inputs.insert(name.clone(), Array::Dense(moved));
            run(&only_loss, &inputs).0
        };
        (at(1e-5) - at(-1e-5)) / 2e-5
    };
    let is_near = |numeric: f64, exact: f64, size: f64| (numeric - exact).abs() <= 1e-6 * size;
    // No two parts are alike, so that elements cannot stand for each other.
    let agrees_along = |round: usize| {
        let part = |place: usize| {
            let part = 0.5 + (place * 37 + round * 11) as f64 % 61.0 / 61.0;
            if (place + round).is_multiple_of(3) { -part } else { part }
        };
        let direction: Vec<f64> = (0..parameter.values().len()).map(part).collect();
        let exact: f64 = gradient.values().iter().zip(&direction).map(|(g, part)| g * part).sum();
        is_near(numeric(&direction), exact, 1.0)
    };
    if (0..4).all(agrees_along) {
        return;
    }
    // Element by element: some may have no derivative, and one that is wrong is named.
    for place in 0..parameter.values().len() {
        let mut direction = vec![0.0; parameter.values().len()];
        direction[place] = 1.0;
        let numeric = numeric(&direction);
        if numeric.is_finite() {
            let exact = gradient.values()[place];
            assert!(
                is_near(numeric, exact, 1.0 + numeric.abs()),
                "element {place} is {exact}, not {numeric}: {context}"
            );
        }
    }
}

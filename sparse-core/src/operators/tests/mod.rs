//! The table held to its own laws.

use super::*;
use crate::compile::compile;
use crate::formula::Formula;
use crate::ir::{AttributeValue, Attributes, Graph, Kind as ValueKind, Output, Place, ValueId};
use crate::shapes::{Dim, Dims};
use crate::storage::{ElementType, Storage};

mod columns;
mod examples;

#[test]
fn names_are_unique() {
    let mut names: Vec<_> = all().map(|operator| operator.name).collect();
    names.sort_unstable();
    assert!(names.windows(2).all(|pair| pair[0] != pair[1]));
}

#[test]
fn every_operator_spec_is_well_formed() {
    for operator in all() {
        for rule in operator.storage {
            let given = rule.signature().operands.len();
            let arity = operator.required()..=operator.operands.len();
            assert!(arity.contains(&given), "{}", operator.name);
        }
        assert!(operator.cost_in_words().ends_with('.'), "{} says no cost", operator.name);
        for gradient in operator.gradient {
            assert!(operator.operand_index(gradient.operand).is_some(), "{}", operator.name);
            if let Ok(formula) = gradient.formula {
                crate::formula::parse(formula).unwrap();
            }
        }
        // Every operand that is read has a gradient or a reason, under all flags.
        for flags in 0..4u8 {
            let mut attributes = Attributes::default();
            for attribute in operator.attributes {
                match attribute.name {
                    "transpose_lhs" if flags & 1 != 0 => attributes.flip(attribute.name),
                    "transpose_rhs" if flags & 2 != 0 => attributes.flip(attribute.name),
                    _ => {}
                }
            }
            for index in 0..operator.operands.len() {
                assert!(
                    operator.gradient_of(index, &attributes, &[2; 3]).is_some()
                        || operator.lends_shape_only(index),
                    "{} has no gradient for {}",
                    operator.name,
                    operator.operands[index]
                );
            }
        }
        if let Kind::Loss { gradient, element, .. } = operator.kind {
            assert!(find(gradient).is_some());
            for formula in element.iter().flat_map(|element| [element.loss, element.slope]) {
                let variable = |name: &str| matches!(name, "s" | "t").then_some(0.5);
                operator.scalar(formula, &Attributes::default(), &variable).unwrap();
            }
        }
    }
}

/// The formula's value at 0 decides the storage: the row's `at_zero` must be what the formula says.
#[test]
fn value_at_zero_is_that_of_the_formula() {
    for (name, formula, _, _, at_zero, _) in unary::AT_ZERO {
        let parsed = crate::formula::parse(formula).unwrap();
        let value = scalar::value(&parsed, &|_| Some(0.0)).unwrap();
        assert_eq!(value == 0.0, *at_zero == 0.0, "{name} at 0 is {value}");
    }
}

#[test]
fn value_at_zero_of_a_step_is_that_of_the_formula() {
    for (name, formula, at_zero) in unary::FLAT_AT_ZERO {
        let parsed = crate::formula::parse(formula).unwrap();
        let value = scalar::value(&parsed, &|_| Some(0.0)).unwrap();
        assert_eq!(value == 0.0, *at_zero == 0.0, "{name} at 0 is {value}");
    }
}

/// A slope at 0 decides what a gradient stores: it must be what the derivative says, where that is
/// finite.
#[test]
fn slope_at_zero_is_that_of_the_derivative() {
    for (name, formula, derivative, of, at_zero, slope) in unary::AT_ZERO {
        if *at_zero != 0.0 {
            continue;
        }
        let value = |formula: &str| {
            scalar::value(&crate::formula::parse(formula).unwrap(), &|_| Some(0.0)).unwrap()
        };
        assert!(*of == "x" || value(formula) == 0.0);
        let found = value(derivative);
        let found = if found.is_finite() { found } else { 0.0 };
        assert!((found - slope).abs() < 1e-12, "{name}'(0) is {found}");
    }
}

/// Each derivative against finite differences of its function.
#[test]
fn derivatives_are_derivatives() {
    for (name, formula, derivative, of, ..) in unary::AT_ZERO {
        let f = crate::formula::parse(formula).unwrap();
        let d = crate::formula::parse(derivative).unwrap();
        let at = |x: f64| scalar::value(&f, &|_| Some(x)).unwrap();
        for x in [0.13, 0.4, 0.77, -0.31] {
            let numeric = (at(x + 1e-6) - at(x - 1e-6)) / 2e-6;
            if !numeric.is_finite() {
                continue;
            }
            let variable = if *of == "y" { at(x) } else { x };
            let exact = scalar::value(&d, &|_| Some(variable)).unwrap();
            assert!(
                (numeric - exact).abs() < 1e-5 * (1.0 + exact.abs()),
                "{name}'({x}): {numeric} {exact}"
            );
        }
    }
}

/// A graph that applies one operator to operands that match a rule, all of them computed from
/// parameters where that is possible, so that every gradient formula is instantiated.
fn closed(operator: &'static Operator, signature: &Signature) -> (Graph, Option<ValueId>) {
    let mut graph = Graph::new("Closure", ElementType::F32);
    let mut attributes = Attributes::default();
    let mut shapes = operand_shapes(operator, signature);
    if let Some((needed, given)) = examples::of(operator.name, signature) {
        (shapes, attributes) = (needed, given);
    }
    // A number has no extents, and neither has what has its shape.
    if operator.shape.starts_with("same") && signature.operands.contains(&Pattern::Scalar) {
        shapes.iter_mut().for_each(Vec::clear);
    }
    let operands: Vec<ValueId> = signature
        .operands
        .iter()
        .zip(shapes)
        .enumerate()
        .map(|(index, (pattern, mut shape))| {
            let name = format!("v{index}");
            let (kind, storage, element) = match pattern {
                Pattern::Scalar => return graph.constant(number(operator, signature), Place(0)),
                Pattern::Ids => (ValueKind::Input, Storage::Dense, ElementType::U32),
                Pattern::Like => (ValueKind::Input, Storage::Dense, ElementType::F32),
                Pattern::Array(_, turned) | Pattern::Unit(turned) => {
                    if *turned {
                        shape.reverse();
                        let flag = operator.transpose_flag(index).unwrap();
                        attributes.set(flag, AttributeValue::Flag(true));
                    }
                    let trained = ValueKind::Parameter {
                        initializer: String::new(),
                        frozen: false,
                        decay: None,
                    };
                    match pattern {
                        Pattern::Array(storage, _) if *storage != Storage::Csr => {
                            (trained, *storage, ElementType::F32)
                        }
                        Pattern::Unit(_) => (ValueKind::Input, Storage::Csr, ElementType::Unit),
                        _ => (ValueKind::Input, Storage::Csr, ElementType::F32),
                    }
                }
            };
            graph.declare(kind, &name, storage, element, shape, Place(0))
        })
        .collect();
    for attribute in operator.attributes.iter().filter(|attribute| attribute.kind.is_required()) {
        if attributes.get(attribute.name).is_none() {
            attributes.set(attribute.name, AttributeValue::Integer(1));
        }
    }
    // Conditions on numbers and attributes are met by some: clip(x, 0, 1), hard_sigmoid with beta =
    // 0, maximum(x, -1), power(x, 2), equal(x, 2).
    for name in ["lower", "beta"].into_iter().filter_map(|name| operator.attribute(name)) {
        attributes.set(name.name, AttributeValue::Integer(0));
    }
    let trained = operands
        .iter()
        .copied()
        .find(|id| matches!(graph.value(*id).kind, ValueKind::Parameter { .. }));
    let result = graph.apply(operator, operands, attributes, Place(0));
    if signature.gives_ids {
        graph.outputs.push(Output { name: "o".into(), value: result, place: Place(0) });
        return (graph, None);
    }
    let loss = if operator.shape.split('|').all(|rule| rule.contains("-> []")) {
        result
    } else {
        graph.apply(find("sum").unwrap(), vec![result], Attributes::default(), Place(0))
    };
    graph.losses.push(loss);
    (graph, trained)
}

/// A number that meets the condition of a rule.
fn number(operator: &'static Operator, signature: &Signature) -> f64 {
    let Some(condition) = signature.condition else { return 2.0 };
    let holds = |number: &f64| {
        let scalar =
            |pattern: &Pattern| (*pattern == Pattern::Scalar).then_some(Formula::Number(*number));
        let numbers: Vec<_> = signature.operands.iter().map(scalar).collect();
        let given = Given {
            operator,
            attributes: &Attributes::default(),
            numbers: &numbers,
            ranks: &[2, 2],
            names: None,
        };
        (condition.holds)(&given)
    };
    let found = [2.0, -1.0, 0.0, 1.0].into_iter().find(holds);
    found.unwrap_or_else(|| panic!("{} has a rule that no number meets", operator.name))
}

fn operand_shapes(operator: &Operator, signature: &Signature) -> Vec<Dims> {
    let named = |name: &str| Dim::Named(name.into());
    let matrix = || vec![named("m"), named("n")];
    let each = operator.operands.iter().zip(&signature.operands).enumerate();
    let shape_of = |(index, (name, pattern)): (usize, (&&str, &Pattern))| match (
        operator.name,
        *name,
        pattern,
    ) {
        ("dot", "rhs", _) => vec![named("n"), named("k")],
        ("outer", _, _) => vec![if index == 0 { named("m") } else { named("n") }],
        // One for each row.
        (_, "weight", _) | (_, "label", Pattern::Ids) if index > 0 => vec![named("m")],
        _ => matrix(),
    };
    each.map(shape_of).collect()
}

/// Closure: each rule, and the gradient of each rule, ends in a rule or in a written reason. There
/// is no third outcome, hence no hidden fallback.
#[test]
fn every_rule_and_every_gradient_ends_in_a_rule_or_a_reason() {
    use crate::diagnostics::Code;
    for operator in all() {
        let signatures = |rule: &'static Rule| rule.signatures().map(move |each| (rule, each));
        for (rule, signature) in operator.storage.iter().flat_map(signatures) {
            let (graph, trained) = closed(operator, &signature);
            let compiled = compile(graph);
            // A kernel for patterns is the one that is called.
            let is_unit = |pattern: &Pattern| matches!(pattern, Pattern::Unit(_));
            let graph = &compiled.graph;
            let kernels = graph.ids().filter_map(|id| crate::passes::kernel_name(graph, id));
            let wanted = format!("{}_{}", operator.name, signature.kernel(signature.result));
            assert!(
                !signature.operands.iter().any(is_unit)
                    || kernels.into_iter().any(|name| name == wanted),
                "{wanted} is not called"
            );
            for diagnostic in compiled.errors() {
                let allowed = match diagnostic.code {
                    // A reason written in the row, or the user's own declaration.
                    Code::NoGradient => operator.gradient.iter().any(|g| g.formula.is_err()),
                    Code::DenseGradient => true,
                    // Operands that are never trained in this graph.
                    Code::UnusedParameter => operator.internal,
                    _ => false,
                };
                assert!(
                    allowed,
                    "`{}` with `{}`: {}\n(trained: {trained:?})",
                    operator.name,
                    rule.text(),
                    diagnostic.text()
                );
            }
        }
    }
}

/// How each row_sparse operand is read, and which rows a row_sparse result stores, is said in the
/// row, or follows from the kind.
#[test]
fn every_operator_spec_says_which_table_rows_it_reads_and_stores() {
    let is_table = |pattern: &Pattern| matches!(pattern, Pattern::Array(Storage::RowSparse, _));
    for operator in all() {
        let known = |name: &str| operator.operand_index(name).is_some();
        for read in operator.reads_rows {
            let by = read.by.map(RowNames::operand);
            assert!(known(read.table) && by.is_none_or(known), "{}: {read:?}", operator.name);
        }
        for rows in operator.result_rows {
            let named: &[&str] = match rows {
                ResultRows::Added { by, of, .. } => &[by.operand(), of],
                ResultRows::Named(by) => &[by.operand()],
                ResultRows::Within { of, .. } | ResultRows::Moved(of) => of,
                ResultRows::Like => &["like"],
                ResultRows::All | ResultRows::Nothing | ResultRows::Read => &[],
            };
            assert!(named.iter().all(|name| known(name)), "{}: {rows:?}", operator.name);
        }
        if operator.kind != Kind::Kernel {
            assert!(operator.reads_rows.is_empty() && operator.result_rows.is_empty());
            continue;
        }
        let rules: Vec<Signature> = operator.storage.iter().map(Rule::signature).collect();
        for (index, name) in operator.operands.iter().enumerate() {
            let reads = rules.iter().any(|rule| rule.operands.get(index).is_some_and(is_table));
            assert!(
                !reads
                    || operator.lends_shape_only(index)
                    || operator.reads_rows.iter().any(|read| read.table == *name),
                "`{}` does not say which rows of `{name}` it reads",
                operator.name
            );
        }
        let gives = |rule: &Signature| rule.results().any(|result| result == Storage::RowSparse);
        assert_eq!(
            rules.iter().any(gives),
            !operator.result_rows.is_empty(),
            "`{}` does not say which rows its result stores",
            operator.name
        );
        let as_they_are = operator.reads_rows.iter().any(|read| read.what == RowUse::AsTheyAre);
        assert_eq!(as_they_are, operator.result_rows.contains(&ResultRows::Read));
    }
}

//! Gradient formulas made values of the graph, inferred as they are appended.

use super::{infer_shapes, infer_storage, masked};
use crate::diagnostics::{Code, Diagnostic};
use crate::formula::{AttributeFormula, Formula};
use crate::ir::{
    Apply, AttributeValue, Attributes, Fallback, Graph, Kind, Number, Place, Value, ValueId,
};
use crate::operators::{self, AttributeKind, BinaryFamily, Operator};
use crate::shapes::Dim;
use crate::storage::Storage;

/// What the names of a gradient formula stand for.
pub(super) struct Scope<'a> {
    pub(super) apply: &'a Apply,
    pub(super) grad: ValueId,
    pub(super) out: ValueId,
}

/// A formula that is an application: the operator's name, its operands, and what is said of
/// attributes.
pub(super) type Call<'a> = (&'a str, Vec<&'a Formula>, &'a [(String, AttributeFormula)]);

/// What a formula is.
pub(super) enum Step<'a> {
    /// A value of the scope, or a number.
    Value(ValueId),
    /// An application.
    Call(Call<'a>),
}

/// The value that a formula names, or the application that it is.
pub(super) fn step<'a>(
    graph: &mut Graph,
    formula: &'a Formula,
    scope: &Scope<'_>,
    place: Place,
) -> Result<Step<'a>, String> {
    Ok(match formula {
        Formula::Number(number) => Step::Value(graph.constant(*number, place)),
        Formula::Name(name) => {
            Step::Value(match (name.as_str(), scope.apply.operator.operand_index(name)) {
                ("grad", _) => scope.grad,
                ("out", _) => scope.out,
                (_, Some(index)) if index < scope.apply.operands.len() => {
                    scope.apply.operands[index]
                }
                _ => match scope.apply.operator.number_of(&scope.apply.attributes, name) {
                    Some(number) => graph.number(number, place),
                    None => {
                        let operator = scope.apply.operator.name;
                        return Err(format!("gradient of `{operator}` names `{name}`"));
                    }
                },
            })
        }
        Formula::Negate(inner) => Step::Call(("negative", vec![inner], &[])),
        Formula::Binary(operator, lhs, rhs) => {
            Step::Call((operator.operator_name(), vec![lhs, rhs], &[]))
        }
        Formula::Call(name, operands, attributes) => {
            // An optional operand that the operator was not given is left out of a call.
            let given = |operand: &&Formula| match operand {
                Formula::Name(name) => {
                    let index = scope.apply.operator.operand_index(name);
                    index.is_none_or(|index| index < scope.apply.operands.len())
                }
                _ => true,
            };
            Step::Call((name.as_str(), operands.iter().filter(given).collect(), attributes))
        }
    })
}

/// Appends the operators of a formula.
pub(super) fn instantiate(
    graph: &mut Graph,
    formula: &Formula,
    scope: &Scope<'_>,
    place: Place,
    diagnostics: &mut Vec<Diagnostic>,
) -> Result<ValueId, String> {
    let (name, operands, given) = match step(graph, formula, scope, place)? {
        Step::Value(id) => return Ok(id),
        Step::Call(call) => call,
    };
    let operator = called(graph, scope, name)?;
    let operands = operands
        .into_iter()
        .map(|operand| instantiate(graph, operand, scope, place, diagnostics))
        .collect::<Result<Vec<_>, _>>()?;
    let attributes = attributes(operator, given, scope)?;
    Ok(derived(graph, name, operands, attributes, place, diagnostics))
}

/// The operator that a formula calls.
pub(super) fn called(
    graph: &Graph,
    scope: &Scope<'_>,
    name: &str,
) -> Result<&'static Operator, String> {
    let unknown = || format!("gradient of `{}` calls `{name}`", scope.apply.operator.name);
    graph.operator(name).ok_or_else(unknown)
}

/// The attributes of a call.
pub(super) fn attributes(
    operator: &'static Operator,
    given: &[(String, AttributeFormula)],
    scope: &Scope<'_>,
) -> Result<Attributes, String> {
    let mut attributes = Attributes::default();
    for (attribute, formula) in given {
        let known = operator
            .attribute(attribute)
            .ok_or_else(|| format!("`{}` has no attribute `{attribute}`", operator.name))?;
        let outer = &scope.apply.attributes;
        let named = |source: &str| outer.name(source).map(AttributeValue::Named);
        let value = match (formula, known.kind) {
            (AttributeFormula::Same(source), _) if outer.name(source).is_some() => named(source),
            (AttributeFormula::Flag(flag), _) => Some(AttributeValue::Flag(*flag)),
            (AttributeFormula::Not(flag), _) => Some(AttributeValue::Flag(!outer.flag(flag))),
            (AttributeFormula::Same(flag), AttributeKind::Flag) => {
                Some(AttributeValue::Flag(outer.flag(flag)))
            }
            (AttributeFormula::Same(source), AttributeKind::Storage) => {
                outer.get(source).or(source.parse().ok().map(AttributeValue::Storage))
            }
            (AttributeFormula::Same(source), AttributeKind::Integer(_)) => {
                scope.apply.operator.integer(outer, source).map(AttributeValue::Integer)
            }
            (AttributeFormula::Same(source), AttributeKind::Number(_)) => {
                let number = scope.apply.operator.number(outer, source);
                number.map(|number| AttributeValue::Number(Number(number)))
            }
            (AttributeFormula::Same(source), _) => {
                let integer = scope.apply.operator.integer(outer, source);
                outer.get(source).or(integer.map(AttributeValue::Integer))
            }
            (AttributeFormula::Number(number), AttributeKind::Number(_)) => {
                Some(AttributeValue::Number(Number(*number)))
            }
            (AttributeFormula::Number(integer), _) => {
                Some(AttributeValue::Integer(*integer as i64))
            }
        };
        if let Some(value) = value {
            attributes.set(known.name, value);
        }
    }
    Ok(attributes)
}

/// Appends a derived value with its shape and storage, after the rewrites that need shapes.
pub(super) fn derived(
    graph: &mut Graph,
    name: &str,
    operands: Vec<ValueId>,
    attributes: Attributes,
    place: Place,
    diagnostics: &mut Vec<Diagnostic>,
) -> ValueId {
    if graph.operator(name).is_some_and(|operator| operator.undoes_broadcasting)
        && graph.shape(operands[0]) == graph.shape(operands[1])
    {
        return operands[0];
    }
    if graph.operator(name).is_some_and(|operator| operator.is_product)
        && let Some(masked) = masked::product_at_pattern(graph, &operands)
    {
        let (product, like) = (masked.operands.to_vec(), masked.operands[2]);
        let (at, flags) = (masked.operator.name, masked.attributes);
        let sampled = derived(graph, at, product, flags, place, diagnostics);
        return derived(graph, name, vec![sampled, like], attributes, place, diagnostics);
    }
    let operands = match graph.operator(name) {
        Some(operator) => with_rows_repeated(graph, operator, operands, place, diagnostics),
        None => operands,
    };
    let Some(operator) = graph.operator(name) else {
        diagnostics.push(Diagnostic::new(Code::Internal, place, format!("no operator `{name}`")));
        return operands[0];
    };
    let before = graph.values.len();
    let id = graph.apply(operator, operands, attributes, place);
    if id.0 < before || graph.apply_of(id).is_none() {
        // Rewritten to something that exists, or to a number.
        return id;
    }
    if let Err(diagnostic) = infer_shapes::infer_value(graph, id) {
        diagnostics.extend(diagnostic);
        graph.values[id.0].broken = true;
        return id;
    }
    let Some(value) = graph.values.pop() else { return id };
    if let Kind::Apply(apply) = &value.kind
        && let Some((operands, flags)) = reverse(graph, apply)
        && !has_kernel(graph, value.clone())
    {
        let product = graph.apply(operator, operands, flags, place);
        let is_new = product.0 == before && infer_shapes::infer_value(graph, product).is_ok();
        let mut product = graph.values.split_off(before);
        if let Some(product) = product.pop().filter(|_| is_new)
            && has_kernel(graph, product.clone())
        {
            let product = infer_storage::push_inferred(graph, product, diagnostics);
            if graph.storage(product) == Storage::Dense {
                let none = Attributes::default();
                return derived(graph, "transpose", vec![product], none, place, diagnostics);
            }
            graph.values.truncate(before);
        }
    }
    infer_storage::push_inferred(graph, value, diagnostics)
}

/// Of two row_sparse factors one whose rows the other's shape repeats is written out row by row: no
/// kernel repeats rows beside rows.
fn with_rows_repeated(
    graph: &mut Graph,
    operator: &Operator,
    operands: Vec<ValueId>,
    place: Place,
    diagnostics: &mut Vec<Diagnostic>,
) -> Vec<ValueId> {
    let are_factors =
        matches!(operator.kind, operators::Kind::Binary(BinaryFamily::Intersection, _));
    let &[lhs, rhs] = &operands[..] else { return operands };
    let is_table = |id: ValueId| graph.storage(id) == Storage::RowSparse;
    let (of_lhs, of_rhs) = (graph.shape(lhs), graph.shape(rhs));
    if !are_factors || !is_table(lhs) || !is_table(rhs) || of_lhs == of_rhs {
        return operands;
    }
    let one = |dim: &Dim| *dim == Dim::Size(1);
    let repeats = |small: &[Dim], large: &[Dim]| {
        let same = small.len() == large.len() && small.first() == large.first();
        same && small.iter().zip(large).all(|(small, large)| small == large || one(small))
    };
    let mut repeat = |small, large| {
        derived(
            graph,
            "broadcast_like",
            vec![small, large],
            Attributes::default(),
            place,
            diagnostics,
        )
    };
    match (repeats(&of_lhs, &of_rhs), repeats(&of_rhs, &of_lhs)) {
        (true, _) => vec![repeat(lhs, rhs), rhs],
        (_, true) => vec![lhs, repeat(rhs, lhs)],
        _ => operands,
    }
}

/// Whether there is a kernel for a value, which is not appended: whatever a fallback would convert.
fn has_kernel(graph: &mut Graph, value: Value) -> bool {
    let (before, fallback) = (graph.values.len(), graph.fallback);
    graph.fallback = Fallback::Deny;
    let mut refused = Vec::new();
    infer_storage::push_inferred(graph, value, &mut refused);
    graph.values.truncate(before);
    graph.fallback = fallback;
    refused.is_empty()
}

/// The operands and attributes of a product of two matrices whose transpose is the given one.
fn reverse(graph: &Graph, apply: &Apply) -> Option<(Vec<ValueId>, Attributes)> {
    let &[lhs, rhs] = &apply.operands[..] else { return None };
    let operator = apply.operator;
    let [of_lhs, of_rhs] = [operator.transpose_flag(0)?, operator.transpose_flag(1)?];
    let is_matrix = |id: ValueId| graph.shape(id).len() == 2;
    if !operator.is_associative || !is_matrix(lhs) || !is_matrix(rhs) {
        return None;
    }
    let mut flags = apply.attributes.clone();
    flags.set(of_lhs, AttributeValue::Flag(!apply.attributes.flag(of_rhs)));
    flags.set(of_rhs, AttributeValue::Flag(!apply.attributes.flag(of_lhs)));
    Some((vec![rhs, lhs], flags))
}

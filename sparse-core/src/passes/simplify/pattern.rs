//! Formulas over operators, found in a graph and built in one.

use super::super::instantiate::derived;
use super::numbers::is_moderate_number;
use crate::diagnostics::Diagnostic;
use crate::formula::{AttributeFormula, Formula};
use crate::ir::{Apply, AttributeValue, Attributes, Graph, Place, ValueId};
use crate::operators::{self, AttributeKind, Operator, Scaling};

/// The operator that stands for any product with a number.
const SCALED: &str = "scaled";

/// What the parts of a pattern are in a graph.
#[derive(Clone, Debug, Default)]
pub(super) struct Bindings {
    values: Vec<(String, ValueId)>,
    attributes: Vec<(&'static str, Attributes)>,
    /// The scaling, and which operand it scales.
    scaling: Option<(Apply, usize)>,
    /// The values between the names and the result.
    pub(super) inner: Vec<ValueId>,
}

impl Bindings {
    /// The value of a name.
    pub(super) fn value(&self, name: &str) -> Option<ValueId> {
        self.values.iter().find(|(known, _)| known == name).map(|(_, id)| *id)
    }

    /// The same in a graph whose values have other ids.
    pub(super) fn renamed(mut self, renamed: &[ValueId]) -> Bindings {
        let scaling = self.scaling.iter_mut().flat_map(|(apply, _)| &mut apply.operands);
        for id in self.values.iter_mut().map(|(_, id)| id).chain(scaling) {
            *id = renamed[id.0];
        }
        self
    }
}

/// The parts of a pattern that a value is an instance of.
pub(super) fn find(graph: &Graph, pattern: &Formula, root: ValueId) -> Option<Bindings> {
    let mut found = find_within(graph, pattern, root, Bindings::default())?;
    found.inner.retain(|id| *id != root);
    Some(found)
}

fn find_within(
    graph: &Graph,
    pattern: &Formula,
    id: ValueId,
    mut found: Bindings,
) -> Option<Bindings> {
    if let Formula::Name(name) = pattern {
        let fits =
            if is_number(name) { is_moderate_number(graph, id) } else { !graph.is_number(id) };
        let same = found.value(name).is_none_or(|known| known == id);
        found.values.push((name.clone(), id));
        return (fits && same).then_some(found);
    }
    let apply = graph.apply_of(id)?;
    found.inner.push(id);
    let (name, operands, attributes) = parts(pattern)?;
    if name == SCALED {
        let scaled = scaled_operand(graph, apply)?;
        found.scaling = Some((apply.clone(), scaled));
        return find_within(graph, operands[0], apply.operands[scaled], found);
    }
    let asked = |(flag, value): &(String, AttributeFormula)| match value {
        AttributeFormula::Flag(value) => apply.attributes.flag(flag) == *value,
        _ => false,
    };
    if !apply.operator.is_called(name)
        || apply.operands.len() != operands.len()
        || !attributes.iter().all(asked)
    {
        return None;
    }
    found.attributes.push((apply.operator.name, apply.attributes.clone()));
    let in_order = |ids: &mut dyn Iterator<Item = &ValueId>| {
        let mut each = operands.iter().zip(ids);
        each.try_fold(found.clone(), |found, (part, id)| find_within(graph, part, *id, found))
    };
    in_order(&mut apply.operands.iter()).or_else(|| {
        apply.operator.is_product.then(|| in_order(&mut apply.operands.iter().rev())).flatten()
    })
}

/// Builds a formula; the new values are appended, but for what exists already.
pub(super) fn build(
    graph: &mut Graph,
    formula: &Formula,
    given: &Bindings,
    place: Place,
    diagnostics: &mut Vec<Diagnostic>,
) -> Option<ValueId> {
    if let Formula::Name(name) = formula {
        return given.value(name);
    }
    let (name, parts, named) = parts(formula)?;
    let operands = parts
        .into_iter()
        .map(|part| build(graph, part, given, place, diagnostics))
        .collect::<Option<Vec<_>>>()?;
    if name == SCALED {
        let (mut apply, scaled) = given.scaling.clone()?;
        apply.operands[scaled] = operands[0];
        let (name, attributes) = (apply.operator.name, apply.attributes);
        return Some(derived(graph, name, apply.operands, attributes, place, diagnostics));
    }
    let mut attributes = Attributes::default();
    if named.is_empty()
        && let Some((_, carried)) = given.attributes.iter().find(|(known, _)| *known == name)
    {
        attributes = carried.clone();
    }
    for (attribute, value) in named {
        let known =
            operators::find(name).and_then(|known: &Operator| known.attribute(attribute))?;
        attributes.set(
            known.name,
            match value {
                AttributeFormula::Flag(flag) => AttributeValue::Flag(*flag),
                AttributeFormula::Number(axis) if known.kind == AttributeKind::Axes => {
                    AttributeValue::List([*axis as i64].into())
                }
                _ => return None,
            },
        );
    }
    Some(derived(graph, name, operands, attributes, place, diagnostics))
}

type Parts<'a> = (&'a str, Vec<&'a Formula>, &'a [(String, AttributeFormula)]);

/// Operator, operands and attributes of a formula that is an application.
fn parts(formula: &Formula) -> Option<Parts<'_>> {
    Some(match formula {
        Formula::Negate(inner) => ("negative", vec![inner], &[]),
        Formula::Binary(operator, lhs, rhs) => (operator.operator_name(), vec![lhs, rhs], &[]),
        Formula::Call(name, operands, attributes) => {
            (name.as_str(), operands.iter().collect(), attributes)
        }
        Formula::Number(_) | Formula::Name(_) => return None,
    })
}

fn is_number(name: &str) -> bool {
    ["s", "t"].contains(&name)
}

/// Which operand a product with a number scales, if it is one. Elements of half precision are
/// scaled where they are, lest a sum leaves their range; a sign may be moved.
fn scaled_operand(graph: &Graph, apply: &Apply) -> Option<usize> {
    let number = |index: usize| {
        let number = apply.operands.get(index);
        let is_moderate = number.is_some_and(|id| is_moderate_number(graph, *id));
        is_moderate && !graph.element().is_half()
    };
    match apply.operator.scaling {
        Scaling::Always => Some(0),
        Scaling::ByEither | Scaling::ByRight if number(1) => Some(0),
        Scaling::ByEither if number(0) => Some(1),
        _ => None,
    }
}

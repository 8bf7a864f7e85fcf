//! Conversions of values between storage types, which a pass inserts.

use super::choose_rule::choose;
use crate::ir::{Apply, Attributes, Graph, Kind, Place, Value, ValueId};
use crate::operators;
use crate::storage::Storage;

/// The conversion of a value, which the source does not have, appended where it is new. Of a
/// `fallback` the plan says so.
pub(super) fn push_conversion(
    graph: &mut Graph,
    operand: ValueId,
    to: Storage,
    place: Place,
    fallback: bool,
) -> ValueId {
    let Some(operator) = operators::find(to.name()) else {
        return operand;
    };
    // One conversion serves all operators that need it.
    let same = |value: &Value| match &value.kind {
        Kind::Apply(apply) => {
            let alike = apply.operator == operator && apply.operands == [operand];
            alike && value.inserted == fallback && value.name.is_none()
        }
        _ => false,
    };
    if let Some(earlier) = graph.values.iter().position(same) {
        return ValueId(earlier);
    }
    let (operands, attributes) = (vec![operand], Attributes::default());
    let mut apply = Apply { operator, operands, attributes, rule: None };
    let mut value = Value {
        kind: Kind::Apply(apply.clone()),
        name: None,
        place,
        element: graph.element(),
        shape: graph.value(operand).shape.clone(),
        storage: None,
        annotation: None,
        inserted: fallback,
        broken: graph.value(operand).broken,
    };
    if !value.broken {
        // A conversion has a rule for every storage: none is missing but for a value in error.
        match choose(graph, &apply, &value) {
            Ok((rule, storage)) => (apply.rule, value.storage) = (Some(rule), Some(storage)),
            Err(_) => value.broken = true,
        }
        value.kind = Kind::Apply(apply);
    }
    graph.push(value)
}

//! Separate destinations of outputs and gradients: a value that is two of them, or none of its
//! own, is copied.

use super::infer_storage;
use super::instantiate::derived;
use crate::diagnostics::{Code, Diagnostic};
use crate::ir::{Apply, Attributes, Graph, Kind, Place, Update, Value, ValueId};
use crate::operators;
use std::collections::BTreeSet;

/// Every output is a value of its own, made by an operator: an output that is an input, a
/// parameter, or another output's value is copied.
pub fn separate_outputs(graph: &mut Graph) -> Vec<Diagnostic> {
    let mut diagnostics = Vec::new();
    let mut taken: Vec<ValueId> = Vec::new();
    for index in 0..graph.outputs.len() {
        let (id, place) = (graph.outputs[index].value, graph.outputs[index].place);
        let copies =
            taken.contains(&id) || graph.apply_of(id).is_none() || graph.losses.contains(&id);
        if copies && graph.value(id).element.is_id() && !graph.value(id).broken {
            let message = format!("the output `{}` is a copy of ids", graph.outputs[index].name);
            diagnostics.push(
                Diagnostic::new(Code::OutputOfIds, place, message)
                    .help(format!("leave it out: `{}` is there already", graph.label(id))),
            );
        } else if graph.is_number(id) {
            let number = graph.label(id);
            let message =
                format!("the output `{}` is the number {number}", graph.outputs[index].name);
            diagnostics.push(
                Diagnostic::new(Code::NumberForArray, place, message)
                    .help("leave it out: an output is an array that is computed of a batch"),
            );
        } else if copies {
            let copied = copy(graph, id, place, &mut diagnostics);
            graph.outputs[index].value = copied;
        }
        taken.push(graph.outputs[index].value);
    }
    // States are written one after the other, each from what was before.
    for index in 0..graph.updates.len() {
        let Update { state, value, place } = graph.updates[index];
        if graph.is_number(value) {
            let number = graph.label(value);
            let state = graph.label(state);
            let message = format!("the state `{state}` would become the number {number}");
            diagnostics
                .push(Diagnostic::new(Code::NumberForArray, place, message).help(format!(
                    "write an array of its shape: `zeros_like({state}) + {number}`"
                )));
        } else if graph.apply_of(value).is_none() {
            graph.updates[index].value = copy(graph, value, place, &mut diagnostics);
        }
    }
    diagnostics
}

/// Every gradient is a value of its own, made by an operator, different from
/// outputs and other gradients, so that each has one place to be written to.
pub(super) fn make_distinct(graph: &mut Graph, diagnostics: &mut Vec<Diagnostic>) {
    let mut taken: BTreeSet<ValueId> = graph.outputs.iter().map(|output| output.value).collect();
    for index in 0..graph.gradients.len() {
        let (parameter, id) = graph.gradients[index];
        let place = graph.value(id).place;
        if graph.is_number(id) {
            // The parameter itself is a loss, or added to one.
            let operands = vec![id, parameter];
            graph.gradients[index].1 = derived(
                graph,
                "broadcast_like",
                operands,
                Attributes::default(),
                place,
                diagnostics,
            );
        } else if taken.contains(&id) || graph.apply_of(id).is_none() {
            graph.gradients[index].1 = copy(graph, id, place, diagnostics);
        }
        taken.insert(graph.gradients[index].1);
    }
}

/// Appends a copy of a value, in its own storage.
fn copy(
    graph: &mut Graph,
    id: ValueId,
    place: Place,
    diagnostics: &mut Vec<Diagnostic>,
) -> ValueId {
    let storage = graph.storage(id).name();
    let Some(operator) = operators::find(storage) else {
        return id;
    };
    let value = Value {
        kind: Kind::Apply(Apply {
            operator,
            operands: vec![id],
            attributes: Attributes::default(),
            rule: None,
        }),
        name: None,
        place,
        element: graph.element(),
        shape: graph.value(id).shape.clone(),
        storage: None,
        annotation: None,
        inserted: false,
        broken: graph.value(id).broken,
    };
    infer_storage::push_inferred(graph, value, diagnostics)
}

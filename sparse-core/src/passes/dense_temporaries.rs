//! Dense arrays that gradients would be made of, where no operator of the source asks for one.
//!
//! Neither a gradient nor what it is computed from is denser than the value it belongs to: the
//! result of an operator of the source, or one of its operands.

use super::bytes::{dense_bytes, stored_bytes};
use super::csr_patterns::GradientPlaces;
use crate::diagnostics::{Code, Diagnostic};
use crate::ir::{Fallback, Graph, ValueId};
use crate::shapes::size_formula;
use crate::storage::Storage;
use std::ops::Range;

/// The values that a use of an operand adds to a graph for its gradient.
pub(super) struct Temporaries {
    /// Their positions.
    pub(super) made: Range<usize>,
    /// The result of the operator that uses it.
    pub(super) out: ValueId,
    /// The operand.
    pub(super) operand: ValueId,
}

/// The dense values among those that gradients need, as large as a csr that they belong to; one for
/// each operator.
pub(super) fn refuse_dense(
    graph: &Graph,
    temporaries: &[Temporaries],
    reaches: &[bool],
    places: &GradientPlaces,
) -> Vec<Diagnostic> {
    if graph.fallback == Fallback::Allow {
        return Vec::new();
    }
    let needed = graph.ancestors(graph.gradients.iter().map(|(_, gradient)| *gradient));
    let refused = temporaries.iter().filter_map(|Temporaries { made, out, operand }| {
        let apply = graph.apply_of(*out)?;
        let of_source = || apply.operands.iter().chain([out]);
        // A csr that is the copy of a dense array has a gradient for each element of that.
        let is_csr = |id: &ValueId| {
            graph.storage(*id) == Storage::Csr && (!reaches[id.0] || places.are_known(*id))
        };
        let is_dense =
            |id: &ValueId| graph.storage(*id) == Storage::Dense || reaches[id.0] && !is_csr(id);
        made.clone().map(ValueId).find_map(|id| {
            let shape = graph.shape(id);
            let dense =
                needed[id.0] && graph.storage(id) == Storage::Dense && graph.apply_of(id).is_some();
            let as_large = |other: &ValueId| graph.shape(*other) == shape;
            let large = || of_source().filter(|other| as_large(other));
            if !dense || large().any(is_dense) {
                return None;
            }
            let csr = [operand, out].into_iter().find(|other| is_csr(other) && as_large(other));
            csr.or_else(|| large().find(|other| is_csr(other)))
                .map(|csr| refusal(graph, *out, *csr))
        })
    });
    let mut refused: Vec<Diagnostic> = refused.collect();
    refused.dedup_by(|next, first| next.place == first.place && next.message == first.message);
    refused
}

fn refusal(graph: &Graph, out: ValueId, csr: ValueId) -> Diagnostic {
    let (name, place) = (graph.describe(csr), graph.value(out).place);
    let operator = graph.apply_of(out).map_or("", |apply| apply.operator.name);
    let (shape, element) = (graph.shape(csr), graph.element());
    let message = format!(
        "the gradient of `{operator}` would make an array of every element of `{name}`: {} {element}, {}, instead of {}",
        size_formula(&shape),
        dense_bytes(&shape, element),
        stored_bytes(graph, csr),
    );
    let (code, message) = match graph.fallback {
        Fallback::Warn => (Code::FallbackInserted, format!("fallback: {message}")),
        _ => (Code::WouldBeDense, message),
    };
    let help =
        format!("write `dense({name})` to accept the cost, or `fallback = warn;` in the model");
    let diagnostic = Diagnostic::new(code, place, message);
    match graph.fallback {
        Fallback::Warn => diagnostic,
        _ => diagnostic.help(help),
    }
}

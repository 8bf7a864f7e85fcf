//! Dense arrays that gradients would be made of, where no operator of the source asks for one.
//!
//! Neither a gradient nor what it is computed from is denser than the value it belongs to: the
//! result of an operator of the source, or one of its operands.

use super::bytes::{dense_bytes, stored_bytes};
use super::csr_patterns::GradientPlaces;
use crate::diagnostics::{Code, Diagnostic};
use crate::ir::{Fallback, Graph, ValueId};
use crate::shapes::{Dim, size_formula};
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

/// The dense values among those that gradients need, as large as a sparse value that they belong
/// to, or of as many rows as one stores some of; one for each operator.
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
        // A sparse value that is the copy of a dense array has a gradient for each element of that.
        let lives_at_places = |id: &ValueId| {
            let known = places.are_known(*id);
            match graph.storage(*id) {
                Storage::Csr => !reaches[id.0] || known,
                Storage::RowSparse => known,
                Storage::Dense => false,
            }
        };
        let is_dense = |id: &ValueId| {
            let storage = graph.storage(*id);
            storage == Storage::Dense || reaches[id.0] && !lives_at_places(id)
        };
        made.clone().map(ValueId).find_map(|id| {
            let shape = graph.shape(id);
            let dense =
                needed[id.0] && graph.storage(id) == Storage::Dense && graph.apply_of(id).is_some();
            let by_source =
                |other: &ValueId| is_dense(other) && is_no_larger(&shape, &graph.shape(*other));
            if !dense || of_source().any(by_source) {
                return None;
            }
            let of_all = |other: &&ValueId| lives_at_places(other) && spans(graph, **other, &shape);
            let large = || of_source().filter(of_all);
            let sparse = [operand, out].into_iter().find(|other| large().any(|id| id == *other));
            sparse.or_else(|| large().next()).map(|sparse| refusal(graph, *out, *sparse))
        })
    });
    let mut refused: Vec<Diagnostic> = refused.collect();
    refused.dedup_by(|next, first| next.place == first.place && next.message == first.message);
    refused
}

/// Whether an array has each extent of another one, repeated ones as often.
fn is_no_larger(shape: &[Dim], than: &[Dim]) -> bool {
    let mut others = than.to_vec();
    let mut extents = shape.iter().filter(|extent| **extent != Dim::Size(1));
    extents.all(|extent| {
        let found = others.iter().position(|other| other == extent);
        found.map(|at| others.swap_remove(at)).is_some()
    })
}

/// Whether an array of a shape has an element for each of a sparse value, or for each of the rows
/// of one that stores rows.
fn spans(graph: &Graph, id: ValueId, shape: &[Dim]) -> bool {
    let own = graph.shape(id);
    let rows = own.first().filter(|rows| **rows != Dim::Size(1));
    let of_rows = graph.storage(id) == Storage::RowSparse && rows.is_some();
    own == shape || of_rows && shape.first() == rows
}

fn refusal(graph: &Graph, out: ValueId, sparse: ValueId) -> Diagnostic {
    let (name, place) = (graph.describe(sparse), graph.value(out).place);
    let operator = graph.apply_of(out).map_or("", |apply| apply.operator.name);
    let (shape, element) = (graph.shape(sparse), graph.element());
    let part = if graph.storage(sparse) == Storage::Csr { "element" } else { "row" };
    let message = format!(
        "the gradient of `{operator}` would make an array of every {part} of `{name}`: {} {element}, {}, instead of {}",
        size_formula(&shape),
        dense_bytes(&shape, element),
        stored_bytes(graph, sparse),
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

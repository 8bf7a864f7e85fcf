//! The error about a `row_sparse` parameter whose gradient has every row: which operator made it
//! so, and through which uses it came.

use super::bytes::dense_bytes;
use super::contributions::Contribution;
use super::rows::store_every_row;
use crate::diagnostics::{Code, Diagnostic};
use crate::ir::{Graph, ValueId};
use crate::shapes::show;
use crate::storage::Storage;

/// Whether a gradient has something for every row of its parameter.
/// `every` is what is [known](store_every_row) of the values before.
pub(super) fn is_whole(graph: &Graph, gradient: ValueId, every: &mut Vec<bool>) -> bool {
    store_every_row(graph, every);
    graph.storage(gradient) != Storage::RowSparse || every[gradient.0]
}

/// What to say of a parameter whose gradient is dense, given what the uses of every value add to
/// its gradient.
pub(super) fn dense_gradient(
    graph: &Graph,
    parameter: ValueId,
    contributions: &[Vec<Contribution>],
) -> Diagnostic {
    let uses = dense_uses(graph, parameter, contributions);
    // Of the values on the way, the first ones are row_sparse, and their gradients are not. The
    // last of their uses made them so.
    let sparse = |id: &ValueId| graph.storage(*id) == Storage::RowSparse;
    let rows =
        uses.iter().take_while(|user| sparse(user)).count().min(uses.len().saturating_sub(1));
    let maker = uses.get(rows).copied().unwrap_or(parameter);
    let read = if rows == 0 { parameter } else { uses[rows - 1] };
    let (name, shape) = (graph.label(parameter), graph.shape(parameter));
    let chain: Vec<String> = uses.iter().rev().map(|user| called(graph, *user)).collect();
    let message = format!(
        "the gradient of `{name}` would be dense: each step would write {}. From the loss it comes through {}; {} gives \
         every row of `{}` a gradient",
        dense_bytes(&shape, graph.element()),
        listed(&chain),
        called(graph, maker),
        graph.describe(read),
    );
    let shape = show(&shape);
    Diagnostic::new(Code::DenseGradient, graph.value(maker).place, message).help(format!(
        "declare `param {name}: dense{shape}` to accept the cost, or read `{name}` by rows, as `dot(x, {name})` with a csr \
         `x` does; a penalty on all weights is the optimizer's `weight_decay`"
    ))
}

/// The uses by which a dense gradient comes to a parameter, the nearest first, the loss last.
fn dense_uses(
    graph: &Graph,
    parameter: ValueId,
    contributions: &[Vec<Contribution>],
) -> Vec<ValueId> {
    let mut uses: Vec<ValueId> = Vec::new();
    let mut at = parameter;
    let mut every = Vec::new();
    store_every_row(graph, &mut every);
    // A use comes later in the graph than what it uses, so that this ends.
    while let Some(parts) = contributions.get(at.0) {
        let dense = |part: &&Contribution| {
            graph.storage(part.gradient) != Storage::RowSparse || every[part.gradient.0]
        };
        match parts.iter().find(dense).or(parts.first()) {
            Some(part) if part.user > at => {
                uses.push(part.user);
                at = part.user;
            }
            _ => break,
        }
    }
    uses
}

/// `` `penalty` (sum) ``, or `` `square` `` for a value without a name.
fn called(graph: &Graph, id: ValueId) -> String {
    let value = graph.value(id);
    match (&value.name, graph.apply_of(id)) {
        (Some(name), Some(apply)) => format!("`{name}` ({})", apply.operator.name),
        (None, Some(apply)) => format!("`{}`", apply.operator.name),
        _ => format!("`{}`", graph.label(id)),
    }
}

/// `a, b and c`.
fn listed(words: &[String]) -> String {
    match words {
        [] => "its own value".to_owned(),
        [one] => one.clone(),
        [first @ .., last] => format!("{} and {last}", first.join(", ")),
    }
}

//! Contributions of the uses of a value to its gradient, and their sum.

use super::instantiate::derived;
use crate::diagnostics::Diagnostic;
use crate::ir::{Attributes, Graph, ValueId};
use crate::storage::Storage;

/// What a use of a value adds to its gradient, and which use it is.
#[derive(Clone, Copy)]
pub(super) struct Contribution {
    pub(super) gradient: ValueId,
    pub(super) user: ValueId,
}

/// Appends the sum of contributions, of which there is at least one.
pub(super) fn add_up(
    graph: &mut Graph,
    contributions: &[Contribution],
    diagnostics: &mut Vec<Diagnostic>,
) -> ValueId {
    let mut total = contributions[0].gradient;
    for next in &contributions[1..] {
        let place = graph.value(next.user).place;
        let mut parts = [total, next.gradient];
        if parts.iter().any(|part| graph.storage(*part) == Storage::RowSparse) {
            // Entries are added to rows as rows: nothing becomes dense.
            for part in &mut parts {
                if graph.storage(*part) == Storage::Csr {
                    let (operands, none) = (vec![*part], Attributes::default());
                    *part = derived(graph, "row_sparse", operands, none, place, diagnostics);
                }
            }
        }
        total = derived(graph, "add", parts.to_vec(), Attributes::default(), place, diagnostics);
    }
    total
}

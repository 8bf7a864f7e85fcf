//! Declarations of a model: its trained parameters, and the inputs that have names.

use super::context::Emit;
use sparse_core::ir::ValueId;
use sparse_core::storage::Storage;

/// The trained parameters and the storage of their gradients, in the order of declaration.
pub(super) fn trained(emit: &Emit<'_>) -> Vec<(ValueId, Storage)> {
    emit.graph
        .parameters()
        .filter_map(|id| emit.gradient_storage(id).map(|storage| (id, storage)))
        .collect()
}

/// The inputs and labels that the user declared.
pub(super) fn named_inputs<'a>(emit: &Emit<'a>) -> impl Iterator<Item = ValueId> + use<'a> {
    let graph = emit.graph;
    graph.inputs().filter(|id| graph.value(*id).name.is_some())
}

/// Whether a batch has no field of the user's.
pub(super) fn has_no_inputs(emit: &Emit<'_>) -> bool {
    named_inputs(emit).next().is_none()
}

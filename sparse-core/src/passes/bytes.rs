//! Memory of storage types, as formulas for messages.

use crate::ir::{Graph, ValueId};
use crate::shapes::Dim;
use crate::storage::{ElementType, Storage};

/// The bytes of a dense array: `40000·n bytes`.
pub(super) fn dense_bytes(shape: &[Dim], element: ElementType) -> String {
    format!("{} bytes", product(element.bytes(), shape, None))
}

/// The bytes of what a sparse value stores, without row pointers and row ids: `8·nnz(x) bytes`.
pub(super) fn stored_bytes(graph: &Graph, id: ValueId) -> String {
    let (name, bytes) = (graph.describe(id), graph.value(id).element.bytes());
    if graph.storage(id) == Storage::Csr {
        return format!("{}·nnz({name}) bytes", bytes + 4);
    }
    let shape = graph.shape(id);
    let row = shape.get(1..).unwrap_or_default();
    format!("{} bytes", product(bytes, row, Some(format!("rows({name})"))))
}

/// Known factors multiplied, then the names.
fn product(bytes: u64, dims: &[Dim], last: Option<String>) -> String {
    let known = dims.iter().fold(bytes, |product, dim| match dim {
        Dim::Size(size) => product.saturating_mul(*size),
        _ => product,
    });
    let names = dims.iter().filter(|dim| !matches!(dim, Dim::Size(_))).map(Dim::to_string);
    let factors: Vec<String> =
        std::iter::once(known.to_string()).chain(names).chain(last).collect();
    factors.join("·")
}

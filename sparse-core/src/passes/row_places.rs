//! Computed row_sparse values whose gradients are read at some rows only.
//!
//! A row that such a value does not store is 0 whatever the parameters are: its gradient is
//! multiplied by 0, or left out, further down. A row_sparse value that is the copy of a dense
//! array, or a function of a row_sparse parameter as a whole, is none of these: each of its rows
//! has a gradient.

use super::rows::{ranks, within_rows};
use crate::ir::{Apply, Graph, ValueId};
use crate::operators::{BinaryFamily, Kind, ResultRows, RowUse};
use crate::storage::Storage;

/// What is known of the values before. A row may be left out further up, as `row_sparse(z)` does
/// with rows of a csr `z` whose elements a sum left out: which rows there are is another question.
pub(super) struct Known<'a> {
    /// Which are computed from what is trained.
    pub(super) reaches: &'a [bool],
    /// Whether the gradient of a value is read at some places only.
    pub(super) at_places: &'a dyn Fn(ValueId) -> bool,
    /// Which [store every row](super::rows::store_every_row).
    pub(super) every_row: &'a [bool],
}

impl Known<'_> {
    /// Whether the gradient of a row_sparse result is read at some rows only.
    pub(super) fn at_rows(&self, graph: &Graph, id: ValueId, apply: &Apply) -> bool {
        let operator = apply.operator;
        let is_known = |id: &ValueId| !self.reaches[id.0] || (self.at_places)(*id);
        let operand = |name: &str| {
            let index = operator.operand_index(name)?;
            apply.operands.get(index)
        };
        match operator.rows_of_result(&apply.attributes, &ranks(graph, apply)) {
            ResultRows::All => false,
            ResultRows::Nothing | ResultRows::Like => true,
            ResultRows::Named(by) => operand(by.operand()).is_some_and(is_known),
            // What is added may be the copy of a dense array that leaves out rows.
            ResultRows::Added { by, .. } => {
                let rows = |id: &ValueId| graph.storage(*id) == Storage::RowSparse;
                let mut added = apply.operands.iter().filter(|id| rows(id));
                operand(by.operand()).is_some_and(is_known)
                    && added.all(|id| is_known(id) || self.every_row[id.0])
            }
            ResultRows::Read => {
                let mut reads = operator.reads_rows.iter();
                let table = reads.find(|read| read.what == RowUse::AsTheyAre);
                let whole =
                    |id: &ValueId| graph.storage(*id) == Storage::Dense || self.every_row[id.0];
                table
                    .and_then(|read| operand(read.table))
                    .is_some_and(|table| whole(table) || is_known(table))
            }
            ResultRows::Moved(of) => {
                let mut moved = of.iter().map(|name| operand(name));
                moved.all(|operand| operand.is_some_and(is_known))
            }
            ResultRows::Within { .. } => {
                let mut sparse = within_rows(graph, id, apply);
                sparse.retain(|operand| graph.storage(*operand) != Storage::Dense);
                let some = !sparse.is_empty();
                match operator.kind {
                    // What one of them does not store has no part in the gradient of the other.
                    Kind::Binary(BinaryFamily::Intersection, _) => {
                        sparse.iter().any(is_known)
                            && sparse.iter().all(|id| is_known(id) || self.every_row[id.0])
                    }
                    _ => some && sparse.iter().all(is_known),
                }
            }
        }
    }
}

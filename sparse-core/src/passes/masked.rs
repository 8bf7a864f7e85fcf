//! Dense products that a csr masks.

use crate::ir::{AttributeValue, Attributes, Graph, ValueId};
use crate::storage::Storage;

/// The factors of a product of two dense matrices, or of the outer product of two vectors, that is multiplied by a csr of its shape, the csr, and the transpositions. It is
/// needed where the csr stores something, and `sampled_dot` makes it nowhere else.
pub(super) fn product_at_pattern(
    graph: &Graph,
    operands: &[ValueId],
) -> Option<([ValueId; 3], Attributes)> {
    let like = *operands.iter().find(|id| graph.storage(**id) == Storage::Csr)?;
    let product = *operands.iter().find(|id| **id != like)?;
    let apply =
        graph.apply_of(product).filter(|apply| ["dot", "outer"].contains(&apply.operator.name))?;
    let dense = |id: ValueId| graph.storage(id) == Storage::Dense;
    let (lhs, rhs) = (apply.operands[0], apply.operands[1]);
    let ranks = [lhs, rhs].map(|id| graph.shape(id).len());
    let fits = (ranks == [2, 2] || ranks == [1, 1])
        && dense(product)
        && dense(lhs)
        && dense(rhs)
        && graph.shape(product) == graph.shape(like);
    let mut flags = Attributes::default();
    for flag in ["transpose_lhs", "transpose_rhs"] {
        flags.set(flag, AttributeValue::Flag(apply.attributes.flag(flag)));
    }
    fits.then_some(([lhs, rhs, like], flags))
}

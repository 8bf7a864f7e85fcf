//! Sampled products: dense products that are needed at the entries of a csr only.

use crate::ir::{Attributes, Graph, ValueId};
use crate::operators::Operator;
use crate::storage::Storage;

/// A product that is needed where a csr stores something: the operator that makes it there and
/// nowhere else, with its operands, of which the csr is the last one, and its attributes.
pub(super) struct Masked {
    pub(super) operator: &'static Operator,
    pub(super) operands: [ValueId; 3],
    pub(super) attributes: Attributes,
}

/// The product of two dense matrices, or the outer product of two vectors, that is multiplied by a
/// csr of its shape.
pub(super) fn product_at_pattern(graph: &Graph, operands: &[ValueId]) -> Option<Masked> {
    let like = *operands.iter().find(|id| graph.storage(**id) == Storage::Csr)?;
    let product = *operands.iter().find(|id| **id != like)?;
    let apply = graph.apply_of(product)?;
    let operator = graph.operator(apply.operator.at_pattern?)?;
    let &[lhs, rhs] = &apply.operands[..] else { return None };
    let lends_shape = (0..2).any(|index| apply.operator.lends_shape_only(index));
    let dense = |id: ValueId| graph.storage(id) == Storage::Dense;
    let ranks = [lhs, rhs].map(|id| graph.shape(id).len());
    let fits = !lends_shape
        && (ranks == [2, 2] || ranks == [1, 1])
        && dense(product)
        && dense(lhs)
        && dense(rhs)
        && graph.shape(product) == graph.shape(like);
    let mut attributes = Attributes::default();
    for (name, value) in apply.attributes.iter() {
        if let Some(known) = operator.attribute(name) {
            attributes.set(known.name, value);
        }
    }
    fits.then_some(Masked { operator, operands: [lhs, rhs, like], attributes })
}

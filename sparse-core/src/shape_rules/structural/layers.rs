//! Shapes of layers.

use super::scope::Scope;
use crate::shapes::{Dims, ShapeError};

/// The shape of the ids, then that of a row of the table.
pub(super) fn embedding(scope: &mut Scope<'_>) -> Result<Dims, ShapeError> {
    let [ids, table] = scope.operands else {
        return Ok(Dims::new());
    };
    if table.is_empty() {
        return Err(ShapeError::Rank { operand: 1, expected: 2, found: table.clone() });
    }
    Ok(scope
        .unify
        .resolve_all(ids)
        .into_iter()
        .chain(scope.unify.resolve_all(&table[1..]))
        .collect())
}

//! Shapes of layers.

use super::{Dims, Scope, ShapeError};

/// The shape of the ids, then that of a row of the table.
pub(super) fn embedding(scope: &mut Scope<'_>) -> Result<Dims, ShapeError> {
    let [ids, table] = scope.operands else {
        return Ok(Dims::new());
    };
    if table.is_empty() {
        return Err(ShapeError::Attribute {
            message: "`{1}` has no rows: a table has at least one dimension".into(),
        });
    }
    Ok(scope
        .unify
        .resolve_all(ids)
        .into_iter()
        .chain(scope.unify.resolve_all(&table[1..]))
        .collect())
}

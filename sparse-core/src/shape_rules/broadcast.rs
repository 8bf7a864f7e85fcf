//! NumPy's broadcasting: extents equal or 1, aligned from the right.

use crate::shapes::{Dim, Dims, ShapeError, Substitution};

/// The shape of any number of operands together.
pub(super) fn infer(operands: &[Dims], unify: &mut Substitution) -> Result<Dims, ShapeError> {
    let rank = operands.iter().map(Vec::len).max().unwrap_or(0);
    let mut result = Vec::with_capacity(rank);
    for place in 0..rank {
        let mut chosen: Option<(usize, usize, Dim)> = None;
        for (operand, dims) in operands.iter().enumerate() {
            let Some(axis) = (place + dims.len()).checked_sub(rank) else {
                continue;
            };
            let dim = unify.resolve(&dims[axis]);
            match &chosen {
                None => chosen = Some((operand, axis, dim)),
                Some((_, _, Dim::Size(1))) => chosen = Some((operand, axis, dim)),
                Some(_) if dim == Dim::Size(1) => {}
                Some(first) => {
                    if !unify.unify(&first.2, &dim) {
                        let second = (operand, axis, dim);
                        return Err(ShapeError::Mismatch { first: first.clone(), second });
                    }
                }
            }
        }
        result.extend(chosen.map(|(_, _, dim)| dim));
    }
    Ok(result)
}

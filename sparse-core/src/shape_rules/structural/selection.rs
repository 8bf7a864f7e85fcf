//! Shapes of elements that ids select.

use super::scope::{Scope, refuse, senseless};
use crate::attributes::List;
use crate::shapes::{Dim, Dims, ShapeError};

/// The axis replaced by those of the ids.
pub(super) fn take(scope: &mut Scope<'_>) -> Result<Dims, ShapeError> {
    let (mut dims, axis, ids) = (scope.dims(0), scope.axis(0)?, scope.dims(1));
    if scope.attributes.flag("clip") && scope.attributes.flag("wrap") {
        return senseless("ids beyond the ends are clipped or wrapped, not both");
    }
    dims.splice(axis..=axis, ids);
    if dims.len() > List::LONGEST {
        return refuse(format!("the result has {} axes, more than {}", dims.len(), List::LONGEST));
    }
    Ok(dims)
}

/// The shape of the ids, which is that of the array without the axis, or with one element along it.
pub(super) fn pick(scope: &mut Scope<'_>) -> Result<Dims, ShapeError> {
    let (dims, axis, ids) = (scope.dims(0), scope.axis(0)?, scope.dims(1));
    let keep = scope.attributes.flag("keepdims");
    let kept = ids.len() == dims.len();
    let mut found = dims.clone();
    if kept {
        found[axis] = Dim::Size(1)
    } else {
        drop(found.remove(axis))
    }
    if ids.len() != found.len() {
        return Err(ShapeError::Rank { operand: 1, expected: found.len(), found: ids });
    }
    for place in 0..ids.len() {
        if !scope.unify.unify(&found[place], &ids[place]) {
            let of = if kept || place < axis { place } else { place + 1 };
            let (first, second) = ((0, of, found[place].clone()), (1, place, ids[place].clone()));
            return Err(ShapeError::Mismatch { first, second });
        }
    }
    let mut result = dims;
    if keep {
        result[axis] = Dim::Size(1)
    } else {
        drop(result.remove(axis))
    }
    Ok(scope.unify.resolve_all(&result))
}

/// A row for each id.
pub(super) fn one_hot(scope: &mut Scope<'_>) -> Result<Dims, ShapeError> {
    let ids = scope.dims(0);
    let [n] = &ids[..] else {
        return Err(ShapeError::Rank { operand: 0, expected: 1, found: ids });
    };
    match scope.extent(scope.integer("depth")) {
        Ok(depth) => Ok(vec![n.clone(), depth]),
        Err(_) => senseless("`depth` is the number of columns, and cannot be negative"),
    }
}

#[cfg(test)]
mod tests {
    use crate::attributes::AttributeValue::{Flag, Integer};
    use crate::shape_rules::tests::check;

    #[test]
    fn elements_chosen_by_ids_have_the_shape_of_the_ids() {
        assert_eq!(check("take", &[], &["[d, k]", "[n]"]), "[n, k]");
        assert_eq!(check("take", &[("axis", Integer(-1))], &["[d, k]", "[n, m]"]), "[d, n, m]");
        assert_eq!(check("take", &[], &["[d, k]", "[]"]), "[k]");
        let both = [("clip", Flag(true)), ("wrap", Flag(true))];
        assert_eq!(
            check("take", &both, &["[d]", "[n]"]),
            "ids beyond the ends are clipped or wrapped, not both"
        );
        assert_eq!(
            check("take", &[], &["[1, 2, 3, 4]", "[1, 2, 3, 4]"]),
            "the result has 7 axes, more than 6"
        );
        assert_eq!(check("pick", &[], &["[n, k]", "[n]"]), "[n]");
        assert_eq!(check("pick", &[("keepdims", Flag(true))], &["[n, k]", "[n, 1]"]), "[n, 1]");
        assert_eq!(check("pick", &[("axis", Integer(0))], &["[n, k]", "[k]"]), "[k]");
        assert_eq!(
            check("pick", &[], &["[n, k]", "[m]"]),
            "`n` (dimension 0 of `x`) and `m` (dimension 0 of `ids`) must be equal"
        );
        assert_eq!(check("one_hot", &[("depth", Integer(4))], &["[n]"]), "[n, 4]");
        assert_eq!(
            check("one_hot", &[("depth", Integer(-4))], &["[n]"]),
            "`depth` is the number of columns, and cannot be negative"
        );
    }
}

//! Shapes of slices, and of joined arrays.

use super::scope::{Scope, refuse, senseless, too_large, unknown};
use crate::attributes;
use crate::shapes::{Bound, Derived, Dim, Dims, ShapeError, place_of, show};

/// `begin:end:step` of each axis.
pub(super) fn slice(scope: &mut Scope<'_>) -> Result<Dims, ShapeError> {
    let dims = scope.dims(0);
    let lists = ["begin", "end", "step"].map(|name| (name, scope.entries(name)));
    for (name, list) in &lists {
        let given = list.len();
        if given > dims.len() {
            return refuse(format!(
                "`{name}` has {given} entries, but `{{0}}` has the shape {}",
                show(&dims)
            ));
        }
    }
    let axes = dims.iter().enumerate();
    axes.map(|(axis, dim)| {
        let bounds = lists.map(|(_, list)| list.get(axis).map(|entry| scope.bound(entry)));
        cut(scope, dim, axis, bounds)
    })
    .collect()
}

/// `begin:end:step` of one axis.
pub(super) fn slice_axis(scope: &mut Scope<'_>) -> Result<Dims, ShapeError> {
    let (mut dims, axis) = (scope.dims(0), scope.axis(0)?);
    let one = |name: &str| match scope.entries(name) {
        list if list.len() > 1 => senseless(format!("`{name}` is one integer, not {list}")),
        list => Ok(list.get(0).map(|entry| scope.bound(entry))),
    };
    let bounds = [one("begin")?, one("end")?, one("step")?];
    dims[axis] = cut(scope, &dims[axis], axis, bounds)?;
    Ok(dims)
}

/// The extent of a slice of an axis.
fn cut(
    scope: &mut Scope<'_>,
    dim: &Dim,
    axis: usize,
    bounds: [Option<Bound>; 3],
) -> Result<Dim, ShapeError> {
    let [begin, end, step] = &bounds;
    if *step == Some(Bound::Number(0)) {
        return senseless("a step of 0 does not advance: write a positive or negative one");
    }
    // All of it, in either direction.
    let is_all = match step {
        None | Some(Bound::Number(1)) => {
            matches!(begin, None | Some(Bound::Number(0))) && end.is_none()
        }
        Some(Bound::Number(-1)) => begin.is_none() && end.is_none(),
        Some(_) => false,
    };
    if is_all {
        return Ok(dim.clone());
    }
    let part = Derived::Part { of: dim.clone(), bounds };
    scope.unify.derive(part).map_or_else(|| unknown("a part of an axis", dim, 0, axis), Ok)
}

/// The extents of `like` along some axes: no more than there are.
pub(super) fn slice_like(scope: &mut Scope<'_>) -> Result<Dims, ShapeError> {
    let (mut dims, like) = (scope.dims(0), scope.dims(1));
    let axes = scope.attributes.axes("axes");
    let places: Vec<usize> = match axes.0 {
        None => (0..scope.same_rank()?).collect(),
        Some(list) => {
            // Of both, so that an axis counted from the end is the same one.
            let places = list
                .values()
                .map(|axis| Ok((scope.place(axis, &dims)?, scope.place(axis, &like)?)));
            let places: Vec<(usize, usize)> = places.collect::<Result<_, ShapeError>>()?;
            if let Some((a, b)) = places.iter().find(|(a, b)| a != b) {
                return refuse(format!(
                    "an axis counted from the end is dimension {a} of `{{0}}` and dimension {b} of `{{1}}`: count from the start"
                ));
            }
            places.into_iter().map(|(place, _)| place).collect()
        }
    };
    for place in places {
        let (dim, wanted) = (&dims[place], &like[place]);
        if !scope.unify.may_be_part(wanted, dim) {
            return match (dim, wanted) {
                (Dim::Size(extent), Dim::Size(wanted)) => refuse(format!(
                    "dimension {place} of `{{1}}` is {wanted}, more than the {extent} of `{{0}}`"
                )),
                (dim, wanted) if scope.unify.is_known(dim) => {
                    unknown("a part of an axis", wanted, 1, place)
                }
                (dim, _) => unknown("a part of an axis", dim, 0, place),
            };
        }
        dims[place] = wanted.clone();
    }
    Ok(dims)
}

/// Two arrays one after the other.
pub(super) fn concat(scope: &mut Scope<'_>) -> Result<Dims, ShapeError> {
    let rank = scope.same_rank()?;
    let axis = scope.axis(0)?;
    let (lhs, rhs) = (scope.dims(0), scope.dims(1));
    let mut dims = lhs.clone();
    for place in (0..rank).filter(|place| *place != axis) {
        if !scope.unify.unify(&lhs[place], &rhs[place]) {
            let (first, second) = ((0, place, lhs[place].clone()), (1, place, rhs[place].clone()));
            return Err(ShapeError::Mismatch { first, second });
        }
        dims[place] = scope.unify.resolve(&lhs[place]);
    }
    let extents = [&lhs[axis], &rhs[axis]];
    if let Some(operand) = extents.iter().position(|dim| !scope.unify.is_known(dim)) {
        return unknown("joining along an axis", extents[operand], operand, axis);
    }
    let Some(sum) = scope.unify.derive(Derived::Sum(extents.map(Dim::clone))) else {
        return too_large("the extents add up to more than an array can have");
    };
    dims[axis] = sum;
    Ok(dims)
}

/// Two arrays along a new axis.
pub(super) fn stack(scope: &mut Scope<'_>) -> Result<Dims, ShapeError> {
    let axis = scope.operator.integer(scope.attributes, "axis").unwrap_or_default();
    let rank = scope.same_rank()?;
    let (lhs, rhs) = (scope.dims(0), scope.dims(1));
    let Some(place) = place_of(axis, rank + 1) else {
        return Err(ShapeError::Axis { axis, found: lhs });
    };
    if rank == attributes::List::LONGEST {
        return refuse(format!("an array has at most {rank} axes"));
    }
    let mut dims = equal(scope, &lhs, &rhs, |at| at)?;
    dims.insert(place, Dim::Size(2));
    Ok(dims)
}

/// One more array at the end of a stack.
pub(super) fn stack_next(scope: &mut Scope<'_>) -> Result<Dims, ShapeError> {
    let (axis, mut lhs, rhs) = (scope.axis(0)?, scope.dims(0), scope.dims(1));
    let stacked = lhs.remove(axis);
    let one_more = Derived::Sum([stacked.clone(), Dim::Size(1)]);
    let Some(one_more) = scope.unify.derive(one_more) else {
        return unknown("joining along an axis", &stacked, 0, axis);
    };
    if lhs.len() != rhs.len() {
        return Err(ShapeError::Rank { operand: 1, expected: lhs.len(), found: rhs });
    }
    let mut dims = equal(scope, &lhs, &rhs, |at| if at < axis { at } else { at + 1 })?;
    dims.insert(axis, one_more);
    Ok(dims)
}

/// The extents of two operands, which must be the same; `place` is where an extent of the first one
/// stands.
fn equal(
    scope: &mut Scope<'_>,
    lhs: &Dims,
    rhs: &Dims,
    place: impl Fn(usize) -> usize,
) -> Result<Dims, ShapeError> {
    for at in 0..lhs.len() {
        if !scope.unify.unify(&lhs[at], &rhs[at]) {
            let (first, second) = ((0, place(at), lhs[at].clone()), (1, at, rhs[at].clone()));
            return Err(ShapeError::Mismatch { first, second });
        }
    }
    Ok(scope.unify.resolve_all(lhs))
}

#[cfg(test)]
mod tests {
    use crate::attributes::AttributeValue::{Integer, List};
    use crate::attributes::{self, AttributeValue};
    use crate::shape_rules::tests::check;

    fn list(entries: &[Option<i64>]) -> AttributeValue {
        List(attributes::List::new(entries))
    }

    #[test]
    fn slices_have_the_shape_of_their_bounds() {
        let begin = |entries: &[Option<i64>]| [("begin", list(entries))];
        assert_eq!(check("slice", &begin(&[Some(1)]), &["[5, k]"]), "[4, k]");
        assert_eq!(check("slice", &begin(&[None, Some(-2)]), &["[n, 5]"]), "[n, 2]");
        assert_eq!(check("slice", &[("step", list(&[Some(-1), Some(2)]))], &["[n, 5]"]), "[n, 3]");
        assert_eq!(
            check("slice", &begin(&[Some(1)]), &["[n, 5]"]),
            "a part of an axis needs to know the extent `n` (dimension 0 of `x`): declare it as a number or a constant"
        );
        assert_eq!(
            check("slice", &begin(&[None, None, Some(1)]), &["[n, 5]"]),
            "`begin` has 3 entries, but `x` has the shape [n, 5]"
        );
        assert_eq!(
            check("slice", &[("step", list(&[Some(0)]))], &["[4]"]),
            "a step of 0 does not advance: write a positive or negative one"
        );
        assert_eq!(check("slice", &begin(&[None, Some(-2)]), &["[n, K]"]), "[n, K[-2:]]");
        let every = [("begin", list(&[Some(1)])), ("step", list(&[Some(2), Some(-1)]))];
        assert_eq!(check("slice", &every, &["[K, L]"]), "[K[1::2], L]");
        let axis = |axis| [("axis", Integer(axis)), ("begin", Integer(1)), ("end", Integer(3))];
        assert_eq!(check("slice_axis", &axis(-1), &["[n, 5]"]), "[n, 2]");
        assert_eq!(
            check("slice_axis", &axis(2), &["[n, 5]"]),
            "axis 2 is beyond the shape [n, 5] of `x`"
        );
        assert_eq!(
            check("slice_axis", &[("begin", list(&[Some(1), None]))], &["[4, 5]"]),
            "`begin` is one integer, not [1, _]"
        );
    }

    #[test]
    fn slice_like_takes_the_extents_of_another_array() {
        assert_eq!(check("slice_like", &[], &["[5, n]", "[3, n]"]), "[3, n]");
        assert_eq!(check("slice_like", &[("axes", Integer(0))], &["[5, n]", "[3]"]), "[3, n]");
        assert_eq!(
            check("slice_like", &[], &["[5, n]", "[6, n]"]),
            "dimension 0 of `like` is 6, more than the 5 of `x`"
        );
        assert_eq!(
            check("slice_like", &[], &["[5, n]", "[3, m]"]),
            "a part of an axis needs to know the extent `n` (dimension 1 of `x`): declare it as a number or a constant"
        );
        assert_eq!(
            check("slice_like", &[], &["[K, L]", "[3, M]"]),
            "[3, M] where K ≥ 3 where L ≥ M"
        );
        assert_eq!(
            check("slice_like", &[], &["[5, K]", "[3, m]"]),
            "a part of an axis needs to know the extent `m` (dimension 1 of `like`): declare it as a number or a constant"
        );
        assert_eq!(
            check("slice_like", &[("axes", Integer(-1))], &["[5, n]", "[3]"]),
            "an axis counted from the end is dimension 1 of `x` and dimension 0 of `like`: count from the start"
        );
    }

    #[test]
    fn stacked_arrays_have_a_new_axis() {
        assert_eq!(check("stack", &[], &["[n, k]", "[n, k]"]), "[2, n, k]");
        assert_eq!(check("stack", &[("axis", Integer(-1))], &["[n, k]", "[n, k]"]), "[n, k, 2]");
        assert_eq!(check("stack", &[], &["[]", "[]"]), "[2]");
        assert_eq!(
            check("stack", &[], &["[n, k]", "[n, l]"]),
            "`k` (dimension 1 of `lhs`) and `l` (dimension 1 of `rhs`) must be equal"
        );
        assert_eq!(
            check("stack", &[("axis", Integer(3))], &["[n, k]", "[n, k]"]),
            "axis 3 is beyond the shape [n, k] of `lhs`"
        );
        assert_eq!(
            check("stack", &[], &["[1, 1, 1, 1, 1, 1]", "[1, 1, 1, 1, 1, 1]"]),
            "an array has at most 6 axes"
        );
        let middle = [("axis", Integer(1))];
        assert_eq!(check("stack_next", &middle, &["[n, 2, k]", "[n, k]"]), "[n, 3, k]");
        assert_eq!(check("stack_next", &middle, &["[n, K, k]", "[n, k]"]), "[n, K + 1, k]");
        assert_eq!(
            check("stack_next", &middle, &["[n, 2, k]", "[n, l]"]),
            "`k` (dimension 2 of `lhs`) and `l` (dimension 1 of `rhs`) must be equal"
        );
    }

    #[test]
    fn joined_arrays_have_the_sum_of_extents() {
        assert_eq!(check("concat", &[], &["[5, k]", "[3, k]"]), "[8, k]");
        assert_eq!(check("concat", &[("axis", Integer(-1))], &["[n, 5]", "[n, 3]"]), "[n, 8]");
        assert_eq!(
            check("concat", &[], &["[5, k]", "[3, l]"]),
            "`k` (dimension 1 of `lhs`) and `l` (dimension 1 of `rhs`) must be equal"
        );
        assert_eq!(
            check("concat", &[], &["[n, k]", "[3, k]"]),
            "joining along an axis needs to know the extent `n` (dimension 0 of `lhs`): declare it as a number or a constant"
        );
        assert_eq!(
            check("concat", &[], &["[n, k]", "[3]"]),
            "`rhs` has shape [3], but 2 dimensions are needed"
        );
        let most = format!("[{}]", u64::MAX);
        assert_eq!(
            check("concat", &[], &[&most, "[1]"]),
            "the extents add up to more than an array can have"
        );
    }
}

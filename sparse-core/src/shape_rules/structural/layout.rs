//! Shapes of operators that reshape, reorder and repeat elements.

use super::super::reduce;
use super::scope::{Scope, refuse, senseless, too_large, unknown};
use crate::attributes::{Axes, Entry, List};
use crate::shapes::{Derived, Dim, Dims, ShapeError, place_of, show};

/// The extents of `shape`, with 0 for the extent at its place and an open entry for what is left.
pub(super) fn reshape(scope: &mut Scope<'_>) -> Result<Dims, ShapeError> {
    let dims = scope.dims(0);
    let Some(list) = scope.attributes.entries("shape") else {
        return refuse("the attribute `shape` is needed, such as `shape = [0, _]`");
    };
    let mut result = Vec::new();
    let mut open = None;
    for (place, entry) in list.entries().enumerate() {
        result.push(match entry {
            None | Some(Entry::Integer(-1)) if open.is_some() => {
                return senseless("only one entry of `shape` can be left open");
            }
            None | Some(Entry::Integer(-1)) => {
                open = Some(place);
                Dim::Size(1)
            }
            Some(Entry::Integer(0)) => match dims.get(place) {
                Some(dim) => dim.clone(),
                None => {
                    return refuse(format!(
                        "entry {place} of `shape` is 0, but `{{0}}` has the shape {}",
                        show(&dims)
                    ));
                }
            },
            Some(extent) => match scope.extent(extent) {
                Ok(extent) => extent,
                Err(extent) => return senseless(format!("{extent} is no extent")),
            },
        });
    }
    let (size, names) = factors(scope, &dims);
    let (wanted, mut used) = factors(scope, &result);
    let mut left: Vec<Dim> = Vec::new();
    for name in names {
        match used.iter().position(|known| *known == name) {
            Some(at) => drop(used.remove(at)),
            None => left.push(name),
        }
    }
    if open.is_none() && may_be_equal(scope, (size, &left), (wanted, &used)) {
        return Ok(result);
    }
    let fits = used.is_empty();
    let fitting = match (open, &left[..]) {
        (None, []) if fits && size == wanted => return Ok(result),
        (Some(place), [one]) if fits && size == wanted => Some((place, one.clone())),
        (Some(place), left) if fits && wanted > 0 && size % wanted == 0 => {
            let rest = left.iter().cloned().chain([Dim::Size(size / wanted)]);
            product(scope, rest).map(|extent| (place, extent))
        }
        _ => None,
    };
    match fitting {
        Some((place, extent)) => {
            result[place] = extent;
            Ok(result)
        }
        None => refuse(format!(
            "{} elements of `{{0}}` do not fit the shape {}",
            show(&dims),
            show(&result)
        )),
    }
}

/// Whether two products may be equal, of numbers and of constants of Rust, which is assumed then.
fn may_be_equal(scope: &mut Scope<'_>, given: (u64, &[Dim]), wanted: (u64, &[Dim])) -> bool {
    let mut dims = given.1.iter().chain(wanted.1);
    if (given.1.is_empty() && wanted.1.is_empty()) || !dims.all(|dim| scope.unify.is_known(dim)) {
        return false;
    }
    let mut all = |(size, names): (u64, &[Dim])| {
        product(scope, names.iter().cloned().chain([Dim::Size(size)]))
    };
    match (all(given), all(wanted)) {
        (Some(given), Some(wanted)) => scope.unify.unify(&given, &wanted),
        _ => false,
    }
}

/// The product of the extents that are numbers, and the others, of products what they are products
/// of.
fn factors(scope: &Scope<'_>, dims: &[Dim]) -> (u64, Vec<Dim>) {
    let mut found = (1_u64, Vec::new());
    for dim in dims {
        let derived = match dim {
            Dim::Named(name) => scope.unify.derivation(name),
            _ => None,
        };
        match (dim, derived) {
            (Dim::Size(extent), _) => found.0 = found.0.saturating_mul(*extent),
            (_, Some(Derived::Product(terms))) => {
                let (size, names) = factors(scope, &scope.unify.resolve_all(terms));
                found.0 = found.0.saturating_mul(size);
                found.1.extend(names);
            }
            (dim, _) => found.1.push(dim.clone()),
        }
    }
    found
}

/// The product of extents that are known before a batch comes.
fn product(scope: &mut Scope<'_>, dims: impl Iterator<Item = Dim>) -> Option<Dim> {
    dims.filter(|dim| *dim != Dim::Size(1)).try_fold(Dim::Size(1), |product, dim| match product {
        Dim::Size(1) => Some(dim),
        product => scope.unify.derive(Derived::Product([product, dim])),
    })
}

pub(super) fn flatten(scope: &mut Scope<'_>) -> Result<Dims, ShapeError> {
    let dims = scope.dims(0);
    let Some((rows, rest)) = dims.split_first() else {
        return Ok(vec![Dim::Size(1), Dim::Size(1)]);
    };
    let columns = product(scope, rest.iter().cloned());
    let unknown_axis = dims.iter().rposition(|dim| !scope.unify.is_known(dim));
    match (columns, unknown_axis) {
        (Some(columns), _) => Ok(vec![rows.clone(), columns]),
        (None, Some(axis)) if axis > 0 => {
            unknown("making one axis of several", &dims[axis], 0, axis)
        }
        (None, _) => too_large("the result has more elements than an array can have"),
    }
}

pub(super) fn expand_dims(scope: &mut Scope<'_>) -> Result<Dims, ShapeError> {
    let mut dims = scope.dims(0);
    let axis = scope.operator.integer(scope.attributes, "axis").unwrap_or_default();
    let Some(place) = place_of(axis, dims.len() + 1) else {
        return Err(ShapeError::Axis { axis, found: dims });
    };
    if dims.len() == List::LONGEST {
        return refuse(format!("an array has at most {} axes", List::LONGEST));
    }
    dims.insert(place, Dim::Size(1));
    Ok(dims)
}

pub(super) fn squeeze(scope: &mut Scope<'_>) -> Result<Dims, ShapeError> {
    let dims = scope.dims(0);
    for axis in scope.attributes.list("axis").unwrap_or_default().values() {
        let place = scope.place(axis, &dims)?;
        if dims[place] != Dim::Size(1) {
            return refuse(format!("dimension {place} of `{{0}}` is {}, not 1", dims[place]));
        }
    }
    let gone = Axes(Some(squeezed(scope)));
    let stays = |place: &usize| !gone.contain(*place, dims.len());
    Ok((0..dims.len()).filter(stays).map(|place| dims[place].clone()).collect())
}

/// The axes that [`squeeze`] removes.
pub(super) fn squeezed(scope: &Scope<'_>) -> List {
    let dims = scope.dims(0);
    let is_one = |place: &i64| dims[*place as usize] == Dim::Size(1);
    let ones = || List::from(&(0..dims.len() as i64).filter(is_one).collect::<Vec<_>>()[..]);
    scope.attributes.list("axis").unwrap_or_else(ones)
}

pub(super) fn permute(scope: &mut Scope<'_>) -> Result<Dims, ShapeError> {
    let dims = scope.dims(0);
    let axes = scope.attributes.list("axes").unwrap_or_default();
    let places: Option<Vec<usize>> = axes.values().map(|axis| place_of(axis, dims.len())).collect();
    let mut sorted = places.clone().unwrap_or_default();
    sorted.sort_unstable();
    let Some(places) = places.filter(|_| sorted.iter().copied().eq(0..dims.len())) else {
        return refuse(format!(
            "`axes` is {axes}, which is not every axis of the shape {} once",
            show(&dims)
        ));
    };
    let mut result = dims.clone();
    for (to, from) in places.into_iter().enumerate() {
        if scope.attributes.flag("inverse") {
            result[from] = dims[to].clone()
        } else {
            result[to] = dims[from].clone()
        }
    }
    Ok(result)
}

pub(super) fn swap_axes(scope: &mut Scope<'_>) -> Result<Dims, ShapeError> {
    let mut dims = scope.dims(0);
    let axis = |name: &str| scope.operator.integer(scope.attributes, name).unwrap_or_default();
    let (first, second) = (scope.place(axis("first"), &dims)?, scope.place(axis("second"), &dims)?);
    dims.swap(first, second);
    Ok(dims)
}

pub(super) fn reverse(scope: &mut Scope<'_>) -> Result<Dims, ShapeError> {
    let dims = scope.dims(0);
    for axis in scope.attributes.axes("axis").0.unwrap_or_default().values() {
        scope.place(axis, &dims)?;
    }
    Ok(dims)
}

/// That of the operand, which must have the axis.
pub(super) fn along(scope: &mut Scope<'_>) -> Result<Dims, ShapeError> {
    scope.axis(0)?;
    Ok(scope.dims(0))
}

/// So many elements along an axis.
pub(super) fn topk(scope: &mut Scope<'_>) -> Result<Dims, ShapeError> {
    let (mut dims, axis) = (scope.dims(0), scope.axis(0)?);
    let k = scope.integer("k");
    let chosen = match scope.extent(k) {
        Ok(chosen) if scope.unify.may_be_at_least(&chosen, 1) => chosen,
        _ => return senseless(format!("`k` is {k}: at least 1 is chosen")),
    };
    if !scope.unify.may_be_part(&chosen, &dims[axis]) {
        return match &dims[axis] {
            Dim::Size(extent) => {
                refuse(format!("`k` is {k}, more than the {extent} of dimension {axis} of `{{0}}`"))
            }
            dim => unknown("choosing some along an axis", dim, 0, axis),
        };
    }
    dims[axis] = chosen;
    Ok(dims)
}

pub(super) fn tile(scope: &mut Scope<'_>) -> Result<Dims, ShapeError> {
    let dims = scope.dims(0);
    let reps = scope.entries("reps");
    if reps.len() != dims.len() {
        return refuse(format!("`reps` is {reps}, but `{{0}}` has the shape {}", show(&dims)));
    }
    let each = dims.iter().enumerate();
    each.map(|(axis, dim)| times(scope, dim, reps.get(axis).unwrap_or(Entry::Integer(1)), axis))
        .collect()
}

pub(super) fn repeat(scope: &mut Scope<'_>) -> Result<Dims, ShapeError> {
    let (mut dims, axis) = (scope.dims(0), scope.axis(0)?);
    let repeats = scope.integer("repeats");
    dims[axis] = times(scope, &dims[axis], repeats, axis)?;
    Ok(dims)
}

/// An extent, repeated.
fn times(scope: &mut Scope<'_>, dim: &Dim, repeats: Entry, axis: usize) -> Result<Dim, ShapeError> {
    let Ok(repeats) = scope.extent(repeats) else {
        return senseless(format!("an axis cannot be repeated {repeats} times"));
    };
    if repeats == Dim::Size(1) {
        return Ok(dim.clone());
    }
    if !scope.unify.is_known(dim) {
        return unknown("repeating", dim, 0, axis);
    }
    let product = Derived::Product([dim.clone(), repeats]);
    match scope.unify.derive(product) {
        Some(extent) => Ok(extent),
        None => too_large("the result has more elements than an array can have"),
    }
}

/// One axis gone, or all.
pub(super) fn position(scope: &mut Scope<'_>) -> Result<Dims, ShapeError> {
    let axes = scope.attributes.list("axis");
    if axes.is_some_and(|axes| axes.len() != 1) {
        return senseless("positions are along one axis, or in the whole array");
    }
    reduce::infer(scope.attributes, &scope.dims(0))
}

#[cfg(test)]
mod tests {
    use crate::attributes::AttributeValue::{Flag, Integer, List};
    use crate::attributes::{self, AttributeValue, Entry};
    use crate::shape_rules::tests::check;

    fn list(entries: &[Option<i64>]) -> AttributeValue {
        List(attributes::List::new(entries))
    }

    #[test]
    fn reshaped_arrays_keep_their_number_of_elements() {
        let reshape =
            |entries: &[Option<i64>], x: &str| check("reshape", &[("shape", list(entries))], &[x]);
        assert_eq!(reshape(&[Some(0), None], "[n, 4, 2]"), "[n, 8]");
        assert_eq!(reshape(&[None, Some(2), Some(2)], "[n, 4]"), "[n, 2, 2]");
        assert_eq!(reshape(&[Some(4), Some(-1)], "[2, 6]"), "[4, 3]");
        assert_eq!(reshape(&[None], "[n, 4]"), "[n, 4] elements of `x` do not fit the shape [1]");
        assert_eq!(
            reshape(&[Some(5)], "[2, 6]"),
            "[2, 6] elements of `x` do not fit the shape [5]"
        );
        assert_eq!(reshape(&[None, None], "[4]"), "only one entry of `shape` can be left open");
        assert_eq!(reshape(&[Some(0), None], "[n, K, 4]"), "[n, K * 4]");
        assert_eq!(reshape(&[Some(2), None], "[K, 6, L]"), "[2, K * L * 3]");
        assert_eq!(
            reshape(&[Some(0), None], "[n, m, 4]"),
            "[n, m, 4] elements of `x` do not fit the shape [n, 1]"
        );
        assert_eq!(check("flatten", &[], &["[n, 4, 2]"]), "[n, 8]");
        assert_eq!(check("flatten", &[], &["[n, K, 1]"]), "[n, K]");
        assert_eq!(check("flatten", &[], &["[n, 3, K, 4]"]), "[n, 3 * K * 4]");
        assert_eq!(check("flatten", &[], &["[n, m]"]), "[n, m]");
        assert_eq!(
            check("flatten", &[], &["[n, m, K]"]),
            "making one axis of several needs to know the extent `m` (dimension 1 of `x`): declare it as a number or a constant"
        );
        assert_eq!(
            check("flatten", &[], &["[2, 4294967296, 4294967296]"]),
            "the result has more elements than an array can have"
        );
        assert_eq!(check("expand_dims", &[("axis", Integer(-1))], &["[n, k]"]), "[n, k, 1]");
        assert_eq!(check("squeeze", &[], &["[n, 1, 1]"]), "[n]");
        assert_eq!(
            check("squeeze", &[("axis", Integer(0))], &["[n, 1]"]),
            "dimension 0 of `x` is n, not 1"
        );
        let axes = ("axes", list(&[Some(2), Some(0), Some(1)]));
        assert_eq!(check("permute", &[axes], &["[a, b, c]"]), "[c, a, b]");
        assert_eq!(check("permute", &[axes, ("inverse", Flag(true))], &["[a, b, c]"]), "[b, c, a]");
        assert_eq!(
            check("permute", &[axes], &["[a, b]"]),
            "`axes` is [2, 0, 1], which is not every axis of the shape [a, b] once"
        );
        assert_eq!(check("swap_axes", &[("second", Integer(-1))], &["[a, b, c]"]), "[c, b, a]");
    }

    #[test]
    fn repeated_arrays_have_longer_axes() {
        assert_eq!(check("tile", &[("reps", list(&[None, Some(2)]))], &["[n, 3]"]), "[n, 6]");
        assert_eq!(
            check("tile", &[("reps", list(&[Some(3), Some(2)]))], &["[K, 3]"]),
            "[K * 3, 6]"
        );
        assert_eq!(check("repeat", &[("repeats", Integer(3))], &["[2, n]"]), "[6, n]");
        assert_eq!(
            check("repeat", &[("repeats", Integer(3)), ("axis", Integer(1))], &["[2, K]"]),
            "[2, K * 3]"
        );
        assert_eq!(
            check("repeat", &[("repeats", Integer(-3))], &["[2]"]),
            "an axis cannot be repeated -3 times"
        );
        assert_eq!(check("argmax", &[("axis", Integer(1))], &["[n, k]"]), "[n]");
        assert_eq!(
            check("argmax", &[("axis", list(&[Some(0), Some(1)]))], &["[n, k]"]),
            "positions are along one axis, or in the whole array"
        );
    }

    #[test]
    fn l8_extents_may_be_constants_of_rust() {
        let named = |name: &str| Some(Entry::named(name));
        let whole = |integer| Some(Entry::Integer(integer));
        let list = |entries: &[Option<Entry>]| {
            AttributeValue::NamedList(attributes::NamedList::new(entries))
        };
        let reshape = |entries: &[Option<Entry>], x: &str| {
            check("reshape", &[("shape", list(entries))], &[x])
        };
        let pairs = [whole(0), named("FIELDS"), whole(4)];
        assert_eq!(reshape(&pairs, "[n, 32]"), "[n, FIELDS, 4] where FIELDS * 4 = 32");
        assert_eq!(reshape(&pairs, "[n, FIELDS, 2, 2]"), "[n, FIELDS, 4]");
        assert_eq!(reshape(&pairs, "[n, FLAT]"), "[n, FIELDS, 4] where FLAT = FIELDS * 4");
        assert_eq!(
            reshape(&pairs, "[n, d]"),
            "[n, d] elements of `x` do not fit the shape [n, FIELDS, 4]"
        );
        assert_eq!(reshape(&[whole(0), named("K"), None], "[n, K, 6]"), "[n, K, 6]");
        let k = AttributeValue::named("K");
        assert_eq!(check("topk", &[("k", k)], &["[n, 5]"]), "[n, K] where K ≥ 1 where 5 ≥ K");
        assert_eq!(check("repeat", &[("repeats", k)], &["[2, n]"]), "[2 * K, n]");
        let reps = list(&[named("K"), whole(2)]);
        assert_eq!(check("tile", &[("reps", reps)], &["[3, 5]"]), "[3 * K, 10]");
        assert_eq!(check("one_hot", &[("depth", k)], &["[n]"]), "[n, K]");
        let end = [("begin", list(&[None, named("B")])), ("end", list(&[None, named("K")]))];
        assert_eq!(check("slice", &end, &["[n, 9]"]), "[n, 9[B:K]]");
    }

    #[test]
    fn sorted_elements_keep_their_shape() {
        assert_eq!(check("sort", &[], &["[n, k]"]), "[n, k]");
        assert_eq!(
            check("sort", &[("axis", Integer(2))], &["[n, k]"]),
            "axis 2 is beyond the shape [n, k] of `x`"
        );
        assert_eq!(check("topk", &[("k", Integer(3))], &["[n, 5]"]), "[n, 3]");
        assert_eq!(check("topk_ids", &[("axis", Integer(0))], &["[5, k]"]), "[1, k]");
        assert_eq!(
            check("topk", &[("k", Integer(6))], &["[n, 5]"]),
            "`k` is 6, more than the 5 of dimension 1 of `x`"
        );
        assert_eq!(check("topk", &[("k", Integer(6))], &["[n, K]"]), "[n, 6] where K ≥ 6");
        assert_eq!(check("topk", &[("k", Integer(0))], &["[5]"]), "`k` is 0: at least 1 is chosen");
        assert_eq!(
            check("topk", &[], &["[n, k]"]),
            "choosing some along an axis needs to know the extent `k` (dimension 1 of `x`): declare it as a number or a constant"
        );
    }
}

//! Shape rules that depend on attributes: one function each, by the name that the operator's row gives.

use super::{Bound, Derived, Dim, Dims, Fault, ShapeError, Substitution, place_of, show};
use crate::ir::{AttributeValue, Attributes, Entry, NamedList};
use crate::operators::Operator;

mod layers;
mod layout;
mod parts;
mod selection;

/// What a rule may read and unify.
struct Scope<'a> {
    operator: &'a Operator,
    attributes: &'a Attributes,
    operands: &'a [Dims],
    unify: &'a mut Substitution,
}

/// A rule: its name, what it says for the documentation, and the function.
struct Rule {
    name: &'static str,
    text: &'static str,
    shape: fn(&mut Scope<'_>) -> Result<Dims, ShapeError>,
}

const fn rule(
    name: &'static str,
    text: &'static str,
    shape: fn(&mut Scope<'_>) -> Result<Dims, ShapeError>,
) -> Rule {
    Rule { name, text, shape }
}

/// The rules.
const RULES: &[Rule] = &[
    rule("embedding", "that of `ids`, then that of a row of `weight`", layers::embedding),
    rule(
        "slice",
        "every axis cut to its `begin:end:step`, the axes beyond the lists whole",
        parts::slice,
    ),
    rule("slice_axis", "one axis cut to `begin:end:step`", parts::slice_axis),
    rule("slice_like", "the extents of `like` along `axes`", parts::slice_like),
    rule("concat", "the extents along `axis` added up, the others equal", parts::concat),
    rule("stack", "that of the operands with a 2 at `axis`", parts::stack),
    rule("stack_next", "that of `lhs` with one more along `axis`", parts::stack_next),
    rule("reshape", "`shape`, with as many elements", layout::reshape),
    rule("flatten", "`[n, …] -> [n, elements of a row]`", layout::flatten),
    rule("expand_dims", "that of `x` with a 1 at `axis`", layout::expand_dims),
    rule("squeeze", "that of `x` without axes of extent 1", layout::squeeze),
    rule("permute", "that of `x` in another order", layout::permute),
    rule("swap_axes", "that of `x` with two axes exchanged", layout::swap_axes),
    rule("reverse", "that of `x`", layout::reverse),
    rule("tile", "that of `x` times `reps`", layout::tile),
    rule("repeat", "that of `x`, `axis` times `repeats`", layout::repeat),
    rule(
        "position",
        "that of `x` without `axis`, or with one element along it; none without an axis",
        layout::position,
    ),
    rule("along", "that of `x`", layout::along),
    rule("topk", "that of `x` with `k` elements along `axis`", layout::topk),
    rule("take", "that of `x` with the axis replaced by the axes of `ids`", selection::take),
    rule("pick", "that of `x` without the axis, or with one element along it", selection::pick),
    rule("one_hot", "`[n] -> [n, depth]`", selection::one_hot),
];

/// The shape by the rule of a name.
pub(super) fn infer(
    name: &str,
    operator: &Operator,
    attributes: &Attributes,
    operands: &[Dims],
    unify: &mut Substitution,
) -> Result<Dims, ShapeError> {
    let Some(rule) = RULES.iter().find(|rule| rule.name == name) else {
        panic!("no shape rule `{name}` of `{}`", operator.name)
    };
    (rule.shape)(&mut Scope { operator, attributes, operands, unify })
}

/// As [`shapes::settled`](super::settled).
pub(super) fn settled(
    name: &str,
    operator: &Operator,
    attributes: &Attributes,
    operands: &[Dims],
    unify: &mut Substitution,
) -> Option<(&'static str, AttributeValue)> {
    let scope = Scope { operator, attributes, operands, unify };
    (name == "squeeze").then(|| ("axis", AttributeValue::List(layout::squeezed(&scope))))
}

/// What a rule that has only a name says.
pub(crate) fn describe(name: &str) -> Option<&'static str> {
    RULES.iter().find(|rule| rule.name == name).map(|rule| rule.text)
}

impl Scope<'_> {
    /// The extents of an operand, as far as they are known.
    fn dims(&self, operand: usize) -> Dims {
        self.unify.resolve_all(&self.operands[operand])
    }

    /// The list that an attribute is; an empty one where it is not given.
    fn entries(&self, name: &str) -> NamedList {
        self.attributes.entries(name).unwrap_or_default()
    }

    /// The extent that an attribute is: an integer, its default, or a constant of Rust.
    fn integer(&self, name: &str) -> Entry {
        let named = self.attributes.name(name).map(Entry::Named);
        named.unwrap_or_else(|| {
            Entry::Integer(self.operator.integer(self.attributes, name).unwrap_or_default())
        })
    }

    /// An entry as an extent; the integer where that is negative.
    fn extent(&self, entry: Entry) -> Result<Dim, i64> {
        match entry {
            Entry::Integer(integer) => u64::try_from(integer).map(Dim::Size).map_err(|_| integer),
            Entry::Named(name) => Ok(self.unify.resolve(&Dim::Named(name.to_owned()))),
        }
    }

    /// An entry as a bound of a part.
    fn bound(&self, entry: Entry) -> Bound {
        match entry {
            Entry::Integer(integer) => Bound::Number(integer),
            Entry::Named(name) => Bound::Extent(Dim::Named(name.to_owned())),
        }
    }

    /// The position of the attribute `axis` among the axes of an operand.
    fn axis(&self, operand: usize) -> Result<usize, ShapeError> {
        let axis = self.operator.integer(self.attributes, "axis").unwrap_or_default();
        self.place(axis, &self.dims(operand))
    }

    fn place(&self, axis: i64, dims: &Dims) -> Result<usize, ShapeError> {
        place_of(axis, dims.len()).ok_or_else(|| ShapeError::Axis { axis, found: dims.clone() })
    }

    /// The operands' rank, which must be one.
    fn same_rank(&self) -> Result<usize, ShapeError> {
        let expected = self.operands[0].len();
        match self.operands.iter().position(|dims| dims.len() != expected) {
            None => Ok(expected),
            Some(operand) => Err(ShapeError::Rank { operand, expected, found: self.dims(operand) }),
        }
    }
}

/// An attribute that does not fit the operands.
fn refuse<T>(message: impl Into<String>) -> Result<T, ShapeError> {
    Err(ShapeError::Attribute { fault: Fault::Fit, message: message.into() })
}

/// A value that an attribute cannot have.
fn senseless<T>(message: impl Into<String>) -> Result<T, ShapeError> {
    Err(ShapeError::Attribute { fault: Fault::Value, message: message.into() })
}

/// A result that is no array.
fn too_large<T>(message: impl Into<String>) -> Result<T, ShapeError> {
    Err(ShapeError::Attribute { fault: Fault::TooLarge, message: message.into() })
}

/// What cannot be done with an extent that is known only with the model or a batch.
fn unknown<T>(what: &str, dim: &Dim, operand: usize, axis: usize) -> Result<T, ShapeError> {
    let message = format!(
        "{what} needs to know the extent `{dim}` (dimension {axis} of `{{{operand}}}`): declare it as a number or a constant"
    );
    Err(ShapeError::Attribute { fault: Fault::NamedExtent, message })
}

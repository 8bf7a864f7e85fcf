//! Shape rules that depend on attributes: one function each, by the name that the operator's row
//! gives.

use crate::attributes::{AttributeValue, Attributes};
use crate::operators::Operator;
use crate::shapes::{Dims, ShapeError, Substitution};
use scope::Scope;

mod layers;
mod layout;
mod parts;
mod scope;
mod selection;

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

/// As [`settled`](super::settled) of all shape rules.
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

/// The words of a rule that has only a name, for the documentation.
pub fn describe(name: &str) -> Option<&'static str> {
    RULES.iter().find(|rule| rule.name == name).map(|rule| rule.text)
}

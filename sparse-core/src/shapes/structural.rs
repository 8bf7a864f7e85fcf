//! Shape rules that depend on attributes: one function each, by the name that the operator's row gives.

use super::{Dims, ShapeError, Substitution};
use crate::ir::Attributes;
use crate::operators::Operator;

/// What a rule may read and unify.
pub(super) struct Scope<'a> {
    pub(super) operator: &'a Operator,
    pub(super) attributes: &'a Attributes,
    pub(super) operands: &'a [Dims],
    pub(super) unify: &'a mut Substitution,
}

type Rule = fn(&mut Scope<'_>) -> Result<Dims, ShapeError>;

/// The rules by name.
const RULES: &[(&str, Rule)] = &[];

/// The shape by the rule of a name.
pub(super) fn infer(
    name: &str,
    operator: &Operator,
    attributes: &Attributes,
    operands: &[Dims],
    unify: &mut Substitution,
) -> Result<Dims, ShapeError> {
    let Some((_, rule)) = RULES.iter().find(|(known, _)| *known == name) else {
        panic!("no shape rule `{name}` of `{}`", operator.name)
    };
    rule(&mut Scope { operator, attributes, operands, unify })
}

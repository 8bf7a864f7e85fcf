//! Shape rules of the operator table: the shape of an operator's result.
//!
//! A shape rule is one of
//!
//! - `[m, k] [k, n] -> [m, n]`: ranks and equal extents by letter; an operand read transposed is
//!   turned first; a number is that extent; where ranks differ, alternatives are separated by `|`;
//! - `same same -> same`, `same same -> []`: all operands have one shape;
//! - `same same rows -> []`: the last operand has one element for each row of the first;
//! - `any any -> like`: the result has the shape of the operand called `like`;
//! - `broadcast`: NumPy's rule, extents equal or 1, aligned from the right;
//! - `reduce`: the axes of `axis` removed (or kept as 1 with `keepdims`), everything without an
//!   axis; with `exclude` all others;
//! - the name of a function of `structural`: shapes that depend on attributes.
//!
//! Optional operands come last in a rule, and are skipped where they are not given.
//! `… where delta > 0` says what must hold of attributes that are numbers.

use crate::attributes::{AttributeValue, Attributes};
use crate::formula::Formula;
use crate::operators::Operator;
use crate::shapes::{Dims, Fault, ShapeError, Substitution};

mod broadcast;
mod letters;
mod reduce;
mod structural;

pub use structural::describe;

/// The shape of an operator's result.
///
/// # Errors
///
/// Which operand or extent does not fit.
///
/// # Panics
///
/// If the row's shape rule is not well formed: the table's tests rule it out.
pub fn infer(
    operator: &Operator,
    attributes: &Attributes,
    operands: &[Dims],
    unify: &mut Substitution,
) -> Result<Dims, ShapeError> {
    let (rule, condition) = match operator.shape.split_once(" where ") {
        Some((rule, condition)) => (rule, Some(condition)),
        None => (operator.shape, None),
    };
    if let Some(condition) = condition {
        check_attributes(condition, operator, attributes, unify)?;
    }
    match rule {
        "broadcast" => broadcast::infer(operands, unify),
        "reduce" => reduce::infer(attributes, &operands[0]),
        rule if rule.contains("->") => {
            letters::alternatives(rule, operator, attributes, operands, unify)
        }
        name => structural::infer(name, operator, attributes, operands, unify),
    }
}

/// An attribute as the operator's shape rule understood it, where a kernel that sees the extents of
/// a batch could understand it otherwise: axes that are gone because their extent is 1 are those of
/// which the compiler knows it, and not others that are 1 in a batch of one row.
pub fn settled(
    operator: &Operator,
    attributes: &Attributes,
    operands: &[Dims],
    unify: &mut Substitution,
) -> Option<(&'static str, AttributeValue)> {
    structural::settled(operator.shape, operator, attributes, operands, unify)
}

/// The name of an expression of Rust without its braces.
fn unbraced(name: &str) -> &str {
    name.trim_start_matches('{').trim_end_matches('}')
}

/// What must hold of attributes that are numbers.
fn check_attributes(
    condition: &str,
    operator: &Operator,
    attributes: &Attributes,
    unify: &mut Substitution,
) -> Result<(), ShapeError> {
    let named = operator
        .attributes
        .iter()
        .filter_map(|attribute| Some((attribute.name, attributes.name(attribute.name)?)));
    let words: String = named
        .map(|(attribute, name)| format!(", and `{attribute}` is `{}`", unbraced(name)))
        .collect();
    if !words.is_empty()
        && let Ok(formula) = crate::formula::parse(condition)
    {
        let number = |name: &str| operator.number_of(attributes, name);
        return match formula.with(&number).folded() {
            Formula::Number(0.0) => {
                let message = format!("`{condition}` must hold{words}");
                Err(ShapeError::Attribute { fault: Fault::Value, message })
            }
            Formula::Number(_) => Ok(()),
            formula => {
                unify.assume_condition(formula, format!("`{condition}`{words}"));
                Ok(())
            }
        };
    }
    if operator.scalar(condition, attributes, &|_| None).is_ok_and(|value| value != 0.0) {
        return Ok(());
    }
    let values = operator.attributes.iter().filter_map(|attribute| {
        let value = operator.number(attributes, attribute.name)?;
        Some(format!(", and `{}` is {value}", attribute.name))
    });
    let values: String = values.collect();
    let message = format!("`{condition}` must hold{values}");
    Err(ShapeError::Attribute { fault: Fault::Value, message })
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::operators::find;
    use crate::shapes::{Dim, Relation, names_of, show};

    fn dims(text: &str) -> Dims {
        names_of(text)
            .into_iter()
            .map(|name| name.parse().map_or_else(|_| Dim::Named(name.into()), Dim::Size))
            .collect()
    }

    /// The result's shape, or the error in words. Names in capitals are constants, and what is
    /// assumed of them comes after the shape.
    pub(crate) fn check(
        operator: &str,
        attributes: &[(&'static str, crate::attributes::AttributeValue)],
        operands: &[&str],
    ) -> String {
        let operator = find(operator).unwrap();
        let operands: Vec<Dims> = operands.iter().map(|text| dims(text)).collect();
        let names: Vec<&str> = operator.operands.to_vec();
        let mut unify = Substitution::default();
        for dim in operands.iter().flatten().map(Dim::to_string) {
            if dim.starts_with(char::is_uppercase) {
                unify.declare_constant(&dim);
            }
        }
        for (_, value) in attributes {
            let names = match value {
                AttributeValue::Named(name) => vec![*name],
                AttributeValue::NamedList(list) => {
                    let entries = list.entries().flatten();
                    entries
                        .filter_map(|entry| match entry {
                            crate::attributes::Entry::Named(name) => Some(name),
                            crate::attributes::Entry::Integer(_) => None,
                        })
                        .collect()
                }
                _ => Vec::new(),
            };
            names.into_iter().for_each(|name| unify.declare_constant(name));
        }
        match infer(operator, &Attributes::from(attributes), &operands, &mut unify) {
            Ok(result) => {
                let assumed = unify.take_assumed().into_iter().map(|assumed| {
                    let relation = match assumed.relation {
                        Relation::Equal => "=",
                        Relation::AtLeast => "≥",
                    };
                    format!(" where {} {relation} {}", assumed.extent, assumed.other)
                });
                show(&result) + &assumed.collect::<String>()
            }
            Err(error) => error.describe(&names),
        }
    }

    #[test]
    fn shapes_of_products_are_inferred() {
        use crate::attributes::AttributeValue::Flag;
        assert_eq!(check("dot", &[], &["[n, d]", "[d, 1]"]), "[n, 1]");
        assert_eq!(check("dot", &[("transpose_lhs", Flag(true))], &["[n, d]", "[n, 3]"]), "[d, 3]");
        assert_eq!(
            check("dot", &[], &["[n, d]", "[e, 1]"]),
            "`d` (dimension 1 of `lhs`) and `e` (dimension 0 of `rhs`) must be equal"
        );
        assert_eq!(check("dot", &[], &["[n, d]", "[d]"]), "[n]");
        assert_eq!(check("dot", &[("transpose_lhs", Flag(true))], &["[n, d]", "[n]"]), "[d]");
        assert_eq!(check("dot", &[], &["[n]", "[n, d]"]), "[d]");
        assert_eq!(check("dot", &[], &["[n]", "[n]"]), "[]");
        assert_eq!(
            check("dot", &[("transpose_rhs", Flag(true))], &["[n, d]", "[d]"]),
            "`transpose_rhs` turns a matrix, but `rhs` has the shape [d]"
        );
        assert_eq!(
            check("dot", &[], &["[n, d]", "[d, 1, 1]"]),
            "`rhs` has shape [d, 1, 1], but 2 dimensions are needed"
        );
        assert_eq!(check("outer", &[], &["[n]", "[d]"]), "[n, d]");
    }

    #[test]
    fn broadcasting_aligns_extents_from_the_right() {
        assert_eq!(check("add", &[], &["[n, k]", "[k]"]), "[n, k]");
        assert_eq!(check("add", &[], &["[1]", "[n, 1]"]), "[n, 1]");
        assert_eq!(check("add", &[], &["[n, 1]", "[1, k]"]), "[n, k]");
        assert_eq!(check("add", &[], &["[]", "[n, k]"]), "[n, k]");
        assert_eq!(
            check("add", &[], &["[n, k]", "[3]"]),
            "`k` (dimension 1 of `lhs`) and `3` (dimension 0 of `rhs`) must be equal"
        );
    }

    #[test]
    fn reductions_and_losses_have_their_shapes() {
        use crate::attributes::AttributeValue::{Flag, Integer};
        assert_eq!(check("sum", &[], &["[n, k]"]), "[]");
        assert_eq!(check("sum", &[("axis", Integer(-1))], &["[n, k]"]), "[n]");
        assert_eq!(
            check("mean", &[("axis", Integer(0)), ("keepdims", Flag(true))], &["[n, k]"]),
            "[1, k]"
        );
        assert_eq!(
            check("sum", &[("axis", Integer(2))], &["[n, k]"]),
            "axis 2 is beyond the shape [n, k] of `x`"
        );
        assert_eq!(check("squared_error", &[], &["[n, 1]", "[n, 1]"]), "[]");
        assert_eq!(check("softmax_cross_entropy_gradient", &[], &["[n, 20]", "[n]"]), "[n, 20]");
        assert_eq!(check("softmax_cross_entropy", &[], &["[n, k]", "[n, k]", "[n]"]), "[]");
        assert_eq!(check("logistic", &[], &["[n, 1]", "[n, 1]", "[n]"]), "[]");
        assert_eq!(check("logistic", &[], &["[]", "[]", "[]"]), "[]");
        assert_eq!(
            check("logistic", &[], &["[n, 1]", "[n, 1]", "[n, 1]"]),
            "`weight` has shape [n, 1], but 1 dimension is needed"
        );
        assert_eq!(
            check("logistic", &[], &["[n, 1]", "[n, 1]", "[m]"]),
            "`n` (dimension 0 of `score`) and `m` (dimension 0 of `weight`) must be equal"
        );
        assert_eq!(
            check("huber", &[("delta", Integer(0))], &["[n]", "[n]"]),
            "`delta > 0` must hold, and `delta` is 0"
        );
        assert_eq!(check("reduce_to", &[], &["[n, k]", "[k]"]), "[k]");
    }

    #[test]
    fn inferred_extents_take_the_first_known_value() {
        let mut unify = Substitution::default();
        let unknown = unify.fresh();
        let operands = [vec![Dim::Named("n".into()), unknown.clone()], dims("[d, 3]")];
        let result = infer(find("dot").unwrap(), &Attributes::default(), &operands, &mut unify);
        assert_eq!(show(&result.unwrap()), "[n, 3]");
        assert_eq!(unify.resolve(&unknown), Dim::Named("d".into()));
    }
}

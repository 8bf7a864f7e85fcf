//! Scalar formulas of the operator table as CUDA C++.

use sparse_core::formula::{BinaryOperator, Formula, parse};
use sparse_core::operators::scalar::function;
use sparse_core::operators::{AttributeKind, Operator};
use std::fmt::Write as _;

/// A formula of an operator's row as an expression over numbers of the type `REAL`. Its variables are `x`, `y`, `g`, `s` and `n`,
/// its attributes elements of `attributes`, in the order of [`numbers`].
///
/// # Panics
///
/// If the table's formula is not well formed: its tests rule it out.
pub(crate) fn formula(operator: &Operator, text: &str) -> String {
    let mut expression = String::new();
    match parse(text) {
        Ok(formula) => write(&mut expression, operator, &formula),
        Err(message) => panic!("{message}"),
    }
    expression
}

/// The attributes of an operator that are numbers, in the order of its row.
pub(super) fn numbers(operator: &Operator) -> impl Iterator<Item = &'static str> {
    operator
        .attributes
        .iter()
        .filter(|attribute| {
            matches!(attribute.kind, AttributeKind::Number(_) | AttributeKind::Integer(_))
        })
        .map(|attribute| attribute.name)
}

fn write(out: &mut String, operator: &Operator, formula: &Formula) {
    // Writing to a string does not fail.
    match formula {
        Formula::Number(number) => {
            let _ = write!(out, "REAL({number:?})");
        }
        Formula::Name(name) => {
            let _ = match numbers(operator).position(|number| number == name) {
                Some(position) => write!(out, "REAL(attributes.at[{position}])"),
                None => write!(out, "{name}"),
            };
        }
        Formula::Negate(inner) => {
            out.push_str("(-");
            write(out, operator, inner);
            out.push(')');
        }
        Formula::Binary(sign, lhs, rhs) => {
            let compares = sign.comparison().is_some();
            out.push_str(if compares { "REAL(" } else { "(" });
            write(out, operator, lhs);
            let _ = write!(out, " {} ", BinaryOperator::symbol(*sign));
            write(out, operator, rhs);
            out.push(')');
        }
        Formula::Call(name, operands, _) => {
            let Some(known) = function(name) else { panic!("no scalar function `{name}`") };
            let _ = write!(out, "formula_{}<REAL>(", known.method);
            for (position, operand) in operands.iter().enumerate() {
                if position > 0 {
                    out.push_str(", ");
                }
                write(out, operator, operand);
            }
            out.push(')');
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use sparse_core::operators::find;

    #[test]
    fn a_formula_is_an_expression_of_its_functions() {
        let operator = find("clip").unwrap();
        assert_eq!(
            formula(operator, "max(x, lower) * -2 > 1"),
            "REAL((formula_at_least<REAL>(x, REAL(attributes.at[0])) * (-REAL(2.0))) > REAL(1.0))"
        );
    }
}

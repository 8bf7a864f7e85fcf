//! Scalar formulas, of the operator table and of update rules, as CUDA C++.

use sparse_core::formula::{BinaryOperator, Formula, parse};
use sparse_core::operators::scalar::function;
use sparse_core::operators::{AttributeKind, Operator};
use std::fmt::Write as _;

/// A formula of an operator's row as an expression over numbers of the type `REAL`. Its variables
/// are `x`, `y`, `g`, `s`, `t` and `n`, its attributes elements of `attributes`, in the order of
/// [`numbers`].
///
/// # Panics
///
/// If the table's formula is not well formed: its tests rule it out.
pub fn formula(operator: &Operator, text: &str) -> String {
    expression(REAL, text, &|name| {
        let position = numbers(operator).position(|number| number == name)?;
        Some(format!("REAL(attributes.at[{position}])"))
    })
}

/// The same with its attributes as numbers in the text.
///
/// # Panics
///
/// As [`formula`].
pub fn formula_of_numbers(operator: &Operator, text: &str, given: &[f64]) -> String {
    expression(REAL, text, &|name| {
        let position = numbers(operator).position(|number| number == name)?;
        Some(format!("REAL({:?})", given.get(position)?))
    })
}

/// The type of elements, in texts.
const REAL: &str = "REAL";

/// A formula as an expression over numbers of the type `real`. `known` writes the names that are
/// not variables of the text.
///
/// # Panics
///
/// If the formula is not well formed.
pub fn expression(real: &str, text: &str, known: &dyn Fn(&str) -> Option<String>) -> String {
    let mut expression = String::new();
    match parse(text) {
        Ok(formula) => write(&mut expression, real, known, &formula),
        Err(message) => panic!("{message}"),
    }
    expression
}

/// The attributes of an operator that are numbers, in the order of its row.
pub fn numbers(operator: &Operator) -> impl Iterator<Item = &'static str> {
    operator
        .attributes
        .iter()
        .filter(|attribute| {
            matches!(attribute.kind, AttributeKind::Number(_) | AttributeKind::Integer(_))
        })
        .map(|attribute| attribute.name)
}

fn write(out: &mut String, real: &str, known: &dyn Fn(&str) -> Option<String>, formula: &Formula) {
    // Writing to a string does not fail.
    match formula {
        Formula::Number(number) => {
            let _ = write!(out, "{real}({number:?})");
        }
        Formula::Name(name) => {
            out.push_str(known(name).as_deref().unwrap_or(name));
        }
        Formula::Negate(inner) => {
            out.push_str("(-");
            write(out, real, known, inner);
            out.push(')');
        }
        Formula::Binary(sign, lhs, rhs) => {
            let compares = sign.comparison().is_some();
            out.push_str(if compares { real } else { "" });
            out.push('(');
            write(out, real, known, lhs);
            let _ = write!(out, " {} ", BinaryOperator::symbol(*sign));
            write(out, real, known, rhs);
            out.push(')');
        }
        Formula::Call(name, operands, _) => {
            let Some(function) = function(name) else { panic!("no scalar function `{name}`") };
            let _ = write!(out, "formula_{}<{real}>(", function.method);
            for (position, operand) in operands.iter().enumerate() {
                if position > 0 {
                    out.push_str(", ");
                }
                write(out, real, known, operand);
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

//! Scalar formulas, of the operator table and of update rules, as CUDA C++.

use sparse_core::formula::{BinaryOperator, Formula, parse};
use sparse_core::operators::scalar::function;
use sparse_core::operators::{AttributeKind, Operator};
use sparse_core::update_rules::Recurrence;
use std::fmt::Write as _;

/// A formula of an operator's row as an expression over numbers of the type `REAL`. Its variables are `x`, `y`, `g`, `s`, `t` and `n`,
/// its attributes elements of `attributes`, in the order of [`numbers`].
///
/// # Panics
///
/// If the table's formula is not well formed: its tests rule it out.
pub(crate) fn formula(operator: &Operator, text: &str) -> String {
    expression(text, &|name| {
        let position = numbers(operator).position(|number| number == name)?;
        Some(format!("REAL(attributes.at[{position}])"))
    })
}

/// The same with its attributes as numbers in the text.
///
/// # Panics
///
/// As [`formula`].
pub(super) fn formula_of_numbers(operator: &Operator, text: &str, given: &[f64]) -> String {
    expression(text, &|name| {
        let position = numbers(operator).position(|number| number == name)?;
        Some(format!("REAL({:?})", given.get(position)?))
    })
}

/// The recurrence of an update rule as statements over numbers of the type `REAL`: they change the weight `w` by its gradient `g` and
/// the first elements of `state`, which have these names. Numbers of the step are elements of `step`.
///
/// # Panics
///
/// If a formula is not well formed: the tests of the rules rule it out.
pub(crate) fn recurrence(rule: &Recurrence, states: &[&str]) -> String {
    let first = [("q", rule.gradient)];
    statements(rule, states, first.iter().chain(rule.assignments), "")
}

/// Of a rule with a state of the row: statements that make the `term` of a weight, and those that change the state by the `mean`.
///
/// # Panics
///
/// As [`recurrence`].
pub(crate) fn row_recurrence(rule: &Recurrence, states: &[&str]) -> [String; 2] {
    let Some(row) = &rule.row else { return [String::new(), String::new()] };
    let term = [("q", rule.gradient), ("term", row.term)];
    [
        statements(rule, states, term.iter(), "term"),
        statements(rule, states, row.assignments.iter(), ""),
    ]
}

fn statements<'a>(
    rule: &Recurrence,
    states: &[&str],
    assignments: impl Iterator<Item = &'a (&'a str, &'a str)>,
    result: &str,
) -> String {
    let mut text = String::new();
    let mut declared = vec!["w", result];
    // Writing to a string does not fail.
    for (position, state) in states.iter().enumerate() {
        let _ = write!(text, "REAL {state} = state[{position}]; ");
        declared.push(state);
    }
    for (name, formula) in assignments {
        let value = expression(formula, &|name| {
            let position = rule.numbers.iter().position(|number| *number == name)?;
            Some(format!("REAL(step.at[{position}])"))
        });
        let declaration = if declared.contains(name) { "" } else { "REAL " };
        let _ = write!(text, "{declaration}{name} = {value}; ");
        declared.push(name);
    }
    for (position, state) in states.iter().enumerate() {
        let _ = write!(text, "state[{position}] = {state}; ");
    }
    text
}

fn expression(text: &str, known: &dyn Fn(&str) -> Option<String>) -> String {
    let mut expression = String::new();
    match parse(text) {
        Ok(formula) => write(&mut expression, known, &formula),
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

fn write(out: &mut String, known: &dyn Fn(&str) -> Option<String>, formula: &Formula) {
    // Writing to a string does not fail.
    match formula {
        Formula::Number(number) => {
            let _ = write!(out, "REAL({number:?})");
        }
        Formula::Name(name) => {
            out.push_str(known(name).as_deref().unwrap_or(name));
        }
        Formula::Negate(inner) => {
            out.push_str("(-");
            write(out, known, inner);
            out.push(')');
        }
        Formula::Binary(sign, lhs, rhs) => {
            let compares = sign.comparison().is_some();
            out.push_str(if compares { "REAL(" } else { "(" });
            write(out, known, lhs);
            let _ = write!(out, " {} ", BinaryOperator::symbol(*sign));
            write(out, known, rhs);
            out.push(')');
        }
        Formula::Call(name, operands, _) => {
            let Some(function) = function(name) else { panic!("no scalar function `{name}`") };
            let _ = write!(out, "formula_{}<REAL>(", function.method);
            for (position, operand) in operands.iter().enumerate() {
                if position > 0 {
                    out.push_str(", ");
                }
                write(out, known, operand);
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

    #[test]
    fn a_recurrence_declares_what_it_names_once() {
        let rule = Recurrence {
            numbers: &["rate"],
            gradient: "-g",
            row: None,
            assignments: &[("h", "h + q"), ("w", "w - rate * h")],
        };
        assert_eq!(
            recurrence(&rule, &["h"]),
            "REAL h = state[0]; REAL q = (-g); h = (h + q); w = (w - (REAL(step.at[0]) * h)); state[0] = h; "
        );
    }
}

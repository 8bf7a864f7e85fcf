//! Conditions of storage rules: where a function keeps zeros, and which rows an operator moves.

use super::{Condition, Given, Kind};
use crate::attributes::{Entry, place_of};
use crate::formula::{BinaryOperator, Formula, scalar};

/// What an element-wise function is where its array operand is 0.
#[derive(Clone, Debug, PartialEq)]
pub enum AtZero {
    /// It is 0, whatever numbers stand for names.
    Stays,
    /// It is not, or may not be.
    Moves,
    /// It is 0 where this is not 0, a [constant expression](Formula::is_constant) in names of
    /// constants of Rust.
    If(Formula),
}

impl Given<'_> {
    fn is_extent(&self, name: &str) -> bool {
        self.names.is_some_and(|names| !names.is_constant_number(name))
    }

    /// What the element-wise function is at 0. With names it is 0 where it is so for numbers of
    /// every kind: extents are integers from 1 on.
    pub fn at_zero(&self) -> AtZero {
        const OF_CONSTANTS: [f64; 6] = [-1.5, 0.5, 1.0, 2.0, -1.0, 3.0];
        const OF_EXTENTS: [f64; 6] = [1.0, 2.0, 3.0, 5.0, 8.0, 1000.0];
        let zero = || Formula::Number(0.0);
        let elements = self.numbers.iter().map(|number| number.clone().unwrap_or_else(zero));
        let elements: Vec<Formula> = elements.collect();
        let at_zero = match self.operator.elementwise_of(self.attributes, &elements) {
            Ok(Formula::Number(0.0)) => return AtZero::Stays,
            Ok(Formula::Number(_)) | Err(_) => return AtZero::Moves,
            Ok(formula) => formula,
        };
        let names = at_zero.names();
        let extents = names.iter().filter(|name| self.is_extent(name)).count();
        let is_zero = |round: usize| {
            let value = |name: &str| {
                let at = names.iter().position(|known| *known == name)?;
                let samples = if self.is_extent(name) { OF_EXTENTS } else { OF_CONSTANTS };
                Some(samples[(round + at * (1 + round / samples.len())) % samples.len()])
            };
            scalar::value(&at_zero, &value) == Ok(0.0)
        };
        match () {
            () if (0..2 * OF_EXTENTS.len()).all(is_zero) => AtZero::Stays,
            () if extents > 0 => AtZero::Moves,
            () => stays_if(at_zero),
        }
    }
}

/// When a formula of constants is 0.
fn stays_if(at_zero: Formula) -> AtZero {
    let compare = |operator, formula| {
        Formula::Binary(operator, Box::new(formula), Box::new(Formula::Number(0.0)))
    };
    if let Formula::Call(name, operands, _) = &at_zero
        && let ("pow", [Formula::Number(0.0), exponent]) = (name.as_str(), &operands[..])
        && exponent.is_constant()
    {
        return AtZero::If(compare(BinaryOperator::Greater, exponent.clone()));
    }
    if at_zero.is_constant() {
        AtZero::If(compare(BinaryOperator::Equal, at_zero))
    } else {
        AtZero::Moves
    }
}

impl Condition {
    /// The element-wise function is 0 where its array operand is 0, with the numbers given.
    pub const ZERO_STAYS: Condition = Condition {
        text: "where f(0) = 0",
        suffix: "",
        holds: |given| given.at_zero() != AtZero::Moves,
    };

    /// Positions are those of rows.
    pub const ALONG_ROWS: Condition = Condition {
        text: "along axis 0",
        suffix: "_by_rows",
        holds: |given| {
            let operator = given.operator;
            let of = operator.operand_index("like").or(operator.operand_index("x")).unwrap_or(0);
            let rank = given.ranks.get(of).copied().unwrap_or(0);
            let axis = operator.integer(given.attributes, "axis").unwrap_or(0);
            place_of(axis, rank) == Some(0)
        },
    };

    /// A part of an array has not all of its rows.
    pub const ROWS_CUT: Condition = Condition {
        text: "where axis 0 is cut",
        suffix: "_by_rows",
        holds: |given| {
            let (operator, attributes) = (given.operator, given.attributes);
            let rank = given.ranks.last().copied().unwrap_or(0);
            let first = |name| attributes.entries(name).and_then(|list| list.get(0));
            match operator.integer(attributes, "axis") {
                Some(axis) => place_of(axis, rank) == Some(0),
                None if operator.attribute("axes").is_some() => {
                    rank > 0 && attributes.axes("axes").contain(0, rank)
                }
                None => {
                    let begins = first("begin").is_none_or(|entry| entry == Entry::Integer(0));
                    !begins || first("end").is_some()
                }
            }
        },
    };

    /// A part of an array has other rows than it, or has them in another order.
    pub const ROWS_MOVED: Condition = Condition {
        text: "where axis 0 is cut or turned",
        suffix: "",
        holds: |given| {
            let step = given.attributes.list("step").and_then(|list| list.get(0));
            let along_rows = given.operator.attribute("axis").is_none();
            (Condition::ROWS_CUT.holds)(given) || along_rows && step.is_some_and(|step| step != 1)
        },
    };

    /// The reduction leaves the first axis as it is.
    pub const ROWS_STAY: Condition = Condition {
        text: "where axis 0 is kept",
        suffix: "_by_rows",
        holds: |given| {
            let rank = given.ranks.first().copied().unwrap_or(0);
            let named = given.attributes.axes("axis").contain(0, rank);
            matches!(given.operator.kind, Kind::Reduction(_))
                && rank > 0
                && named == given.attributes.flag("exclude")
        },
    };
}

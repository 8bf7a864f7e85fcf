//! Values of an operator's formulas, attributes, conditions and gradients.

use super::{AttributeKind, Kind, Operator};
use crate::attributes::Attributes;
use crate::formula::{Formula, parse, scalar};

impl Operator {
    /// The value of a scalar formula of the row, which names attributes that are numbers or flags;
    /// `variable` knows the others.
    ///
    /// # Errors
    ///
    /// The name of a variable or function that is not known, or of a required attribute that is not
    /// given.
    pub fn scalar(
        &self,
        formula: &str,
        attributes: &Attributes,
        variable: &dyn Fn(&str) -> Option<f64>,
    ) -> Result<f64, String> {
        let formula = parse(formula)?;
        let known = |name: &str| variable(name).or_else(|| self.number(attributes, name));
        scalar::value(&formula, &known)
    }

    /// The value of an element-wise operator for one element (of each operand); see
    /// [`Operator::scalar`].
    ///
    /// # Errors
    ///
    /// As [`Operator::scalar`]; for an operator of another kind its name.
    pub fn elementwise(&self, attributes: &Attributes, elements: &[f64]) -> Result<f64, String> {
        let (formula, names) = match self.kind {
            Kind::Unary(formula) => (formula, ["x", ""]),
            Kind::Binary(family, formula) if family.is_gradient() => {
                (formula, ["g", self.operands[1]])
            }
            Kind::Binary(_, formula) => (formula, ["x", "y"]),
            _ => return Err(self.name.to_owned()),
        };
        let variable = |name: &str| {
            names.iter().position(|known| *known == name).and_then(|at| elements.get(at).copied())
        };
        self.scalar(formula, attributes, &variable)
    }

    /// The value of an element-wise operator of numbers, as far as they are known: a number, or a
    /// formula in names of constants of Rust and dimensions.
    ///
    /// # Errors
    ///
    /// As [`Operator::elementwise`].
    pub fn elementwise_of(
        &self,
        attributes: &Attributes,
        elements: &[Formula],
    ) -> Result<Formula, String> {
        let numbers = elements.iter().map(|element| match element {
            Formula::Number(number) => Some(*number),
            _ => None,
        });
        let named = self.attributes.iter().any(|known| attributes.name(known.name).is_some());
        if let Some(numbers) = numbers.collect::<Option<Vec<f64>>>().filter(|_| !named) {
            return self.elementwise(attributes, &numbers).map(Formula::Number);
        }
        let (formula, names) = match self.kind {
            Kind::Unary(formula) => (formula, ["x", ""]),
            Kind::Binary(family, formula) if family.is_gradient() => {
                (formula, ["g", self.operands[1]])
            }
            Kind::Binary(_, formula) => (formula, ["x", "y"]),
            _ => return Err(self.name.to_owned()),
        };
        let of = |name: &str| match names.iter().position(|known| *known == name) {
            Some(at) => elements.get(at).cloned(),
            None => self.number_of(attributes, name),
        };
        Ok(parse(formula)?.with(&of).folded())
    }

    /// What [`number`](Self::number) is, or the constant of Rust that stands for it.
    pub fn number_of(&self, attributes: &Attributes, name: &str) -> Option<Formula> {
        let named = attributes.name(name).map(|name| Formula::Name(name.to_owned()));
        named.or_else(|| self.number(attributes, name).map(Formula::Number))
    }

    /// An attribute as a number, or its default: an integer or number itself, a flag as 0 or 1.
    /// `None` of a constant of Rust.
    pub fn number(&self, attributes: &Attributes, name: &str) -> Option<f64> {
        if attributes.name(name).is_some() {
            return None;
        }
        match self.attribute(name)?.kind {
            AttributeKind::Flag => Some(f64::from(u8::from(attributes.flag(name)))),
            AttributeKind::Integer(default) => {
                attributes.number(name).or(default.map(|default| default as f64))
            }
            AttributeKind::Number(default) => attributes.number(name).or(default),
            _ => None,
        }
    }

    /// An attribute that is an integer, or its default. `None` of a constant of Rust.
    pub fn integer(&self, attributes: &Attributes, name: &str) -> Option<i64> {
        if attributes.name(name).is_some() {
            return None;
        }
        match self.attribute(name)?.kind {
            AttributeKind::Integer(default) => attributes.integer(name).or(default),
            _ => None,
        }
    }

    /// The gradient that applies under given attributes and for operands of given ranks, parsed.
    ///
    /// # Panics
    ///
    /// If a formula of the table does not parse: the table's tests rule it out.
    pub fn gradient_of(
        &self,
        operand: usize,
        attributes: &Attributes,
        ranks: &[usize],
    ) -> Option<Result<Formula, &'static str>> {
        let name = self.operands[operand];
        self.gradient
            .iter()
            .filter(|gradient| gradient.operand == name)
            .find(|gradient| self.holds(gradient.when, attributes, ranks))
            .map(|gradient| {
                gradient.formula.map(|text| match parse(text) {
                    Ok(formula) => formula,
                    Err(message) => panic!("gradient of `{}`: {message}", self.name),
                })
            })
    }

    /// Whether conditions on attributes and on the ranks of operands hold, written as in
    /// [`Gradient::when`](super::Gradient::when).
    pub fn holds(
        &self,
        conditions: Option<&str>,
        attributes: &Attributes,
        ranks: &[usize],
    ) -> bool {
        let rank = |name: &str| {
            let of = self.operand_index(name.strip_suffix("_rank")?)?;
            ranks.get(of).map(|rank| *rank as f64)
        };
        let holds = |condition: &str| match condition.strip_prefix('!') {
            Some(negated) => !attributes.flag(negated),
            None => self.scalar(condition, attributes, &rank).is_ok_and(|value| value != 0.0),
        };
        conditions.is_none_or(|conditions| conditions.split(" and ").all(holds))
    }
}

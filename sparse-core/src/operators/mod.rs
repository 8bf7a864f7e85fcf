//! The operator table: everything about an operator is stated in one row.
//!
//! From a row follow inference, the gradient's storage, the kernel's name, the traits of the macro-free API,
//! the documentation and the tests. Nothing about an operator is written anywhere else but its kernel.

mod dot;
mod elementwise;
mod loss;
mod reduce;
mod storage_casts;
mod structure;
mod unary;

pub mod scalar;

mod rule;

pub use rule::{Pattern, Rule, Signature};

use crate::formula::Formula;

/// One operator: a row of the table.
#[derive(Debug)]
pub struct Operator {
    /// The name in the language.
    pub name: &'static str,
    /// One sentence, for the documentation.
    pub summary: &'static str,
    /// The operands' names, in order. An operand called `like` lends its shape (and pattern) only: it is not
    /// read and has no gradient.
    pub operands: &'static [&'static str],
    /// The attributes, in order.
    pub attributes: &'static [Attribute],
    /// The shape rule; see [`shapes`](crate::shapes) for the grammar.
    pub shape: &'static str,
    /// The storage rules. A combination that no rule covers is refused.
    pub storage: &'static [Rule],
    /// For each operand that has one, its gradient.
    pub gradient: &'static [Gradient],
    /// Which kernels carry it out.
    pub kind: Kind,
    /// What to write instead where a sparse operand is refused; `{}` stands for the operand.
    pub alternative: Option<&'static str>,
    /// True for rows that the language does not offer: gradients of other rows.
    pub internal: bool,
}

/// An attribute of an operator: a value known at compile time.
#[derive(Debug)]
pub struct Attribute {
    /// The name in the language.
    pub name: &'static str,
    /// What values it takes.
    pub kind: AttributeKind,
}

/// What values an attribute takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AttributeKind {
    /// `true` or `false`; `false` where it is not given.
    Flag,
    /// An axis, negative from the end; all axes where it is not given.
    Axis,
    /// A storage type for the result; the rule decides where it is not given.
    Storage,
}

/// The gradient with respect to one operand.
#[derive(Debug)]
pub struct Gradient {
    /// The operand.
    pub operand: &'static str,
    /// A flag (`transpose_rhs`, `!transpose_rhs`) that must hold, or nothing.
    pub when: Option<&'static str>,
    /// A formula over operators in `grad`, `out` and the operands, or why there is none.
    pub formula: Result<&'static str, &'static str>,
}

/// Which kernels carry an operator out.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Kind {
    /// Its own kernel folder, one kernel a rule.
    Kernel,
    /// A scalar function of `x`: the unary kernels with this formula.
    Unary(&'static str),
    /// A scalar function of `x` and `y`: the kernels of a family with this formula.
    Binary(BinaryFamily, &'static str),
    /// A loss: the mean over the rows of a function of a row of scores and a label. The operator
    /// of this name is its gradient.
    Loss {
        /// The operator that gives the gradient with respect to the first operand.
        gradient: &'static str,
        /// What the label means.
        label: LossLabel,
    },
    /// The gradient of a loss: the kernels of the loss of this name.
    LossGradient(&'static str),
}

/// What a binary function does where an operand stores nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BinaryFamily {
    /// f(0, 0) = 0: the result stores what either operand stores (add, subtract).
    Union,
    /// f(0, y) = 0: the result stores what the sparse operands all store (multiply).
    Intersection,
    /// f(0, y) = 0 for the left operand only (divide).
    Left,
    /// A function of `g` and `x`, the gradient arriving at a unary function and its operand (or result), with
    /// f(0, x) = 0, where the function's derivative at 0 is 0, or taken as 0: the result stores what both store. A dense
    /// `g` meets a csr `x` on its pattern.
    Gradient,
    /// The same where the derivative at 0 is another number: an element that `x` does not store is 0 and has a gradient all
    /// the same, so that the result stores what `g` stores.
    SlopedGradient,
}

impl BinaryFamily {
    /// Whether the formula is in `g` and `x` or `y`, and not in `x` and `y`.
    pub fn is_gradient(self) -> bool {
        matches!(self, BinaryFamily::Gradient | BinaryFamily::SlopedGradient)
    }
}

/// What the label of a loss means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LossLabel {
    /// Any finite number.
    Real,
    /// -1 or 0, or 1, or a probability.
    Binary,
    /// A class id.
    Class,
}

/// Every operator, family by family, in the order of the documentation.
pub fn all() -> impl Iterator<Item = &'static Operator> {
    [
        dot::ALL,
        elementwise::ALL,
        unary::ALL,
        reduce::ALL,
        structure::ALL,
        storage_casts::ALL,
        loss::ALL,
    ]
    .into_iter()
    .flatten()
    .copied()
}

/// The families: title and operators, in the order of the documentation.
pub fn families() -> [(&'static str, &'static [&'static Operator]); 7] {
    [
        ("dot", dot::ALL),
        ("elementwise", elementwise::ALL),
        ("unary", unary::ALL),
        ("reduce", reduce::ALL),
        ("structure", structure::ALL),
        ("storage", storage_casts::ALL),
        ("loss", loss::ALL),
    ]
}

/// The operator of a name.
pub fn find(name: &str) -> Option<&'static Operator> {
    all().find(|operator| operator.name == name)
}

impl Operator {
    /// The position of an operand.
    pub fn operand_index(&self, name: &str) -> Option<usize> {
        self.operands.iter().position(|operand| *operand == name)
    }

    /// True for an operand that lends its shape only.
    pub fn lends_shape_only(&self, operand: usize) -> bool {
        self.operands[operand] == "like"
    }

    /// The attribute of a name.
    pub fn attribute(&self, name: &str) -> Option<&'static Attribute> {
        self.attributes.iter().find(|attribute| attribute.name == name)
    }

    /// The gradients that apply under given flags, parsed.
    ///
    /// # Panics
    ///
    /// If a formula of the table does not parse: the table's tests rule it out.
    pub fn gradient_of(
        &self,
        operand: usize,
        flag: impl Fn(&str) -> bool,
    ) -> Option<Result<Formula, &'static str>> {
        let name = self.operands[operand];
        self.gradient
            .iter()
            .filter(|gradient| gradient.operand == name)
            .find(|gradient| match gradient.when {
                None => true,
                Some(when) => match when.strip_prefix('!') {
                    Some(negated) => !flag(negated),
                    None => flag(when),
                },
            })
            .map(|gradient| {
                gradient.formula.map(|text| match crate::formula::parse(text) {
                    Ok(formula) => formula,
                    Err(message) => panic!("gradient of `{}`: {message}", self.name),
                })
            })
    }

    /// The flag that transposes an operand, if the operator has one: `transpose_lhs` for `lhs`.
    pub fn transpose_flag(&self, operand: usize) -> Option<&'static str> {
        let name = self.operands[operand];
        self.attributes
            .iter()
            .map(|attribute| attribute.name)
            .find(|flag| flag.strip_prefix("transpose_") == Some(name))
    }
}

/// A flag attribute.
const fn flag(name: &'static str) -> Attribute {
    Attribute { name, kind: AttributeKind::Flag }
}

/// A storage attribute.
const fn storage(name: &'static str) -> Attribute {
    Attribute { name, kind: AttributeKind::Storage }
}

/// An axis attribute.
const fn axis(name: &'static str) -> Attribute {
    Attribute { name, kind: AttributeKind::Axis }
}

/// A storage rule.
const fn rule(signature: &'static str) -> Rule {
    Rule::new(signature)
}

/// A gradient formula.
const fn gradient(operand: &'static str, formula: &'static str) -> Gradient {
    Gradient { operand, when: None, formula: Ok(formula) }
}

/// A gradient formula under a flag.
const fn gradient_when(
    when: &'static str,
    operand: &'static str,
    formula: &'static str,
) -> Gradient {
    Gradient { operand, when: Some(when), formula: Ok(formula) }
}

/// An operand that has no gradient, and why.
const fn no_gradient(operand: &'static str, why: &'static str) -> Gradient {
    Gradient { operand, when: None, formula: Err(why) }
}

#[cfg(test)]
mod tests;

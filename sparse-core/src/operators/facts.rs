//! Facts that follow from an operator spec: positions of operands, defaults, costs.

use super::{Attribute, Combine, IdsBelow, Kind, Operator, Total};
use crate::attributes::Attributes;

impl Operator {
    /// Whether a formula calls it by this name: its own, not an alias.
    pub fn is_called(&self, name: &str) -> bool {
        self.name == name
    }

    /// The sum or the mean that it is, over axes or over everything.
    pub fn total(&self) -> Option<Total> {
        match self.kind {
            Kind::Reduction(reduction) => reduction.total(),
            _ => None,
        }
    }

    /// The position of an operand.
    pub fn operand_index(&self, name: &str) -> Option<usize> {
        self.operands.iter().position(|operand| *operand == name)
    }

    /// The [alternative](Self::alternative), where `refused` is the operand and each has its name
    /// by `describe`.
    pub fn way_out(&self, refused: &str, describe: impl Fn(usize) -> String) -> Option<String> {
        let text = self.alternative?.replace("{}", refused);
        Some(self.operands.iter().enumerate().fold(text, |text, (place, name)| {
            text.replace(&format!("{{{name}}}"), &describe(place))
        }))
    }

    /// True for an operand that lends its shape only.
    pub fn lends_shape_only(&self, operand: usize) -> bool {
        self.operands[operand] == "like"
    }

    /// Of a reduction that goes by the name of a function of two operands elsewhere, as `max(x,
    /// y)`, the operator that is this function.
    pub fn of_two(&self) -> Option<&'static str> {
        let Kind::Reduction(reduction) = self.kind else { return None };
        match reduction.combine {
            Combine::Largest => Some("maximum"),
            Combine::Smallest => Some("minimum"),
            Combine::Sum | Combine::Product => None,
        }
    }

    /// What it costs: the row's word, or that of its kind.
    pub fn cost_in_words(&self) -> &'static str {
        match self.kind {
            Kind::Unary(_) => "O(stored elements).",
            Kind::Binary(..) => {
                "O(stored elements of both operands); O(size of the result) where that is dense."
            }
            Kind::Reduction(_) => "O(stored elements + size of the result).",
            Kind::Loss { .. } | Kind::LossGradient(_) if self.cost.is_empty() => {
                "O(size of the scores)."
            }
            _ => self.cost,
        }
    }

    /// How many operands a call must have at least.
    pub fn required(&self) -> usize {
        self.operands.len() - self.optional
    }

    /// Which ids must stay below what: nothing where a flag (`clip`, `wrap`) says what becomes of
    /// ids beyond.
    pub fn ids_checked(&self, attributes: &Attributes) -> Option<IdsBelow> {
        let says_otherwise = attributes.flag("clip") || attributes.flag("wrap");
        self.ids_below.filter(|_| !says_otherwise)
    }

    /// The attribute of a name.
    pub fn attribute(&self, name: &str) -> Option<&'static Attribute> {
        self.attributes.iter().find(|attribute| attribute.name == name)
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

/// Operators are equal where their names are: a graph has no two of one name.
impl PartialEq for Operator {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name
    }
}

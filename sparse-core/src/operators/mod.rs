//! The operator table: everything about an operator is stated in one row.
//!
//! From a row follow inference, the gradient's storage, the kernel's name, the traits of the macro-free API,
//! the documentation and the tests. Nothing about an operator is written anywhere else but its kernel.

mod columns;
pub mod declared;
mod dot;
mod elementwise;
mod kind;
mod layers;
mod layout;
mod loss;
mod on_gpu;
mod order;
mod parts;
mod reduce;
mod rows;
mod selection;
mod storage_casts;
mod structure;
mod unary;

pub mod scalar;
pub mod special;

mod rule;

pub use columns::{CsrPattern, IdsBelow, Link, ResultRows, RowNames, RowUse, RowsRead, Weights};
pub use kind::{BinaryFamily, Combine, ElementLoss, Kind, LossLabel, Reduction};
pub use on_gpu::GpuFamily;
use rows::{all_rows, rows_by, rows_by_ids, within_rows, within_rows_unless};
pub use rule::{AtZero, Condition, Given, Pattern, Rule, Signature};

use crate::formula::Formula;
use crate::ir::Attributes;

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
    /// How many of the last operands may be left out. Rules are written for each number of operands.
    pub optional: usize,
    /// For an operator that takes any number of operands, two by two: the operator that joins the result of the first two, and then
    /// each result so far, with the next operand.
    pub chain: Option<&'static str>,
    /// The operator that gives the same with its two operands exchanged (`less` for `greater`): a number is made the right
    /// operand by it.
    pub mirror: Option<&'static str>,
    /// True where `f(f(x, y), z)` is `f(x, f(y, z))`, up to rounding, without attributes.
    pub is_associative: bool,
    /// Other names in the language.
    pub aliases: &'static [&'static str],
    /// Where an operand holds ids: the operand and axis whose extent they stay below.
    pub ids_below: Option<IdsBelow>,
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
    /// The cost in what is stored, for kernels of their own; that of the families follows from their kind.
    pub cost: &'static str,
    /// What to write instead where a sparse operand is refused; `{}` stands for the operand, `{name}` for that of a name.
    pub alternative: Option<&'static str>,
    /// The operands that are weights of what the others hold. Penalties shrink a parameter that is
    /// used as one.
    pub weights: Weights,
    /// What makes predictions of scores: the function that the operator is of a score, or of a row of scores.
    pub link: Option<Link>,
    /// Where a csr result of a kernel of its own stores elements; of functions of elements it
    /// follows from their kind.
    pub csr_pattern: CsrPattern,
    /// The operator that computes the same at the places that a csr stores, and nowhere else: it
    /// takes the operands but `like`, and then that csr.
    pub at_pattern: Option<&'static str>,
    /// Of a function of two elements, the operator that computes it where the left operand stores
    /// an element, whatever the right one stores, and whatever it is at 0.
    pub where_stored: Option<&'static str>,
    /// True where it sums over the axes along which its operand was repeated to another: where
    /// there are none, it is its operand.
    pub undoes_broadcasting: bool,
    /// True of the sum of its two operands.
    pub is_sum: bool,
    /// How a kernel of its own reads the rows of operands that may be row_sparse; the families read
    /// all rows.
    pub reads_rows: &'static [RowsRead],
    /// Which rows a row_sparse result of a kernel of its own stores; the families act within rows.
    pub result_rows: &'static [ResultRows],
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
    /// True where its integers are extents or bounds of parts, as which a constant of Rust can
    /// stand.
    pub is_extent: bool,
}

impl Attribute {
    /// The same, whose integers are extents or bounds of parts.
    const fn of_extents(self) -> Self {
        Attribute { is_extent: true, ..self }
    }

    /// Whether a constant of Rust can stand for it, whose value the compiler does not see.
    pub fn may_be_named(&self) -> bool {
        self.is_extent || matches!(self.kind, AttributeKind::Number(_))
    }
}

/// What values an attribute takes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum AttributeKind {
    /// `true` or `false`; `false` where it is not given.
    Flag,
    /// An axis or a list of axes, negative from the end; all axes where it is not given.
    Axes,
    /// An integer, with its default; one without must be given.
    Integer(Option<i64>),
    /// A number, with its default; one without must be given.
    Number(Option<f64>),
    /// A list of integers, of which some may be left open (`_`); absent where it is not given.
    List,
    /// A storage type for the result; the rule decides where it is not given.
    Storage,
}

impl AttributeKind {
    /// True where a call must give it.
    pub fn is_required(self) -> bool {
        matches!(self, AttributeKind::Integer(None) | AttributeKind::Number(None))
    }
}

/// The gradient with respect to one operand.
#[derive(Debug)]
pub struct Gradient {
    /// The operand.
    pub operand: &'static str,
    /// What must hold, joined by `and`, or nothing: flags (`transpose_rhs`, `!transpose_rhs`), conditions on attributes (`ord == 1`)
    /// and on the ranks of operands (`rhs_rank == 1`).
    pub when: Option<&'static str>,
    /// A formula over operators in `grad`, `out`, the operands and the attributes that are numbers, or why there is none.
    /// `0` says that the result does not change with the operand, almost everywhere.
    pub formula: Result<&'static str, &'static str>,
    /// True where it is not the derivative, but what training is told in place of it.
    pub is_surrogate: bool,
}

/// Every operator, family by family, in the order of the documentation.
pub fn all() -> impl Iterator<Item = &'static Operator> {
    families().into_iter().flat_map(|(_, rows)| rows).copied()
}

/// The families: title and operators, in the order of the documentation.
pub fn families() -> Vec<(&'static str, &'static [&'static Operator])> {
    vec![
        ("dot", dot::ALL),
        ("elementwise", elementwise::ALL),
        ("unary", unary::ALL),
        ("reduce", reduce::ALL),
        ("parts", parts::ALL),
        ("selection", selection::ALL),
        ("layout", layout::ALL),
        ("order", order::ALL),
        ("structure", structure::ALL),
        ("storage", storage_casts::ALL),
        ("layers", layers::ALL),
        ("loss", loss::ALL),
    ]
}

/// The operator of a name, or of another name of it.
pub fn find(name: &str) -> Option<&'static Operator> {
    all().find(|operator| operator.name == name || operator.aliases.contains(&name))
}

impl Operator {
    /// The position of an operand.
    pub fn operand_index(&self, name: &str) -> Option<usize> {
        self.operands.iter().position(|operand| *operand == name)
    }

    /// The [alternative](Self::alternative), where `refused` is the operand and each has its name by `describe`.
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

    /// The value of a scalar formula of the row, which names attributes that are numbers or flags; `variable` knows the others.
    ///
    /// # Errors
    ///
    /// The name of a variable or function that is not known, or of a required attribute that is not given.
    pub fn scalar(
        &self,
        formula: &str,
        attributes: &Attributes,
        variable: &dyn Fn(&str) -> Option<f64>,
    ) -> Result<f64, String> {
        let formula = crate::formula::parse(formula)?;
        let known = |name: &str| variable(name).or_else(|| self.number(attributes, name));
        scalar::value(&formula, &known)
    }

    /// The value of an element-wise operator for one element (of each operand); see [`Operator::scalar`].
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
        Ok(crate::formula::parse(formula)?.with(&of).folded())
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

    /// Which ids must stay below what: nothing where a flag (`clip`, `wrap`) says what becomes of ids beyond.
    pub fn ids_checked(&self, attributes: &Attributes) -> Option<IdsBelow> {
        let says_otherwise = attributes.flag("clip") || attributes.flag("wrap");
        self.ids_below.filter(|_| !says_otherwise)
    }

    /// The attribute of a name.
    pub fn attribute(&self, name: &str) -> Option<&'static Attribute> {
        self.attributes.iter().find(|attribute| attribute.name == name)
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
                gradient.formula.map(|text| match crate::formula::parse(text) {
                    Ok(formula) => formula,
                    Err(message) => panic!("gradient of `{}`: {message}", self.name),
                })
            })
    }

    /// Whether conditions on attributes and on the ranks of operands hold, written as in
    /// [`Gradient::when`].
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

    /// The flag that transposes an operand, if the operator has one: `transpose_lhs` for `lhs`.
    pub fn transpose_flag(&self, operand: usize) -> Option<&'static str> {
        let name = self.operands[operand];
        self.attributes
            .iter()
            .map(|attribute| attribute.name)
            .find(|flag| flag.strip_prefix("transpose_") == Some(name))
    }
}

/// What a row is where it does not say otherwise.
const ROW: Operator = Operator {
    name: "",
    summary: "",
    operands: &["x"],
    optional: 0,
    chain: None,
    mirror: None,
    is_associative: false,
    aliases: &[],
    ids_below: None,
    attributes: &[],
    shape: "same -> same",
    storage: &[],
    gradient: &[],
    kind: Kind::Kernel,
    cost: "",
    alternative: None,
    weights: Weights::None,
    link: None,
    csr_pattern: CsrPattern::Unknown,
    at_pattern: None,
    where_stored: None,
    undoes_broadcasting: false,
    is_sum: false,
    reads_rows: &[],
    result_rows: &[],
    internal: false,
};

/// A flag attribute.
const fn flag(name: &'static str) -> Attribute {
    Attribute { name, kind: AttributeKind::Flag, is_extent: false }
}

/// A storage attribute.
const fn storage(name: &'static str) -> Attribute {
    Attribute { name, kind: AttributeKind::Storage, is_extent: false }
}

/// An attribute for axes.
const fn axes(name: &'static str) -> Attribute {
    Attribute { name, kind: AttributeKind::Axes, is_extent: false }
}

/// An integer attribute with its default.
const fn integer(name: &'static str, default: i64) -> Attribute {
    Attribute { name, kind: AttributeKind::Integer(Some(default)), is_extent: false }
}

/// An integer that must be given.
const fn required_integer(name: &'static str) -> Attribute {
    Attribute { name, kind: AttributeKind::Integer(None), is_extent: false }
}

/// A number that must be given.
const fn number(name: &'static str) -> Attribute {
    Attribute { name, kind: AttributeKind::Number(None), is_extent: false }
}

/// A number with its default.
const fn number_or(name: &'static str, default: f64) -> Attribute {
    Attribute { name, kind: AttributeKind::Number(Some(default)), is_extent: false }
}

/// An integer that is an extent, with its default.
const fn extent(name: &'static str, default: i64) -> Attribute {
    integer(name, default).of_extents()
}

/// An extent that must be given.
const fn required_extent(name: &'static str) -> Attribute {
    required_integer(name).of_extents()
}

/// A list of extents, or of bounds of parts.
const fn extents(name: &'static str) -> Attribute {
    list(name).of_extents()
}

/// A list attribute.
const fn list(name: &'static str) -> Attribute {
    Attribute { name, kind: AttributeKind::List, is_extent: false }
}

/// A storage rule.
const fn rule(signature: &'static str) -> Rule {
    Rule::new(signature)
}

/// A gradient formula.
const fn gradient(operand: &'static str, formula: &'static str) -> Gradient {
    Gradient { operand, when: None, formula: Ok(formula), is_surrogate: false }
}

/// A formula that training uses in place of the derivative.
const fn surrogate(operand: &'static str, formula: &'static str) -> Gradient {
    Gradient { operand, when: None, formula: Ok(formula), is_surrogate: true }
}

/// A gradient formula under a flag.
const fn gradient_when(
    when: &'static str,
    operand: &'static str,
    formula: &'static str,
) -> Gradient {
    Gradient { operand, when: Some(when), formula: Ok(formula), is_surrogate: false }
}

/// An operand that has no gradient, and why.
const fn no_gradient(operand: &'static str, why: &'static str) -> Gradient {
    Gradient { operand, when: None, formula: Err(why), is_surrogate: false }
}

#[cfg(test)]
mod tests;

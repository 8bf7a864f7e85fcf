//! Storage rules: `csr' dense -> row_sparse`.

use super::{Kind, Operator};
use crate::formula::{BinaryOperator, Formula};
use crate::ir::{Attributes, Entry};
use crate::shapes::Substitution;
use crate::storage::Storage;

/// One line of an operator's storage rules, as written in its row.
///
/// Patterns of operands, in order: `dense`, `csr`, `row_sparse`; `csr'` is a csr that the operator reads
/// transposed; `scalar` a number known at compile time; `ids` a dense array of integer ids. A dense operand may be
/// transposed or not: its kernel is told; `like` any array, of which the shape alone is read. A result may be `ids` too: positions
/// or counts, as a dense array of `u64`.
#[derive(Debug)]
pub struct Rule {
    text: &'static str,
    on_request: Option<Storage>,
    same_shape: bool,
    of_units: bool,
    on_gpu: bool,
    condition: Option<&'static Condition>,
}

/// When a rule applies, beyond the storage of the operands.
#[derive(Debug)]
pub struct Condition {
    /// In words, to follow the rule: `where f(0) = 0`.
    pub text: &'static str,
    /// What the kernel's name ends with, where another rule covers the same operands without the condition.
    pub suffix: &'static str,
    /// Whether it holds.
    pub holds: fn(&Given<'_>) -> bool,
}

/// What a condition is about.
#[derive(Clone, Copy, Debug)]
pub struct Given<'a> {
    /// The operator.
    pub operator: &'static Operator,
    /// The attributes given.
    pub attributes: &'a Attributes,
    /// For each operand the number that it is, if it is one: seen, or a formula in names.
    pub numbers: &'a [Option<Formula>],
    /// The operands' ranks.
    pub ranks: &'a [usize],
    /// Which names in numbers are constants of Rust: the others are extents. Nothing without names.
    pub names: Option<&'a Substitution>,
}

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
                let samples = match self.is_extent(name) {
                    true => OF_EXTENTS,
                    false => OF_CONSTANTS,
                };
                Some(samples[(round + at * (1 + round / samples.len())) % samples.len()])
            };
            super::scalar::value(&at_zero, &value) == Ok(0.0)
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
    match at_zero.is_constant() {
        true => AtZero::If(compare(BinaryOperator::Equal, at_zero)),
        false => AtZero::Moves,
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
            crate::shapes::place_of(axis, rank) == Some(0)
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
                Some(axis) => crate::shapes::place_of(axis, rank) == Some(0),
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

/// What a rule says, parsed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Signature {
    /// One pattern for each operand.
    pub operands: Vec<Pattern>,
    /// The storage of the result.
    pub result: Storage,
    /// A second storage that may be asked for, with a kernel of its own.
    pub on_request: Option<Storage>,
    /// True where the result is ids; `result` is then dense.
    pub gives_ids: bool,
    /// True where the operands must have one shape (no broadcasting).
    pub same_shape: bool,
    /// True where a csr operand may be a `csr<unit>`, which a kernel of its own reads without values. Elsewhere its ones are
    /// written out first, by `csr`.
    pub of_units: bool,
    /// True where GPUs have its kernels too, for every result and for patterns.
    pub on_gpu: bool,
    /// When the rule applies, beyond the storage of the operands.
    pub condition: Option<&'static Condition>,
}

impl PartialEq for Condition {
    fn eq(&self, other: &Self) -> bool {
        self.text == other.text
    }
}

impl Eq for Condition {}

/// What a rule asks of one operand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pattern {
    /// An array of this storage, read transposed or not.
    Array(Storage, bool),
    /// A csr that holds a pattern only, read transposed or not: of [kernels](Signature::of_units), not of rules.
    Unit(bool),
    /// A number known at compile time.
    Scalar,
    /// A dense array of integer ids.
    Ids,
    /// Any array: its shape alone is read.
    Like,
}

impl Rule {
    pub(super) const fn new(text: &'static str) -> Self {
        Rule {
            text,
            on_request: None,
            same_shape: false,
            of_units: false,
            on_gpu: false,
            condition: None,
        }
    }

    /// The result may be asked for in this storage too.
    pub(super) const fn or_on_request(self, storage: Storage) -> Self {
        Rule { on_request: Some(storage), ..self }
    }

    /// The rule covers operands of one shape only.
    pub(super) const fn same_shape(self) -> Self {
        Rule { same_shape: true, ..self }
    }

    /// There is a kernel that reads a csr operand which is a pattern.
    pub(super) const fn of_units(self) -> Self {
        Rule { of_units: true, ..self }
    }

    /// There are kernels of it for GPUs.
    pub(super) const fn on_gpu(self) -> Self {
        Rule { on_gpu: true, ..self }
    }

    /// The rule applies only where a condition holds.
    pub(super) const fn only(self, condition: &'static Condition) -> Self {
        Rule { condition: Some(condition), ..self }
    }

    /// The rule as written in the row.
    pub fn text(&self) -> &'static str {
        self.text
    }

    /// The signatures of the rule's kernels: its own, and that of the kernels for patterns, if there are such.
    pub fn signatures(&self) -> impl Iterator<Item = Signature> {
        let own = self.signature();
        let for_units = own.for_units();
        std::iter::once(own).chain(for_units)
    }

    /// The rule, parsed.
    ///
    /// # Panics
    ///
    /// If the row is not well formed: the table's tests rule it out.
    pub fn signature(&self) -> Signature {
        let malformed = || -> ! { panic!("storage rule `{}` is not well formed", self.text) };
        let Some((operands, result)) = self.text.split_once("->") else { malformed() };
        let gives_ids = result.trim() == "ids";
        let result = if gives_ids { Ok(Storage::Dense) } else { result.trim().parse() };
        let Ok(result) = result else { malformed() };
        let operands = operands
            .split_whitespace()
            .map(|word| match word {
                "scalar" => Pattern::Scalar,
                "ids" => Pattern::Ids,
                "like" => Pattern::Like,
                _ => {
                    let (name, transposed) = match word.strip_suffix('\'') {
                        Some(name) => (name, true),
                        None => (word, false),
                    };
                    match name.parse() {
                        Ok(storage) => Pattern::Array(storage, transposed),
                        Err(()) => malformed(),
                    }
                }
            })
            .collect();
        Signature {
            operands,
            result,
            gives_ids,
            on_request: self.on_request,
            same_shape: self.same_shape,
            of_units: self.of_units,
            on_gpu: self.on_gpu,
            condition: self.condition,
        }
    }
}

impl Signature {
    /// The name of the kernel that carries the rule out: `csr_transposed_dense`, and
    /// `csr_transposed_dense_into_dense` for a result on request; `unit_transposed_dense` of the same
    /// [for patterns](Signature::for_units).
    pub fn kernel(&self, result: Storage) -> String {
        let mut name = String::new();
        for pattern in &self.operands {
            if !name.is_empty() {
                name.push('_');
            }
            name.push_str(match pattern {
                Pattern::Array(storage, _) => storage.name(),
                Pattern::Scalar => "scalar",
                Pattern::Ids => "ids",
                Pattern::Like => "like",
                Pattern::Unit(_) => "unit",
            });
            if matches!(pattern, Pattern::Array(_, true) | Pattern::Unit(true)) {
                name.push_str("_transposed");
            }
        }
        name.push_str(self.condition.map_or("", |condition| condition.suffix));
        if result != self.result {
            name.push_str("_into_");
            name.push_str(result.name());
        }
        name
    }

    /// The signature of the kernels that read patterns in place of csr operands, if there are such.
    pub fn for_units(&self) -> Option<Signature> {
        let unit = |pattern: &Pattern| match pattern {
            Pattern::Array(Storage::Csr, transposed) => Pattern::Unit(*transposed),
            other => *other,
        };
        let operands = self.operands.iter().map(unit).collect();
        self.of_units.then(|| Signature { operands, ..self.clone() })
    }

    /// The results that the rule can give: its own, and the one on request.
    pub fn results(&self) -> impl Iterator<Item = Storage> {
        std::iter::once(self.result).chain(self.on_request)
    }
}

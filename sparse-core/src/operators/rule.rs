//! Storage rules: `csr' dense -> row_sparse`.

use super::{Condition, Rule};
use crate::storage::Storage;

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
    /// True where a csr operand may be a `csr<unit>`, which a kernel of its own reads without
    /// values. Elsewhere its ones are written out first, by `csr`.
    pub of_units: bool,
    /// True where GPUs have its kernels too, for every result and for patterns.
    pub on_gpu: bool,
    /// When the rule applies, beyond the storage of the operands.
    pub condition: Option<&'static Condition>,
}

/// What a rule asks of one operand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pattern {
    /// An array of this storage, read transposed or not.
    Array(Storage, bool),
    /// A csr that holds a pattern only, read transposed or not: of [kernels](Signature::of_units),
    /// not of rules.
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

    /// The signatures of the rule's kernels: its own, and that of the kernels for patterns, if
    /// there are such.
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
    /// `csr_transposed_dense_into_dense` for a result on request; `unit_transposed_dense` of the
    /// same [for patterns](Signature::for_units).
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

//! Storage types and element types: the vocabulary of every pass and every array.

use std::fmt;
use std::str::FromStr;

/// How an array is stored. Storage never changes what a value *is*, only what it costs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Storage {
    /// Every element, row major.
    Dense,
    /// Compressed sparse rows: rank 2, sorted unique columns in each row.
    Csr,
    /// Some rows of a larger array, with sorted unique row ids; any rank ≥ 1.
    RowSparse,
}

impl Storage {
    /// All storage types, in the order in which they are documented.
    pub const ALL: [Storage; 3] = [Storage::Dense, Storage::Csr, Storage::RowSparse];

    /// The word of the language: `dense`, `csr` or `row_sparse`.
    pub const fn name(self) -> &'static str {
        match self {
            Storage::Dense => "dense",
            Storage::Csr => "csr",
            Storage::RowSparse => "row_sparse",
        }
    }

    /// True for `csr` and `row_sparse`.
    pub const fn is_sparse(self) -> bool {
        !matches!(self, Storage::Dense)
    }
}

/// Several storage types in one line: `csr | dense`.
pub fn join(storages: &[Storage], separator: &str) -> String {
    storages.iter().map(|storage| storage.name()).collect::<Vec<_>>().join(separator)
}

impl fmt::Display for Storage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Storage {
    type Err = ();

    fn from_str(word: &str) -> Result<Self, ()> {
        Self::ALL.into_iter().find(|storage| storage.name() == word).ok_or(())
    }
}

/// The type of one element.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum ElementType {
    /// 32-bit float, the default.
    F32,
    /// 64-bit float.
    F64,
    /// 16-bit float of IEEE 754: 11 significant bits, up to 65504. For storage: arithmetic on it is
    /// in `f32`.
    F16,
    /// The upper half of an `f32`: 8 significant bits, its range. For storage: arithmetic on it is
    /// in `f32`.
    BF16,
    /// 32-bit unsigned id (class ids, row ids); never takes part in arithmetic.
    U32,
    /// 64-bit unsigned id.
    U64,
    /// 64-bit signed id, as other frameworks write them.
    I64,
    /// The number 1, in no memory: of a csr that holds a pattern only.
    Unit,
}

impl ElementType {
    /// All element types.
    pub const ALL: [ElementType; 8] = [
        ElementType::F32,
        ElementType::F64,
        ElementType::F16,
        ElementType::BF16,
        ElementType::U32,
        ElementType::U64,
        ElementType::I64,
        ElementType::Unit,
    ];

    /// The Rust name of the type.
    pub const fn name(self) -> &'static str {
        match self {
            ElementType::F32 => "f32",
            ElementType::F64 => "f64",
            ElementType::F16 => "f16",
            ElementType::BF16 => "bf16",
            ElementType::U32 => "u32",
            ElementType::U64 => "u64",
            ElementType::I64 => "i64",
            ElementType::Unit => "unit",
        }
    }

    /// Bytes of one element.
    pub const fn bytes(self) -> u64 {
        match self {
            ElementType::Unit => 0,
            ElementType::F16 | ElementType::BF16 => 2,
            ElementType::F32 | ElementType::U32 => 4,
            ElementType::F64 | ElementType::U64 | ElementType::I64 => 8,
        }
    }

    /// True for the types that arithmetic is defined on, those that are
    /// [`Float`](crate::element::Float).
    pub const fn is_float(self) -> bool {
        self.is_number() && !matches!(self, ElementType::Unit)
    }

    /// True for the types whose values operators compute with, floats and `unit`: not for ids.
    pub const fn is_number(self) -> bool {
        !self.is_id()
    }

    /// True for `f16` and `bf16`, which need the feature `half`.
    pub const fn is_half(self) -> bool {
        matches!(self, ElementType::F16 | ElementType::BF16)
    }

    /// True for the types of ids, those that are [`Id`](crate::element::Id).
    pub const fn is_id(self) -> bool {
        matches!(self, ElementType::U32 | ElementType::U64 | ElementType::I64)
    }
}

impl fmt::Display for ElementType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for ElementType {
    type Err = ();

    fn from_str(word: &str) -> Result<Self, ()> {
        Self::ALL.into_iter().find(|element| element.name() == word).ok_or(())
    }
}

//! The entries of a sample of hashed features: sorted by column, with the fields that they are of.

use super::Problem;
use super::read_error::Fault;
use super::text::Chunk;
use sparse_core::element::Float;

/// The most fields: their numbers are ones that every element type holds exactly.
pub(crate) const MAX_FIELDS: usize = 256;

/// An entry.
#[derive(Clone, Copy, Debug)]
pub(crate) struct HashedEntry {
    /// Its column, below 2^32 as that of any hash.
    column: u32,
    /// The number of its field.
    field: u32,
    value: f64,
}

impl HashedEntry {
    pub(crate) fn new(column: u64, field: usize, value: f64) -> Self {
        HashedEntry { column: column as u32, field: field as u32, value }
    }
}

/// Moves the entries of a sample into the csr at position `x` of a chunk, and their fields, if
/// there is a position for these, into another of the same pattern. Values that meet in a column
/// are added in the order of the entries; the field is that of the first.
pub(crate) fn push_entries<T: Float>(
    entries: &mut Vec<HashedEntry>,
    x: usize,
    fields: Option<usize>,
    rows: &mut Chunk<T>,
) -> Result<(), Fault> {
    // Stable: values of one column are added in the order of the text.
    entries.sort_by_key(|entry| entry.column);
    for same in entries.chunk_by(|a, b| a.column == b.column) {
        let HashedEntry { column, field, value } = same[0];
        let column = u64::from(column);
        let sum = T::of(same[1..].iter().fold(value, |sum, entry| sum + entry.value));
        if !sum.is_finite() {
            return Err(Fault { offset: 0, problem: Problem::SumNotFinite { index: column } });
        }
        rows.csr(x).push(column, sum);
        if let Some(fields) = fields {
            rows.csr(fields).push(column, T::of(f64::from(field)));
        }
    }
    entries.clear();
    Ok(())
}

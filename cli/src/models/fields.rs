//! The fields of a field-aware machine: how many data has, and whether a model has them.

use nnz::data::{AnyDataset, ColumnValues};

/// The column of the fields of features.
const FIELD: &str = "field";

/// The number of fields: the largest and one. `None` for data that is not in memory, and has none.
/// O(entries).
pub(crate) fn number_of(data: &AnyDataset) -> Option<usize> {
    let AnyDataset::Memory(data) = data else { return None };
    match data.column(FIELD)?.values() {
        ColumnValues::Csr(fields) => {
            let largest = fields.values().iter().fold(0.0f32, |largest, field| field.max(largest));
            Some(largest as usize + 1)
        }
        _ => None,
    }
}

/// Refuses data with fields that a model does not have: their pairs would be left out without a
/// word.
pub(crate) fn check(data: &AnyDataset, n_fields: Option<usize>, name: &str) -> Result<(), String> {
    match (number_of(data), n_fields) {
        (Some(found), Some(known)) if found > known => Err(format!(
            "`{name}` has the field {}, but the model has the fields 0 to {}: say --fields {found} to `train`, or take the field out",
            found - 1,
            known.saturating_sub(1)
        )),
        _ => Ok(()),
    }
}

//! What can be wrong with an array.

use super::Shape;

/// The parts given do not make a valid array. Every variant names the value, the bound and the place.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum FormatError {
    /// The number of elements is not the product of the shape.
    #[error("shape {shape} has {expected} elements, but {found} values were given")]
    ValueCount {
        /// The shape asked for.
        shape: Shape,
        /// Its number of elements.
        expected: usize,
        /// The values given.
        found: usize,
    },
    /// Two arrays of an operation have shapes that do not go together.
    #[error("{operation}: {message}")]
    Mismatch {
        /// The operation.
        operation: &'static str,
        /// What does not fit.
        message: String,
    },
}

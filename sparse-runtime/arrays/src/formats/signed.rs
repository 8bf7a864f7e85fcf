//! Ids from numbers that have a sign.

use super::FormatError;

/// Ids from signed numbers, as other programs often store them.
///
/// # Errors
///
/// [`FormatError::NegativeId`] with the first negative number and its position.
///
/// ```
/// use nnz::formats::ids_from_signed;
/// assert_eq!(ids_from_signed(&[0, 7])?, [0, 7]);
/// let error = ids_from_signed(&[3, -1]).unwrap_err();
/// assert_eq!(error.to_string(), "id -1 (position 1) is negative: ids are numbered from 0");
/// # Ok::<(), nnz::formats::FormatError>(())
/// ```
pub fn ids_from_signed(ids: &[i64]) -> Result<Vec<u64>, FormatError> {
    let unsigned = |(position, &id): (usize, &i64)| {
        u64::try_from(id).map_err(|_| FormatError::NegativeId { position, id })
    };
    ids.iter().enumerate().map(unsigned).collect()
}

//! Table rows that a sample names more than once.

use super::program::{Pool, Read};
use nnz_arrays::formats::{ColumnId, ColumnIdsView};
use nnz_arrays::with_column_ids;
use sparse_core::element::Float;

/// Whether one sample may name a row of a table more than once by these reads.
pub(super) fn may_overlap<T: Float>(reads: &[Read<'_, '_, T>]) -> bool {
    let mut updated = reads.iter().filter(|read| read.has_gradient);
    match (updated.next(), updated.next()) {
        (Some(read), None) => read.refs.may_repeat(),
        (None, _) => false,
        (Some(_), Some(_)) => true,
    }
}

/// Whether the gradient of a read depends on weights that another one of these updates.
pub(super) fn depend_on_weights<T: Float>(reads: &[Read<'_, '_, T>]) -> bool {
    let updated = || reads.iter().filter(|read| read.has_gradient);
    updated().count() > 1 && updated().any(|read| read.pool == Pool::Pairs)
}

/// Whether two lists of ids have one in common, or the second list has one twice. Ascending lists
/// are merged, O(their lengths); of others, which are short, all pairs are compared.
pub(super) fn have_common(left: ColumnIdsView<'_>, right: ColumnIdsView<'_>) -> bool {
    with_column_ids!(left, |left| with_column_ids!(right, |right| common(left, right)))
}

fn common<I: ColumnId, J: ColumnId>(left: &[I], right: &[J]) -> bool {
    if !is_ascending(left) || !is_ascending(right) {
        return left.iter().any(|id| right.iter().any(|other| id.at() == other.at()));
    }
    let (mut left, mut right) = (left, right);
    while let ([first, of_left @ ..], [second, of_right @ ..]) = (left, right) {
        match first.at().cmp(&second.at()) {
            std::cmp::Ordering::Less => left = of_left,
            std::cmp::Ordering::Greater => right = of_right,
            std::cmp::Ordering::Equal => return true,
        }
    }
    false
}

/// Whether a list of ids has one twice.
pub(super) fn repeats(ids: ColumnIdsView<'_>) -> bool {
    with_column_ids!(ids, |ids| {
        !is_ascending(ids)
            && (ids.iter().enumerate())
                .any(|(place, id)| ids[..place].iter().any(|other| other.at() == id.at()))
    })
}

/// Strictly ascending.
fn is_ascending<I: ColumnId>(ids: &[I]) -> bool {
    ids.windows(2).all(|pair| pair[0].at() < pair[1].at())
}

//! The rows of a batch: where each lies, and what is asked for before its turn.

use super::Width;
use crate::formats::{ColumnId, CsrView};
use crate::optimizer::{RowUpdater, UpdateKind};
use crate::prefetch::{is_far, prefetch_starts};
use sparse_core::element::{Float, Stored};
use sparse_core::update_rules::UpdateRule;
use std::ops::Range;

/// Ids and values side by side.
#[inline(always)]
pub(crate) fn entries<I: ColumnId, V: Stored>(
    ids: &[I],
    values: &[V],
) -> impl ExactSizeIterator<Item = (I, V)> {
    ids.iter().copied().zip(values.iter().copied())
}

/// Ids and values of one row of a view.
#[inline(always)]
pub(crate) fn row_of<'a, V: Stored, I: ColumnId>(
    x: CsrView<'a, V>,
    ids: &'a [I],
    row: usize,
) -> (&'a [I], &'a [V]) {
    // All that there is to ask of them, as `CsrView` says.
    assert!(row < x.n_rows() && ids.len() == x.values().len());
    // SAFETY: starts and ends are as many as rows, and in order and within the entries.
    unsafe {
        let (start, end) = (*x.starts().get_unchecked(row), *x.ends().get_unchecked(row));
        let range = start as usize..end as usize;
        (ids.get_unchecked(range.clone()), x.values().get_unchecked(range))
    }
}

/// Where the entries of one row of a view lie.
#[inline(always)]
pub(crate) fn range_of<V: Stored>(x: CsrView<'_, V>, row: usize) -> Range<usize> {
    x.starts()[row] as usize..x.ends()[row] as usize
}

/// Asks for the entries of a row of data some rows ahead, where they do not lie one after the other: then the processor
/// foresees them.
#[inline(always)]
pub(crate) fn prefetch_data<V: Stored, I: ColumnId>(x: CsrView<'_, V>, ids: &[I], row: usize) {
    if !x.is_run() && row + 4 * AHEAD < x.n_rows() {
        prefetch_starts(ids, x.values(), x.starts()[row + 4 * AHEAD] as usize);
    }
}

/// The ids of the row of data whose rows are asked for now.
#[inline(always)]
pub(crate) fn row_ahead<'a, V: Stored, I: ColumnId>(
    x: CsrView<'a, V>,
    ids: &'a [I],
    row: usize,
) -> &'a [I] {
    row_ahead_by(AHEAD, x, ids, row)
}

/// The same, so many rows of data ahead.
#[inline(always)]
pub(crate) fn row_ahead_by<'a, V: Stored, I: ColumnId>(
    ahead: usize,
    x: CsrView<'a, V>,
    ids: &'a [I],
    row: usize,
) -> &'a [I] {
    if row + ahead < x.n_rows() { row_of(x, ids, row + ahead).0 } else { &[] }
}

/// Rows of data between asking for the rows of a parameter and reading them, and between asking for the data and
/// reading that.
pub(crate) const AHEAD: usize = 2;

/// The same where a row of the parameter, with its states, is one line of the cache at most, so that a cache has room for more of them.
pub(crate) const LINES_AHEAD: usize = 4;

/// The same by the width of a parameter.
#[inline(always)]
pub(super) fn ahead_of<W: Width>() -> usize {
    if W::IN_VECTORS { AHEAD } else { LINES_AHEAD }
}

/// Whether asking ahead pays: the table is [larger than a cache](crate::prefetch::is_far).
#[inline(always)]
pub(crate) fn is_large<R: UpdateRule, T: Float, K: UpdateKind>(
    rows: &RowUpdater<'_, R, T, K>,
) -> bool {
    is_far(rows.bytes())
}

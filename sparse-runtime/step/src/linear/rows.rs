//! The samples of a batch: their bounds, and prefetches ahead of their turn.

use super::Width;
use crate::optimizer::{RowUpdater, UpdateKind};
use nnz_arrays::formats::{ColumnId, CsrView};
use nnz_device::prefetch::{AHEAD, DATA_AHEAD, ENTRIES_AHEAD, LINES_AHEAD};
use nnz_device::prefetch::{is_far, prefetch_lone_runs, prefetch_runs};
use nnz_optim::UpdateRule;
use sparse_core::element::{Float, Stored};
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

/// Prefetches entries of later samples. The hardware prefetcher follows consecutive samples, but
/// not past the end of a 4 KiB page, nor all of two arrays that are read side by side. All lines of
/// a sample are prefetched: only some of them would make samples of varying length slower than no
/// prefetch. Batches of one sample prefetch the next ones themselves.
#[inline(always)]
pub(crate) fn prefetch_data<V: Stored, I: ColumnId>(x: CsrView<'_, V>, ids: &[I], row: usize) {
    let (starts, ends) = (x.starts(), x.ends());
    if starts.len() > 1 && x.is_run() {
        let later = |bound: u64| (bound as usize).wrapping_add(ENTRIES_AHEAD);
        prefetch_runs(ids, x.values(), later(starts[row]), later(ends[row]));
    } else if let (Some(&start), Some(&end)) =
        (starts.get(row + DATA_AHEAD), ends.get(row + DATA_AHEAD))
    {
        prefetch_lone_runs(ids, x.values(), start as usize, end as usize);
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

/// The same by the width of a parameter.
#[inline(always)]
pub(super) fn ahead_of<W: Width>() -> usize {
    if W::IN_VECTORS { AHEAD } else { LINES_AHEAD }
}

/// Whether asking for the data pays: they are larger than a cache.
#[inline(always)]
pub(crate) fn are_large<V: Stored, I: ColumnId>(x: CsrView<'_, V>, ids: &[I]) -> bool {
    is_far(size_of_val(ids) + size_of_val(x.values()))
}

/// Whether asking for the data of a batch pays where it has been gone over and is gone over once
/// more: the core's own cache does not hold it. O(1) for a run of rows, else O(n_rows).
#[inline(always)]
pub(crate) fn is_read_anew<V: Stored, I: ColumnId>(x: CsrView<'_, V>, _ids: &[I]) -> bool {
    is_far(x.nnz() * (size_of::<I>() + size_of::<V>()))
}

/// Whether asking ahead pays: the table is [larger than a cache](nnz_device::prefetch::is_far).
#[inline(always)]
pub(crate) fn is_large<R: UpdateRule, T: Float, K: UpdateKind>(
    rows: &RowUpdater<'_, R, T, K>,
) -> bool {
    is_far(rows.bytes())
}

//! Prefetches of the entries of a csr, some entries or rows ahead of a loop over its rows.
//!
//! The processor's own prefetcher stops at the end of a page of 4 KiB, and a loop reads two arrays
//! or more.

use crate::formats::CsrView;
use nnz_device::prefetch::{BOUNDS_AHEAD, prefetch, prefetch_lone_runs, prefetch_runs};
use sparse_core::element::Stored;

/// How many entries ahead, if rows lie one after the other.
pub(super) const ENTRIES_AHEAD: usize = 512;

/// The same for loops that pass entries faster than memory gives them: those with a single number a
/// row on the other side, and those that read some entries of each row.
pub(super) const ENTRIES_FAR_AHEAD: usize = 512;

/// How many rows ahead, if rows lie anywhere.
const ROWS_AHEAD: usize = 8;

/// The distance from an entry to the one to be prefetched with it. The rows of a selection lie
/// anywhere: then it is an entry of a later row, which may lie before, so the distance wraps
/// around.
#[inline(always)]
pub(super) fn distance<V: Stored>(matrix: CsrView<'_, V>, row: usize) -> usize {
    distance_or(matrix, row, ENTRIES_AHEAD)
}

/// As [`distance`], `of_run` if rows lie one after the other. Called once for each row: it
/// prefetches the bounds of a later one.
#[inline(always)]
pub(super) fn distance_or<V: Stored>(matrix: CsrView<'_, V>, row: usize, of_run: usize) -> usize {
    prefetch_bounds(matrix, row);
    if matrix.is_run() {
        return of_run;
    }
    match (matrix.starts().get(row), matrix.starts().get(row + ROWS_AHEAD)) {
        (Some(&start), Some(&later)) => later.wrapping_sub(start) as usize,
        _ => 0,
    }
}

/// Prefetches an entry, which may lie outside of the arrays. With every entry that a loop reads
/// this costs less than a loop of its own over the lines of a row, whose end is mispredicted.
#[inline(always)]
pub(super) fn prefetch_entry<I, V>(ids: &[I], values: &[V], entry: usize) {
    prefetch(ids, entry);
    if size_of::<V>() > 0 {
        prefetch(values, entry);
    }
}

/// Prefetches a row ahead of `row`, for a loop that reads only some entries of each: `of_run`
/// entries ahead, if rows lie one after the other.
#[inline(always)]
pub(super) fn prefetch_row<I, V: Stored>(
    matrix: CsrView<'_, V>,
    ids: &[I],
    row: usize,
    of_run: usize,
) {
    prefetch_row_of(matrix, ids, matrix.values(), row, of_run);
}

/// The same for a loop that reads columns alone.
#[inline(always)]
pub(super) fn prefetch_ids<I, V: Stored>(matrix: CsrView<'_, V>, ids: &[I], row: usize) {
    prefetch_row_of(matrix, ids, &[(); 0], row, ENTRIES_AHEAD);
}

#[inline(always)]
fn prefetch_row_of<I, V: Stored, U>(
    matrix: CsrView<'_, V>,
    ids: &[I],
    values: &[U],
    row: usize,
    of_run: usize,
) {
    prefetch_bounds(matrix, row);
    let (starts, ends) = (matrix.starts(), matrix.ends());
    if matrix.is_run() {
        let ahead = |bound: u64| (bound as usize).wrapping_add(of_run);
        prefetch_runs(ids, values, ahead(starts[row]), ahead(ends[row]));
    } else if let (Some(start), Some(end)) =
        (starts.get(row + ROWS_AHEAD), ends.get(row + ROWS_AHEAD))
    {
        prefetch_lone_runs(ids, values, *start as usize, *end as usize);
    }
}

/// Prefetches the bounds of a later row. A line holds the bounds of several rows: the processor has
/// dropped its own prediction before the next line is read.
#[inline(always)]
fn prefetch_bounds<V: Stored>(x: CsrView<'_, V>, row: usize) {
    prefetch(x.starts(), row + BOUNDS_AHEAD);
    if !x.is_run() {
        prefetch(x.ends(), row + BOUNDS_AHEAD);
    }
}

//! Entries of a csr asked for before a loop over its rows comes to them. The processor looks ahead by itself, but to the end of a page
//! of 4 KiB only, and there are two arrays or more to be read.

use crate::formats::CsrView;
use nnz_device::prefetch::{BOUNDS_AHEAD, prefetch, prefetch_lone_runs, prefetch_runs};
use sparse_core::element::Stored;

/// So many entries ahead entries are asked for, where rows lie one after the other.
pub(super) const ENTRIES_AHEAD: usize = 512;

/// The same where entries are passed faster than they come from memory: where each is of a single number on the other side, or where only
/// some of each row are read.
pub(super) const FAR: usize = 512;

/// So many rows ahead, where they lie anywhere.
const ROWS_AHEAD: usize = 8;

/// How far behind each entry of a row the one lies that is to be asked for with it. Rows of a selection lie anywhere: then that is
/// an entry of a later row, which may come before, so that the distance wraps around.
#[inline(always)]
pub(super) fn distance<V: Stored>(matrix: CsrView<'_, V>, row: usize) -> usize {
    distance_or(matrix, row, ENTRIES_AHEAD)
}

/// As [`distance`]; of rows that lie one after the other, another one. Once for each row: bounds of a later one are asked for.
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

/// Asks for an entry, which may lie outside of the arrays. With every entry that a loop reads this costs less than a loop of its own
/// over the lines of a row, whose end the processor guesses wrong.
#[inline(always)]
pub(super) fn ask<I, V>(ids: &[I], values: &[V], entry: usize) {
    prefetch(ids, entry);
    if size_of::<V>() > 0 {
        prefetch(values, entry);
    }
}

/// Asks at once for all that is to be asked for with a row, of a loop that reads only some of its entries: those so many entries
/// ahead, where rows lie one after the other.
#[inline(always)]
pub(super) fn ask_for_row<I, V: Stored>(
    matrix: CsrView<'_, V>,
    ids: &[I],
    row: usize,
    of_run: usize,
) {
    ask_for_runs(matrix, ids, matrix.values(), row, of_run);
}

/// The same of a loop that reads columns alone.
#[inline(always)]
pub(super) fn ask_for_ids<I, V: Stored>(matrix: CsrView<'_, V>, ids: &[I], row: usize) {
    ask_for_runs(matrix, ids, &[(); 0], row, ENTRIES_AHEAD);
}

#[inline(always)]
fn ask_for_runs<I, V: Stored, U>(
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

/// Asks for where a later row begins and ends. A line has the bounds of several rows, so that it is read so long after the one before it that
/// the processor has forgotten that it was to foresee it.
#[inline(always)]
fn prefetch_bounds<V: Stored>(x: CsrView<'_, V>, row: usize) {
    prefetch(x.starts(), row + BOUNDS_AHEAD);
    if !x.is_run() {
        prefetch(x.ends(), row + BOUNDS_AHEAD);
    }
}

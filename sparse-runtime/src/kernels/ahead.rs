//! Entries of a csr asked for before a loop over its rows comes to them. The processor looks ahead by itself, but to the end of a page
//! of 4 KiB only, and there are two arrays or more to be read.

use crate::formats::CsrView;
use crate::prefetch::{prefetch, prefetch_run};
use sparse_core::element::Stored;

/// How far behind each entry of a row the one lies that is to be asked for with it.
#[inline(always)]
pub(super) fn distance<V: Stored>(matrix: CsrView<'_, V>, row: usize) -> usize {
    distance_or(matrix, row, 128)
}

/// Asks for an entry, which may lie outside of the arrays.
#[inline(always)]
pub(super) fn ask<I, V>(ids: &[I], values: &[V], entry: usize) {
    prefetch(ids, entry);
    if size_of::<V>() > 0 {
        prefetch(values, entry);
    }
}

/// Asks at once for all that is to be asked for with a row, before its own entries are read: those that come soon after them.
#[inline(always)]
pub(super) fn ask_for_row<I, V: Stored>(matrix: CsrView<'_, V>, ids: &[I], row: usize) {
    let distance = distance_or(matrix, row, 64);
    let ahead = |bounds: &[u64]| (bounds[row] as usize).wrapping_add(distance);
    let (start, end) = (ahead(matrix.starts()), ahead(matrix.ends()));
    prefetch_run(ids, start, end);
    prefetch_run(matrix.values(), start, end);
}

/// `in_a_run` where rows follow each other. Rows of a selection lie anywhere: then the next row is to be asked for, which may come
/// before, so that the distance wraps around.
#[inline(always)]
fn distance_or<V: Stored>(matrix: CsrView<'_, V>, row: usize, in_a_run: usize) -> usize {
    if matrix.is_run() {
        return in_a_run;
    }
    match (matrix.starts().get(row), matrix.starts().get(row + 1)) {
        (Some(&start), Some(&next)) => next.wrapping_sub(start) as usize,
        _ => 0,
    }
}

//! Neighbouring columns for each of several threads, so that each has about as many entries.

use super::{ColumnId, CsrView, DividedEntries, FormatError};
use crate::with_column_ids;
use nnz_device::thread_pool;
use sparse_core::element::Stored;

/// Whether no part has more than three quarters of some sorted columns, so that of two parts each
/// has a quarter: of fewer its thread would do little but wait for the other. `firsts` are the
/// first columns of all parts but the first.
pub fn are_even(columns: &[usize], firsts: impl Iterator<Item = usize>) -> bool {
    let mut start = 0;
    firsts.chain([usize::MAX]).all(|first| {
        let end = columns.partition_point(|column| *column < first);
        let count = end - std::mem::replace(&mut start, end);
        count * 4 <= columns.len() * 3
    })
}

/// The first columns of shares of the entries of `x`, given where each begins among the sorted
/// entries, from 0 to 1.
pub fn columns_of_shares<V: Stored>(
    x: CsrView<'_, V>,
    starts: impl Iterator<Item = f64>,
) -> impl Iterator<Item = usize> {
    firsts_of(samples::<_, { 4 * N_SAMPLES }>(x), starts)
}

/// The same, of the sorted columns of some entries.
pub fn firsts_of<const N: usize>(
    samples: [usize; N],
    starts: impl Iterator<Item = f64>,
) -> impl Iterator<Item = usize> {
    let last = samples.len() - 1;
    let sample = move |start: f64| samples[last.min((start * samples.len() as f64) as usize)];
    starts.map(move |start| sample(start) / LINE * LINE)
}

/// Where each of some equal shares but the first begins, from 0 to 1.
pub fn equal_starts(n_parts: usize) -> impl Iterator<Item = f64> {
    (1..n_parts).map(move |part| part as f64 / n_parts as f64)
}

/// The entries of all rows of data, divided by columns so that each of some threads has about as
/// many. O(nnz) on each thread.
///
/// # Errors
///
/// [`FormatError::OutOfMemory`].
pub fn divide<V: Stored>(
    x: CsrView<'_, V>,
    n_parts: usize,
) -> Result<DividedEntries<V>, FormatError> {
    let n_parts = n_parts.clamp(1, thread_pool::MAX_PARTS);
    DividedEntries::of(x, columns_of_shares(x, equal_starts(n_parts)).collect())
}

/// Sums that two threads write in one line of the cache cost both: parts begin at rows that are a
/// multiple of this.
pub const LINE: usize = 16;

/// Columns of so many entries tell how the entries spread.
pub const N_SAMPLES: usize = 256;

/// The columns of an entry each of some rows, sorted; of rows without entries the first column.
pub fn samples<V: Stored, const N: usize>(x: CsrView<'_, V>) -> [usize; N] {
    let mut samples = [0; N];
    with_column_ids!(x.columns(), |ids| {
        for (place, sample) in samples.iter_mut().enumerate() {
            let range = {
                let row = place * x.n_rows() / N;
                x.starts()[row] as usize..x.ends()[row] as usize
            };
            // Another place of the row each time: a row is sorted. 97 has no divisor in common with
            // most lengths.
            if !range.is_empty() {
                *sample = ids[range.start + place * 97 % range.len()].at();
            }
        }
    });
    samples.sort_unstable();
    samples
}

//! A batch in parts: its rows of data for who scores them, the rows of a parameter for who updates them.
//!
//! A step on several threads has the bits of one on one thread. The scores of a row of data are the work of one thread; what is
//! summed over rows of data in their order is so by the calling thread; and the updates of a row of a parameter are the work of
//! one thread, which goes over all entries of the batch and takes those of its rows.

use crate::formats::{ColumnId, CsrView};
use crate::kernels::Parallel;
use crate::linear::{range_of, row_of};
use crate::optimizer::RowAccumulator;
use crate::team;
use crate::with_column_ids;
use sparse_core::element::{Float, Stored};
use std::ops::Range;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

/// The work, in about a quarter of a nanosecond, that a part of a step must have.
const WORK_OF_A_PART: usize = 1_000_000;

/// In how many parts to make a step on a batch, in which every entry reads and updates `columns` weights.
pub(crate) fn parts_of_step<V: Stored>(
    parallel: Parallel,
    x: CsrView<'_, V>,
    columns: usize,
) -> usize {
    let Parallel::Threads(threads) = parallel else { return 1 };
    if columns == 0 || x.n_rows() < 2 {
        return 1;
    }
    let work = x.nnz().saturating_mul(columns.saturating_add(15));
    threads.min(team::MAX_PARTS).min(work / WORK_OF_A_PART).max(1)
}

/// What one of several threads keeps of the rows of a parameter that it updates.
#[derive(Clone, Debug)]
pub(crate) struct RowPart<A> {
    /// The rows: those of the columns of the batch.
    pub(crate) rows: Range<usize>,
    /// The sums of their gradients.
    pub(crate) sums: RowAccumulator<A>,
    /// Those that the last [settling](crate::linear::settle) settled for the first time.
    pub(crate) first_settled: Vec<usize>,
    /// Rows of scratch.
    pub(crate) scratch: Vec<A>,
}

/// Gives each of some threads rows with about as many entries of `x`, and empty sums of `row_size` elements for them.
pub(crate) fn divide<'p, V: Stored, A: Float>(
    parts: &'p mut Vec<RowPart<A>>,
    n_parts: usize,
    x: CsrView<'_, V>,
    row_size: usize,
) -> &'p mut [RowPart<A>] {
    let fits =
        |part: &RowPart<A>| part.sums.n_rows() == x.n_cols() && part.sums.row_size() == row_size;
    if parts.len() != n_parts || !parts.iter().all(fits) {
        let sums = RowAccumulator::new(x.n_cols(), row_size);
        parts.clear();
        let (first_settled, scratch) = (Vec::new(), Vec::new());
        parts.resize(n_parts, RowPart { rows: 0..0, sums, first_settled, scratch });
    }
    let samples = samples(x);
    let mut start = 0;
    for (place, part) in parts.iter_mut().enumerate() {
        // Sums that two threads write in one line of the cache cost both.
        const LINE: usize = 16;
        let end = match place + 1 == n_parts {
            true => x.n_cols(),
            false => (samples[(place + 1) * N_SAMPLES / n_parts] / LINE * LINE).max(start),
        };
        part.rows = start..end;
        // A step that panicked may have left some.
        part.sums.clear();
        start = end;
    }
    parts
}

/// Columns of so many entries tell how the entries spread.
const N_SAMPLES: usize = 256;

/// The columns of an entry each of some rows, sorted; of rows without entries the first column.
fn samples<V: Stored>(x: CsrView<'_, V>) -> [usize; N_SAMPLES] {
    let mut samples = [0; N_SAMPLES];
    with_column_ids!(x.columns(), |ids| {
        for (place, sample) in samples.iter_mut().enumerate() {
            let range = range_of(x, place * x.n_rows() / N_SAMPLES);
            // Another place of the row each time: a row is sorted. 97 has no divisor in common with most lengths.
            if !range.is_empty() {
                *sample = ids[range.start + place * 97 % range.len()].at();
            }
        }
    });
    samples.sort_unstable();
    samples
}

/// Calls `visit` with the number of each row and those of its entries that are of `columns`, in order. A row may come in pieces. Where
/// `asks_ahead`, `ahead` is called with each of their ids some rows before. Both are given `state`. O(nnz of `x`).
#[inline(always)]
pub(crate) fn entries_of<'a, V: Stored, I: ColumnId, S>(
    x: CsrView<'a, V>,
    ids: &'a [I],
    columns: &Range<usize>,
    asks_ahead: bool,
    state: &mut S,
    ahead: impl Fn(&S, usize),
    visit: impl Fn(&mut S, usize, Chosen<'a, I, V>),
) {
    /// Pieces that are chosen from before the first of them is visited.
    const TOGETHER: usize = 16;
    if columns.is_empty() {
        return;
    }
    let (first, last) = (I::from_index(columns.start), I::from_index(columns.end - 1));
    let none = Chosen { ids: &ids[..0], values: &x.values()[..0], places: 0 };
    let mut pieces = [(0, none); TOGETHER];
    let (mut next_row, mut rest) = (0, (none.ids, none.values));
    loop {
        let mut n_pieces = 0;
        while n_pieces < TOGETHER {
            if rest.0.is_empty() {
                if next_row == x.n_rows() {
                    break;
                }
                rest = row_of(x, ids, next_row);
                next_row += 1;
                continue;
            }
            let len = rest.0.len().min(u64::BITS as usize);
            let (ids, more_ids) = rest.0.split_at(len);
            let (values, more_values) = rest.1.split_at(len);
            rest = (more_ids, more_values);
            let chosen = Chosen { ids, values, places: places_between(ids, first, last) };
            if asks_ahead {
                chosen.for_each(|(id, _)| ahead(state, id.at()));
            }
            pieces[n_pieces] = (next_row - 1, chosen);
            n_pieces += 1;
        }
        for (row, chosen) in &pieces[..n_pieces] {
            visit(state, *row, *chosen);
        }
        if n_pieces < TOGETHER {
            return;
        }
    }
}

/// A bit for each of at most 64 ids that is neither below `first` nor above `last`.
#[inline(always)]
fn places_between<I: ColumnId>(ids: &[I], first: I, last: I) -> u64 {
    let is_between = |id: &I| (*id >= first) & (*id <= last);
    // Eight at a time, which the compiler compares as a vector.
    let (chunks, rest) = ids.as_chunks::<8>();
    let mut places = 0;
    for (number, ids) in chunks.iter().enumerate() {
        let byte =
            ids.iter().enumerate().fold(0, |bits, (at, id)| bits | u8::from(is_between(id)) << at);
        places |= u64::from(byte) << (8 * number);
    }
    for (at, id) in rest.iter().enumerate() {
        places |= u64::from(is_between(id)) << (8 * chunks.len() + at);
    }
    places
}

/// Some entries of a run of at most 64, in order.
///
/// Invariant: `places` has bits below the number of `ids`, which are as many as `values`.
#[derive(Clone, Copy)]
pub(crate) struct Chosen<'a, I, V> {
    ids: &'a [I],
    values: &'a [V],
    places: u64,
}

impl<I: ColumnId, V: Stored> Iterator for Chosen<'_, I, V> {
    type Item = (I, V);

    #[inline(always)]
    fn next(&mut self) -> Option<(I, V)> {
        if self.places == 0 {
            return None;
        }
        let place = self.places.trailing_zeros() as usize;
        self.places &= self.places - 1;
        // SAFETY: the invariant.
        Some(unsafe { (*self.ids.get_unchecked(place), *self.values.get_unchecked(place)) })
    }

    #[inline(always)]
    fn size_hint(&self) -> (usize, Option<usize>) {
        let len = self.places.count_ones() as usize;
        (len, Some(len))
    }
}

impl<I: ColumnId, V: Stored> ExactSizeIterator for Chosen<'_, I, V> {}

/// Makes runs of rows of `out`, `width` elements each, on as many threads as there are parts: `make(part, rows, out)`, with a part
/// of that thread. The calling thread takes row by row in order, as soon as they are made: `take(row, out)`. While there is nothing
/// to take it makes some as well.
pub(crate) fn in_order<P: Send, U: Send>(
    parts: &mut [P],
    out: &mut [U],
    width: usize,
    make: impl Fn(&mut P, Range<usize>, &mut [U]) + Sync,
    mut take: impl FnMut(usize, &mut [U]),
) {
    /// A bit of a word each.
    const RUNS: usize = u64::BITS as usize;
    /// Pointers for several threads.
    struct Starts<P, U>(*mut P, *mut U);
    // SAFETY: a part and a run are referred to by one thread at a time, as the code below says, and may be sent to it.
    unsafe impl<P: Send, U: Send> Sync for Starts<P, U> {}
    /// Says that a run is made, also if that panicked, so that nobody waits for it.
    struct Made<'a>(&'a AtomicU64, usize);
    impl Drop for Made<'_> {
        fn drop(&mut self) {
            self.0.fetch_or(1 << self.1, Ordering::Release);
        }
    }

    let n_rows = out.len() / width.max(1);
    let rows_of_run = n_rows.div_ceil(RUNS);
    let rows_of =
        |run: usize| (run * rows_of_run).min(n_rows)..((run + 1) * rows_of_run).min(n_rows);
    let (begun, made) = (AtomicUsize::new(0), AtomicU64::new(0));
    let (n_parts, starts) = (parts.len(), &Starts(parts.as_mut_ptr(), out.as_mut_ptr()));
    let make_next = |part: usize| {
        let run = begun.fetch_add(1, Ordering::Relaxed);
        if run >= RUNS {
            return false;
        }
        let _made = Made(&made, run);
        let rows = rows_of(run);
        // SAFETY: inside `out`; the counter gives each run to one thread, and the calling one takes it when its bit is set. A thread
        // calls this with the number of its part.
        let (part, out) = unsafe {
            let first = starts.1.add(rows.start * width);
            (&mut *starts.0.add(part), std::slice::from_raw_parts_mut(first, rows.len() * width))
        };
        make(part, rows, out);
        true
    };
    let own = || {
        let mut looks = 0;
        for run in 0..RUNS {
            while made.load(Ordering::Acquire) & 1 << run == 0 {
                if !make_next(0) {
                    team::wait_a_little(&mut looks);
                }
            }
            for row in rows_of(run) {
                // SAFETY: inside `out`; the run is made, and nobody else refers to it any more.
                let out =
                    unsafe { std::slice::from_raw_parts_mut(starts.1.add(row * width), width) };
                take(row, out);
            }
        }
    };
    team::beside(n_parts, own, &|part| while make_next(part) {});
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::formats::Csr;

    /// Rows of 0 to 149 entries.
    fn matrix() -> Csr {
        let entries = |row: usize| (0..row * 37 % 150).map(move |k| (k * 3 + row % 50, k as f32));
        Csr::from_rows(500, (0..40).map(|row| entries(row).collect::<Vec<_>>())).unwrap()
    }

    #[test]
    fn small_batches_are_for_one_thread() {
        let x = matrix();
        assert_eq!(parts_of_step(Parallel::Threads(4), x.view(), 1), 1);
        let columns = 4 * WORK_OF_A_PART / x.nnz();
        assert_eq!(parts_of_step(Parallel::Threads(4), x.view(), columns), 4);
        assert_eq!(parts_of_step(Parallel::Sequential, x.view(), columns), 1);
        assert_eq!(parts_of_step(Parallel::Threads(4), x.view(), 0), 1);
        assert_eq!(parts_of_step(Parallel::Threads(4), x.view().rows(0..1).unwrap(), 1 << 40), 1);
    }

    #[test]
    fn every_entry_is_of_one_part() {
        let x = matrix();
        for n_parts in 1..6 {
            let mut parts = Vec::<RowPart<f32>>::new();
            let parts = divide(&mut parts, n_parts, x.view(), 1);
            let mut found = Vec::new();
            for part in parts {
                with_column_ids!(x.view().columns(), |ids| entries_of(
                    x.view(),
                    ids,
                    &part.rows,
                    true,
                    &mut found,
                    |_, row| assert!(part.rows.contains(&row)),
                    |found, row, entries| {
                        let count = entries.len();
                        found.extend(entries.map(|(id, value)| (row, id.at(), value)));
                        assert!(found[found.len() - count..].is_sorted_by_key(|entry| entry.1));
                    },
                ));
            }
            found.sort_by_key(|entry| (entry.0, entry.1));
            let all = (0..x.n_rows()).flat_map(|row| {
                let (columns, values) = x.view().row(row).unwrap();
                let columns = (0..columns.len()).filter_map(move |at| columns.get(at));
                columns.zip(values).map(move |(column, value)| (row, column, *value))
            });
            assert!(found.into_iter().eq(all), "{n_parts}");
        }
    }

    #[test]
    fn rows_are_taken_in_order_once_made() {
        for n_rows in [0, 1, 63, 64, 65, 1000] {
            let mut out = vec![0; 2 * n_rows];
            let mut taken = Vec::new();
            in_order(
                &mut [(); 3],
                &mut out,
                2,
                |(), rows, out| {
                    for (row, out) in rows.zip(out.chunks_exact_mut(2)) {
                        out.fill(row + 1);
                    }
                },
                |row, out| {
                    assert_eq!(out, [row + 1; 2]);
                    out.fill(row);
                    taken.push(row);
                },
            );
            assert!(taken.into_iter().eq(0..n_rows));
            assert!(out.iter().enumerate().all(|(at, value)| *value == at / 2));
        }
    }
}

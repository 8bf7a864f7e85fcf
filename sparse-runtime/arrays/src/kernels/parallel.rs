//! Work in parts: how many, and which rows each has.

use super::Parallel;
use crate::formats::column_shares::are_even;
use crate::formats::{ColumnId, CsrView};
use crate::with_column_ids;
#[cfg(target_arch = "x86_64")]
use nnz_device::simd::{same_type, x86};
use nnz_device::thread_pool::{self, MAX_PARTS};
use sparse_core::element::Stored;
use std::ops::Range;
use std::sync::{Mutex, PoisonError};

/// The work, in about a quarter of a nanosecond, that a part must have: two parts make 5 ms. With
/// less, waking a thread that sleeps takes what is won.
const WORK_OF_A_PART: usize = 10_000_000;

/// In how many parts to do work of some size, estimated in quarters of a nanosecond.
pub(crate) fn parts(parallel: Parallel, work: usize) -> usize {
    match parallel {
        Parallel::Sequential => 1,
        Parallel::Threads(threads) => threads.min(work / WORK_OF_A_PART).clamp(1, MAX_PARTS),
    }
}

/// Runs `body` on runs of the rows of a matrix, with the rows of `out` that go with them, of
/// `width` elements.
pub(crate) fn split_rows<T: Stored, U: Send>(
    parallel: Parallel,
    work: usize,
    rows: CsrView<'_, T>,
    out: &mut [U],
    width: usize,
    body: &(impl Fn(CsrView<'_, T>, &mut [U]) + Sync),
) {
    split_among(parts(parallel, work), rows, out, width, body);
}

/// Each thread takes the next run when it is done with one. Runs become shorter, so that threads
/// end at about the same time, also where something else takes the processor from one of them.
fn split_among<T: Stored, U: Send>(
    threads: usize,
    rows: CsrView<'_, T>,
    out: &mut [U],
    width: usize,
    body: &(impl Fn(CsrView<'_, T>, &mut [U]) + Sync),
) {
    /// The share of a thread of what is left, and the smallest of all.
    const SHARES: usize = 2;
    const MOST_SHARES: usize = 8;
    if threads < 2 || rows.n_rows() < 2 {
        return body(rows, out);
    }
    let all = rows.nnz();
    let least = all / (MOST_SHARES * threads);
    // Entries are counted as they are taken: of rows that lie anywhere each is looked at for that.
    let rest = Mutex::new((rows, out, all));
    let next = || {
        let mut rest = rest.lock().unwrap_or_else(PoisonError::into_inner);
        let (rows, out, left) = &mut *rest;
        let n_rows = rows.n_rows();
        let n_taken = if *left <= least {
            n_rows
        } else {
            row_at(*rows, (*left / (SHARES * threads)).max(least)).clamp(1, n_rows)
        };
        let (taken, left_rows) = rows.split(n_taken);
        let (taken_out, left_out) = std::mem::take(out).split_at_mut(n_taken * width);
        (*rows, *out, *left) = (left_rows, left_out, *left - taken.nnz());
        (n_taken > 0).then_some((taken, taken_out))
    };
    thread_pool::each(&mut [(); MAX_PARTS][..threads], |_, ()| {
        while let Some((rows, out)) = next() {
            body(rows, out);
        }
    });
}

/// The row before which `part` of `parts` of the entries lie, or almost. O(log n_rows), or
/// O(n_rows) where rows do not lie one after the other.
pub(crate) fn cut<T: Stored>(rows: CsrView<'_, T>, part: usize, parts: usize) -> usize {
    row_at(rows, rows.nnz() / parts * part)
}

/// The row before which not more than some of the entries lie, and as many as rows allow.
fn row_at<T: Stored>(rows: CsrView<'_, T>, n_entries: usize) -> usize {
    let wanted = n_entries as u64;
    if let Some(first) = rows.starts().first().filter(|_| rows.is_contiguous()) {
        return rows.ends().partition_point(|end| end - first <= wanted);
    }
    let mut before = 0;
    let bounds = rows.starts().iter().zip(rows.ends());
    let passed = bounds.take_while(|(start, end)| {
        before += *end - *start;
        before <= wanted
    });
    passed.count()
}

/// Runs `body` on ranges of the columns of a matrix, of about as many entries each: with the range,
/// the place of its first column, and the rows of `out` at the places of its columns, of `width`
/// elements. Places ascend with columns.
pub(crate) fn split_columns<T: Stored, U: Send>(
    parts: usize,
    matrix: CsrView<'_, T>,
    out: &mut [U],
    width: usize,
    place: &(impl Fn(usize) -> usize + Sync),
    body: &(impl Fn(Range<usize>, usize, &mut [U]) + Sync),
) {
    if width == 0 {
        return body(0..matrix.n_cols(), 0, out);
    }
    let (mut rest, mut start, mut pieces) = (out, 0, [const { None }; MAX_PARTS]);
    for (piece, columns) in pieces.iter_mut().zip(column_ranges(matrix, parts)) {
        let end = if columns.end == matrix.n_cols() {
            start + rest.len() / width
        } else {
            place(columns.end).max(start)
        };
        let (out, after) = rest.split_at_mut((end - start) * width);
        *piece = Some((columns, start, out));
        (rest, start) = (after, end);
    }
    thread_pool::each(&mut pieces[..parts], |_, piece| {
        if let Some((columns, start, out)) = piece {
            body(columns.clone(), *start, out);
        }
    });
}

/// Runs of all columns of a matrix, of about as many entries each: as many as there are to be
/// parts, or one where the entries are too few to tell, or [most](are_even) are of a few columns.
/// Those by which it is divided among as many threads, if it is.
pub(crate) fn column_ranges<T: Stored>(
    matrix: CsrView<'_, T>,
    parts: usize,
) -> impl Iterator<Item = Range<usize>> {
    let divided = if parts < 2 { None } else { matrix.divided_among(parts) };
    let samples = if parts < 2 || divided.is_some() { None } else { ColumnSamples::of(matrix) };
    let samples = samples.filter(|samples| samples.are_even(parts));
    let parts = if samples.is_some() || divided.is_some() { parts } else { 1 };
    let (mut start, n_cols) = (0, matrix.n_cols());
    (1..=parts).map(move |part| {
        let end = match (&divided, &samples) {
            _ if part == parts => n_cols,
            (Some(divided), _) => divided.firsts()[part - 1],
            (None, Some(samples)) => samples.before(part, parts),
            (None, None) => n_cols,
        };
        let range = start..end.max(start);
        start = range.end;
        range
    })
}

/// How many of some ids, which are sorted, are below a bound, which is an id. Of a row of the usual
/// length without a branch that depends on them; in a loop for vectors
/// ([`wide`](nnz_device::simd::wide)) as vectors.
#[inline(always)]
pub fn below<I: ColumnId>(ids: &[I], bound: usize) -> usize {
    /// So many are compared at a time.
    const IDS_PER_CHUNK: usize = 16;
    /// So many are compared faster than they are searched, a step of which is a branch that nothing
    /// foretells.
    const FEW: usize = 128;
    let bound = I::from_index(bound);
    if ids.len() >= FEW {
        return ids.partition_point(|id| *id < bound);
    }
    #[cfg(target_arch = "x86_64")]
    if x86::Level::found() == Some(x86::Level::Avx512)
        && let (Some(ids), Some([bound])) = (same_type(ids), same_type(&[bound]))
    {
        // SAFETY: the processor has the instructions.
        return unsafe { x86::count_below(ids, *bound) };
    }
    let (chunks, rest) = ids.as_chunks::<IDS_PER_CHUNK>();
    let mut whole = 0;
    for ids in chunks {
        whole += count_below(ids, bound);
    }
    let Some(last) = ids.last_chunk::<IDS_PER_CHUNK>() else { return count_below(rest, bound) };
    // If one of the last is below, so is all that comes before them.
    match count_below(last, bound) {
        0 => whole,
        of_last => whole.max(ids.len() - IDS_PER_CHUNK + of_last),
    }
}

/// A loop, and not an iterator's sum, which is not always inlined.
#[inline(always)]
fn count_below<I: ColumnId>(ids: &[I], bound: I) -> usize {
    let mut count = 0u32;
    for id in ids {
        count += u32::from(*id < bound);
    }
    count as usize
}

/// Columns of so many entries tell how the entries spread: halves by their median are off by three
/// in a hundred, rarely more.
const N_SAMPLES: usize = 1024;

/// The columns of some entries, sorted: one anywhere in each of as many runs of equal length. At
/// equal distances they would all be of one place in their rows where rows have as many entries
/// each, and of the same columns where rows are sorted.
struct ColumnSamples([usize; N_SAMPLES]);

impl ColumnSamples {
    /// Of a matrix; `None` if it has too few entries.
    fn of<T: Stored>(matrix: CsrView<'_, T>) -> Option<Self> {
        let mut samples = [0; N_SAMPLES];
        let step = matrix.nnz() / N_SAMPLES;
        if step == 0 {
            return None;
        }
        // Fibonacci hashing: multiples of the golden ratio spread evenly.
        let position = |sample: usize| {
            let spread = (sample as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32;
            sample * step + spread as usize % step
        };
        with_column_ids!(matrix.columns(), |ids| match matrix.starts().first() {
            Some(first) if matrix.is_contiguous() => {
                for (number, sample) in samples.iter_mut().enumerate() {
                    *sample = ids[*first as usize + position(number)].at();
                }
            }
            _ => {
                let (mut taken, mut before) = (0, 0);
                for (&start, &end) in matrix.starts().iter().zip(matrix.ends()) {
                    let len = (end - start) as usize;
                    while taken < N_SAMPLES && position(taken) < before + len {
                        samples[taken] = ids[start as usize + position(taken) - before].at();
                        taken += 1;
                    }
                    before += len;
                }
            }
        });
        samples.sort_unstable();
        Some(ColumnSamples(samples))
    }

    /// Whether the runs between these columns are of about as many entries each.
    fn are_even(&self, parts: usize) -> bool {
        are_even(&self.0, (1..parts).map(|part| self.before(part, parts)))
    }

    /// A column before which `part` of `parts` of the entries are, or almost.
    ///
    /// A little before: the column of a sample is likely one of many entries, and sums that two
    /// threads write in one line of the cache cost both. Not far: of a set of columns ranks are
    /// known near its members, such as the sample.
    fn before(&self, part: usize, parts: usize) -> usize {
        const LINE: usize = 16;
        self.0[part * N_SAMPLES / parts] / LINE * LINE
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::formats::{Csr, RowSelection};

    fn matrix() -> Csr {
        Csr::from_rows(50, (0..40).map(|row| (0..row).map(|k| (k, 1.0)).collect::<Vec<_>>()))
            .unwrap()
    }

    #[test]
    fn small_work_is_for_one_thread() {
        assert_eq!(parts(Parallel::Sequential, usize::MAX), 1);
        assert_eq!(parts(Parallel::Threads(4), 2 * WORK_OF_A_PART - 1), 1);
        assert_eq!(parts(Parallel::Threads(4), 2 * WORK_OF_A_PART), 2);
        assert_eq!(parts(Parallel::Threads(4), usize::MAX), 4);
        assert_eq!(parts(Parallel::Threads(0), usize::MAX), 1);
    }

    #[test]
    fn ids_below_a_bound_are_counted() {
        for len in [0, 1, 15, 16, 17, 31, 39, 127, 128, 300] {
            let ids: Vec<u32> = (0..len).map(|id| 2 * id + 1).collect();
            for bound in 0..2 * len + 2 {
                assert_eq!(below(&ids, bound as usize), (bound / 2) as usize, "{bound} of {len}");
            }
        }
    }

    #[test]
    fn rows_are_cut_by_their_entries() {
        let x = matrix();
        let mut selection = RowSelection::new();
        let backwards: Vec<usize> = (0..40).rev().collect();
        for view in [x.view(), selection.gather(&x, &backwards).unwrap()] {
            for threads in 1..9 {
                let (mut out, sizes) = (vec![0; 80], Mutex::new(Vec::new()));
                split_among(threads, view, &mut out, 2, &|rows, out| {
                    assert_eq!(out.len(), 2 * rows.n_rows());
                    let (ids, first) = (rows.columns(), rows.starts()[0] as usize);
                    assert!(rows.nnz() == 0 || ids.get(first) == Some(0));
                    out.iter_mut().for_each(|out| *out += 1);
                    sizes.lock().unwrap().push(rows.nnz());
                });
                assert!(out.iter().all(|&out| out == 1));
                let sizes = sizes.into_inner().unwrap();
                assert_eq!(sizes.iter().sum::<usize>(), x.nnz());
                let most = if threads == 1 { x.nnz() } else { x.nnz() / (2 * threads) + 40 };
                assert!(sizes.iter().all(|&size| size <= most), "{sizes:?}");
            }
        }
    }

    #[test]
    fn rows_without_entries_have_their_turn() {
        let x = Csr::<f32>::from_rows(3, vec![Vec::<(usize, f32)>::new(); 7]).unwrap();
        let mut out = [0; 7];
        split_among(3, x.view(), &mut out, 1, &|_, out| out.iter_mut().for_each(|out| *out += 1));
        assert_eq!(out, [1; 7]);
    }

    #[test]
    fn n14_columns_of_which_one_has_most_entries_are_one_run() {
        let runs = |x: Csr| column_ranges(x.view(), 2).count();
        let all_in_one = (0..4096).map(|_| [(7, 1.0)]);
        assert_eq!(runs(Csr::from_rows(500, all_in_one).unwrap()), 1);
        let third = (0..4096).map(|row| [7, 64 + row % 300, 65 + row % 300].map(|c| (c, 1.0)));
        assert_eq!(runs(Csr::from_rows(500, third).unwrap()), 2);
    }

    #[test]
    fn columns_are_cut_by_their_entries() {
        // As many entries a row, and a power of two of rows.
        for n_rows in [512, 1024, 8192] {
            let rows = (0..n_rows).map(|row| (0..8).map(move |k| (1000 * k + row % 1000, 1.0)));
            let x = Csr::from_rows(8000, rows.map(Vec::from_iter)).unwrap();
            for parts in 2..5 {
                assert_eq!(column_ranges(x.view(), parts).count(), parts);
                for range in column_ranges(x.view(), parts) {
                    let entries =
                        x.columns().iter().filter(|column| range.contains(column)).count();
                    let share = x.nnz() / parts;
                    assert!(entries.abs_diff(share) < share / 4, "{entries} of {share}");
                }
            }
        }
    }

    #[test]
    fn columns_are_cut_once_each() {
        // Columns apart, so that none has its cut where another one has.
        let rows = (0..80).map(|row| (0..row % 50).map(|k| (16 * k, 1.0)).collect::<Vec<_>>());
        let x = Csr::from_rows(800, rows).unwrap();
        assert!(x.nnz() >= N_SAMPLES);
        for n_parts in 1..6 {
            let (mut out, ranges) = (vec![0; 2400], Mutex::new(Vec::new()));
            split_columns(
                n_parts,
                x.view(),
                &mut out,
                3,
                &|column| column,
                &|columns, start, out| {
                    assert_eq!((columns.start, columns.len() * 3), (start, out.len()));
                    out.iter_mut().for_each(|out| *out += 1);
                    ranges.lock().unwrap().push(columns);
                },
            );
            assert!(out.iter().all(|&out| out == 1), "{n_parts}");
            assert_eq!(ranges.into_inner().unwrap().len(), n_parts);
        }
    }
}

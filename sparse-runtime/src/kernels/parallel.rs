//! Work in parts: how many, and which rows each has.

use super::Parallel;
use crate::formats::{ColumnId, CsrView};
use crate::with_column_ids;
use sparse_core::element::Stored;
use std::ops::Range;

/// The work, in about a quarter of a nanosecond, that a part must have: two parts make 5 ms. With less, waking a thread that
/// sleeps takes what is won.
const WORK_OF_A_PART: usize = 10_000_000;

/// In how many parts to do work of some size, estimated in quarters of a nanosecond.
pub(crate) fn parts(parallel: Parallel, work: usize) -> usize {
    match parallel {
        Parallel::Sequential => 1,
        Parallel::Threads(threads) => threads.min(work / WORK_OF_A_PART).max(1),
    }
}

/// Runs `body` on runs of the rows of a matrix, of about as many entries each, with the rows of `out` that go with them, of
/// `width` elements.
pub(crate) fn split_rows<T: Stored, U: Send>(
    parallel: Parallel,
    work: usize,
    rows: CsrView<'_, T>,
    out: &mut [U],
    width: usize,
    body: &(impl Fn(CsrView<'_, T>, &mut [U]) + Sync),
) {
    split_into(parts(parallel, work), rows, out, width, body);
}

fn split_into<T: Stored, U: Send>(
    parts: usize,
    rows: CsrView<'_, T>,
    out: &mut [U],
    width: usize,
    body: &(impl Fn(CsrView<'_, T>, &mut [U]) + Sync),
) {
    if parts < 2 || rows.n_rows() < 2 {
        return body(rows, out);
    }
    let left = parts / 2;
    let (head, tail) = rows.split(cut(rows, left, parts));
    let (out, rest) = out.split_at_mut(head.n_rows() * width);
    rayon::join(
        || split_into(left, head, out, width, body),
        || split_into(parts - left, tail, rest, width, body),
    );
}

/// The row before which `part` of `parts` of the entries lie, or almost. O(n_rows).
pub(crate) fn cut<T: Stored>(rows: CsrView<'_, T>, part: usize, parts: usize) -> usize {
    let wanted = (rows.nnz() / parts * part) as u64;
    let mut before = 0;
    let bounds = rows.starts().iter().zip(rows.ends());
    let passed = bounds.take_while(|(start, end)| {
        before += *end - *start;
        before <= wanted
    });
    passed.count()
}

/// Runs `body` on ranges of the columns of a matrix, of about as many entries each: with the range, the place of its first
/// column, and the rows of `out` at the places of its columns, of `width` elements. Places ascend with columns.
pub(crate) fn split_columns<T: Stored, U: Send>(
    parts: usize,
    matrix: CsrView<'_, T>,
    out: &mut [U],
    width: usize,
    place: &(impl Fn(usize) -> usize + Sync),
    body: &(impl Fn(Range<usize>, usize, &mut [U]) + Sync),
) {
    let all = 0..matrix.n_cols();
    let samples = if parts < 2 || width == 0 { None } else { ColumnSamples::of(matrix) };
    match samples {
        None => body(all, 0, out),
        Some(samples) => {
            ColumnParts { samples, of: parts, width, place, body }.run(0..parts, all, 0, out);
        }
    }
}

/// Columns of so many entries tell how the entries spread.
const N_SAMPLES: usize = 256;

/// The columns of entries at equal distances, sorted.
pub(crate) struct ColumnSamples([usize; N_SAMPLES]);

impl ColumnSamples {
    /// Of a matrix; `None` if it has too few entries.
    pub(crate) fn of<T: Stored>(matrix: CsrView<'_, T>) -> Option<Self> {
        let mut samples = [0; N_SAMPLES];
        let step = matrix.nnz() / N_SAMPLES;
        if step == 0 {
            return None;
        }
        let (mut taken, mut before) = (0, 0);
        with_column_ids!(matrix.columns(), |ids| {
            for (&start, &end) in matrix.starts().iter().zip(matrix.ends()) {
                let len = (end - start) as usize;
                while taken < N_SAMPLES && taken * step < before + len {
                    samples[taken] = ids[start as usize + taken * step - before].at();
                    taken += 1;
                }
                before += len;
            }
        });
        samples.sort_unstable();
        Some(ColumnSamples(samples))
    }

    /// The column, one of some, before which `part` of `of` of the entries lie, or about as many.
    pub(crate) fn cut(&self, part: usize, of: usize, columns: &Range<usize>) -> usize {
        // A little before: the column of a sample is likely one of many entries, and sums that two threads write in one line of
        // the cache cost both.
        const LINE: usize = 16;
        (self.0[part * N_SAMPLES / of] / LINE * LINE).clamp(columns.start, columns.end)
    }
}

struct ColumnParts<'a, P, B> {
    samples: ColumnSamples,
    of: usize,
    width: usize,
    place: &'a P,
    body: &'a B,
}

impl<P: Fn(usize) -> usize + Sync, B> ColumnParts<'_, P, B> {
    fn run<U: Send>(&self, parts: Range<usize>, columns: Range<usize>, start: usize, out: &mut [U])
    where
        B: Fn(Range<usize>, usize, &mut [U]) + Sync,
    {
        if parts.len() < 2 {
            return (self.body)(columns, start, out);
        }
        let middle = parts.start + parts.len() / 2;
        let cut = self.samples.cut(middle, self.of, &columns);
        let place = (self.place)(cut).max(start);
        let (out, rest) = out.split_at_mut((place - start) * self.width);
        rayon::join(
            || self.run(parts.start..middle, columns.start..cut, start, out),
            || self.run(middle..parts.end, cut..columns.end, place, rest),
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::formats::{Csr, RowSelection};
    use std::sync::Mutex;

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
    fn rows_are_cut_by_their_entries() {
        let x = matrix();
        let mut selection = RowSelection::new();
        let backwards: Vec<usize> = (0..40).rev().collect();
        for view in [x.view(), selection.gather(&x, &backwards).unwrap()] {
            for parts in 1..9 {
                let (mut out, sizes) = (vec![0; 80], Mutex::new(Vec::new()));
                split_into(parts, view, &mut out, 2, &|rows, out| {
                    assert_eq!(out.len(), 2 * rows.n_rows());
                    out.iter_mut().for_each(|out| *out += 1);
                    sizes.lock().unwrap().push(rows.nnz());
                });
                assert!(out.iter().all(|&out| out == 1));
                let sizes = sizes.into_inner().unwrap();
                assert_eq!(sizes.len(), parts);
                let share = x.nnz() / parts;
                assert!(sizes.iter().all(|size| size.abs_diff(share) <= 3 * 40), "{sizes:?}");
            }
        }
    }

    #[test]
    fn columns_are_cut_once_each() {
        let x = matrix();
        for n_parts in 1..6 {
            let (mut out, ranges) = (vec![0; 150], Mutex::new(Vec::new()));
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

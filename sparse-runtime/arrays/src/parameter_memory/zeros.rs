//! Runs of rows that nobody has written, and norms of the others.

use super::Table;
use super::aligned::Aligned;
use crate::in_library;
use sparse_core::element::{Element, Float};
use std::ops::Range;

/// Rows that are looked at together for zeros that nobody has written.
pub(super) const ROWS_PER_RUN: usize = 64;

/// The rows of a run, of `n_rows`.
#[inline(always)]
pub(super) fn rows_of_run(run: usize, n_rows: usize) -> Range<usize> {
    let first = run * ROWS_PER_RUN;
    first..n_rows.min(first + ROWS_PER_RUN)
}

/// Sums over the weights of a table, by [`Table::norms`].
#[derive(Clone, Copy, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct Norms {
    /// The sum of the magnitudes: the L1 norm.
    pub l1: f64,
    /// The sum of the squares: the square of the Euclidean norm.
    pub sum_of_squares: f64,
    /// The rows with a weight that is not 0.
    pub n_rows_not_zero: u64,
}

/// Whether every bit of some numbers is zero. (-0 is not.)
pub(super) fn are_zero<T: Copy>(numbers: &[T]) -> bool {
    // SAFETY: numbers have no padding, so that every byte is initialised; as many bytes as the
    // slice has, borrowed as it is.
    let bytes =
        unsafe { std::slice::from_raw_parts(numbers.as_ptr().cast::<u8>(), size_of_val(numbers)) };
    // The first byte is zero, and each of the others is as the one before it: a comparison at the
    // speed of memory.
    match bytes {
        [first, rest @ ..] => *first == 0 && *rest == bytes[..rest.len()],
        [] => true,
    }
}

/// The runs of rows that some ascending bytes belong to, as ascending and disjoint ranges below
/// `n_runs`.
pub(super) fn runs_of_bytes(
    bytes: impl Iterator<Item = Range<usize>>,
    row_bytes: usize,
    n_runs: usize,
) -> impl Iterator<Item = Range<usize>> {
    let run_bytes = row_bytes.saturating_mul(ROWS_PER_RUN).max(1);
    bytes
        .map(move |bytes| bytes.start / run_bytes..n_runs.min(bytes.end.div_ceil(run_bytes)))
        .scan(0, |end, runs| Some(behind(end, runs)))
        .filter(|runs| !runs.is_empty())
}

/// The runs of rows outside of which every bit of values is zero, row major.
pub(super) fn mapped_runs<T: Copy + Default>(
    values: &Aligned<T>,
    row_size: usize,
) -> impl Iterator<Item = Range<usize>> + use<T> {
    let n_rows = values.len().checked_div(row_size).unwrap_or(0);
    let row_bytes = row_size.saturating_mul(size_of::<T>());
    runs_of_bytes(values.mapped_bytes(), row_bytes, n_rows.div_ceil(ROWS_PER_RUN))
}

/// The numbers that are in ascending ranges of either kind, as ascending and disjoint ranges.
pub(super) fn in_either(
    one: impl Iterator<Item = Range<usize>>,
    other: impl Iterator<Item = Range<usize>>,
) -> impl Iterator<Item = Range<usize>> {
    let (mut one, mut other) = (one.peekable(), other.peekable());
    std::iter::from_fn(move || match (one.peek(), other.peek()) {
        (Some(first), Some(second)) if first.start > second.start => other.next(),
        (Some(_), _) => one.next(),
        (None, _) => other.next(),
    })
    .scan(0, |end, range| Some(behind(end, range)))
    .filter(|range| !range.is_empty())
}

/// What of a range is not below `end`, which becomes that of the range.
fn behind(end: &mut usize, range: Range<usize>) -> Range<usize> {
    let start = range.start.max(*end);
    *end = range.end.max(*end);
    start..range.end
}

impl<T: Element> Table<T> {
    /// Calls `visit` with the number and the weights of each row in which some bit is not zero, in
    /// order.
    ///
    /// O(rows in use), as long as the table knows them: since it was made, since the last such
    /// pass, and after an epoch under a rule that catches up with idle rows. After any other write
    /// one pass looks at all rows, 64 at a time at the speed of memory; on Linux at those in pages
    /// of memory that were ever touched. Rows that nobody has written stay unmapped.
    ///
    /// ```
    /// use nnz::table::Table;
    /// let mut table = Table::<f32>::zeros(1 << 20, 2);
    /// table.values_mut()[5001] = 3.0;
    /// let mut rows = Vec::new();
    /// table.for_each_written_row(|row, weights| rows.push((row, weights.to_vec())));
    /// assert_eq!(rows, [(2500, vec![0.0, 3.0])]);
    /// ```
    pub fn for_each_written_row(&self, mut visit: impl FnMut(usize, &[T])) {
        if self.row_size == 0 {
            return;
        }
        let Some(known) = self.runs_in_use.known() else {
            let mut finding = self.runs_in_use.finding(self.n_rows);
            self.look_at_all(|row, weights| {
                finding.add(row);
                visit(row, weights);
            });
            return finding.end();
        };
        let mut visit_row = |row: usize, weights: &[T]| {
            if !are_zero(weights) {
                visit(row, weights);
            }
        };
        match (self.values.get(), &self.blocks) {
            (None, Some(blocks)) => known.iter().for_each(|run| {
                run.for_each_row(|row| visit_row(row, blocks.row(row, self.row_size)));
            }),
            _ => {
                let values = self.values();
                let weights = |row: usize| &values[row * self.row_size..(row + 1) * self.row_size];
                known.iter().for_each(|run| run.for_each_row(|row| visit_row(row, weights(row))));
            }
        }
    }

    /// [`for_each_written_row`](Self::for_each_written_row) at the cost of all rows whose memory is
    /// mapped.
    fn look_at_all(&self, mut visit: impl FnMut(usize, &[T])) {
        let mut visit_row = |row: usize, weights: &[T]| {
            if !are_zero(weights) {
                visit(row, weights);
            }
        };
        let runs = self.mapped_runs().flatten().map(|run| rows_of_run(run, self.n_rows));
        match (self.values.get(), &self.blocks) {
            (None, Some(blocks)) => runs.for_each(|rows| {
                if !blocks.are_zero(rows.clone()) {
                    rows.for_each(|row| visit_row(row, blocks.row(row, self.row_size)));
                }
            }),
            _ => {
                let values = self.values();
                runs.for_each(|rows| {
                    let weights = &values[rows.start * self.row_size..rows.end * self.row_size];
                    if !are_zero(weights) {
                        let weights = weights.chunks_exact(self.row_size);
                        rows.zip(weights).for_each(|(row, weights)| visit_row(row, weights));
                    }
                });
            }
        }
    }

    /// The runs of rows that may not be zero, in the form that counts, by what memory is mapped.
    fn mapped_runs(&self) -> impl Iterator<Item = Range<usize>> {
        let of_blocks = match (self.values.get(), &self.blocks) {
            (None, Some(blocks)) => Some(blocks.mapped_runs(self.n_rows)),
            _ => None,
        };
        let of_values = of_blocks.is_none().then(|| mapped_runs(self.newest(), self.row_size));
        of_blocks.into_iter().flatten().chain(of_values.into_iter().flatten())
    }

    /// The rows that norms look at while the rows in use are not known: for tests of updaters.
    #[doc(hidden)]
    pub fn n_mapped_rows(&self) -> usize {
        self.mapped_runs().flatten().map(|run| rows_of_run(run, self.n_rows).len()).sum()
    }
}

impl<T: Float> Table<T> {
    /// Norms of the weights, at the cost of [`for_each_written_row`](Self::for_each_written_row).
    ///
    /// ```
    /// use nnz::table::Table;
    /// let norms = Table::from_values(2, &[0.0f32, 0.0, -3.0, 4.0, 0.0, 1.0]).norms();
    /// assert_eq!((norms.l1, norms.sum_of_squares, norms.n_rows_not_zero), (8.0, 26.0, 2));
    /// ```
    pub fn norms(&self) -> Norms {
        let table = self;
        in_library!(<T> Table::<T>::all_norms => (table: &Table<T>) -> Norms)
    }

    fn all_norms(&self) -> Norms {
        let mut norms = Norms::default();
        self.for_each_written_row(|_, weights| {
            let mut is_zero = true;
            for weight in weights.iter().map(|weight| weight.as_f64()) {
                norms.l1 += weight.abs();
                norms.sum_of_squares += weight * weight;
                is_zero &= weight == 0.0;
            }
            norms.n_rows_not_zero += u64::from(!is_zero);
        });
        norms
    }
}

//! Runs of rows that nobody has written, and norms of the others.

use super::Table;
use sparse_core::element::{Element, Float};

/// Rows that are looked at together for zeros that nobody has written.
pub(super) const ROWS_PER_RUN: usize = 64;

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

impl<T: Element> Table<T> {
    /// Calls `visit` with the number and the weights of each row in which some bit is not zero, in
    /// order.
    ///
    /// O(rows in use), as long as the table knows them: since it was made, since the last such
    /// pass, and after an epoch under a rule that catches up with idle rows. After any other write
    /// one pass looks at all rows, 64 at a time at the speed of memory. Rows that nobody has
    /// written stay unmapped.
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

    /// [`for_each_written_row`](Self::for_each_written_row) at the cost of all rows.
    fn look_at_all(&self, mut visit: impl FnMut(usize, &[T])) {
        let mut visit_row = |row: usize, weights: &[T]| {
            if !are_zero(weights) {
                visit(row, weights);
            }
        };
        match (self.values.get(), &self.blocks) {
            (None, Some(blocks)) => {
                for first in (0..self.n_rows).step_by(ROWS_PER_RUN) {
                    let rows = first..self.n_rows.min(first + ROWS_PER_RUN);
                    if !blocks.are_zero(rows.clone()) {
                        rows.for_each(|row| visit_row(row, blocks.row(row, self.row_size)));
                    }
                }
            }
            _ => {
                // Without rows they may be of any size.
                let runs = self.values().chunks(ROWS_PER_RUN.saturating_mul(self.row_size));
                for (run, values) in runs.enumerate().filter(|(_, values)| !are_zero(values)) {
                    let rows = values.chunks_exact(self.row_size).enumerate();
                    rows.for_each(|(row, weights)| visit_row(run * ROWS_PER_RUN + row, weights));
                }
            }
        }
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

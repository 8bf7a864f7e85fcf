//! Dense by dense, without packing: operands of models are small or thin, and a product must not
//! allocate.

use crate::formats::{DenseView, RowSparseView};
use crate::kernels::context::round;
use nnz_device::prefetch::prefetch;
use nnz_device::simd;
use sparse_core::element::Float;

/// A dense matrix, read transposed or not.
#[derive(Clone, Copy)]
pub(super) struct Matrix<'a, T> {
    pub(super) values: &'a [T],
    pub(super) n_rows: usize,
    pub(super) n_cols: usize,
    row_step: usize,
    column_step: usize,
}

impl<'a, T: Float> Matrix<'a, T> {
    pub(super) fn new(array: DenseView<'a, T>, transposed: bool) -> Self {
        let (n_rows, n_cols) = (array.shape().n_rows(), array.shape().row_size());
        let values = array.values();
        if transposed {
            Matrix { values, n_rows: n_cols, n_cols: n_rows, row_step: 1, column_step: n_cols }
        } else {
            Matrix { values, n_rows, n_cols, row_step: n_cols, column_step: 1 }
        }
    }

    /// The left side of a product: a vector is one row of it. On the right a vector is one column.
    pub(super) fn left(array: DenseView<'a, T>, transposed: bool) -> Self {
        Matrix::new(array, transposed || array.shape().rank() == 1)
    }

    /// The rows that an array stores, one below the other.
    pub(super) fn of_stored(array: RowSparseView<'a, T>) -> Self {
        let (n_rows, n_cols) = (array.n_stored(), array.shape().row_size());
        Matrix { values: array.values(), n_rows, n_cols, row_step: n_cols, column_step: 1 }
    }

    /// The same of other elements, as many.
    pub(super) fn with_values<'b, U>(self, values: &'b [U]) -> Matrix<'b, U> {
        let Matrix { n_rows, n_cols, row_step, column_step, .. } = self;
        Matrix { values, n_rows, n_cols, row_step, column_step }
    }

    /// The elements of a row, where they lie side by side.
    #[inline(always)]
    pub(super) fn row(&self, row: usize) -> Option<&'a [T]> {
        // A single column lies side by side with nothing, however far apart its rows are.
        (self.column_step == 1 || self.n_cols == 1)
            .then(|| &self.values[row * self.row_step..][..self.n_cols])
    }

    /// All rows, where they lie one after the other and each in one piece.
    #[inline(always)]
    pub(super) fn rows(&self) -> Option<&'a [T]> {
        (self.row_step == self.n_cols && (self.column_step == 1 || self.n_cols == 1))
            .then_some(self.values)
    }

    /// The rows below so many, of which there may be none.
    pub(super) fn below(self, row: usize) -> Self {
        let values = &self.values[row * self.row_step..];
        Matrix { values, n_rows: self.n_rows - row, ..self }
    }

    /// Asks for a row, the first line of it, which may lie outside.
    #[inline(always)]
    pub(super) fn ask(&self, row: usize) {
        prefetch(self.values, row.wrapping_mul(self.row_step));
    }

    #[inline(always)]
    pub(super) fn at(&self, row: usize, column: usize) -> T {
        self.values[row * self.row_step + column * self.column_step]
    }
}

/// The rows and columns of a tile of the result, whose sums stay in registers.
const TILE_ROWS: usize = 4;
const TILE_COLUMNS: usize = 16;

/// The terms that are summed in the accumulator of elements, before their sum is added in `f64`:
/// the inner extent may be a batch's.
const TERMS: usize = 256;

/// out = lhs · rhs. Each element is a sum over the inner extent in ascending order, [so
/// many](TERMS) terms at a time, or, where rows of the left and columns of the right side lie in
/// one piece of memory each, the sum of eight such sums.
pub(super) fn multiply<T: Float>(out: &mut [T], lhs: Matrix<'_, T>, rhs: Matrix<'_, T>) {
    debug_assert_eq!(lhs.n_cols, rhs.n_rows);
    simd::wide(
        #[inline(always)]
        || blocks(out, lhs, rhs),
    );
}

/// To be compiled for vectors, with what it calls.
#[inline(always)]
fn blocks<T: Float>(out: &mut [T], lhs: Matrix<'_, T>, rhs: Matrix<'_, T>) {
    let mut row = 0;
    while row < lhs.n_rows {
        let left = lhs.n_rows - row;
        if left >= TILE_ROWS {
            row_block::<TILE_ROWS, T>(out, lhs, rhs, row);
            row += TILE_ROWS;
        } else {
            row_block::<1, T>(out, lhs, rhs, row);
            row += 1;
        }
    }
}

#[inline(always)]
fn row_block<const R: usize, T: Float>(
    out: &mut [T],
    lhs: Matrix<'_, T>,
    rhs: Matrix<'_, T>,
    row: usize,
) {
    let n_cols = rhs.n_cols;
    // A single column lies in one piece either way.
    let is_transposed = rhs.column_step != 1 || (n_cols == 1 && rhs.row_step == 1);
    if is_transposed && lhs.column_step == 1 {
        for row in row..row + R {
            for column in 0..n_cols {
                let x = &lhs.values[row * lhs.row_step..][..lhs.n_cols];
                let y = &rhs.values[column * rhs.column_step..][..rhs.n_rows];
                out[row * n_cols + column] = product(x, y);
            }
        }
        return;
    }
    let mut column = 0;
    while column < n_cols {
        let left = n_cols - column;
        if rhs.column_step == 1 && left >= TILE_COLUMNS {
            tile::<R, TILE_COLUMNS, T>(out, lhs, rhs, row, column);
            column += TILE_COLUMNS;
        } else if rhs.column_step == 1 && left >= 4 {
            tile::<R, 4, T>(out, lhs, rhs, row, column);
            column += 4;
        } else {
            tile::<R, 1, T>(out, lhs, rhs, row, column);
            column += 1;
        }
    }
}

#[inline(always)]
fn tile<const R: usize, const C: usize, T: Float>(
    out: &mut [T],
    lhs: Matrix<'_, T>,
    rhs: Matrix<'_, T>,
    row: usize,
    column: usize,
) {
    let mut first = 0;
    // More than one only where there are many terms.
    let mut totals = [[0.0; C]; R];
    loop {
        let end = lhs.n_cols.min(first + TERMS);
        let mut sums = [[T::zero().widen(); C]; R];
        for inner in first..end {
            let start = inner * rhs.row_step + column * rhs.column_step;
            let y = &rhs.values[start..start + C];
            for (r, sums) in sums.iter_mut().enumerate() {
                let x = lhs.at(row + r, inner).widen();
                for (sum, &y) in sums.iter_mut().zip(y) {
                    *sum += x * y.widen();
                }
            }
        }
        if first == 0 && end == lhs.n_cols {
            for (r, sums) in sums.iter().enumerate() {
                let start = (row + r) * rhs.n_cols + column;
                for (out, &sum) in out[start..start + C].iter_mut().zip(sums) {
                    *out = T::narrow(sum);
                }
            }
            return;
        }
        for (totals, sums) in totals.iter_mut().zip(&sums) {
            totals.iter_mut().zip(sums).for_each(|(total, sum)| *total += sum.as_f64());
        }
        first = end;
        if first == lhs.n_cols {
            break;
        }
    }
    for (r, totals) in totals.iter().enumerate() {
        let start = (row + r) * rhs.n_cols + column;
        round(&mut out[start..start + C], totals);
    }
}

/// The inner product.
#[inline(always)]
fn product<T: Float>(x: &[T], y: &[T]) -> T {
    const TERMS_PER_PIECE: usize = 8 * TERMS;
    if x.len() <= TERMS_PER_PIECE {
        return T::narrow(in_lanes(x, y));
    }
    let pieces = x.chunks(TERMS_PER_PIECE).zip(y.chunks(TERMS_PER_PIECE));
    T::of(pieces.map(|(x, y)| in_lanes(x, y).as_f64()).sum())
}

/// The same in eight lanes.
#[inline(always)]
fn in_lanes<T: Float>(x: &[T], y: &[T]) -> T::Accumulator {
    let mut lanes = [T::zero().widen(); 8];
    let (mut left, mut right) = (x.chunks_exact(8), y.chunks_exact(8));
    for (x, y) in (&mut left).zip(&mut right) {
        for ((lane, &x), &y) in lanes.iter_mut().zip(x).zip(y) {
            *lane += x.widen() * y.widen();
        }
    }
    let rest = left.remainder().iter().zip(right.remainder());
    let rest: T::Accumulator = rest.map(|(&x, &y)| x.widen() * y.widen()).sum();
    let [a, b, c, d, e, f, g, h] = lanes;
    ((a + b) + (c + d)) + ((e + f) + (g + h)) + rest
}

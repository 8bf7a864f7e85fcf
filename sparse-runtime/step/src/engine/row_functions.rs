//! What emitted row functions call: functions of rows of one sample.
//!
//! All are inlined into the row function, which knows the lengths of most rows.

use crate::linear::row_of;
use nnz_arrays::formats::{ColumnId as _, CsrView};
use nnz_arrays::with_column_ids;
use nnz_device::simd;
use sparse_core::element::{Factor, Float};

/// `out` = x · w, of a row and a matrix with as many rows as x has elements. Each sum is in the
/// order of x, that of a single column in eight interleaved sums.
#[inline(always)]
pub fn product<T: Float<Accumulator = T>>(x: &[T], w: &[T], out: &mut [T]) {
    if let [out] = out {
        *out = simd::inner(x, w);
        return;
    }
    /// Columns at a time, whose sums stay in registers.
    const COLUMNS: usize = 16;
    let columns = out.len().max(1);
    for (block, out) in out.chunks_mut(COLUMNS).enumerate() {
        let (mut sums, first) = ([T::zero(); COLUMNS], block * COLUMNS);
        for (x, row) in x.iter().zip(w.chunks_exact(columns)) {
            for (sum, w) in sums.iter_mut().zip(&row[first..first + out.len()]) {
                *sum += *x * *w;
            }
        }
        out.copy_from_slice(&sums[..out.len()]);
    }
}

/// `out` = x · wᵀ, of a row and a matrix with as many columns as x has elements. Each sum is in
/// eight interleaved ones.
#[inline(always)]
pub fn transposed_product<T: Float<Accumulator = T>>(x: &[T], w: &[T], out: &mut [T]) {
    for (out, row) in out.iter_mut().zip(w.chunks_exact(x.len().max(1))) {
        *out = match (x, row) {
            ([x], [w]) => *x * *w,
            _ => simd::inner(x, row),
        };
    }
}

/// Adds a vector to a row.
#[inline(always)]
pub fn add<T: Float>(row: &mut [T], vector: &[T]) {
    for (sum, x) in row.iter_mut().zip(vector) {
        *sum += *x;
    }
}

/// Adds the products of all elements of two rows to a matrix.
#[inline(always)]
pub fn add_outer<T: Float>(sums: &mut [T], left: &[T], right: &[T]) {
    for (sums, x) in sums.chunks_exact_mut(right.len().max(1)).zip(left) {
        for (sum, y) in sums.iter_mut().zip(right) {
            *sum += *x * *y;
        }
    }
}

/// `out` = one row after the other, in blocks of these lengths.
#[inline(always)]
pub fn join<T: Float>(first: (&[T], usize), second: (&[T], usize), out: &mut [T]) {
    let blocks = out.chunks_exact_mut((first.1 + second.1).max(1));
    let first_blocks = first.0.chunks_exact(first.1.max(1));
    for ((out, left), right) in blocks.zip(first_blocks).zip(second.0.chunks_exact(second.1.max(1)))
    {
        let (of_first, of_second) = out.split_at_mut(first.1);
        of_first.copy_from_slice(left);
        of_second.copy_from_slice(right);
    }
}

/// `out` = the first elements of each block of a row, or the last: blocks have `of` elements, and
/// `out` has `part` of each.
#[inline(always)]
pub fn part<T: Float>(row: &[T], of: usize, part: usize, from_end: bool, out: &mut [T]) {
    let start = if from_end { of.saturating_sub(part) } else { 0 };
    for (out, row) in out.chunks_exact_mut(part.max(1)).zip(row.chunks_exact(of.max(1))) {
        out.copy_from_slice(&row[start..start + part]);
    }
}

/// The sum of a row, in eight interleaved sums.
#[inline(always)]
pub fn total<T: Float>(row: &[T]) -> T {
    match row {
        [x] => *x,
        row => simd::sum(row),
    }
}

/// The mean of a row.
#[inline(always)]
pub fn mean<T: Float>(row: &[T]) -> T {
    total(row) / T::of(row.len() as f64)
}

/// 1 / `count`.
#[inline(always)]
pub fn share<T: Float>(count: usize) -> T {
    T::of(1.0 / count as f64)
}

/// `out` = a row of a csr with its zeros. O(columns).
#[inline(always)]
pub fn densify<T: Float, V: Factor<T>>(csr: CsrView<'_, V>, row: usize, out: &mut [T]) {
    out.fill(T::zero());
    with_column_ids!(csr.columns(), |ids| {
        let (ids, values) = row_of(csr, ids, row);
        for (id, value) in ids.iter().zip(values) {
            if let Some(out) = out.get_mut(id.at()) {
                *out = value.number();
            }
        }
    });
}

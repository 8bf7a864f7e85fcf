//! Products whose result is written row by row: each row of a csr reads what its columns name.

use super::gemm::Matrix;
use crate::formats::{ColumnId, CsrView, RowSparseView};
use crate::with_column_ids;
use sparse_core::element::Float;

/// Row i of `out` = Σ value · row(column) over the entries of row i; `rhs` has one row of `width` elements a column.
pub(super) fn sums_of_rows<T: Float>(
    out: &mut [T],
    lhs: CsrView<'_, T>,
    rhs: &[T],
    width: usize,
    scratch: &mut Vec<f32>,
) {
    // What the loops without checks rely on, together with the invariant of csr.
    assert_eq!(
        lhs.n_cols().checked_mul(width),
        Some(rhs.len()),
        "one row of the right side a column"
    );
    with_column_ids!(lhs.columns(), |ids| match width {
        1 => single(out, lhs, ids, rhs),
        2 => narrow::<2, _, _>(out, lhs, ids, rhs),
        4 => narrow::<4, _, _>(out, lhs, ids, rhs),
        8 => narrow::<8, _, _>(out, lhs, ids, rhs),
        16 => narrow::<16, _, _>(out, lhs, ids, rhs),
        32 => narrow::<32, _, _>(out, lhs, ids, rhs),
        _ => any_width(out, lhs, ids, rhs, width, scratch),
    });
}

/// One column: four sums, so that additions do not wait for each other.
fn single<T: Float, I: ColumnId>(out: &mut [T], lhs: CsrView<'_, T>, ids: &[I], rhs: &[T]) {
    for (row, out) in out.iter_mut().enumerate() {
        let (ids, values) = entries(lhs, ids, row);
        // SAFETY: columns of a csr are below `n_cols`, and `sums_of_rows` checked that `rhs` has as many rows, of 1.
        let at = |id: I| unsafe { rhs.get_unchecked(id.at()).widen() };
        let mut sums = [T::zero().widen(); 4];
        let (mut ids, mut values) = (ids.chunks_exact(4), values.chunks_exact(4));
        for (ids, values) in (&mut ids).zip(&mut values) {
            for ((sum, &id), &value) in sums.iter_mut().zip(ids).zip(values) {
                *sum += value.widen() * at(id);
            }
        }
        let rest = ids.remainder().iter().zip(values.remainder());
        let rest: T::Accumulator = rest.map(|(&id, &value)| value.widen() * at(id)).sum();
        *out = T::narrow((sums[0] + sums[1]) + (sums[2] + sums[3]) + rest);
    }
}

/// A width known to the compiler: the sums are registers.
fn narrow<const WIDTH: usize, T: Float, I: ColumnId>(
    out: &mut [T],
    lhs: CsrView<'_, T>,
    ids: &[I],
    rhs: &[T],
) {
    for (row, out) in out.chunks_exact_mut(WIDTH).enumerate() {
        let (ids, values) = entries(lhs, ids, row);
        let mut sums = [T::zero().widen(); WIDTH];
        for (id, &value) in ids.iter().zip(values) {
            let start = id.at() * WIDTH;
            // SAFETY: columns of a csr are below `n_cols`, and `sums_of_rows` checked that `rhs` has as many rows, of
            // `WIDTH`.
            let y = unsafe { rhs.get_unchecked(start..start + WIDTH) };
            for (sum, &y) in sums.iter_mut().zip(y) {
                *sum += value.widen() * y.widen();
            }
        }
        for (out, sum) in out.iter_mut().zip(sums) {
            *out = T::narrow(sum);
        }
    }
}

fn any_width<T: Float, I: ColumnId>(
    out: &mut [T],
    lhs: CsrView<'_, T>,
    ids: &[I],
    rhs: &[T],
    width: usize,
    scratch: &mut Vec<f32>,
) {
    for (row, out) in out.chunks_exact_mut(width.max(1)).enumerate() {
        let (ids, values) = entries(lhs, ids, row);
        out.fill(T::zero());
        T::in_accumulator(out, scratch, |out| {
            for (id, &value) in ids.iter().zip(values) {
                add_scaled::<T>(out, &rhs[id.at() * width..(id.at() + 1) * width], value);
            }
        });
    }
}

/// Row i of `out` = Σ value · row(column) over the entries whose row `rhs` stores, at the position that `find` gives.
pub(super) fn sums_of_stored_rows<T: Float>(
    out: &mut [T],
    lhs: CsrView<'_, T>,
    rhs: RowSparseView<'_, T>,
    find: impl Fn(usize) -> Option<usize>,
    scratch: &mut Vec<f32>,
) {
    let width = rhs.shape().row_size();
    with_column_ids!(lhs.columns(), |ids| {
        for (row, out) in out.chunks_exact_mut(width.max(1)).enumerate() {
            let (ids, values) = entries(lhs, ids, row);
            out.fill(T::zero());
            T::in_accumulator(out, scratch, |out| {
                for (id, &value) in ids.iter().zip(values) {
                    if let Some(position) = find(id.at()) {
                        let x = &rhs.values()[position * width..(position + 1) * width];
                        add_scaled::<T>(out, x, value);
                    }
                }
            });
        }
    });
}

/// Element (i, j) of `out` = Σ value · rhs[j, column] over the entries of row i: the right side is read transposed.
pub(super) fn products_with_rows<T: Float>(out: &mut [T], lhs: CsrView<'_, T>, rhs: &[T]) {
    let (n_rows, inner) = (lhs.n_rows(), lhs.n_cols());
    let n_cols = out.len().checked_div(n_rows).unwrap_or(0);
    with_column_ids!(lhs.columns(), |ids| {
        for (row, out) in out.chunks_exact_mut(n_cols.max(1)).enumerate() {
            let (ids, values) = entries(lhs, ids, row);
            for (column, out) in out.iter_mut().enumerate() {
                let y = &rhs[column * inner..(column + 1) * inner];
                let terms = ids.iter().zip(values);
                *out =
                    T::narrow(terms.map(|(id, &value)| value.widen() * y[id.at()].widen()).sum());
            }
        }
    });
}

/// Element (i, j) of `out` = Σ lhs[i, column] · value over the entries of row j.
pub(super) fn products_with_csr_rows<T: Float>(
    out: &mut [T],
    lhs: Matrix<'_, T>,
    rhs: CsrView<'_, T>,
) {
    let n_cols = rhs.n_rows();
    with_column_ids!(rhs.columns(), |ids| {
        for (row, out) in out.chunks_exact_mut(n_cols.max(1)).enumerate() {
            for (column, out) in out.iter_mut().enumerate() {
                let (ids, values) = entries(rhs, ids, column);
                let terms = ids.iter().zip(values);
                *out = T::narrow(match lhs.row(row) {
                    Some(x) => terms.map(|(id, &value)| x[id.at()].widen() * value.widen()).sum(),
                    None => {
                        terms.map(|(id, &value)| lhs.at(row, id.at()).widen() * value.widen()).sum()
                    }
                });
            }
        }
    });
}

/// The columns and values of a row.
#[inline(always)]
pub(super) fn entries<'a, 'b, T: Float, I>(
    matrix: CsrView<'a, T>,
    ids: &'b [I],
    row: usize,
) -> (&'b [I], &'a [T]) {
    let range = matrix.starts()[row] as usize..matrix.ends()[row] as usize;
    (&ids[range.clone()], &matrix.values()[range])
}

/// out += value · x.
#[inline(always)]
pub(super) fn add_scaled<T: Float>(out: &mut [T::Accumulator], x: &[T], value: T) {
    for (out, &x) in out.iter_mut().zip(x) {
        *out += value.widen() * x.widen();
    }
}

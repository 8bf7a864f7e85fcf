//! Products whose result is written where columns name: each entry of a csr adds to the place of its column.

use super::gather::{add_scaled, entries};
use super::gemm::Matrix;
use crate::formats::{ColumnId, CsrView, RowSparseView};
use crate::with_column_ids;
use sparse_core::element::Float;

/// Row place(column) of `out` += value · rhs.row(i), for each entry of each row i. `out` is zero before.
pub(super) fn dense<T: Float>(
    out: &mut [T::Accumulator],
    lhs: CsrView<'_, T>,
    rhs: Matrix<'_, T>,
    place: impl Fn(usize) -> usize,
) {
    let width = rhs.n_cols;
    with_column_ids!(lhs.columns(), |ids| {
        for row in 0..lhs.n_rows() {
            let (ids, values) = entries(lhs, ids, row);
            match rhs.row(row) {
                Some(x) => scatter_row::<T, _>(out, ids, values, x, &place),
                None => {
                    for column in 0..width {
                        let x = rhs.at(row, column);
                        for (id, &value) in ids.iter().zip(values) {
                            out[place(id.at()) * width + column] += value.widen() * x.widen();
                        }
                    }
                }
            }
        }
    });
}

/// The same for a right side of which only some rows are stored.
pub(super) fn stored_rows<T: Float>(
    out: &mut [T::Accumulator],
    lhs: CsrView<'_, T>,
    rhs: RowSparseView<'_, T>,
    place: impl Fn(usize) -> usize,
) {
    with_column_ids!(lhs.columns(), |ids| {
        for (row, x) in rhs.iter_rows() {
            let (ids, values) = entries(lhs, ids, row);
            scatter_row::<T, _>(out, ids, values, x, &place);
        }
    });
}

#[inline(always)]
fn scatter_row<T: Float, I: ColumnId>(
    out: &mut [T::Accumulator],
    ids: &[I],
    values: &[T],
    x: &[T],
    place: &impl Fn(usize) -> usize,
) {
    // Widths known to the compiler become a few instructions without a loop.
    match x.len() {
        1 => scatter_width::<1, T, _>(out, ids, values, x, place),
        2 => scatter_width::<2, T, _>(out, ids, values, x, place),
        4 => scatter_width::<4, T, _>(out, ids, values, x, place),
        8 => scatter_width::<8, T, _>(out, ids, values, x, place),
        16 => scatter_width::<16, T, _>(out, ids, values, x, place),
        width => {
            for (id, &value) in ids.iter().zip(values) {
                let start = place(id.at()) * width;
                add_scaled::<T>(&mut out[start..start + width], x, value);
            }
        }
    }
}

#[inline(always)]
fn scatter_width<const WIDTH: usize, T: Float, I: ColumnId>(
    out: &mut [T::Accumulator],
    ids: &[I],
    values: &[T],
    x: &[T],
    place: &impl Fn(usize) -> usize,
) {
    let mut row = [T::zero(); WIDTH];
    row.copy_from_slice(x);
    for (id, &value) in ids.iter().zip(values) {
        let start = place(id.at()) * WIDTH;
        add_scaled::<T>(&mut out[start..start + WIDTH], &row, value);
    }
}

/// Element (i, place(column)) of `out`, whose rows have `width` elements, += lhs[i, l] · value, for each entry of each row
/// l. `out` is zero before.
pub(super) fn dense_csr<T: Float>(
    out: &mut [T::Accumulator],
    width: usize,
    lhs: Matrix<'_, T>,
    rhs: CsrView<'_, T>,
    place: impl Fn(usize) -> usize,
) {
    with_column_ids!(rhs.columns(), |ids| {
        for (row, out) in out.chunks_exact_mut(width.max(1)).enumerate() {
            for inner in 0..rhs.n_rows() {
                let x = lhs.at(row, inner);
                let (ids, values) = entries(rhs, ids, inner);
                for (id, &value) in ids.iter().zip(values) {
                    out[place(id.at())] += x.widen() * value.widen();
                }
            }
        }
    });
}

//! Products whose result is written where columns name: each entry of a csr adds to the place of its column.

use super::gather::{add_scaled, entries};
use super::gemm::Matrix;
use crate::formats::{ColumnId, CsrView, RowSparseView};
use crate::kernels::parallel::split_columns;
use crate::kernels::{Parallel, parallel};
use crate::lanes::{Lanes, Loop, Plain, same_type, widest};
use crate::prefetch::prefetch_known;
use crate::with_column_ids;
use sparse_core::element::Float;
use std::ops::Range;

/// Row place(column) of `out` += value · rhs.row(i), for each entry of each row i. `out` is zero before, and places ascend
/// with columns.
pub(super) fn dense<T: Float>(
    out: &mut [T::Accumulator],
    lhs: CsrView<'_, T>,
    rhs: Matrix<'_, T>,
    parallel: Parallel,
    place: impl Fn(usize) -> usize + Copy + Sync,
) {
    split_columns(
        parts(lhs, rhs.n_cols, parallel),
        lhs,
        out,
        rhs.n_cols,
        &place,
        &|columns, start, out| {
            with_column_ids!(lhs.columns(), |ids| {
                let place = |column| place(column) - start;
                widest(Scatter { out, lhs, ids, rhs, columns, place, visit: |_| {} });
            });
        },
    );
}

/// In how many parts [`dense`] does its work.
pub(super) fn parts<T: Float>(lhs: CsrView<'_, T>, width: usize, parallel: Parallel) -> usize {
    parallel::parts(parallel, lhs.nnz().saturating_mul(8 + width / 2))
}

/// The same with the place of a column being the column, and a visit of each entry's column.
pub(super) fn by_column<T: Float>(
    out: &mut [T::Accumulator],
    lhs: CsrView<'_, T>,
    rhs: Matrix<'_, T>,
    visit: impl FnMut(usize),
) {
    let columns = 0..lhs.n_cols();
    with_column_ids!(lhs.columns(), |ids| {
        widest(Scatter { out, lhs, ids, rhs, columns, place: |column| column, visit });
    });
}

/// The entries in some columns, each at its place in `out`.
struct Scatter<'a, 'm, T: Float, I, P, V> {
    out: &'a mut [T::Accumulator],
    lhs: CsrView<'m, T>,
    ids: &'a [I],
    rhs: Matrix<'a, T>,
    columns: Range<usize>,
    place: P,
    visit: V,
}

impl<T, I, P, V> Loop<T::Accumulator> for Scatter<'_, '_, T, I, P, V>
where
    T: Float,
    I: ColumnId,
    P: Fn(usize) -> usize,
    V: FnMut(usize),
{
    #[inline(always)]
    unsafe fn run<L: Lanes<T::Accumulator>>(self) {
        let Scatter { out, lhs, ids, rhs, columns, place, mut visit } = self;
        let width = rhs.n_cols;
        let whole = columns == (0..lhs.n_cols());
        for row in 0..lhs.n_rows() {
            let (mut start, mut end) = (lhs.starts()[row] as usize, lhs.ends()[row] as usize);
            if !whole {
                let row = &ids[start..end];
                end = start + row.partition_point(|id| id.at() < columns.end);
                start += row.partition_point(|id| id.at() < columns.start);
            }
            let (some, values) = (&ids[start..end], &lhs.values()[start..end]);
            some.iter().for_each(|id| visit(id.at()));
            match rhs.row(row) {
                Some(&[x]) => {
                    for (id, &value) in some.iter().zip(values) {
                        out[place(id.at())] += value.widen() * x.widen();
                    }
                }
                Some(x) => {
                    let next = lhs.starts().get(row + 1).map_or(ids.len(), |&next| next as usize);
                    let row =
                        Row { ids, some, values, end, next, columns: &columns, place: &place };
                    match same_type::<T, T::Accumulator>(x) {
                        // SAFETY: the processor has the instructions of `L`, as the caller says.
                        Some(x) => unsafe { row.add::<L>(out, x) },
                        None => {
                            for (id, &value) in some.iter().zip(values) {
                                let start = place(id.at()) * width;
                                add_scaled::<T>(&mut out[start..start + width], x, value);
                            }
                        }
                    }
                }
                None => {
                    for column in 0..width {
                        let x = rhs.at(row, column);
                        for (id, &value) in some.iter().zip(values) {
                            out[place(id.at()) * width + column] += value.widen() * x.widen();
                        }
                    }
                }
            }
        }
    }
}

/// Some entries of a row.
struct Row<'a, T, I, P> {
    /// Of all rows.
    ids: &'a [I],
    some: &'a [I],
    values: &'a [T],
    /// Where the entries end, and those of the next row begin.
    end: usize,
    next: usize,
    /// Those that have places.
    columns: &'a Range<usize>,
    place: &'a P,
}

/// So many entries ahead memory is asked for.
const AHEAD: usize = 48;

impl<T: Float, I: ColumnId, P: Fn(usize) -> usize> Row<'_, T, I, P> {
    /// Adds value · x to the place of each entry, in panels of columns that registers hold.
    ///
    /// # Safety
    ///
    /// The processor has the instructions of `L`.
    #[inline(always)]
    unsafe fn add<L: Lanes<T::Accumulator>>(
        &self,
        out: &mut [T::Accumulator],
        x: &[T::Accumulator],
    ) {
        let mut column = 0;
        macro_rules! panels {
            ($lanes:ty, $n:literal) => {
                while column + $n * <$lanes as Lanes<T::Accumulator>>::COUNT <= x.len() {
                    // SAFETY: as the caller says.
                    unsafe { self.panel::<$lanes, $n>(out, x, column) };
                    column += $n * <$lanes as Lanes<T::Accumulator>>::COUNT;
                }
            };
        }
        panels!(L, 4);
        panels!(L, 1);
        panels!(Plain<T::Accumulator, 4>, 1);
        panels!(Plain<T::Accumulator, 1>, 1);
    }

    /// `N` vectors of columns from `column` on.
    ///
    /// # Safety
    ///
    /// The processor has the instructions of `L`.
    #[inline(always)]
    unsafe fn panel<L: Lanes<T::Accumulator>, const N: usize>(
        &self,
        out: &mut [T::Accumulator],
        x: &[T::Accumulator],
        column: usize,
    ) {
        let (width, size) = (x.len(), N * L::COUNT);
        let x = &x[column..column + size];
        let first = self.end - self.some.len();
        // SAFETY: `x` has `size` elements, and so has each run of `out`.
        unsafe {
            let mut factors = [L::zero(); N];
            for (n, factor) in factors.iter_mut().enumerate() {
                *factor = L::load(x.as_ptr().add(n * L::COUNT));
            }
            for (at, (id, &value)) in self.some.iter().zip(self.values).enumerate() {
                let ahead = first + at + AHEAD;
                let ahead = if ahead < self.end { ahead } else { ahead - self.end + self.next };
                if let Some(id) = self.ids.get(ahead).filter(|id| self.columns.contains(&id.at())) {
                    let start = (self.place)(id.at()) * width + column;
                    prefetch_known(out, start, size);
                }
                let start = (self.place)(id.at()) * width + column;
                let out = out[start..start + size].as_mut_ptr();
                let value = L::splat(value.widen());
                for (n, factor) in factors.iter().enumerate() {
                    let out = out.add(n * L::COUNT);
                    L::load(out).add(value.multiply(*factor)).store(out);
                }
            }
        }
    }
}

/// The same as [`dense`] for a right side of which only some rows are stored.
pub(super) fn stored_rows<T: Float>(
    out: &mut [T::Accumulator],
    lhs: CsrView<'_, T>,
    rhs: RowSparseView<'_, T>,
    place: impl Fn(usize) -> usize,
) {
    with_column_ids!(lhs.columns(), |ids| {
        for (row, x) in rhs.iter_rows() {
            let (ids, values) = entries(lhs, ids, row);
            for (id, &value) in ids.iter().zip(values) {
                let start = place(id.at()) * x.len();
                add_scaled::<T>(&mut out[start..start + x.len()], x, value);
            }
        }
    });
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

//! Products whose result is written where columns name: each entry of a csr adds to the place of
//! its column.

mod column_share;
mod direct;
mod panels;
mod queue;

use self::column_share::ColumnShare;
use self::direct::{Direct, Single};
use self::queue::Queue;
use super::gather::{add_scaled_wide, entries};
use super::gemm::Matrix;
use crate::formats::{ColumnId, CsrView, RowSparseView};
use crate::kernels::index_set::IndexSet;
use crate::kernels::parallel::{below, split_columns};
use crate::kernels::value::ValueOf;
use crate::kernels::{Parallel, entry_prefetch, parallel};
use crate::with_column_ids;
use nnz_device::simd::{is_accumulator, is_u32, narrow, widest};
use sparse_core::element::{Factor, Float, Stored};
use std::ops::Range;

/// Which row of the result belongs to a column. Places ascend with columns.
pub(super) trait Target: Copy + Sync {
    /// Whether that is always the column itself.
    const IS_COLUMN: bool;

    fn of(self, column: usize) -> usize;
}

/// Every column has a row.
#[derive(Clone, Copy)]
pub(super) struct Columns;

impl Target for Columns {
    const IS_COLUMN: bool = true;

    #[inline(always)]
    fn of(self, column: usize) -> usize {
        column
    }
}

/// Only those of a set have one.
impl Target for &IndexSet {
    const IS_COLUMN: bool = false;

    #[inline(always)]
    fn of(self, column: usize) -> usize {
        self.rank(column)
    }
}

/// Row place(column) of `out` += value · rhs.row(i), for each entry of each row i. `out` is zero
/// before.
///
/// # Safety
///
/// For each column that occurs in `lhs`, `out` has the row at its place.
pub(super) unsafe fn dense<T: Float, V: ValueOf<T>>(
    out: &mut [T::Accumulator],
    lhs: CsrView<'_, V>,
    rhs: Matrix<'_, T>,
    parallel: Parallel,
    place: impl Target,
) {
    split_columns(
        parts(lhs, rhs.n_cols, parallel),
        lhs,
        out,
        rhs.n_cols,
        &|column| place.of(column),
        &|columns, start, out| {
            // SAFETY: as the caller says, and `out` begins at the place of the first of these
            // columns.
            unsafe { some_columns::<T, V, _, false>(out, start, lhs, rhs, columns, place) };
        },
    );
}

/// In how many parts [`dense`] does its work.
pub(super) fn parts<V: Stored>(lhs: CsrView<'_, V>, width: usize, parallel: Parallel) -> usize {
    /// So many sums are in a cache, where an entry costs a fraction of what it costs where it has
    /// to wait for them.
    const CACHED: usize = 1 << 20;
    let n_sums = lhs.n_cols().min(lhs.nnz()).saturating_mul(width);
    let of_entry = if n_sums < CACHED { 3 + width / 4 } else { 5 + width };
    parallel::parts(parallel, lhs.nnz().saturating_mul(of_entry))
}

/// The entries in some columns, where `out` begins at the row of place `start`. With
/// `NEVER_MINUS_ZERO` a term that is -0 counts as 0, which adds the same to any sum but -0.
///
/// # Safety
///
/// For each of the columns that occurs in `lhs`, `out` has the row at its place.
pub(super) unsafe fn some_columns<T, V, P, const NEVER_MINUS_ZERO: bool>(
    out: &mut [T::Accumulator],
    start: usize,
    lhs: CsrView<'_, V>,
    rhs: Matrix<'_, T>,
    columns: Range<usize>,
    place: P,
) where
    T: Float,
    V: ValueOf<T>,
    P: Target,
{
    let (n_cols, is_all) = (rhs.n_cols, columns == (0..lhs.n_cols()));
    // Where they lie by themselves no other entries are read.
    let own = lhs.divided().and_then(|divided| divided.part_of(&columns));
    let has_all = is_all || own.is_some();
    let lhs = own.unwrap_or(lhs);
    with_column_ids!(lhs.columns(), |ids| {
        let scatter = Scatter::<_, _, _, _, NEVER_MINUS_ZERO> {
            out,
            start,
            lhs,
            ids,
            rhs,
            columns,
            has_all,
            place,
        };
        if P::IS_COLUMN {
            if has_all && n_cols == 1 {
                narrow(Single(scatter));
            } else if !is_all {
                // What of several threads each has is asked for in turns with adding.
                widest(ColumnShare(scatter));
            } else {
                widest(Direct(scatter));
            }
        } else {
            widest(Queue(scatter));
        }
    });
}

/// The entries in some columns, each at its place in `out`: made in [`some_columns`] alone, whose
/// caller says that rows are there.
struct Scatter<'a, 'm, T: Float, V: Stored, I, P, const NEVER_MINUS_ZERO: bool> {
    out: &'a mut [T::Accumulator],
    /// The place of the first row of `out`.
    start: usize,
    lhs: CsrView<'m, V>,
    ids: &'a [I],
    rhs: Matrix<'a, T>,
    columns: Range<usize>,
    /// Whether all entries are in the columns.
    has_all: bool,
    place: P,
}

impl<T, V, I, P, const NEVER_MINUS_ZERO: bool> Scatter<'_, '_, T, V, I, P, NEVER_MINUS_ZERO>
where
    T: Float,
    V: ValueOf<T>,
    I: ColumnId,
    P: Target,
{
    /// Of the loops below, as [`Loop::IN_VECTORS`](nnz_device::simd::Loop::IN_VECTORS).
    const IN_VECTORS: bool = is_u32::<I>() && is_accumulator::<T>();

    /// The entries of a row that are in the columns. Asks for those of a later row.
    #[inline(always)]
    fn own(&self, row: usize) -> Range<usize> {
        entry_prefetch::prefetch_row(self.lhs, self.ids, row, entry_prefetch::ENTRIES_FAR_AHEAD);
        let row = self.lhs.starts()[row] as usize..self.lhs.ends()[row] as usize;
        if self.has_all { row } else { self.within(row) }
    }

    /// Of the entries of a row, those that are in the columns. A function of its own, so that loops
    /// for all columns have none of it.
    #[inline(never)]
    fn within(&self, Range { mut start, mut end }: Range<usize>) -> Range<usize> {
        if self.columns.end < self.lhs.n_cols() {
            end = start + below(&self.ids[start..end], self.columns.end);
        }
        if self.columns.start > 0 {
            start += below(&self.ids[start..end], self.columns.start);
        }
        start..end
    }

    /// Where the row of place 0 would be: what is added to a place is the same for every part of
    /// the columns, and costs nothing.
    #[inline(always)]
    fn origin(&mut self) -> *mut T::Accumulator {
        self.out.as_mut_ptr().wrapping_sub(self.start * self.rhs.n_cols)
    }
}

/// The same as [`dense`] for a right side of which only some rows are stored.
pub(super) fn stored_rows<T: Float, V: Factor<T>>(
    out: &mut [f64],
    lhs: CsrView<'_, V>,
    rhs: RowSparseView<'_, T>,
    place: impl Fn(usize) -> usize,
) {
    with_column_ids!(lhs.columns(), |ids| {
        for (row, x) in rhs.iter_rows() {
            let (ids, values) = entries(lhs, ids, row);
            for (id, &value) in ids.iter().zip(values) {
                let start = place(id.at()) * x.len();
                add_scaled_wide::<T, V>(&mut out[start..start + x.len()], x, value);
            }
        }
    });
}

/// Element (i, place(column)) of `out`, whose rows have `width` elements, += lhs[i, l] · value, for
/// each entry of each row l. `out` is zero before.
pub(super) fn dense_csr<T: Float, V: Factor<T>>(
    out: &mut [f64],
    width: usize,
    lhs: Matrix<'_, T>,
    rhs: CsrView<'_, V>,
    place: impl Fn(usize) -> usize,
) {
    with_column_ids!(rhs.columns(), |ids| {
        for (row, out) in out.chunks_exact_mut(width.max(1)).enumerate() {
            for inner in 0..rhs.n_rows() {
                let x = lhs.at(row, inner);
                let (ids, values) = entries(rhs, ids, inner);
                for (id, &value) in ids.iter().zip(values) {
                    out[place(id.at())] += value.number().as_f64() * x.as_f64();
                }
            }
        }
    });
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::formats::{Csr, Dense, DividedEntries, RowSelection};
    use crate::kernels::features::number_columns;
    use sparse_core::element::Unit;

    const N_COLS: usize = 3600;
    const STEP: usize = 3;

    /// Rows of no entries up to more than wait in a queue, which have the first or the second
    /// column, and two that have not the last one; of three columns but one occurs at most.
    fn matrix<T: Float>() -> Csr<T> {
        let rows = (0..40).map(|row| {
            let (first, most) = (row % 2 * STEP, [0, 3, 40, 1200][row / 4 % 4]);
            let step = STEP * [1, 7, 29, 113][row % 4];
            let columns = (first..N_COLS - 1).step_by(step).take(most);
            let columns = columns.chain((row % 20 != 5).then_some(N_COLS - 1));
            let value = move |column: usize| T::of((row * 31 + column * 7 % 90) as f64 - 40.5);
            columns.map(move |column| (column, value(column))).collect::<Vec<_>>()
        });
        Csr::from_rows(N_COLS, rows).unwrap()
    }

    /// Adds one entry after the other.
    fn expected<T: Float, V: ValueOf<T>>(
        n_places: usize,
        lhs: CsrView<'_, V>,
        rhs: Matrix<'_, T>,
        place: impl Target,
    ) -> Vec<f64> {
        let width = rhs.n_cols;
        let mut out = vec![T::zero().widen(); n_places * width];
        for row in 0..lhs.n_rows() {
            let (ids, values) = lhs.row(row).unwrap();
            for (at, value) in values.iter().enumerate() {
                let start = place.of(ids.get(at).unwrap()) * width;
                for column in 0..width {
                    out[start + column] += value.times(rhs.at(row, column).widen());
                }
            }
        }
        out.into_iter().map(|sum| sum.as_f64()).collect()
    }

    fn all_widths<T: Float, V: ValueOf<T>>(x: CsrView<'_, V>) {
        let mut occurring = IndexSet::default();
        let mut n_occurring = 0;
        number_columns(&mut occurring, x, |_| n_occurring += 1);
        assert!(n_occurring < N_COLS);
        for width in [1, 2, 3, 4, 5, 8, 12, 16, 17, 20, 32, 35, 64, 100] {
            let number = |index: usize| T::of((index % 23) as f64 / 8.0 - 1.0);
            let values = Vec::from_iter((0..x.n_rows() * width).map(number));
            let rows = Dense::new([x.n_rows(), width], values.clone()).unwrap();
            let columns = Dense::new([width, x.n_rows()], values).unwrap();
            for rhs in [Matrix::new(rows.view(), false), Matrix::new(columns.view(), true)] {
                for cuts in [vec![0, N_COLS], vec![0, 500, N_COLS], vec![0, 1, 2, 700, N_COLS]] {
                    parts(x, rhs, &cuts, N_COLS, Columns);
                    parts(x, rhs, &cuts, n_occurring, &occurring);
                }
            }
        }
    }

    /// Columns in parts, one after the other.
    fn parts<T: Float, V: ValueOf<T>>(
        x: CsrView<'_, V>,
        rhs: Matrix<'_, T>,
        cuts: &[usize],
        n_places: usize,
        place: impl Target,
    ) {
        let width = rhs.n_cols;
        let mut out = vec![T::zero().widen(); n_places * width];
        let mut rest = &mut out[..];
        for (part, range) in cuts.windows(2).enumerate() {
            let start = place.of(range[0]);
            let end = if part + 2 == cuts.len() { n_places } else { place.of(range[1]) };
            let (out, after) = rest.split_at_mut((end - start) * width);
            // SAFETY: there is a row for each place of these columns.
            unsafe {
                some_columns::<T, V, _, false>(out, start, x, rhs, range[0]..range[1], place)
            };
            rest = after;
        }
        let out: Vec<f64> = out.into_iter().map(|sum| sum.as_f64()).collect();
        assert_eq!(out, expected(n_places, x, rhs, place), "width {width}, cut at {cuts:?}");
    }

    #[test]
    fn every_entry_is_added_once_at_its_place() {
        let x = matrix::<f32>();
        all_widths::<f32, _>(x.view());
        let mut selection = RowSelection::new();
        let order: Vec<usize> = (0..40).map(|row| row * 17 % 40).collect();
        all_widths::<f32, _>(selection.gather(&x, &order).unwrap());
        all_widths::<f64, _>(matrix::<f64>().view());
        let mut pattern = x.into_parts();
        pattern.values.fill(1.0);
        let pattern = Csr::from_parts(pattern).unwrap();
        all_widths::<f32, Unit>(pattern.view().units().unwrap());
    }

    #[test]
    fn entries_that_lie_by_themselves_are_added_as_the_others() {
        let x = matrix::<f32>();
        // Those that it is cut into are the parts that are looked for.
        let firsts = [500];
        let divided = DividedEntries::of(x.view(), firsts.to_vec()).unwrap();
        let view = x.view().with_divided(divided.rows(0..x.n_rows()));
        let part = view.divided().and_then(|divided| divided.part_of(&(0..500)));
        assert!(part.is_some_and(|part| part.nnz() < x.nnz()));
        assert!(view.divided().and_then(|divided| divided.part_of(&(0..499))).is_none());
        all_widths::<f32, _>(view);
    }
}

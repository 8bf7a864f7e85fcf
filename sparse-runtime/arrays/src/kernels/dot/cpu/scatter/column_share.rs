//! The entries of a csr that are in some columns, each at the row of its column.

use super::panels::{Elements, InPanels, in_panels};
use super::{Scatter, Target};
use crate::formats::ColumnId;
use crate::kernels::value::ValueOf;
use nnz_device::prefetch::{LINE, begin_lines};
use nnz_device::simd::{Lanes, Loop, is_accumulator, same_type};
use sparse_core::element::Float;
use std::ops::Range;

/// Row by row, of which the entries in the columns lie side by side, as rows are sorted.
pub(super) struct ColumnShare<S>(pub(super) S);

impl<T, V, I, P, const NEVER_MINUS_ZERO: bool> Loop<T::Accumulator>
    for ColumnShare<Scatter<'_, '_, T, V, I, P, NEVER_MINUS_ZERO>>
where
    T: Float,
    V: ValueOf<T>,
    I: ColumnId,
    P: Target,
{
    const IN_VECTORS: bool = Scatter::<T, V, I, P, NEVER_MINUS_ZERO>::IN_VECTORS;

    #[inline(always)]
    unsafe fn run<L: Lanes<T::Accumulator>>(self) {
        /// So many rows ahead sums are asked for: further where those of a column are one line of
        /// the cache, of which it holds more.
        const OF_LINES: usize = 8;
        const OF_ROWS: usize = 3;
        let ColumnShare(mut scatter) = self;
        let (sums, lhs, rhs, ids) = (scatter.origin(), scatter.lhs, scatter.rhs, scatter.ids);
        let is_line = rhs.n_cols * size_of::<T::Accumulator>() <= LINE;
        let ahead = if is_line { OF_LINES } else { OF_ROWS };
        let (n_rows, mut coming) = (lhs.n_rows(), [const { 0..0 }; OF_LINES]);
        for (row, coming) in coming.iter_mut().enumerate().take(n_rows) {
            *coming = scatter.own(row);
        }
        for row in 0..n_rows {
            let entries = coming[row % OF_LINES].clone();
            let later = if row + ahead < n_rows { scatter.own(row + ahead) } else { 0..0 };
            coming[(row + ahead) % OF_LINES] = later.clone();
            // SAFETY: the entries are those of a csr; `out` has the places, and the processor the
            // instructions, as the callers say.
            unsafe {
                if const { is_accumulator::<T>() }
                    && let Some(x) = rhs.row(row).and_then(same_type::<T, T::Accumulator>)
                {
                    let values = lhs.values();
                    in_panels::<T, L, _>(&RowTerms::<T, _, _, NEVER_MINUS_ZERO> {
                        sums,
                        x,
                        ids,
                        values,
                        entries,
                        later,
                    });
                } else {
                    for at in entries {
                        scatter.add_elements(sums, at, row);
                    }
                }
            }
        }
    }
}

/// Some entries of a row, each of which adds value · x to the sums of its column, which are there.
struct RowTerms<'a, T: Float, V, I, const NEVER_MINUS_ZERO: bool> {
    sums: *mut T::Accumulator,
    x: &'a [T::Accumulator],
    /// Of all rows.
    ids: &'a [I],
    values: &'a [V],
    entries: Range<usize>,
    /// Those of another row whose sums are asked for. No others are: another thread may be writing
    /// there.
    later: Range<usize>,
}

impl<T, V, I, const NEVER_MINUS_ZERO: bool> InPanels<T::Accumulator>
    for RowTerms<'_, T, V, I, NEVER_MINUS_ZERO>
where
    T: Float,
    V: ValueOf<T>,
    I: ColumnId,
{
    #[inline(always)]
    fn width(&self) -> usize {
        self.x.len()
    }

    #[inline(always)]
    unsafe fn panel<L: Lanes<T::Accumulator>, const N: usize, const ALL: bool>(
        &self,
        column: usize,
    ) {
        let width = if ALL { N * L::COUNT } else { self.x.len() };
        let (sums, x) = (self.sums.wrapping_add(column), &self.x[column..column + N * L::COUNT]);
        let begin_lines = begin_lines(sums, width);
        let (entries, later) = (self.entries.clone(), &self.ids[self.later.clone()]);
        let ask = |id: I| Elements::<L, N>::ask(sums.wrapping_add(id.at() * width), begin_lines);
        // SAFETY: `x` has a panel, and so has each row of sums; there are as many values as ids.
        unsafe {
            let x = Elements::<L, N>::load(x.as_ptr());
            let add = |at: usize| {
                let sums = sums.add(self.ids.get_unchecked(at).at() * width);
                let value = self.values.get_unchecked(at).number().widen();
                x.add_to::<_, NEVER_MINUS_ZERO>(sums, value);
            };
            // In turns: what is asked for comes while others are added, and there is room for few
            // that are on their way.
            let in_turns = entries.len().min(later.len());
            let (first, others) = later.split_at_unchecked(in_turns);
            for (at, id) in (entries.start..).zip(first) {
                ask(*id);
                add(at);
            }
            others.iter().for_each(|id| ask(*id));
            for at in entries.start + in_turns..entries.end {
                add(at);
            }
        }
    }
}

//! All entries of a csr, each at the row of its column.

use super::panels::{Elements, InPanels, in_panels};
use super::{Scatter, Target};
use crate::formats::ColumnId;
use crate::kernels::entry_prefetch;
use crate::kernels::value::ValueOf;
use nnz_device::prefetch::{BOUNDS_AHEAD, LINE, begin_lines};
use nnz_device::simd::{Lanes, Loop, is_accumulator, same_type};
use sparse_core::element::Float;
use std::ops::Range;

/// Row by row.
pub(super) struct Direct<S>(pub(super) S);

impl<T, V, I, P, const NEVER_MINUS_ZERO: bool> Loop<T::Accumulator>
    for Direct<Scatter<'_, '_, T, V, I, P, NEVER_MINUS_ZERO>>
where
    T: Float,
    V: ValueOf<T>,
    I: ColumnId,
    P: Target,
{
    const IN_VECTORS: bool = Scatter::<T, V, I, P, NEVER_MINUS_ZERO>::IN_VECTORS;

    #[inline(always)]
    unsafe fn run<L: Lanes<T::Accumulator>>(self) {
        let Direct(mut scatter) = self;
        let (sums, lhs, rhs) = (scatter.origin(), scatter.lhs, scatter.rhs);
        for row in 0..lhs.n_rows() {
            let runs = scatter.runs(row);
            // SAFETY: the entries are those of a csr, and so is what is asked for; `out` has the
            // places, and the processor the instructions, as the callers say.
            unsafe {
                if const { is_accumulator::<T>() }
                    && let Some(x) = rhs.row(row).and_then(same_type::<T, T::Accumulator>)
                {
                    let entries_ahead = entry_prefetch::distance(lhs, row);
                    let (ids, values) = (scatter.ids, lhs.values());
                    let row = RowTerms::<T, _, _, NEVER_MINUS_ZERO> {
                        sums,
                        x,
                        ids,
                        values,
                        runs,
                        entries_ahead,
                    };
                    in_panels::<T, L, _>(&row);
                } else {
                    for at in runs.into_iter().flat_map(|(run, _)| run) {
                        scatter.add_elements(sums, at, row);
                    }
                }
            }
        }
    }
}

/// The entries of a row, each of which adds value · x to the sums of its column: these are there,
/// and so is what is asked for.
struct RowTerms<'a, T: Float, V, I, const NEVER_MINUS_ZERO: bool> {
    sums: *mut T::Accumulator,
    x: &'a [T::Accumulator],
    /// Of all rows.
    ids: &'a [I],
    values: &'a [V],
    /// As [`Scatter::runs`] gives them.
    runs: [(Range<usize>, usize); 2],
    /// So far ahead entries are asked for.
    entries_ahead: usize,
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
        // SAFETY: `x` has a panel, and so has each row of sums.
        unsafe {
            let x = Elements::<L, N>::load(x.as_ptr());
            for &(ref run, distance) in &self.runs {
                for at in run.clone() {
                    let later = self.ids.get_unchecked(at.wrapping_add(distance)).at();
                    entry_prefetch::prefetch_entry(
                        self.ids,
                        self.values,
                        at.wrapping_add(self.entries_ahead),
                    );
                    Elements::<L, N>::ask(sums.wrapping_add(later * width), begin_lines);
                    let sums = sums.add(self.ids.get_unchecked(at).at() * width);
                    let value = self.values.get_unchecked(at).number().widen();
                    x.add_to::<_, NEVER_MINUS_ZERO>(sums, value);
                }
            }
        }
    }
}

impl<T, V, I, P, const NEVER_MINUS_ZERO: bool> Scatter<'_, '_, T, V, I, P, NEVER_MINUS_ZERO>
where
    T: Float,
    V: ValueOf<T>,
    I: ColumnId,
    P: Target,
{
    /// The entries of a row in two runs, with how far ahead of each memory is asked for, which is
    /// that of an entry as well: the first run asks for entries of the same row, the second for
    /// those of the next one.
    #[inline(always)]
    fn runs(&self, row: usize) -> [(Range<usize>, usize); 2] {
        // Further where the sums of a column are one line of the cache, of which it holds more.
        let is_line = self.rhs.n_cols * size_of::<T::Accumulator>() <= LINE;
        let ahead = if is_line { 192 } else { 48 };
        let (starts, ends) = (self.lhs.starts(), self.lhs.ends());
        let (start, end) = (starts[row] as usize, ends[row] as usize);
        let next = starts.get(row + 1).map_or(self.ids.len(), |&next| next as usize);
        // Rows of a view lie anywhere: the next one may come before, so that distances wrap around.
        let is_there = next + ahead <= self.ids.len();
        // Where the next row follows, one run will do.
        let middle =
            if is_there && next == end { end } else { end.saturating_sub(ahead).max(start) };
        let distance = if is_there { (next + ahead).wrapping_sub(end) } else { 0 };
        [(start..middle, ahead), (middle..end, distance)]
    }

    /// Adds an entry of a row of the right side that does not lie in one piece, or is of elements
    /// that are not those of sums.
    ///
    /// # Safety
    ///
    /// The entry is there, and `out`, whose row of place 0 would be at `sums`, has its place.
    #[inline(always)]
    pub(super) unsafe fn add_elements(&self, sums: *mut T::Accumulator, at: usize, row: usize) {
        let width = self.rhs.n_cols;
        // SAFETY: as the caller says.
        unsafe {
            let place = self.place.of(self.ids.get_unchecked(at).at());
            let value = *self.lhs.values().get_unchecked(at);
            self.add_row(sums.add(place * width), value.number().widen(), row);
        }
    }

    /// The same for a row of sums.
    ///
    /// # Safety
    ///
    /// There are as many sums as columns on the right.
    #[inline(always)]
    pub(super) unsafe fn add_row(
        &self,
        sums: *mut T::Accumulator,
        value: T::Accumulator,
        row: usize,
    ) {
        for column in 0..self.rhs.n_cols {
            let mut term = value * self.rhs.at(row, column).widen();
            if NEVER_MINUS_ZERO {
                term += T::zero().widen();
            }
            // SAFETY: as the caller says.
            unsafe { *sums.add(column) += term };
        }
    }
}

/// A right side of one column.
pub(super) struct Single<S>(pub(super) S);

impl<T, V, I, P, const NEVER_MINUS_ZERO: bool> Loop<T::Accumulator>
    for Single<Scatter<'_, '_, T, V, I, P, NEVER_MINUS_ZERO>>
where
    T: Float,
    V: ValueOf<T>,
    I: ColumnId,
    P: Target,
{
    const IN_VECTORS: bool = Scatter::<T, V, I, P, NEVER_MINUS_ZERO>::IN_VECTORS;

    #[inline(always)]
    unsafe fn run<L: Lanes<T::Accumulator>>(self) {
        let Single(mut scatter) = self;
        let (sums, lhs, rhs) = (scatter.origin(), scatter.lhs, scatter.rhs);
        for (row, (&start, &end)) in lhs.starts().iter().zip(lhs.ends()).enumerate() {
            let distance = entry_prefetch::distance_or(lhs, row, entry_prefetch::ENTRIES_FAR_AHEAD);
            rhs.ask(row + BOUNDS_AHEAD);
            let run = start as usize..end as usize;
            // SAFETY: the entries are those of a csr; `out` has the places, and the processor the
            // instructions, as the callers say.
            unsafe { scatter.add_run::<L>(sums, run, rhs.at(row, 0), distance) };
        }
    }
}

impl<T, V, I, P, const NEVER_MINUS_ZERO: bool> Scatter<'_, '_, T, V, I, P, NEVER_MINUS_ZERO>
where
    T: Float,
    V: ValueOf<T>,
    I: ColumnId,
    P: Target,
{
    #[inline(always)]
    fn term(&self, value: V, x: T) -> T::Accumulator {
        let term = value.times(x.widen());
        if NEVER_MINUS_ZERO { term + T::zero().widen() } else { term }
    }

    /// Entries that follow each other: a vector of their terms, which waits for no sum, and then
    /// each to its place. Places are not asked for ahead, since nothing here waits for them but
    /// their own sums.
    ///
    /// # Safety
    ///
    /// The processor has the instructions of `L`, these are entries, and `out`, whose row of place
    /// 0 would be at `sums`, has their places.
    #[inline(always)]
    unsafe fn add_run<L: Lanes<T::Accumulator>>(
        &self,
        sums: *mut T::Accumulator,
        run: Range<usize>,
        x: T,
        distance: usize,
    ) {
        const MOST_LANES: usize = 8;
        let mut at = run.start;
        // SAFETY: as the caller says.
        unsafe {
            if let Some(values) = same_type::<V, T::Accumulator>(self.lhs.values()) {
                let (factor, mut terms) = (L::splat(x.widen()), [T::zero().widen(); MOST_LANES]);
                while at + L::COUNT <= run.end {
                    entry_prefetch::prefetch_entry(self.ids, values, at.wrapping_add(distance));
                    let mut products = L::load(values.as_ptr().add(at)).multiply(factor);
                    if NEVER_MINUS_ZERO {
                        products = products.add(L::zero());
                    }
                    products.store(terms.as_mut_ptr());
                    for &term in &terms[..L::COUNT] {
                        self.add(sums, at, term);
                        at += 1;
                    }
                }
            } else {
                let (eights, _) =
                    self.lhs.values().get_unchecked(run.clone()).as_chunks::<MOST_LANES>();
                for values in eights {
                    entry_prefetch::prefetch_entry(
                        self.ids,
                        self.lhs.values(),
                        at.wrapping_add(distance),
                    );
                    for &value in values {
                        self.add(sums, at, self.term(value, x));
                        at += 1;
                    }
                }
            }
            for at in at..run.end {
                let value = *self.lhs.values().get_unchecked(at);
                self.add(sums, at, self.term(value, x));
            }
        }
    }

    /// Adds the term of an entry to its place.
    ///
    /// # Safety
    ///
    /// As for [`add_run`](Scatter::add_run).
    #[inline(always)]
    unsafe fn add(&self, sums: *mut T::Accumulator, at: usize, term: T::Accumulator) {
        // SAFETY: as the caller says.
        unsafe {
            let place = self.place.of(self.ids.get_unchecked(at).at());
            *sums.add(place) += term;
        }
    }
}

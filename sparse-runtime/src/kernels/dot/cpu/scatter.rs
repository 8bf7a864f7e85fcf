//! Products whose result is written where columns name: each entry of a csr adds to the place of its column.

use super::gather::{add_scaled, entries};
use super::gemm::Matrix;
use crate::formats::{ColumnId, CsrView, RowSparseView};
use crate::kernels::parallel::{below, split_columns};
use crate::kernels::{Parallel, ahead, parallel};
use crate::lanes::{Lanes, Loop, Plain, narrow, same_type, widest};
use crate::prefetch::{BOUNDS_AHEAD, LINE, prefetch_known_at};
use crate::with_column_ids;
use sparse_core::element::{Factor, Float, Stored};
use std::ops::Range;

/// Row place(column) of `out` += value · rhs.row(i), for each entry of each row i. `out` is zero before, and places ascend
/// with columns.
///
/// # Safety
///
/// For each column that occurs in `lhs`, `out` has the row at its place.
pub(super) unsafe fn dense<T: Float, V: Factor<T>>(
    out: &mut [T::Accumulator],
    lhs: CsrView<'_, V>,
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
            // SAFETY: as the caller says, and `out` begins at the place of the first of these columns.
            unsafe { some_columns::<T, V, false>(out, start, lhs, rhs, columns, place) };
        },
    );
}

/// In how many parts [`dense`] does its work.
pub(super) fn parts<V: Stored>(lhs: CsrView<'_, V>, width: usize, parallel: Parallel) -> usize {
    /// So many sums are in a cache, where an entry costs a fraction of what it costs where it has to wait for them.
    const CACHED: usize = 1 << 20;
    let n_sums = lhs.n_cols().min(lhs.nnz()).saturating_mul(width);
    let of_entry = if n_sums < CACHED { 3 + width / 4 } else { 5 + width };
    parallel::parts(parallel, lhs.nnz().saturating_mul(of_entry))
}

/// The entries in some columns, where `out` begins at the row of place `start`. With `NEVER_MINUS_ZERO` a term that is -0 counts as
/// 0, which adds the same to any sum but -0.
///
/// # Safety
///
/// For each of the columns that occurs in `lhs`, `out` has the row at its place.
pub(super) unsafe fn some_columns<T: Float, V: Factor<T>, const NEVER_MINUS_ZERO: bool>(
    out: &mut [T::Accumulator],
    start: usize,
    lhs: CsrView<'_, V>,
    rhs: Matrix<'_, T>,
    columns: Range<usize>,
    place: impl Fn(usize) -> usize + Copy,
) {
    with_column_ids!(lhs.columns(), |ids| {
        let n_cols = rhs.n_cols;
        let scatter =
            Scatter::<_, _, _, _, NEVER_MINUS_ZERO> { out, start, lhs, ids, rhs, columns, place };
        if n_cols == 1 { narrow(Single(scatter)) } else { widest(scatter) }
    });
}

/// The entries of a row that are in some columns.
enum Entries<I> {
    /// All, with how far ahead of each memory is asked for, which is that of an entry as well: the first run asks for entries of the same
    /// row, the second for those of the next one.
    All([(Range<usize>, usize); 2]),
    /// The first of these, below a column. To go over them up to another one costs less than to look for that.
    Below { entries: Range<usize>, bound: I },
    /// The last of these, from a column on: gone over backwards, as they are of different columns.
    From { entries: Range<usize>, first: I },
}

/// Does something with each of the [`Entries`], which must be positions of the ids, and knows whether these are of all columns. No
/// closure: that would be compiled without the instructions of vectors.
macro_rules! for_each {
    ($entries:expr, $ids:expr, |$at:ident, $distance:ident, $of_all:ident| $body:block) => {
        match $entries {
            Entries::All(runs) => {
                #[allow(unused)]
                const $of_all: bool = true;
                for &(ref run, $distance) in runs {
                    for $at in run.clone() {
                        $body
                    }
                }
            }
            &Entries::Below { ref entries, bound } => {
                #[allow(unused)]
                const $of_all: bool = false;
                let $distance = 0;
                for $at in entries.clone() {
                    if *$ids.get_unchecked($at) >= bound {
                        break;
                    }
                    $body
                }
            }
            &Entries::From { ref entries, first } => {
                #[allow(unused)]
                const $of_all: bool = false;
                let $distance = 0;
                for $at in entries.clone().rev() {
                    if *$ids.get_unchecked($at) < first {
                        break;
                    }
                    $body
                }
            }
        }
    };
}

/// The entries in some columns, each at its place in `out`: made in [`some_columns`] alone, whose caller says that rows are there.
struct Scatter<'a, 'm, T: Float, V: Stored, I, P, const NEVER_MINUS_ZERO: bool> {
    out: &'a mut [T::Accumulator],
    /// The place of the first row of `out`.
    start: usize,
    lhs: CsrView<'m, V>,
    ids: &'a [I],
    rhs: Matrix<'a, T>,
    columns: Range<usize>,
    place: P,
}

impl<T, V, I, P, const NEVER_MINUS_ZERO: bool> Scatter<'_, '_, T, V, I, P, NEVER_MINUS_ZERO>
where
    T: Float,
    V: Factor<T>,
    I: ColumnId,
    P: Fn(usize) -> usize + Copy,
{
    /// So many entries ahead memory is asked for, or so many rows, where few entries of each are in the columns: further where the sums of a column are
    /// one line of the cache, of which it holds more.
    #[inline(always)]
    fn ahead(&self) -> (usize, usize) {
        let is_line = self.rhs.n_cols * size_of::<T::Accumulator>() <= LINE;
        if is_line { (192, 8) } else { (48, 3) }
    }

    /// The entries of a row that are in the columns.
    #[inline(always)]
    fn entries(&self, row: usize) -> Entries<I> {
        let (starts, ends) = (self.lhs.starts(), self.lhs.ends());
        let (start, end) = (starts[row] as usize, ends[row] as usize);
        let next = starts.get(row + 1).map_or(self.ids.len(), |&next| next as usize);
        let Range { start: first, end: bound } = self.columns;
        // Rows of a view lie anywhere: the next one may come before, so that distances wrap around.
        if first == 0 && bound == self.lhs.n_cols() {
            let ahead = self.ahead().0;
            let is_there = next + ahead <= self.ids.len();
            // Where the next row follows, one run will do.
            let middle =
                if is_there && next == end { end } else { end.saturating_sub(ahead).max(start) };
            let distance = if is_there { (next + ahead).wrapping_sub(end) } else { 0 };
            return Entries::All([(start..middle, ahead), (middle..end, distance)]);
        }
        if bound == self.lhs.n_cols() {
            return Entries::From { entries: start..end, first: I::from_index(first) };
        }
        let before = if first > 0 { below(&self.ids[start..end], first) } else { 0 };
        let entries = start + before..end;
        Entries::Below { entries, bound: I::from_index(bound) }
    }

    #[inline(always)]
    fn term(&self, value: V, x: T) -> T::Accumulator {
        let term = value.times(x.widen());
        if NEVER_MINUS_ZERO { term + T::zero().widen() } else { term }
    }

    /// Where the row of place 0 would be: what is added to a place is the same for every part of the columns, and costs nothing.
    #[inline(always)]
    fn origin(&mut self) -> *mut T::Accumulator {
        self.out.as_mut_ptr().wrapping_sub(self.start * self.rhs.n_cols)
    }

    /// A right side of one column.
    ///
    /// # Safety
    ///
    /// As for [`some_columns`], and the processor has the instructions of `L`.
    #[inline(always)]
    unsafe fn single<L: Lanes<T::Accumulator>>(mut self) {
        let sums = self.origin();
        let (starts, ends) = (self.lhs.starts(), self.lhs.ends());
        // SAFETY: the entries are those of a csr; `out` has the places, as the caller says.
        unsafe {
            if self.columns == (0..self.lhs.n_cols()) {
                for (row, (&start, &end)) in starts.iter().zip(ends).enumerate() {
                    let distance = ahead::distance_or(self.lhs, row, ahead::FAR);
                    self.rhs.ask(row + BOUNDS_AHEAD);
                    let run = start as usize..end as usize;
                    self.add_run::<L>(sums, run, self.rhs.at(row, 0), distance);
                }
                return;
            }
            for row in 0..starts.len() {
                let (x, entries, ids) = (self.rhs.at(row, 0), self.entries(row), self.ids);
                ahead::ask_for_row(self.lhs, ids, row, ahead::FAR);
                for_each!(&entries, ids, |at, _distance, OF_ALL| {
                    let term = self.term(*self.lhs.values().get_unchecked(at), x);
                    self.add(sums, at, term);
                });
            }
        }
    }

    /// Entries that follow each other: a vector of their terms, which waits for no sum, and then each to its place. Places are not
    /// asked for ahead, since nothing here waits for them but their own sums.
    ///
    /// # Safety
    ///
    /// As for [`single`](Scatter::single), of which these are entries.
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
                    ahead::ask(self.ids, values, at.wrapping_add(distance));
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
                    ahead::ask(self.ids, self.lhs.values(), at.wrapping_add(distance));
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
            let place = (self.place)(self.ids.get_unchecked(at).at());
            *sums.add(place) += term;
        }
    }
}

/// Of a right side of one column.
struct Single<S>(S);

impl<T, V, I, P, const NEVER_MINUS_ZERO: bool> Loop<T::Accumulator>
    for Single<Scatter<'_, '_, T, V, I, P, NEVER_MINUS_ZERO>>
where
    T: Float,
    V: Factor<T>,
    I: ColumnId,
    P: Fn(usize) -> usize + Copy,
{
    #[inline(always)]
    unsafe fn run<L: Lanes<T::Accumulator>>(self) {
        // SAFETY: as the callers of this and of `some_columns` say.
        unsafe { self.0.single::<L>() }
    }
}

impl<T, V, I, P, const NEVER_MINUS_ZERO: bool> Loop<T::Accumulator>
    for Scatter<'_, '_, T, V, I, P, NEVER_MINUS_ZERO>
where
    T: Float,
    V: Factor<T>,
    I: ColumnId,
    P: Fn(usize) -> usize + Copy,
{
    #[inline(always)]
    unsafe fn run<L: Lanes<T::Accumulator>>(mut self) {
        let width = self.rhs.n_cols;
        let sums = self.origin();
        for row in 0..self.lhs.n_rows() {
            let (entries, mut later) = (self.entries(row), None);
            if !matches!(entries, Entries::All(_)) {
                ahead::ask_for_row(self.lhs, self.ids, row, ahead::FAR);
                let row = row + self.ahead().1;
                later = (row < self.lhs.n_rows()).then(|| self.entries(row));
            }
            let contiguous = self.rhs.row(row).and_then(same_type::<T, T::Accumulator>);
            if let Some(x) = contiguous {
                let row = Row::<_, _, _, NEVER_MINUS_ZERO> {
                    ids: self.ids,
                    values: self.lhs.values(),
                    entries,
                    entries_ahead: ahead::distance(self.lhs, row),
                    later,
                    place: self.place,
                };
                // SAFETY: the processor has the instructions of `L`, as the caller says; the entries are those of a csr, and `out` has the places, as the caller of `some_columns` says.
                unsafe { row.add::<T, L>(sums, x) };
                continue;
            }
            for column in 0..width {
                let x = self.rhs.at(row, column);
                // SAFETY: as above.
                unsafe {
                    for_each!(&entries, self.ids, |at, _distance, OF_ALL| {
                        let place = (self.place)(self.ids.get_unchecked(at).at());
                        let term = self.term(*self.lhs.values().get_unchecked(at), x);
                        *sums.add(place * width + column) += term;
                    });
                }
            }
        }
    }
}

/// Some entries of a row.
struct Row<'a, V, I, P, const NEVER_MINUS_ZERO: bool> {
    /// Of all rows.
    ids: &'a [I],
    values: &'a [V],
    entries: Entries<I>,
    /// So far ahead entries are asked for, if these are all.
    entries_ahead: usize,
    /// If they are not: those of another row, whose places are asked for. No others are: another thread may be writing there.
    later: Option<Entries<I>>,
    place: P,
}

impl<V: Stored, I: ColumnId, P: Fn(usize) -> usize + Copy, const NEVER_MINUS_ZERO: bool>
    Row<'_, V, I, P, NEVER_MINUS_ZERO>
{
    /// Adds value · x to the place of each entry, in panels of columns that registers hold.
    ///
    /// # Safety
    ///
    /// The processor has the instructions of `L`, the entries are there, and so is what is asked for, and `out` has the places.
    #[inline(always)]
    unsafe fn add<T: Float, L: Lanes<T::Accumulator>>(
        &self,
        sums: *mut T::Accumulator,
        x: &[T::Accumulator],
    ) where
        V: Factor<T>,
    {
        let mut column = 0;
        macro_rules! panels {
            ($lanes:ty, $n:literal) => {
                while column + $n * <$lanes as Lanes<T::Accumulator>>::COUNT <= x.len() {
                    // SAFETY: as the caller says.
                    unsafe { self.panel::<T, $lanes, $n, false>(sums, x, column) };
                    column += $n * <$lanes as Lanes<T::Accumulator>>::COUNT;
                }
            };
        }
        if x.len() == L::COUNT {
            // SAFETY: as the caller says.
            return unsafe { self.panel::<T, L, 1, true>(sums, x, 0) };
        }
        panels!(L, 4);
        panels!(L, 1);
        panels!(Plain<T::Accumulator, 4>, 1);
        panels!(Plain<T::Accumulator, 1>, 1);
    }

    /// `N` vectors of columns from `column` on; `ALL` that there are, if so, so that the compiler knows how far apart rows are.
    ///
    /// # Safety
    ///
    /// As for [`add`](Row::add).
    #[inline(always)]
    unsafe fn panel<T: Float, L: Lanes<T::Accumulator>, const N: usize, const ALL: bool>(
        &self,
        sums: *mut T::Accumulator,
        x: &[T::Accumulator],
        column: usize,
    ) where
        V: Factor<T>,
    {
        let size = N * L::COUNT;
        let width = if ALL { size } else { x.len() };
        let (x, place) = (&x[column..column + size], self.place);
        // SAFETY: `x` has `size` elements, and so has each run of `out`, as the caller says.
        unsafe {
            let mut factors = [L::zero(); N];
            for (n, factor) in factors.iter_mut().enumerate() {
                *factor = L::load(x.as_ptr().add(n * L::COUNT));
            }
            if let Some(later) = &self.later {
                for_each!(later, self.ids, |at, _distance, OF_ALL| {
                    let place = place(self.ids.get_unchecked(at).at());
                    prefetch_known_at(sums.wrapping_add(place * width + column), size);
                });
            }
            for_each!(&self.entries, self.ids, |at, distance, OF_ALL| {
                if OF_ALL {
                    let ahead = place(self.ids.get_unchecked(at.wrapping_add(distance)).at());
                    ahead::ask(self.ids, self.values, at.wrapping_add(self.entries_ahead));
                    prefetch_known_at(sums.wrapping_add(ahead * width + column), size);
                }
                let place = place(self.ids.get_unchecked(at).at());
                let sums = sums.add(place * width + column);
                let value = L::splat(self.values.get_unchecked(at).number().widen());
                for (n, factor) in factors.iter().enumerate() {
                    let sum = sums.add(n * L::COUNT);
                    let mut term = if V::IS_UNIT { *factor } else { value.multiply(*factor) };
                    if NEVER_MINUS_ZERO {
                        term = term.add(L::zero());
                    }
                    L::load(sum).add(term).store(sum);
                }
            });
        }
    }
}

/// The same as [`dense`] for a right side of which only some rows are stored.
pub(super) fn stored_rows<T: Float, V: Factor<T>>(
    out: &mut [T::Accumulator],
    lhs: CsrView<'_, V>,
    rhs: RowSparseView<'_, T>,
    place: impl Fn(usize) -> usize,
) {
    with_column_ids!(lhs.columns(), |ids| {
        for (row, x) in rhs.iter_rows() {
            let (ids, values) = entries(lhs, ids, row);
            for (id, &value) in ids.iter().zip(values) {
                let start = place(id.at()) * x.len();
                add_scaled::<T, V>(&mut out[start..start + x.len()], x, value);
            }
        }
    });
}

/// Element (i, place(column)) of `out`, whose rows have `width` elements, += lhs[i, l] · value, for each entry of each row
/// l. `out` is zero before.
pub(super) fn dense_csr<T: Float, V: Factor<T>>(
    out: &mut [T::Accumulator],
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
                    out[place(id.at())] += value.times(x.widen());
                }
            }
        }
    });
}

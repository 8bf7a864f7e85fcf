//! Entries in a range of columns, each added to the number of its column, by AVX-512.
//!
//! Rows are sorted, so a row's entries in these columns are its first or its last ones, and their
//! number varies from row to row. A branch for every entry would be mispredicted once a row.
//! Entries are taken by eights instead: most rows have as many eights as the one before, and a
//! partial eight is added under a mask. Where masked scatters are slow, masked lanes add to numbers
//! that are never read.

mod numbers;

pub use self::numbers::{numbers_of, places_of};

use self::numbers::{Gathered, Numbers};
use super::entry_prefetch;
use super::parallel::below;
use crate::formats::{ColumnIdsView, CsrView};
use nnz_device::simd::{same_type, x86};
use sparse_core::element::{Float, Stored};
use sparse_core::storage::ElementType;
use std::arch::x86_64::*;
use std::ops::Range;

/// Entries of f32, each of which adds its value times the factor of its row, in f64.
///
/// Invariant: the processor has AVX-512 and bmi2, there is a factor for each row, and the columns
/// are of `x`.
#[derive(Clone, Debug)]
pub struct ColumnEntries<'a, 'm, V: Stored, G> {
    x: CsrView<'m, V>,
    ids: &'a [u32],
    /// None where all are 1.
    values: &'a [f32],
    factors: &'a [G],
    columns: Range<usize>,
    /// Whether eights that are not whole are gathered and scattered.
    gathers: bool,
}

impl<'a, 'm: 'a, V: Stored, G: Float> ColumnEntries<'a, 'm, V, G> {
    const ARE_UNITS: bool = matches!(V::TYPE, ElementType::Unit);

    /// The entries of `x`. `None` of other types and on other processors.
    ///
    /// # Panics
    ///
    /// If there are fewer factors than rows.
    pub fn of(x: CsrView<'m, V>, factors: &'a [G]) -> Option<Self> {
        assert!(factors.len() >= x.n_rows(), "a factor for each row");
        let ColumnIdsView::U32(ids) = x.columns() else { return None };
        // Of a pattern they are not read.
        let values = if Self::ARE_UNITS { &[][..] } else { same_type(x.values())? };
        let (columns, gathers) = (0..x.n_cols(), x86::gathers_under_masks());
        // Ids are signed to the instructions that gather.
        (are_added() && x.n_cols() <= 1 << 31).then_some(ColumnEntries {
            x,
            ids,
            values,
            factors,
            columns,
            gathers,
        })
    }

    /// Those of them in some columns.
    ///
    /// # Panics
    ///
    /// If there are no such columns.
    pub fn in_columns(&self, columns: Range<usize>) -> Self {
        let n_cols = self.x.n_cols();
        assert!(columns.start <= columns.end && columns.end <= n_cols, "{columns:?} of {n_cols}");
        ColumnEntries { columns, ..*self }
    }

    /// The same, with or without instructions that gather.
    #[cfg(test)]
    pub(crate) fn gathered(self, gathers: bool) -> Self {
        ColumnEntries { gathers, ..self }
    }

    /// Adds each entry to the number of its column, where `sums` points to that of the first of the
    /// columns. With `NEVER_MINUS_ZERO` a term that is -0 counts as 0.
    ///
    /// # Safety
    ///
    /// There is a number for each of the columns, which nobody else reads or writes.
    pub(crate) unsafe fn add<const NEVER_MINUS_ZERO: bool>(&self, sums: *mut f64) {
        let (sums, nowhere) = (sums.wrapping_sub(self.columns.start), [0.0; 8]);
        // SAFETY: promised by the caller.
        unsafe {
            if self.gathers {
                self.add_to::<_, NEVER_MINUS_ZERO>(&mut Gathered { sums });
            } else {
                self.add_to::<_, NEVER_MINUS_ZERO>(&mut Numbers { sums, nowhere });
            }
        }
    }

    /// Adds each entry to a target.
    ///
    /// # Safety
    ///
    /// The target has the columns.
    pub unsafe fn add_to<A: Target, const NEVER_MINUS_ZERO: bool>(&self, target: &mut A) {
        // SAFETY: the processor has the instructions, as the invariant says; the entries are those
        // of a csr, and the target has the columns.
        unsafe {
            if self.columns.end == self.x.n_cols() {
                self.last::<A, NEVER_MINUS_ZERO>(target)
            } else {
                self.first::<A, NEVER_MINUS_ZERO>(target)
            }
        }
    }

    /// The column of one of the entries, if there are any. O(rows · log entries).
    pub fn any_column(&self) -> Option<usize> {
        let Range { start: first, end: bound } = self.columns;
        self.rows().find_map(|(_, (start, end, _))| {
            let ids = &self.ids[start..end];
            let id = *ids.get(below(ids, first))? as usize;
            (id < bound).then_some(id)
        })
    }

    /// The rows: where each begins and ends, and its factor.
    #[inline]
    fn rows(&self) -> impl Iterator<Item = (usize, (usize, usize, f64))> {
        let bounds = self.x.starts().iter().zip(self.x.ends()).zip(self.factors);
        bounds.map(|((&start, &end), x)| (start as usize, end as usize, x.as_f64())).enumerate()
    }

    /// Columns that do not go up to the last: entries from the first on that is in them.
    ///
    /// # Safety
    ///
    /// The processor has AVX-512 with 32-byte vectors and bmi2, the ids are below 2³¹, and so many
    /// as values if there are any, and as the entries of `x`; the target has the columns.
    #[target_feature(enable = "avx512f,avx512vl,bmi2,popcnt")]
    unsafe fn first<A: Target, const NEVER_MINUS_ZERO: bool>(&self, target: &mut A) {
        let Range { start: first, end: bound } = self.columns;
        let bounds = _mm256_set1_epi32(bound as i32);
        for (row, (start, end, factor)) in self.rows() {
            entry_prefetch::prefetch_row(self.x, self.ids, row, entry_prefetch::ENTRIES_FAR_AHEAD);
            target.begin_row(end - start);
            if A::ASKS
                && let Some((start, end)) = self.ahead(row)
            {
                let mut at = start;
                if first > 0 {
                    at += below(&self.ids[start..end], first);
                }
                // SAFETY: as below.
                unsafe {
                    while at + 8 <= end && (*self.ids.get_unchecked(at + 7) as usize) < bound {
                        (at..at + 8).for_each(|at| target.ask(*self.ids.get_unchecked(at)));
                        at += 8;
                    }
                    let (ids, own) = self.up_to(at, end, bounds);
                    target.ask_some(ids, own);
                }
            }
            let mut at = start;
            if first > 0 {
                at += below(&self.ids[start..end], first);
            }
            let factor = _mm512_set1_pd(factor);
            // SAFETY: entries are read up to `end`, or masked, and only those are added that are in
            // the columns.
            unsafe {
                while at + 8 <= end && (*self.ids.get_unchecked(at + 7) as usize) < bound {
                    self.add_eight::<A, NEVER_MINUS_ZERO>(target, at, factor);
                    at += 8;
                }
                let (ids, own) = self.up_to(at, end, bounds);
                let terms = self.terms::<NEVER_MINUS_ZERO>(at, own, factor);
                target.add_some(ids, own, terms);
            }
        }
    }

    /// Columns up to the last: entries from the last of a row down, as they are of different
    /// columns.
    ///
    /// # Safety
    ///
    /// As for [`first`](ColumnEntries::first).
    #[target_feature(enable = "avx512f,avx512vl,bmi2,popcnt")]
    unsafe fn last<A: Target, const NEVER_MINUS_ZERO: bool>(&self, target: &mut A) {
        let first = self.columns.start;
        let firsts = _mm256_set1_epi32(first as i32);
        for (row, (start, end, factor)) in self.rows() {
            entry_prefetch::prefetch_row(self.x, self.ids, row, entry_prefetch::ENTRIES_FAR_AHEAD);
            target.begin_row(end - start);
            if A::ASKS
                && let Some((start, end)) = self.ahead(row)
            {
                let mut at = end;
                // SAFETY: as below.
                unsafe {
                    while at >= start + 8 && *self.ids.get_unchecked(at - 8) as usize >= first {
                        at -= 8;
                        (at..at + 8).for_each(|at| target.ask(*self.ids.get_unchecked(at)));
                    }
                    let (ids, own) = self.from(start, at, firsts);
                    target.ask_some(ids, own);
                }
            }
            let (mut at, factor) = (end, _mm512_set1_pd(factor));
            // SAFETY: entries are read down to `start`, or masked, and only those are added that
            // are in the columns.
            unsafe {
                while at >= start + 8 && *self.ids.get_unchecked(at - 8) as usize >= first {
                    at -= 8;
                    self.add_eight::<A, NEVER_MINUS_ZERO>(target, at, factor);
                }
                let (ids, own) = self.from(start, at, firsts);
                let at = at.wrapping_sub(8);
                let terms = self.terms::<NEVER_MINUS_ZERO>(at, own, factor);
                target.add_some(ids, own, terms);
            }
        }
    }

    /// Where the row begins and ends whose columns are asked for with a row.
    #[inline]
    fn ahead(&self, row: usize) -> Option<(usize, usize)> {
        const ROWS: usize = 6;
        let start = *self.x.starts().get(row + ROWS)?;
        Some((start as usize, self.x.ends()[row + ROWS] as usize))
    }

    /// Eight ids from `at` on, and which of them are before `end` and below bounds; anything for
    /// the others.
    ///
    /// # Safety
    ///
    /// As for [`first`](ColumnEntries::first), of entries before `end`.
    #[inline]
    #[target_feature(enable = "avx512f,avx512vl,bmi2")]
    unsafe fn up_to(&self, at: usize, end: usize, bounds: __m256i) -> (__m256i, u8) {
        let there = _bzhi_u32(0xff, (end - at).min(8) as u32) as u8;
        // SAFETY: as the caller says; what is masked is not read.
        let ids = unsafe { _mm256_maskz_loadu_epi32(there, self.ids.as_ptr().add(at).cast()) };
        (ids, _mm256_mask_cmplt_epu32_mask(there, ids, bounds))
    }

    /// The eight ids before `at`, and which of them are from `start` on and not below others;
    /// anything for the others.
    ///
    /// # Safety
    ///
    /// As for [`first`](ColumnEntries::first), of entries from `start` on.
    #[inline]
    #[target_feature(enable = "avx512f,avx512vl")]
    unsafe fn from(&self, start: usize, at: usize, firsts: __m256i) -> (__m256i, u8) {
        // The last lanes, before which there may be no memory.
        let there = (0xff00_u32 >> (at - start).min(8)) as u8;
        let place = self.ids.as_ptr().wrapping_add(at).wrapping_sub(8);
        // SAFETY: as the caller says; what is masked is not read.
        let ids = unsafe { _mm256_maskz_loadu_epi32(there, place.cast()) };
        (ids, _mm256_mask_cmpge_epu32_mask(there, ids, firsts))
    }

    /// Adds eight entries from `at` on, one after the other: that is faster than to scatter them.
    ///
    /// # Safety
    ///
    /// As for [`first`](ColumnEntries::first), and they are there, in columns that the target has.
    #[inline]
    #[target_feature(enable = "avx512f,avx512vl")]
    unsafe fn add_eight<A: Target, const NEVER_MINUS_ZERO: bool>(
        &self,
        target: &mut A,
        at: usize,
        factor: __m512d,
    ) {
        let mut terms = [0.0; 8];
        // SAFETY: as the caller says.
        unsafe {
            let products = self.terms::<NEVER_MINUS_ZERO>(at, 0xff, factor);
            _mm512_storeu_pd(terms.as_mut_ptr(), products);
            for (entry, term) in terms.into_iter().enumerate() {
                target.add(*self.ids.get_unchecked(at + entry), term);
            }
        }
    }

    /// What some of the eight entries from `at` on add; anything for the others.
    ///
    /// # Safety
    ///
    /// As for [`first`](ColumnEntries::first), of the entries under the mask.
    #[inline]
    #[target_feature(enable = "avx512f,avx512vl")]
    unsafe fn terms<const NEVER_MINUS_ZERO: bool>(
        &self,
        at: usize,
        own: u8,
        factor: __m512d,
    ) -> __m512d {
        let mut products = factor;
        if !Self::ARE_UNITS {
            // SAFETY: as the caller says; what is masked is not read.
            let values =
                unsafe { _mm256_maskz_loadu_ps(own, self.values.as_ptr().wrapping_add(at)) };
            products = _mm512_mul_pd(_mm512_cvtps_pd(values), factor);
        }
        if NEVER_MINUS_ZERO { _mm512_add_pd(products, _mm512_setzero_pd()) } else { products }
    }
}

/// Whether the processor has the instructions.
pub fn are_added() -> bool {
    x86::Level::found() == Some(x86::Level::Avx512)
}

/// What entries are added to.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a target of column entries",
    note = "see the implementations beside this trait"
)]
pub trait Target {
    /// Whether columns are asked for some rows ahead.
    const ASKS: bool = false;

    /// A row of so many entries begins, all of which may be added.
    #[inline(always)]
    fn begin_row(&mut self, _n_entries: usize) {}

    /// Asks for the memory of a column ahead of its use. Any will do.
    #[inline(always)]
    fn ask(&self, _id: u32) {}

    /// The same of those of eight columns that are under a mask.
    ///
    /// # Safety
    ///
    /// The processor has AVX-512 with 32-byte vectors.
    #[inline(always)]
    unsafe fn ask_some(&self, _ids: __m256i, _own: u8) {}

    /// Adds one entry.
    ///
    /// # Safety
    ///
    /// The target has the column.
    unsafe fn add(&mut self, id: u32, term: f64);

    /// Adds those of eight entries, of different columns, that are under a mask.
    ///
    /// # Safety
    ///
    /// The processor has AVX-512 with 32-byte vectors, and the target has the columns under the
    /// mask.
    unsafe fn add_some(&mut self, ids: __m256i, own: u8, terms: __m512d);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::formats::Csr;
    use sparse_core::element::{Factor, Unit};

    const N_COLS: usize = 70;

    /// Rows of every length up to some, which begin anywhere.
    fn matrix() -> Csr<f32> {
        let row = |row: usize| {
            let (first, step) = (row * 11 % 40, 1 + row % 3);
            let columns = (first..N_COLS).step_by(step).take(row % 31);
            columns.map(move |column| (column, (row * 31 + column * 7 % 90) as f32 - 40.5))
        };
        Csr::from_rows(N_COLS, (0..93).map(|index| row(index).collect::<Vec<_>>())).unwrap()
    }

    fn holds<V: Factor<f32>>(x: CsrView<'_, V>) {
        let factors: Vec<f32> = (0..x.n_rows()).map(|row| [0.5, -1.0, 0.0][row % 3]).collect();
        for columns in [0..N_COLS, 0..N_COLS / 2, N_COLS / 2..N_COLS, 20..45, 0..1, 69..70, 30..30]
        {
            let mut expected = vec![-0.0f64; columns.len()];
            for (row, factor) in factors.iter().enumerate() {
                let (ids, values) = x.row(row).unwrap();
                for (at, value) in values.iter().enumerate() {
                    let column = ids.get(at).unwrap();
                    if columns.contains(&column) {
                        expected[column - columns.start] += f64::from(value.times(*factor));
                    }
                }
            }
            for gathers in [true, false] {
                let Some(own) = ColumnEntries::of(x, &factors) else {
                    assert!(!are_added(), "f32 and u32");
                    return;
                };
                let own = own.in_columns(columns.clone()).gathered(gathers);
                let bits = |sums: &[f64]| sums.iter().map(|sum| sum.to_bits()).collect::<Vec<_>>();
                let mut sums = vec![-0.0; columns.len()];
                // SAFETY: there are as many sums as columns.
                unsafe { own.add::<false>(sums.as_mut_ptr()) };
                assert_eq!(bits(&sums), bits(&expected), "{columns:?}, gathered: {gathers}");
                let mut never = vec![-0.0; columns.len()];
                // SAFETY: as above.
                unsafe { own.add::<true>(never.as_mut_ptr()) };
                let is_zero = |sum: f64| sum.to_bits() == (-0.0f64).to_bits();
                for (sum, never) in sums.iter().zip(&never) {
                    assert!(sum == never, "{columns:?}, gathered: {gathers}");
                    assert!(!is_zero(*never) || is_zero(*sum));
                }
            }
        }
    }

    #[test]
    fn entries_are_added_to_their_columns_alone() {
        let x = matrix();
        holds(x.view());
        let mut parts = x.into_parts();
        parts.values.fill(1.0);
        let pattern = Csr::from_parts(parts).unwrap();
        let units: CsrView<'_, Unit> = pattern.view().units().unwrap();
        holds(units);
    }

    #[test]
    fn other_types_are_left_to_others() {
        let wide = Csr::from_rows(9, vec![vec![(3, 1.0f64)]]).unwrap();
        assert!(ColumnEntries::of(wide.view(), &[1.0]).is_none());
    }

    #[test]
    #[should_panic(expected = "a factor for each row")]
    fn factors_are_counted() {
        ColumnEntries::of(matrix().view(), &[1.0]);
    }
}

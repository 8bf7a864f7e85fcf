//! Entries in some columns, each of which adds to a number of its column, in vectors: a row's entries in these columns are its first or its
//! last ones, as rows are sorted, and as many in each row as chance has it. A branch that asks that of every entry is guessed wrong once a
//! row; eights are as many in most rows, and the one that is not whole is added under a mask. Where instructions that add under a mask are
//! slow, what is masked is added to numbers that nobody reads.

use super::ahead;
use super::parallel::below;
use crate::formats::{ColumnIdsView, CsrView};
use crate::lanes::{same_type, x86};
use sparse_core::element::{Factor, Float, Stored};
use std::arch::x86_64::*;
use std::ops::Range;

/// Entries of f32, each of which adds its value times the factor of its row.
///
/// Invariant: the processor has AVX-512 and bmi2, there is a factor for each row, and the columns are of `x`.
#[derive(Clone)]
pub(crate) struct OwnEntries<'a, 'm, V: Stored> {
    x: CsrView<'m, V>,
    ids: &'a [u32],
    /// None where all are 1.
    values: &'a [f32],
    factors: &'a [f32],
    columns: Range<usize>,
    /// Whether eights that are not whole are gathered and scattered.
    gathers: bool,
    /// Whether entries are asked for ahead, so that they need not be in a cache.
    asks: bool,
}

impl<'a, 'm: 'a, V: Stored> OwnEntries<'a, 'm, V> {
    /// The entries of `x`. `None` of other types and on other processors.
    ///
    /// # Panics
    ///
    /// If there are fewer factors than rows.
    pub(crate) fn of<T: Float>(x: CsrView<'m, V>, factors: &'a [T::Accumulator]) -> Option<Self>
    where
        V: Factor<T>,
    {
        assert!(factors.len() >= x.n_rows(), "a factor for each row");
        let ColumnIdsView::U32(ids) = x.columns() else { return None };
        // Of a pattern they are not read.
        let values = if V::IS_UNIT { &[][..] } else { same_type(x.values())? };
        let factors = same_type(factors)?;
        let (columns, gathers, asks) = (0..x.n_cols(), x86::gathers_under_masks(), false);
        // Ids are signed to the instructions that gather.
        (are_added() && x.n_cols() <= 1 << 31).then_some(OwnEntries {
            x,
            ids,
            values,
            factors,
            columns,
            gathers,
            asks,
        })
    }

    /// Those of them in some columns.
    ///
    /// # Panics
    ///
    /// If there are no such columns.
    pub(crate) fn in_columns(&self, columns: Range<usize>) -> Self {
        let n_cols = self.x.n_cols();
        assert!(columns.start <= columns.end && columns.end <= n_cols, "{columns:?} of {n_cols}");
        OwnEntries { columns, ..*self }
    }

    /// The same, of rows that are not in a cache.
    pub(crate) fn asked_for(self) -> Self {
        OwnEntries { asks: true, ..self }
    }

    /// The same, with or without instructions that gather.
    #[cfg(test)]
    pub(crate) fn gathered(self, gathers: bool) -> Self {
        OwnEntries { gathers, ..self }
    }

    /// Adds each entry to the number of its column, where `sums` points to that of the first of the columns. With `NEVER_MINUS_ZERO` a
    /// term that is -0 counts as 0.
    ///
    /// # Safety
    ///
    /// There is a number for each of the columns, which nobody else reads or writes.
    pub(crate) unsafe fn add<T: Float, const NEVER_MINUS_ZERO: bool>(&self, sums: *mut f32)
    where
        V: Factor<T>,
    {
        let sums = sums.wrapping_sub(self.columns.start);
        // SAFETY: the processor has the instructions, as the invariant says; the entries are those of a csr, and numbers are there, as the caller says.
        unsafe {
            match (self.columns.end == self.x.n_cols(), self.gathers) {
                (true, true) => self.last::<T, NEVER_MINUS_ZERO, true>(sums),
                (true, false) => self.last::<T, NEVER_MINUS_ZERO, false>(sums),
                (false, true) => self.first::<T, NEVER_MINUS_ZERO, true>(sums),
                (false, false) => self.first::<T, NEVER_MINUS_ZERO, false>(sums),
            }
        }
    }

    /// The rows: where each begins and ends, and its factor.
    #[inline]
    fn rows(&self) -> impl Iterator<Item = (usize, (usize, usize, f32))> {
        let bounds = self.x.starts().iter().zip(self.x.ends()).zip(self.factors);
        bounds.map(|((&start, &end), &x)| (start as usize, end as usize, x)).enumerate()
    }

    /// Columns that do not go up to the last: entries from the first on that is in them.
    ///
    /// # Safety
    ///
    /// The processor has AVX-512 with 32-byte vectors and bmi2, the ids are below 2³¹, and so many as values if there are any, and as
    /// the entries of `x`; `sums` has a number for each of the columns.
    #[target_feature(enable = "avx512f,avx512vl,bmi2,popcnt")]
    unsafe fn first<T: Float, const NEVER_MINUS_ZERO: bool, const GATHER: bool>(
        &self,
        sums: *mut f32,
    ) where
        V: Factor<T>,
    {
        let Range { start: first, end: bound } = self.columns;
        let bounds = _mm256_set1_epi32(bound as i32);
        let mut nowhere = [0.0; 8];
        for (row, (start, end, factor)) in self.rows() {
            if self.asks {
                ahead::ask_for_row(self.x, self.ids, row, ahead::FAR);
            }
            let mut at = start;
            if first > 0 {
                at += below(&self.ids[start..end], first);
            }
            let factor = _mm256_set1_ps(factor);
            // SAFETY: entries are read up to `end`, or masked, and only those are added that are in the columns.
            unsafe {
                while at + 8 <= end && (*self.ids.get_unchecked(at + 7) as usize) < bound {
                    self.add_eight::<T, NEVER_MINUS_ZERO>(sums, at, factor);
                    at += 8;
                }
                let there = _bzhi_u32(0xff, (end - at).min(8) as u32) as u8;
                let ids = _mm256_maskz_loadu_epi32(there, self.ids.as_ptr().add(at).cast());
                let own = _mm256_mask_cmplt_epu32_mask(there, ids, bounds);
                let terms = self.terms::<T, NEVER_MINUS_ZERO>(at, own, factor);
                add_some::<GATHER>(sums, ids, own, terms, &mut nowhere);
            }
        }
    }

    /// Columns up to the last: entries from the last of a row down, as they are of different columns.
    ///
    /// # Safety
    ///
    /// As for [`first`](OwnEntries::first).
    #[target_feature(enable = "avx512f,avx512vl,bmi2,popcnt")]
    unsafe fn last<T: Float, const NEVER_MINUS_ZERO: bool, const GATHER: bool>(
        &self,
        sums: *mut f32,
    ) where
        V: Factor<T>,
    {
        let first = self.columns.start;
        let firsts = _mm256_set1_epi32(first as i32);
        let mut nowhere = [0.0; 8];
        for (row, (start, end, factor)) in self.rows() {
            if self.asks {
                ahead::ask_for_row(self.x, self.ids, row, ahead::FAR);
            }
            let (mut at, factor) = (end, _mm256_set1_ps(factor));
            // SAFETY: entries are read down to `start`, or masked, and only those are added that are in the columns.
            unsafe {
                while at >= start + 8 && *self.ids.get_unchecked(at - 8) as usize >= first {
                    at -= 8;
                    self.add_eight::<T, NEVER_MINUS_ZERO>(sums, at, factor);
                }
                // The last lanes, before which there may be no memory.
                let there = (0xff00_u32 >> (at - start).min(8)) as u8;
                let at = at.wrapping_sub(8);
                let ids =
                    _mm256_maskz_loadu_epi32(there, self.ids.as_ptr().wrapping_add(at).cast());
                let own = _mm256_mask_cmpge_epu32_mask(there, ids, firsts);
                let terms = self.terms::<T, NEVER_MINUS_ZERO>(at, own, factor);
                add_some::<GATHER>(sums, ids, own, terms, &mut nowhere);
            }
        }
    }

    /// Adds eight entries from `at` on, one after the other: that is faster than to scatter them.
    ///
    /// # Safety
    ///
    /// As for [`first`](OwnEntries::first), and they are there, in columns that `sums` has.
    #[inline]
    #[target_feature(enable = "avx512f,avx512vl")]
    unsafe fn add_eight<T: Float, const NEVER_MINUS_ZERO: bool>(
        &self,
        sums: *mut f32,
        at: usize,
        factor: __m256,
    ) where
        V: Factor<T>,
    {
        let mut terms = [0.0; 8];
        // SAFETY: as the caller says.
        unsafe {
            let products = self.terms::<T, NEVER_MINUS_ZERO>(at, 0xff, factor);
            _mm256_storeu_ps(terms.as_mut_ptr(), products);
            for (entry, term) in terms.into_iter().enumerate() {
                *sums.add(*self.ids.get_unchecked(at + entry) as usize) += term;
            }
        }
    }

    /// What some of the eight entries from `at` on add; anything for the others.
    ///
    /// # Safety
    ///
    /// As for [`first`](OwnEntries::first), of the entries under the mask.
    #[inline]
    #[target_feature(enable = "avx512f,avx512vl")]
    unsafe fn terms<T: Float, const NEVER_MINUS_ZERO: bool>(
        &self,
        at: usize,
        own: u8,
        factor: __m256,
    ) -> __m256
    where
        V: Factor<T>,
    {
        let mut products = factor;
        if !V::IS_UNIT {
            // SAFETY: as the caller says; what is masked is not read.
            let values =
                unsafe { _mm256_maskz_loadu_ps(own, self.values.as_ptr().wrapping_add(at)) };
            products = _mm256_mul_ps(values, factor);
        }
        if NEVER_MINUS_ZERO { _mm256_add_ps(products, _mm256_setzero_ps()) } else { products }
    }
}

/// Whether the processor has the instructions.
pub(crate) fn are_added() -> bool {
    x86::Level::found() == Some(x86::Level::Avx512)
}

/// Adds terms under a mask to the numbers of different ids, and the others `nowhere`.
///
/// # Safety
///
/// The processor has the instructions, and `sums` has numbers of the ids under the mask.
#[inline]
#[target_feature(enable = "avx512f,avx512vl")]
unsafe fn add_some<const GATHER: bool>(
    sums: *mut f32,
    ids: __m256i,
    own: u8,
    terms: __m256,
    nowhere: &mut [f32; 8],
) {
    if GATHER {
        // SAFETY: as the caller says; what is masked is neither read nor written.
        unsafe {
            let before = _mm256_mmask_i32gather_ps::<4>(_mm256_setzero_ps(), own, ids, sums);
            _mm256_mask_i32scatter_ps::<4>(sums, own, ids, _mm256_add_ps(before, terms));
        }
        return;
    }
    // Each has a place of its own, so that none waits for another.
    let lanes = _mm512_setr_epi64(0, 4, 8, 12, 16, 20, 24, 28);
    let elsewhere = _mm512_add_epi64(_mm512_set1_epi64(nowhere.as_mut_ptr() as i64), lanes);
    let bytes = _mm512_slli_epi64::<2>(_mm512_cvtepu32_epi64(ids));
    let places = _mm512_mask_add_epi64(elsewhere, own, _mm512_set1_epi64(sums as i64), bytes);
    let (mut to, mut numbers) = ([std::ptr::null_mut::<f32>(); 8], [0.0; 8]);
    // SAFETY: each address is that of a number of `sums`, as the caller says, or `nowhere`.
    unsafe {
        _mm512_storeu_epi64(to.as_mut_ptr().cast(), places);
        _mm256_storeu_ps(numbers.as_mut_ptr(), terms);
        for (to, term) in to.into_iter().zip(numbers) {
            *to += term;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::formats::Csr;
    use sparse_core::element::Unit;

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
            let mut expected = vec![-0.0f32; columns.len()];
            for (row, factor) in factors.iter().enumerate() {
                let (ids, values) = x.row(row).unwrap();
                for (at, value) in values.iter().enumerate() {
                    let column = ids.get(at).unwrap();
                    if columns.contains(&column) {
                        expected[column - columns.start] += value.times(*factor);
                    }
                }
            }
            for gathers in [true, false] {
                let Some(own) = OwnEntries::of::<f32>(x, &factors) else {
                    assert!(!are_added(), "f32 and u32");
                    return;
                };
                let own = own.in_columns(columns.clone()).gathered(gathers);
                let bits = |sums: &[f32]| sums.iter().map(|sum| sum.to_bits()).collect::<Vec<_>>();
                let mut sums = vec![-0.0; columns.len()];
                // SAFETY: there are as many sums as columns.
                unsafe { own.add::<f32, false>(sums.as_mut_ptr()) };
                assert_eq!(bits(&sums), bits(&expected), "{columns:?}, gathered: {gathers}");
                let mut never = vec![-0.0; columns.len()];
                // SAFETY: as above.
                unsafe { own.asked_for().add::<f32, true>(never.as_mut_ptr()) };
                let is_zero = |sum: f32| sum.to_bits() == (-0.0f32).to_bits();
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
        assert!(OwnEntries::of::<f64>(wide.view(), &[1.0]).is_none());
    }

    #[test]
    #[should_panic(expected = "a factor for each row")]
    fn factors_are_counted() {
        OwnEntries::of::<f32>(matrix().view(), &[1.0]);
    }
}

//! Some columns of csrᵀ · one column, in vectors: a row's entries in these columns are its first or its last ones, as rows are sorted,
//! and as many in each row as chance has it. A branch that asks that of every entry is guessed wrong once a row; eights are as many in
//! most rows, and the one that is not whole is added under a mask.

use super::gemm::Matrix;
use crate::formats::{ColumnIdsView, CsrView};
use crate::kernels::ahead;
use crate::kernels::parallel::below;
use crate::lanes::{same_type, same_type_mut, x86};
use sparse_core::element::{Factor, Float, Stored};
use std::arch::x86_64::*;
use std::ops::Range;

/// Adds the entries in some columns, not all, where `sums` begins at the first of these; a term that is -0 counts as 0. Tells whether it
/// did: other types, processors and wide matrices are left to [`scatter`](super::scatter).
///
/// # Safety
///
/// There is a sum for each of the columns.
pub(super) unsafe fn add<T: Float, V: Factor<T>>(
    sums: &mut [T::Accumulator],
    lhs: CsrView<'_, V>,
    rhs: Matrix<'_, T>,
    columns: Range<usize>,
) -> bool {
    let (ColumnIdsView::U32(ids), Some(sums), Some(x)) =
        (lhs.columns(), same_type_mut(sums), same_type(rhs.values))
    else {
        return false;
    };
    // Of a pattern they are not read.
    let values = if V::IS_UNIT { Some(&[][..]) } else { same_type(lhs.values()) };
    let Some(values) = values else { return false };
    let is_part = columns.start > 0 || columns.end < lhs.n_cols();
    // Ids are signed to the instruction. A right side of one column is its elements, one behind the other.
    if !is_part || !x86::gathers_under_masks() || lhs.n_cols() > 1 << 31 || rhs.n_cols != 1 {
        return false;
    }
    let part = Part { lhs, ids, values, x, columns };
    // SAFETY: the processor has the instructions, the entries are those of a csr, and sums are there, as the caller says.
    unsafe {
        match part.columns.end == lhs.n_cols() {
            true => part.last::<T>(sums),
            false => part.first::<T>(sums),
        }
    }
    true
}

/// Factors of numbers of a type that is `f32`, which is said with each call.
struct Part<'a, 'm, V: Stored> {
    lhs: CsrView<'m, V>,
    ids: &'a [u32],
    /// None where all are 1.
    values: &'a [f32],
    /// An element a row.
    x: &'a [f32],
    columns: Range<usize>,
}

impl<V: Stored> Part<'_, '_, V> {
    /// The rows: where each begins and ends, and its element of the right side.
    #[inline]
    fn rows(&self) -> impl Iterator<Item = (usize, (usize, usize, f32))> {
        let bounds = self.lhs.starts().iter().zip(self.lhs.ends()).zip(self.x);
        bounds.map(|((&start, &end), &x)| (start as usize, end as usize, x)).enumerate()
    }

    /// Columns that do not go up to the last: entries from the first on that is in them.
    ///
    /// # Safety
    ///
    /// The processor has AVX-512 with 32-byte vectors and bmi2, the ids are below 2³¹, and so many as values if there are any, and as
    /// the entries of `lhs`; there is a sum for each of the columns.
    #[target_feature(enable = "avx512f,avx512vl,bmi2,popcnt")]
    unsafe fn first<T: Float>(&self, sums: &mut [f32])
    where
        V: Factor<T>,
    {
        let Range { start: first, end: bound } = self.columns;
        let sums = sums.as_mut_ptr().wrapping_sub(first);
        let bounds = _mm256_set1_epi32(bound as i32);
        for (row, (start, end, x)) in self.rows() {
            ahead::ask_for_row(self.lhs, self.ids, row, ahead::FAR);
            let mut at = start;
            if first > 0 {
                at += below(&self.ids[start..end], first);
            }
            let factor = _mm256_set1_ps(x);
            // SAFETY: entries are read up to `end`, or masked, and only those are added that are in the columns.
            unsafe {
                while at + 8 <= end && (*self.ids.get_unchecked(at + 7) as usize) < bound {
                    self.add_eight::<T>(sums, at, factor);
                    at += 8;
                }
                let there = _bzhi_u32(0xff, (end - at).min(8) as u32) as u8;
                let ids = _mm256_maskz_loadu_epi32(there, self.ids.as_ptr().add(at).cast());
                let own = _mm256_mask_cmplt_epu32_mask(there, ids, bounds);
                self.add_some::<T>(sums, at, ids, own, factor);
            }
        }
    }

    /// Columns up to the last: entries from the last of a row down, as they are of different columns.
    ///
    /// # Safety
    ///
    /// As for [`first`](Part::first).
    #[target_feature(enable = "avx512f,avx512vl,bmi2,popcnt")]
    unsafe fn last<T: Float>(&self, sums: &mut [f32])
    where
        V: Factor<T>,
    {
        let first = self.columns.start;
        let sums = sums.as_mut_ptr().wrapping_sub(first);
        let firsts = _mm256_set1_epi32(first as i32);
        for (row, (start, end, x)) in self.rows() {
            ahead::ask_for_row(self.lhs, self.ids, row, ahead::FAR);
            let (mut at, factor) = (end, _mm256_set1_ps(x));
            // SAFETY: entries are read down to `start`, or masked, and only those are added that are in the columns.
            unsafe {
                while at >= start + 8 && *self.ids.get_unchecked(at - 8) as usize >= first {
                    at -= 8;
                    self.add_eight::<T>(sums, at, factor);
                }
                // The last lanes, before which there may be no memory.
                let there = (0xff00_u32 >> (at - start).min(8)) as u8;
                let at = at.wrapping_sub(8);
                let ids =
                    _mm256_maskz_loadu_epi32(there, self.ids.as_ptr().wrapping_add(at).cast());
                let own = _mm256_mask_cmpge_epu32_mask(there, ids, firsts);
                self.add_some::<T>(sums, at, ids, own, factor);
            }
        }
    }

    /// Adds eight entries from `at` on, one after the other: that is faster than to scatter them.
    ///
    /// # Safety
    ///
    /// As for [`first`](Part::first), and they are there, in columns that `sums` has behind its place 0.
    #[inline]
    #[target_feature(enable = "avx512f,avx512vl")]
    unsafe fn add_eight<T: Float>(&self, sums: *mut f32, at: usize, factor: __m256)
    where
        V: Factor<T>,
    {
        let mut terms = [0.0; 8];
        // SAFETY: as the caller says.
        unsafe {
            let mut products = factor;
            if !V::IS_UNIT {
                products = _mm256_mul_ps(_mm256_loadu_ps(self.values.as_ptr().add(at)), factor);
            }
            let products = _mm256_add_ps(products, _mm256_setzero_ps());
            _mm256_storeu_ps(terms.as_mut_ptr(), products);
            for (entry, term) in terms.into_iter().enumerate() {
                *sums.add(*self.ids.get_unchecked(at + entry) as usize) += term;
            }
        }
    }

    /// Adds some of the eight entries from `at` on, which are of different columns.
    ///
    /// # Safety
    ///
    /// As for [`add_eight`](Part::add_eight), of those under the mask.
    #[inline]
    #[target_feature(enable = "avx512f,avx512vl")]
    unsafe fn add_some<T: Float>(
        &self,
        sums: *mut f32,
        at: usize,
        ids: __m256i,
        own: u8,
        factor: __m256,
    ) where
        V: Factor<T>,
    {
        let zero = _mm256_setzero_ps();
        // SAFETY: as the caller says; what is masked is neither read nor written.
        unsafe {
            let mut products = factor;
            if !V::IS_UNIT {
                let values = self.values.as_ptr().wrapping_add(at);
                products = _mm256_mul_ps(_mm256_maskz_loadu_ps(own, values), factor);
            }
            let before = _mm256_mmask_i32gather_ps::<4>(zero, own, ids, sums);
            let after = _mm256_add_ps(before, _mm256_add_ps(products, zero));
            _mm256_mask_i32scatter_ps::<4>(sums, own, ids, after);
        }
    }
}

//! A stage of products with a parameter of one column, in vectors: what of a row is a stage's is as many entries as chance has it, and a
//! branch that asks for the end at every fourth is guessed wrong in most rows. Of sixteen under a mask there are as many in most.

use super::products::HandedOn;
use crate::formats::{ColumnIdsView, CsrView};
use crate::lanes::{same_type, same_type_mut, x86};
use crate::optimizer::RowWeights;
use crate::prefetch::prefetch;
use crate::row_parts::Piece;
use sparse_core::element::{Factor, Float};
use std::arch::x86_64::*;

/// The entries of a row that are looked at together, from the row's beginning on, whichever stage they are of: the four sums take them in
/// turn, so that each entry has its sum by its place.
const TOGETHER: usize = 16;

/// A stage of the products of some rows of data, as [`add_terms_below`](super::products::add_terms_below) makes it, but that the four sums
/// handed on begin with that of a row's first entry; the last stage leaves the product. Tells whether it did: other types and processors are left
/// to the caller, in all stages.
///
/// # Safety
///
/// The columns of `x` are rows of the parameter, which nobody writes; the piece is of `x`.
pub(super) unsafe fn add_sums<T: Float, V: Factor<T>>(
    x: CsrView<'_, V>,
    piece: &mut Piece<'_, '_, V>,
    weights: RowWeights<'_, T>,
    sums: &mut [HandedOn<T::Accumulator>],
) -> bool {
    let (ColumnIdsView::U32(ids), Some(sums)) = (x.columns(), same_type_mut(sums)) else {
        return false;
    };
    // Of a pattern they are not read.
    let values = if V::IS_UNIT { Some(&[][..]) } else { same_type(x.values()) };
    let (first, stride) = weights.addresses();
    let (Some(values), Some(_)) = (values, same_type::<T, f32>(&[])) else { return false };
    if !x86::gathers_well() {
        return false;
    }
    let rows = Rows { ids, values, first: first.cast(), stride };
    // SAFETY: the processor has the instructions; the rest is promised by the caller, of a csr whose bounds are within its entries.
    unsafe {
        match (piece.is_first(), piece.is_last()) {
            (true, true) => rows.add::<_, true, true>(piece, sums),
            (true, false) => rows.add::<_, true, false>(piece, sums),
            (false, true) => rows.add::<_, false, true>(piece, sums),
            (false, false) => rows.add::<_, false, false>(piece, sums),
        }
    }
    true
}

/// Rows of data and weights.
struct Rows<'a> {
    ids: &'a [u32],
    /// None where all are 1.
    values: &'a [f32],
    /// The weights, so many bytes one after the other.
    first: *const u8,
    stride: usize,
}

impl Rows<'_> {
    /// # Safety
    ///
    /// The processor has AVX-512 and bmi2; bounds of `piece` are within the entries, the ids of which have weights.
    #[target_feature(enable = "avx512f,avx512vl,avx512dq,bmi1,bmi2,popcnt")]
    unsafe fn add<V: sparse_core::element::Stored, const FIRST: bool, const LAST: bool>(
        &self,
        piece: &mut Piece<'_, '_, V>,
        sums: &mut [HandedOn<f32>],
    ) {
        let bound = _mm512_set1_epi32(piece.bound() as u32 as i32);
        for (place, sums) in sums.iter_mut().enumerate() {
            let (row, start, end) = piece.bounds(place);
            let ahead = piece.ahead(place);
            let mut at = row + (start - row) / TOGETHER * TOGETHER;
            let mut stop = start;
            // SAFETY: what is read is before `end` or masked.
            unsafe {
                let mut four = match FIRST {
                    true => _mm_setzero_ps(),
                    false => _mm_loadu_ps(sums.as_ptr()),
                };
                while at < end {
                    prefetch(self.ids, at.wrapping_add(ahead));
                    if !self.values.is_empty() {
                        prefetch(self.values, at.wrapping_add(ahead));
                    }
                    let before = start.saturating_sub(at);
                    let there = _bzhi_u32(0xffff, (end - at).min(TOGETHER) as u32) as u16;
                    let there = there & (0xffff_u32 << before) as u16;
                    let ids = self.ids.as_ptr().wrapping_add(at).cast();
                    let ids = _mm512_maskz_loadu_epi32(there, ids);
                    let mut own = there;
                    if !LAST {
                        own = _mm512_mask_cmplt_epu32_mask(there, ids, bound);
                    }
                    for terms in self.terms(at, ids, own) {
                        four = _mm_add_ps(four, _mm256_castps256_ps128(terms));
                        four = _mm_add_ps(four, _mm256_extractf32x4_ps::<1>(terms));
                    }
                    stop += own.count_ones() as usize;
                    if own != there {
                        break;
                    }
                    at += TOGETHER;
                }
                _mm_storeu_ps(sums.as_mut_ptr(), four);
            }
            if LAST {
                sums[0] = (sums[0] + sums[1]) + (sums[2] + sums[3]);
            }
            piece.end(place, stop - start);
        }
    }

    /// The weights of sixteen entries from `at` on, times their values; 0 where they are masked.
    ///
    /// # Safety
    ///
    /// As for [`add`](Rows::add), of those under the mask.
    #[inline]
    #[target_feature(enable = "avx512f,avx512vl,avx512dq")]
    unsafe fn terms(&self, at: usize, ids: __m512i, own: u16) -> [__m256; 2] {
        let stride = _mm512_set1_epi64(self.stride as i64);
        let halves = [_mm512_castsi512_si256(ids), _mm512_extracti64x4_epi64::<1>(ids)];
        let mut terms = [_mm256_setzero_ps(); 2];
        for (half, (ids, terms)) in halves.into_iter().zip(&mut terms).enumerate() {
            let own = (own >> (8 * half)) as u8;
            let offsets = _mm512_mul_epu32(_mm512_cvtepu32_epi64(ids), stride);
            // SAFETY: as the caller says; what is masked is not read.
            unsafe {
                *terms = _mm512_mask_i64gather_ps::<1>(*terms, own, offsets, self.first.cast());
                // Of a pattern there are none.
                if !self.values.is_empty() {
                    let values = self.values.as_ptr().wrapping_add(at + 8 * half);
                    *terms = _mm256_mul_ps(*terms, _mm256_maskz_loadu_ps(own, values));
                }
            }
        }
        terms
    }
}

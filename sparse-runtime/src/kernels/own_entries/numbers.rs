//! Numbers of columns as what entries are added to.

use super::Target;
use crate::prefetch::prefetch_at;
use std::arch::x86_64::*;

/// Numbers of columns from the first column on, each added to by itself.
pub(super) struct Numbers<const FAR: bool> {
    pub(super) sums: *mut f32,
    /// What takes what is masked: each lane has a place of its own, so that none waits for another.
    pub(super) nowhere: [f32; 8],
}

impl<const FAR: bool> Numbers<FAR> {
    /// Where numbers lie, of what is masked the places that nobody reads, the first of which is given.
    #[inline]
    #[target_feature(enable = "avx512f,avx512vl")]
    fn places(&self, ids: __m256i, own: u8, nowhere: *const f32) -> [*mut f32; 8] {
        let lanes = _mm512_setr_epi64(0, 4, 8, 12, 16, 20, 24, 28);
        let nowhere = _mm512_add_epi64(_mm512_set1_epi64(nowhere as i64), lanes);
        places_of(ids, own, self.sums, nowhere)
    }
}

impl<const FAR: bool> Target for Numbers<FAR> {
    const ASKS: bool = FAR;

    #[inline(always)]
    fn ask(&self, id: u32) {
        prefetch_at(self.sums.wrapping_add(id as usize).cast_const());
    }

    #[inline]
    #[target_feature(enable = "avx512f,avx512vl")]
    unsafe fn ask_some(&self, ids: __m256i, own: u8) {
        let places = self.places(ids, own, self.nowhere.as_ptr());
        places.into_iter().for_each(|place| prefetch_at(place.cast_const()));
    }

    #[inline(always)]
    unsafe fn add(&mut self, id: u32, term: f32) {
        // SAFETY: promised by the caller.
        unsafe { *self.sums.add(id as usize) += term };
    }

    #[inline]
    #[target_feature(enable = "avx512f,avx512vl")]
    unsafe fn add_some(&mut self, ids: __m256i, own: u8, terms: __m256) {
        let nowhere = self.nowhere.as_mut_ptr();
        let places = self.places(ids, own, nowhere);
        for (place, term) in places.into_iter().zip(numbers_of(terms)) {
            // SAFETY: a number of a column, as the caller says, or nowhere.
            unsafe { *place += term };
        }
    }
}

/// The same where the processor does well at vectors of numbers that lie apart.
pub(super) struct Gathered {
    pub(super) sums: *mut f32,
}

impl Target for Gathered {
    #[inline(always)]
    unsafe fn add(&mut self, id: u32, term: f32) {
        // SAFETY: promised by the caller.
        unsafe { *self.sums.add(id as usize) += term };
    }

    #[inline]
    #[target_feature(enable = "avx512f,avx512vl")]
    unsafe fn add_some(&mut self, ids: __m256i, own: u8, terms: __m256) {
        // SAFETY: as the caller says; what is masked is neither read nor written.
        unsafe {
            let zero = _mm256_setzero_ps();
            let before = _mm256_mmask_i32gather_ps::<4>(zero, own, ids, self.sums);
            let after = _mm256_add_ps(before, terms);
            _mm256_mask_i32scatter_ps::<4>(self.sums, own, ids, after);
        }
    }
}

/// Where numbers of four bytes lie that ids name, and other places of what is masked.
#[inline]
#[target_feature(enable = "avx512f,avx512vl")]
pub(crate) fn places_of<N>(ids: __m256i, own: u8, first: *mut N, others: __m512i) -> [*mut N; 8] {
    const { assert!(size_of::<N>() == 4) };
    let bytes = _mm512_slli_epi64::<2>(_mm512_cvtepu32_epi64(ids));
    let places = _mm512_mask_add_epi64(others, own, _mm512_set1_epi64(first as i64), bytes);
    let mut all = [std::ptr::null_mut::<N>(); 8];
    // SAFETY: there are eight.
    unsafe { _mm512_storeu_epi64(all.as_mut_ptr().cast(), places) };
    all
}

/// The numbers of a vector.
#[inline]
#[target_feature(enable = "avx512f,avx512vl")]
pub(crate) fn numbers_of(vector: __m256) -> [f32; 8] {
    let mut numbers = [0.0; 8];
    // SAFETY: there are eight.
    unsafe { _mm256_storeu_ps(numbers.as_mut_ptr(), vector) };
    numbers
}

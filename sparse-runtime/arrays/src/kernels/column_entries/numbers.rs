//! Numbers of columns as what entries are added to.

use super::Target;
use std::arch::x86_64::*;

/// Numbers of columns from the first column on, each added to by itself.
pub(super) struct Numbers {
    pub(super) sums: *mut f64,
    /// What takes what is masked: each lane has a place of its own, so that none waits for another.
    pub(super) nowhere: [f64; 8],
}

impl Numbers {
    /// Where numbers lie, of what is masked the places that nobody reads, the first of which is
    /// given.
    ///
    /// # Safety
    ///
    /// The processor has AVX-512 F and VL.
    #[inline]
    #[target_feature(enable = "avx512f,avx512vl")]
    fn places(&self, ids: __m256i, own: u8, nowhere: *const f64) -> [*mut f64; 8] {
        let lanes = _mm512_setr_epi64(0, 8, 16, 24, 32, 40, 48, 56);
        let nowhere = _mm512_add_epi64(_mm512_set1_epi64(nowhere as i64), lanes);
        places_of(ids, own, self.sums, nowhere)
    }
}

impl Target for Numbers {
    #[inline(always)]
    unsafe fn add(&mut self, id: u32, term: f64) {
        // SAFETY: promised by the caller.
        unsafe { *self.sums.add(id as usize) += term };
    }

    #[inline]
    #[target_feature(enable = "avx512f,avx512vl")]
    unsafe fn add_some(&mut self, ids: __m256i, own: u8, terms: __m512d) {
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
    pub(super) sums: *mut f64,
}

impl Target for Gathered {
    #[inline(always)]
    unsafe fn add(&mut self, id: u32, term: f64) {
        // SAFETY: promised by the caller.
        unsafe { *self.sums.add(id as usize) += term };
    }

    #[inline]
    #[target_feature(enable = "avx512f,avx512vl")]
    unsafe fn add_some(&mut self, ids: __m256i, own: u8, terms: __m512d) {
        // SAFETY: as the caller says; what is masked is neither read nor written.
        unsafe {
            let zero = _mm512_setzero_pd();
            let before = _mm512_mask_i32gather_pd::<8>(zero, own, ids, self.sums);
            let after = _mm512_add_pd(before, terms);
            _mm512_mask_i32scatter_pd::<8>(self.sums, own, ids, after);
        }
    }
}

/// Where numbers of four or eight bytes lie that ids name, and other places of what is masked.
///
/// # Safety
///
/// The processor has AVX-512 F and VL.
#[inline]
#[target_feature(enable = "avx512f,avx512vl")]
pub fn places_of<N>(ids: __m256i, own: u8, first: *mut N, others: __m512i) -> [*mut N; 8] {
    const { assert!(size_of::<N>() == 4 || size_of::<N>() == 8) };
    let ids = _mm512_cvtepu32_epi64(ids);
    let bytes = match size_of::<N>() {
        4 => _mm512_slli_epi64::<2>(ids),
        _ => _mm512_slli_epi64::<3>(ids),
    };
    let places = _mm512_mask_add_epi64(others, own, _mm512_set1_epi64(first as i64), bytes);
    let mut all = [std::ptr::null_mut::<N>(); 8];
    // SAFETY: there are eight.
    unsafe { _mm512_storeu_epi64(all.as_mut_ptr().cast(), places) };
    all
}

/// The numbers of a vector.
///
/// # Safety
///
/// The processor has AVX-512 F.
#[inline]
#[target_feature(enable = "avx512f")]
pub fn numbers_of(vector: __m512d) -> [f64; 8] {
    let mut numbers = [0.0; 8];
    // SAFETY: there are eight.
    unsafe { _mm512_storeu_pd(numbers.as_mut_ptr(), vector) };
    numbers
}

//! csr · dense.

use crate::data::Arrays;

/// `out` = x · rhs, whose rows have `width` elements.
pub fn product(out: &mut [f32], x: Arrays<'_>, rhs: &[f32], width: usize) {
    #[cfg(target_arch = "x86_64")]
    if super::has_avx512() {
        // SAFETY: the features are there. Columns are below `n_cols`, and `rhs` has so many rows.
        unsafe {
            return match width {
                1 => avx512::single(out, x, rhs),
                16 => avx512::wide::<1, 2, 48>(out, x, rhs),
                64 => avx512::wide::<4, 1, 20>(out, x, rhs),
                256 => avx512::wide::<16, 1, 8>(out, x, rhs),
                _ => plain(out, x, rhs, width),
            };
        }
    }
    plain(out, x, rhs, width);
}

fn plain(out: &mut [f32], x: Arrays<'_>, rhs: &[f32], width: usize) {
    for (row, out) in out.chunks_exact_mut(width).enumerate() {
        out.fill(0.0);
        for entry in x.indptr[row] as usize..x.indptr[row + 1] as usize {
            let start = x.columns[entry] as usize * width;
            for (out, y) in out.iter_mut().zip(&rhs[start..start + width]) {
                *out += x.values[entry] * y;
            }
        }
    }
}

#[cfg(target_arch = "x86_64")]
mod avx512 {
    use super::super::{ask, ask_for_one};
    use crate::data::Arrays;
    use std::arch::x86_64::*;

    /// Entries are asked for so far ahead: the processor does that by itself up to the end of a
    /// page only.
    const ENTRIES_AHEAD: usize = 512;

    /// Those of one column, which are passed faster than they come from memory.
    const SINGLES_AHEAD: usize = 1024;

    /// One column: eight sums, gathered, which is as fast as sixteen and leaves less over.
    ///
    /// # Safety
    ///
    /// The processor has these instructions, and columns are below the rows of `rhs`.
    #[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512dq,bmi1,bmi2,popcnt")]
    pub unsafe fn single(out: &mut [f32], x: Arrays<'_>, rhs: &[f32]) {
        let rhs = rhs.as_ptr();
        for (row, out) in out.iter_mut().enumerate() {
            let (mut at, end) = (x.indptr[row] as usize, x.indptr[row + 1] as usize);
            ask_for_one(x.indptr, row + 32);
            let mut sums = _mm256_setzero_ps();
            // SAFETY: entries are below `end`, or masked; columns are below the length of `rhs`.
            unsafe {
                while at + 8 <= end {
                    ask(x, at + SINGLES_AHEAD);
                    let ids = _mm256_loadu_si256(x.columns.as_ptr().add(at).cast());
                    let values = _mm256_loadu_ps(x.values.as_ptr().add(at));
                    let y = _mm256_i32gather_ps::<4>(rhs, ids);
                    sums = _mm256_add_ps(sums, _mm256_mul_ps(values, y));
                    at += 8;
                }
                let mask = _bzhi_u32(0xff, (end - at) as u32) as u8;
                let ids = _mm256_maskz_loadu_epi32(mask, x.columns.as_ptr().add(at).cast());
                let values = _mm256_maskz_loadu_ps(mask, x.values.as_ptr().add(at));
                let y = _mm256_mmask_i32gather_ps::<4>(_mm256_setzero_ps(), mask, ids, rhs);
                sums = _mm256_add_ps(sums, _mm256_mul_ps(values, y));
            }
            let sums = _mm_add_ps(_mm256_castps256_ps128(sums), _mm256_extractf128_ps::<1>(sums));
            let sums = _mm_add_ps(sums, _mm_movehl_ps(sums, sums));
            *out = _mm_cvtss_f32(_mm_add_ss(sums, _mm_shuffle_ps::<1>(sums, sums)));
        }
    }

    /// Sixteen columns times `N`, held in registers in `WAYS` sums that take turns; rows are asked
    /// for `AHEAD` entries ahead.
    ///
    /// # Safety
    ///
    /// The processor has these instructions, and columns are below the rows of `rhs`.
    #[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512dq,bmi1,bmi2,popcnt")]
    pub unsafe fn wide<const N: usize, const WAYS: usize, const AHEAD: usize>(
        out: &mut [f32],
        x: Arrays<'_>,
        rhs: &[f32],
    ) {
        let rhs = rhs.as_ptr();
        let last = x.columns.len().saturating_sub(1);
        for (row, out) in out.chunks_exact_mut(16 * N).enumerate() {
            let (start, end) = (x.indptr[row] as usize, x.indptr[row + 1] as usize);
            ask_for_one(x.indptr, row + 32);
            for entry in (start..end).step_by(16) {
                ask(x, entry + ENTRIES_AHEAD);
            }
            let mut sums = [[_mm512_setzero_ps(); N]; WAYS];
            // SAFETY: entries are below `end`, a row of `rhs` is there for each column, and `out`
            // is a row.
            unsafe {
                let mut at = start;
                while at + WAYS <= end {
                    for (way, sums) in sums.iter_mut().enumerate() {
                        let ahead = (at + way + AHEAD).min(last);
                        let next = rhs.add(*x.columns.get_unchecked(ahead) as usize * 16 * N);
                        let y = rhs.add(*x.columns.get_unchecked(at + way) as usize * 16 * N);
                        let value = _mm512_set1_ps(*x.values.get_unchecked(at + way));
                        for n in 0..N {
                            _mm_prefetch::<_MM_HINT_T0>(next.add(16 * n).cast());
                            let y = _mm512_loadu_ps(y.add(16 * n));
                            sums[n] = _mm512_add_ps(sums[n], _mm512_mul_ps(value, y));
                        }
                    }
                    at += WAYS;
                }
                while at < end {
                    let y = rhs.add(*x.columns.get_unchecked(at) as usize * 16 * N);
                    let value = _mm512_set1_ps(*x.values.get_unchecked(at));
                    for n in 0..N {
                        let y = _mm512_loadu_ps(y.add(16 * n));
                        sums[0][n] = _mm512_add_ps(sums[0][n], _mm512_mul_ps(value, y));
                    }
                    at += 1;
                }
                for n in 0..N {
                    let mut sum = sums[0][n];
                    for more in &sums[1..] {
                        sum = _mm512_add_ps(sum, more[n]);
                    }
                    _mm512_storeu_ps(out.as_mut_ptr().add(16 * n), sum);
                }
            }
        }
    }
}

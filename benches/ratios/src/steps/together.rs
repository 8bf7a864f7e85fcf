//! Updates of many columns by hand: sixteen blocks at a time, turned into vectors of AVX-512, where
//! roots and quotients of sixteen numbers cost what they cost of one: on AMD's processors; one
//! after the other elsewhere.

use super::hand::{Rule, block};

/// Updates the columns of `n` entries, no two of the same one, each given with its gradient. Blocks
/// are `STRIDE` numbers apart.
#[inline(always)]
pub fn update_all<const BLOCK: usize, const STRIDE: usize, R: Rule<BLOCK>>(
    rule: &mut R,
    table: &mut [f32],
    n: usize,
    entry: impl Fn(usize) -> (u32, f32),
) {
    #[cfg(target_arch = "x86_64")]
    if (BLOCK == 2 || BLOCK == 4) && sixteen::are_faster() {
        // SAFETY: asked.
        return unsafe { sixteen::update_all::<BLOCK, STRIDE, R>(rule, table, n, entry) };
    }
    for (column, grad) in (0..n).map(entry) {
        // SAFETY: callers have the columns from a `Csr`, which holds them below its width, for
        // which the table was made.
        rule.update(unsafe { block::<BLOCK, STRIDE>(table, column) }, grad);
    }
}

#[cfg(target_arch = "x86_64")]
mod sixteen {
    use super::super::hand::Rule;
    use std::arch::x86_64::*;
    use std::sync::OnceLock;

    #[inline(always)]
    pub fn are_faster() -> bool {
        static FASTER: OnceLock<bool> = OnceLock::new();
        *FASTER.get_or_init(|| {
            let is_of_amd = __cpuid(0).ebx == u32::from_le_bytes(*b"Auth");
            is_of_amd
                && is_x86_feature_detected!("avx512f")
                && is_x86_feature_detected!("avx512dq")
                && is_x86_feature_detected!("avx512vl")
                && is_x86_feature_detected!("avx512bw")
        })
    }

    /// # Safety
    ///
    /// The processor has the instructions, blocks are of 2 or 4 numbers, `STRIDE` apart, and the
    /// table has those of all columns.
    #[target_feature(enable = "avx512f,avx512dq,avx512vl,avx512bw")]
    pub unsafe fn update_all<const BLOCK: usize, const STRIDE: usize, R: Rule<BLOCK>>(
        rule: &mut R,
        table: &mut [f32],
        n: usize,
        entry: impl Fn(usize) -> (u32, f32),
    ) {
        let (table, mut spare) = (table.as_mut_ptr(), [[0.0f32; 4]; 16]);
        for first in (0..n).step_by(16) {
            let (mut at, mut grads) = (spare.each_mut().map(|spare| spare.as_mut_ptr()), [0.0; 16]);
            if first + 16 <= n {
                for lane in 0..16 {
                    let (column, grad) = entry(first + lane);
                    // SAFETY: promised by the caller.
                    (at[lane], grads[lane]) =
                        (unsafe { table.add(column as usize * STRIDE) }, grad);
                }
            } else {
                for lane in 0..n - first {
                    let (column, grad) = entry(first + lane);
                    // SAFETY: as above.
                    (at[lane], grads[lane]) =
                        (unsafe { table.add(column as usize * STRIDE) }, grad);
                }
            }
            // SAFETY: each address has a block.
            let vectors = unsafe { if BLOCK == 2 { pairs(&at) } else { fours(&at) } };
            let mut numbers = [[0.0f32; 16]; 4];
            for (to, from) in numbers.iter_mut().zip(vectors) {
                // SAFETY: sixteen numbers.
                unsafe { _mm512_storeu_ps(to.as_mut_ptr(), from) };
            }
            for lane in 0..16 {
                let mut block = [0.0; BLOCK];
                for (to, from) in block.iter_mut().zip(&numbers) {
                    *to = from[lane];
                }
                rule.update(&mut block, grads[lane]);
                for (to, from) in numbers.iter_mut().zip(block) {
                    to[lane] = from;
                }
            }
            // SAFETY: sixteen numbers.
            let vectors = numbers.map(|numbers| unsafe { _mm512_loadu_ps(numbers.as_ptr()) });
            // SAFETY: as above.
            unsafe { if BLOCK == 2 { put_pairs(&at, vectors) } else { put_fours(&at, vectors) } }
        }
    }

    /// Blocks of four numbers.
    ///
    /// # Safety
    ///
    /// The processor has these instructions, and a block lies at each address.
    #[inline]
    #[target_feature(enable = "avx512f,avx512dq")]
    unsafe fn fours(at: &[*mut f32; 16]) -> [__m512; 4] {
        // SAFETY: promised by the caller.
        turned([0, 1, 2, 3].map(|k| unsafe {
            let low = _mm512_castps128_ps512(_mm_loadu_ps(at[k]));
            let low = _mm512_insertf32x4::<1>(low, _mm_loadu_ps(at[k + 4]));
            let low = _mm512_insertf32x4::<2>(low, _mm_loadu_ps(at[k + 8]));
            _mm512_insertf32x4::<3>(low, _mm_loadu_ps(at[k + 12]))
        }))
    }

    /// Writes what [`fours`] reads.
    ///
    /// # Safety
    ///
    /// The processor has these instructions, and a block lies at each address.
    #[inline]
    #[target_feature(enable = "avx512f,avx512dq")]
    unsafe fn put_fours(at: &[*mut f32; 16], vectors: [__m512; 4]) {
        for (k, four) in turned(vectors).into_iter().enumerate() {
            // SAFETY: promised by the caller.
            unsafe {
                _mm_storeu_ps(at[k], _mm512_castps512_ps128(four));
                _mm_storeu_ps(at[k + 4], _mm512_extractf32x4_ps::<1>(four));
                _mm_storeu_ps(at[k + 8], _mm512_extractf32x4_ps::<2>(four));
                _mm_storeu_ps(at[k + 12], _mm512_extractf32x4_ps::<3>(four));
            }
        }
    }

    /// Of each four blocks the first numbers, the second ones, and so on; the same turns them back.
    ///
    /// # Safety
    ///
    /// The processor has these instructions.
    #[inline]
    #[target_feature(enable = "avx512f")]
    fn turned([a, b, c, d]: [__m512; 4]) -> [__m512; 4] {
        let (ab, cd) = (_mm512_unpacklo_ps(a, b), _mm512_unpacklo_ps(c, d));
        let (ab_high, cd_high) = (_mm512_unpackhi_ps(a, b), _mm512_unpackhi_ps(c, d));
        [
            _mm512_shuffle_ps::<0x44>(ab, cd),
            _mm512_shuffle_ps::<0xee>(ab, cd),
            _mm512_shuffle_ps::<0x44>(ab_high, cd_high),
            _mm512_shuffle_ps::<0xee>(ab_high, cd_high),
        ]
    }

    /// Blocks of two numbers.
    ///
    /// # Safety
    ///
    /// The processor has these instructions, and a block lies at each address.
    #[inline]
    #[target_feature(enable = "avx512f,avx512dq")]
    unsafe fn pairs(at: &[*mut f32; 16]) -> [__m512; 4] {
        // SAFETY: promised by the caller.
        let two = |k: usize| unsafe {
            _mm_castpd_ps(_mm_loadh_pd(_mm_load_sd(at[k].cast()), at[k + 1].cast()))
        };
        let [low, high] = [0, 2].map(|k| {
            let joined = _mm512_insertf32x4::<1>(_mm512_castps128_ps512(two(k)), two(k + 4));
            _mm512_insertf32x4::<3>(_mm512_insertf32x4::<2>(joined, two(k + 8)), two(k + 12))
        });
        let (first, second) =
            (_mm512_shuffle_ps::<0x88>(low, high), _mm512_shuffle_ps::<0xdd>(low, high));
        [first, second, second, second]
    }

    /// Writes what [`pairs`] reads.
    ///
    /// # Safety
    ///
    /// The processor has these instructions, and a block lies at each address.
    #[inline]
    #[target_feature(enable = "avx512f,avx512dq")]
    unsafe fn put_pairs(at: &[*mut f32; 16], [first, second, ..]: [__m512; 4]) {
        let halves = [_mm512_unpacklo_ps(first, second), _mm512_unpackhi_ps(first, second)];
        for (k, half) in [0, 2].into_iter().zip(halves) {
            let quarters = [
                _mm512_castps512_ps128(half),
                _mm512_extractf32x4_ps::<1>(half),
                _mm512_extractf32x4_ps::<2>(half),
                _mm512_extractf32x4_ps::<3>(half),
            ];
            for (k, two) in (k..).step_by(4).zip(quarters.map(|two| _mm_castps_pd(two))) {
                // SAFETY: promised by the caller.
                unsafe {
                    _mm_storel_pd(at[k].cast(), two);
                    _mm_storeh_pd(at[k + 1].cast(), two);
                }
            }
        }
    }
}

//! SIMD vectors of x86.

use super::{Lanes, Loop};
use sparse_core::element::Float;
use std::arch::x86_64::*;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU8, Ordering};

/// The vector instructions of the processor.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Level {
    /// Sixteen registers of 32 bytes.
    Avx2,
    /// Thirty-two registers of 64 bytes, and masks.
    Avx512,
}

/// [`remember`]ed, or [`UNKNOWN`].
static KNOWN: AtomicU8 = AtomicU8::new(UNKNOWN);

/// The value of [`KNOWN`] before the first look at the processor.
const UNKNOWN: u8 = u8::MAX;

fn remember(level: Option<Level>) {
    KNOWN.store(level.map_or(0, |level| 1 + level as u8), Ordering::Relaxed);
}

/// Runs `body` in a process whose loops use no more than each level that the processor has, the
/// least first.
pub(super) fn at_each_level(body: &mut dyn FnMut(&str)) {
    let best = Level::find();
    for level in [None, Some(Level::Avx2), Some(Level::Avx512)] {
        if level <= best {
            remember(level);
            body(&level.map_or("plain".to_owned(), |level| format!("{level:?}")));
        }
    }
    remember(best);
}

impl Level {
    /// The best level, if any; found once.
    #[inline]
    pub fn found() -> Option<Level> {
        match KNOWN.load(Ordering::Relaxed) {
            0 => None,
            1 => Some(Level::Avx2),
            2 => Some(Level::Avx512),
            _ => {
                let level = Level::find();
                remember(level);
                level
            }
        }
    }

    #[cold]
    fn find() -> Option<Level> {
        if !is_x86_feature_detected!("avx2")
            || !is_x86_feature_detected!("bmi1")
            || !is_x86_feature_detected!("bmi2")
            || !is_x86_feature_detected!("popcnt")
        {
            return None;
        }
        let wide = is_x86_feature_detected!("avx512f")
            && is_x86_feature_detected!("avx512bw")
            && is_x86_feature_detected!("avx512dq")
            && is_x86_feature_detected!("avx512vl");
        Some(if wide { Level::Avx512 } else { Level::Avx2 })
    }
}

/// Whether a masked gather of elements is faster than single loads, as on Intel processors with
/// AVX-512
/// ([experiments](https://github.com/nnz-rs/nnz/blob/main/docs/notes/performance.md#vectors)).
#[inline]
pub fn gathers_under_masks() -> bool {
    Level::found() == Some(Level::Avx512) && is_of_intel()
}

/// Whether sixteen roots and quotients in one vector are faster than in two vectors of eight, or
/// than single ones whose numbers are gathered first, as on AMD processors with AVX-512
/// ([experiments](https://github.com/nnz-rs/nnz/blob/main/docs/notes/performance.md#vectors)).
#[inline]
pub fn divides_in_sixteens() -> bool {
    Level::found() == Some(Level::Avx512) && (cfg!(test) || !is_of_intel())
}

/// Whether the processor is an Intel one.
#[inline]
fn is_of_intel() -> bool {
    static INTEL: OnceLock<bool> = OnceLock::new();
    *INTEL.get_or_init(|| is_made_by(b"GenuineIntel"))
}

/// Whether the processor is an AMD one. Not cached.
pub fn is_of_amd() -> bool {
    is_made_by(b"AuthenticAMD")
}

fn is_made_by(maker: &[u8; 12]) -> bool {
    let CpuidResult { ebx, edx, ecx, .. } = cpuid(0);
    [ebx, edx, ecx].iter().flat_map(|part| part.to_le_bytes()).eq(*maker)
}

/// The processor's CPUID answer; zeros under Miri.
pub fn cpuid(leaf: u32) -> CpuidResult {
    if cfg!(miri) {
        // It runs none of the processor's instructions.
        return CpuidResult { eax: 0, ebx: 0, ecx: 0, edx: 0 };
    }
    // Newer compilers than the oldest supported one ask for no `unsafe`.
    #[allow(unused_unsafe)]
    // SAFETY: each processor of x86_64 has the instruction.
    unsafe {
        __cpuid(leaf)
    }
}

/// Runs inlined code, compiled for AVX2.
///
/// # Safety
///
/// [`Level::found`] gave some level.
#[target_feature(enable = "avx2,bmi1,bmi2,popcnt")]
pub unsafe fn with_avx2<O>(body: impl FnOnce() -> O) -> O {
    body()
}

/// Runs inlined code, compiled for AVX-512.
///
/// # Safety
///
/// [`Level::found`] gave it.
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx2,bmi1,bmi2,popcnt")]
pub unsafe fn with_avx512<O>(body: impl FnOnce() -> O) -> O {
    body()
}

/// [`inner`](super::inner) of eights, or [`squares_less`](super::squares_less).
///
/// # Safety
///
/// [`Level::found`] gave some level.
#[target_feature(enable = "avx2,bmi1,bmi2,popcnt")]
#[inline]
pub unsafe fn sum_of_terms<const INNER: bool>(a: &[[f32; 8]], b: &[[f32; 8]]) -> f32 {
    let mut sums = _mm256_setzero_ps();
    for (a, b) in a.iter().zip(b) {
        // SAFETY: eight elements each.
        let (a, b) = unsafe { (_mm256_loadu_ps(a.as_ptr()), _mm256_loadu_ps(b.as_ptr())) };
        let terms = if INNER { _mm256_mul_ps(a, b) } else { _mm256_sub_ps(_mm256_mul_ps(a, a), b) };
        sums = _mm256_add_ps(sums, terms);
    }
    let four = _mm_add_ps(_mm256_castps256_ps128(sums), _mm256_extractf128_ps::<1>(sums));
    let two = _mm_add_ps(four, _mm_movehl_ps(four, four));
    _mm_cvtss_f32(_mm_add_ss(two, _mm_movehdup_ps(two)))
}

/// [`Eights::add_with_squares`](super::Eights::add_with_squares).
///
/// # Safety
///
/// [`Level::found`] gave some level; `sums` and `squares` have as many elements as `row`, a
/// multiple of eight.
#[target_feature(enable = "avx2,bmi1,bmi2,popcnt")]
#[inline]
pub unsafe fn add_with_squares(factor: f32, row: &[f32], sums: &mut [f32], squares: &mut [f32]) {
    let factor = _mm256_set1_ps(factor);
    let (sums, squares) = (sums.as_mut_ptr(), squares.as_mut_ptr());
    for place in (0..row.len()).step_by(8) {
        // SAFETY: eight elements each, as the caller says.
        unsafe {
            let terms = _mm256_mul_ps(factor, _mm256_loadu_ps(row.as_ptr().add(place)));
            let (sums, squares) = (sums.add(place), squares.add(place));
            _mm256_storeu_ps(sums, _mm256_add_ps(_mm256_loadu_ps(sums), terms));
            let terms = _mm256_mul_ps(terms, terms);
            _mm256_storeu_ps(squares, _mm256_add_ps(_mm256_loadu_ps(squares), terms));
        }
    }
}

/// The number of ids below a bound, sixteen at a time. (The compiler turns the plain loop into a
/// vector of sixteen comparisons, and then adds them up one by one.)
///
/// # Safety
///
/// The processor has AVX-512.
#[inline]
#[target_feature(enable = "avx512f,popcnt")]
pub unsafe fn count_below(ids: &[u32], bound: u32) -> usize {
    let (sixteens, rest) = ids.as_chunks::<16>();
    let bound = _mm512_set1_epi32(bound.cast_signed());
    let mut count = 0;
    for ids in sixteens {
        // SAFETY: sixteen ids are there.
        let ids = unsafe { _mm512_loadu_epi32(ids.as_ptr().cast()) };
        count += _mm512_cmplt_epu32_mask(ids, bound).count_ones();
    }
    let there = ((1u32 << rest.len()) - 1) as u16;
    // SAFETY: what is not there is not read.
    let rest = unsafe { _mm512_maskz_loadu_epi32(there, rest.as_ptr().cast()) };
    count += _mm512_mask_cmplt_epu32_mask(there, rest, bound).count_ones();
    count as usize
}

/// A word with a bit for each of 64 numbers that is not zero.
///
/// # Safety
///
/// The processor has AVX-512.
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx2,bmi1,bmi2,popcnt")]
#[inline]
pub unsafe fn places_not_zero(numbers: &[f32; 64]) -> u64 {
    let mut places = 0;
    for (quarter, numbers) in numbers.as_chunks::<16>().0.iter().enumerate() {
        // SAFETY: sixteen numbers.
        let numbers = unsafe { _mm512_loadu_ps(numbers.as_ptr()) };
        let own = _mm512_cmp_ps_mask::<_CMP_NEQ_UQ>(numbers, _mm512_setzero_ps());
        places |= u64::from(own) << (16 * quarter);
    }
    places
}

/// Runs a loop compiled for AVX-512.
///
/// # Safety
///
/// [`Level::found`] gave it, and the elements are those of `L`.
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx2,bmi1,bmi2,popcnt")]
pub unsafe fn avx512<T: Float, L: Lanes<T>, B: Loop<T>>(body: B) {
    // SAFETY: as the caller says.
    unsafe { body.run::<L>() }
}

/// Runs a loop compiled for AVX2.
///
/// # Safety
///
/// [`Level::found`] gave it or a better one, and the elements are those of `L`.
#[target_feature(enable = "avx2,bmi1,bmi2,popcnt")]
pub unsafe fn avx2<T: Float, L: Lanes<T>, B: Loop<T>>(body: B) {
    // SAFETY: as the caller says.
    unsafe { body.run::<L>() }
}

macro_rules! vectors {
    ($($(#[$doc:meta])* $name:ident($register:ident of $element:ident, $count:literal, $registers:literal):
        $zero:ident $splat:ident $load:ident $store:ident $add:ident $multiply:ident;)*) => {$(
        $(#[$doc])*
        #[derive(Clone, Copy, Debug)]
        pub struct $name($register);

        impl<T: Float> Lanes<T> for $name {
            const COUNT: usize = $count;
            const REGISTERS: usize = $registers;

            #[inline(always)]
            unsafe fn zero() -> Self {
                // SAFETY: `widest` chose this type for a processor that has its instructions, here
                // and below.
                $name(unsafe { $zero() })
            }

            #[inline(always)]
            unsafe fn splat(element: T) -> Self {
                // SAFETY: `widest` chose this type for elements of this type.
                $name(unsafe { $splat(std::mem::transmute_copy::<T, $element>(&element)) })
            }

            #[inline(always)]
            unsafe fn load(from: *const T) -> Self {
                // SAFETY: the caller says that the elements are there.
                $name(unsafe { $load(from.cast()) })
            }

            #[inline(always)]
            unsafe fn store(self, to: *mut T) {
                // SAFETY: the caller says that there is room.
                unsafe { $store(to.cast(), self.0) };
            }

            #[inline(always)]
            unsafe fn add(self, other: Self) -> Self {
                // SAFETY: see `zero`.
                $name(unsafe { $add(self.0, other.0) })
            }

            #[inline(always)]
            unsafe fn multiply(self, other: Self) -> Self {
                // SAFETY: see `zero`.
                $name(unsafe { $multiply(self.0, other.0) })
            }
        }
    )*};
}

vectors! {
    /// A register of AVX-512.
    F32x16(__m512 of f32, 16, 16): _mm512_setzero_ps _mm512_set1_ps _mm512_loadu_ps _mm512_storeu_ps
        _mm512_add_ps _mm512_mul_ps;
    /// A register of AVX-512.
    F64x8(__m512d of f64, 8, 16): _mm512_setzero_pd _mm512_set1_pd _mm512_loadu_pd _mm512_storeu_pd
        _mm512_add_pd _mm512_mul_pd;
    /// A register of AVX2.
    F32x8(__m256 of f32, 8, 8): _mm256_setzero_ps _mm256_set1_ps _mm256_loadu_ps _mm256_storeu_ps
        _mm256_add_ps _mm256_mul_ps;
    /// A register of AVX2.
    F64x4(__m256d of f64, 4, 8): _mm256_setzero_pd _mm256_set1_pd _mm256_loadu_pd _mm256_storeu_pd
        _mm256_add_pd _mm256_mul_pd;
}

//! Updates of rows of one weight, sixteen at a time. Blocks of sixteen rows are loaded and
//! transposed into a vector of their weights and one of each state, and transposed back. A root or
//! a quotient of sixteen numbers takes the time of one.
//!
//! Each row gets the bits of an update by itself: a lane does what scalar code would.

// Iterators and closures are functions of their own, which have no vectors where they are not
// inlined.
#![allow(clippy::needless_range_loop)]

use super::cursor::RowCursor;
use super::update_kind::{StateOf, UpdateKind};
use nnz_device::simd::is_f32;
use nnz_device::simd::x86::divides_in_sixteens;
use nnz_optim::{StateBlock, Step, UpdateRule};
use sparse_core::element::Float;
use std::arch::x86_64::*;

/// The rows of a group.
pub(super) const LANES: usize = 16;

/// Fewer rows than these are no group.
pub(super) const MIN_ROWS: usize = 4;

impl<R: UpdateRule, T: Float, K: UpdateKind> RowCursor<'_, R, T, K> {
    /// Updates rows of one weight, each with its gradient; says how many, which are the first ones.
    /// The others, and those of other types, processors and rules, are left to be updated one by
    /// one.
    ///
    /// # Safety
    ///
    /// The rows of all places below `n_places` are the cursor's, and no two are the same.
    #[inline(always)]
    pub(super) unsafe fn update_by_avx512(
        self,
        n_places: usize,
        row: impl Fn(usize) -> usize,
        grad: impl Fn(usize) -> T::Accumulator,
    ) -> usize {
        // By itself, so that nothing more is compiled for what is left to be updated one by one.
        if const {
            let divides = matches!(R::RECURRENCE, Some(recurrence) if recurrence.divides());
            !divides || R::CORRECTS || !K::BESIDE || !is_f32::<T>() || StateOf::<R, T>::BY_ROW
        } {
            return 0;
        }
        if self.places.row_size != 1 || n_places < MIN_ROWS || !divides_in_sixteens() {
            return 0;
        }
        // SAFETY: the processor has the instructions; a block of `f32` has a weight and states of
        // as many bytes; the caller promises the rows.
        unsafe {
            match self.places.stride {
                8 => update_groups::<2, _, _, _>(self, n_places, row, grad),
                16 => update_groups::<4, _, _, _>(self, n_places, row, grad),
                _ => 0,
            }
        }
    }
}

/// [Updates](RowCursor::update_by_avx512) blocks of `N` numbers.
///
/// # Safety
///
/// As there; the processor has AVX-512, elements are `f32`, and the cursor's rows are blocks of `N`
/// of them: the weight, then its states.
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx2,bmi1,bmi2,popcnt")]
unsafe fn update_groups<const N: usize, R: UpdateRule, T: Float, K: UpdateKind>(
    cursor: RowCursor<'_, R, T, K>,
    n_places: usize,
    row: impl Fn(usize) -> usize,
    grad: impl Fn(usize) -> T::Accumulator,
) -> usize {
    let places = cursor.places.known_to_be_apart(N * size_of::<f32>());
    let mut numbers = [[T::zero().widen(); LANES]; N];
    let mut done = 0;
    while done + MIN_ROWS <= n_places {
        let count = LANES.min(n_places - done);
        let mut blocks = [std::ptr::null_mut::<f32>(); LANES];
        let mut grads = [T::zero().widen(); LANES];
        if count == LANES {
            for lane in 0..LANES {
                // SAFETY: promised by the caller.
                blocks[lane] = unsafe { places.weights(row(done + lane)) }.cast();
                grads[lane] = grad(done + lane);
            }
        } else {
            // The other lanes do what the last row's does.
            for lane in 0..LANES {
                let place = done + lane.min(count - 1);
                // SAFETY: as above.
                blocks[lane] = unsafe { places.weights(row(place)) }.cast();
                grads[lane] = grad(place);
            }
        }
        // SAFETY: the blocks are there, of `N` numbers each.
        unsafe { load_transposed::<N, T>(&blocks, &mut numbers) };
        for lane in 0..LANES {
            let mut state = StateOf::<R, T>::default();
            for (to, from) in state.values_mut().zip(&numbers[1..]) {
                *to = from[lane];
            }
            cursor.step.update(&mut numbers[0][lane], &mut state, grads[lane]);
            for (to, from) in numbers[1..].iter_mut().zip(state.values()) {
                to[lane] = from;
            }
        }
        // SAFETY: as above.
        unsafe { store_transposed::<N, T>(&numbers, &blocks) };
        done += count;
    }
    done
}

/// The numbers of sixteen blocks, those of one kind side by side.
///
/// # Safety
///
/// There are `N` numbers, 2 or 4, at each address, and an accumulator of `T` is an `f32`.
#[inline]
#[target_feature(enable = "avx512f,avx512dq")]
pub(super) unsafe fn load_transposed<const N: usize, T: Float>(
    blocks: &[*mut f32; LANES],
    numbers: &mut [[T::Accumulator; LANES]; N],
) {
    let to = numbers.as_mut_ptr().cast::<[f32; LANES]>();
    // SAFETY: the caller says what is there.
    unsafe {
        if N == 2 {
            let (first, second) = (load_pairs(blocks, 0), load_pairs(blocks, 2));
            _mm512_storeu_ps(to.cast(), _mm512_shuffle_ps::<0x88>(first, second));
            _mm512_storeu_ps(to.add(1).cast(), _mm512_shuffle_ps::<0xdd>(first, second));
        } else {
            let fours = transposed([
                load_fours(blocks, 0),
                load_fours(blocks, 1),
                load_fours(blocks, 2),
                load_fours(blocks, 3),
            ]);
            for kind in 0..4 {
                _mm512_storeu_ps(to.add(kind).cast(), fours[kind]);
            }
        }
    }
}

/// Writes what [`load_transposed`] has read.
///
/// # Safety
///
/// As there.
#[inline]
#[target_feature(enable = "avx512f,avx512dq")]
pub(super) unsafe fn store_transposed<const N: usize, T: Float>(
    numbers: &[[T::Accumulator; LANES]; N],
    blocks: &[*mut f32; LANES],
) {
    let from = numbers.as_ptr().cast::<[f32; LANES]>();
    // SAFETY: the caller says what is there.
    unsafe {
        let (first, second) = (_mm512_loadu_ps(from.cast()), _mm512_loadu_ps(from.add(1).cast()));
        if N == 2 {
            store_pairs(blocks, 0, _mm512_unpacklo_ps(first, second));
            store_pairs(blocks, 2, _mm512_unpackhi_ps(first, second));
        } else {
            let third = _mm512_loadu_ps(from.add(2).cast());
            let fourth = _mm512_loadu_ps(from.add(3).cast());
            let fours = transposed([first, second, third, fourth]);
            for at in 0..4 {
                store_fours(blocks, at, fours[at]);
            }
        }
    }
}

/// The pairs of the blocks `at` and `at + 1` of each quarter of the sixteen, a quarter of the
/// vector each.
///
/// # Safety
///
/// As [`load_transposed`].
#[inline]
#[target_feature(enable = "avx512f,avx512dq")]
unsafe fn load_pairs(blocks: &[*mut f32; LANES], at: usize) -> __m512 {
    let mut quarters = [_mm_setzero_ps(); 4];
    for quarter in 0..4 {
        let place = 4 * quarter + at;
        // SAFETY: the caller says what is there.
        let (low, high) = unsafe {
            let low = _mm_load_sd(blocks[place].cast());
            (low, _mm_load_sd(blocks[place + 1].cast()))
        };
        quarters[quarter] = _mm_castpd_ps(_mm_unpacklo_pd(low, high));
    }
    join(quarters)
}

/// Writes what [`load_pairs`] has read.
///
/// # Safety
///
/// As [`load_transposed`].
#[inline]
#[target_feature(enable = "avx512f,avx512dq")]
unsafe fn store_pairs(blocks: &[*mut f32; LANES], at: usize, pairs: __m512) {
    let pairs = quarters(pairs);
    for quarter in 0..4 {
        let (place, two) = (4 * quarter + at, _mm_castps_pd(pairs[quarter]));
        // SAFETY: the caller says what is there.
        unsafe {
            _mm_storel_pd(blocks[place].cast(), two);
            _mm_storeh_pd(blocks[place + 1].cast(), two);
        }
    }
}

/// The four numbers of the block `at` of each quarter of the sixteen.
///
/// # Safety
///
/// As [`load_transposed`].
#[inline]
#[target_feature(enable = "avx512f,avx512dq")]
unsafe fn load_fours(blocks: &[*mut f32; LANES], at: usize) -> __m512 {
    let mut quarters = [_mm_setzero_ps(); 4];
    for quarter in 0..4 {
        // SAFETY: the caller says what is there.
        quarters[quarter] = unsafe { _mm_loadu_ps(blocks[4 * quarter + at]) };
    }
    join(quarters)
}

/// Writes what [`load_fours`] has read.
///
/// # Safety
///
/// As [`load_transposed`].
#[inline]
#[target_feature(enable = "avx512f,avx512dq")]
unsafe fn store_fours(blocks: &[*mut f32; LANES], at: usize, fours: __m512) {
    let fours = quarters(fours);
    for quarter in 0..4 {
        // SAFETY: the caller says what is there.
        unsafe { _mm_storeu_ps(blocks[4 * quarter + at], fours[quarter]) };
    }
}

/// Four times four numbers in each quarter of the vectors, the rows of which become columns.
///
/// # Safety
///
/// The processor has AVX-512 F.
#[inline]
#[target_feature(enable = "avx512f")]
fn transposed([a, b, c, d]: [__m512; 4]) -> [__m512; 4] {
    let (low, high) = (_mm512_unpacklo_ps(a, b), _mm512_unpackhi_ps(a, b));
    let (other_low, other_high) = (_mm512_unpacklo_ps(c, d), _mm512_unpackhi_ps(c, d));
    [
        _mm512_shuffle_ps::<0x44>(low, other_low),
        _mm512_shuffle_ps::<0xee>(low, other_low),
        _mm512_shuffle_ps::<0x44>(high, other_high),
        _mm512_shuffle_ps::<0xee>(high, other_high),
    ]
}

/// Four quarters as one vector.
///
/// # Safety
///
/// The processor has AVX-512 F and DQ.
#[inline]
#[target_feature(enable = "avx512f,avx512dq")]
fn join([a, b, c, d]: [__m128; 4]) -> __m512 {
    let joined = _mm512_insertf32x4::<1>(_mm512_castps128_ps512(a), b);
    _mm512_insertf32x4::<3>(_mm512_insertf32x4::<2>(joined, c), d)
}

/// The quarters of a vector.
///
/// # Safety
///
/// The processor has AVX-512 F and DQ.
#[inline]
#[target_feature(enable = "avx512f,avx512dq")]
fn quarters(vector: __m512) -> [__m128; 4] {
    [
        _mm512_castps512_ps128(vector),
        _mm512_extractf32x4_ps::<1>(vector),
        _mm512_extractf32x4_ps::<2>(vector),
        _mm512_extractf32x4_ps::<3>(vector),
    ]
}

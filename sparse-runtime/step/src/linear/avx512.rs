//! Products with a parameter of one column, in masked vectors of entries. A branch on the end of a
//! sample, or of a thread's part of it, at every fourth entry is mispredicted in most samples; with
//! sixteen or eight entries under a mask most samples take the same number of vectors.
//!
//! The vectors are sixteen wide where the processor gathers well, and then whole samples use them
//! too. Elsewhere they are eight wide, loaded one by one, with prefetches in a large table.
//! Sixteen-wide loads of whole samples are prefetched only in tables from `FAR_BYTES` on:
//! independent loads run as far ahead by themselves, since no branch depends on them.

use super::products::HandedOn;
use super::rows::{prefetch_data, row_ahead_by};
use crate::column_partition::Piece;
use crate::optimizer::RowWeights;
use nnz_arrays::formats::{ColumnIdsView, CsrView};
use nnz_device::prefetch::LINES_AHEAD;
use nnz_device::prefetch::{prefetch, prefetch_at};
use nnz_device::simd::{are_f32, same_type, same_type_mut, x86};
use sparse_core::element::{Factor, Float};
use std::arch::x86_64::*;
use std::ops::Range;

/// The entries of a row that are looked at together, from the row's beginning on, whichever stage
/// they are of: the four sums take them in turn, so that each entry has its sum by its place.
const TOGETHER: usize = 16;

/// Bytes of a table from which on weights are asked for ahead where sixteen are loaded.
const FAR_BYTES: usize = 1 << 24;

/// The products of all rows of data, as [`sum_of_products`](super::products::sum_of_products) makes
/// them. Tells whether it did: other types and processors, and the largest tables, are left to the
/// caller.
///
/// # Safety
///
/// The columns of `x` are rows of the parameter, which nobody writes.
pub(super) unsafe fn find_products<T: Float, V: Factor<T>>(
    x: CsrView<'_, V>,
    range: Range<usize>,
    weights: RowWeights<'_, T>,
    products: &mut [T::Accumulator],
) -> bool {
    if const { !are_f32::<T, V>() } {
        return false;
    }
    let (Some(rows), Some(products)) = (Rows::of(x, weights), same_type_mut(products)) else {
        return false;
    };
    if !rows.gathers {
        return false;
    }
    // SAFETY: the processor has the instructions, as `of` says; the rest is promised by the caller,
    // of a csr whose bounds are within its entries.
    unsafe { rows.find_products::<T, V>(x, range, products) };
    true
}

/// A stage of the products of some rows of data, as
/// [`add_terms_below`](super::products::add_terms_below) makes it; the last stage leaves the
/// product. Tells whether it did, in all stages, as [`find_products`] does.
///
/// # Safety
///
/// The columns of the piece are rows of the parameter, which nobody writes.
pub(super) unsafe fn add_sums<T: Float, V: Factor<T>>(
    piece: &mut Piece<'_, '_, V>,
    weights: RowWeights<'_, T>,
    large: bool,
    sums: &mut [HandedOn<T::Accumulator>],
) -> bool {
    if const { !are_f32::<T, V>() } {
        return false;
    }
    let (Some(rows), Some(sums)) = (Rows::of(piece.matrix(), weights), same_type_mut(sums)) else {
        return false;
    };
    // SAFETY: as in `find_products`.
    unsafe {
        match (rows.gathers, piece.is_first(), piece.is_rest()) {
            (true, true, true) => rows.add::<T, V, true, true>(piece, sums),
            (true, true, false) => rows.add::<T, V, true, false>(piece, sums),
            (true, false, true) => rows.add::<T, V, false, true>(piece, sums),
            (true, false, false) => rows.add::<T, V, false, false>(piece, sums),
            (false, true, true) => rows.add_in_eights::<T, V, true, true>(piece, large, sums),
            (false, true, false) => rows.add_in_eights::<T, V, true, false>(piece, large, sums),
            (false, false, true) => rows.add_in_eights::<T, V, false, true>(piece, large, sums),
            (false, false, false) => rows.add_in_eights::<T, V, false, false>(piece, large, sums),
        }
    }
    true
}

/// Rows of data and weights.
struct Rows<'a> {
    ids: &'a [u32],
    /// None where all are 1.
    values: &'a [f32],
    weights: *const f32,
    /// From weight to weight, in numbers; times an id it is below 2³¹, which is what the
    /// instruction takes.
    stride: u32,
    /// Whether the processor does well at loading numbers under a mask that lie apart.
    gathers: bool,
}

impl<'a> Rows<'a> {
    /// Those of types that are loaded in vectors, on a processor that does well at it and has
    /// AVX-512 and bmi2.
    fn of<T: Float, V: Factor<T>>(x: CsrView<'a, V>, weights: RowWeights<'_, T>) -> Option<Self> {
        let ColumnIdsView::U32(ids) = x.columns() else { return None };
        // Of a pattern they are not read.
        let values = if V::IS_UNIT { &[][..] } else { same_type(x.values())? };
        same_type::<T, f32>(&[])?;
        let (weights, bytes) = weights.addresses();
        let stride = bytes / size_of::<f32>();
        let is_near = x.n_cols().checked_mul(stride)? <= 1 << 31;
        let has_vectors = x86::Level::found() == Some(x86::Level::Avx512);
        if !is_near || !bytes.is_multiple_of(size_of::<f32>()) || !has_vectors {
            return None;
        }
        let (stride, gathers) = (u32::try_from(stride).ok()?, x86::gathers_under_masks());
        Some(Rows { ids, values, weights: weights.cast(), stride, gathers })
    }

    /// # Safety
    ///
    /// The processor has AVX-512 and bmi2; these are rows of `x`, the columns of which have
    /// weights.
    #[target_feature(enable = "avx512f,avx512vl,avx512dq,bmi1,bmi2,popcnt")]
    unsafe fn find_products<T: Float, V: Factor<T>>(
        &self,
        x: CsrView<'a, V>,
        range: Range<usize>,
        products: &mut [f32],
    ) {
        let bounds = x.starts()[range.clone()].iter().zip(&x.ends()[range.clone()]);
        let weights = x.n_cols() * self.stride as usize * size_of::<f32>();
        let asks = weights >= FAR_BYTES;
        let ask = |ids: &[u32]| {
            for id in ids {
                prefetch_at(self.weights.wrapping_add(*id as usize * self.stride as usize));
            }
        };
        for (row, (product, (start, end))) in range.zip(products.iter_mut().zip(bounds)) {
            prefetch_data(x, self.ids, row);
            let mut ahead = if asks { row_ahead_by(LINES_AHEAD, x, self.ids, row) } else { &[] };
            let (mut at, end) = (*start as usize, *end as usize);
            let mut four = _mm_setzero_ps();
            while at < end {
                // As many as are read now: of many at once, most wait for each other.
                if let Some((now, later)) = ahead.split_at_checked(TOGETHER) {
                    ask(now);
                    ahead = later;
                }
                let there = _bzhi_u32(0xffff, (end - at).min(TOGETHER) as u32) as u16;
                // SAFETY: what is read is before `end` or masked.
                four = add_in_turn(four, unsafe {
                    let ids = _mm512_maskz_loadu_epi32(there, self.ids.as_ptr().add(at).cast());
                    self.terms::<T, V>(at, ids, there)
                });
                at += TOGETHER;
            }
            ask(ahead);
            *product = sum_of(four);
        }
    }

    /// # Safety
    ///
    /// As for [`find_products`](Rows::find_products); bounds of `piece` are within the entries.
    #[target_feature(enable = "avx512f,avx512vl,avx512dq,bmi1,bmi2,popcnt")]
    unsafe fn add<T: Float, V: Factor<T>, const FIRST: bool, const REST: bool>(
        &self,
        piece: &mut Piece<'_, '_, V>,
        sums: &mut [HandedOn<f32>],
    ) {
        let bound = _mm512_set1_epi32(piece.bound() as u32 as i32);
        let is_last = piece.is_last();
        for (place, sums) in sums.iter_mut().enumerate() {
            let (row, start, end) = piece.bounds(place);
            let ahead = piece.ahead(place);
            let mut at = row + (start - row) / TOGETHER * TOGETHER;
            let mut stop = start;
            // SAFETY: what is read is before `end` or masked.
            unsafe {
                let mut four = if FIRST { _mm_setzero_ps() } else { _mm_loadu_ps(sums.as_ptr()) };
                while at < end {
                    prefetch(self.ids, at.wrapping_add(ahead));
                    if !V::IS_UNIT {
                        prefetch(self.values, at.wrapping_add(ahead));
                    }
                    let before = start.saturating_sub(at);
                    let there = _bzhi_u32(0xffff, (end - at).min(TOGETHER) as u32) as u16;
                    let there = there & (0xffff_u32 << before) as u16;
                    let ids = _mm512_maskz_loadu_epi32(there, self.ids.as_ptr().add(at).cast());
                    let mut own = there;
                    if !REST {
                        own = _mm512_mask_cmplt_epu32_mask(there, ids, bound);
                    }
                    four = add_in_turn(four, self.terms::<T, V>(at, ids, own));
                    stop += own.count_ones() as usize;
                    if own != there {
                        break;
                    }
                    at += TOGETHER;
                }
                if is_last {
                    sums[0] = sum_of(four)
                } else {
                    _mm_storeu_ps(sums.as_mut_ptr(), four)
                }
            }
            piece.end(place, stop - start);
        }
    }

    /// [`add`](Rows::add) where weights are better loaded one by one. Eights that are whole need no
    /// mask, and of the others what is masked is loaded from a place that holds 0.
    ///
    /// # Safety
    ///
    /// As there.
    #[target_feature(enable = "avx512f,avx512vl,avx512dq,bmi1,bmi2,popcnt")]
    unsafe fn add_in_eights<T: Float, V: Factor<T>, const FIRST: bool, const REST: bool>(
        &self,
        piece: &mut Piece<'_, '_, V>,
        asks: bool,
        sums: &mut [HandedOn<f32>],
    ) {
        let (limit, n_rows, is_last) = (piece.bound(), sums.len(), piece.is_last());
        let bound = _mm256_set1_epi32(limit as u32 as i32);
        for (place, sums) in sums.iter_mut().enumerate() {
            if asks && place + LINES_AHEAD < n_rows {
                let (_, start, end) = piece.bounds(place + LINES_AHEAD);
                // SAFETY: these are entries of a row.
                unsafe { self.ask::<REST>(start, end, limit) };
            }
            let (row, start, end) = piece.bounds(place);
            let ahead = piece.ahead(place);
            let mut at = row + (start - row) / 8 * 8;
            let mut stop = start;
            // SAFETY: what is read is before `end` or masked.
            unsafe {
                let mut four = if FIRST { _mm_setzero_ps() } else { _mm_loadu_ps(sums.as_ptr()) };
                // The entries of the stages before are masked, and all are this stage's up to one
                // that is not.
                let mut mask = (0xff_u32 << (start - at)) as u8;
                while at < end {
                    prefetch(self.ids, at.wrapping_add(ahead));
                    if !V::IS_UNIT {
                        prefetch(self.values, at.wrapping_add(ahead));
                    }
                    let is_whole = at + 8 <= end
                        && (FIRST || mask == 0xff)
                        && (REST || (*self.ids.get_unchecked(at + 7) as usize) < limit);
                    if is_whole {
                        four = self.add_eight::<T, V>(four, at);
                        stop += 8;
                    } else {
                        let there = _bzhi_u32(0xff, (end - at).min(8) as u32) as u8 & mask;
                        let ids = _mm256_maskz_loadu_epi32(there, self.ids.as_ptr().add(at).cast());
                        let mut own = there;
                        if !REST {
                            own = _mm256_mask_cmplt_epu32_mask(there, ids, bound);
                        }
                        four = self.add_some::<T, V>(four, at, ids, own);
                        stop += own.count_ones() as usize;
                        if !REST && own != there {
                            break;
                        }
                    }
                    (at, mask) = (at + 8, 0xff);
                }
                if is_last {
                    sums[0] = sum_of(four)
                } else {
                    _mm_storeu_ps(sums.as_mut_ptr(), four)
                }
            }
            piece.end(place, stop - start);
        }
    }

    /// Asks for the weights of entries from `start` on, those of columns below a limit if not all
    /// the `REST` of the row is meant.
    ///
    /// # Safety
    ///
    /// As for [`find_products`](Rows::find_products), and there are such entries.
    #[inline]
    #[target_feature(enable = "avx512f,avx512vl,avx512dq,bmi2")]
    unsafe fn ask<const REST: bool>(&self, start: usize, end: usize, limit: usize) {
        let mut at = start;
        // SAFETY: what is read is before `end` or masked.
        unsafe {
            while at + 8 <= end && (REST || (*self.ids.get_unchecked(at + 7) as usize) < limit) {
                for entry in at..at + 8 {
                    let id = *self.ids.get_unchecked(entry) as usize;
                    prefetch_at(self.weights.wrapping_add(id * self.stride as usize));
                }
                at += 8;
            }
            let there = _bzhi_u32(0xff, (end - at).min(8) as u32) as u8;
            let ids = _mm256_maskz_loadu_epi32(there, self.ids.as_ptr().add(at).cast());
            let mut own = there;
            if !REST {
                own = _mm256_mask_cmplt_epu32_mask(
                    there,
                    ids,
                    _mm256_set1_epi32(limit as u32 as i32),
                );
            }
            self.places(ids, own).into_iter().for_each(prefetch_at);
        }
    }

    /// Where the weights of eight ids lie, of what is masked a place that holds 0.
    ///
    /// # Safety
    ///
    /// The processor has AVX-512 F, VL and DQ.
    #[inline]
    #[target_feature(enable = "avx512f,avx512vl,avx512dq")]
    fn places(&self, ids: __m256i, own: u8) -> [*const f32; 8] {
        static NOTHING: f32 = 0.0;
        let bytes = i64::from(self.stride) * size_of::<f32>() as i64;
        let bytes = _mm512_mul_epu32(_mm512_cvtepu32_epi64(ids), _mm512_set1_epi64(bytes));
        let elsewhere = _mm512_set1_epi64(&raw const NOTHING as i64);
        let from =
            _mm512_mask_add_epi64(elsewhere, own, _mm512_set1_epi64(self.weights as i64), bytes);
        let mut places = [std::ptr::null::<f32>(); 8];
        // SAFETY: there are eight.
        unsafe { _mm512_storeu_epi64(places.as_mut_ptr().cast(), from) };
        places
    }

    /// Adds the terms of eight entries from `at` on to four sums.
    ///
    /// # Safety
    ///
    /// As for [`find_products`](Rows::find_products), and they are there.
    #[inline]
    #[target_feature(enable = "avx512f,avx512vl,avx512dq")]
    unsafe fn add_eight<T: Float, V: Factor<T>>(&self, four: __m128, at: usize) -> __m128 {
        // SAFETY: as the caller says.
        unsafe {
            let weight = |entry: usize| {
                let id = *self.ids.get_unchecked(at + entry) as usize;
                *self.weights.add(id * self.stride as usize)
            };
            let low = _mm_setr_ps(weight(0), weight(1), weight(2), weight(3));
            let high = _mm_setr_ps(weight(4), weight(5), weight(6), weight(7));
            if V::IS_UNIT {
                return _mm_add_ps(_mm_add_ps(four, low), high);
            }
            let values = self.values.as_ptr().add(at);
            let low = _mm_mul_ps(low, _mm_loadu_ps(values));
            let high = _mm_mul_ps(high, _mm_loadu_ps(values.add(4)));
            _mm_add_ps(_mm_add_ps(four, low), high)
        }
    }

    /// The same of some of eight entries, given their ids.
    ///
    /// # Safety
    ///
    /// As for [`find_products`](Rows::find_products), of the entries under the mask.
    #[inline]
    #[target_feature(enable = "avx512f,avx512vl,avx512dq")]
    unsafe fn add_some<T: Float, V: Factor<T>>(
        &self,
        four: __m128,
        at: usize,
        ids: __m256i,
        own: u8,
    ) -> __m128 {
        let [a, b, c, d, e, f, g, h] = self.places(ids, own);
        // SAFETY: as the caller says; what is masked is not read, but 0 in its place.
        unsafe {
            let (low, high) = (_mm_setr_ps(*a, *b, *c, *d), _mm_setr_ps(*e, *f, *g, *h));
            if V::IS_UNIT {
                return _mm_add_ps(_mm_add_ps(four, low), high);
            }
            let values = _mm256_maskz_loadu_ps(own, self.values.as_ptr().add(at));
            let low = _mm_mul_ps(low, _mm256_castps256_ps128(values));
            let high = _mm_mul_ps(high, _mm256_extractf128_ps::<1>(values));
            _mm_add_ps(_mm_add_ps(four, low), high)
        }
    }

    /// The weights of sixteen entries from `at` on, times their values; 0 where they are masked.
    ///
    /// # Safety
    ///
    /// As for [`find_products`](Rows::find_products), of the entries under the mask.
    #[inline]
    #[target_feature(enable = "avx512f,avx512vl,avx512dq")]
    unsafe fn terms<T: Float, V: Factor<T>>(&self, at: usize, ids: __m512i, own: u16) -> __m512 {
        let places = _mm512_mullo_epi32(ids, _mm512_set1_epi32(self.stride as i32));
        let zero = _mm512_setzero_ps();
        // SAFETY: as the caller says; what is masked is not read.
        unsafe {
            let weights = _mm512_mask_i32gather_ps::<4>(zero, own, places, self.weights.cast());
            if V::IS_UNIT {
                return weights;
            }
            let values = _mm512_maskz_loadu_ps(own, self.values.as_ptr().add(at));
            _mm512_mul_ps(weights, values)
        }
    }
}

/// Adds the first four of sixteen terms to four sums, then the next.
///
/// # Safety
///
/// The processor has AVX-512 F, VL and DQ.
#[inline]
#[target_feature(enable = "avx512f,avx512vl,avx512dq")]
fn add_in_turn(four: __m128, terms: __m512) -> __m128 {
    let four = _mm_add_ps(four, _mm512_castps512_ps128(terms));
    let four = _mm_add_ps(four, _mm512_extractf32x4_ps::<1>(terms));
    let four = _mm_add_ps(four, _mm512_extractf32x4_ps::<2>(terms));
    _mm_add_ps(four, _mm512_extractf32x4_ps::<3>(terms))
}

/// The sum of four, in the order in which [`sum_of_products`](super::products::sum_of_products)
/// adds them.
///
/// # Safety
///
/// The processor has AVX-512 F, VL and DQ.
#[inline]
#[target_feature(enable = "avx512f,avx512vl,avx512dq")]
fn sum_of(four: __m128) -> f32 {
    let mut sums = [0.0; 4];
    // SAFETY: there are four.
    unsafe { _mm_storeu_ps(sums.as_mut_ptr(), four) };
    (sums[0] + sums[1]) + (sums[2] + sums[3])
}

#[cfg(test)]
mod tests {
    use super::super::products::sum_of_products;
    use super::*;
    use nnz_arrays::formats::{Csr, RowSelection};
    use sparse_core::element::Unit;

    #[test]
    fn products_have_the_bits_of_those_one_by_one() {
        /// Of the first rows, and of some that lie anywhere.
        fn hold<V: Factor<f32>>(x: &Csr<V>) {
            let mut selection = RowSelection::new();
            let places: Vec<usize> = (0..x.n_rows()).map(|row| row * 7 % x.n_rows()).collect();
            for x in [x.view().rows(3..60).unwrap(), selection.gather(x, &places).unwrap()] {
                let ColumnIdsView::U32(ids) = x.columns() else { panic!("ids of 32 bits") };
                let all_values: &[f32] = same_type(x.values()).unwrap_or_default();
                for stride in [1usize, 3, 4] {
                    let weights: Vec<f32> = (0..x.n_cols() * stride)
                        .map(|i| if i % 5 == 0 { -0.0 } else { (i as f32).sin() })
                        .collect();
                    let expected = x.starts().iter().zip(x.ends()).map(|(from, to)| {
                        let entries = *from as usize..*to as usize;
                        let (ids, values) = (&ids[entries.clone()], &x.values()[entries]);
                        let weight = |id: &u32| weights[*id as usize * stride];
                        sum_of_products::<f32, V, _>(ids, values, weight).to_bits()
                    });
                    let expected = expected.collect::<Vec<_>>();
                    let rows = Rows {
                        ids,
                        values: all_values,
                        weights: weights.as_ptr(),
                        stride: stride as u32,
                        gathers: true,
                    };
                    let mut found = vec![f32::NAN; x.n_rows()];
                    let (begin, rest) = found.split_at_mut(16);
                    for (range, found) in [(0..16, begin), (16..x.n_rows(), rest)] {
                        // SAFETY: the caller asked; there is a weight for each column.
                        unsafe { rows.find_products::<f32, V>(x, range, found) };
                    }
                    let found: Vec<u32> = found.into_iter().map(f32::to_bits).collect();
                    assert_eq!(found, expected, "weights {stride} apart");
                }
            }
        }
        if !x86::gathers_under_masks() {
            eprintln!("skipped: this processor does not load apart elements well");
            return;
        }
        let rows = (0..80usize)
            .map(|row| (0..row).map(move |k| (k * 3 + row % 3, (k as f32 - 9.5) / 7.0)));
        let x = Csr::<f32>::from_rows(300, rows).unwrap();
        hold(&x);
        let rows = (0..80usize).map(|row| (0..row).map(move |k| (k * 3 + row % 3, 1.0)));
        let ones = Csr::<f32>::from_rows(300, rows).unwrap();
        hold::<Unit>(&ones.view().units().unwrap().to_owned());
    }
}

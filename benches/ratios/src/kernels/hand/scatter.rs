//! csrᵀ · dense, as row_sparse.

use crate::data::Arrays;

/// The rows of the result, which are written over and over.
#[derive(Default)]
pub struct Rows {
    pub ids: Vec<u64>,
    pub values: Vec<f32>,
}

/// Becomes xᵀ · rhs, whose rows have `width` elements: a sum for every column, which begins at -0.
/// No term is -0, so that what still is at the end belongs to columns that do not occur.
pub fn scatter(out: &mut Rows, x: Arrays<'_>, rhs: &[f32], width: usize) {
    out.ids.clear();
    out.values.clear();
    // Sixteen at a time are moved.
    out.ids.reserve(x.n_cols + 16);
    minus_zeros(&mut out.values, x.n_cols.next_multiple_of(16) * width + 16);
    #[cfg(target_arch = "x86_64")]
    if super::has_avx512() {
        // SAFETY: the features are there; columns are below `n_cols`, and `rhs` has a row for each
        // row of `x`.
        unsafe {
            return match width {
                1 => avx512::single(out, x, rhs),
                16 => avx512::sixteen(out, x, rhs),
                _ => plain(out, x, rhs, width),
            };
        }
    }
    plain(out, x, rhs, width);
}

/// Appends so many numbers, all -0, by the instruction that repeats: what it has written stays in a
/// cache longer than what single stores have.
fn minus_zeros(values: &mut Vec<f32>, len: usize) {
    values.reserve(len);
    #[cfg(target_arch = "x86_64")]
    // SAFETY: there is room for as many.
    unsafe {
        std::arch::asm!(
            "rep stosd",
            inout("rcx") len => _,
            inout("rdi") values.as_mut_ptr().add(values.len()) => _,
            in("eax") (-0.0f32).to_bits(),
            options(nostack, preserves_flags),
        );
        values.set_len(values.len() + len);
    }
    #[cfg(not(target_arch = "x86_64"))]
    values.resize(values.len() + len, -0.0);
}

fn plain(out: &mut Rows, x: Arrays<'_>, rhs: &[f32], width: usize) {
    for row in 0..x.n_rows() {
        for entry in x.indptr[row] as usize..x.indptr[row + 1] as usize {
            let start = x.columns[entry] as usize * width;
            let sums = &mut out.values[start..start + width];
            for (sum, y) in sums.iter_mut().zip(&rhs[row * width..(row + 1) * width]) {
                *sum += x.values[entry] * y + 0.0;
            }
        }
    }
    for column in 0..x.n_cols {
        if out.values[column * width].to_bits() != (-0.0f32).to_bits() {
            let row = column * width..(column + 1) * width;
            out.values.copy_within(row, out.ids.len() * width);
            out.ids.push(column as u64);
        }
    }
    out.values.truncate(out.ids.len() * width);
}

#[cfg(target_arch = "x86_64")]
mod avx512 {
    use super::super::{ask, ask_for_one};
    use super::Rows;
    use crate::data::Arrays;
    use std::arch::x86_64::*;

    /// One column: eight terms at a time, each of which is then added to its sum.
    ///
    /// # Safety
    ///
    /// The processor has these instructions, and columns are below the rows of `rhs`.
    #[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512dq,bmi1,bmi2,popcnt")]
    pub unsafe fn single(out: &mut Rows, x: Arrays<'_>, rhs: &[f32]) {
        for (row, &y) in rhs.iter().enumerate() {
            let (mut at, end) = (x.indptr[row] as usize, x.indptr[row + 1] as usize);
            ask_for_one(x.indptr, row + 32);
            ask_for_one(rhs, row + 32);
            // SAFETY: entries are below `nnz` and columns below `n_cols`.
            unsafe {
                let (factor, zero) = (_mm256_set1_ps(y), _mm256_setzero_ps());
                while at + 8 <= end {
                    ask(x, at + 1024);
                    let values = _mm256_loadu_ps(x.values.as_ptr().add(at));
                    let products = _mm256_add_ps(_mm256_mul_ps(values, factor), zero);
                    let mut terms = [0.0; 8];
                    _mm256_storeu_ps(terms.as_mut_ptr(), products);
                    for (n, term) in terms.into_iter().enumerate() {
                        let column = *x.columns.get_unchecked(at + n) as usize;
                        *out.values.get_unchecked_mut(column) += term;
                    }
                    at += 8;
                }
                for entry in at..end {
                    let column = *x.columns.get_unchecked(entry) as usize;
                    *out.values.get_unchecked_mut(column) +=
                        x.values.get_unchecked(entry) * y + 0.0;
                }
            }
        }
        let minus_zero = _mm512_set1_epi32(i32::MIN);
        let eight = _mm512_setr_epi64(0, 1, 2, 3, 4, 5, 6, 7);
        let mut n = 0;
        // SAFETY: sums are a multiple of sixteen; what is written behind the first `n` was read
        // before, or is room.
        unsafe {
            let (sums, ids) = (out.values.as_mut_ptr(), out.ids.as_mut_ptr());
            for column in (0..out.values.len() - 16).step_by(16) {
                let sixteen = _mm512_loadu_si512(sums.add(column).cast());
                let occurs = _mm512_cmpneq_epi32_mask(sixteen, minus_zero);
                let kept = _mm512_maskz_compress_epi32(occurs, sixteen);
                _mm512_storeu_si512(sums.add(n).cast(), kept);
                for (half, occurs) in [occurs as u8, (occurs >> 8) as u8].into_iter().enumerate() {
                    let columns = _mm512_set1_epi64((column + 8 * half) as i64);
                    let columns = _mm512_add_epi64(columns, eight);
                    let kept = _mm512_maskz_compress_epi64(occurs, columns);
                    _mm512_storeu_si512(ids.add(n).cast(), kept);
                    n += occurs.count_ones() as usize;
                }
            }
            out.ids.set_len(n);
        }
        out.values.truncate(n);
    }

    /// Sixteen columns: a row of the result is a line of the cache, asked for ahead.
    ///
    /// # Safety
    ///
    /// The processor has these instructions, and columns are below the rows of `rhs`.
    #[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512dq,bmi1,bmi2,popcnt")]
    pub unsafe fn sixteen(out: &mut Rows, x: Arrays<'_>, rhs: &[f32]) {
        const AHEAD: usize = 192;
        let last = x.columns.len().saturating_sub(1);
        let zero = _mm512_setzero_ps();
        // SAFETY: entries are below `nnz`, `rhs` has a row for each row, `sums` for each column,
        // from the first line on that begins there.
        unsafe {
            let values = out.values.as_mut_ptr();
            let sums = values.add(values.align_offset(64).min(16));
            let sums_of = |entry: usize| sums.add(16 * *x.columns.get_unchecked(entry) as usize);
            for row in 0..x.n_rows() {
                ask_for_one(x.indptr, row + 32);
                let y = _mm512_loadu_ps(rhs.as_ptr().add(16 * row));
                let entries = x.indptr[row] as usize..x.indptr[row + 1] as usize;
                for entry in entries.clone().step_by(16) {
                    ask(x, entry + 512);
                }
                for entry in entries {
                    _mm_prefetch::<_MM_HINT_T0>(sums_of((entry + AHEAD).min(last)).cast());
                    let sum = sums_of(entry);
                    let value = _mm512_set1_ps(*x.values.get_unchecked(entry));
                    let term = _mm512_add_ps(_mm512_mul_ps(value, y), zero);
                    _mm512_storeu_ps(sum, _mm512_add_ps(_mm512_loadu_ps(sum), term));
                }
            }
            for column in 0..x.n_cols {
                let sum = sums.add(16 * column);
                if (*sum).to_bits() != (-0.0f32).to_bits() {
                    _mm512_storeu_ps(values.add(16 * out.ids.len()), _mm512_loadu_ps(sum));
                    out.ids.push(column as u64);
                }
            }
        }
        out.values.truncate(16 * out.ids.len());
    }
}

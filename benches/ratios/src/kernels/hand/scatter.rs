//! csrᵀ · dense, as row_sparse.

use crate::data::Arrays;

/// What the loop keeps from call to call: the rows of the result, and scratch.
#[derive(Default)]
pub struct Rows {
    pub ids: Vec<u64>,
    pub values: Vec<f32>,
    /// A bit for each column that occurs, and the number of those before each word.
    marks: Vec<u64>,
    before: Vec<u32>,
    /// The place of each column.
    slots: Vec<u32>,
}

/// Becomes xᵀ · rhs, whose rows have `width` elements.
pub fn scatter(out: &mut Rows, x: Arrays<'_>, rhs: &[f32], width: usize) {
    out.marks.clear();
    out.marks.resize(x.n_cols.div_ceil(64), 0);
    out.ids.clear();
    #[cfg(target_arch = "x86_64")]
    if super::has_avx512() {
        // SAFETY: the features are there; columns are below `n_cols`, and `rhs` has a row for each row of `x`.
        unsafe {
            return match (width, x.n_cols * width <= 1 << 20) {
                (1, true) => avx512::single_by_column(out, x, rhs),
                (16, true) => avx512::sixteen::<true>(out, x, rhs),
                (16, false) => avx512::sixteen::<false>(out, x, rhs),
                _ => avx512::single(out, x, rhs),
            };
        }
    }
    plain(out, x, rhs, width);
}

fn plain(out: &mut Rows, x: Arrays<'_>, rhs: &[f32], width: usize) {
    out.slots.resize(x.n_cols, 0);
    x.columns.iter().for_each(|&column| out.marks[column as usize / 64] |= 1 << (column % 64));
    for (word, &bits) in out.marks.iter().enumerate() {
        for bit in (0..64).filter(|bit| bits >> bit & 1 == 1) {
            out.slots[word * 64 + bit] = out.ids.len() as u32;
            out.ids.push((word * 64 + bit) as u64);
        }
    }
    out.values.clear();
    out.values.resize(out.ids.len() * width, 0.0);
    for row in 0..x.n_rows() {
        for entry in x.indptr[row] as usize..x.indptr[row + 1] as usize {
            let start = out.slots[x.columns[entry] as usize] as usize * width;
            let sums = &mut out.values[start..start + width];
            for (sum, y) in sums.iter_mut().zip(&rhs[row * width..(row + 1) * width]) {
                *sum += x.values[entry] * y;
            }
        }
    }
}

#[cfg(target_arch = "x86_64")]
mod avx512 {
    use super::Rows;
    use crate::data::Arrays;
    use std::arch::x86_64::*;

    /// Numbers the columns that occur.
    #[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512dq,bmi1,bmi2,popcnt")]
    unsafe fn number(out: &mut Rows, x: Arrays<'_>, slots: bool) {
        for &column in x.columns {
            // SAFETY: columns are below `n_cols`.
            unsafe { *out.marks.get_unchecked_mut(column as usize / 64) |= 1 << (column % 64) };
        }
        out.before.clear();
        for (word, &bits) in out.marks.iter().enumerate() {
            out.before.push(out.ids.len() as u32);
            let mut left = bits;
            while left != 0 {
                let column = word * 64 + left.trailing_zeros() as usize;
                if slots {
                    out.slots[column] = out.ids.len() as u32;
                }
                out.ids.push(column as u64);
                left &= left - 1;
            }
        }
    }

    /// One column, few rows: a sum for every row, marked while summing.
    #[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512dq,bmi1,bmi2,popcnt")]
    pub unsafe fn single_by_column(out: &mut Rows, x: Arrays<'_>, rhs: &[f32]) {
        out.values.clear();
        out.values.resize(x.n_cols, 0.0);
        for (row, &y) in rhs.iter().enumerate() {
            for entry in x.indptr[row] as usize..x.indptr[row + 1] as usize {
                // SAFETY: entries are below `nnz` and columns below `n_cols`.
                unsafe {
                    let column = *x.columns.get_unchecked(entry) as usize;
                    *out.values.get_unchecked_mut(column) += x.values.get_unchecked(entry) * y;
                    *out.marks.get_unchecked_mut(column / 64) |= 1 << (column % 64);
                }
            }
        }
        for (word, &bits) in out.marks.iter().enumerate() {
            let mut left = bits;
            while left != 0 {
                let column = word * 64 + left.trailing_zeros() as usize;
                out.values[out.ids.len()] = out.values[column];
                out.ids.push(column as u64);
                left &= left - 1;
            }
        }
        out.values.truncate(out.ids.len());
    }

    /// One column, many rows: the place of a sum is counted from the marks.
    #[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512dq,bmi1,bmi2,popcnt")]
    pub unsafe fn single(out: &mut Rows, x: Arrays<'_>, rhs: &[f32]) {
        // SAFETY: as the caller says.
        unsafe { number(out, x, false) };
        out.values.clear();
        out.values.resize(out.ids.len(), 0.0);
        for (row, &y) in rhs.iter().enumerate() {
            for entry in x.indptr[row] as usize..x.indptr[row + 1] as usize {
                // SAFETY: entries are below `nnz`, columns below `n_cols`, and each column has been numbered.
                unsafe {
                    let column = *x.columns.get_unchecked(entry) as usize;
                    let bits = _bzhi_u64(*out.marks.get_unchecked(column / 64), column as u32 % 64);
                    let place = out.before.get_unchecked(column / 64) + bits.count_ones();
                    *out.values.get_unchecked_mut(place as usize) +=
                        x.values.get_unchecked(entry) * y;
                }
            }
        }
    }

    /// Sixteen columns: a row of the result is a line of the cache, asked for ahead.
    #[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512dq,bmi1,bmi2,popcnt")]
    pub unsafe fn sixteen<const SLOTS: bool>(out: &mut Rows, x: Arrays<'_>, rhs: &[f32]) {
        const AHEAD: usize = 48;
        if SLOTS {
            out.slots.resize(x.n_cols, 0);
        }
        // SAFETY: as the caller says.
        unsafe { number(out, x, SLOTS) };
        out.values.clear();
        out.values.resize(out.ids.len() * 16, 0.0);
        let last = x.columns.len().saturating_sub(1);
        let (marks, before, slots) = (&out.marks, &out.before, &out.slots);
        let place = |entry: usize| {
            // SAFETY: entries are below `nnz`, columns below `n_cols`, and each column has been numbered.
            unsafe {
                let column = *x.columns.get_unchecked(entry) as usize;
                if SLOTS {
                    return *slots.get_unchecked(column) as usize;
                }
                let bits = _bzhi_u64(*marks.get_unchecked(column / 64), column as u32 % 64);
                (before.get_unchecked(column / 64) + bits.count_ones()) as usize
            }
        };
        let sums = out.values.as_mut_ptr();
        for row in 0..x.n_rows() {
            // SAFETY: `rhs` has a row for each row, `sums` for each place.
            unsafe {
                let y = _mm512_loadu_ps(rhs.as_ptr().add(16 * row));
                for entry in x.indptr[row] as usize..x.indptr[row + 1] as usize {
                    let ahead = sums.add(16 * place((entry + AHEAD).min(last)));
                    _mm_prefetch::<_MM_HINT_T0>(ahead.cast());
                    let sum = sums.add(16 * place(entry));
                    let value = _mm512_set1_ps(*x.values.get_unchecked(entry));
                    let added = _mm512_add_ps(_mm512_loadu_ps(sum), _mm512_mul_ps(value, y));
                    _mm512_storeu_ps(sum, added);
                }
            }
        }
    }
}

//! dense → csr, and rows of a csr.

use super::merge::Matrix;
use crate::data::Arrays;

/// Becomes the elements of a dense matrix that are not zero.
pub fn from_dense(out: &mut Matrix, dense: &[f32], n_cols: usize) {
    out.reset(0);
    for row in dense.chunks_exact(n_cols) {
        #[cfg(target_arch = "x86_64")]
        if super::has_avx512() {
            // SAFETY: the features are there.
            unsafe { avx512::row(out, row) };
            out.indptr.push(out.values.len() as u64);
            continue;
        }
        for (column, &value) in row.iter().enumerate().filter(|(_, value)| **value != 0.0) {
            out.columns.push(column as u32);
            out.values.push(value);
        }
        out.indptr.push(out.values.len() as u64);
    }
}

/// Becomes the rows of `x` that a sorted list names, each in its place; the other rows are empty.
/// Rows that follow each other are copied as one, and asked for some runs ahead.
pub fn retain(out: &mut Matrix, x: Arrays<'_>, rows: &[u64]) {
    out.reset(x.nnz());
    let mut at = 0;
    while at < rows.len() {
        let first = rows[at] as usize;
        let mut last = first + 1;
        at += 1;
        while at < rows.len() && rows[at] as usize == last {
            last += 1;
            at += 1;
        }
        let start = x.indptr[first];
        if let Some(&ahead) = rows.get(at + 3) {
            let distance = x.indptr[ahead as usize] - start;
            for entry in (start..x.indptr[last]).step_by(16) {
                super::ask(x, (entry + distance) as usize);
            }
        }
        let before = out.values.len() as u64;
        out.indptr.resize(first + 1, before);
        let ends = x.indptr[first + 1..=last].iter();
        out.indptr.extend(ends.map(|end| end - start + before));
        let entries = start as usize..x.indptr[last] as usize;
        out.columns.extend_from_slice(&x.columns[entries.clone()]);
        out.values.extend_from_slice(&x.values[entries]);
    }
    out.indptr.resize(x.n_rows() + 1, out.values.len() as u64);
}

#[cfg(target_arch = "x86_64")]
mod avx512 {
    use super::Matrix;
    use std::arch::x86_64::*;

    /// 64 elements at a time: most are all zero.
    ///
    /// # Safety
    ///
    /// The processor has these instructions.
    #[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512dq,bmi1,bmi2,popcnt")]
    pub unsafe fn row(out: &mut Matrix, row: &[f32]) {
        let zero = _mm512_setzero_ps();
        let (chunks, rest) = row.as_chunks::<64>();
        for (chunk, elements) in chunks.iter().enumerate() {
            let mut masks = [0; 4];
            for (n, mask) in masks.iter_mut().enumerate() {
                // SAFETY: a chunk has 64 elements.
                let x = unsafe { _mm512_loadu_ps(elements.as_ptr().add(16 * n)) };
                *mask = u64::from(_mm512_cmp_ps_mask::<_CMP_NEQ_UQ>(x, zero));
            }
            let mut mask = masks[0] | masks[1] << 16 | masks[2] << 32 | masks[3] << 48;
            if mask != 0 {
                out.columns.reserve(64);
                out.values.reserve(64);
                let mut n = out.values.len();
                while mask != 0 {
                    let at = mask.trailing_zeros();
                    // SAFETY: there is room for 64 more.
                    unsafe {
                        *out.columns.as_mut_ptr().add(n) = chunk as u32 * 64 + at;
                        *out.values.as_mut_ptr().add(n) = elements[at as usize];
                    }
                    n += 1;
                    mask &= mask - 1;
                }
                // SAFETY: they were written.
                unsafe { out.written(n) };
            }
        }
        for (at, &value) in rest.iter().enumerate().filter(|(_, value)| **value != 0.0) {
            out.columns.push((chunks.len() * 64 + at) as u32);
            out.values.push(value);
        }
    }
}

//! csrᵀ · dense of sixteen columns, as row_sparse, where most columns do not occur.

use super::ask_for_one;
use crate::data::Arrays;

/// A row of the right side or of the result.
#[derive(Clone, Copy, Default)]
#[repr(align(64))]
pub struct Sixteen([f32; 16]);

/// The rows of the result, which are written over and over, and what finds them.
#[derive(Default)]
pub struct Found {
    pub ids: Vec<u64>,
    pub rows: Vec<Sixteen>,
    /// A bit for each column, and how many are set in the words before each.
    marks: Vec<u64>,
    before: Vec<u32>,
}

impl Found {
    pub fn values(&self) -> Vec<f32> {
        self.rows.iter().flat_map(|row| row.0).collect()
    }
}

/// Becomes xᵀ · rhs for some rows of `x`, in this order.
pub fn of_rows(out: &mut Found, x: Arrays<'_>, rows: &[usize], rhs: &[Sixteen]) {
    #[cfg(target_arch = "x86_64")]
    if super::has_avx512() {
        // SAFETY: the features are there.
        return unsafe { with_avx512(out, x, rows, rhs) };
    }
    product(out, x, rows, rhs);
}

/// With AVX-512.
///
/// # Safety
///
/// The processor has these instructions, and columns are below the rows of `rhs`.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512dq,bmi1,bmi2,popcnt")]
unsafe fn with_avx512(out: &mut Found, x: Arrays<'_>, rows: &[usize], rhs: &[Sixteen]) {
    product(out, x, rows, rhs);
}

/// Columns are marked first; then each is the place of its mark among all. Places are found once,
/// and wait in a ring until their rows are there.
#[inline(always)]
fn product(out: &mut Found, x: Arrays<'_>, rows: &[usize], rhs: &[Sixteen]) {
    const RING: usize = 512;
    const AHEAD: usize = 192;
    let n_words = x.n_cols.div_ceil(64);
    out.marks.clear();
    out.marks.resize(n_words, 0);
    out.before.resize(n_words, 0);
    for (at, &row) in rows.iter().enumerate() {
        ask_for_later(x, rows, at, false);
        for &column in x.row(row).0 {
            out.marks[column as usize / 64] |= 1 << (column % 64);
        }
    }
    out.ids.clear();
    for (word, (&marks, before)) in out.marks.iter().zip(&mut out.before).enumerate() {
        *before = out.ids.len() as u32;
        let mut left = marks;
        while left != 0 {
            out.ids.push((word * 64) as u64 + u64::from(left.trailing_zeros()));
            left &= left - 1;
        }
    }
    out.rows.clear();
    out.rows.resize(out.ids.len(), Sixteen::default());
    let mut ring = [(0u32, 0u32, 0.0f32); RING];
    let (mut n_come, mut n_done) = (0, 0);
    for (at, &row) in rows.iter().enumerate() {
        ask_for_later(x, rows, at, true);
        let (columns, values) = x.row(row);
        for (&column, &value) in columns.iter().zip(values) {
            let (word, below) = (column as usize / 64, (1u64 << (column % 64)) - 1);
            let place = out.before[word] + (out.marks[word] & below).count_ones();
            ask_for_one(&out.rows, place as usize);
            ring[n_come % RING] = (place, at as u32, value);
            n_come += 1;
            if n_come == n_done + RING {
                n_done = turns(&mut out.rows, &ring, n_done..n_come - AHEAD, rhs);
            }
        }
    }
    turns(&mut out.rows, &ring, n_done..n_come, rhs);
}

/// Adds those in the ring that have their turn, and says where they end.
#[inline(always)]
fn turns(
    sums: &mut [Sixteen],
    ring: &[(u32, u32, f32)],
    turns: std::ops::Range<usize>,
    rhs: &[Sixteen],
) -> usize {
    let end = turns.end;
    for turn in turns {
        let (place, row, value) = ring[turn % ring.len()];
        for (sum, y) in sums[place as usize].0.iter_mut().zip(rhs[row as usize].0) {
            *sum += value * y;
        }
    }
    end
}

/// Asks for the lines of a row that comes later.
#[inline(always)]
fn ask_for_later(x: Arrays<'_>, rows: &[usize], at: usize, values: bool) {
    if let Some(&bounds) = rows.get(at + 24) {
        ask_for_one(x.indptr, bounds);
    }
    let Some(&later) = rows.get(at + 12) else { return };
    for entry in (x.indptr[later] as usize..x.indptr[later + 1] as usize + 16).step_by(16) {
        ask_for_one(x.columns, entry);
        if values {
            ask_for_one(x.values, entry);
        }
    }
}

/// Rows of sixteen numbers.
pub fn sixteens(values: &[f32]) -> Vec<Sixteen> {
    values.as_chunks().0.iter().map(|row| Sixteen(*row)).collect()
}

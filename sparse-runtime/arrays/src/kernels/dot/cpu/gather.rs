//! Products whose result is written row by row: each row of a csr reads what its columns name.

use super::gemm::Matrix;
use crate::formats::{ColumnId, CsrView, RowSparseView};
use crate::kernels::parallel::split_rows;
use crate::kernels::{Parallel, entry_prefetch};
use crate::with_column_ids;
use nnz_device::prefetch::{begin_lines, prefetch_known_at};
use nnz_device::simd::{Lanes, Loop, Plain, is_u32, widest};
#[cfg(target_arch = "x86_64")]
use nnz_device::simd::{are_f32, same_type, same_type_mut, x86};
use sparse_core::element::{Factor, Float, Stored};
use std::ops::Range;

/// Row i of `out` = Σ value · row(column) over the entries of row i; `rhs` has one row of `width`
/// elements a column.
///
/// The order of each sum: one column is summed in eight sums that take turns, up to [`NARROW`]
/// columns in two, more in one.
pub(super) fn sums_of_rows<T: Float, V: Factor<T>>(
    out: &mut [T],
    lhs: CsrView<'_, V>,
    rhs: &[T],
    width: usize,
    parallel: Parallel,
) {
    // What the loops without checks rely on, together with the invariant of csr.
    assert_eq!(
        lhs.n_cols().checked_mul(width),
        Some(rhs.len()),
        "one row of the right side a column"
    );
    assert_eq!(lhs.n_rows().checked_mul(width), Some(out.len()), "one row of the result a row");
    if width == 0 {
        return;
    }
    let work = lhs.nnz().saturating_mul(4 + width / 4);
    split_rows(parallel, work, lhs, out, width, &|lhs: CsrView<'_, V>, out: &mut [T]| {
        with_column_ids!(lhs.columns(), |ids| {
            if width == 1 {
                single(out, lhs, ids, rhs);
            } else if width <= NARROW {
                widest(PanelProduct::<T, _, _, 2> { out, lhs, ids, rhs, width });
            } else {
                widest(PanelProduct::<T, _, _, 1> { out, lhs, ids, rhs, width });
            }
        });
    });
}

/// One column.
fn single<T: Float, V: Factor<T>, I: ColumnId>(
    out: &mut [T],
    lhs: CsrView<'_, V>,
    ids: &[I],
    rhs: &[T],
) {
    #[cfg(target_arch = "x86_64")]
    if const { are_f32::<T, V>() && is_u32::<I>() }
        && x86::Level::found() == Some(x86::Level::Avx512)
        && let (Some(ids), Some(rhs)) = (same_type(ids), same_type(rhs))
        && let Some(out) = same_type_mut(out)
        // Of a pattern they are not read.
        && let Some(values) = if V::IS_UNIT { Some(&[][..]) } else { same_type(lhs.values()) }
        // Ids are signed to the instruction.
        && lhs.n_cols() <= 1 << 31
    {
        // SAFETY: the processor has the instructions; columns of a csr are below `n_cols`, and
        // `sums_of_rows` checked that `rhs` has as many rows, of 1.
        return unsafe { gathered::<T, V>(out, lhs, ids, values, rhs) };
    }
    for (row, out) in out.iter_mut().enumerate() {
        let (ids, values) = entries(lhs, ids, row);
        // SAFETY: columns of a csr are below `n_cols`, and `sums_of_rows` checked that `rhs` has as
        // many rows, of 1.
        let at = |id: I| unsafe { rhs.get_unchecked(id.at()).widen() };
        let mut sums = [T::zero().widen(); 8];
        let (mut ids, mut values) = (ids.chunks_exact(8), values.chunks_exact(8));
        for (ids, values) in (&mut ids).zip(&mut values) {
            for ((sum, &id), &value) in sums.iter_mut().zip(ids).zip(values) {
                *sum += value.times(at(id));
            }
        }
        let rest = ids.remainder().iter().zip(values.remainder());
        for (sum, (&id, &value)) in sums.iter_mut().zip(rest) {
            *sum += value.times(at(id));
        }
        let [a, b, c, d, e, f, g, h] = sums;
        *out = T::narrow(((a + e) + (c + g)) + ((b + f) + (d + h)));
    }
}

/// The same sums in the lanes of a register. A masked lane adds a zero, which changes no sum that
/// began at zero.
///
/// # Safety
///
/// The processor has AVX-512 with 32-byte vectors and bmi2, `ids` are below the length of `rhs` and
/// 2³¹, and these ids and values are those of `lhs`; there need be no values where all are 1.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f,avx512vl,bmi2")]
unsafe fn gathered<T: Float, V: Factor<T>>(
    out: &mut [f32],
    lhs: CsrView<'_, V>,
    ids: &[u32],
    values: &[f32],
    rhs: &[f32],
) {
    use std::arch::x86_64::*;
    let bounds = lhs.starts().iter().zip(lhs.ends());
    for (row, (out, (&start, &end))) in out.iter_mut().zip(bounds).enumerate() {
        let (mut at, end) = (start as usize, end as usize);
        let distance = entry_prefetch::distance_or(lhs, row, entry_prefetch::ENTRIES_FAR_AHEAD);
        let mut sums = _mm256_setzero_ps();
        // SAFETY: what is read lies between the bounds of a row, or is masked; columns are below
        // the length of `rhs`.
        unsafe {
            while at + 8 <= end {
                entry_prefetch::prefetch_entry(ids, lhs.values(), at.wrapping_add(distance));
                let columns = _mm256_loadu_si256(ids.as_ptr().add(at).cast());
                let mut y = _mm256_i32gather_ps::<4>(rhs.as_ptr(), columns);
                if !V::IS_UNIT {
                    y = _mm256_mul_ps(_mm256_loadu_ps(values.as_ptr().add(at)), y);
                }
                sums = _mm256_add_ps(sums, y);
                at += 8;
            }
            let mask = _bzhi_u32(0xff, (end - at) as u32) as u8;
            let columns = _mm256_maskz_loadu_epi32(mask, ids.as_ptr().add(at).cast());
            let mut y =
                _mm256_mmask_i32gather_ps::<4>(_mm256_setzero_ps(), mask, columns, rhs.as_ptr());
            if !V::IS_UNIT {
                y = _mm256_mul_ps(_mm256_maskz_loadu_ps(mask, values.as_ptr().add(at)), y);
            }
            sums = _mm256_add_ps(sums, y);
        }
        let sums = _mm_add_ps(_mm256_castps256_ps128(sums), _mm256_extractf128_ps::<1>(sums));
        let sums = _mm_add_ps(sums, _mm_movehl_ps(sums, sums));
        *out = _mm_cvtss_f32(_mm_add_ss(sums, _mm_shuffle_ps::<1>(sums, sums)));
    }
}

/// Up to so many columns are summed in two sums that take turns, so that additions do not wait for
/// each other; beyond, the columns themselves do not.
const NARROW: usize = 32;

/// Columns in panels that registers hold. `WAYS` sums take turns.
struct PanelProduct<'a, 'm, T: Float, V: Stored, I, const WAYS: usize> {
    out: &'a mut [T],
    lhs: CsrView<'m, V>,
    ids: &'a [I],
    rhs: &'a [T],
    width: usize,
}

/// Some columns of one row of the result.
struct Panel<'a, T, V, I> {
    ids: &'a [I],
    values: &'a [V],
    rhs: &'a [T],
    width: usize,
    /// So far ahead entries are asked for.
    entries_ahead: usize,
    /// The row's entries in two runs, with how far ahead of each a row of `rhs` is asked for: the
    /// first, of which each way has as many, asks for what entries of the same row name, the second
    /// for that of the next one.
    runs: [(Range<usize>, usize); 2],
}

impl<T, V, I, const WAYS: usize> Loop<T> for PanelProduct<'_, '_, T, V, I, WAYS>
where
    T: Float,
    V: Factor<T>,
    I: ColumnId,
{
    const IN_VECTORS: bool = is_u32::<I>();

    #[inline(always)]
    unsafe fn run<L: Lanes<T>>(self) {
        let PanelProduct { out, lhs, ids, rhs, width } = self;
        let (starts, ends) = (lhs.starts(), lhs.ends());
        // Kibibytes, and not so many rows that they leave the smallest cache before they are used.
        let rows_ahead = (8192 / (width * size_of::<T>())).clamp(4, 48);
        for (row, out) in out.chunks_exact_mut(width).enumerate() {
            let (start, end) = (starts[row] as usize, ends[row] as usize);
            let next = starts.get(row + 1).map_or(ids.len(), |&next| next as usize);
            // Rows of a view lie anywhere: the next one may come before, so that the distance wraps
            // around. The second run may begin a way before those that the next row is there for.
            let is_there = next + 1 >= WAYS && next + rows_ahead <= ids.len();
            // Where the next row follows, one run will do.
            let before = if is_there && next == end {
                end - start
            } else {
                (end - start).saturating_sub(rows_ahead)
            };
            let middle = start + before / WAYS * WAYS;
            let distance = if is_there { (next + rows_ahead).wrapping_sub(end) } else { 0 };
            let runs = [(start..middle, rows_ahead), (middle..end, distance)];
            let entries_ahead = entry_prefetch::distance(lhs, row);
            let panel = Panel { ids, values: lhs.values(), rhs, width, entries_ahead, runs };
            let mut column = 0;
            // SAFETY: a panel ends where the row does; rows of `rhs` and bounds of entries were
            // checked by `sums_of_rows` and the invariant of csr.
            unsafe {
                macro_rules! panels {
                    ($lanes:ty, $n:literal) => {
                        if const { WAYS * $n <= <$lanes>::REGISTERS || $n == 1 } {
                            while column + $n * <$lanes>::COUNT <= width {
                                panel.sum::<$lanes, $n, WAYS, false>(&mut out[column..], column);
                                column += $n * <$lanes>::COUNT;
                            }
                        }
                    };
                }
                if width == L::COUNT {
                    panel.sum::<L, 1, WAYS, true>(out, 0);
                    continue;
                }
                panels!(L, 16);
                panels!(L, 8);
                panels!(L, 4);
                panels!(L, 2);
                panels!(L, 1);
                if column < width {
                    panel.rest::<L, WAYS>(&mut out[column..], column);
                }
            }
        }
    }
}

impl<T: Float, V: Factor<T>, I: ColumnId> Panel<'_, T, V, I> {
    /// `N` vectors of columns, from `column` on; `ALL` that there are, if so, so that the compiler
    /// knows how far apart rows are.
    ///
    /// # Safety
    ///
    /// The columns are there in `out` and in each row of `rhs`, of which there is one a column id;
    /// the runs are of a row's entries, and so is what is asked for.
    #[inline(always)]
    unsafe fn sum<L: Lanes<T>, const N: usize, const WAYS: usize, const ALL: bool>(
        &self,
        out: &mut [T],
        column: usize,
    ) {
        // SAFETY: as the caller says.
        unsafe {
            let mut sums = [[L::zero(); N]; WAYS];
            for (entries, distance) in &self.runs {
                let mut at = entries.start;
                while at + WAYS <= entries.end {
                    entry_prefetch::prefetch_entry(
                        self.ids,
                        self.values,
                        at.wrapping_add(self.entries_ahead),
                    );
                    for (way, sums) in sums.iter_mut().enumerate() {
                        self.term::<L, N, ALL>(sums, at + way, *distance, column);
                    }
                    at += WAYS;
                }
                if at < entries.end {
                    // Of at most two ways, one is left.
                    self.term::<L, N, ALL>(&mut sums[0], at, *distance, column);
                }
            }
            for (n, &sum) in sums[0].iter().enumerate() {
                let mut sum = sum;
                for more in &sums[1..] {
                    sum = sum.add(more[n]);
                }
                sum.store(out.as_mut_ptr().add(n * L::COUNT));
            }
        }
    }

    /// Adds what an entry contributes. Not a closure: that would be compiled without the vectors'
    /// instructions.
    ///
    /// # Safety
    ///
    /// As for [`sum`](Panel::sum), and the entry is one of the row's.
    #[inline(always)]
    unsafe fn term<L: Lanes<T>, const N: usize, const ALL: bool>(
        &self,
        sums: &mut [L; N],
        at: usize,
        distance: usize,
        column: usize,
    ) {
        // SAFETY: as the caller says.
        unsafe {
            let width = if ALL { N * L::COUNT } else { self.width };
            let first = self.rhs.as_ptr().wrapping_add(column);
            let ahead = self.ids.get_unchecked(at.wrapping_add(distance)).at();
            prefetch_known_at(
                first.wrapping_add(ahead * width),
                N * L::COUNT,
                begin_lines(first, width),
            );
            let start = self.ids.get_unchecked(at).at() * width + column;
            let y = self.rhs.as_ptr().add(start);
            if V::IS_UNIT {
                for (n, sum) in sums.iter_mut().enumerate() {
                    *sum = sum.add(L::load(y.add(n * L::COUNT)));
                }
                return;
            }
            let x = L::splat(self.values.get_unchecked(at).number());
            for (n, sum) in sums.iter_mut().enumerate() {
                *sum = sum.add(x.multiply(L::load(y.add(n * L::COUNT))));
            }
        }
    }

    /// The columns that are left, fewer than a vector of `L`.
    ///
    /// # Safety
    ///
    /// As for [`sum`](Panel::sum).
    #[inline(always)]
    unsafe fn rest<L: Lanes<T>, const WAYS: usize>(&self, out: &mut [T], mut column: usize) {
        let first = column;
        macro_rules! panels {
            ($n:literal) => {
                if const { $n < L::COUNT } {
                    while self.width - column >= $n {
                        // SAFETY: as the caller says.
                        unsafe {
                            self.sum::<Plain<T::Accumulator, $n>, 1, WAYS, false>(
                                &mut out[column - first..],
                                column,
                            )
                        };
                        column += $n;
                    }
                }
            };
        }
        panels!(8);
        panels!(4);
        panels!(2);
        panels!(1);
    }
}

/// Row i of `out` = Σ value · row(column) over the entries whose row `rhs` stores, at the position
/// that `find` gives.
pub(super) fn sums_of_stored_rows<T: Float, V: Factor<T>>(
    out: &mut [T],
    lhs: CsrView<'_, V>,
    rhs: RowSparseView<'_, T>,
    find: impl Fn(usize) -> Option<usize>,
    scratch: &mut Vec<f32>,
) {
    let width = rhs.shape().row_size();
    with_column_ids!(lhs.columns(), |ids| {
        for (row, out) in out.chunks_exact_mut(width.max(1)).enumerate() {
            let (ids, values) = entries(lhs, ids, row);
            out.fill(T::zero());
            T::in_accumulator(out, scratch, |out| {
                for (id, &value) in ids.iter().zip(values) {
                    if let Some(position) = find(id.at()) {
                        let x = &rhs.values()[position * width..(position + 1) * width];
                        add_scaled::<T, V>(out, x, value);
                    }
                }
            });
        }
    });
}

/// Element (i, j) of `out` = Σ value · rhs[j, column] over the entries of row i: the right side is
/// read transposed.
pub(super) fn products_with_rows<T: Float, V: Factor<T>>(
    out: &mut [T],
    lhs: CsrView<'_, V>,
    rhs: &[T],
) {
    let (n_rows, inner) = (lhs.n_rows(), lhs.n_cols());
    let n_cols = out.len().checked_div(n_rows).unwrap_or(0);
    with_column_ids!(lhs.columns(), |ids| {
        for (row, out) in out.chunks_exact_mut(n_cols.max(1)).enumerate() {
            let (ids, values) = entries(lhs, ids, row);
            for (column, out) in out.iter_mut().enumerate() {
                let y = &rhs[column * inner..(column + 1) * inner];
                let terms = ids.iter().zip(values);
                *out = T::narrow(terms.map(|(id, value)| value.times(y[id.at()].widen())).sum());
            }
        }
    });
}

/// Element (i, j) of `out` = Σ lhs[i, column] · value over the entries of row j.
pub(super) fn products_with_csr_rows<T: Float, V: Factor<T>>(
    out: &mut [T],
    lhs: Matrix<'_, T>,
    rhs: CsrView<'_, V>,
) {
    let n_cols = rhs.n_rows();
    with_column_ids!(rhs.columns(), |ids| {
        for (row, out) in out.chunks_exact_mut(n_cols.max(1)).enumerate() {
            for (column, out) in out.iter_mut().enumerate() {
                let (ids, values) = entries(rhs, ids, column);
                let terms = ids.iter().zip(values);
                *out = T::narrow(match lhs.row(row) {
                    Some(x) => terms.map(|(id, value)| value.times(x[id.at()].widen())).sum(),
                    None => {
                        terms.map(|(id, value)| value.times(lhs.at(row, id.at()).widen())).sum()
                    }
                });
            }
        }
    });
}

/// The columns and values of a row.
#[inline(always)]
pub(super) fn entries<'a, 'b, V: Stored, I>(
    matrix: CsrView<'a, V>,
    ids: &'b [I],
    row: usize,
) -> (&'b [I], &'a [V]) {
    let range = matrix.starts()[row] as usize..matrix.ends()[row] as usize;
    (&ids[range.clone()], &matrix.values()[range])
}

/// out += value · x.
#[inline(always)]
pub(super) fn add_scaled<T: Float, V: Factor<T>>(out: &mut [T::Accumulator], x: &[T], value: V) {
    for (out, &x) in out.iter_mut().zip(x) {
        *out += value.times(x.widen());
    }
}

/// The same in `f64`, to sums over a batch.
#[inline(always)]
pub(super) fn add_scaled_wide<T: Float, V: Factor<T>>(sums: &mut [f64], x: &[T], value: V) {
    for (sum, &x) in sums.iter_mut().zip(x) {
        *sum += value.number().as_f64() * x.as_f64();
    }
}

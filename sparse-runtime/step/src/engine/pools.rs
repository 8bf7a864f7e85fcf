//! The pools of reads: from the weights of named rows to the numbers of a sample. They depend on no
//! rule: rows are caught up before.

use super::program::{Pool, Read, Refs, Values};
use crate::linear;
use crate::optimizer::{ReadRows as _, RowWeights};
use nnz_arrays::formats::{ColumnId, ColumnIdsView};
use nnz_arrays::kernels::embedding_bag;
use nnz_arrays::with_column_ids;
use nnz_device::simd::{self, Fixed, Runtime, Width};
use sparse_core::element::{Factor, Float, Unit};

/// As many units as a sample has ids.
pub(super) fn units(count: usize) -> &'static [Unit] {
    // SAFETY: a slice of a type without size refers to no memory.
    unsafe { std::slice::from_raw_parts(std::ptr::NonNull::dangling().as_ptr(), count) }
}

/// Pools the rows that a sample names to `numbers`; of [`Pool::Pairs`], `sums` becomes the
/// sum of the rows, each multiplied by its value, and then has as many numbers of scratch.
/// O(ids · elements of a row).
///
/// # Safety
///
/// The ids are below the rows, nothing writes these meanwhile, and the read was
/// [checked](Read::check) with them.
#[inline]
pub(super) unsafe fn pool<T: Float<Accumulator = T>>(
    read: &Read<'_, '_, T>,
    sample: usize,
    (ids, values): (ColumnIdsView<'_>, Values<'_, T>),
    (rows, row_size): (RowWeights<'_, T>, usize),
    numbers: &mut [T],
    sums: &mut [T],
) {
    let is_weighted = match read.pool {
        Pool::Product | Pool::Pairs => true,
        Pool::Bag { weighted, .. } => weighted,
        Pool::Rows => false,
    };
    let values = if is_weighted { values } else { Values::Ones };
    if !matches!(read.pool, Pool::Rows | Pool::Pairs) {
        numbers.fill(T::zero());
    }
    with_column_ids!(ids, |ids| {
        let units = units(ids.len());
        // SAFETY: promised by the caller.
        unsafe {
            match (read.pool, values) {
                (Pool::Rows, _) => copy(ids, rows, row_size, numbers),
                (Pool::Pairs, Values::Each(values)) => {
                    numbers[0] = pairs(ids, values, rows, row_size, sums);
                }
                (Pool::Pairs, Values::Ones) => {
                    numbers[0] = pairs(ids, units, rows, row_size, sums);
                }
                (_, Values::Each(values)) => sum(ids, values, rows, numbers),
                (Pool::Product, Values::Ones) => sum(ids, units, rows, numbers),
                (_, Values::Ones) => sum_alike(ids, rows, numbers),
            }
        }
    });
    scale(read, sample, ids.len(), numbers);
}

/// Makes a mean of a sum of `count` rows, and likewise of its gradient.
#[inline(always)]
pub(super) fn scale<T: Float<Accumulator = T>>(
    read: &Read<'_, '_, T>,
    sample: usize,
    count: usize,
    numbers: &mut [T],
) {
    let Pool::Bag { mean: true, weighted } = read.pool else { return };
    let share = match read.refs {
        _ if !weighted && count == 0 => T::zero(),
        _ if !weighted => T::one() / T::of(count as f64),
        Refs::Csr(csr) => embedding_bag::cpu::share::<T, T>(csr, sample, true, weighted),
        Refs::Units(csr) => embedding_bag::cpu::share::<T, Unit>(csr, sample, true, weighted),
        Refs::Ids(..) => return,
    };
    numbers.iter_mut().for_each(|number| *number *= share);
}

/// Rows one after the other.
///
/// # Safety
///
/// As [`pool`].
unsafe fn copy<T: Float, I: ColumnId>(
    ids: &[I],
    rows: RowWeights<'_, T>,
    row_size: usize,
    numbers: &mut [T],
) {
    for (id, numbers) in ids.iter().zip(numbers.chunks_exact_mut(row_size.max(1))) {
        // SAFETY: promised by the caller.
        numbers.copy_from_slice(unsafe { rows.row(id.at()) });
    }
}

/// Σ value · row.
///
/// # Safety
///
/// As [`pool`].
unsafe fn sum<T: Float<Accumulator = T>, V: Factor<T>, I: ColumnId>(
    ids: &[I],
    values: &[V],
    rows: RowWeights<'_, T>,
    numbers: &mut [T],
) {
    macro_rules! of_width {
        ($width:expr) => {
            simd::wide(
                #[inline(always)]
                || {
                    let width = $width;
                    let rows = rows.of_size(width.columns());
                    // SAFETY: promised by the caller.
                    unsafe { linear::product(ids, values, rows, width, numbers) }
                },
            )
        };
    }
    match numbers.len() {
        1 => of_width!(Fixed::<1>),
        8 => of_width!(Fixed::<8>),
        16 => of_width!(Fixed::<16>),
        size => of_width!(Runtime(size)),
    }
}

/// Σ row, in the order of the ids.
///
/// # Safety
///
/// As [`pool`].
unsafe fn sum_alike<T: Float<Accumulator = T>, I: ColumnId>(
    ids: &[I],
    rows: RowWeights<'_, T>,
    numbers: &mut [T],
) {
    macro_rules! of_width {
        ($width:expr) => {
            simd::wide(
                #[inline(always)]
                || {
                    let width = $width;
                    let rows = rows.of_size(width.columns());
                    width.in_registers(
                        numbers,
                        #[inline(always)]
                        |sums| {
                            for id in ids {
                                // SAFETY: promised by the caller.
                                let weights = unsafe { rows.row(id.at()) };
                                for (sum, weight) in sums.iter_mut().zip(weights) {
                                    *sum += *weight;
                                }
                            }
                        },
                    );
                },
            )
        };
    }
    match numbers.len() {
        8 => of_width!(Fixed::<8>),
        16 => of_width!(Fixed::<16>),
        size => of_width!(Runtime(size)),
    }
}

/// ½ Σ ((Σ value · row)² - Σ (value · row)²), over the elements of a row (Rendle, *Factorization
/// Machines*, 2010, eq. 5).
///
/// # Safety
///
/// As [`pool`].
unsafe fn pairs<T: Float<Accumulator = T>, V: Factor<T>, I: ColumnId>(
    ids: &[I],
    values: &[V],
    rows: RowWeights<'_, T>,
    row_size: usize,
    sums: &mut [T],
) -> T {
    let (sums, squares) = sums.split_at_mut(row_size);
    sums.fill(T::zero());
    squares.fill(T::zero());
    macro_rules! of_width {
        ($Width:ty, $width:expr) => {
            simd::in_sixteens::<$Width, _>(
                #[inline(always)]
                || {
                    let width = $width;
                    let rows = rows.of_size(width.columns());
                    width.in_registers(
                        sums,
                        #[inline(always)]
                        |sums| {
                            width.in_registers(
                                squares,
                                #[inline(always)]
                                |squares| {
                                    // SAFETY: promised by the caller.
                                    unsafe { add_pairs(ids, values, rows, sums, squares) };
                                },
                            );
                        },
                    );
                },
            )
        };
    }
    match row_size {
        8 => of_width!(Fixed<8>, Fixed::<8>),
        16 => of_width!(Fixed<16>, Fixed::<16>),
        size => of_width!(Runtime, Runtime(size)),
    }
    simd::wide(
        #[inline(always)]
        || simd::squares_less(sums, squares) * T::of(0.5),
    )
}

/// Adds value · row to the sums, and its squares to the squares.
///
/// # Safety
///
/// As [`pool`].
#[inline(always)]
unsafe fn add_pairs<T: Float<Accumulator = T>, V: Factor<T>, I: ColumnId>(
    ids: &[I],
    values: &[V],
    rows: RowWeights<'_, T>,
    sums: &mut [T],
    squares: &mut [T],
) {
    for (id, value) in ids.iter().zip(values) {
        // SAFETY: promised by the caller.
        let row = unsafe { rows.row(id.at()) };
        for ((sum, square), weight) in sums.iter_mut().zip(&mut *squares).zip(row) {
            let term = value.times(*weight);
            *sum += term;
            *square += term * term;
        }
    }
}

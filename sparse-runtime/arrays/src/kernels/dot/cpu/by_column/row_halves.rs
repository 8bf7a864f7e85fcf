//! Sums of one column, of the rows in two halves, and then of both. A thread that has one half
//! reads it alone; of threads that have half of the columns each reads nearly all lines of the
//! data, and two of them are hardly faster than one.

use super::parallel::each_range;
use super::{Matrix, add, divides_rows, occurring, repeat};

use crate::formats::CsrView;
use crate::kernels::Parallel;
use crate::kernels::dot::cpu::scatter;
use crate::kernels::parallel::{column_ranges, cut};
use crate::kernels::value::ValueOf;
use nnz_device::simd;
use nnz_device::thread_pool::{self, MAX_PARTS};
use sparse_core::element::{Float, Stored};
use std::mem::MaybeUninit;
use std::ops::Range;

/// Whether sums are made so, on however many threads: their bits are those of this order.
///
/// One thread fetches the sums of a column into its cache twice, which costs it as much as some of
/// the entries of a column do; so there must be many, and so many in all that two threads are worth
/// it.
pub(super) fn fits<V: Stored>(lhs: CsrView<'_, V>, width: usize) -> bool {
    const ENTRIES_OF_A_COLUMN: usize = 6;
    width == 1
        && lhs.nnz() / ENTRIES_OF_A_COLUMN >= lhs.n_cols()
        && scatter::parts(lhs, width, Parallel::Threads(2)) == 2
}

/// Sums the rows of all columns on some threads, and moves those that occur to the front, as
/// [`occurring`]. Behind `lead` elements there are sums of all columns, all -0, and behind them as
/// many once more.
pub(super) fn product<T: Float, V: ValueOf<T>>(
    ids: &mut [MaybeUninit<u64>],
    sums: &mut [T::Accumulator],
    lead: usize,
    lhs: CsrView<'_, V>,
    rhs: Matrix<'_, T>,
    n_threads: usize,
) -> usize {
    let n_cols = lhs.n_cols();
    let (sums, behind) = sums.split_at_mut(lead + n_cols);
    let (front, behind) = (&mut sums[lead..], &mut behind[..n_cols]);
    let (upper, lower) = lhs.split(cut(lhs, 1, 2));
    let below = rhs.below(upper.n_rows());
    if n_threads < 2 {
        // Those behind were filled last, and are in the cache.
        add(behind, upper, rhs, 0..n_cols);
        fetch(front);
        add(front, lower, below, 0..n_cols);
    } else {
        // More than two threads have some columns of a half each, where that wins anything.
        let n_ranges = if divides_rows() { n_threads / 2 } else { 1 };
        let ranges = column_ranges(lhs, n_ranges);
        let (mut rest, mut pieces) = ((front, &mut *behind), [const { None }; MAX_PARTS]);
        for (pieces, columns) in pieces.chunks_exact_mut(2).zip(ranges) {
            let (front, more_front) = rest.0.split_at_mut(columns.len());
            let (behind, more_behind) = rest.1.split_at_mut(columns.len());
            pieces[0] = Some((front, lower, below, columns.clone()));
            pieces[1] = Some((behind, upper, rhs, columns));
            rest = (more_front, more_behind);
        }
        thread_pool::each(&mut pieces[..2 * n_ranges], |_, piece| {
            if let Some((sums, half, rhs, columns)) = piece {
                add(sums, *half, *rhs, columns.clone());
            }
        });
    }
    let behind = &*behind;
    let ranges =
        (0..n_threads).map(|part| n_cols * part / n_threads..n_cols * (part + 1) / n_threads);
    each_range(ids, sums, lead, 1, ranges, &|ids, sums, lead, columns| {
        sum_of_both(ids, sums, lead, behind, columns)
    })
}

/// Writes sums that are -0 once more: those that are about to be used are then in a cache, from
/// which the data of the first half may have driven them.
fn fetch<A: Float>(sums: &mut [A]) {
    let (len, start) = (sums.len(), sums.as_mut_ptr());
    // SAFETY: these are the same elements, and what is written to them are elements.
    let room = unsafe { std::slice::from_raw_parts_mut(start.cast::<MaybeUninit<A>>(), len) };
    repeat(room, -A::zero());
}

/// Adds to the sums of some columns those of the other half, which are of all columns, and moves
/// what occurs to the front, as [`occurring`].
fn sum_of_both<A: Float>(
    ids: &mut [MaybeUninit<u64>],
    sums: &mut [A],
    lead: usize,
    others: &[A],
    columns: Range<usize>,
) -> usize {
    /// So many that they are in the first cache when those that occur are looked for.
    const COLUMNS_PER_BLOCK: usize = 2048;
    let mut found = 0;
    for at in (0..columns.len()).step_by(COLUMNS_PER_BLOCK) {
        let (first, len) = (columns.start + at, COLUMNS_PER_BLOCK.min(columns.len() - at));
        let both = sums[lead + at..][..len].iter_mut().zip(&others[first..][..len]);
        simd::wide(
            #[inline(always)]
            || both.for_each(|(sum, &other)| *sum += other),
        );
        let (ids, sums) = (&mut ids[found..][..len], &mut sums[found..]);
        found += occurring(ids, sums, lead + at - found, 1, first);
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::formats::{Csr, Dense, RowSelection, RowSparse};
    use crate::kernels::Context;
    use crate::kernels::dot::cpu::csr_transposed_dense;

    /// Rows of 0 to 40 entries, of which some columns have none, and that repeat: so many entries
    /// need no memory.
    const N_COLS: usize = 9000;

    fn matrix<T: Float>() -> Csr<T> {
        let rows = (0..60).map(|row| {
            let columns = (row * 37 % 90..N_COLS - 3).step_by(211).take(row % 41);
            Vec::from_iter(columns.map(|column| (column, T::of(1.1 + (row * 7 % 13) as f64))))
        });
        Csr::from_rows(N_COLS, rows).unwrap()
    }

    fn bits<T: Float>(
        x: CsrView<'_, T>,
        y: &Dense<T>,
        transpose: bool,
        parallel: Parallel,
    ) -> (Vec<u64>, Vec<u64>) {
        let (mut out, mut context) = (RowSparse::default(), Context::default());
        context.parallel = parallel;
        csr_transposed_dense(&mut out, x, y.view(), transpose, &mut context);
        let bits = out.values().iter().map(|value| value.as_f64().to_bits());
        (out.indices().to_vec(), bits.collect())
    }

    fn any_number_of_threads_has_the_same_bits<T: Float>() {
        let x = matrix::<T>();
        let mut selection = RowSelection::new();
        let order: Vec<usize> = (0..500_000).map(|row| row * 17 % 60).collect();
        let view = selection.gather(&x, &order).unwrap();
        assert!(fits(view, 1) && !fits(view, 2) && !fits(x.view(), 1));
        let y = Vec::from_iter((0..order.len()).map(|row| T::of(0.3 - (row % 17) as f64)));
        let column = Dense::new([order.len(), 1], y.clone()).unwrap();
        let (ids, sums) = bits(view, &column, false, Parallel::Sequential);
        for threads in [2, 3, 4, 5] {
            let parallel = Parallel::Threads(threads);
            assert!((ids.clone(), sums.clone()) == bits(view, &column, false, parallel));
        }
        let row = Dense::new([1, order.len()], y.clone()).unwrap();
        let parallel = Parallel::Threads(2);
        assert!((ids.clone(), sums.clone()) == bits(view, &row, true, parallel));

        // Each half in its order, then both.
        let mut expected = vec![[0.0; 2]; N_COLS];
        let cut = cut(view, 1, 2);
        for (row, &from) in order.iter().enumerate() {
            let (ids, values) = x.row(from).unwrap();
            for (at, value) in values.iter().enumerate() {
                let sum = &mut expected[ids.get(at).unwrap()][usize::from(row >= cut)];
                *sum += value.as_f64() * y[row].as_f64();
            }
        }
        let occur: std::collections::BTreeSet<usize> = x.columns().iter().collect();
        assert!(occur.iter().map(|&column| column as u64).eq(ids));
        let expected = occur.into_iter().map(|column| {
            let [first, second] = expected[column];
            T::of(first + second).as_f64().to_bits()
        });
        assert!(expected.eq(sums));
    }

    #[test]
    fn any_number_of_threads_has_the_same_bits_in_f32() {
        any_number_of_threads_has_the_same_bits::<f32>();
    }

    #[test]
    fn any_number_of_threads_has_the_same_bits_in_f64() {
        any_number_of_threads_has_the_same_bits::<f64>();
    }

    /// Summed in f64, and rounded once.
    #[cfg(feature = "half")]
    #[test]
    fn any_number_of_threads_has_the_same_bits_in_bf16() {
        any_number_of_threads_has_the_same_bits::<sparse_core::element::bf16>();
    }
}

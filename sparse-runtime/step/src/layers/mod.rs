//! The loops of steps through dense layers: of one sample, and of many.
//!
//! A sample names table rows ([reads](RowReads)), whose products, sums and copies are arrays of
//! constant lengths. `graph!` composes this loop with an emitted row function: arrays go through
//! [products](product) with dense parameters and through element-wise functions to a loss, and the
//! gradients back to the reads, which are updated. The row function updates dense parameters. In a
//! [step of many samples](pass) gradients are summed, and kept for the update of tables.

mod many;
mod reads;
mod shared;
mod still;
mod together;

pub(crate) use self::many::Run;
pub use self::many::{Kept, add, add_outer, keep, pass};
pub use self::reads::{Bags, Product, RowReads, Taken};
pub use self::still::{Frozen, Stopped};
pub use self::together::{NamesRows, ReadsTogether, Together};

use crate::error::Result;
use crate::model::{ModelError, RowSteps};
use crate::optimizer::{RowUpdater, UpdateKind, Updater, Weights};
use crate::with_rows;
use nnz_arrays::parameter_memory::Table;
use nnz_device::simd;
use nnz_optim::UpdateRule;
use sparse_core::element::Float;
pub use sparse_core::passes::are_few;
use std::ops::Range;

/// As many steps as `range` has rows, each of one row of data. Ends early after a loss that is not
/// finite. The updater [began](Updater::begin_steps) as many steps.
///
/// `row_function(row, numbers)` gets what the row reads of the tables; it gives the row's loss, and
/// the gradients with respect to the numbers that have one. O(elements read · cost of the rule) a
/// row, and what the row function costs.
///
/// # Errors
///
/// [`ModelError::Extent`] for a table of another shape than the reads have, [`ModelError::Lookup`]
/// for an id beyond a table.
#[inline(always)]
pub fn steps<R, T, P, const N: usize>(
    reads: P,
    range: Range<usize>,
    tables: [(usize, &mut Table<T>); N],
    updater: &mut Updater<R, T>,
    row_function: impl FnMut(usize, P::Numbers) -> (T, P::Gradients),
) -> Result<RowSteps>
where
    R: UpdateRule,
    T: Float<Accumulator = T>,
    P: RowReads<T>,
{
    let weights = tables.map(|(index, table)| (index, Weights::Table(table)));
    with_rows!(R, T; *updater, weights, |rows| {
        reads.check(&rows)?;
        each_row(reads, range, rows, row_function)
    })
}

#[inline(never)]
fn each_row<R, T, P, K, const N: usize>(
    reads: P,
    range: Range<usize>,
    mut rows: [RowUpdater<'_, R, T, K>; N],
    mut row_function: impl FnMut(usize, P::Numbers) -> (T, P::Gradients),
) -> Result<RowSteps>
where
    R: UpdateRule,
    T: Float<Accumulator = T>,
    P: RowReads<T>,
    K: UpdateKind,
{
    let steps = simd::wide(
        #[inline(always)]
        || -> Result<RowSteps> {
            let mut steps = RowSteps::default();
            for row in range {
                reads.prefetch(row, &mut rows);
                // SAFETY: `steps` has checked the tables.
                let numbers = unsafe { reads.read(row, &mut rows)? };
                let (loss, gradients) = row_function(row, numbers);
                // SAFETY: as above, and the row was read.
                unsafe { reads.update(row, &mut rows, gradients) };
                for rows in &mut rows {
                    rows.advance();
                }
                if !steps.add(loss.as_f64()) {
                    break;
                }
            }
            Ok(steps)
        },
    )?;
    rows.into_iter().for_each(RowUpdater::finish);
    Ok(steps)
}

/// The elements of a parameter that is not trained, as many as the source says.
///
/// # Errors
///
/// [`ModelError::Extent`] for another number.
#[inline]
pub fn elements<'a, T, const N: usize>(name: &'static str, values: &'a [T]) -> Result<&'a [T; N]> {
    let wrong = || ModelError::extent("steps of one row", name, 0, values.len(), N);
    Ok(values.try_into().map_err(|_| wrong())?)
}

/// x · w of a row of `K` and a matrix of `K` rows of `M`, all `N` elements of it: each sum in the
/// order of the rows, that of a single column in eight interleaved sums.
#[inline(always)]
pub fn product<T: Float<Accumulator = T>, const K: usize, const M: usize, const N: usize>(
    x: &[T; K],
    w: &[T; N],
) -> [T; M] {
    if M == 1 {
        return [simd::inner(x, w); M];
    }
    let mut out = [T::zero(); M];
    for (x, row) in x.iter().zip(w.as_chunks::<M>().0) {
        for (out, w) in out.iter_mut().zip(row) {
            *out += *x * *w;
        }
    }
    out
}

/// x · wᵀ of a row of `K` and a matrix of `M` rows of `K`, all `N` elements of it: each sum in
/// eight interleaved ones.
#[inline(always)]
pub fn transposed_product<
    T: Float<Accumulator = T>,
    const K: usize,
    const M: usize,
    const N: usize,
>(
    x: &[T; K],
    w: &[T; N],
) -> [T; M] {
    let mut out = [T::zero(); M];
    for (out, row) in out.iter_mut().zip(w.as_chunks::<K>().0) {
        *out = if K == 1 { x[0] * row[0] } else { simd::inner(x, row) };
    }
    out
}

/// A row and a vector of as many elements.
#[inline(always)]
pub fn plus<T: Float, const M: usize>(mut row: [T; M], vector: &[T; M]) -> [T; M] {
    for (sum, x) in row.iter_mut().zip(vector) {
        *sum += *x;
    }
    row
}

/// One row after the other.
#[inline(always)]
pub fn joined<T: Float, const K: usize, const L: usize, const M: usize>(
    first: &[T; K],
    second: &[T; L],
) -> [T; M] {
    let mut out = [T::zero(); M];
    for (out, x) in out.iter_mut().zip(first.iter().chain(second)) {
        *out = *x;
    }
    out
}

/// The first `M` elements of a row, or the last.
#[inline(always)]
pub fn part<T: Float, const K: usize, const M: usize>(of: &[T; K], from_end: bool) -> [T; M] {
    let mut out = [T::zero(); M];
    let start = if from_end { K.saturating_sub(M) } else { 0 };
    for (out, x) in out.iter_mut().zip(&of[start..]) {
        *out = *x;
    }
    out
}

/// The same row once more.
#[inline(always)]
pub fn copied<T: Float, const K: usize>(row: &[T; K]) -> [T; K] {
    *row
}

/// The sum of a row, in order.
#[inline(always)]
pub fn total<T: Float, const K: usize>(row: &[T; K]) -> [T; 1] {
    let mut sum = T::zero();
    for x in row {
        sum += *x;
    }
    [sum]
}

/// The mean of a row.
#[inline(always)]
pub fn mean<T: Float, const K: usize>(row: &[T; K]) -> [T; 1] {
    total(row).map(|sum| sum / T::of(K as f64))
}

/// A number divided evenly among the elements of a row.
#[inline(always)]
pub fn shares<T: Float, const K: usize>(number: T) -> [T; K] {
    [number * T::of(1.0 / K as f64); K]
}

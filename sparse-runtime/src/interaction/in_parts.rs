//! The step of a large batch on several threads, with the bits of one: see [`linear::in_parts`](crate::linear).

use super::{add_row, scores, update_rows};
use crate::formats::CsrView;
use crate::lanes;
use crate::linear::{
    LARGE, Scratch, Width, entries, is_large, prefetch_data, row_ahead, row_of, settle,
    with_row_loops,
};
use crate::optimizer::{RowAccumulator, RowUpdater, RowWeights, UpdateKind};
use crate::row_parts::in_order;
use crate::team;
use sparse_core::element::{Factor, Float};
use sparse_core::update_rules::UpdateRule;
use std::ops::Range;

/// As [`step`](super::step), of a batch whose extents were compared with those of both parameters.
pub(super) fn step<
    R: UpdateRule,
    T: Float<Accumulator = T>,
    V: Factor<T>,
    W: Width,
    K: UpdateKind,
>(
    n_parts: usize,
    x: CsrView<'_, V>,
    mut w: RowUpdater<'_, R, T, K>,
    mut v: RowUpdater<'_, R, T, K>,
    width: W,
    scratch: &mut Scratch<T>,
    mut row_function: impl FnMut(usize, &mut [T], &mut [T]) -> T,
) -> f64 {
    let (n_rows, size) = (x.n_rows(), width.columns());
    let Scratch { gradients, parts, .. } = scratch;
    let (cuts, parts) = parts.divide(n_parts, x, size + 2);
    settle(x, &mut w, 1, cuts, parts);
    settle(x, &mut v, size, cuts, parts);

    let large = is_large(&v);
    let (of_w, of_v) = (w.shared(1), v.shared(size));
    // Of each row of data the two scores, which become their gradients, and Σ x v.
    let numbers = gradients;
    numbers.resize(n_rows * (size + 2), T::zero());
    let mut total = 0.0;
    in_order(
        parts,
        numbers,
        size + 2,
        |part, rows, numbers| {
            let tables = (of_w.weights(), of_v.weights());
            score(x, rows, tables, width, large, &mut part.scratch, numbers);
        },
        |row, numbers| {
            total += row_function(row, &mut numbers[..2], &mut [T::zero(); 2]).as_f64();
        },
    );

    let numbers = &*numbers;
    team::each(parts, |place, part| {
        accumulate(cuts.of(place, x), &mut part.sums, numbers, width);
        // SAFETY: the sums are of the columns of `x`, which are rows of both tables; each is of one part.
        unsafe {
            let (of_w, of_v, sums) = (&of_w, &of_v, &part.sums);
            lanes::wide(
                #[inline(always)]
                || update_rows(sums, of_w.cursor(), of_v.cursor(), width.columns()),
            );
            of_w.mark_rows(sums.rows());
            of_v.mark_rows(sums.rows());
        }
        part.sums.clear();
    });
    w.finish();
    v.finish();
    total / n_rows as f64
}

/// Scores of some rows of data and Σ x v.
#[inline(never)]
fn score<T: Float<Accumulator = T>, V: Factor<T>, W: Width>(
    x: CsrView<'_, V>,
    rows: Range<usize>,
    (w, v): (RowWeights<'_, T>, RowWeights<'_, T>),
    width: W,
    large: bool,
    scratch: &mut Vec<T>,
    numbers: &mut [T],
) {
    with_row_loops!(W, x.columns(), |ids| {
        let size = width.columns();
        let v = v.of_size(size);
        for (row, numbers) in rows.zip(numbers.chunks_exact_mut(size + 2)) {
            prefetch_data(x, ids, row);
            if large {
                let ahead = row_ahead(x, ids, row);
                w.prefetch_each(ahead);
                v.prefetch_each(ahead);
            }
            let (ids, values) = row_of(x, ids, row);
            width.with_rows(
                scratch,
                #[inline(always)]
                |sums, squares| {
                    // SAFETY: the columns of `x` are rows of both tables; a row of `v` has as many elements as `sums`.
                    let scores = unsafe { scores(ids, values, w, v, sums, squares) };
                    numbers[..2].copy_from_slice(&scores);
                    numbers[2..].copy_from_slice(sums);
                },
            );
        }
    });
}

/// Sums what the rows of one thread get, given its entries of the rows of data, in the order of these.
#[inline(never)]
fn accumulate<T: Float<Accumulator = T>, V: Factor<T>, W: Width>(
    own: CsrView<'_, V>,
    sums: &mut RowAccumulator<T>,
    numbers: &[T],
    width: W,
) {
    let (size, large) = (width.columns(), own.n_cols() * size_of::<u32>() >= LARGE);
    with_row_loops!(W, own.columns(), |ids| for row in 0..own.n_rows() {
        if large {
            sums.prefetch_each(row_ahead(own, ids, row));
        }
        let numbers = &numbers[row * (size + 2)..(row + 1) * (size + 2)];
        let (scores, row_sums) = ([numbers[0], numbers[1]], &numbers[2..2 + size]);
        let (ids, values) = row_of(own, ids, row);
        // SAFETY: the sums are for the columns of the batch, of `size + 2` elements.
        unsafe { add_row::<_, V, _>(sums, entries(ids, values), scores, row_sums) };
    });
}

//! The step of a batch of several samples: all scores, then the updates, since a batch's samples
//! all see the weights before it.
//!
//! A table row is updated once, under any rule, by the sum of its gradients, which is found by a
//! slot: single steps that are small beside a weight would be rounded away. If slots lie
//! [beside the weights](crate::optimizer::WithSlots), sums follow soon after the scores, while the
//! lines are in the cache.

#[cfg(target_arch = "x86_64")]
use super::avx512;
use super::rows::ahead_of;
use super::{
    RowFunctions, Scratch, Width, ask_for_each, entries, is_large, is_read_anew, prefetch_data,
    row_ahead, row_ahead_by, row_of, settled_product,
};
use crate::optimizer::{RowUpdater, UpdateKind};
use nnz_arrays::formats::{ColumnId, CsrView};
use nnz_arrays::with_column_ids;
use nnz_optim::UpdateRule;
use sparse_core::element::{Factor, Float};
use std::ops::Range;

/// Rows of data that are scored before their sums are added to, where slots lie beside the weights:
/// the slots are then in the core's first cache. With 4 to 16 rows a batch takes about as long,
/// with all of them longer.
const TOGETHER: usize = 8;

/// A step of several rows of data: scores and what the row function makes of them, row by row, then
/// the updates.
#[inline(always)]
pub(super) fn many_rows<
    'a,
    R: UpdateRule,
    T: Float,
    V: Factor<T>,
    W: Width,
    K: UpdateKind,
    I: ColumnId,
>(
    x: CsrView<'a, V>,
    ids: &'a [I],
    mut rows: RowUpdater<'_, R, T, K>,
    width: W,
    scratch: &mut Scratch<T::Accumulator>,
    mut row_function: impl FnMut(usize, &mut [T::Accumulator], &mut [T::Accumulator]),
) {
    let (n_rows, columns) = (x.n_rows(), width.columns());
    let large = is_large(&rows);
    let Scratch { rows: row_scratch, gradients, .. } = scratch;
    gradients.clear();
    for row in 0..n_rows {
        prefetch_data(x, ids, row);
        if large {
            rows.prefetch_each(columns, row_ahead(x, ids, row));
        }
        let (ids, values) = row_of(x, ids, row);
        let (cursor, mut settling) = rows.split(columns);
        width.with_rows(
            row_scratch,
            #[inline(always)]
            |scores, saved| {
                // SAFETY: a view's columns are below its `n_cols`, which `step` compared with
                // `n_rows`; the scores are as many as the parameter's columns.
                unsafe {
                    settled_product(ids, values, cursor, &mut settling, false, width, scores);
                }
                row_function(row, scores, saved);
                gradients.extend_from_slice(scores);
            },
        );
    }
    rows.sums_mut().clear();
    sum_all(x, ids, 0..n_rows, &mut rows, width, gradients);
    rows.apply_settled();
    rows.finish();
}

/// [`many_rows`] where rows of the parameter are too short for vectors. The loops over entries are
/// functions of their own, whose registers are their own as well: the row function calls others,
/// around which such a loop would put everything down.
#[inline(never)]
pub(super) fn many_short_rows<R: UpdateRule, T: Float, V: Factor<T>, W: Width, K: UpdateKind>(
    x: CsrView<'_, V>,
    mut rows: RowUpdater<'_, R, T, K>,
    width: W,
    scratch: &mut Scratch<T::Accumulator>,
    row_functions: RowFunctions<'_, T::Accumulator>,
) {
    let (n_rows, columns) = (x.n_rows(), width.columns());
    let gradients = &mut scratch.gradients;
    gradients.clear();
    gradients.resize(n_rows * columns, T::zero().widen());
    // A step that panicked may have left some.
    rows.sums_mut().clear();
    let together = if K::SLOTS { TOGETHER } else { n_rows.max(1) };
    for first in (0..n_rows).step_by(together) {
        let block = first..n_rows.min(first + together);
        let gradients = &mut gradients[first * columns..block.end * columns];
        add_scores(x, block.clone(), &mut rows, width, gradients);
        row_functions(block.clone(), gradients);
        sum_short_rows(x, block, &mut rows, width, gradients);
    }
    rows.apply_settled();
    rows.finish();
}

/// Adds the product of each row of data with the parameter, which has as many rows as the data
/// columns, to the scores of that row.
#[inline(never)]
fn add_scores<R: UpdateRule, T: Float, V: Factor<T>, W: Width, K: UpdateKind>(
    x: CsrView<'_, V>,
    block: Range<usize>,
    rows: &mut RowUpdater<'_, R, T, K>,
    width: W,
    scores: &mut [T::Accumulator],
) {
    let columns = width.columns();
    #[cfg(target_arch = "x86_64")]
    if columns == 1 && !rows.settles() {
        let shared = rows.shared(columns);
        // SAFETY: as in `many_rows`.
        if unsafe { avx512::find_products(x, block.clone(), shared.weights(), scores) } {
            return;
        }
    }
    let large = is_large(rows);
    let (cursor, mut settling) = rows.split(columns);
    with_column_ids!(x.columns(), |ids| {
        for (row, scores) in block.zip(scores.chunks_exact_mut(columns.max(1))) {
            prefetch_data(x, ids, row);
            if large {
                ask_for_each(row_ahead_by(ahead_of::<W>(), x, ids, row), cursor, &settling);
            }
            let (ids, values) = row_of(x, ids, row);
            // SAFETY: as in `many_rows`.
            unsafe { settled_product(ids, values, cursor, &mut settling, false, width, scores) };
        }
    });
}

/// [`sum_all`], by ids of any type.
#[inline(never)]
fn sum_short_rows<R: UpdateRule, T: Float, V: Factor<T>, W: Width, K: UpdateKind>(
    x: CsrView<'_, V>,
    block: Range<usize>,
    rows: &mut RowUpdater<'_, R, T, K>,
    width: W,
    gradients: &mut [T::Accumulator],
) {
    with_column_ids!(x.columns(), |ids| sum_all(x, ids, block, rows, width, gradients));
}

/// Sums the gradients of the rows that a batch names, given the gradient with respect to the
/// scores. The parameter has as many rows as the data columns.
#[inline(always)]
fn sum_all<'a, R: UpdateRule, T: Float, V: Factor<T>, W: Width, K: UpdateKind, I: ColumnId>(
    x: CsrView<'a, V>,
    ids: &'a [I],
    block: Range<usize>,
    rows: &mut RowUpdater<'_, R, T, K>,
    width: W,
    gradients: &mut [T::Accumulator],
) {
    let (columns, ahead) = (width.columns(), ahead_of::<W>());
    let asks_for_data = !K::SLOTS && is_read_anew(x, ids);
    let gradients = block.zip(gradients.chunks_exact_mut(columns.max(1)));
    let beside = rows.slots();
    let sums = rows.sums_mut();
    let slots = beside.unwrap_or_else(|| sums.own_slots());
    let are_far = !K::SLOTS && slots.are_far();
    for (row, gradient) in gradients {
        if asks_for_data {
            prefetch_data(x, ids, row);
        }
        if are_far {
            slots.prefetch_each(row_ahead_by(ahead, x, ids, row));
        }
        let (ids, values) = row_of(x, ids, row);
        width.in_registers(
            gradient,
            #[inline(always)]
            // SAFETY: as in `many_rows`; the sums and their slots are for `n_rows` rows.
            |gradient| unsafe { sums.add_outer::<_, T, _>(slots, entries(ids, values), gradient) },
        );
    }
}

//! The step of a batch of several samples.
//!
//! A sum of a batch is found by a slot of the row whose it is. Where slots lie
//! [beside the weights](crate::optimizer::WithSlots) of the product, the line of the cache that the
//! product reads has the slot as well: of three lines for each row named, weight, slot and factors,
//! there are two.

use super::scores;
use crate::linear::{Scratch, Width, entries, is_large, prefetch_data, row_ahead_by, row_of};
use crate::optimizer::{RowAccumulator, RowCursor, RowUpdater, Slots, UpdateKind, term};
use nnz_arrays::formats::{ColumnId, CsrView};
use nnz_arrays::kernels::row_loss::{Losses, RowLoss};
use nnz_device::prefetch::AHEAD;
use nnz_device::prefetch::next_cache_is_near;
use nnz_optim::UpdateRule;
use sparse_core::element::{Factor, Float};

/// A larger batch: all scores before the first update. What a row of `v` gets is linear in the row,
/// which does not change meanwhile: Σ g x s - v Σ g x², so that only the two sums are kept, with
/// the sum for `w` beside them.
#[inline(always)]
pub(super) fn many_rows<
    'a,
    R: UpdateRule,
    T: Float<Accumulator = T>,
    V: Factor<T>,
    W: Width,
    K: UpdateKind,
    N: UpdateKind,
    I: ColumnId,
    L: RowLoss<T>,
>(
    x: CsrView<'a, V>,
    ids: &'a [I],
    mut w: RowUpdater<'_, R, T, K>,
    mut v: RowUpdater<'_, R, T, N>,
    width: W,
    scratch: &mut Scratch<T>,
    mut row_function: impl FnMut(usize, &mut [T], &mut [T]) -> L,
) -> f64 {
    let (n_rows, size) = (x.n_rows(), width.columns());
    let Scratch { factors, sums, .. } = scratch;
    let touched = match sums {
        Some(sums) if sums.n_rows() == v.n_rows() && sums.row_size() == size + 2 => sums,
        _ => sums.insert(RowAccumulator::new(v.n_rows(), size + 2)),
    };
    // A step that panicked may have left some.
    touched.clear();
    let slots = w.slots().unwrap_or_else(|| touched.own_slots());
    let far = [is_large(&w), is_large(&v), slots.are_far()];
    // A farther next cache needs an earlier prefetch (docs/notes/performance.md).
    let distance = if next_cache_is_near() { AHEAD } else { AHEAD + 1 };
    let mut losses = Losses::new();
    for row in 0..n_rows {
        prefetch_data(x, ids, row);
        let ahead = row_ahead_by(distance, x, ids, row);
        if far[0] {
            w.prefetch_each(1, ahead);
        }
        if far[1] {
            v.prefetch_each(size, ahead);
        }
        // Those beside weights are asked for with them.
        if far[2] && slots.are_apart() {
            slots.prefetch_each(ahead);
        }
        let (ids, values) = row_of(x, ids, row);
        // SAFETY: a view's columns are below its `n_cols`, which `step` compared with both
        // `n_rows`.
        unsafe {
            w.settle_each(1, ids);
            v.settle_each(size, ids);
        }
        let (weights_of, factors_of) = (w.cursor(1), v.cursor(size));
        width.with_rows(
            factors,
            #[inline(always)]
            |row_sums, squares| {
                // SAFETY: as above; a row of `v` has as many elements as `row_sums` and `squares`.
                let mut scores =
                    unsafe { scores(ids, values, weights_of, factors_of, row_sums, squares) };
                losses.add(row_function(row, &mut scores, &mut [T::zero(); 2]));
                // SAFETY: as above; the accumulator was made for `n_rows` rows of `size + 2`, and
                // so many have slots.
                unsafe { add_row((touched, slots), entries(ids, values), scores, row_sums) };
            },
        );
    }
    // SAFETY: the accumulator was made for `n_rows` rows of `size + 2`.
    unsafe { update_rows(touched, w.cursor(1), v.cursor(size), size) };
    // SAFETY: as above.
    unsafe {
        w.mark_rows(touched.rows());
        v.mark_rows(touched.rows());
    }
    touched.clear();
    w.finish();
    v.finish();
    losses.finish().0 / n_rows.max(1) as f64
}

/// Adds what a row of data contributes to the sums of the rows that it names, given the gradients
/// of its `scores` and Σ x v.
///
/// # Safety
///
/// The ids are below the rows of `touched`, which have two elements more than `row_sums`; so many
/// have slots.
#[inline(always)]
pub(super) unsafe fn add_row<T: Float<Accumulator = T>, V: Factor<T>, I: ColumnId>(
    (touched, slots): (&mut RowAccumulator, Slots<'_>),
    entries: impl ExactSizeIterator<Item = (I, V)>,
    scores: [T; 2],
    row_sums: &[T],
) {
    let size = row_sums.len();
    // SAFETY: promised by the caller.
    unsafe {
        touched.add_each(slots, entries, size + 2, |to, value| {
            let share = term::<T, V>(value, scores[1]);
            let (of_factors, others) = to.split_at_mut_unchecked(size);
            for (sum, row_sum) in of_factors.iter_mut().zip(row_sums) {
                *sum += share * row_sum.as_f64();
            }
            others[0] += value.number().as_f64() * share;
            others[1] += term::<T, V>(value, scores[0]);
        });
    }
}

/// Updates the rows of both tables that were summed.
///
/// # Safety
///
/// `touched` was made for the rows of both tables, with two elements more than `size`, which is
/// that of the factors.
#[inline(always)]
pub(super) unsafe fn update_rows<R, T, K, N>(
    touched: &RowAccumulator,
    weights: RowCursor<'_, R, T, K>,
    factors: RowCursor<'_, R, T, N>,
    size: usize,
) where
    R: UpdateRule,
    T: Float<Accumulator = T>,
    K: UpdateKind,
    N: UpdateKind,
{
    let rows = touched.rows();
    for (slot, (&row, sums)) in rows.iter().zip(touched.values().chunks_exact(size + 2)).enumerate()
    {
        if let Some(ahead) = rows.get(slot + 8 * AHEAD) {
            weights.prefetch(*ahead);
            factors.prefetch(*ahead);
        }
        // SAFETY: promised by the caller.
        unsafe {
            let (of_factors, others) = sums.split_at_unchecked(size);
            weights.update(row, 0, T::of(others[1]));
            factors.update_row_in_eights(row, of_factors, |sum, factor| {
                T::of(sum - others[0] * factor.as_f64())
            });
        }
    }
}

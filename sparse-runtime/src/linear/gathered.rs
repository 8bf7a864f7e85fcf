//! Steps that gather gradients in a mean: no weight changes, so that the scores of many rows of data are found before the first gradient is
//! added. In a loop that did all of it row by row, the processor would see little more than a row ahead while it waits for an exponential.

use super::products::sum_of_products;
use super::rows::{prefetch_data, row_of};
use crate::formats::{ColumnId, CsrView};
use crate::model::RowSteps;
use crate::optimizer::{ReadRows, RowCursor, Settling, UpdateKind};
use sparse_core::element::{Factor, Float};
use sparse_core::update_rules::UpdateRule;
use std::ops::Range;
use std::slice;

/// Rows whose scores are found together. What they read is still near when their gradients are added.
const TOGETHER: usize = 64;

/// As many steps as `range` has rows, of a parameter of one column whose rows [rest](Settling::known_to_rest), by a cursor that
/// [only gathers](RowCursor::only_gathers). `row_function` gives a number that is finite where the derivative is; of one that is not, the
/// row's step is the last. `scores` is scratch.
///
/// # Safety
///
/// The columns of `x` are rows of the parameter.
#[inline(always)]
#[allow(clippy::too_many_arguments)]
pub(super) unsafe fn steps<
    'a,
    R: UpdateRule,
    T: Float,
    V: Factor<T>,
    K: UpdateKind,
    I: ColumnId,
    C: Copy,
>(
    x: CsrView<'a, V>,
    ids: &'a [I],
    range: Range<usize>,
    (cursor, mut settling): (RowCursor<'_, R, T, K>, Settling<'_, R, T>),
    scores: &mut Vec<T::Accumulator>,
    kept: &mut C,
    mut row_function: impl FnMut(
        usize,
        &mut [T::Accumulator],
        &mut [T::Accumulator],
        &mut C,
    ) -> T::Accumulator,
) -> RowSteps {
    let first = range.start;
    let mut rest = x.split(range.end).0.split(first).1;
    let (mut own, mut row, mut last_loss) = (*kept, first, 0.0);
    let mut saved = [T::zero().widen()];
    let mut ended = false;
    while rest.n_rows() > 0 && !ended {
        let (x, more) = rest.split(TOGETHER);
        rest = more;
        scores.clear();
        scores.resize(x.n_rows(), T::zero().widen());
        // SAFETY: promised by the caller.
        unsafe { find_scores(x, ids, cursor, scores) };
        // All derivatives first: their exponentials wait for nothing, not even for a wrong guess of a row's end.
        let mut n_taken = x.n_rows();
        for (place, score) in scores.iter_mut().enumerate() {
            last_loss = row_function(row, slice::from_mut(score), &mut saved, &mut own).as_f64();
            row += 1;
            if !last_loss.is_finite() {
                (ended, n_taken) = (true, place + 1);
                break;
            }
        }
        for (place, score) in scores[..n_taken].iter().enumerate() {
            let (score, (ids, values)) = (*score, row_of(x, ids, place));
            for (id, value) in ids.iter().zip(values) {
                // SAFETY: promised by the caller.
                unsafe {
                    settling.note(cursor, id.at());
                    cursor.update(id.at(), 0, value.times(score));
                }
            }
            settling.advance::<K>();
        }
    }
    *kept = own;
    // Nobody asks for the sum.
    RowSteps { n_steps: row - first, loss_sum: last_loss, last_loss }
}

/// The product of each row of data with the parameter. A function of its own, so that the registers are its loop's. No rows of the parameter are
/// asked for ahead: loads that wait for nothing run as far ahead by themselves.
///
/// # Safety
///
/// As for [`steps`].
#[inline(never)]
unsafe fn find_scores<'a, R: UpdateRule, T: Float, V: Factor<T>, K: UpdateKind, I: ColumnId>(
    x: CsrView<'a, V>,
    ids: &'a [I],
    cursor: RowCursor<'_, R, T, K>,
    scores: &mut [T::Accumulator],
) {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: promised by the caller; nobody writes while this reads.
    if unsafe { super::masked::find_products(x, cursor.weights(), scores) } {
        return;
    }
    for (row, score) in scores.iter_mut().enumerate() {
        prefetch_data(x, ids, row);
        let (ids, values) = row_of(x, ids, row);
        // SAFETY: promised by the caller.
        let weight = |id: &I| unsafe { cursor.value(id.at(), 0) }.widen();
        *score = sum_of_products::<T, V, I>(ids, values, weight);
    }
}

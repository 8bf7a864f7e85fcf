//! Steps that gather gradients in a mean. No weight changes, so that rows of data need not wait for one another.

use super::products::sum_of_products;
use super::rows::{prefetch_data, row_of};
use crate::formats::{ColumnId, CsrView};
use crate::model::RowSteps;
use crate::optimizer::{ReadRows, RowCursor, Settling, UpdateKind};
use sparse_core::element::{Factor, Float, Stored};
use sparse_core::update_rules::UpdateRule;
use std::ops::Range;
use std::slice;

/// Rows whose scores are found together, where rows are short. What they read is still near when their gradients are added.
const TOGETHER: usize = 64;

/// More entries than these, on average, are a long row.
const LONG: usize = 8;

/// As many steps as `range` has rows, of a parameter of one column whose rows [rest](Settling::known_to_rest); `None` where the cursor does more
/// than to [gather](RowCursor::only_gathers). `row_function` gives a number that is finite where the derivative is; of one that is not, the
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
) -> Option<RowSteps> {
    let first = range.start;
    let x = x.split(range.end).0.split(first).1;
    if !settling.knows_rows() {
        for place in 0..x.n_rows() {
            // SAFETY: promised by the caller.
            unsafe { settling.note_each(cursor, row_of(x, ids, place).0) };
        }
    }
    let (mut own, mut row, mut last_loss) = (*kept, first, 0.0);
    let mut saved = [T::zero().widen()];
    let take_turn = |score: &mut T::Accumulator| {
        last_loss = row_function(row, slice::from_mut(score), &mut saved, &mut own).as_f64();
        row += 1;
        last_loss.is_finite()
    };
    // SAFETY: promised by the caller.
    unsafe {
        match are_long(x) {
            true => add_long(x, ids, cursor, take_turn)?,
            false => add_short(x, ids, cursor, scores, take_turn)?,
        }
    }
    *kept = own;
    // Nobody asks for the sum.
    Some(RowSteps { n_steps: row - first, loss_sum: last_loss, last_loss })
}

/// Adds the gradients of short rows: in a loop that did all of it row by row, the processor would see little more than a row ahead while it waits
/// for an exponential.
///
/// # Safety
///
/// As for [`steps`].
#[inline(never)]
unsafe fn add_short<'a, R: UpdateRule, T: Float, V: Factor<T>, K: UpdateKind, I: ColumnId>(
    mut rest: CsrView<'a, V>,
    ids: &'a [I],
    cursor: RowCursor<'_, R, T, K>,
    scores: &mut Vec<T::Accumulator>,
    mut take_turn: impl FnMut(&mut T::Accumulator) -> bool,
) -> Option<()> {
    // Known anew, since this is a function of its own.
    let cursor = cursor.of_one_weight().only_gathers()?;
    let mut goes_on = true;
    while goes_on && rest.n_rows() > 0 {
        let (x, more) = rest.split(TOGETHER);
        rest = more;
        scores.clear();
        scores.resize(x.n_rows(), T::zero().widen());
        // SAFETY: promised by the caller.
        unsafe { find_scores(x, ids, cursor, scores) };
        // All derivatives first: their exponentials wait for nothing, not even for a wrong guess of a row's end.
        let mut n_taken = 0;
        for score in scores.iter_mut() {
            n_taken += 1;
            goes_on = take_turn(score);
            if !goes_on {
                break;
            }
        }
        for (place, score) in scores[..n_taken].iter().enumerate() {
            // SAFETY: promised by the caller.
            unsafe { add_row(x, ids, cursor, place, *score) };
        }
    }
    Some(())
}

/// Adds the gradients of long rows one after the other, while what a product has read is at its nearest.
///
/// # Safety
///
/// As for [`steps`].
#[inline(never)]
unsafe fn add_long<'a, R: UpdateRule, T: Float, V: Factor<T>, K: UpdateKind, I: ColumnId>(
    x: CsrView<'a, V>,
    ids: &'a [I],
    cursor: RowCursor<'_, R, T, K>,
    mut take_turn: impl FnMut(&mut T::Accumulator) -> bool,
) -> Option<()> {
    // As above.
    let cursor = cursor.of_one_weight().only_gathers()?;
    for place in 0..x.n_rows() {
        prefetch_data(x, ids, place);
        // SAFETY: promised by the caller.
        unsafe {
            let mut score = score_of(x, ids, cursor, place);
            let goes_on = take_turn(&mut score);
            add_row(x, ids, cursor, place, score);
            if !goes_on {
                break;
            }
        }
    }
    Some(())
}

/// Adds the gradient of a row of data, given the derivative by its score.
///
/// # Safety
///
/// As for [`steps`].
#[inline(always)]
unsafe fn add_row<'a, R: UpdateRule, T: Float, V: Factor<T>, K: UpdateKind, I: ColumnId>(
    x: CsrView<'a, V>,
    ids: &'a [I],
    cursor: RowCursor<'_, R, T, K>,
    place: usize,
    derivative: T::Accumulator,
) {
    let (ids, values) = row_of(x, ids, place);
    for (id, value) in ids.iter().zip(values) {
        // SAFETY: promised by the caller.
        unsafe { cursor.update(id.at(), 0, value.times(derivative)) };
    }
}

/// Whether rows are so long that an exponential is the smaller part of them, and their products are not better found many at a time.
fn are_long<V: Stored>(x: CsrView<'_, V>) -> bool {
    let n_entries: u64 = x.starts().iter().zip(x.ends()).map(|(start, end)| end - start).sum();
    #[cfg(target_arch = "x86_64")]
    let in_vectors = crate::lanes::x86::gathers_under_masks();
    #[cfg(not(target_arch = "x86_64"))]
    let in_vectors = false;
    !in_vectors && n_entries > (LONG * x.n_rows()) as u64
}

/// The product of a row of data with the parameter.
///
/// # Safety
///
/// As for [`steps`].
#[inline(always)]
unsafe fn score_of<'a, R: UpdateRule, T: Float, V: Factor<T>, K: UpdateKind, I: ColumnId>(
    x: CsrView<'a, V>,
    ids: &'a [I],
    cursor: RowCursor<'_, R, T, K>,
    place: usize,
) -> T::Accumulator {
    let (ids, values) = row_of(x, ids, place);
    // SAFETY: promised by the caller.
    let weight = |id: &I| unsafe { cursor.value(id.at(), 0) }.widen();
    sum_of_products::<T, V, I>(ids, values, weight)
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
    for (place, score) in scores.iter_mut().enumerate() {
        prefetch_data(x, ids, place);
        // SAFETY: promised by the caller.
        *score = unsafe { score_of(x, ids, cursor, place) };
    }
}

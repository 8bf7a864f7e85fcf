//! Many steps of one row of data each, in one call.

use super::rows::{is_large, prefetch_data, row_ahead, row_of};
use super::{Scratch, Width, row_step, with_row_loops};
use crate::error::Result;
use crate::formats::{ColumnId, CsrView};
use crate::model::{ModelError, RowSteps};
use crate::optimizer::{RowCursor, RowUpdater, Settling, UpdateKind, Updater};
use crate::table::Table;
use crate::with_rows;
use sparse_core::element::{Factor, Float};
use sparse_core::update_rules::UpdateRule;
use std::ops::Range;

/// As many steps as `range` has rows, each of one row of data: what [`step`](super::step) does for each of them as a batch of its own, but
/// what does not depend on the row is done once. Ends early after a loss that is not finite. The updater
/// [began](Updater::begin_steps) as many steps. What `row_function` changes from row to row is in `kept`, which is copied, so that it
/// can be in registers: each row waits for what the last one left there.
///
/// # Errors
///
/// As [`step`](super::step).
#[inline(always)]
#[allow(clippy::too_many_arguments)]
pub fn steps<R: UpdateRule, T: Float, V: Factor<T>, W: Width, C: Copy>(
    x: CsrView<'_, V>,
    range: Range<usize>,
    parameter: usize,
    table: &mut Table<T>,
    updater: &mut Updater<R, T>,
    width: W,
    scratch: &mut Scratch<T::Accumulator>,
    kept: &mut C,
    row_function: impl FnMut(
        usize,
        &mut [T::Accumulator],
        &mut [T::Accumulator],
        &mut C,
    ) -> T::Accumulator,
) -> Result<RowSteps> {
    with_rows!(R, T; *updater, [parameter => table], |[rows]| {
        // What the unchecked accesses below rely on.
        if rows.n_rows() != x.n_cols() || rows.row_size() != width.columns() {
            return Err(ModelError::extent("linear step", "x", 1, x.n_cols(), rows.n_rows()).into());
        }
        Ok(each_row(x, range, rows, width, scratch, kept, row_function))
    })
}

#[inline(never)]
fn each_row<R: UpdateRule, T: Float, V: Factor<T>, W: Width, K: UpdateKind, C: Copy>(
    x: CsrView<'_, V>,
    range: Range<usize>,
    rows: RowUpdater<'_, R, T, K>,
    width: W,
    scratch: &mut Scratch<T::Accumulator>,
    kept: &mut C,
    row_function: impl FnMut(
        usize,
        &mut [T::Accumulator],
        &mut [T::Accumulator],
        &mut C,
    ) -> T::Accumulator,
) -> RowSteps {
    with_row_loops!(W, x.columns(), |ids| {
        each_row_of(x, ids, range, rows, width, scratch, kept, row_function)
    })
}

#[inline(always)]
#[allow(clippy::too_many_arguments)]
fn each_row_of<
    'a,
    R: UpdateRule,
    T: Float,
    V: Factor<T>,
    W: Width,
    K: UpdateKind,
    I: ColumnId,
    C: Copy,
>(
    x: CsrView<'a, V>,
    ids: &'a [I],
    range: Range<usize>,
    mut rows: RowUpdater<'_, R, T, K>,
    width: W,
    scratch: &mut Scratch<T::Accumulator>,
    kept: &mut C,
    row_function: impl FnMut(
        usize,
        &mut [T::Accumulator],
        &mut [T::Accumulator],
        &mut C,
    ) -> T::Accumulator,
) -> RowSteps {
    let ahead = Ahead { data: !x.is_contiguous(), rows: is_large(&rows) };
    let (cursor, settling) = rows.split(width.columns());
    // In a cache a step is so short that each question counts which the loop asks: of the usual case it knows the answers.
    let usual = if ahead == Ahead::NOTHING { cursor.without_options() } else { None };
    let steps = match (usual, settling.known_to_settle()) {
        (Some(cursor), Ok(settling)) => {
            let (split, ahead) = ((cursor, settling), Ahead::NOTHING);
            steps_in_turn(x, ids, range, split, ahead, width, scratch, kept, row_function)
        }
        (_, Ok(settling) | Err(settling)) => {
            let split = (cursor, settling);
            steps_in_turn(x, ids, range, split, ahead, width, scratch, kept, row_function)
        }
    };
    rows.finish();
    steps
}

#[inline(always)]
#[allow(clippy::too_many_arguments)]
fn steps_in_turn<
    'a,
    R: UpdateRule,
    T: Float,
    V: Factor<T>,
    W: Width,
    K: UpdateKind,
    I: ColumnId,
    C: Copy,
>(
    x: CsrView<'a, V>,
    ids: &'a [I],
    range: Range<usize>,
    mut split: (RowCursor<'_, R, T, K>, Settling<'_, R, T>),
    asks: Ahead,
    width: W,
    scratch: &mut Scratch<T::Accumulator>,
    kept: &mut C,
    mut row_function: impl FnMut(
        usize,
        &mut [T::Accumulator],
        &mut [T::Accumulator],
        &mut C,
    ) -> T::Accumulator,
) -> RowSteps {
    let mut own = *kept;
    let (first, mut end) = (range.start, range.end);
    let mut steps = RowSteps::default();
    // Once for all rows, so that `row_of` need not.
    assert!(range.end <= x.n_rows() && ids.len() == x.values().len());
    for row in range {
        if asks.data {
            prefetch_data(x, ids, row);
        }
        let ahead = if asks.rows { row_ahead(x, ids, row) } else { &[] };
        let entries = row_of(x, ids, row);
        // SAFETY: a view's columns are below its `n_cols`, which `steps` compared with `n_rows`.
        let loss = unsafe {
            row_step(
                entries,
                ahead,
                &mut split,
                width,
                &mut scratch.rows,
                #[inline(always)]
                |scores, saved| row_function(row, scores, saved, &mut own),
            )
        };
        split.1.advance::<K>();
        steps.loss_sum += loss.as_f64();
        steps.last_loss = loss.as_f64();
        if !num_traits::Float::is_finite(loss) {
            end = row + 1;
            break;
        }
    }
    steps.n_steps = end - first;
    *kept = own;
    steps
}

/// What a loop over rows of data asks for before its turn.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Ahead {
    /// The data: its rows do not lie one after the other.
    data: bool,
    /// The rows of the parameter: its table is larger than a cache.
    rows: bool,
}

impl Ahead {
    const NOTHING: Ahead = Ahead { data: false, rows: false };
}

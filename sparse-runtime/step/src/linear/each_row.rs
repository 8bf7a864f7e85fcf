//! Many steps of one sample each, in one call.

use super::rows::{are_large, is_large, prefetch_data, row_ahead_by, row_of};
use super::{Scratch, Width, hogwild, mean_gradient, row_step, with_row_loops};
use crate::error::Result;
use crate::in_library;
use crate::model::{ModelError, RowSteps};
use crate::optimizer::{CatchUp, RowCursor, RowUpdater, UpdateKind, Updater};
use crate::with_rows;
use nnz_arrays::formats::{ColumnId, CsrView};
use nnz_arrays::kernels::row_loss::{Losses, RowLoss};
use nnz_arrays::parameter_memory::Table;
use nnz_device::prefetch::{AHEAD, LINES_AHEAD};
use nnz_optim::UpdateRule;
use sparse_core::element::{Factor, Float, Stored};
use std::ops::Range;
use std::slice;

/// As many steps as `range` has rows, each of one row of data: what [`step`](super::step) does for
/// each of them as a batch of its own, but what does not depend on the row is done once. Ends early
/// after a loss that is not finite. The updater [began](Updater::begin_steps) as many steps. What
/// `row_function` changes from row to row is in `kept`, which is copied, so that it can be in
/// registers: each row waits for what the last one left there.
///
/// A rule that [races](UpdateRule::RACES) makes them on the table that its updater shares with
/// others; `table` is then not asked.
///
/// # Errors
///
/// As [`step`](super::step).
#[inline(always)]
#[allow(clippy::too_many_arguments)]
pub fn steps<
    R: UpdateRule,
    T: Float,
    V: Factor<T>,
    W: Width,
    C: Copy,
    L: RowLoss<T::Accumulator>,
>(
    x: CsrView<'_, V>,
    range: Range<usize>,
    parameter: usize,
    table: &mut Table<T>,
    updater: &mut Updater<R, T>,
    width: W,
    scratch: &mut Scratch<T::Accumulator>,
    kept: &mut C,
    mut row_function: impl FnMut(usize, &mut [T::Accumulator], &mut [T::Accumulator], &mut C) -> L,
) -> Result<RowSteps> {
    if const { W::IS_ONE && in_library::has::<R, T>() } {
        let row_function = |row: usize, scores: &mut [_], saved: &mut [_]| {
            row_function(row, scores, saved, &mut *kept)
        };
        return super::in_library::steps(
            x,
            range,
            parameter,
            table,
            updater,
            scratch,
            row_function,
        );
    }
    own_steps(x, range, parameter, table, updater, width, scratch, kept, row_function)
}

/// [`steps`], compiled for their row function.
///
/// # Errors
///
/// As there.
#[inline(always)]
#[allow(clippy::too_many_arguments)]
pub fn own_steps<
    R: UpdateRule,
    T: Float,
    V: Factor<T>,
    W: Width,
    C: Copy,
    L: RowLoss<T::Accumulator>,
>(
    x: CsrView<'_, V>,
    range: Range<usize>,
    parameter: usize,
    table: &mut Table<T>,
    updater: &mut Updater<R, T>,
    width: W,
    scratch: &mut Scratch<T::Accumulator>,
    kept: &mut C,
    row_function: impl FnMut(usize, &mut [T::Accumulator], &mut [T::Accumulator], &mut C) -> L,
) -> Result<RowSteps> {
    if R::RACES {
        let rows = updater.hogwild_rows(parameter)?;
        if rows.n_rows() != x.n_cols() || rows.row_size() != width.columns() {
            return Err(ModelError::extent("linear step", "x", 1, x.n_cols(), rows.n_rows()).into());
        }
        return Ok(hogwild::steps(x, range, rows, width, scratch, kept, row_function));
    }
    with_rows!(R, T; *updater, [parameter => table], |[rows]| {
        // What the unchecked accesses below rely on.
        if rows.n_rows() != x.n_cols() || rows.row_size() != width.columns() {
            return Err(ModelError::extent("linear step", "x", 1, x.n_cols(), rows.n_rows()).into());
        }
        Ok(each_row(x, range, rows, width, scratch, kept, row_function))
    })
}

/// What `graph!` emits between a row of the product and its gradient, as [`steps`] has it.
trait RowFunction<A, C, L>: FnMut(usize, &mut [A], &mut [A], &mut C) -> L {}

impl<A, C, L, F: FnMut(usize, &mut [A], &mut [A], &mut C) -> L> RowFunction<A, C, L> for F {}

/// The rows of data of one call, with their ids of the type that they have.
#[derive(Clone, Copy)]
struct Turns<'a, V: Stored, I, W> {
    x: CsrView<'a, V>,
    ids: &'a [I],
    /// The first row, and one after the last.
    first: usize,
    end: usize,
    width: W,
}

#[inline(never)]
fn each_row<
    R: UpdateRule,
    T: Float,
    V: Factor<T>,
    W: Width,
    K: UpdateKind,
    C: Copy,
    L: RowLoss<T::Accumulator>,
>(
    x: CsrView<'_, V>,
    range: Range<usize>,
    rows: RowUpdater<'_, R, T, K>,
    width: W,
    scratch: &mut Scratch<T::Accumulator>,
    kept: &mut C,
    row_function: impl RowFunction<T::Accumulator, C, L>,
) -> RowSteps {
    let Range { start: first, end } = range;
    with_row_loops!(W, x.columns(), |ids| {
        each_row_of(Turns { x, ids, first, end, width }, rows, scratch, kept, row_function)
    })
}

#[inline(always)]
fn each_row_of<
    R: UpdateRule,
    T: Float,
    V: Factor<T>,
    W: Width,
    K: UpdateKind,
    I: ColumnId,
    C: Copy,
    L: RowLoss<T::Accumulator>,
>(
    turns: Turns<'_, V, I, W>,
    mut rows: RowUpdater<'_, R, T, K>,
    scratch: &mut Scratch<T::Accumulator>,
    kept: &mut C,
    mut row_function: impl RowFunction<T::Accumulator, C, L>,
) -> RowSteps {
    let far_rows = is_large(&rows);
    // Of patterns ids are all that there is, and who asks for rows reads those ahead.
    let reads_ahead = V::IS_UNIT && far_rows;
    let data = !turns.x.is_contiguous() || are_large(turns.x, turns.ids) && !reads_ahead;
    let ahead = Ahead { data, rows: far_rows };
    macro_rules! usual_steps {
        ($gathers:literal, $ahead:expr) => {
            usual_steps::<_, _, _, _, _, _, _, _, $gathers>(
                turns,
                $ahead,
                &mut rows,
                scratch,
                kept,
                &mut row_function,
            )
        };
    }
    let usual = match ahead {
        // A rule that corrects gradients is asked for more at each step than what is asked for
        // ahead.
        _ if R::CORRECTS => match usual_steps!(true, ahead) {
            None => usual_steps!(false, ahead),
            gathered => gathered,
        },
        // Written out, so that the function is compiled for it.
        Ahead::NOTHING => usual_steps!(false, Ahead::NOTHING),
        _ => None,
    };
    // Not in a closure: it would be compiled without the vectors that its caller has.
    let steps = match usual {
        Some(steps) => steps,
        None => {
            let split = rows.split(turns.width.columns());
            steps_in_turn::<_, _, _, _, _, _, _, _, false, false>(
                turns,
                split,
                ahead,
                scratch,
                kept,
                row_function,
            )
        }
    };
    rows.finish();
    steps
}

/// [`steps_in_turn`] in the usual case, `None` in any other. In a cache a step is so short that
/// each question counts which the loop asks: here it knows the answers. A function of its own, so
/// that the registers are its loop's. Where it `GATHERS` only, the usual case is that of a rule
/// which corrects gradients and learns their mean.
#[inline(never)]
fn usual_steps<
    R: UpdateRule,
    T: Float,
    V: Factor<T>,
    W: Width,
    K: UpdateKind,
    I: ColumnId,
    C: Copy,
    L: RowLoss<T::Accumulator>,
    const GATHERS: bool,
>(
    turns: Turns<'_, V, I, W>,
    ahead: Ahead,
    rows: &mut RowUpdater<'_, R, T, K>,
    scratch: &mut Scratch<T::Accumulator>,
    kept: &mut C,
    row_function: &mut impl RowFunction<T::Accumulator, C, L>,
) -> Option<RowSteps> {
    let (cursor, settling) = rows.split(turns.width.columns());
    let split = if GATHERS {
        (cursor.only_gathers()?, settling.known_to_rest()?)
    } else {
        (cursor.without_options()?, settling.known_to_settle()?)
    };
    macro_rules! in_turn {
        ($begins:literal, $by_length:literal, |$row:ident, $scores:ident, $saved:ident, $kept:ident| $body:expr) => {
            steps_in_turn::<_, _, _, _, _, _, _, _, $begins, $by_length>(
                turns,
                split,
                ahead,
                scratch,
                kept,
                #[inline(always)]
                |$row: usize, $scores: &mut [T::Accumulator], $saved: &mut [_], $kept: &mut C| {
                    $body
                },
            )
        };
    }
    // Constants are asked for by themselves, so that nothing is compiled that a rule or a width
    // never comes to. A row of one column is one element, which the compiler knows.
    let steps = if GATHERS {
        // Of a row that is only gathered nobody asks for the loss, which is then not computed, but
        // for whether its derivatives are finite.
        let mut derivatives = |row: usize, scores: &mut [_], saved: &mut [_], kept: &mut C| {
            row_function(row, scores, saved, kept);
            scores.iter().fold(T::zero().widen(), |sum, score| sum + *score)
        };
        if !W::IN_VECTORS && turns.width.columns() == 1 {
            let Turns { x, ids, first, end, .. } = turns;
            let scores = &mut scratch.gradients;
            // SAFETY: a view's columns are below its `n_cols`, which `steps` compared with
            // `n_rows`.
            unsafe { mean_gradient::steps(x, ids, first..end, split, scores, kept, derivatives)? }
        } else {
            in_turn!(false, false, |row, scores, saved, kept| {
                derivatives(row, scores, saved, kept)
            })
        }
    } else if !W::IN_VECTORS
        && RowCursor::<R, T, K>::HAS_TWO_PARTS
        && turns.width.columns() == 1
        && split.1.settles_by_scalars::<K>()
    {
        in_turn!(true, false, |row, scores, saved, kept| row_function(row, scores, saved, kept))
    } else if R::CORRECTS {
        in_turn!(false, false, |row, scores, saved, kept| row_function(row, scores, saved, kept))
    } else {
        in_turn!(false, true, |row, scores, saved, kept| row_function(row, scores, saved, kept))
    };
    Some(steps)
}

/// The rows of data one after the other. `BY_LENGTH`: the smallest numbers of entries are told
/// apart. Where it `BEGINS`, rows [settle by scalars](CatchUp::settles_by_scalars), have
/// [two parts](RowCursor::HAS_TWO_PARTS) of an update, and one element.
#[inline(always)]
fn steps_in_turn<
    R: UpdateRule,
    T: Float,
    V: Factor<T>,
    W: Width,
    K: UpdateKind,
    I: ColumnId,
    C: Copy,
    L: RowLoss<T::Accumulator>,
    const BEGINS: bool,
    const BY_LENGTH: bool,
>(
    Turns { x, ids, first, mut end, width }: Turns<'_, V, I, W>,
    mut split: (RowCursor<'_, R, T, K>, CatchUp<'_, R, T>),
    asks: Ahead,
    scratch: &mut Scratch<T::Accumulator>,
    kept: &mut C,
    mut row_function: impl RowFunction<T::Accumulator, C, L>,
) -> RowSteps {
    let mut own = *kept;
    let mut losses = Losses::new();
    // Once for all rows, so that `row_of` need not.
    assert!(end <= x.n_rows() && ids.len() == x.values().len());
    // Of short rows a cache holds one more.
    let distance = if W::IN_VECTORS { AHEAD } else { LINES_AHEAD + 1 };
    let mut row = first;
    /// The step of the row, and what is counted of it.
    macro_rules! take_turn {
        ($entries:expr) => {{
            if asks.data {
                prefetch_data(x, ids, row);
            }
            let ahead = if asks.rows { row_ahead_by(distance, x, ids, row) } else { &[] };
            // SAFETY: a view's columns are below its `n_cols`, which `steps` compared with
            // `n_rows`; what is asked where it begins.
            let loss = unsafe {
                row_step::<_, _, _, _, _, _, _, BEGINS>(
                    $entries,
                    ahead,
                    &mut split,
                    width,
                    &mut scratch.rows,
                    #[inline(always)]
                    |scores, saved| row_function(row, scores, saved, &mut own),
                )
            };
            split.1.advance::<K>();
            losses.add(loss);
            row += 1;
            if !loss.is_finite() {
                end = row;
            }
        }};
    }
    while row < end {
        // A loop of its own, so that it has the registers: each number of entries gets straight
        // code.
        while BY_LENGTH && row < end {
            match row_of(x, ids, row) {
                (ids @ [], values @ []) => take_turn!((ids, values)),
                ([id], [value]) => take_turn!((slice::from_ref(id), slice::from_ref(value))),
                (ids @ [_, _], values @ [_, _]) => take_turn!((ids, values)),
                _ => break,
            }
        }
        if row < end {
            take_turn!(row_of(x, ids, row));
        }
    }
    *kept = own;
    let (loss_sum, last_loss) = losses.finish();
    RowSteps { n_steps: end - first, loss_sum, last_loss }
}

/// What a loop over rows of data asks for before its turn.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Ahead {
    /// The data: they are larger than a cache, or their rows do not lie one after the other.
    data: bool,
    /// The rows of the parameter: its table is larger than a cache.
    rows: bool,
}

impl Ahead {
    const NOTHING: Ahead = Ahead { data: false, rows: false };
}

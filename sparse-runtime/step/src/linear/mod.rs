//! The loop of the fused linear step: product, row function, update.
//!
//! `graph!` composes this loop with a row function that it emits from the graph (what happens
//! between the product and its gradient), and both inline into one. A batch of one row scatters its
//! gradient straight into the update; a larger one passes over its non-zeros once forward and once
//! backward, the gradient of a parameter's row summed outside of the weight, in `f64` and in the
//! order of the batch's rows, and applied once.

#[cfg(target_arch = "x86_64")]
mod avx512;
mod batch;
mod each_row;
mod hogwild;
mod in_library;
mod mean_gradient;
#[cfg(target_arch = "x86_64")]
mod own;
mod parallel;
mod products;
mod rows;
#[cfg(test)]
mod tests;

use self::batch::{many_rows, many_short_rows};
pub use self::each_row::{own_steps, steps};
pub use nnz_device::simd::{Fixed, Runtime, Width};
pub(crate) use parallel::settle;
pub(crate) use products::{product, scatter, settled_product, sum_of_products};
pub(crate) use rows::{
    are_large, entries, is_large, is_read_anew, prefetch_data, range_of, row_ahead, row_ahead_by,
    row_of,
};

use crate::autotune::{Autotune, Begun, Stage};
use crate::column_partition::{Parts, RowPart, hand_on, parts_of_work, work_of_step};
use crate::engine::{GradientSink, Kept, Numbers, Run};
use crate::error::Result;
use crate::model::ModelError;
use crate::optimizer::{
    Beside, CatchUp, RowAccumulator, RowCursor, RowUpdater, UpdateKind, Updater, Weights,
};
use crate::with_rows;
use nnz_arrays::formats::{ColumnId, ColumnIdsView, CsrView};
use nnz_arrays::kernels::Parallel;
use nnz_arrays::kernels::row_loss::{Losses, RowLoss};
use nnz_arrays::parameter_memory::Table;
use nnz_arrays::with_column_ids;
use nnz_optim::UpdateRule;
use sparse_core::element::{Factor, Float, Stored};
use std::ops::Range;

/// Runs a loop over rows of data with their ids, compiled for vectors where rows of the width `$W`
/// are worth it, and the ids have the type that they have up to 2³² columns: by `wide`, or by
/// another function of [`lanes`](nnz_device::simd).
macro_rules! with_row_loops {
    ($W:ty, $columns:expr, |$ids:ident| $body:expr) => {
        $crate::linear::with_row_loops!($W; nnz_device::simd::wide, $columns, |$ids| $body)
    };
    ($W:ty; $run:expr, $columns:expr, |$ids:ident| $body:expr) => {
        match $columns {
            nnz_arrays::formats::ColumnIdsView::U32($ids) => {
                if <$W as $crate::linear::Width>::IN_VECTORS {
                    $run(
                        #[inline(always)]
                        || $body,
                    )
                } else {
                    $body
                }
            }
            nnz_arrays::formats::ColumnIdsView::U64($ids) => $body,
        }
    };
}

pub(crate) use with_row_loops;

/// Memory that a model keeps from step to step. A clone of the model begins with none.
#[derive(Debug, Default)]
pub struct Scratch<T> {
    pub(crate) rows: Vec<T>,
    /// The gradient with respect to the product, row by row.
    pub(crate) gradients: Vec<T>,
    /// Of an interaction: two rows of factors. Of lookups: rows as they were before the step.
    pub(crate) factors: Vec<T>,
    /// Of an interaction: what the rows of both parameters get from a batch.
    pub(crate) sums: Option<RowAccumulator>,
    /// Of a step on several threads.
    pub(crate) parts: Parts<T>,
    /// Whether it is one.
    pub(crate) autotune: Autotune,
    handed_on: Vec<products::HandedOn<T>>,
    /// Of the engine: of one sample, of runs of samples, and of a batch.
    pub(crate) numbers: Numbers<T>,
    pub(crate) engine_runs: Vec<Run<T>>,
    pub(crate) kept: Kept<T>,
    pub(crate) gradient_sink: GradientSink,
    /// Of updates by scattered gradients, of each parameter.
    pub(crate) scattered: Vec<Vec<RowPart<T>>>,
}

impl<T: Default> Clone for Scratch<T> {
    fn clone(&self) -> Self {
        Scratch::default()
    }
}

impl<T: Float> Scratch<T> {
    /// Chooses how many threads are to share a step on a batch, in which every entry reads and
    /// updates `columns` weights.
    pub(crate) fn begin<V: Stored>(
        &mut self,
        parallel: Parallel,
        x: CsrView<'_, V>,
        columns: usize,
    ) -> Begun {
        let work = work_of_step(x, columns);
        let n_parts = parts_of_work(parallel, work);
        let is_divided = n_parts > 1 && self.parts.are_even(n_parts, x);
        let parallel = if is_divided { parallel } else { Parallel::Sequential };
        self.autotune.begin(Stage::Rows, parallel, work)
    }
}

impl<T> Scratch<T> {
    /// A row of scratch, and what threads keep of one parameter.
    pub(crate) fn of_parameter(&mut self, parameter: usize) -> (&mut Vec<T>, &mut Vec<RowPart<T>>) {
        if self.scattered.len() <= parameter {
            self.scattered.resize_with(parameter + 1, Vec::new);
        }
        (&mut self.rows, &mut self.scattered[parameter])
    }
}

/// What a row's loss counts in the mean over a batch: 1 / n_rows.
#[inline(always)]
pub fn share<T: Float>(n_rows: usize) -> T {
    /// Kept from being computed for the shortest batches, which would wait for it.
    #[inline(never)]
    fn of_many(n_rows: usize) -> f64 {
        1.0 / n_rows as f64
    }
    if n_rows == 1 { T::one() } else { T::of(of_many(n_rows)) }
}

/// Whether a rule is among those that a model names, by [their names](UpdateRule::NAME).
pub const fn is_specialized<R: UpdateRule>(named: &[&str]) -> bool {
    const fn are_same(left: &[u8], right: &[u8]) -> bool {
        let mut at = 0;
        while at < left.len() && at < right.len() && left[at] == right[at] {
            at += 1;
        }
        at == left.len() && at == right.len()
    }
    let mut place = 0;
    while place < named.len() {
        if are_same(named[place].as_bytes(), R::NAME.as_bytes()) {
            return true;
        }
        place += 1;
    }
    false
}

/// One step on a batch: returns the mean of the rows' losses. For the rules and elements of which
/// [the library has the loops](crate::in_library), it calls the row function by a pointer;
/// [`own_step`] is compiled for it.
///
/// `row_function(row, scores, saved)` gets a row of the product in `scores`, replaces it by the
/// gradient of the batch's loss with respect to it, and returns the row's own loss, of which a part
/// may be computed later. `saved` is scratch of the same length. O(nnz · columns + rows touched ·
/// cost of the rule). A pattern is read without values, and nothing is multiplied with them.
/// `parallel` threads share the work of a large batch; the bits do not depend on it.
///
/// # Errors
///
/// [`ModelError::Extent`] unless the batch is as wide as the parameter has rows.
#[inline(always)]
#[allow(clippy::too_many_arguments)]
pub fn step<R: UpdateRule, T: Float, V: Factor<T>, W: Width, L: RowLoss<T::Accumulator>>(
    x: CsrView<'_, V>,
    parameter: usize,
    table: &mut Table<T>,
    updater: &mut Updater<R, T>,
    width: W,
    parallel: Parallel,
    scratch: &mut Scratch<T::Accumulator>,
    row_function: impl FnMut(usize, &mut [T::Accumulator], &mut [T::Accumulator]) -> L,
) -> Result<f64> {
    if const { W::IS_ONE && crate::in_library::has::<R, T>() } {
        return in_library::step(x, parameter, table, updater, parallel, scratch, row_function);
    }
    own_step(x, parameter, table, updater, width, parallel, scratch, row_function)
}

/// [`step`], compiled for its row function.
///
/// # Errors
///
/// As there.
#[inline(always)]
#[allow(clippy::too_many_arguments)]
pub fn own_step<R: UpdateRule, T: Float, V: Factor<T>, W: Width, L: RowLoss<T::Accumulator>>(
    x: CsrView<'_, V>,
    parameter: usize,
    table: &mut Table<T>,
    updater: &mut Updater<R, T>,
    width: W,
    parallel: Parallel,
    scratch: &mut Scratch<T::Accumulator>,
    row_function: impl FnMut(usize, &mut [T::Accumulator], &mut [T::Accumulator]) -> L,
) -> Result<f64> {
    if !W::IN_VECTORS
        && !updater.is_plain(parameter)
        && updater.is_beside(parameter, &Weights::Table(table))
        && updater.wants_slots(parameter, table, (x.n_rows(), x.nnz()))
    {
        let rows = updater.rows_with_slots::<Beside>(parameter, table, x.nnz())?;
        check(x, &rows, width)?;
        return Ok(any_rows(x, rows, width, parallel, scratch, row_function));
    }
    with_rows!(R, T; *updater, [parameter => table], |[rows]| {
        check(x, &rows, width)?;
        // The shortest step is inlined into the loop over batches, where a call would cost as much
        // as some rows.
        let is_short = x.n_rows() == 1 && rows.is_plain();
        let loss = match x.columns() {
            ColumnIdsView::U32(ids) if is_short => {
                one_row(x, ids, rows, width, scratch, row_function).now().as_f64()
            }
            _ => any_rows(x, rows, width, parallel, scratch, row_function),
        };
        Ok(loss)
    })
}

/// What the unchecked accesses below rely on.
#[inline(always)]
fn check<R: UpdateRule, T: Float, V: Stored, K: UpdateKind>(
    x: CsrView<'_, V>,
    rows: &RowUpdater<'_, R, T, K>,
    width: impl Width,
) -> Result<()> {
    if rows.n_rows() != x.n_cols() || rows.row_size() != width.columns() {
        return Err(ModelError::extent("linear step", "x", 1, x.n_cols(), rows.n_rows()).into());
    }
    Ok(())
}

#[inline(never)]
fn any_rows<
    R: UpdateRule,
    T: Float,
    V: Factor<T>,
    W: Width,
    K: UpdateKind,
    L: RowLoss<T::Accumulator>,
>(
    x: CsrView<'_, V>,
    rows: RowUpdater<'_, R, T, K>,
    width: W,
    parallel: Parallel,
    scratch: &mut Scratch<T::Accumulator>,
    mut row_function: impl FnMut(usize, &mut [T::Accumulator], &mut [T::Accumulator]) -> L,
) -> f64 {
    let n_rows = x.n_rows();
    let begun = scratch.begin(parallel, x, width.columns());
    let loss = if n_rows == 1 {
        let loss = if W::IN_VECTORS {
            with_row_loops!(W, x.columns(), |ids| {
                one_row(x, ids, rows, width, scratch, row_function)
            })
        } else {
            let (mut loss, mut row_scratch) = (L::default(), std::mem::take(&mut scratch.rows));
            one_short_row(x, rows, width, scratch, &mut |_, scores| {
                width.with_rows(
                    &mut row_scratch,
                    #[inline(always)]
                    |_, saved| loss = row_function(0, scores, saved),
                );
            });
            scratch.rows = row_scratch;
            loss
        };
        loss.now().as_f64()
    } else {
        let mut losses = Losses::new();
        if W::IN_VECTORS && begun.n_parts == 1 {
            with_row_loops!(W, x.columns(), |ids| many_rows(
                x,
                ids,
                rows,
                width,
                scratch,
                #[inline(always)]
                |row, scores, saved| losses.add(row_function(row, scores, saved)),
            ));
        } else {
            let mut row_scratch = std::mem::take(&mut scratch.rows);
            let row_functions: RowFunctions<'_, _> = &mut |rows, scores| {
                for (row, scores) in rows.zip(scores.chunks_exact_mut(width.columns().max(1))) {
                    width.with_rows(
                        &mut row_scratch,
                        #[inline(always)]
                        |_, saved| losses.add(row_function(row, scores, saved)),
                    );
                }
            };
            if begun.n_parts > 1 {
                // Of rows of several columns, reading what the other threads have written costs
                // more.
                let hands_on = hand_on() || width.columns() > 1;
                let threads = (begun.n_parts, hands_on);
                parallel::step(threads, x, rows, width, scratch, row_functions);
            } else {
                many_short_rows(x, rows, width, scratch, row_functions);
            }
            scratch.rows = row_scratch;
        }
        losses.finish().0 / n_rows.max(1) as f64
    };
    scratch.autotune.end(begun);
    loss
}

/// The row function on some rows of data, given their scores row by row, which it replaces by
/// gradients. What calls it, once for many entries, is compiled once for all models.
type RowFunctions<'f, A> = &'f mut dyn FnMut(Range<usize>, &mut [A]);

/// [`one_row`] where rows of the parameter are too short for vectors.
#[inline(never)]
fn one_short_row<R: UpdateRule, T: Float, V: Factor<T>, W: Width, K: UpdateKind>(
    x: CsrView<'_, V>,
    rows: RowUpdater<'_, R, T, K>,
    width: W,
    scratch: &mut Scratch<T::Accumulator>,
    row_functions: RowFunctions<'_, T::Accumulator>,
) {
    with_column_ids!(x.columns(), |ids| one_row(
        x,
        ids,
        rows,
        width,
        scratch,
        #[inline(always)]
        |row, scores, _| row_functions(row..row + 1, scores),
    ));
}

#[inline(always)]
fn one_row<'a, R: UpdateRule, T: Float, V: Factor<T>, W: Width, K: UpdateKind, I: ColumnId, L>(
    x: CsrView<'a, V>,
    ids: &'a [I],
    mut rows: RowUpdater<'_, R, T, K>,
    width: W,
    scratch: &mut Scratch<T::Accumulator>,
    mut row_function: impl FnMut(usize, &mut [T::Accumulator], &mut [T::Accumulator]) -> L,
) -> L {
    let upcoming = ids.get(x.upcoming()).filter(|_| is_large(&rows)).unwrap_or_default();
    let row = row_of(x, ids, 0);
    // SAFETY: a view's columns are below its `n_cols`, which `step` compared with `n_rows`.
    let loss = unsafe {
        let mut split = rows.split(width.columns());
        row_step::<_, _, _, _, _, _, _, false>(
            row,
            upcoming,
            &mut split,
            width,
            &mut scratch.rows,
            #[inline(always)]
            |scores, saved| row_function(0, scores, saved),
        )
    };
    rows.finish();
    loss
}

/// A step of one row of data, `(ids, values)`, from the product to the update without storing
/// anything. The rows that `ahead` names are asked for. Where it `BEGINS`, updates are begun as the
/// product reads the weights.
///
/// # Safety
///
/// The ids are below the parameter's rows, of `width.columns()` elements. Where it `BEGINS`, that
/// is one element, and what [`begun_product`](products::begun_product) asks for holds.
#[inline(always)]
unsafe fn row_step<
    R: UpdateRule,
    T: Float,
    V: Factor<T>,
    W: Width,
    K: UpdateKind,
    I: ColumnId,
    L,
    const BEGINS: bool,
>(
    (ids, values): (&[I], &[V]),
    ahead: &[I],
    (cursor, settling): &mut (RowCursor<'_, R, T, K>, CatchUp<'_, R, T>),
    width: W,
    scratch: &mut Vec<T::Accumulator>,
    row_function: impl FnOnce(&mut [T::Accumulator], &mut [T::Accumulator]) -> L,
) -> L {
    let cursor = *cursor;
    // Before the product where rows are short: what waits for its sum waits for the exponential of
    // a loss as well, and the processor sees only so far beyond. Long rows fill a cache, from which
    // the product should have read before.
    if !W::IN_VECTORS {
        ask_for_each(ahead, cursor, settling);
    }
    let loss = width.with_rows(
        scratch,
        #[inline(always)]
        |scores, saved| {
            if BEGINS {
                // SAFETY: promised by the caller.
                scores.fill(unsafe { products::begun_product(ids, values, cursor, settling) });
                let loss = row_function(scores, saved);
                if let [gradient] = *scores {
                    // SAFETY: as above.
                    unsafe { products::follow_each(ids, values, cursor, gradient) };
                }
                return loss;
            }
            // SAFETY: promised by the caller; the scores are as many as the parameter's columns.
            // The rows are those that are updated below.
            unsafe { settled_product(ids, values, cursor, settling, true, width, scores) };
            if W::IN_VECTORS {
                ask_for_each(ahead, cursor, settling);
            }
            let loss = row_function(scores, saved);
            // SAFETY: as above.
            unsafe { scatter(ids, values, cursor, width, scores) };
            loss
        },
    );
    settling.mark_unsettled::<K, _>(ids);
    loss
}

/// Asks for rows of the parameter, and for what is known of them.
#[inline(always)]
fn ask_for_each<R: UpdateRule, T: Float, K: UpdateKind, I: ColumnId>(
    ids: &[I],
    rows: RowCursor<'_, R, T, K>,
    settling: &CatchUp<'_, R, T>,
) {
    for id in ids {
        rows.prefetch(id.at());
    }
    settling.prefetch_each::<K, _>(ids);
}

//! The loop of the fused linear step: product, row function, update.
//!
//! `graph!` composes this loop with a row function that it emits from the graph (what happens between the
//! product and its gradient), and both inline into one. A batch of one row scatters its gradient straight into
//! the update; a larger one passes over its non-zeros once forward and once backward, the gradient of a
//! parameter's row summed in the order of the batch's rows.

mod in_parts;
mod width;

pub use self::width::{Fixed, Runtime, Width};
pub(crate) use in_parts::{Read, settle};

use crate::error::Result;
use crate::formats::{ColumnId, ColumnIdsView, CsrView};
use crate::kernels::Parallel;
use crate::model::{ModelError, RowSteps};
use crate::optimizer::{
    ReadRows, RowAccumulator, RowCursor, RowUpdater, Settling, UpdateKind, Updater,
};
use crate::prefetch::prefetch_run;
use crate::row_parts::{RowPart, parts_of_step};
use crate::table::Table;
use crate::with_rows;
use sparse_core::element::{Factor, Float, Stored};
use sparse_core::update_rules::UpdateRule;
use std::ops::Range;

/// Runs a loop over rows of data with their ids, compiled for vectors where rows of the width `$W` are worth it, and the ids have the
/// type that they have up to 2³² columns.
macro_rules! with_row_loops {
    ($W:ty, $columns:expr, |$ids:ident| $body:expr) => {
        match $columns {
            $crate::formats::ColumnIdsView::U32($ids) => {
                if <$W as $crate::linear::Width>::IN_VECTORS {
                    $crate::lanes::wide(
                        #[inline(always)]
                        || $body,
                    )
                } else {
                    $body
                }
            }
            $crate::formats::ColumnIdsView::U64($ids) => $body,
        }
    };
}

pub(crate) use with_row_loops;

/// Memory that a model keeps from step to step.
#[derive(Clone, Debug, Default)]
pub struct Scratch<T> {
    pub(crate) rows: Vec<T>,
    /// The gradient with respect to the product, row by row.
    pub(crate) gradients: Vec<T>,
    /// Of an interaction: two rows of factors. Of lookups: rows as they were before the step.
    pub(crate) factors: Vec<T>,
    /// Of an interaction: what the rows of both parameters get from a batch.
    pub(crate) sums: Option<RowAccumulator<T>>,
    /// Of a step on several threads.
    pub(crate) parts: Vec<RowPart<T>>,
    pub(crate) read: Read<T>,
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

/// One step on a batch: returns the mean of the rows' losses.
///
/// `row_function(row, scores, saved)` gets a row of the product in `scores`, replaces it by the gradient of the
/// batch's loss with respect to it, and returns the row's own loss. `saved` is scratch of the same length. O(nnz ·
/// columns + rows touched · cost of the rule). A pattern is read without values, and nothing is multiplied with them.
/// `parallel` threads share the work of a large batch; the bits do not depend on it.
///
/// # Errors
///
/// [`ModelError::Extent`] unless the batch is as wide as the parameter has rows.
#[inline(always)]
#[allow(clippy::too_many_arguments)]
pub fn step<R: UpdateRule, T: Float, V: Factor<T>, W: Width>(
    x: CsrView<'_, V>,
    parameter: usize,
    table: &mut Table<T>,
    updater: &mut Updater<R, T>,
    width: W,
    parallel: Parallel,
    scratch: &mut Scratch<T::Accumulator>,
    row_function: impl FnMut(usize, &mut [T::Accumulator], &mut [T::Accumulator]) -> T::Accumulator,
) -> Result<f64> {
    with_rows!(R, T; *updater, [parameter => table], |[rows]| {
        // What the unchecked accesses below rely on.
        if rows.n_rows() != x.n_cols() || rows.row_size() != width.columns() {
            return Err(ModelError::extent("linear step", "x", 1, x.n_cols(), rows.n_rows()).into());
        }
        // The shortest step is inlined into the loop over batches, where a call would cost as much as some rows.
        let is_short = x.n_rows() == 1 && rows.is_plain();
        let loss = match x.columns() {
            ColumnIdsView::U32(ids) if is_short => {
                one_row(x, ids, rows, width, scratch, row_function)
            }
            _ => any_rows(x, rows, width, parallel, scratch, row_function),
        };
        Ok(loss)
    })
}

#[inline(never)]
fn any_rows<R: UpdateRule, T: Float, V: Factor<T>, W: Width, K: UpdateKind>(
    x: CsrView<'_, V>,
    rows: RowUpdater<'_, R, T, K>,
    width: W,
    parallel: Parallel,
    scratch: &mut Scratch<T::Accumulator>,
    row_function: impl FnMut(usize, &mut [T::Accumulator], &mut [T::Accumulator]) -> T::Accumulator,
) -> f64 {
    let n_parts = parts_of_step(parallel, x, width.columns());
    if n_parts > 1 {
        return in_parts::step(n_parts, x, rows, width, scratch, row_function);
    }
    with_row_loops!(W, x.columns(), |ids| if x.n_rows() == 1 {
        one_row(x, ids, rows, width, scratch, row_function)
    } else {
        many_rows(x, ids, rows, width, scratch, row_function)
    })
}

#[inline(always)]
fn one_row<'a, R: UpdateRule, T: Float, V: Factor<T>, W: Width, K: UpdateKind, I: ColumnId>(
    x: CsrView<'a, V>,
    ids: &'a [I],
    mut rows: RowUpdater<'_, R, T, K>,
    width: W,
    scratch: &mut Scratch<T::Accumulator>,
    mut row_function: impl FnMut(usize, &mut [T::Accumulator], &mut [T::Accumulator]) -> T::Accumulator,
) -> f64 {
    let upcoming = ids.get(x.upcoming()).filter(|_| is_large(&rows)).unwrap_or_default();
    let row = row_of(x, ids, 0);
    // SAFETY: a view's columns are below its `n_cols`, which `step` compared with `n_rows`.
    let loss = unsafe {
        let mut split = rows.split(width.columns());
        row_step(
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
    loss.as_f64()
}

/// A step of one row of data, `(ids, values)`, from the product to the update without storing anything. The rows that
/// `ahead` names are asked for.
///
/// # Safety
///
/// The ids are below the parameter's rows, of `width.columns()` elements.
#[inline(always)]
unsafe fn row_step<R: UpdateRule, T: Float, V: Factor<T>, W: Width, K: UpdateKind, I: ColumnId>(
    (ids, values): (&[I], &[V]),
    ahead: &[I],
    (cursor, settling): &mut (RowCursor<'_, R, T, K>, Settling<'_, R, T>),
    width: W,
    scratch: &mut Vec<T::Accumulator>,
    row_function: impl FnOnce(&mut [T::Accumulator], &mut [T::Accumulator]) -> T::Accumulator,
) -> T::Accumulator {
    let cursor = *cursor;
    // SAFETY: promised by the caller. The rows are those that are updated below.
    unsafe { settling.settle_each(cursor, ids, true) };
    let loss = width.with_rows(
        scratch,
        #[inline(always)]
        |scores, saved| {
            // SAFETY: promised by the caller; the scores are as many as the parameter's columns.
            unsafe { product(ids, values, cursor, width, scores) };
            for id in ahead {
                cursor.prefetch(id.at());
            }
            settling.prefetch_each::<K, _>(ahead);
            let loss = row_function(scores, saved);
            // SAFETY: as above.
            unsafe { scatter(ids, values, cursor, width, scores) };
            loss
        },
    );
    settling.mark_unsettled::<K, _>(ids);
    loss
}

/// As many steps as `range` has rows, each of one row of data: what [`step`] does for each of them as a batch of its own, but
/// what does not depend on the row is done once. Ends early after a loss that is not finite. The updater
/// [began](Updater::begin_steps) as many steps. What `row_function` changes from row to row is in `kept`, which is copied, so that it
/// can be in registers: each row waits for what the last one left there.
///
/// # Errors
///
/// As [`step`].
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

/// Asks for the entries of a row of data some rows ahead, where they do not lie one after the other: then the processor
/// foresees them.
#[inline(always)]
pub(crate) fn prefetch_data<V: Stored, I: ColumnId>(x: CsrView<'_, V>, ids: &[I], row: usize) {
    if !x.is_contiguous() && row + 4 * AHEAD < x.n_rows() {
        let entries = range_of(x, row + 4 * AHEAD);
        prefetch_run(ids, entries.start, entries.end);
        prefetch_run(x.values(), entries.start, entries.end);
    }
}

/// The ids of the row of data whose rows are asked for now.
#[inline(always)]
pub(crate) fn row_ahead<'a, V: Stored, I: ColumnId>(
    x: CsrView<'a, V>,
    ids: &'a [I],
    row: usize,
) -> &'a [I] {
    if row + AHEAD < x.n_rows() { row_of(x, ids, row + AHEAD).0 } else { &[] }
}

/// Rows of data between asking for the rows of a parameter and reading them, and between asking for the data and
/// reading that.
pub(crate) const AHEAD: usize = 2;

/// Bytes of a table that is larger than a cache.
pub(crate) const LARGE: usize = 1 << 20;

/// Whether asking ahead pays: the table is larger than a cache.
#[inline(always)]
pub(crate) fn is_large<R: UpdateRule, T: Float, K: UpdateKind>(
    rows: &RowUpdater<'_, R, T, K>,
) -> bool {
    rows.bytes() >= LARGE
}

#[inline(always)]
fn many_rows<'a, R: UpdateRule, T: Float, V: Factor<T>, W: Width, K: UpdateKind, I: ColumnId>(
    x: CsrView<'a, V>,
    ids: &'a [I],
    mut rows: RowUpdater<'_, R, T, K>,
    width: W,
    scratch: &mut Scratch<T::Accumulator>,
    mut row_function: impl FnMut(usize, &mut [T::Accumulator], &mut [T::Accumulator]) -> T::Accumulator,
) -> f64 {
    let (n_rows, columns) = (x.n_rows(), width.columns());
    let large = is_large(&rows);
    let Scratch { rows: row_scratch, gradients, .. } = scratch;
    gradients.clear();
    let mut total = 0.0;
    for row in 0..n_rows {
        prefetch_data(x, ids, row);
        if large {
            rows.prefetch_each(columns, row_ahead(x, ids, row));
        }
        let (ids, values) = row_of(x, ids, row);
        // SAFETY: a view's columns are below its `n_cols`, which `step` compared with `n_rows`.
        unsafe { rows.settle_each(columns, ids) };
        let cursor = rows.cursor(columns);
        width.with_rows(
            row_scratch,
            #[inline(always)]
            |scores, saved| {
                // SAFETY: as above; the scores are as many as the parameter's columns.
                unsafe { product(ids, values, cursor, width, scores) };
                total += row_function(row, scores, saved).as_f64();
                gradients.extend_from_slice(scores);
            },
        );
    }
    if K::PLAIN {
        // Such a rule only adds: what a row of data contributes is added in its turn, without a sum in between.
        let cursor = rows.cursor(columns);
        for (row, gradient) in gradients.chunks_exact_mut(columns.max(1)).enumerate() {
            let (ids, values) = row_of(x, ids, row);
            // SAFETY: as above.
            unsafe { scatter(ids, values, cursor, width, gradient) };
        }
    } else {
        let sums = rows.sums_mut();
        for (row, gradient) in gradients.chunks_exact_mut(columns.max(1)).enumerate() {
            if large {
                sums.prefetch_each(row_ahead(x, ids, row));
            }
            let (ids, values) = row_of(x, ids, row);
            width.in_registers(
                gradient,
                #[inline(always)]
                // SAFETY: as above; the sums are for `n_rows` rows.
                |gradient| unsafe { sums.add_outer::<_, T, _>(entries(ids, values), gradient) },
            );
        }
        rows.apply_accumulated_as(columns);
    }
    rows.finish();
    total / n_rows.max(1) as f64
}

/// Adds the product of a csr row with the parameter to `scores`, which are zero.
///
/// # Safety
///
/// `ids` are below the parameter's rows; `scores` has as many elements as a row.
#[inline(always)]
pub(crate) unsafe fn product<'a, T: Float, V: Factor<T>, W: Width, I: ColumnId>(
    ids: &[I],
    values: &[V],
    rows: impl ReadRows<'a, T>,
    width: W,
    scores: &mut [T::Accumulator],
) {
    if let [score] = scores {
        // SAFETY: promised by the caller.
        let weight = |id: &I| unsafe { rows.value(id.at(), 0) }.widen();
        *score = sum_of_products::<T, V, I>(ids, values, weight);
        return;
    }
    width.in_registers(
        scores,
        #[inline(always)]
        |scores| {
            for (id, value) in ids.iter().zip(values) {
                // SAFETY: promised by the caller.
                let weights = unsafe { rows.row(id.at()) };
                for (score, weight) in scores.iter_mut().zip(weights) {
                    *score += value.times(weight.widen());
                }
            }
        },
    );
}

/// [`product`] with a parameter of one column, given what leads to the weight of each entry, in four sums, so that an addition does not
/// wait for the one before it.
#[inline(always)]
fn sum_of_products<T: Float, V: Factor<T>, I>(
    ids: &[I],
    values: &[V],
    weight: impl Fn(&I) -> T::Accumulator,
) -> T::Accumulator {
    let term = |id: &I, value: &V| value.times(weight(id));
    let zero = T::zero().widen();
    // Of the shortest rows, without the sums that stay 0: to the same bits.
    match (ids, values) {
        ([], _) => return zero,
        ([id], [value]) => return zero + term(id, value),
        ([a, b], [x, y]) => return (zero + term(a, x)) + (zero + term(b, y)),
        _ => {}
    }
    let mut sums = [zero; 4];
    let (id_chunks, id_rest) = ids.as_chunks::<4>();
    let (value_chunks, value_rest) = values.as_chunks::<4>();
    for (ids, values) in id_chunks.iter().zip(value_chunks) {
        for lane in 0..4 {
            sums[lane] += term(&ids[lane], &values[lane]);
        }
    }
    for (lane, (id, value)) in id_rest.iter().zip(value_rest).enumerate() {
        sums[lane] += term(id, value);
    }
    (sums[0] + sums[1]) + (sums[2] + sums[3])
}

/// Updates the rows that a csr row names, each once, with its value times `gradient`, which may be overwritten.
///
/// # Safety
///
/// As for [`product`].
#[inline(always)]
pub(crate) unsafe fn scatter<
    R: UpdateRule,
    T: Float,
    V: Factor<T>,
    W: Width,
    K: UpdateKind,
    I: ColumnId,
>(
    ids: &[I],
    values: &[V],
    rows: RowCursor<'_, R, T, K>,
    width: W,
    gradient: &mut [T::Accumulator],
) {
    width.in_registers(
        gradient,
        #[inline(always)]
        |gradient| {
            if let Some(factor) = rows.plain_factor() {
                gradient.iter_mut().for_each(|gradient| *gradient *= factor);
                for (id, value) in ids.iter().zip(values) {
                    // SAFETY: promised by the caller.
                    unsafe { rows.add_row(id.at(), gradient, |change| value.times(change)) };
                }
                return;
            }
            for (id, value) in ids.iter().zip(values) {
                let by = |gradient, _| value.times(gradient);
                // SAFETY: promised by the caller.
                unsafe { rows.update_row_by(id.at(), gradient, by) };
            }
        },
    );
}

/// Ids and values side by side.
#[inline(always)]
pub(crate) fn entries<I: ColumnId, V: Stored>(
    ids: &[I],
    values: &[V],
) -> impl ExactSizeIterator<Item = (I, V)> {
    ids.iter().copied().zip(values.iter().copied())
}

/// Ids and values of one row of a view.
#[inline(always)]
pub(crate) fn row_of<'a, V: Stored, I: ColumnId>(
    x: CsrView<'a, V>,
    ids: &'a [I],
    row: usize,
) -> (&'a [I], &'a [V]) {
    // All that there is to ask of them, as `CsrView` says.
    assert!(row < x.n_rows() && ids.len() == x.values().len());
    // SAFETY: starts and ends are as many as rows, and in order and within the entries.
    unsafe {
        let (start, end) = (*x.starts().get_unchecked(row), *x.ends().get_unchecked(row));
        let range = start as usize..end as usize;
        (ids.get_unchecked(range.clone()), x.values().get_unchecked(range))
    }
}

/// Where the entries of one row of a view lie.
#[inline(always)]
pub(crate) fn range_of<V: Stored>(x: CsrView<'_, V>, row: usize) -> Range<usize> {
    x.starts()[row] as usize..x.ends()[row] as usize
}

//! The loop of the fused linear step: product, row function, update.
//!
//! `graph!` composes this loop with a row function that it emits from the graph (what happens between the
//! product and its gradient), and both inline into one. A batch of one row scatters its gradient straight into
//! the update; a larger one passes over its non-zeros once forward and once backward, the gradient of a
//! parameter's row summed in the order of the batch's rows.

use crate::error::Result;
use crate::formats::{ColumnId, ColumnIdsView, CsrView};
use crate::model::ModelError;
use crate::optimizer::{RowAccumulator, RowUpdater, UpdateKind, Updater};
use crate::prefetch::prefetch_run;
use crate::table::Table;
use crate::{with_column_ids, with_rows};
use sparse_core::element::Float;
use sparse_core::update_rules::UpdateRule;
use std::ops::Range;

/// The columns of the product: known to the compiler or to the model only.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a number of columns",
    note = "`graph!` chooses it: `Fixed` where the source has a number, else `Runtime`"
)]
pub trait Width: Copy {
    /// The number of columns.
    fn columns(&self) -> usize;

    /// Runs `body` with two rows of scratch, the first of them zero: on the stack where the width is known.
    fn with_rows<T: Float, O>(
        &self,
        scratch: &mut Vec<T>,
        body: impl FnOnce(&mut [T], &mut [T]) -> O,
    ) -> O;
}

/// A width written in the source.
#[derive(Clone, Copy, Debug)]
pub struct Fixed<const K: usize>;

/// A width given when the model was made.
#[derive(Clone, Copy, Debug)]
pub struct Runtime(pub usize);

impl<const K: usize> Width for Fixed<K> {
    #[inline(always)]
    fn columns(&self) -> usize {
        K
    }

    #[inline(always)]
    fn with_rows<T: Float, O>(
        &self,
        _: &mut Vec<T>,
        body: impl FnOnce(&mut [T], &mut [T]) -> O,
    ) -> O {
        body(&mut [T::zero(); K], &mut [T::zero(); K])
    }
}

impl Width for Runtime {
    #[inline(always)]
    fn columns(&self) -> usize {
        self.0
    }

    #[inline(always)]
    fn with_rows<T: Float, O>(
        &self,
        scratch: &mut Vec<T>,
        body: impl FnOnce(&mut [T], &mut [T]) -> O,
    ) -> O {
        scratch.resize(2 * self.0, T::zero());
        let (scores, saved) = scratch.split_at_mut(self.0);
        // What the last row of data left there.
        scores.fill(T::zero());
        body(scores, saved)
    }
}

/// Memory that a model keeps from step to step.
#[derive(Clone, Debug, Default)]
pub struct Scratch<T> {
    rows: Vec<T>,
    /// The gradient with respect to the product, row by row.
    gradients: Vec<T>,
    /// Of an interaction: two rows of factors.
    pub(crate) factors: Vec<T>,
    /// Of an interaction: what the rows of both parameters get from a batch.
    pub(crate) sums: Option<RowAccumulator<T>>,
}

/// One step on a batch: returns the mean of the rows' losses.
///
/// `row_function(row, scores, saved)` gets a row of the product in `scores`, replaces it by the gradient of the
/// batch's loss with respect to it, and returns the row's own loss. `saved` is scratch of the same length. O(nnz ·
/// columns + rows touched · cost of the rule).
///
/// # Errors
///
/// [`ModelError::Extent`] unless the batch is as wide as the parameter has rows.
#[inline(always)]
pub fn step<R: UpdateRule, T: Float, W: Width>(
    x: CsrView<'_, T>,
    parameter: usize,
    table: &mut Table<T>,
    updater: &mut Updater<R, T>,
    width: W,
    scratch: &mut Scratch<T::Accumulator>,
    row_function: impl FnMut(usize, &mut [T::Accumulator], &mut [T::Accumulator]) -> T::Accumulator,
) -> Result<f64> {
    with_rows!(*updater, [parameter => table], |[rows]| {
        // What the unchecked accesses below rely on.
        if rows.n_rows() != x.n_cols() || rows.row_size() != width.columns() {
            return Err(ModelError::extent("linear step", "x", 1, x.n_cols(), rows.n_rows()).into());
        }
        rows.assume_row_size(width.columns());
        // The shortest step is inlined into the loop over batches, where a call would cost as much as some rows.
        let is_short = x.n_rows() == 1 && rows.plain_factor().is_some();
        let loss = match x.columns() {
            ColumnIdsView::U32(ids) if is_short => {
                one_row(x, ids, rows, width, scratch, row_function)
            }
            _ => any_rows(x, rows, width, scratch, row_function),
        };
        Ok(loss)
    })
}

#[inline(never)]
fn any_rows<R: UpdateRule, T: Float, W: Width, K: UpdateKind>(
    x: CsrView<'_, T>,
    mut rows: RowUpdater<'_, R, T, K>,
    width: W,
    scratch: &mut Scratch<T::Accumulator>,
    row_function: impl FnMut(usize, &mut [T::Accumulator], &mut [T::Accumulator]) -> T::Accumulator,
) -> f64 {
    // Known here as well.
    rows.assume_row_size(width.columns());
    with_column_ids!(x.columns(), |ids| if x.n_rows() == 1 {
        one_row(x, ids, rows, width, scratch, row_function)
    } else {
        many_rows(x, ids, rows, width, scratch, row_function)
    })
}

#[inline(always)]
fn one_row<'a, R: UpdateRule, T: Float, W: Width, K: UpdateKind, I: ColumnId>(
    x: CsrView<'a, T>,
    ids: &'a [I],
    mut rows: RowUpdater<'_, R, T, K>,
    width: W,
    scratch: &mut Scratch<T::Accumulator>,
    mut row_function: impl FnMut(usize, &mut [T::Accumulator], &mut [T::Accumulator]) -> T::Accumulator,
) -> f64 {
    let upcoming = ids.get(x.upcoming()).filter(|_| is_large(&rows)).unwrap_or_default();
    let (ids, values) = row_of(x, ids, 0);
    let loss = width.with_rows(
        &mut scratch.rows,
        #[inline(always)]
        |scores, saved| {
            // SAFETY: a view's columns are below its `n_cols`, which `step` compared with `n_rows`; the
            // scores are as many as the parameter's columns.
            unsafe { product(ids, values, &mut rows, scores) };
            for id in upcoming {
                rows.prefetch(id.at());
            }
            let loss = row_function(0, scores, saved);
            if let Some(factor) = rows.plain_factor() {
                scores.iter_mut().for_each(|gradient| *gradient *= factor);
            }
            for (id, value) in ids.iter().zip(values) {
                for (column, gradient) in scores.iter().enumerate() {
                    // SAFETY: as above.
                    unsafe {
                        match rows.plain_factor() {
                            Some(_) => {
                                rows.add_unchecked(id.at(), column, value.widen() * *gradient)
                            }
                            None => {
                                rows.update_unchecked(id.at(), column, value.widen() * *gradient)
                            }
                        }
                    }
                }
            }
            loss
        },
    );
    rows.finish();
    loss.as_f64()
}

/// Rows of data between asking for the rows of a parameter and reading them, and between asking for the data and
/// reading that.
pub(crate) const AHEAD: usize = 2;

/// Whether asking ahead pays: the table is larger than a cache.
#[inline(always)]
pub(crate) fn is_large<R: UpdateRule, T: Float, K: UpdateKind>(
    rows: &RowUpdater<'_, R, T, K>,
) -> bool {
    const LARGE: usize = 1 << 20;
    rows.bytes() >= LARGE
}

#[inline(always)]
fn many_rows<'a, R: UpdateRule, T: Float, W: Width, K: UpdateKind, I: ColumnId>(
    x: CsrView<'a, T>,
    ids: &'a [I],
    mut rows: RowUpdater<'_, R, T, K>,
    width: W,
    scratch: &mut Scratch<T::Accumulator>,
    mut row_function: impl FnMut(usize, &mut [T::Accumulator], &mut [T::Accumulator]) -> T::Accumulator,
) -> f64 {
    let (n_rows, columns) = (x.n_rows(), width.columns());
    let large = is_large(&rows);
    let scattered = !x.is_contiguous();
    let Scratch { rows: row_scratch, gradients, .. } = scratch;
    gradients.clear();
    let mut total = 0.0;
    for row in 0..n_rows {
        // The processor foresees rows that lie one after the other; not those of a shuffled batch.
        if scattered && row + 4 * AHEAD < n_rows {
            let entries = range_of(x, row + 4 * AHEAD);
            prefetch_run(ids, entries.start, entries.end);
            prefetch_run(x.values(), entries.start, entries.end);
        }
        if large && row + AHEAD < n_rows {
            for id in row_of(x, ids, row + AHEAD).0 {
                rows.prefetch(id.at());
            }
        }
        let (ids, values) = row_of(x, ids, row);
        width.with_rows(row_scratch, |scores, saved| {
            // SAFETY: a view's columns are below its `n_cols`, which `step` compared with `n_rows`; the
            // scores are as many as the parameter's columns.
            unsafe { product(ids, values, &mut rows, scores) };
            total += row_function(row, scores, saved).as_f64();
            gradients.extend_from_slice(scores);
        });
    }
    match rows.plain_factor() {
        // Such a rule only adds: what a row of data contributes is added in its turn, without a sum in between.
        Some(factor) => {
            for (row, gradient) in gradients.chunks_exact_mut(columns.max(1)).enumerate() {
                gradient.iter_mut().for_each(|gradient| *gradient *= factor);
                let (ids, values) = row_of(x, ids, row);
                for (id, value) in ids.iter().zip(values) {
                    for (column, gradient) in gradient.iter().enumerate() {
                        // SAFETY: as above.
                        unsafe { rows.add_unchecked(id.at(), column, value.widen() * *gradient) };
                    }
                }
            }
        }
        None => {
            for (row, gradient) in gradients.chunks_exact(columns.max(1)).enumerate() {
                let (ids, values) = row_of(x, ids, row);
                for (id, value) in ids.iter().zip(values) {
                    // SAFETY: as above.
                    let sums = unsafe { rows.accumulate_unchecked(id.at()) };
                    for (sum, gradient) in sums.iter_mut().zip(gradient) {
                        *sum += value.widen() * *gradient;
                    }
                }
            }
            rows.apply_accumulated();
        }
    }
    rows.finish();
    total / n_rows.max(1) as f64
}

/// Adds the product of a csr row with the parameter to `scores`, which are zero, settling the rows it reads.
///
/// # Safety
///
/// `ids` are below `rows.n_rows()`; `scores` has `rows.row_size()` elements.
#[inline(always)]
unsafe fn product<R: UpdateRule, T: Float, K: UpdateKind, I: ColumnId>(
    ids: &[I],
    values: &[T],
    rows: &mut RowUpdater<'_, R, T, K>,
    scores: &mut [T::Accumulator],
) {
    if let [score] = scores {
        // Four sums, so that an addition does not wait for the one before it.
        let mut sums = [T::zero().widen(); 4];
        let (id_chunks, id_rest) = ids.as_chunks::<4>();
        let (value_chunks, value_rest) = values.as_chunks::<4>();
        for (ids, values) in id_chunks.iter().zip(value_chunks) {
            for lane in 0..4 {
                let row = ids[lane].at();
                // SAFETY: promised by the caller.
                unsafe {
                    rows.settle_unchecked(row);
                    sums[lane] += values[lane].widen() * rows.value_unchecked(row, 0).widen();
                }
            }
        }
        for (lane, (id, value)) in id_rest.iter().zip(value_rest).enumerate() {
            // SAFETY: promised by the caller.
            unsafe {
                rows.settle_unchecked(id.at());
                sums[lane] += value.widen() * rows.value_unchecked(id.at(), 0).widen();
            }
        }
        *score = (sums[0] + sums[1]) + (sums[2] + sums[3]);
        return;
    }
    for (id, value) in ids.iter().zip(values) {
        // SAFETY: promised by the caller.
        let weights = unsafe {
            rows.settle_unchecked(id.at());
            rows.row_unchecked(id.at())
        };
        for (score, weight) in scores.iter_mut().zip(weights) {
            *score += value.widen() * weight.widen();
        }
    }
}

/// Ids and values of one row of a view.
#[inline(always)]
pub(crate) fn row_of<'a, T: Float, I: ColumnId>(
    x: CsrView<'a, T>,
    ids: &'a [I],
    row: usize,
) -> (&'a [I], &'a [T]) {
    let range = range_of(x, row);
    (&ids[range.clone()], &x.values()[range])
}

/// Where the entries of one row of a view lie.
#[inline(always)]
pub(crate) fn range_of<T: Float>(x: CsrView<'_, T>, row: usize) -> Range<usize> {
    x.starts()[row] as usize..x.ends()[row] as usize
}

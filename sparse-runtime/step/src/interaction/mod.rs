//! The loop of the fused step of a factorization machine: product, interaction, row function,
//! update of both tables.
//!
//! The interaction of a row is ½ Σ_f [(Σ_i x_i v_if)² - Σ_i x_i² v_if²] (Rendle, *Factorization
//! Machines*, 2010, eq. 5); its gradient with respect to v_if is x_i (Σ_j x_j v_jf - x_i v_if).
//! Product and interaction read the non-zeros of a row in one pass, and so do the two updates.

mod batch;
mod parallel;

use self::batch::many_rows;
use crate::column_partition::hand_on;
use crate::error::Result;
use crate::linear::{
    Scratch, Width, is_large, prefetch_data, row_ahead_by, row_of, with_row_loops,
};
use crate::model::{ModelError, RowSteps};
use crate::optimizer::{
    Beside, Plain, ReadRows, RowCursor, RowUpdater, UpdateKind, Updater, Weights,
};
use crate::with_rows;
use nnz_arrays::formats::{ColumnId, CsrView};
use nnz_arrays::kernels::Parallel;
use nnz_arrays::kernels::row_loss::{Losses, RowLoss};
use nnz_arrays::parameter_memory::Table;
use nnz_device::prefetch::LINE;
use nnz_device::prefetch::{AHEAD, LINES_AHEAD};
use nnz_device::simd::{Eights, in_sixteens, squares_less};
use nnz_optim::UpdateRule;
use sparse_core::element::{Factor, Float, Stored};
use std::ops::Range;

/// One step on a batch: returns the mean of the rows' losses.
///
/// `row_function(row, scores, saved)` gets the product of a row with the weights and its
/// interaction as two `scores`, replaces them by the gradients of the batch's loss with respect to
/// them, and returns the row's own loss, of which a part may be computed later. `saved` is scratch
/// of the same length. `width` is the number of factors. O(nnz · factors + rows touched · cost of
/// the rule). `parallel` threads share the work of a large batch; the bits do not depend on it.
///
/// # Errors
///
/// [`ModelError::Extent`] unless the batch is as wide as both parameters have rows.
#[inline(always)]
#[allow(clippy::too_many_arguments)]
pub fn step<R: UpdateRule, T: Float<Accumulator = T>, V: Factor<T>, W: Width, L: RowLoss<T>>(
    x: CsrView<'_, V>,
    (weights_index, weights): (usize, &mut Table<T>),
    (factors_index, factors): (usize, &mut Table<T>),
    updater: &mut Updater<R, T>,
    width: W,
    parallel: Parallel,
    scratch: &mut Scratch<T>,
    row_function: impl FnMut(usize, &mut [T], &mut [T]) -> L,
) -> Result<f64> {
    let is_beside = |index, table: &mut Table<T>| updater.is_beside(index, &Weights::Table(table));
    // The first condition is known to the compiler, as in `with_rows`.
    let are_plain = Updater::<R, T>::OPTIONAL_STATE
        && updater.is_plain(weights_index)
        && updater.is_plain(factors_index);
    let are_alike =
        are_plain || is_beside(weights_index, weights) && is_beside(factors_index, factors);
    if are_alike && updater.wants_slots(weights_index, weights, (x.n_rows(), x.nnz())) {
        let (w, v) = ((weights_index, weights), (factors_index, factors));
        if Updater::<R, T>::OPTIONAL_STATE && are_plain {
            let (w, v) = updater.rows_with_slots_beside::<Plain>(w, v, x.nnz())?;
            return step_of(x, w, v, width, parallel, scratch, row_function);
        }
        let (w, v) = updater.rows_with_slots_beside::<Beside>(w, v, x.nnz())?;
        return step_of(x, w, v, width, parallel, scratch, row_function);
    }
    with_rows!(R, T; *updater, [weights_index => weights, factors_index => factors], |[w, v]| {
        step_of(x, w, v, width, parallel, scratch, row_function)
    })
}

/// [`step`] on the rows of both tables.
#[inline(always)]
fn step_of<R, T, V, W, K, N, L>(
    x: CsrView<'_, V>,
    w: RowUpdater<'_, R, T, K>,
    v: RowUpdater<'_, R, T, N>,
    width: W,
    parallel: Parallel,
    scratch: &mut Scratch<T>,
    row_function: impl FnMut(usize, &mut [T], &mut [T]) -> L,
) -> Result<f64>
where
    R: UpdateRule,
    T: Float<Accumulator = T>,
    V: Factor<T>,
    W: Width,
    K: UpdateKind,
    N: UpdateKind,
    L: RowLoss<T>,
{
    check(x, &w, &v, width)?;
    let begun = scratch.begin(parallel, x, 2 * width.columns());
    let loss = if begun.n_parts > 1 {
        parallel::step((begun.n_parts, hand_on()), x, w, v, width, scratch, row_function)
    } else {
        any_rows(x, w, v, width, scratch, row_function)
    };
    scratch.autotune.end(begun);
    Ok(loss)
}

#[inline(never)]
fn any_rows<
    R: UpdateRule,
    T: Float<Accumulator = T>,
    V: Factor<T>,
    W: Width,
    K: UpdateKind,
    N: UpdateKind,
    L: RowLoss<T>,
>(
    x: CsrView<'_, V>,
    w: RowUpdater<'_, R, T, K>,
    v: RowUpdater<'_, R, T, N>,
    width: W,
    scratch: &mut Scratch<T>,
    row_function: impl FnMut(usize, &mut [T], &mut [T]) -> L,
) -> f64 {
    with_row_loops!(W, x.columns(), |ids| match x.n_rows() {
        1 => one_row(x, ids, w, v, width, scratch, row_function),
        _ => many_rows(x, ids, w, v, width, scratch, row_function),
    })
}

#[inline(always)]
fn one_row<
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
    let upcoming = ids.get(x.upcoming()).filter(|_| is_large(&v)).unwrap_or_default();
    let (row, tables) = (row_of(x, ids, 0), (&mut w, &mut v));
    let loss =
        // SAFETY: a view's columns are below its `n_cols`, which `step` compared with both
        // `n_rows`.
        unsafe { row_step(
            row,
            upcoming,
            tables,
            width,
            &mut scratch.factors,
            #[inline(always)]
            |scores, saved| row_function(0, scores, saved),
        ) };
    w.finish();
    v.finish();
    loss.now().as_f64()
}

/// A step of one row of data, `(ids, values)`, from the scores to the updates without storing
/// anything. The rows that `ahead` names are asked for.
///
/// # Safety
///
/// The ids are below the rows of both tables, which have 1 and `width.columns()` elements.
#[inline(always)]
unsafe fn row_step<
    R: UpdateRule,
    T: Float<Accumulator = T>,
    V: Factor<T>,
    W: Width,
    K: UpdateKind,
    N: UpdateKind,
    I: ColumnId,
    L: RowLoss<T>,
>(
    (ids, values): (&[I], &[V]),
    ahead: &[I],
    (w, v): (&mut RowUpdater<'_, R, T, K>, &mut RowUpdater<'_, R, T, N>),
    width: W,
    scratch: &mut Vec<T>,
    row_function: impl FnOnce(&mut [T], &mut [T]) -> L,
) -> L {
    let size = width.columns();
    // SAFETY: promised by the caller.
    unsafe {
        w.settle_each(1, ids);
        v.settle_each(size, ids);
    }
    let loss = width.with_rows(
        scratch,
        #[inline(always)]
        |sums, squares| {
            let (weights, factors) = (w.cursor(1), v.cursor(size));
            // SAFETY: as above; a row of `v` has as many elements as `sums` and `squares`.
            let mut scores = unsafe { scores(ids, values, weights, factors, sums, squares) };
            if is_large(w) {
                w.prefetch_each(1, ahead);
            }
            v.prefetch_each(size, ahead);
            let loss = row_function(&mut scores, &mut [T::zero(); 2]);
            let cursors = (w.cursor(1), v.cursor(size));
            // What the rule's options are is asked once a row of data, not for every element.
            let without = cursors.0.without_options().zip(cursors.1.without_options());
            // SAFETY: as above.
            unsafe {
                match without {
                    Some(cursors) => update_entries(ids, values, cursors, scores, sums, squares),
                    None => update_entries(ids, values, cursors, scores, sums, squares),
                }
            }
            loss
        },
    );
    // SAFETY: as above.
    unsafe {
        w.mark_each(ids);
        v.mark_each(ids);
    }
    loss
}

/// Updates the rows of both tables that a row of data names, given the gradients of its `scores`
/// and Σ x v. `changes` is scratch.
///
/// # Safety
///
/// The ids are below the rows of both tables; `sums` and `changes` have as many elements as a row
/// of factors.
#[inline(always)]
unsafe fn update_entries<R, T, V, K, N, I>(
    ids: &[I],
    values: &[V],
    (weights, factors): (RowCursor<'_, R, T, K>, RowCursor<'_, R, T, N>),
    scores: [T; 2],
    sums: &[T],
    changes: &mut [T],
) where
    R: UpdateRule,
    T: Float<Accumulator = T>,
    V: Factor<T>,
    K: UpdateKind,
    N: UpdateKind,
    I: ColumnId,
{
    // SAFETY: promised by the caller; there are as many ids as values, which places are below.
    unsafe {
        weights.update_each(
            ids.len().min(values.len()),
            #[inline(always)]
            |place| ids.get_unchecked(place).at(),
            #[inline(always)]
            |place| values.get_unchecked(place).times(scores[0]),
        );
    }
    for (id, value) in ids.iter().zip(values) {
        let share = value.times(scores[1]);
        // SAFETY: promised by the caller.
        unsafe {
            let row = factors.row(id.at());
            for ((change, sum), factor) in changes.iter_mut().zip(sums).zip(row) {
                *change = share * (*sum - value.times(*factor));
            }
            factors.update_row_in_sixteens(id.at(), changes, |change, _| change);
        }
    }
}

/// As many steps as `range` has rows, each of one row of data, as
/// [`linear::steps`](crate::linear::steps) for this family.
///
/// # Errors
///
/// As [`step`].
#[inline(always)]
#[allow(clippy::too_many_arguments)]
pub fn steps<
    R: UpdateRule,
    T: Float<Accumulator = T>,
    V: Factor<T>,
    W: Width,
    C: Copy,
    L: RowLoss<T>,
>(
    x: CsrView<'_, V>,
    range: Range<usize>,
    (weights_index, weights): (usize, &mut Table<T>),
    (factors_index, factors): (usize, &mut Table<T>),
    updater: &mut Updater<R, T>,
    width: W,
    scratch: &mut Scratch<T>,
    kept: &mut C,
    row_function: impl FnMut(usize, &mut [T], &mut [T], &mut C) -> L,
) -> Result<RowSteps> {
    with_rows!(R, T; *updater, [weights_index => weights, factors_index => factors], |[w, v]| {
        check(x, &w, &v, width)?;
        Ok(each_row(x, range, w, v, width, scratch, kept, row_function))
    })
}

/// What the unchecked accesses of this file rely on.
#[inline(always)]
fn check<R, T, V, W, K, N>(
    x: CsrView<'_, V>,
    w: &RowUpdater<'_, R, T, K>,
    v: &RowUpdater<'_, R, T, N>,
    width: W,
) -> Result<()>
where
    R: UpdateRule,
    T: Float,
    V: Stored,
    W: Width,
    K: UpdateKind,
    N: UpdateKind,
{
    let (of_w, of_v) = ((w.n_rows(), w.row_size()), (v.n_rows(), v.row_size()));
    for ((n_rows, row_size), size) in [(of_w, 1), (of_v, width.columns())] {
        if n_rows != x.n_cols() || row_size != size {
            return Err(ModelError::extent("interaction", "x", 1, x.n_cols(), n_rows).into());
        }
    }
    Ok(())
}

#[inline(never)]
#[allow(clippy::too_many_arguments)]
fn each_row<R, T, V, W, K, C, L>(
    x: CsrView<'_, V>,
    range: Range<usize>,
    mut w: RowUpdater<'_, R, T, K>,
    mut v: RowUpdater<'_, R, T, K>,
    width: W,
    scratch: &mut Scratch<T>,
    kept: &mut C,
    mut row_function: impl FnMut(usize, &mut [T], &mut [T], &mut C) -> L,
) -> RowSteps
where
    R: UpdateRule,
    T: Float<Accumulator = T>,
    V: Factor<T>,
    W: Width,
    K: UpdateKind,
    C: Copy,
    L: RowLoss<T>,
{
    let large = is_large(&v);
    let are_lines = v.bytes() <= v.n_rows().saturating_mul(LINE);
    let distance = if are_lines { LINES_AHEAD } else { AHEAD };
    let (first, mut end) = (range.start, range.end);
    let mut losses = Losses::new();
    with_row_loops!(W; in_sixteens::<W, _>, x.columns(), |ids| {
        let (mut own, mut row) = (*kept, first);
        while row < end {
            prefetch_data(x, ids, row);
            let ahead = if large { row_ahead_by(distance, x, ids, row) } else { &[] };
            let (entries, tables) = (row_of(x, ids, row), (&mut w, &mut v));
            let factors = &mut scratch.factors;
            // SAFETY: a view's columns are below its `n_cols`, which `check` compared with both
            // `n_rows`.
            let loss = unsafe {
                row_step(
                    entries,
                    ahead,
                    tables,
                    width,
                    factors,
                    #[inline(always)]
                    |scores, saved| row_function(row, scores, saved, &mut own),
                )
            };
            w.advance();
            v.advance();
            losses.add(loss);
            row += 1;
            if !loss.is_finite() {
                end = row;
            }
        }
        *kept = own;
    });
    w.finish();
    v.finish();
    let (loss_sum, last_loss) = losses.finish();
    RowSteps { n_steps: end - first, loss_sum, last_loss }
}

/// The product of a csr row with `w` and its interaction by `v`; `sums` gets Σ x v by factor.
///
/// # Safety
///
/// `ids` are below the rows of both tables; `sums` and `squares` have as many elements as a row of
/// `v`, and may hold anything.
#[inline(always)]
unsafe fn scores<'a, T: Float<Accumulator = T>, V: Factor<T>, I: ColumnId>(
    ids: &[I],
    values: &[V],
    w: impl ReadRows<'a, T>,
    v: impl ReadRows<'a, T>,
    sums: &mut [T],
    squares: &mut [T],
) -> [T; 2] {
    sums.fill(T::zero());
    squares.fill(T::zero());
    // SAFETY: promised by the caller.
    let product = unsafe { add_terms(ids, values, w, v, T::zero(), sums, squares) };
    [product, interaction(sums, squares)]
}

/// Adds the terms of some entries of a row to its product with `w`, which it returns, Σ x v and Σ
/// x² v².
///
/// # Safety
///
/// As for [`scores`].
#[inline(always)]
unsafe fn add_terms<'a, T: Float<Accumulator = T>, V: Factor<T>, I: ColumnId>(
    ids: &[I],
    values: &[V],
    w: impl ReadRows<'a, T>,
    v: impl ReadRows<'a, T>,
    mut product: T,
    sums: &mut [T],
    squares: &mut [T],
) -> T {
    let eights = Eights::of::<T>(sums.len());
    for (id, value) in ids.iter().zip(values) {
        // SAFETY: promised by the caller.
        let factors = unsafe {
            product += value.times(w.value(id.at(), 0));
            v.row(id.at())
        };
        if let Some(eights) = eights {
            // SAFETY: as above.
            unsafe { eights.add_with_squares(value.number(), factors, sums, squares) };
            continue;
        }
        for ((sum, square), factor) in sums.iter_mut().zip(&mut *squares).zip(factors) {
            let term = value.times(*factor);
            *sum += term;
            *square += term * term;
        }
    }
    product
}

/// Half of Σ ((Σ x v)² - Σ x² v²), over factors.
#[inline(always)]
fn interaction<T: Float<Accumulator = T>>(sums: &[T], squares: &[T]) -> T {
    squares_less(sums, squares) * T::of(0.5)
}

#[cfg(test)]
mod tests;

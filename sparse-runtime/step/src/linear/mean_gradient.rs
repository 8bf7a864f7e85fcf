//! The pass that sums a mean gradient. No weight changes, so samples do not depend on each other.

use super::products::sum_of_products;
use super::rows::{prefetch_data, row_of};
use crate::model::RowSteps;
use crate::optimizer::{CatchUp, ReadRows, RowCursor, UpdateKind};
use nnz_arrays::formats::{ColumnId, CsrView};
use nnz_optim::UpdateRule;
use sparse_core::element::{Factor, Float, Stored};
use std::ops::Range;
use std::slice;

/// Rows whose scores are found together, where rows are short. What they read is still near when
/// their gradients are added.
const TOGETHER: usize = 64;

/// More entries than these, on average, are a long row.
const LONG: usize = 8;

/// As many steps as `range` has rows, of a parameter of one column whose rows
/// [rest](CatchUp::known_to_rest); `None` where the cursor does more than to
/// [gather](RowCursor::only_gathers). `row_function` gives a number that is finite where the
/// derivative is; of one that is not, the row's step is the last. `scores` is scratch.
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
    (cursor, mut settling): (RowCursor<'_, R, T, K>, CatchUp<'_, R, T>),
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
        if are_long(x) {
            add_long(x, ids, cursor, take_turn)?
        } else {
            add_short(x, ids, cursor, scores, take_turn)?
        }
    }
    *kept = own;
    // Nobody asks for the sum.
    Some(RowSteps { n_steps: row - first, loss_sum: last_loss, last_loss })
}

/// Adds the gradients of short rows: in a loop that did all of it row by row, the processor would
/// see little more than a row ahead while it waits for an exponential.
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
        // All derivatives first: their exponentials wait for nothing, not even for a wrong guess of
        // a row's end.
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

/// Adds the gradients of long rows one after the other, while what a product has read is at its
/// nearest.
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

/// Whether rows are so long that an exponential is the smaller part of them, and their products are
/// not better found many at a time.
fn are_long<V: Stored>(x: CsrView<'_, V>) -> bool {
    let n_entries: u64 = x.starts().iter().zip(x.ends()).map(|(start, end)| end - start).sum();
    #[cfg(target_arch = "x86_64")]
    let in_vectors = nnz_device::simd::x86::gathers_under_masks();
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

/// The product of each row of data with the parameter. A function of its own, so that the registers
/// are its loop's. No rows of the parameter are asked for ahead: loads that wait for nothing run as
/// far ahead by themselves.
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
    if unsafe { super::avx512::find_products(x, 0..x.n_rows(), cursor.weights(), scores) } {
        return;
    }
    for (place, score) in scores.iter_mut().enumerate() {
        prefetch_data(x, ids, place);
        // SAFETY: promised by the caller.
        *score = unsafe { score_of(x, ids, cursor, place) };
    }
}

#[cfg(test)]
mod tests {
    use crate::linear::{self, Fixed, Scratch};
    use crate::optimizer::{ParameterSpec, Updater, Usage};
    use nnz_arrays::formats::Csr;
    use nnz_arrays::parameter_memory::Table;
    use nnz_optim::{Correction, Sgd, Svrg};
    use sparse_core::storage::Storage;

    const N_COLS: usize = 50;

    /// Rows of data with up to `most` entries. The first row alone has the last column but one, no
    /// row the last.
    fn data(n_rows: usize, most: usize) -> Csr<f64> {
        let entry = |row: usize, k: usize| (k * (N_COLS - 2) / most, (row as f64 - k as f64).sin());
        let row = |row: usize| {
            let entries = (0..row * 7 % (most + 1)).map(|k| entry(row, k));
            Vec::from_iter(entries.chain((row == 0).then_some((N_COLS - 2, 0.5))))
        };
        Csr::from_rows(N_COLS, (0..n_rows).map(row)).unwrap()
    }

    /// Passes over the data, each from a mean of 0, on a parameter whose rows are known from the
    /// second one on. The derivative of a row is its product; that of row `broken` is not finite.
    fn means(x: &Csr<f64>, broken: usize) -> Vec<(usize, Vec<f64>)> {
        let rule = Svrg { update_freq: 1, rule: Sgd { weight_decay: 0.1, ..Sgd::default() } };
        let spec = ParameterSpec::new("w", N_COLS, 1, Some(Storage::RowSparse));
        let mut updater = Updater::<Svrg<Sgd>, f64>::new(rule, vec![spec]).unwrap();
        let weights: Vec<f64> = (0..N_COLS).map(|row| (row as f64).cos()).collect();
        let mut table = Table::from_values(1, &weights);
        let pass = |knows_rows: bool| {
            let clock = updater.clock();
            updater.set_knows_rows(knows_rows);
            updater.reset_mean([&mut table], None, None);
            let gather = Correction::Gather { share: 1.0 };
            updater.prepare_steps(gather, Usage::Nothing, |_| {}).unwrap();
            let (mut n_steps, mut goes_on) = (0, true);
            while goes_on && n_steps < x.n_rows() {
                // The first one alone.
                let count = updater.begin_steps(x.n_rows() - n_steps).unwrap();
                let steps = linear::steps(
                    x.view(),
                    n_steps..n_steps + count,
                    0,
                    &mut table,
                    &mut updater,
                    Fixed::<1>,
                    &mut Scratch::default(),
                    &mut (),
                    |row, scores: &mut [f64], _: &mut [f64], _: &mut ()| {
                        if row == broken {
                            scores[0] = f64::NAN;
                        }
                        0.0
                    },
                );
                let steps = steps.unwrap();
                updater.end_steps(steps.n_steps).unwrap();
                n_steps += steps.n_steps;
                goes_on = !steps.diverged();
            }
            updater.flush(0, &mut table).unwrap();
            assert_eq!(table.values(), weights);
            updater.end_gathering([&mut table], clock, 2);
            let mut means = Vec::new();
            updater.visit_states(0, &table, |states| means.extend(states.iter().map(|s| s.mean)));
            (n_steps, means)
        };
        [false, true, true].map(pass).into()
    }

    #[test]
    fn short_and_long_rows_are_added_up_whether_rows_are_known_or_not() {
        for (n_rows, most) in [(1, 3), (70, 3), (140, 12), (9, 40)] {
            let x = data(n_rows, most);
            let mut expected = vec![0.0; N_COLS];
            for row in x.view().iter_rows() {
                let row = Vec::from_iter(row);
                let term = |(column, value): &(usize, f64)| value * (*column as f64).cos();
                let score: f64 = row.iter().map(term).sum();
                row.iter().for_each(|(column, value)| expected[*column] += value * score / 2.0);
            }
            for (n_steps, means) in means(&x, usize::MAX) {
                assert_eq!(n_steps, n_rows);
                for (mean, expected) in means.iter().zip(&expected) {
                    assert!((mean - expected).abs() < 1e-12, "{mean} {expected}");
                }
            }
        }
    }

    #[test]
    fn a_pass_ends_at_a_derivative_that_is_not_finite() {
        for (n_rows, most) in [(70, 3), (70, 40)] {
            let steps = means(&data(n_rows, most), 66);
            assert!(steps.iter().all(|(n_steps, _)| *n_steps == 67), "{n_rows}, {most}");
        }
    }
}

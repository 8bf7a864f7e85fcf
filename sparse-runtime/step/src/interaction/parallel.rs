//! The step of a large batch on several threads, with the bits of one: see
//! [`linear::parallel`](crate::linear).

use super::batch::{add_row, update_rows};
use super::{add_terms, interaction};
use crate::column_partition::{Piece, each_updates};
use crate::linear::{
    Scratch, Width, entries, is_large, prefetch_data, row_ahead, row_of, settle, with_row_loops,
};
use crate::optimizer::{RowAccumulator, RowUpdater, RowWeights, Slots, UpdateKind};
use crate::thread_pipeline::in_stages;
use nnz_arrays::formats::CsrView;
use nnz_arrays::kernels::row_loss::{Losses, RowLoss};
use nnz_device::simd;
use nnz_optim::UpdateRule;
use sparse_core::element::{Factor, Float};
use std::ops::Range;

/// As [`step`](super::step), of a batch whose extents were compared with those of both parameters.
pub(super) fn step<
    R: UpdateRule,
    T: Float<Accumulator = T>,
    V: Factor<T>,
    W: Width,
    K: UpdateKind,
    N: UpdateKind,
    L: RowLoss<T>,
>(
    (n_parts, hands_on): (usize, bool),
    x: CsrView<'_, V>,
    mut w: RowUpdater<'_, R, T, K>,
    mut v: RowUpdater<'_, R, T, N>,
    width: W,
    scratch: &mut Scratch<T>,
    mut row_function: impl FnMut(usize, &mut [T], &mut [T]) -> L,
) -> f64 {
    let (n_rows, size) = (x.n_rows(), width.columns());
    let Scratch { gradients, parts, .. } = scratch;
    let (cuts, parts) = parts.divide(n_parts, x, size + 2);
    settle(x, &mut w, 1, cuts, parts);
    settle(x, &mut v, size, cuts, parts);

    let large = is_large(&v);
    // Those of different rows, which are different threads', are different slots. Where a thread's
    // scores read other threads' rows, it would wait for each slot that these write there.
    let slots = if hands_on { w.slots() } else { None };
    let (of_w, of_v) = (w.shared(1), v.shared(size));
    let numbers = gradients;
    numbers.resize(n_rows * numbers_of_row(size), T::zero());
    let stages = cuts.in_stages(x, hands_on);
    let cuts_rows = !hands_on && x.divided_among(n_parts).is_none();
    let mut losses = Losses::new();
    in_stages(
        parts,
        stages.order(),
        numbers,
        numbers_of_row(size),
        |stage, part, rows, numbers| {
            // SAFETY: stages come one after the other.
            let piece = unsafe { stages.piece(stage, rows.clone()) };
            let (is_last, scratch) = (piece.is_last(), &mut part.scratch);
            let tables = (of_w.weights(), of_v.weights());
            add_numbers(rows.clone(), piece, tables, width, large, scratch, stage == 0, numbers);
            if cuts_rows {
                // SAFETY: as above; the piece is gone.
                unsafe { stages.cut(rows) };
            }
            if is_last {
                for numbers in numbers.chunks_exact_mut(numbers_of_row(size)) {
                    let (scores, sums, squares) = split(numbers, size);
                    scores[1] = interaction(sums, squares);
                }
            }
        },
        |rows, numbers| {
            for (row, numbers) in rows.zip(numbers.chunks_exact_mut(numbers_of_row(size))) {
                losses.add(row_function(row, &mut numbers[..2], &mut [T::zero(); 2]));
            }
        },
    );

    let numbers = &*numbers;
    each_updates(parts, |place, part| {
        let slots = slots.unwrap_or_else(|| part.sums.own_slots());
        accumulate(cuts.of(place, x), (&mut part.sums, slots), numbers, width);
        // SAFETY: the sums are of the columns of `x`, which are rows of both tables; each is of one
        // part.
        unsafe {
            let (of_w, of_v, sums) = (&of_w, &of_v, &part.sums);
            simd::wide(
                #[inline(always)]
                || update_rows(sums, of_w.cursor(), of_v.cursor(), width.columns()),
            );
            of_w.mark_rows(sums.rows());
            of_v.mark_rows(sums.rows());
        }
        part.sums.clear();
    });
    w.finish();
    v.finish();
    losses.finish().0 / n_rows as f64
}

/// Of each row of data the two scores, which become their gradients, Σ x v and Σ x² v².
const fn numbers_of_row(size: usize) -> usize {
    2 + 2 * size
}

#[inline(always)]
fn split<T>(numbers: &mut [T], size: usize) -> (&mut [T], &mut [T], &mut [T]) {
    let (scores, sums) = numbers.split_at_mut(2);
    let (sums, squares) = sums.split_at_mut(size);
    (scores, sums, squares)
}

/// A stage of the numbers of some rows of data: adds what comes of the entries of one thread. The
/// second score is still to be made.
#[inline(never)]
#[allow(clippy::too_many_arguments)]
fn add_numbers<T: Float<Accumulator = T>, V: Factor<T>, W: Width>(
    rows: Range<usize>,
    mut piece: Piece<'_, '_, V>,
    (w, v): (RowWeights<'_, T>, RowWeights<'_, T>),
    width: W,
    large: bool,
    scratch: &mut Vec<T>,
    is_first: bool,
    numbers: &mut [T],
) {
    let x = piece.matrix();
    with_row_loops!(W, x.columns(), |ids| {
        let size = width.columns();
        let v = v.of_size(size);
        let numbers = numbers.chunks_exact_mut(numbers_of_row(size));
        for (place, (row, numbers)) in rows.zip(numbers).enumerate() {
            prefetch_data(x, ids, row);
            let ahead = piece.find(ids, place, large);
            w.prefetch_each(ahead);
            v.prefetch_each(ahead);
            let (ids, values) = piece.found(ids, place);
            let (scores, sums, squares) = split(numbers, size);
            width.with_rows(
                scratch,
                #[inline(always)]
                |own_sums, own_squares| {
                    let mut product = T::zero();
                    if is_first {
                        own_squares.fill(T::zero());
                    } else {
                        product = scores[0];
                        own_sums.copy_from_slice(sums);
                        own_squares.copy_from_slice(squares);
                    }
                    // SAFETY: the columns of `x` are rows of both tables; a row of `v` has as many
                    // elements as `sums`.
                    unsafe {
                        scores[0] = add_terms(ids, values, w, v, product, own_sums, own_squares);
                    }
                    sums.copy_from_slice(own_sums);
                    squares.copy_from_slice(own_squares);
                },
            );
        }
    });
}

/// Sums what the rows of one thread get, given its entries of the rows of data, in the order of
/// these.
#[inline(never)]
fn accumulate<T: Float<Accumulator = T>, V: Factor<T>, W: Width>(
    own: CsrView<'_, V>,
    (sums, slots): (&mut RowAccumulator, Slots<'_>),
    numbers: &[T],
    width: W,
) {
    let (size, are_far) = (width.columns(), slots.are_far());
    with_row_loops!(W, own.columns(), |ids| for row in 0..own.n_rows() {
        if are_far {
            slots.prefetch_each(row_ahead(own, ids, row));
        }
        let numbers = &numbers[row * numbers_of_row(size)..][..numbers_of_row(size)];
        let (scores, row_sums) = ([numbers[0], numbers[1]], &numbers[2..2 + size]);
        let (ids, values) = row_of(own, ids, row);
        // SAFETY: the sums are for the columns of the batch, of `size + 2` elements.
        unsafe { add_row::<_, V, _>((sums, slots), entries(ids, values), scores, row_sums) };
    });
}

#[cfg(test)]
mod tests {
    use crate::error::Result;
    use crate::interaction::any_rows;
    use crate::linear::{Fixed, Scratch};
    use crate::optimizer::{Beside, ParameterSpec, Plain, Updater, Weights};
    use crate::with_rows;
    use nnz_arrays::formats::Csr;
    use nnz_arrays::formats::column_shares::divide;
    use nnz_arrays::parameter_memory::Table;
    use nnz_optim::{AdaGrad, Sgd, UpdateRule};
    use sparse_core::storage::Storage;

    const COLUMNS: usize = 200;
    const SIZE: usize = 5;

    /// Some steps on overlapping batches: the losses, both tables at the end, and whether the
    /// weights had slots.
    fn steps<R: UpdateRule>(
        rule: &R,
        (n_parts, hands_on, is_divided, has_slots): (usize, bool, bool, bool),
        x: &Csr<f64>,
    ) -> Result<(Vec<f64>, [Vec<f64>; 2], bool)> {
        let spec = |name, size| ParameterSpec::new(name, COLUMNS, size, Some(Storage::RowSparse));
        let mut updater =
            Updater::<R, f64>::new(rule.clone(), vec![spec("w", 1), spec("v", SIZE)])?;
        let value = |i: usize| (i * 37 % 11) as f64 / 70.0 - 0.05;
        let mut tables = [1, SIZE].map(|size| {
            Table::from_values(size, &(0..size * COLUMNS).map(value).collect::<Vec<_>>())
        });
        let (mut scratch, mut losses) = (Scratch::default(), Vec::new());
        let divided = is_divided.then(|| divide(x.view(), n_parts)).transpose()?;
        for step in 0..5 {
            updater.begin_step()?;
            let rows = step * 8..step * 8 + 25;
            let mut x = x.view().rows(rows.clone())?;
            if let Some(divided) = &divided {
                x = x.with_divided(divided.rows(rows));
            }
            let row_function = |row: usize, scores: &mut [f64], _: &mut [f64]| {
                let loss = scores[0] + scores[1] - (row % 3) as f64;
                scores.fill(loss);
                loss * loss
            };
            let [w, v] = &mut tables;
            if has_slots && updater.wants_slots(0, w, (x.n_rows(), x.nnz())) {
                let (parts, width) = ((n_parts, hands_on), Fixed::<SIZE>);
                losses.push(if updater.is_plain(0) {
                    let of = updater.rows_with_slots_beside::<Plain>((0, w), (1, v), x.nnz())?;
                    super::step(parts, x, of.0, of.1, width, &mut scratch, row_function)
                } else {
                    assert!(updater.is_beside(0, &Weights::Table(w)));
                    let of = updater.rows_with_slots_beside::<Beside>((0, w), (1, v), x.nnz())?;
                    super::step(parts, x, of.0, of.1, width, &mut scratch, row_function)
                });
                updater.end_step()?;
                continue;
            }
            with_rows!(R, f64; updater, [0 => w, 1 => v], |[w, v]| losses.push(match n_parts {
                1 => any_rows(x, w, v, Fixed::<SIZE>, &mut scratch, row_function),
                _ => {
                    let shares = (n_parts, hands_on);
                    super::step(shares, x, w, v, Fixed::<SIZE>, &mut scratch, row_function)
                }
            }));
            updater.end_step()?;
        }
        let had_slots = updater.has_slots(&tables[0]);
        let [w, v] = &mut tables;
        updater.flush(0, &mut *w)?;
        updater.flush(1, &mut *v)?;
        Ok((losses, tables.map(|table| table.values().to_vec()), had_slots))
    }

    #[test]
    fn parts_have_the_bits_of_one() {
        let rows = (0..60usize).map(|row| {
            let n_entries = if row % 11 == 3 { 0 } else { 1 + row * 5 % 80 };
            let column = |k| if k == 0 { 0 } else { k * 2 + row % 40 };
            (0..n_entries).map(|k| (column(k), (k % 7) as f64 / 4.0 - 0.6)).collect::<Vec<_>>()
        });
        let x = Csr::from_rows(COLUMNS, rows).unwrap();
        fn hold<R: UpdateRule>(rule: &R, x: &Csr<f64>, waits: bool) {
            let one = steps(rule, (1, false, false, false), x).unwrap();
            assert!(one.0.iter().all(|loss| loss.is_finite()));
            for n_parts in [2, 3] {
                for bits in 0..8 {
                    let [hands_on, is_divided, has_slots] = [1, 2, 4].map(|bit| bits & bit != 0);
                    let how = (n_parts, hands_on, is_divided, has_slots);
                    let several = steps(rule, how, x).unwrap();
                    assert!(several.0 == one.0 && several.1 == one.1, "{rule:?} by {how:?}");
                    assert_eq!(several.2, has_slots && !waits);
                }
            }
        }
        hold(&Sgd { learning_rate: 0.01, ..Sgd::default() }, &x, false);
        let rule = Sgd { learning_rate: 0.01, momentum: 0.5, weight_decay: 0.01, ..Sgd::default() };
        hold(&rule, &x, true);
        hold(&AdaGrad { learning_rate: 0.01, ..AdaGrad::default() }, &x, false);
    }
}

//! Steps in parts have the bits of steps on one thread.

use crate::error::Result;
use crate::linear::{Fixed, Scratch, any_rows};
use crate::optimizer::{Beside, ParameterSpec, Updater, Weights};
use crate::with_rows;
use nnz_arrays::formats::column_shares::divide;
use nnz_arrays::formats::{Csr, CsrView, GatheredBounds, RowSelection};
use nnz_arrays::kernels::Parallel;
use nnz_arrays::parameter_memory::Table;
use nnz_optim::{AdaGrad, Adam, Ftrl, LazyUpdate, Sgd, UpdateRule};
use sparse_core::element::{Factor, Float, Unit};
use sparse_core::storage::Storage;
use std::ops::Range;

const COLUMNS: usize = 300;

/// Some rows have no entries, the others a column that all have.
fn data<T: Float>(value: impl Fn(usize) -> T) -> Csr<T> {
    let rows = (0..60usize).map(|row| {
        let n_entries = if row % 11 == 3 { 0 } else { 1 + row * 5 % 130 };
        let column = |k| if k == 0 { 0 } else { k * 2 + row % 40 };
        (0..n_entries).map(|k| (column(k), value(k))).collect::<Vec<_>>()
    });
    Csr::from_rows(COLUMNS, rows).unwrap()
}

#[derive(Clone, Copy, Debug)]
struct How {
    n_parts: usize,
    hands_on: bool,
    is_divided: bool,
    /// Whether the weights have slots, if they can.
    has_slots: bool,
}

/// Some steps on overlapping batches, of a parameter of `K` columns; the losses, the weights at the
/// end, and whether these had slots.
fn steps<R: UpdateRule, T: Float<Accumulator = T>, V: Factor<T>, const K: usize>(
    rule: &R,
    How { n_parts, hands_on, is_divided, has_slots }: How,
    x: &Csr<V>,
) -> Result<(Vec<f64>, Vec<T>, bool)> {
    let spec = ParameterSpec::new("w", COLUMNS, K, Some(Storage::RowSparse));
    let mut updater = Updater::<R, T>::new(rule.clone(), vec![spec])?;
    let values: Vec<T> = (0..K * COLUMNS).map(|i| T::of((i % 11) as f64 / 70.0)).collect();
    let mut table = Table::from_values(K, &values);
    let (mut scratch, mut losses) = (Scratch::default(), Vec::new());
    let divided = is_divided.then(|| divide(x.view(), n_parts)).transpose()?;
    for step in 0..6 {
        updater.set_learning_rate(0.01 + 0.01 * (step / 3) as f64)?;
        updater.begin_step()?;
        let rows = step * 8..step * 8 + 20;
        let (mut selection, mut bounds) = (RowSelection::new(), GatheredBounds::default());
        let reversed = rows.clone().rev().collect::<Vec<_>>();
        // A run of rows, and rows that lie anywhere.
        let mut x: CsrView<'_, V> = match step % 2 {
            0 => x.view().rows(rows.clone())?,
            _ => selection.gather(x, &reversed)?,
        };
        if let Some(divided) = &divided {
            bounds.gather(divided, &reversed);
            x = x.with_divided(match step % 2 {
                0 => divided.rows(rows),
                _ => divided.gathered(&bounds),
            });
        }
        let row_function = |row: usize, scores: &mut [T], _: &mut [T]| {
            scores.iter_mut().for_each(|score| *score -= T::of((row % 3) as f64));
            scores[0] * scores[K - 1]
        };
        let mut sum = 0.0;
        let mut summed = |rows: Range<usize>, scores: &mut [T]| {
            for (row, scores) in rows.zip(scores.chunks_exact_mut(K)) {
                sum += row_function(row, scores, &mut []).as_f64();
            }
        };
        if has_slots
            && !updater.is_plain(0)
            && updater.is_beside(0, &Weights::Table(&mut table))
            && updater.wants_slots(0, &mut table, (x.n_rows(), x.nnz()))
        {
            let rows = updater.rows_with_slots::<Beside>(0, &mut table, x.nnz())?;
            let parts = (n_parts, hands_on);
            super::step(parts, x, rows, Fixed::<K>, &mut scratch, &mut summed);
            losses.push(sum / x.n_rows() as f64);
            updater.end_step()?;
            continue;
        }
        with_rows!(R, T; updater, [0 => &mut table], |[rows]| losses.push(match n_parts {
            1 => any_rows(x, rows, Fixed::<K>, Parallel::Sequential, &mut scratch, row_function),
            _ => {
                super::step((n_parts, hands_on), x, rows, Fixed::<K>, &mut scratch, &mut summed);
                sum / x.n_rows() as f64
            }
        }));
        updater.end_step()?;
    }
    let had_slots = updater.has_slots(&table);
    updater.flush(0, &mut table)?;
    Ok((losses, table.values().to_vec(), had_slots))
}

/// The steps of threads, each way that they share, against those of one.
fn of_values<R: UpdateRule, T, V: Factor<T>, const K: usize>(rule: &R, x: &Csr<V>)
where
    T: Float<Accumulator = T>,
{
    let how = How { n_parts: 1, hands_on: false, is_divided: false, has_slots: false };
    let one = steps::<R, T, V, K>(rule, how, x).unwrap();
    for n_parts in [2, 3, 7] {
        for bits in 0..if K == 1 { 8 } else { 4 } {
            let [hands_on, is_divided, has_slots] = [1, 2, 4].map(|bit| bits & bit != 0);
            let how = How { n_parts, hands_on, is_divided, has_slots };
            let several = steps::<R, T, V, K>(rule, how, x).unwrap();
            assert!(several.0 == one.0 && several.1 == one.1, "{K} columns, {rule:?} in {how:?}");
        }
    }
}

#[test]
fn parts_have_the_bits_of_one() {
    fn every<R: UpdateRule>(rule: &R) {
        of_columns::<R, 1>(rule);
        // Miri takes its time.
        if cfg!(miri) {
            return;
        }
        of_columns::<R, 2>(rule);
        of_columns::<R, 5>(rule);
        of_columns::<R, 16>(rule);
    }
    fn of_columns<R: UpdateRule, const K: usize>(rule: &R) {
        of_values::<R, f32, f32, K>(rule, &data(|k| (k % 7) as f32 - 2.5));
        of_values::<R, f64, f64, K>(rule, &data(|k| (k % 7) as f64 - 2.5));
        of_values::<R, f32, Unit, K>(rule, &data(|_| 1.0f32).view().units().unwrap().to_owned());
    }
    for has_slots in [false, true] {
        let how = How { n_parts: 2, hands_on: true, is_divided: false, has_slots };
        let had_slots =
            |how| steps::<_, f32, f32, 1>(&AdaGrad::default(), how, &data(|_| 1.0)).unwrap().2;
        assert_eq!(had_slots(how), has_slots);
    }
    let modes = [LazyUpdate::Exact, LazyUpdate::Touched, LazyUpdate::Dense];
    for lazy_update in modes.into_iter().take(if cfg!(miri) { 1 } else { 3 }) {
        every(&Sgd { lazy_update, ..Sgd::default() });
        every(&Sgd { momentum: 0.9, weight_decay: 0.01, lazy_update, ..Sgd::default() });
        every(&AdaGrad { weight_decay: 0.01, lazy_update, ..AdaGrad::default() });
        every(&Ftrl { lazy_update, ..Ftrl::default() });
    }
}

#[test]
fn n16_threads_catch_rows_up_by_adam_to_the_bits_of_one() {
    let x = data(|k| (k % 7) as f32 - 2.5);
    of_values::<_, f32, f32, 1>(&Adam::default(), &x);
    of_values::<_, f32, f32, 2>(&Adam::default(), &x);
}

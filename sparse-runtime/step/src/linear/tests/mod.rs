//! Slots of sums beside the weights and apart: the same bits.

mod accuracy;
mod by_pointer;
mod catch_up;

use super::{Fixed, Scratch, any_rows, step};
use crate::error::Result;
use crate::optimizer::{ParameterSpec, Updater};
use crate::with_rows;
use nnz_arrays::formats::{Csr, CsrView};
use nnz_arrays::kernels::Parallel;
use nnz_arrays::parameter_memory::Table;
use nnz_optim::{AdaGrad, Adam, Ftrl, LazyUpdate, Sgd, UpdateRule};
use sparse_core::element::{Factor, Float, Unit};
use sparse_core::storage::Storage;
use std::panic::{AssertUnwindSafe, catch_unwind};

const COLUMNS: usize = 120;

/// Rows of 0 to 49 entries, the first column among all that have some.
fn data<T: Float>() -> Csr<T> {
    let rows = (0..70usize).map(|row| {
        let n_entries = if row % 11 == 3 { 0 } else { 1 + row * 7 % 49 };
        let column = |k| if k == 0 { 0 } else { k * 2 + row % 20 };
        let value = |k: usize| T::of((k % 7) as f64 / 4.0 - 0.6);
        (0..n_entries).map(|k| (column(k), value(k))).collect::<Vec<_>>()
    });
    Csr::from_rows(COLUMNS, rows).unwrap()
}

/// A batch of one row, of fewer rows than are scored before they are summed, of a multiple of
/// these, or of others.
fn batch<T: Float, V: Factor<T>>(x: &Csr<V>, number: usize) -> CsrView<'_, V> {
    let n_rows = [37, 16, 1, 48, 7][number % 5];
    let first = number * 3 % 20;
    x.view().rows(first..first + n_rows).unwrap()
}

fn row_function<T: Float>(row: usize, scores: &mut [T], _: &mut [T]) -> T {
    let loss = scores[0] - T::of((row % 3) as f64);
    scores[0] = loss;
    loss * loss
}

fn model<R: UpdateRule, T: Float>(rule: &R) -> Result<(Updater<R, T>, Table<T>)> {
    let spec = ParameterSpec::new("w", COLUMNS, 1, Some(Storage::RowSparse));
    let values = (0..COLUMNS).map(|i| T::of((i * 37 % 11) as f64 / 70.0)).collect::<Vec<_>>();
    Ok((Updater::new(rule.clone(), vec![spec])?, Table::from_values(1, &values)))
}

/// Steps by [`step`], or by loops whose sums have slots apart: the losses, the weights at the end,
/// and whether there were slots beside. Somebody reads or writes all weights at times, and goes on
/// with copies.
fn train<R: UpdateRule, T: Float<Accumulator = T>, V: Factor<T>>(
    rule: &R,
    x: &Csr<V>,
    beside: bool,
) -> Result<(Vec<f64>, Vec<T>, bool)> {
    let (mut updater, mut table) = model::<R, T>(rule)?;
    let (mut scratch, mut losses, mut had_slots) = (Scratch::default(), Vec::new(), false);
    for number in 0..40 {
        let x = batch::<T, V>(x, number);
        match number {
            10 | 25 => table.values_mut()[number] += T::of(0.25),
            13 => assert_eq!(table.values().len(), COLUMNS),
            17 | 18 => {
                // What a copy learns nobody sees; then a copy of the table alone goes on.
                let (mut other, mut copy) = (updater.clone(), table.clone());
                let (one, scratch) = (Parallel::Sequential, &mut scratch.clone());
                other.begin_step()?;
                step(x, 0, &mut copy, &mut other, Fixed::<1>, one, scratch, row_function)?;
                other.end_step()?;
                table = table.clone();
            }
            _ => {}
        }
        updater.begin_step()?;
        let (one, scratch) = (Parallel::Sequential, &mut scratch);
        losses.push(if beside {
            step(x, 0, &mut table, &mut updater, Fixed::<1>, one, scratch, row_function)?
        } else {
            with_rows!(R, T; updater, [0 => &mut table], |[rows]| {
                any_rows(x, rows, Fixed::<1>, one, scratch, row_function)
            })
        });
        updater.end_step()?;
        had_slots |= updater.has_slots(&table);
    }
    updater.flush(0, &mut table)?;
    Ok((losses, table.values().to_vec(), had_slots))
}

#[test]
fn slots_beside_weights_leave_the_bits() {
    fn hold<R: UpdateRule>(rule: &R, has_slots: bool) {
        of_values::<R, f32, f32>(rule, &data(), has_slots);
        of_values::<R, f64, f64>(rule, &data(), has_slots);
        let units = Csr::from_rows(
            COLUMNS,
            (0..70).map(|row| (0..row % 50).map(move |k| (k * 2 + row % 20, 1.0f32))),
        );
        let units = units.unwrap().view().units().unwrap().to_owned();
        of_values::<R, f32, Unit>(rule, &units, has_slots);
    }
    fn of_values<R: UpdateRule, T, V>(rule: &R, x: &Csr<V>, has_slots: bool)
    where
        T: Float<Accumulator = T>,
        V: Factor<T>,
    {
        let beside = train::<R, T, V>(rule, x, true).unwrap();
        let apart = train::<R, T, V>(rule, x, false).unwrap();
        assert!(beside.0.iter().all(|loss| loss.is_finite()));
        assert_eq!((beside.2, apart.2), (has_slots, false), "{rule:?}");
        assert!(beside.0 == apart.0 && beside.1 == apart.1, "{rule:?}");
    }
    let (learning_rate, lazy_update) = (0.01, LazyUpdate::Touched);
    hold(&AdaGrad { learning_rate, ..AdaGrad::default() }, true);
    hold(&Ftrl { learning_rate, ..Ftrl::default() }, true);
    hold(&Adam { learning_rate, lazy_update, ..Adam::default() }, true);
    // The sums of a rule that only adds lie apart.
    hold(&Sgd { learning_rate, ..Sgd::default() }, false);
    // Rows wait for steps that they have missed.
    hold(&Sgd { learning_rate, momentum: 0.5, ..Sgd::default() }, false);
    hold(&AdaGrad { learning_rate, weight_decay: 0.1, ..AdaGrad::default() }, false);
    hold(&Adam { learning_rate, ..Adam::default() }, false);
    // All rows are updated.
    let lazy_update = LazyUpdate::Dense;
    hold(&Adam { learning_rate, lazy_update, ..Adam::default() }, false);
}

/// The sums of rows that came before the one at which it happened are there when a row function
/// panics.
#[test]
fn a_step_that_panics_leaves_no_sums() {
    let (rule, x) = (AdaGrad::default(), data::<f32>());
    let weights_after = |panics: bool| -> Result<Vec<f32>> {
        let (mut updater, mut table) = model(&rule)?;
        let mut scratch = Scratch::default();
        let (one, width) = (Parallel::Sequential, Fixed::<1>);
        for number in [0, 0, 3] {
            let x = batch(&x, number);
            updater.begin_step()?;
            if panics {
                let result = catch_unwind(AssertUnwindSafe(|| {
                    let fails = |row: usize, scores: &mut [f32], saved: &mut [f32]| {
                        assert!(row < 33);
                        row_function(row, scores, saved)
                    };
                    step(x, 0, &mut table, &mut updater, width, one, &mut scratch, fails)
                }));
                assert!(result.is_err());
            }
            step(x, 0, &mut table, &mut updater, width, one, &mut scratch, row_function)?;
            updater.end_step()?;
            assert!(updater.has_slots(&table));
        }
        Ok(table.values().to_vec())
    };
    assert_eq!(weights_after(true).unwrap(), weights_after(false).unwrap());
}

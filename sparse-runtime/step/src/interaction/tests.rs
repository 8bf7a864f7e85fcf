//! Slots of sums beside the weights and apart: the same bits.

use super::{any_rows, step};
use crate::error::Result;
use crate::linear::{Fixed, Scratch};
use crate::optimizer::{ParameterSpec, Updater};
use crate::with_rows;
use nnz_arrays::formats::Csr;
use nnz_arrays::kernels::Parallel;
use nnz_arrays::parameter_memory::Table;
use nnz_optim::{AdaGrad, Adam, Ftrl, LazyUpdate, Sgd, UpdateRule};
use sparse_core::storage::Storage;

const COLUMNS: usize = 60;
const SIZE: usize = 9;

type Tables = [Table<f32>; 2];

/// A batch of some rows, one of them in each fifth step.
fn batch(x: &Csr<f32>, number: usize) -> Result<nnz_arrays::formats::CsrView<'_, f32>> {
    let first = number * 3 % 20;
    Ok(x.view().rows(first..first + if number % 5 == 4 { 1 } else { 12 })?)
}

fn row_function(row: usize, scores: &mut [f32], _: &mut [f32]) -> f32 {
    let loss = scores[0] + scores[1] - (row % 3) as f32;
    scores.fill(loss);
    loss * loss
}

/// Steps by [`step`], or by loops whose sums have slots apart. Somebody reads or writes all weights
/// at times, and goes on with copies.
fn train<R: UpdateRule>(
    rule: &R,
    x: &Csr<f32>,
    beside: bool,
) -> Result<(Vec<f64>, [Vec<f32>; 2], bool)> {
    let spec = |name, size| ParameterSpec::new(name, COLUMNS, size, Some(Storage::RowSparse));
    let mut updater = Updater::<R, f32>::new(rule.clone(), vec![spec("w", 1), spec("v", SIZE)])?;
    let value = |i: usize| (i * 37 % 11) as f32 / 70.0 - 0.05;
    let mut tables: Tables = [1, SIZE]
        .map(|size| Table::from_values(size, &(0..size * COLUMNS).map(value).collect::<Vec<_>>()));
    let (mut scratch, mut losses, mut had_slots) = (Scratch::default(), Vec::new(), false);
    for number in 0..40 {
        let x = batch(x, number)?;
        match number {
            10 | 25 => tables[0].values_mut()[number] += 0.25,
            13 => assert_eq!(tables[0].values().len(), COLUMNS),
            17 | 18 => {
                // A copy of both makes a step that nobody sees, then the original, then a copy of
                // the tables alone goes on.
                let (mut other, mut others) = (updater.clone(), tables.clone());
                other.begin_step()?;
                let [w, v] = &mut others;
                step(
                    x,
                    (0, w),
                    (1, v),
                    &mut other,
                    Fixed::<SIZE>,
                    Parallel::Sequential,
                    &mut scratch.clone(),
                    row_function,
                )?;
                other.end_step()?;
                tables = tables.clone();
            }
            _ => {}
        }
        updater.begin_step()?;
        let [w, v] = &mut tables;
        losses.push(if beside {
            let (parallel, scratch) = (Parallel::Sequential, &mut scratch);
            step(x, (0, w), (1, v), &mut updater, Fixed::<SIZE>, parallel, scratch, row_function)?
        } else {
            with_rows!(R, f32; updater, [0 => w, 1 => v], |[w, v]| {
                any_rows(x, w, v, Fixed::<SIZE>, &mut scratch, row_function)
            })
        });
        updater.end_step()?;
        had_slots |= updater.has_slots(&tables[0]);
    }
    let [w, v] = &mut tables;
    updater.flush(0, &mut *w)?;
    updater.flush(1, &mut *v)?;
    Ok((losses, tables.map(|table| table.values().to_vec()), had_slots))
}

#[test]
fn slots_beside_weights_leave_the_bits() {
    let rows = (0..40usize).map(|row| {
        let n_entries = if row % 11 == 3 { 0 } else { 1 + row * 5 % 25 };
        let column = |k| if k == 0 { 0 } else { k * 2 + row % 10 };
        (0..n_entries).map(|k| (column(k), (k % 7) as f32 / 4.0 - 0.6)).collect::<Vec<_>>()
    });
    let x = Csr::from_rows(COLUMNS, rows).unwrap();
    fn hold<R: UpdateRule>(rule: &R, x: &Csr<f32>, has_slots: bool) {
        let beside = train(rule, x, true).unwrap();
        let apart = train(rule, x, false).unwrap();
        assert!(beside.0.iter().all(|loss| loss.is_finite()));
        assert_eq!((beside.2, apart.2), (has_slots, false), "{rule:?}");
        assert!(beside.0 == apart.0 && beside.1 == apart.1, "{rule:?}");
    }
    let learning_rate = 0.01;
    hold(&Sgd { learning_rate, ..Sgd::default() }, &x, true);
    hold(&AdaGrad { learning_rate, ..AdaGrad::default() }, &x, true);
    hold(&Ftrl { learning_rate, ..Ftrl::default() }, &x, true);
    let lazy_update = LazyUpdate::Touched;
    hold(&Adam { learning_rate, lazy_update, ..Adam::default() }, &x, true);
    // Rows wait for steps that they have missed.
    hold(&Sgd { learning_rate, momentum: 0.5, ..Sgd::default() }, &x, false);
    hold(&Sgd { learning_rate, weight_decay: 0.1, ..Sgd::default() }, &x, false);
    // All rows are updated.
    let lazy_update = LazyUpdate::Dense;
    hold(&Adam { learning_rate, lazy_update, ..Adam::default() }, &x, false);
}

/// Rows of data with one column, whose steps are far below the last digits of weight and factors.
#[test]
fn n1_a_column_of_all_rows_of_data_has_one_step() {
    let n_rows = 1 << 16;
    let x = Csr::from_rows(1, (0..n_rows).map(|_| [(0, 2.0f32)])).unwrap();
    let spec = |name, size| ParameterSpec::new(name, 1, size, Some(Storage::RowSparse));
    let rule = Sgd { learning_rate: 1.0, ..Sgd::default() };
    let mut updater = Updater::<_, f32>::new(rule, vec![spec("w", 1), spec("v", 1)]).unwrap();
    let mut tables = [Table::from_values(1, &[4096.0]), Table::from_values(1, &[1.0])];
    updater.begin_step().unwrap();
    let [w, v] = &mut tables;
    let (one, scratch) = (Parallel::Sequential, &mut Scratch::default());
    let row_function = |_: usize, scores: &mut [f32], _: &mut [f32]| {
        // The interaction of a single entry is 0, and so is its gradient.
        scores.fill(-1.0 / n_rows as f32);
        0.0
    };
    step(x.view(), (0, w), (1, v), &mut updater, Fixed::<1>, one, scratch, row_function).unwrap();
    updater.end_step().unwrap();
    assert_eq!((tables[0].values(), tables[1].values()), (&[4098.0][..], &[1.0][..]));
}

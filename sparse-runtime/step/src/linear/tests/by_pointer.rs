//! Loops that call the row function by a pointer, and those that are compiled for it: the same
//! bits.

use super::{COLUMNS, data, model, row_function};
use crate::error::Result;
use crate::linear::{Fixed, Scratch, in_library, own_step, own_steps};
use nnz_arrays::formats::{Csr, CsrView};
use nnz_arrays::kernels::Parallel;
use nnz_optim::{AdaGrad, Adam, Ftrl, LazyUpdate, Sgd, UpdateRule};
use sparse_core::element::{Factor, Unit};

/// Losses of batches and of samples in one call, and the weights.
fn train<R: UpdateRule, V: Factor<f32>>(
    rule: &R,
    x: &Csr<V>,
    by_pointer: bool,
) -> Result<(Vec<u64>, Vec<f32>)> {
    let (mut updater, mut table) = model::<R, f32>(rule)?;
    let (mut scratch, mut losses) = (Scratch::default(), Vec::new());
    let (width, parallel) = (Fixed::<1>, Parallel::Sequential);
    for range in [0..40, 7..8, 8..21] {
        let x: CsrView<'_, V> = x.view().rows(range)?;
        updater.begin_step()?;
        let (table, updater) = (&mut table, &mut updater);
        let loss = if by_pointer {
            in_library::step(x, 0, table, updater, parallel, &mut scratch, row_function)?
        } else {
            own_step(x, 0, table, updater, width, parallel, &mut scratch, row_function)?
        };
        updater.end_step()?;
        losses.push(loss.to_bits());
    }
    let mut made = 0;
    // The loss of one sample is not finite: steps end there.
    let row_function = |row: usize, scores: &mut [f32], saved: &mut [f32]| {
        let loss = row_function(row, scores, saved);
        if row == 50 { f32::NAN } else { loss }
    };
    while made < 51 {
        let range = made..made + updater.begin_steps(x.n_rows() - made)?;
        let (table, updater) = (&mut table, &mut updater);
        let steps = if by_pointer {
            in_library::steps(x.view(), range, 0, table, updater, &mut scratch, row_function)?
        } else {
            let row_function = |row: usize, scores: &mut [f32], saved: &mut [f32], _: &mut ()| {
                row_function(row, scores, saved)
            };
            let (x, kept) = (x.view(), &mut ());
            own_steps(x, range, 0, table, updater, width, &mut scratch, kept, row_function)?
        };
        updater.end_steps(steps.n_steps)?;
        made += steps.n_steps;
        losses.extend([steps.loss_sum.to_bits(), steps.last_loss.to_bits()]);
        assert_eq!(steps.diverged(), made == 51);
    }
    updater.flush(0, &mut table)?;
    assert_eq!(table.values().len(), COLUMNS);
    Ok((losses, table.values().to_vec()))
}

fn hold<R: UpdateRule>(rule: &R) -> Result<()> {
    let numbers = data::<f32>();
    assert_eq!(train(rule, &numbers, true)?, train(rule, &numbers, false)?, "{rule:?}");
    let pattern = numbers.iter_rows().map(|row| row.map(|(column, _)| (column, Unit)));
    let pattern = Csr::from_rows(COLUMNS, pattern.map(Vec::from_iter).collect::<Vec<_>>())?;
    assert_eq!(train(rule, &pattern, true)?, train(rule, &pattern, false)?, "{rule:?}");
    Ok(())
}

#[test]
fn a_pointer_to_the_row_function_changes_no_bit() -> Result<()> {
    hold(&Sgd::default())?;
    hold(&Sgd { momentum: 0.9, weight_decay: 0.01, ..Sgd::default() })?;
    hold(&AdaGrad::default())?;
    hold(&Ftrl { l1: 0.001, ..Ftrl::default() })?;
    hold(&Adam::default())?;
    hold(&Adam { lazy_update: LazyUpdate::Touched, ..Adam::default() })
}

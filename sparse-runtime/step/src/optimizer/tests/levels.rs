//! The loops of updates give the same bits with any instructions, as far as this processor has
//! them.

use crate::optimizer::{ParameterSpec, RowAccumulator, Updater};
use crate::with_rows;
use nnz_arrays::formats::Dense;
use nnz_arrays::parameter_memory::Table;
use nnz_device::simd::every_level_gives_the_same;
use nnz_optim::{LazyUpdate, NAMES, RuleVisitor, StateBlock, UpdateRule, with_rule};
use sparse_core::element::Float;
use sparse_core::storage::Storage;

/// Numbers whose sums round differently in another order.
fn numbers<T: Float>(n_rows: usize, n_cols: usize) -> Dense<T> {
    let number = |i: usize| T::of(((i * 7919 % 1009) as f64 - 500.0) / 300.0);
    Dense::new([n_rows, n_cols], (0..n_rows * n_cols).map(number).collect()).unwrap()
}

fn bits<T: Float>(values: &[T]) -> Vec<u64> {
    values.iter().map(|value| value.as_f64().to_bits()).collect()
}

/// Steps on rows of one weight: some at once, as a row of data names them, and sums of several.
/// Weights and states afterwards.
fn updates<R: UpdateRule, T: Float>(rule: &R) -> crate::error::Result<Vec<u64>> {
    const N_ROWS: usize = 60;
    let spec = ParameterSpec::new("w", N_ROWS, 1, Some(Storage::RowSparse));
    let mut updater = Updater::<R, T>::new(rule.clone(), vec![spec])?;
    let mut table = Table::from_values(1, numbers::<T>(N_ROWS, 1).values());
    for n_rows in (0..50).chain([1, 4, 39]) {
        // At rate 0 some rules do nothing.
        let rate = if n_rows == 9 { 0.0 } else { 0.1 };
        updater.set_learning_rate(rate).ok();
        updater.begin_step()?;
        let grads = numbers::<T::Accumulator>(n_rows + 1, 1);
        let (row, grad) = (|place: usize| (place * 7 + n_rows) % N_ROWS, grads.values());
        with_rows!(R, T; updater, [0 => &mut table], |[rows]| {
            // SAFETY: multiples of 7 below 60 of them are different modulo 60, each below the
            // number of rows.
            unsafe { rows.cursor(1).update_each(n_rows, row, |place| grad[place]) };
            let mut sums = RowAccumulator::new(N_ROWS, 1);
            let slots = sums.own_slots();
            for place in 0..n_rows {
                let entry = (row(3 * place % N_ROWS) as u32, T::one());
                // SAFETY: below the number of rows, of one element.
                unsafe { sums.add_outer::<_, T, _>(slots, [entry].into_iter(), &grad[place..=place]) };
            }
            // SAFETY: each row that was summed is one of the parameter's.
            unsafe { rows.shared(1).update_summed(&sums) };
            rows.finish();
        });
        updater.end_step()?;
    }
    updater.flush(0, &mut table)?;
    let mut found = bits(table.values());
    updater.visit_states(0, &table, |states| {
        let numbers = states.iter().flat_map(|state| state.values());
        found.extend(numbers.map(|number| number.as_f64().to_bits()));
    });
    Ok(found)
}

/// Of a rule: with each of its options, and without.
struct Updates;

impl RuleVisitor for Updates {
    type Output = ();

    fn visit<R: UpdateRule>(self, mut rule: R) {
        rule.set_lazy_update(LazyUpdate::Touched);
        if rule.check().is_err() {
            rule.set_lazy_update(LazyUpdate::Dense);
        }
        let options = ["weight_decay", "l1", "l2", "clip_gradient", "momentum"];
        let set = |option: &str| {
            let mut rule = rule.clone();
            rule.set(option, 0.1).ok()?;
            rule.check().is_ok().then_some(rule)
        };
        let rules = options.into_iter().filter_map(set).chain([rule.clone()]);
        for rule in rules {
            every_level_gives_the_same(&format!("{rule:?}"), || updates::<R, f32>(&rule).unwrap());
            every_level_gives_the_same(&format!("{rule:?}"), || updates::<R, f64>(&rule).unwrap());
        }
    }
}

#[test]
fn updates_of_rows_of_one_weight() {
    for name in NAMES {
        with_rule(name, Updates).unwrap();
    }
}

//! Rows that a step catches up with, against rows that were settled before it and rows that make
//! each step.

use super::*;

const STEPS: usize = 2600;

/// A sample a step: most columns are named every few steps, the last twenty every 1250.
fn samples<T: Float>() -> Csr<T> {
    let rows = (0..STEPS).map(|step| {
        let often = (0..11).map(|k| (step * 7 + k * 9) % 100);
        let rarely = (100..COLUMNS).filter(|_| step % 1250 == 0);
        let mut columns = often.chain(rarely).collect::<Vec<_>>();
        columns.sort_unstable();
        columns.into_iter().map(|column| (column, T::of((column % 5) as f64 / 4.0 - 0.3))).collect()
    });
    Csr::from_rows(COLUMNS, rows.collect::<Vec<Vec<_>>>()).unwrap()
}

fn weights<T: Float<Accumulator = T>>(rule: &Adam, before: bool) -> Result<Vec<T>> {
    let (mut updater, mut table) = model::<Adam, T>(rule)?;
    let (x, mut scratch) = (samples::<T>(), Scratch::default());
    for number in 0..STEPS {
        let x = x.view().rows(number..number + 1)?;
        updater.begin_step()?;
        if before {
            let columns = x.iter_rows().flatten().map(|(column, _)| column);
            updater.settle_rows(0, &mut table, columns)?;
        }
        let (one, width) = (Parallel::Sequential, Fixed::<1>);
        // Gradients that do not depend on weights: steps of Adam would make much of what rounding
        // leaves.
        let given = |_: usize, scores: &mut [T], _: &mut [T]| {
            scores[0] = T::of((number * 37 % 11) as f64 / 10.0 - 0.45);
            T::zero()
        };
        step(x, 0, &mut table, &mut updater, width, one, &mut scratch, given)?;
        updater.end_step()?;
    }
    updater.flush(0, &mut table)?;
    Ok(table.values().to_vec())
}

/// The corrections of the start end after some hundred steps, and from then on idle steps are the
/// same.
fn rule() -> Adam {
    Adam { learning_rate: 0.01, beta1: 0.5, beta2: 0.9, ..Adam::default() }
}

#[test]
fn n16_rows_that_a_step_catches_up_with_have_the_bits_of_rows_settled_before_it() {
    assert_eq!(weights::<f32>(&rule(), false).unwrap(), weights::<f32>(&rule(), true).unwrap());
    assert_eq!(weights::<f64>(&rule(), false).unwrap(), weights::<f64>(&rule(), true).unwrap());
}

#[test]
fn n16_rows_that_a_step_catches_up_with_are_those_that_make_each_step() {
    let dense = Adam { lazy_update: LazyUpdate::Dense, ..rule() };
    let expected = weights::<f64>(&dense, false).unwrap();
    for (found, expected) in weights::<f64>(&rule(), false).unwrap().into_iter().zip(expected) {
        assert!((found - expected).abs() <= 1e-6 * expected.abs(), "{found} {expected}");
    }
}

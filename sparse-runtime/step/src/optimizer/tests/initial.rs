//! Weights that were there before the first step, under a rule whose weights follow from their
//! states.

use crate::error::Result;
use crate::optimizer::{ParameterSpec, Updater};
use crate::with_rows;
use nnz_arrays::parameter_memory::Table;
use nnz_optim::{Ftrl, LazyUpdate, Step, UpdateRule};
use sparse_core::storage::Storage;

fn rule(lazy_update: LazyUpdate) -> Ftrl {
    Ftrl { l1: 0.01, l2: 0.1, lazy_update, ..Ftrl::default() }
}

fn updater(n_rows: usize, lazy_update: LazyUpdate) -> Updater<Ftrl, f32> {
    let spec = ParameterSpec::new("w", n_rows, 1, Some(Storage::RowSparse));
    Updater::new(rule(lazy_update), vec![spec]).unwrap()
}

/// A step on a batch that names some rows, each with the gradient of its number.
fn step(
    mut updater: &mut Updater<Ftrl, f32>,
    table: &mut Table<f32>,
    named: &[usize],
) -> Result<()> {
    updater.begin_step()?;
    with_rows!(Ftrl, f32; updater, [0 => &mut *table], |[rows]| {
        for row in named {
            rows.settle(*row);
            rows.accumulate(*row)[0] += f64::from(gradient(*row));
        }
        rows.apply_accumulated();
        rows.finish();
    });
    updater.end_step()
}

fn gradient(row: usize) -> f32 {
    (row as f32 * 0.7).cos()
}

/// Groups of rows are updated as vectors where the processor has them; each gets the bits of a step
/// by itself.
#[test]
fn n2_batches_start_from_the_states_that_give_the_weights() {
    const N_ROWS: usize = 90;
    let start = Vec::from_iter((0..N_ROWS).map(|row| (row as f32 * 0.3).sin()));
    let named = Vec::from_iter((0..N_ROWS).filter(|row| row % 3 != 1));
    for mode in [LazyUpdate::Exact, LazyUpdate::Touched, LazyUpdate::Dense] {
        let (mut updater, mut table) = (updater(N_ROWS, mode), Table::from_values(1, &start));
        let mut expected = Vec::from_iter(start.iter().map(|weight| (*weight, [0.0; 2])));
        for _ in 0..2 {
            step(&mut updater, &mut table, &named).unwrap();
            let by_hand = rule(mode).step::<f32>(0.1, 1.0, 0);
            for row in &named {
                let (weight, state) = &mut expected[*row];
                by_hand.update(weight, state, gradient(*row));
            }
        }
        updater.flush(0, &mut table).unwrap();
        let bits = |weight: f32| weight.to_bits();
        let found = Vec::from_iter(table.values().iter().copied().map(bits));
        assert_eq!(found, Vec::from_iter(expected.iter().map(|of| bits(of.0))), "{mode:?}");
        let states = updater.states(0, &table).unwrap();
        assert!(states.iter().eq(expected.iter().map(|of| &of.1)), "{mode:?}");
        assert!(states.iter().zip(0..).all(|(state, row)| (row % 3 == 1) == (*state == [0.0; 2])));
    }
}

#[cfg(target_os = "linux")]
#[test]
fn n2_no_page_of_states_is_mapped_for_rows_that_no_batch_names() {
    const N_ROWS: usize = 1 << 28;
    let resident_pages = || -> usize {
        let statm = std::fs::read_to_string("/proc/self/statm").unwrap();
        statm.split_whitespace().nth(1).unwrap().parse().unwrap()
    };
    let before = resident_pages();
    let (mut updater, mut table) = (updater(N_ROWS, LazyUpdate::Exact), Table::zeros(N_ROWS, 1));
    let loaded = [7, 1 << 27, N_ROWS - 1];
    loaded.iter().for_each(|row| table.values_mut()[*row] = 0.5);
    for _ in 0..2 {
        step(&mut updater, &mut table, &[loaded[0], 1 << 20]).unwrap();
    }
    updater.flush(0, &mut table).unwrap();
    assert!(loaded[1..].iter().all(|row| table.row(*row) == [0.5]));
    assert!(table.row(loaded[0]) != [0.5] && table.row(1 << 20) != [0.0]);
    assert_eq!(table.norms().n_rows_not_zero, 4);
    assert_eq!(table.values()[loaded[1]], 0.5);
    let touched = resident_pages().saturating_sub(before);
    // A sixteenth of the blocks' 2²⁰ pages of 4 KiB, for what other tests do meanwhile.
    assert!(touched < 1 << 16, "{touched} pages became resident");
}

//! Weights after steps of large batches, against the same steps in `f64`.

use crate::linear::{Fixed, Scratch, parallel, step};
use crate::optimizer::{ParameterSpec, Updater};
use crate::with_rows;
use nnz_arrays::formats::{ColumnIds, Csr, CsrParts, CsrView};
use nnz_arrays::kernels::Parallel;
use nnz_arrays::parameter_memory::Table;
use nnz_arrays::random;
use nnz_optim::{AdaGrad, Sgd, UpdateRule};
use sparse_core::element::{Factor, Float, Unit};
use sparse_core::storage::Storage;
use std::ops::Range;

/// A sample for each column given.
fn samples(n_cols: usize, columns: Vec<u32>) -> Csr<Unit> {
    let indptr = (0..=columns.len() as u64).collect();
    let values = vec![Unit; columns.len()];
    let columns = ColumnIds::U32(columns);
    Csr::from_parts(CsrParts { n_cols, indptr, columns, values }).unwrap()
}

/// Weights under a rule.
struct Fit<R: UpdateRule, T: Float> {
    updater: Updater<R, T>,
    table: Table<T>,
    scratch: Scratch<T>,
}

impl<R: UpdateRule, T: Float<Accumulator = T>> Fit<R, T> {
    fn new(rule: R, weights: &[T]) -> Self {
        let spec = ParameterSpec::new("w", weights.len(), 1, Some(Storage::RowSparse));
        let updater = Updater::new(rule, vec![spec]).unwrap();
        Fit { updater, table: Table::from_values(1, weights), scratch: Scratch::default() }
    }

    /// One step, on so many threads; `derivative(sample, score)` is that of a sample's loss.
    fn step<V: Factor<T>>(
        &mut self,
        n_parts: usize,
        x: CsrView<'_, V>,
        derivative: impl Fn(usize, T) -> T,
    ) {
        let share = T::of(1.0 / x.n_rows() as f64);
        let Fit { updater, table, scratch } = self;
        updater.begin_step().unwrap();
        let row_function = |row: usize, scores: &mut [T], _: &mut [T]| {
            scores[0] = share * derivative(row, scores[0]);
            T::zero()
        };
        if n_parts == 1 {
            let one = Parallel::Sequential;
            step(x, 0, table, updater, Fixed::<1>, one, scratch, row_function).unwrap();
        } else {
            let mut row_functions = |rows: Range<usize>, scores: &mut [T]| {
                for (row, score) in rows.zip(scores.chunks_exact_mut(1)) {
                    row_function(row, score, &mut []);
                }
            };
            let made: crate::error::Result<()> = (|| {
                with_rows!(R, T; *updater, [0 => table], |[rows]| {
                    let threads = (n_parts, n_parts.is_multiple_of(2));
                    parallel::step(threads, x, rows, Fixed::<1>, scratch, &mut row_functions);
                    Ok(())
                })
            })();
            made.unwrap();
        }
        updater.end_step().unwrap();
    }

    fn weights(&mut self) -> Vec<T> {
        self.updater.flush(0, &mut self.table).unwrap();
        self.table.values().to_vec()
    }
}

fn ulp(number: f64) -> f64 {
    let number = number.abs() as f32;
    f64::from(number.next_up()) - f64::from(number)
}

fn sgd(learning_rate: f64) -> Sgd {
    Sgd { learning_rate, ..Sgd::default() }
}

/// Where each step of a sample is far below the last digit of the weight.
#[test]
fn n1_small_steps_of_large_batches_are_not_rounded_away() {
    const BATCH: usize = 1 << 14;
    let x = samples(1, vec![0; BATCH]);
    let label = |row: usize| row.is_multiple_of(100);
    let mut fit = Fit::<Sgd, f32>::new(sgd(0.1), &[-4.0]);
    let mut expected = -4.0f64;
    for _ in 0..40 {
        fit.step(1, x.view(), |row, score: f32| {
            1.0 / (1.0 + (-score).exp()) - if label(row) { 1.0 } else { 0.0 }
        });
        let probability = 1.0 / (1.0 + (-expected).exp());
        let n_labels = (0..BATCH).filter(|row| label(*row)).count();
        expected -= 0.1 * (probability - n_labels as f64 / BATCH as f64);
    }
    let found = f64::from(fit.weights()[0]);
    assert!((found - expected).abs() < 40.0 * ulp(4.0), "{found} {expected}");
    assert!(expected < -4.02);
}

/// The rounding of a share, a sum, a step and a weight, whatever the number of samples.
#[test]
fn n1_weights_are_within_4_ulps_of_a_loop_in_f64() {
    let sizes = [1, 2, 255, 256, 257, 5000].into_iter();
    let sizes = sizes.flat_map(|n_samples| [1, 40, 1000].map(|n_cols| (n_samples, n_cols)));
    for (n_samples, n_cols) in sizes.chain([(1 << 16, 1), (1 << 20, 1)]) {
        let mut generator = random::generator(7, n_samples as u64);
        let columns = (0..n_samples).map(|_| random::below(&mut generator, n_cols as u64) as u32);
        let columns = columns.collect();
        let x = samples(n_cols, columns);
        let mut uniform = || random::uniform(&mut generator) as f32;
        let derivatives: Vec<f32> = (0..n_samples).map(|_| uniform() - 0.25).collect();
        let weights: Vec<f32> = (0..n_cols).map(|_| 4.0 * uniform() - 2.0).collect();
        for rate in if n_samples < 1 << 16 { vec![1.0, 1e-3] } else { vec![1.0] } {
            let mut steps = vec![0.0; n_cols];
            for (column, derivative) in x.columns().iter().zip(&derivatives) {
                steps[column] += rate * f64::from(*derivative) / n_samples as f64;
            }
            let mut fit = Fit::<Sgd, f32>::new(sgd(rate), &weights);
            fit.step(1, x.view(), |row, _| derivatives[row]);
            let found = fit.weights();
            for ((found, weight), step) in found.iter().zip(&weights).zip(&steps) {
                let expected = f64::from(*weight) - step;
                let bound = 4.0 * ulp(expected.abs().max(step.abs()));
                let error = (f64::from(*found) - expected).abs();
                assert!(error <= bound, "{n_samples} samples of {n_cols} at {rate}: {error:e}");
            }
            if (2..=5000).contains(&n_samples) {
                for n_parts in [2, 3] {
                    let mut fit = Fit::<Sgd, f32>::new(sgd(rate), &weights);
                    fit.step(n_parts, x.view(), |row, _| derivatives[row]);
                    assert_eq!(fit.weights(), found, "{n_samples} samples in {n_parts} parts");
                }
            }
        }
    }
}

/// Of a rule with state as well.
#[test]
fn n1_sums_of_other_rules_are_as_exact() {
    let x = samples(1, vec![0; 1 << 16]);
    let mut fit = Fit::<AdaGrad, f32>::new(AdaGrad::default(), &[0.0]);
    // 0.1 of each sample, which an `f32` rounds up again and again.
    fit.step(1, x.view(), |_, _| 0.1f32);
    let mut states = Vec::new();
    fit.updater.visit_states(0, &fit.table, |all| states.extend(all.iter().copied()));
    let state = format!("{states:?}");
    let expected = f64::from(0.1f32).powi(2);
    assert!(state.contains(&format!("{:?}", expected as f32)), "{state} {expected}");
}

fn n1b<T: Float<Accumulator = T>>(n_samples: usize, from: f64, to: f64) {
    let x = samples(1, vec![0; n_samples]);
    for n_parts in [1, 2] {
        let mut fit = Fit::<Sgd, T>::new(sgd(1.0), &[T::of(from)]);
        fit.step(n_parts, x.view(), |_, score: T| score - T::of(to));
        assert_eq!(fit.weights(), [T::of(to)], "{n_samples} samples in {n_parts} parts");
    }
}

/// A weight that is larger than each of the steps by as much as it would be in a batch of more
/// samples.
#[test]
fn n1b_one_step_at_rate_1_reaches_the_mean() {
    for n_samples in [1 << 10, 1 << 14, 1 << 18] {
        n1b::<f32>(n_samples, 1.0, 3.0);
        n1b::<f64>(n_samples, 1.0, 3.0);
        n1b::<f32>(n_samples, 16384.0, 16386.0);
    }
}

#[test]
fn n1c_labels_far_from_0_are_met_as_closely_as_others() {
    const BATCH: usize = 1 << 13;
    let x = samples(1, vec![0; BATCH]);
    let label = |row: usize| if row.is_multiple_of(2) { 1000.5 } else { 999.5f32 };
    let mut fit = Fit::<Sgd, f32>::new(sgd(0.1), &[0.0]);
    for _ in 0..200 {
        fit.step(1, x.view(), |row, score| score - label(row));
    }
    let found = fit.weights()[0];
    assert!((found - 1000.0).abs() < 5e-4, "{found}");
    let objective: f32 = (0..BATCH).map(|row| (found - label(row)).powi(2) / 2.0).sum();
    assert!((objective / BATCH as f32 - 0.125).abs() < 1e-4, "{objective}");
}

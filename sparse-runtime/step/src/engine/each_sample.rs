//! A step for each sample: read, row function, update.

use super::any_updater::AnyUpdater;
use super::program::{DenseTerm, Program, Read, RowFunction, Sample, TrainedDense};
use super::sample_rows;
use super::tables::{Numbers, Tables};
use crate::error::Result;
use crate::linear::Scratch;
use crate::model::RowSteps;
use crate::optimizer::{DenseStates, RowUpdater, UpdateKind};
use nnz_optim::UpdateRule;
use sparse_core::element::Float;
use std::ops::Range;

/// Trains on the samples of a batch, in order.
pub(super) fn train<T: Float<Accumulator = T>>(
    program: &mut Program<'_, '_, T>,
    updater: &mut dyn AnyUpdater<T>,
    scratch: &mut Scratch<T>,
    row_function: &RowFunction<'_, T>,
) -> Result<RowSteps> {
    let records = program.n_samples == 1 && updater.records_outputs();
    let numbers = &mut scratch.numbers;
    numbers.make_room(program);
    let mut made = RowSteps::default();
    while made.n_steps < program.n_samples && !made.diverged() {
        let first = made.n_steps;
        let count = updater.begin_steps(program.n_samples - first)?;
        let mut of_call = Samples { range: first..first + count, records, numbers, row_function };
        let steps = updater.step_samples(program, &mut of_call)?;
        updater.end_steps(steps.n_steps)?;
        made.extend(steps);
    }
    if records {
        program.write_outputs(0, &numbers.outputs);
    }
    Ok(made)
}

/// The samples of one call, and what their steps need that depends on no rule.
pub(crate) struct Samples<'s, 'f, T: Float> {
    pub(super) range: Range<usize>,
    pub(super) records: bool,
    pub(super) numbers: &'s mut Numbers<T>,
    pub(super) row_function: &'s RowFunction<'f, T>,
}

impl<T: Float<Accumulator = T>> Samples<'_, '_, T> {
    /// A step for each of them. Ends early after a loss that is infinite or NaN. What takes vectors
    /// is in functions of its own, so that this is compiled once.
    #[inline(never)]
    pub(super) fn steps<R: UpdateRule, K: UpdateKind>(
        &mut self,
        reads: &[Read<'_, '_, T>],
        n_samples: usize,
        tables: &mut [Option<RowUpdater<'_, R, T, K>>],
        dense: &mut [TrainedDense<'_, T>],
        states: &mut [Option<DenseStates<R, T>>],
    ) -> Result<RowSteps> {
        let mut layout = std::mem::take(&mut self.numbers.layout);
        let facts = |table: usize| Some(sample_rows::facts(tables.get(table)?.as_ref()?));
        let result = layout.of(reads, facts).and_then(|()| {
            let mut of_call =
                Tables::new(reads, &layout, n_samples, tables, &mut [], &mut [], true);
            self.step_all(&mut of_call, dense, states)
        });
        self.numbers.layout = layout;
        result
    }

    #[inline(always)]
    fn step_all<R: UpdateRule, K: UpdateKind>(
        &mut self,
        of_call: &mut Tables<'_, '_, '_, '_, R, T, K, K>,
        dense: &mut [TrainedDense<'_, T>],
        states: &mut [Option<DenseStates<R, T>>],
    ) -> Result<RowSteps> {
        let Samples { range, records, numbers, row_function } = self;
        let mut steps = RowSteps::default();
        for sample in range.clone() {
            of_call.read(sample, numbers)?;
            let loss = row_function(Sample {
                index: sample,
                numbers: &numbers.read,
                dense,
                gradients: &mut numbers.gradients,
                terms: &mut numbers.terms,
                outputs: records.then_some(&mut numbers.outputs),
                work: &mut numbers.work,
            });
            if !dense.is_empty() {
                update_dense(dense, states, &numbers.terms);
            }
            of_call.update(sample, numbers);
            if !steps.add(loss.as_f64()) {
                break;
            }
        }
        Ok(steps)
    }
}

/// Updates the dense parameters by what one sample gives of their gradients.
#[inline(always)]
pub(super) fn update_dense<R: UpdateRule, T: Float<Accumulator = T>>(
    dense: &mut [TrainedDense<'_, T>],
    states: &mut [Option<DenseStates<R, T>>],
    terms: &[T],
) {
    let mut rest = terms;
    for (dense, states) in dense.iter_mut().zip(states) {
        let (term, others) = rest.split_at(dense.term.size(dense.values.len()));
        rest = others;
        let Some(states) = states else { continue };
        match dense.term {
            DenseTerm::Whole => states.update(dense.values, term),
            DenseTerm::Outer(rows, _) => {
                let (left, right) = term.split_at(rows);
                states.update_outer(dense.values, left, right);
            }
        }
    }
}

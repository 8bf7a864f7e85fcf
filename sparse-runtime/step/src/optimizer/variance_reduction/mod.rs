//! Variance reduction: the purpose of steps of rules that correct gradients, and the mean gradient.

pub(super) mod state;

use self::state::Reduction;
use super::memory::Weights;
use super::samples::{Samples, Usage};
use super::touched::TouchedRows;
use super::update_kind::StateOf;
use super::updater::Updater;
use crate::error::Result;
use crate::model::Model;
use nnz_arrays::parameter_memory::{Layout, StatesMut, Table};
use nnz_optim::{Correction, Step, UpdateRule};
use serde::{Deserialize, Serialize};
use sparse_core::element::Float;

/// What a checkpoint says of a `Reduction` beside its numbers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReductionSnapshot {
    has_mean: bool,
    /// The samples of which derivatives are kept.
    pub n_samples: usize,
    /// Whether parameters at a snapshot are kept.
    pub has_snapshot: bool,
}

impl<R: UpdateRule, T: Float> Updater<R, T> {
    /// Lends what is kept for every sample to a fused step, which
    /// [puts it back](Self::put_samples). Nothing where the rule does not correct gradients.
    #[inline(always)]
    pub fn take_samples(&mut self) -> Samples<T::Accumulator> {
        if !R::CORRECTS {
            return Samples::default();
        }
        std::mem::take(&mut self.reduction.samples)
    }

    /// Takes back what was [lent](Self::take_samples).
    #[inline(always)]
    pub fn put_samples(&mut self, samples: Samples<T::Accumulator>) {
        if R::CORRECTS {
            self.reduction.samples = samples;
        }
    }

    /// Whether there is a mean gradient of the data with this fingerprint, of `n_samples` samples
    /// where derivatives are kept for each. What was restored is of the data that it is restored
    /// for.
    pub fn has_mean(&mut self, n_samples: Option<usize>, fingerprint: Option<u64>) -> bool {
        let Reduction { has_mean, of_data, samples, .. } = &mut self.reduction;
        *has_mean
            && n_samples.is_none_or(|n_samples| n_samples == samples.n_samples())
            && *of_data.get_or_insert(fingerprint) == fingerprint
    }

    /// Says what the next steps make of their gradients and, where derivatives are kept, which
    /// samples the rows of their batch are, which `append_ids` appends.
    pub fn prepare_steps(
        &mut self,
        correction: Correction,
        usage: Usage,
        append_ids: impl FnOnce(&mut Vec<usize>),
    ) -> Result<()> {
        self.reduction.is_prepared = true;
        if correction != self.reduction.correction {
            self.reduction.correction = correction;
            self.resolve();
        }
        Ok(self.reduction.samples.name(usage, append_ids)?)
    }

    /// No further step is made without being prepared.
    pub fn end_prepared_steps(&mut self) {
        self.reduction.is_prepared = false;
    }

    /// Starts with a mean gradient of 0 and, where derivatives are kept, with those of `n_samples`
    /// samples at 0, of the data with this fingerprint. `tables` are those of all parameters.
    /// O(values of rows touched).
    pub fn reset_mean<'t>(
        &mut self,
        tables: impl IntoIterator<Item = &'t mut Table<T>>,
        n_samples: Option<usize>,
        fingerprint: Option<u64>,
    ) {
        self.reduction.has_mean = true;
        self.reduction.of_data = Some(fingerprint);
        self.reduction.samples.reset(n_samples.unwrap_or(0));
        self.scale_mean(tables, 0.0);
    }

    /// Makes the steps since step `clock`, which gathered gradients of `n_rows` rows, undone but
    /// for the sums, which become means. Everything was [flushed](Self::flush). `tables` are those
    /// of all parameters.
    pub fn end_gathering<'t>(
        &mut self,
        tables: impl IntoIterator<Item = &'t mut Table<T>>,
        clock: u64,
        n_rows: u64,
    ) {
        self.clock = clock;
        for group in &mut self.groups {
            group.history.restart(clock);
        }
        for record in &mut self.parameters {
            record.base = record.base.min(clock);
        }
        self.scale_mean(tables, 1.0 / n_rows.max(1) as f64);
    }

    /// Whether gradients were gathered over the data that they will be gathered over next, so that
    /// it has no row that was never touched.
    pub fn set_knows_rows(&mut self, knows_rows: bool) {
        for record in &mut self.parameters {
            record.touched.set_has_all(knows_rows);
        }
    }

    /// Takes the states of all parameters out of their tables, for steps that are not fused: these
    /// read tables as values. O(values) where a fused step has put them there.
    pub fn take_states_apart<M: Model<Element = T>>(&mut self, model: &mut M) {
        let parameters = model.parameters_mut().into_iter().enumerate();
        for (index, parameter) in parameters.take(self.parameters.len()) {
            if self.parameters[index].beside {
                self.move_states(false, index, &mut Weights::Table(parameter.table));
            }
        }
    }

    /// There is no mean gradient that could be relied on.
    pub fn forget_mean(&mut self) {
        self.reduction.has_mean = false;
    }

    /// The parameters at the snapshot, as they were [kept](Self::keep_snapshot).
    pub fn kept_snapshot(&self) -> &[Table<T>] {
        &self.reduction.snapshot
    }

    /// Keeps the parameters at the snapshot, for checkpoints and for later runs.
    pub fn keep_snapshot(&mut self, tables: Vec<Table<T>>) {
        self.reduction.snapshot = tables;
    }

    /// There is a mean gradient, of no samples of which derivatives are kept, or there is none.
    pub fn set_has_mean(&mut self, has_mean: bool) {
        let mut samples = std::mem::take(&mut self.reduction.samples);
        samples.reset(0);
        self.reduction = Reduction { has_mean, samples, ..Reduction::default() };
    }

    /// What is kept between two steps, without the numbers.
    pub fn reduction(&self) -> ReductionSnapshot {
        let Reduction { has_mean, samples, snapshot, .. } = &self.reduction;
        ReductionSnapshot {
            has_mean: *has_mean,
            n_samples: samples.n_samples(),
            has_snapshot: !snapshot.is_empty(),
        }
    }

    /// The derivatives that are kept, sample by sample.
    pub fn derivatives(&self) -> &[T::Accumulator] {
        self.reduction.samples.derivatives()
    }

    /// Becomes what [`reduction`](Self::reduction), [`derivatives`](Self::derivatives) and
    /// [`kept_snapshot`](Self::kept_snapshot) were.
    pub fn restore_reduction(
        &mut self,
        saved: &ReductionSnapshot,
        derivatives: Vec<T::Accumulator>,
        snapshot: Vec<Table<T>>,
    ) {
        let samples = std::mem::take(&mut self.reduction.samples);
        self.reduction =
            Reduction { has_mean: saved.has_mean, snapshot, samples, ..Reduction::default() };
        self.reduction.samples.restore(saved.n_samples, derivatives);
    }

    /// Multiplies the mean gradient of every weight. O(values of rows touched), where what was
    /// touched is known.
    fn scale_mean<'t>(&mut self, tables: impl IntoIterator<Item = &'t mut Table<T>>, factor: f64) {
        let factor = T::Accumulator::of(factor);
        for (record, table) in self.parameters.iter_mut().zip(tables) {
            if !record.beside {
                scale_each::<R, T>(&mut record.states, factor);
                continue;
            }
            let Some(blocks) = table.blocks_of_mut(&self.tenant) else { continue };
            let touched = record.knows_touched().then_some(&record.touched);
            let of_one = Layout::of::<T, StateOf<R, T>>(1, 1);
            // The compiler knows the size of the shortest rows.
            let states = blocks.all_states_mut();
            match states.known_to_lie(of_one) {
                Ok(states) => scale_rows::<R, T>(states, record.spec.n_rows, touched, factor),
                Err(states) => scale_rows::<R, T>(states, record.spec.n_rows, touched, factor),
            }
        }
    }
}

#[inline(always)]
fn scale_each<R: UpdateRule, T: Float>(states: &mut [StateOf<R, T>], factor: T::Accumulator) {
    for state in states {
        <R::Step<T::Accumulator> as Step<T::Accumulator>>::scale_mean(state, factor);
    }
}

/// Of the rows that were touched, where these are known.
#[inline(always)]
fn scale_rows<R: UpdateRule, T: Float>(
    mut states: StatesMut<'_, StateOf<R, T>>,
    n_rows: usize,
    touched: Option<&TouchedRows>,
    factor: T::Accumulator,
) {
    match touched {
        Some(touched) => touched.for_each(
            #[inline(always)]
            |row| scale_each::<R, T>(states.row(row), factor),
        ),
        None => (0..n_rows).for_each(|row| scale_each::<R, T>(states.row(row), factor)),
    }
}

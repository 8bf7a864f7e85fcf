//! Variance reduction (SVRG, SAGA): snapshots, mean gradients, and epochs of corrected steps.
//!
//! A pass that gathers the mean is an epoch like any other, in which a step adds its gradient to
//! the mean beside each weight and does not update the weight. There are two ways to the difference
//! of the gradient and the old gradient:
//!
//! - For a [generalised linear](Model::corrects_scores) model, the derivatives of each sample's
//!   loss by its scores are [kept](nnz_step::optimizer::Samples), and the fused step subtracts
//!   them. Data of unknown length is read once to count it.
//! - For any other model, the gradient of each batch is computed twice, at the parameters and at
//!   those of the snapshot.

use super::TrainError;
use super::batch_hook::BatchHook;
use super::batch_loop::{diverged, settled_after};
use super::blame::blame;
use super::epoch_totals::EpochTotals;
use super::padding::loss_without_padding;
use super::pauses::{Pauses, STEPS_PER_CALL};
use super::score::{ROWS_AT_A_TIME, whole};
use crate::error::Result;
use nnz_arrays::parameter_memory::Table;
use nnz_data::{Batch, BatchOptions, Batches, DataSource, Labels, LastBatch, Order, Position};
use nnz_optim::{Correction, UpdateRule, VarianceReduction};
use nnz_step::model::{BatchSource, Extent, InputInfo, Model};
use nnz_step::optimizer::{Updater, Usage};
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};

/// State that a run with a rule that corrects gradients keeps from epoch to epoch, beside that of
/// its updater.
pub(super) struct VarianceReducer<'d, M: Model, S: DataSource<M::Element>> {
    data: &'d S,
    options: BatchOptions,
    /// The samples, if derivatives are kept for each.
    n_samples: Option<usize>,
    /// The [fingerprint](DataSource::fingerprint) of the data to which the mean gradient belongs.
    fingerprint: Option<u64>,
    method: VarianceReduction,
    /// The model at the snapshot, where old gradients are recomputed.
    snapshot: Option<M>,
    /// The end of the last gathering pass, so that the next one does not check labels again.
    mean_batches: Option<S::Batches<'d>>,
}

impl<'d, M: Model, S: DataSource<M::Element>> VarianceReducer<'d, M, S> {
    /// For a run with this rule; `None` for a rule that does not correct gradients. `fingerprint`
    /// is that of the data, in case the updater has a mean gradient of other data.
    ///
    /// # Errors
    ///
    /// [`TrainError::NoDerivatives`] for SAGA on a model or data for which derivatives cannot be
    /// kept; [`TrainError::ClipCorrected`].
    pub(super) fn new<R: UpdateRule>(
        updater: &mut Updater<R, M::Element>,
        model: &M,
        data: &'d S,
        fingerprint: Option<u64>,
        options: &BatchOptions,
        max_norm: Option<f64>,
    ) -> Result<Option<Self>> {
        let Some(method) = updater.rule().variance_reduction() else { return Ok(None) };
        if max_norm.is_some() {
            return Err(TrainError::ClipCorrected { rule: R::NAME }.into());
        }
        updater.set_knows_rows(false);
        let kept = updater.kept_snapshot();
        // A run that has begun without knowing them goes on without.
        let counts_samples = model.corrects_scores() && kept.is_empty();
        let n_samples = if counts_samples { count_rows::<M, S>(data)? } else { None };
        if method == VarianceReduction::LastSeen && n_samples.is_none() {
            return Err(TrainError::NoDerivatives { rule: R::NAME, model: M::NAME }.into());
        }
        let snapshot = (!kept.is_empty()).then(|| {
            let mut snapshot = model.clone();
            for (table, kept) in tables(&mut snapshot).zip(kept) {
                // Of another model: that is reported when its updater is used.
                if (table.n_rows(), table.row_size()) == (kept.n_rows(), kept.row_size()) {
                    *table = kept.clone();
                }
            }
            snapshot
        });
        let mean_batches = None;
        Ok(Some(VarianceReducer {
            data,
            options: *options,
            n_samples,
            fingerprint,
            method,
            snapshot,
            mean_batches,
        }))
    }

    /// The rest of an epoch of corrected steps, like [`fit_from`](super::fit_from). A due mean
    /// gradient takes a pass over the data before the first step.
    pub(super) fn fit_epoch<R, B, H>(
        &mut self,
        model: &mut M,
        updater: &mut Updater<R, M::Element>,
        batches: &mut B,
        start: Position,
        totals: EpochTotals,
        hook: &mut H,
    ) -> Result<EpochTotals>
    where
        R: UpdateRule,
        B: Batches<M::Element>,
        H: BatchHook<M>,
    {
        let has_mean = updater.has_mean(self.n_samples, self.fingerprint)
            && (self.n_samples.is_some() || self.snapshot.is_some());
        match self.method {
            VarianceReduction::Snapshot { update_freq }
                if has_mean && (start.batch > 0 || !start.epoch.is_multiple_of(update_freq)) => {}
            VarianceReduction::LastSeen if has_mean => {}
            // Derivatives of 0 are as good as any, as long as nothing was learnt.
            VarianceReduction::LastSeen if updater.clock() == 0 => {
                updater.reset_mean(tables(model), self.n_samples, self.fingerprint);
            }
            _ => self.compute_mean_gradient(model, updater, start.epoch)?,
        }
        let first = (updater.clock() == 0).then_some(start);
        let result = settled_after(model, updater, |model, updater| {
            self.steps(model, updater, batches, start, totals, hook)
        })?;
        result.map_err(|error| blame(error, model, batches, first))
    }

    /// Takes a snapshot, and computes the mean gradient at it over all samples.
    fn compute_mean_gradient<R: UpdateRule>(
        &mut self,
        model: &mut M,
        updater: &mut Updater<R, M::Element>,
        epoch: u64,
    ) -> Result<()> {
        let span = tracing::debug_span!("full gradient");
        let _entered = span.enter();
        updater.flush_model(model)?;
        updater.reset_mean(tables(model), self.n_samples, self.fingerprint);
        if self.n_samples.is_none() {
            self.take_snapshot(model, updater);
        }
        let (clock, records) = (updater.clock(), updater.records_outputs());
        updater.set_records_outputs(false);
        // Half a mean is none, also where the panic of a step or of data is caught later.
        let sum = AssertUnwindSafe(|| self.sum_gradients(model, updater, epoch));
        let (gathered, panic) = match catch_unwind(sum) {
            Ok(gathered) => (gathered, None),
            Err(panic) => (Ok(0), Some(panic)),
        };
        updater.set_records_outputs(records);
        updater.end_prepared_steps();
        updater.flush_model(model)?;
        let n_rows = *gathered.as_ref().unwrap_or(&0);
        updater.end_gathering(tables(model), clock, n_rows);
        match gathered {
            Ok(_) if panic.is_none() => updater.set_knows_rows(true),
            _ => updater.forget_mean(),
        }
        if self.n_samples.is_none() {
            updater.take_states_apart(model);
            self.restore_frozen(model);
        }
        match panic {
            Some(panic) => resume_unwind(panic),
            None => gathered.map(drop),
        }
    }

    /// Adds the gradients of all samples to the mean; returns the number of samples, without
    /// padding.
    fn sum_gradients<R: UpdateRule>(
        &mut self,
        model: &mut M,
        updater: &mut Updater<R, M::Element>,
        epoch: u64,
    ) -> Result<u64> {
        let options = mean_gradient_options::<M>(&self.options);
        let by_rows = M::TRAINS_ROWS && options.last_batch == LastBatch::Short;
        let batch_size = if by_rows { 1 } else { options.batch_size };
        let options = BatchOptions { batch_size, ..options };
        let mut batches = match self.mean_batches.take() {
            Some(batches) => batches,
            None => self.data.batches(M::INPUTS, &options)?,
        };
        let usage = if self.n_samples.is_some() { Usage::Keep } else { Usage::Nothing };
        let (mut n_rows, mut n_batches) = (0, 0);
        batches.start_epoch(0)?;
        while let Some(batch) = batches.next_rows(STEPS_PER_CALL)? {
            let share = if by_rows { 1.0 } else { batch.n_rows() as f64 };
            self.prepare(updater, Correction::Gather { share }, usage, &batch)?;
            let bound = model.bind(&batch)?;
            let loss = if by_rows {
                model.train_rows(&bound, updater)?.last_loss
            } else {
                model.train_step(&bound, updater)?
            };
            if !loss.is_finite() {
                return Err(diverged(epoch, n_batches, loss, updater));
            }
            n_rows += (batch.n_rows() - batch.n_padding().min(batch.n_rows())) as u64;
            n_batches += 1;
        }
        // Of data that streams past nothing is kept in memory between two passes.
        self.mean_batches = self.data.shuffle_buffer().is_none().then_some(batches);
        match n_rows {
            0 => Err(TrainError::NoRows.into()),
            n_rows => Ok(n_rows),
        }
    }

    fn steps<R, B, H>(
        &mut self,
        model: &mut M,
        updater: &mut Updater<R, M::Element>,
        batches: &mut B,
        start: Position,
        mut totals: EpochTotals,
        hook: &mut H,
    ) -> Result<EpochTotals>
    where
        R: UpdateRule,
        B: Batches<M::Element>,
        H: BatchHook<M>,
    {
        batches.seek(start)?;
        let epoch = start.epoch;
        let mut pauses = Pauses::new(start, &totals, hook);
        let by_rows = self.n_samples.is_some()
            && M::TRAINS_ROWS
            && batches.batch_size() == Some(1)
            && !updater.records_outputs()
            && !hook.sees_steps();
        let usage = match (self.n_samples, self.method) {
            (None, _) => Usage::Nothing,
            (_, VarianceReduction::Snapshot { .. }) => Usage::Subtract,
            (_, VarianceReduction::LastSeen) => Usage::Exchange,
        };
        if by_rows {
            while let Some(batch) = batches.next_rows(pauses.steps_a_call())? {
                self.prepare(updater, self.apply(1), usage, &batch)?;
                let bound = model.bind(&batch)?;
                let steps = model.train_rows(&bound, updater)?;
                totals.add_rows(&steps);
                if steps.diverged() {
                    return Err(diverged(epoch, totals.n_batches - 1, steps.last_loss, updater));
                }
                hook.after_steps(model, steps.n_steps as u64)?;
                if pauses
                    .after(steps.n_steps as u64, &bound, model, updater, &totals, hook)?
                    .is_break()
                {
                    break;
                }
            }
            return Ok(totals);
        }
        while let Some(batch) = batches.next_batch()? {
            if let Some(learning_rate) = hook.learning_rate(updater.clock(), epoch) {
                updater.set_learning_rate(learning_rate)?;
            }
            let real_loss = loss_without_padding(model, updater, &batch)?;
            self.prepare(updater, self.apply(batch.n_rows()), usage, &batch)?;
            let bound = model.bind(&batch)?;
            let loss = match &mut self.snapshot {
                None => model.train_step(&bound, updater)?,
                Some(snapshot) => model.corrected_step(&bound, updater, snapshot)?,
            };
            if !loss.is_finite() {
                return Err(diverged(epoch, totals.n_batches, loss, updater));
            }
            totals.add(real_loss.unwrap_or(loss), batch.n_rows(), batch.n_padding());
            hook.after_step(model, &batch, loss)?;
            if pauses.after(1, &bound, model, updater, &totals, hook)?.is_break() {
                break;
            }
        }
        Ok(totals)
    }

    /// The use of gradients in steps of batches of this number of samples.
    fn apply(&self, n_rows: usize) -> Correction {
        let share = match (self.method, self.n_samples) {
            (VarianceReduction::LastSeen, Some(n_samples)) => {
                n_rows as f64 / n_samples.max(1) as f64
            }
            _ => 0.0,
        };
        Correction::Apply { share }
    }

    /// Tells the updater the purpose of the next steps, and the samples of the batch.
    fn prepare<'b, R: UpdateRule, B: Batch<'b, M::Element>>(
        &self,
        updater: &mut Updater<R, M::Element>,
        correction: Correction,
        usage: Usage,
        batch: &B,
    ) -> Result<()> {
        let keeps = self.n_samples.is_some();
        Ok(updater.prepare_steps(correction, usage, |ids| {
            if keeps {
                batch.append_row_ids(ids);
            }
        })?)
    }

    /// Copies the parameters. The updater shares them, for checkpoints.
    fn take_snapshot<R: UpdateRule>(&mut self, model: &M, updater: &mut Updater<R, M::Element>) {
        let snapshot = self.snapshot.get_or_insert_with(|| model.clone());
        let kept = tables(snapshot).zip(model.parameters()).map(|(table, parameter)| {
            *table = Table::from_values(table.row_size(), parameter.values());
            table.take_shared()
        });
        updater.keep_snapshot(kept.collect());
    }

    /// Restores states that the model's own updates moved during the gathering.
    fn restore_frozen(&self, model: &mut M) {
        let Some(snapshot) = &self.snapshot else { return };
        let parameters = model.parameters_mut().into_iter().zip(snapshot.parameters());
        for ((to, from), info) in parameters.zip(M::PARAMETERS) {
            if info.gradient.is_none() {
                to.table.values_mut().copy_from_slice(from.values());
            }
        }
    }
}

/// The options of a pass over all samples that steps with these options see, each as often as they
/// see it.
pub(super) fn mean_gradient_options<M: Model>(options: &BatchOptions) -> BatchOptions {
    let shuffled = matches!(options.order, Order::Shuffled { .. });
    // Of a model whose batches all have as many rows, the last one has to be filled up.
    let is_fixed = |input: &InputInfo| matches!(input.shape.first(), Some(Extent::Constant(_)));
    let last_batch = match options.last_batch {
        // Rows that no step ever sees.
        LastBatch::Discard if !shuffled => LastBatch::Discard,
        // The first rows, which each epoch sees twice; shuffled, any row may be seen twice.
        LastBatch::Pad if !shuffled || M::INPUTS.iter().any(is_fixed) => LastBatch::Pad,
        _ => LastBatch::Short,
    };
    BatchOptions { order: Order::Sequential, last_batch, ..*options }
}

/// The number of samples of some data, by a pass over it if it is unknown: the way to old gradients
/// must not depend on earlier reads. `None` for a source that never knows.
fn count_rows<M: Model, S: DataSource<M::Element>>(data: &S) -> Result<Option<usize>> {
    if data.n_rows().is_none() {
        let span = tracing::debug_span!("counting rows");
        let _entered = span.enter();
        let mut batches = data.batches(M::INPUTS, &whole(ROWS_AT_A_TIME, Labels::Ignored))?;
        batches.start_epoch(0)?;
        while batches.next_batch()?.is_some() {}
    }
    Ok(data.n_rows())
}

fn tables<M: Model>(model: &mut M) -> impl Iterator<Item = &mut Table<M::Element>> {
    model.parameters_mut().into_iter().map(|parameter| parameter.table)
}

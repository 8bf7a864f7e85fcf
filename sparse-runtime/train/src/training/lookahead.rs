//! The steps of a model that takes batches: the next batch is read and taken during a step.

use super::batch_hook::BatchHook;
use super::epoch_totals::EpochTotals;
use super::error::TrainError;
use super::padding::loss_without_padding;
use super::pauses::Pauses;
use crate::error::{Error, Result};
use nnz_data::{Batch, Batches};
use nnz_optim::UpdateRule;
use nnz_step::model::{BatchSource, Model};
use nnz_step::optimizer::Updater;
use std::convert::identity;

/// The number of steps that may be made before the loss of the first of them is known. At most as
/// many are wasted after one that diverged.
const MAX_PENDING_LOSSES: usize = 32;

/// The steps of the rest of an epoch: in the same order, with the same results and errors as
/// without reading ahead.
///
/// A batch is valid until the next one is read, so nothing may read it during such a step. If the
/// hook does, the next batch is read afterwards. If nothing observes a step, its loss is not read
/// before [`MAX_PENDING_LOSSES`] steps were made, the hook pauses, or the epoch ends. A fault in a
/// loss is reported before faults after its step, and a fault in the next batch after the step.
pub(super) fn steps_with_lookahead<M, R, B, H>(
    model: &mut M,
    updater: &mut Updater<R, M::Element>,
    batches: &mut B,
    mut pauses: Pauses,
    mut totals: EpochTotals,
    hook: &mut H,
) -> Result<EpochTotals>
where
    M: Model,
    R: UpdateRule,
    B: Batches<M::Element>,
    H: BatchHook<M>,
{
    let (epoch, max_norm) = (pauses.epoch(), hook.max_norm());
    let mut pending = PendingLosses::new(epoch);
    let mut next = take_next(model, batches)?;
    // Moved as a whole: what is left of it would be a batch that is still borrowed.
    loop {
        let Some(batch) = identity(next) else {
            pending.read(model, &mut totals)?;
            return Ok(totals);
        };
        if let Some(learning_rate) = hook.learning_rate(updater.clock(), epoch) {
            // What is wrong with the rate, after what is wrong with the losses before it.
            let set = updater.set_learning_rate(learning_rate);
            pending.read_before(set.map_err(Error::from), model, &mut totals)?;
        }
        let (n_rows, n_padding) = (batch.n_rows(), batch.n_padding());
        if hook.sees_batches() || pauses.is_next() || n_padding > 0 {
            let mut real_loss = None;
            if n_padding > 0 {
                pending.read(model, &mut totals)?;
                real_loss = loss_without_padding(model, updater, &batch)?;
                // Something else was computed since it was taken.
                let bound = model.bind(&batch)?;
                model.take_batch(&bound)?;
            }
            let stepped = model.step_on_taken(updater, max_norm, |_| ());
            pending.read(model, &mut totals)?;
            let loss = stepped?;
            let step = PendingStep { n_rows, n_padding, learning_rate: updater.learning_rate() };
            step.add(loss, real_loss, epoch, &mut totals)?;
            hook.after_step(model, &batch, loss)?;
            let bound = model.bind(&batch)?;
            if pauses.after(1, &bound, model, updater, &totals, hook)?.is_break() {
                return Ok(totals);
            }
            drop(batch);
            next = take_next(model, batches)?;
        } else {
            drop(batch);
            let mut taken = Ok(None);
            let (of, to) = (&mut *batches, &mut taken);
            let meanwhile = move |model: &mut M| {
                // Not borrowed from the closure, which the batch outlives.
                let of = of;
                *to = take_next(model, of);
            };
            let begun = model.begin_step_on_taken(updater, max_norm, meanwhile);
            pending.read_before(begun.map_err(Error::from), model, &mut totals)?;
            pending.steps.push(PendingStep {
                n_rows,
                n_padding,
                learning_rate: updater.learning_rate(),
            });
            let told = hook.after_steps(model, 1);
            pending.read_before(told, model, &mut totals)?;
            pauses.pass();
            if pending.steps.len() == MAX_PENDING_LOSSES {
                pending.read(model, &mut totals)?;
            }
            next = pending.read_before(taken, model, &mut totals)?;
        }
    }
}

fn take_next<'b, M: Model, B: Batches<M::Element>>(
    model: &mut M,
    batches: &'b mut B,
) -> Result<Option<B::Batch<'b>>> {
    let batch = batches.next_batch()?;
    if let Some(batch) = &batch {
        let bound = model.bind(batch)?;
        model.take_batch(&bound)?;
    }
    Ok(batch)
}

/// A step that has begun.
#[derive(Clone, Copy)]
struct PendingStep {
    n_rows: usize,
    n_padding: usize,
    learning_rate: f64,
}

impl PendingStep {
    /// Counts a step of this loss, `real_loss` without padding.
    fn add(
        &self,
        loss: f64,
        real_loss: Option<f64>,
        epoch: u64,
        totals: &mut EpochTotals,
    ) -> Result<()> {
        if !loss.is_finite() {
            let (batch, learning_rate) = (totals.n_batches, self.learning_rate);
            return Err(TrainError::Diverged { epoch, batch, loss, learning_rate }.into());
        }
        totals.add(real_loss.unwrap_or(loss), self.n_rows, self.n_padding);
        Ok(())
    }
}

/// The steps whose losses have not been read.
struct PendingLosses {
    epoch: u64,
    steps: Vec<PendingStep>,
    losses: Vec<f64>,
}

impl PendingLosses {
    fn new(epoch: u64) -> Self {
        let (steps, losses) =
            (Vec::with_capacity(MAX_PENDING_LOSSES), Vec::with_capacity(MAX_PENDING_LOSSES));
        PendingLosses { epoch, steps, losses }
    }

    /// Reads the losses, in the order of the steps.
    fn read<M: Model>(&mut self, model: &mut M, totals: &mut EpochTotals) -> Result<()> {
        if self.steps.is_empty() {
            return Ok(());
        }
        model.late_losses(&mut self.losses)?;
        // Those of earlier steps, which were not read.
        let others = self.losses.len().saturating_sub(self.steps.len());
        let losses = self.losses.drain(..).skip(others);
        losses
            .zip(self.steps.drain(..))
            .try_for_each(|(loss, of)| of.add(loss, None, self.epoch, totals))
    }

    /// The outcome of something after these steps. If it is an error, the losses are read first:
    /// one of them may be an earlier error.
    fn read_before<M: Model, T>(
        &mut self,
        of: Result<T>,
        model: &mut M,
        totals: &mut EpochTotals,
    ) -> Result<T> {
        if of.is_err() {
            self.read(model, totals)?;
        }
        of
    }
}

//! One epoch: the loop over batches.

use super::blame::blame;
use super::lookahead::steps_with_lookahead;
use super::padding::loss_without_padding;
use super::pauses::Pauses;
use super::{BatchHook, EpochTotals, TrainError};
use crate::error::Result;
use nnz_data::{Batch, Batches, Position};
use nnz_optim::UpdateRule;
use nnz_step::model::{BatchSource, Model};
use nnz_step::optimizer::Updater;
use sparse_core::element::Float;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// Trains a model for one epoch: a step for each batch, in order. Afterwards all parameters are up
/// to date.
///
/// A step is [`Model::train_step`] and a few instructions; nothing is allocated, logged or locked.
/// For a model that [takes batches](Model::TAKES_BATCHES) it is [`Model::begin_step_on_taken`]. The
/// next batch is read and taken during the step, unless the hook sees the batch of the step. The
/// losses of such steps are read some steps later, before the hook pauses, and at the end.
///
/// ```
/// use nnz::core::update_rules::{Sgd, UpdateRule};
/// use nnz::data::{BatchOptions, DataSource, Dataset};
/// use nnz::model::Model;
/// use nnz::optimizer::Updater;
/// use nnz::training::fit_epoch;
///
/// /// A training loop of your own.
/// fn train<M: Model>(model: &mut M, data: &Dataset<M::Element>) -> nnz::Result<()> {
///     let mut updater = Updater::for_model(Sgd::default(), model)?;
///     let mut batches = data.batches(M::INPUTS, &BatchOptions::default())?;
///     for epoch in 0..10 {
///         let totals = fit_epoch(model, &mut updater, &mut batches, epoch, &mut ())?;
///         println!("{}", totals.mean_loss());
///     }
///     Ok(())
/// }
/// ```
///
/// # Errors
///
/// [`TrainError::Diverged`] as soon as a loss is infinite or NaN ([`TrainError::BeyondRange`] and
/// [`TrainError::FirstStep`] where a number of the batch is the cause), or some steps later where
/// losses are read later. Any error of data, model or hook. Rules that correct gradients by a mean
/// gradient are refused: only [`Trainer`](super::Trainer) prepares it. After an error, and after a
/// panic of a hook, all parameters are as the steps so far left them.
#[inline]
pub fn fit_epoch<M, R, B, H>(
    model: &mut M,
    updater: &mut Updater<R, M::Element>,
    batches: &mut B,
    epoch: u64,
    hook: &mut H,
) -> Result<EpochTotals>
where
    M: Model,
    R: UpdateRule,
    B: Batches<M::Element>,
    H: BatchHook<M>,
{
    let start = Position { epoch, batch: 0 };
    fit_from(model, updater, batches, start, EpochTotals::default(), hook)
}

/// [`fit_epoch`] for the rest of an epoch: from the batch at a position, before which the epoch had
/// `totals`.
///
/// # Errors
///
/// As [`fit_epoch`]; a batch beyond the end of the epoch.
#[inline]
pub fn fit_from<M, R, B, H>(
    model: &mut M,
    updater: &mut Updater<R, M::Element>,
    batches: &mut B,
    start: Position,
    totals: EpochTotals,
    hook: &mut H,
) -> Result<EpochTotals>
where
    M: Model,
    R: UpdateRule,
    B: Batches<M::Element>,
    H: BatchHook<M>,
{
    let first = (updater.clock() == 0).then_some(start);
    let result = settled_after(model, updater, |model, updater| {
        steps(model, updater, batches, start, totals, hook)
    })?;
    result.map_err(|error| blame(error, model, batches, first))
}

/// Trains, then catches up all table rows, also where a step, a hook or data panics. The inner
/// result is that of `train`, the outer one that of the catch-up.
#[inline]
pub(super) fn settled_after<M: Model, R: UpdateRule, O>(
    model: &mut M,
    updater: &mut Updater<R, M::Element>,
    train: impl FnOnce(&mut M, &mut Updater<R, M::Element>) -> Result<O>,
) -> Result<Result<O>> {
    let mut settled = Settled { model, updater, is_settled: false };
    let result = train(&mut *settled.model, &mut *settled.updater);
    settled.is_settled = true;
    settled.settle()?;
    Ok(result)
}

/// A model in training. Its table rows are caught up if a panic drops it.
struct Settled<'m, R: UpdateRule, M: Model> {
    model: &'m mut M,
    updater: &'m mut Updater<R, M::Element>,
    is_settled: bool,
}

impl<R: UpdateRule, M: Model> Settled<'_, R, M> {
    fn settle(&mut self) -> Result<()> {
        self.updater.end_prepared_steps();
        Ok(self.updater.flush_model(self.model)?)
    }
}

impl<R: UpdateRule, M: Model> Drop for Settled<'_, R, M> {
    fn drop(&mut self) {
        if !self.is_settled {
            // A panic within a panic would end the program.
            let settle = AssertUnwindSafe(|| self.settle());
            if !matches!(catch_unwind(settle), Ok(Ok(()))) {
                tracing::error!("rows of the model wait for steps that they missed");
            }
        }
    }
}

#[inline]
fn steps<M, R, B, H>(
    model: &mut M,
    updater: &mut Updater<R, M::Element>,
    batches: &mut B,
    start: Position,
    mut totals: EpochTotals,
    hook: &mut H,
) -> Result<EpochTotals>
where
    M: Model,
    R: UpdateRule,
    B: Batches<M::Element>,
    H: BatchHook<M>,
{
    let epoch = start.epoch;
    batches.seek(start)?;
    let mut pauses = Pauses::new(start, &totals, hook);
    let by_rows = M::TRAINS_ROWS && batches.batch_size() == Some(1);
    let max_norm = hook.max_norm();
    if by_rows && max_norm.is_none() && !updater.records_outputs() && !hook.sees_steps() {
        while let Some(batch) = batches.next_rows(pauses.steps_a_call())? {
            pauses.before(&batch, true, model, updater, &totals, hook);
            let bound = model.bind(&batch)?;
            let steps = model.train_rows(&bound, updater)?;
            totals.add_rows(&steps);
            if steps.diverged() {
                return Err(diverged(epoch, totals.n_batches - 1, steps.last_loss, updater));
            }
            hook.after_steps(model, steps.n_steps as u64)?;
            if pauses.after(steps.n_steps as u64, &bound, model, updater, &totals, hook)?.is_break()
            {
                break;
            }
        }
        return Ok(totals);
    }
    if M::TAKES_BATCHES {
        return steps_with_lookahead(model, updater, batches, pauses, totals, hook);
    }
    while let Some(batch) = batches.next_batch()? {
        if let Some(learning_rate) = hook.learning_rate(updater.clock(), epoch) {
            updater.set_learning_rate(learning_rate)?;
        }
        pauses.before(&batch, false, model, updater, &totals, hook);
        let real_loss = loss_without_padding(model, updater, &batch)?;
        let bound = model.bind(&batch)?;
        let loss = match max_norm {
            None => model.train_step(&bound, updater)?,
            Some(max_norm) => clipped(model, &bound, updater, max_norm)?,
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

/// Out of line, so that the loop above stays that of steps without clipping.
#[cold]
#[inline(never)]
fn clipped<M: Model, R: UpdateRule>(
    model: &mut M,
    batch: &M::Batch<'_>,
    updater: &mut Updater<R, M::Element>,
    max_norm: f64,
) -> Result<f64> {
    Ok(model.clipped_step(batch, updater, max_norm)?)
}

#[cold]
pub(super) fn diverged<R: UpdateRule, T: Float>(
    epoch: u64,
    batch: u64,
    loss: f64,
    updater: &Updater<R, T>,
) -> crate::Error {
    TrainError::Diverged { epoch, batch, loss, learning_rate: updater.learning_rate() }.into()
}

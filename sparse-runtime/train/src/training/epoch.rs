//! One epoch: the loop over batches.

use super::ahead::steps_ahead;
use super::blame::blame;
use super::padding::loss_without_padding;
use super::pauses::Pauses;
use super::{TrainError, json};
use crate::error::Result;
use nnz_data::{Batch, Batches, Position};
use nnz_optim::UpdateRule;
use nnz_step::model::{BatchSource, Model, RowSteps};
use nnz_step::optimizer::Updater;
use serde::{Deserialize, Serialize};
use sparse_core::element::Float;
use std::ops::ControlFlow;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// Totals of an epoch.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct EpochTotals {
    /// The sum over samples of the loss just before each was learnt from (progressive loss),
    /// without padding. The step of a padded batch
    /// ([`LastBatch::Pad`](nnz_data::LastBatch::Pad)) minimises the mean over all its samples,
    /// copies included; only the loss of the true samples counts here. For a model whose batches
    /// all have a fixed size each sample counts with the mean.
    #[serde(with = "json")]
    pub loss_sum: f64,
    /// The samples, without padding.
    pub n_rows: u64,
    /// The batches; each is one step.
    pub n_batches: u64,
}

impl EpochTotals {
    /// The mean loss over the samples; NaN over none.
    pub fn mean_loss(&self) -> f64 {
        self.loss_sum / self.n_rows as f64
    }

    /// Adds a batch of `n_rows` samples and `n_padding` copies, with its mean loss.
    #[inline(always)]
    pub(super) fn add(&mut self, loss: f64, n_rows: usize, n_padding: usize) {
        let n_rows = n_rows - n_padding.min(n_rows);
        self.loss_sum += loss * n_rows as f64;
        self.n_rows += n_rows as u64;
        self.n_batches += 1;
    }

    /// Adds the totals of another part of the epoch.
    pub(super) fn extend(&mut self, part: &EpochTotals) {
        self.loss_sum += part.loss_sum;
        self.n_rows += part.n_rows;
        self.n_batches += part.n_batches;
    }

    /// Adds batches of one sample.
    #[inline]
    pub(super) fn add_rows(&mut self, steps: &RowSteps) {
        self.loss_sum += steps.loss_sum;
        self.n_rows += steps.n_steps as u64;
        self.n_batches += steps.n_steps as u64;
    }
}

/// Calls around each step of an epoch. `()` does nothing and costs nothing.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is nothing that can be done around the steps of `{M}`",
    note = "give `&mut ()` to do nothing, or implement `BatchHook` for a type of your own"
)]
pub trait BatchHook<M: Model> {
    /// The learning rate of the step after `step` steps; `None` leaves it unchanged.
    #[inline(always)]
    fn learning_rate(&mut self, step: u64, epoch: u64) -> Option<f64> {
        let _ = (step, epoch);
        None
    }

    /// The largest allowed norm of the gradients of all parameters together, if any: steps are then
    /// [`clipped_step`](Model::clipped_step)s.
    #[inline(always)]
    fn max_norm(&self) -> Option<f64> {
        None
    }

    /// Whether the hook observes each step. If not, steps of one sample may be made
    /// [many at a time](Model::train_rows), and only [`after_steps`](Self::after_steps) is called.
    #[inline(always)]
    fn sees_steps(&self) -> bool {
        true
    }

    /// Whether [`after_step`](Self::after_step) reads batch, outputs or loss. If not,
    /// [`after_steps`](Self::after_steps) may be called instead, so that the next batch can be read
    /// before the step is done.
    #[inline(always)]
    fn sees_batches(&self) -> bool {
        self.sees_steps()
    }

    /// Called after some steps of one sample each, unless the hook [sees](Self::sees_steps) every
    /// one.
    ///
    /// # Errors
    ///
    /// Any error ends the epoch.
    #[inline(always)]
    fn after_steps(&mut self, model: &M, n_steps: u64) -> Result<()> {
        let _ = (model, n_steps);
        Ok(())
    }

    /// The number of steps before [`before_step`](Self::before_step) is called, 0 for the next one.
    /// Called before the first step and after each such call.
    #[inline(always)]
    fn steps_to_check(&self, totals: &EpochTotals) -> u64 {
        let _ = totals;
        u64::MAX
    }

    /// Called before a step, as [`steps_to_check`](Self::steps_to_check) says, with its batch.
    /// `by_rows` is true where each sample of the batch is a step of its own. Not called for models
    /// that [take batches](Model::TAKES_BATCHES), nor for rules that correct gradients.
    fn before_step<'b, R: UpdateRule, B: Batch<'b, M::Element>>(
        &mut self,
        model: &M,
        updater: &Updater<R, M::Element>,
        batch: &B,
        by_rows: bool,
    ) {
        let _ = (model, updater, batch, by_rows);
    }

    /// The number of steps before [`pause`](Self::pause) is called, at least 1. Called before the
    /// first step and after each pause; steps in between may be made many at a time.
    #[inline(always)]
    fn steps_to_pause(&self, totals: &EpochTotals) -> u64 {
        let _ = totals;
        u64::MAX
    }

    /// Whether the [pause](Self::pause) after this number of batches reads
    /// [gradients](Self::gradients). Called when [`steps_to_pause`](Self::steps_to_pause) has said
    /// where it is; only the number of batches in `totals` counts.
    #[inline(always)]
    fn sees_gradients(&self, totals: &EpochTotals) -> bool {
        let _ = totals;
        false
    }

    /// Called just before such a pause: [`gradient_mut`](Model::gradient_mut) has the gradients of
    /// the last batch, at the parameters after its step. They are computed for this call; training
    /// continues with the same bits.
    fn gradients(&mut self, model: &mut M) {
        let _ = model;
    }

    /// Called between two steps, as often as [`steps_to_pause`](Self::steps_to_pause) says.
    /// `position` is the next batch, `totals` are those of the epoch so far. Table rows may miss
    /// steps. [`Updater::flush_model`] catches them up, and training then continues with other
    /// bits. `Break` ends the epoch.
    ///
    /// # Errors
    ///
    /// Any error ends the epoch.
    fn pause<R: UpdateRule>(
        &mut self,
        model: &mut M,
        updater: &mut Updater<R, M::Element>,
        position: Position,
        totals: &EpochTotals,
    ) -> Result<ControlFlow<()>> {
        let _ = (model, updater, position, totals);
        Ok(ControlFlow::Continue(()))
    }

    /// Called after a step: the model's outputs are those before its update.
    ///
    /// # Errors
    ///
    /// Any error ends the epoch.
    #[inline(always)]
    fn after_step<'b, B: Batch<'b, M::Element>>(
        &mut self,
        model: &M,
        batch: &B,
        loss: f64,
    ) -> Result<()> {
        let _ = (model, batch, loss);
        Ok(())
    }
}

impl<M: Model> BatchHook<M> for () {
    #[inline(always)]
    fn sees_steps(&self) -> bool {
        false
    }
}

/// The largest number of steps of one sample in one call.
pub(super) const ROWS_A_CALL: usize = 1024;

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
        return steps_ahead(model, updater, batches, pauses, totals, hook);
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

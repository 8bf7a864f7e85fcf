//! The calls around the steps of an epoch.

use super::epoch_totals::EpochTotals;
use crate::error::Result;
use nnz_data::{Batch, Position};
use nnz_optim::UpdateRule;
use nnz_step::model::Model;
use nnz_step::optimizer::Updater;
use std::ops::ControlFlow;

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

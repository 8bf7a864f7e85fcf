//! The points of an epoch at which a hook is called: before a step, and between two steps.

use super::batch_hook::BatchHook;
use super::epoch_totals::EpochTotals;
use crate::error::Result;
use nnz_data::{Batch, Position};
use nnz_optim::UpdateRule;
use nnz_step::model::{Model, gradient};
use nnz_step::optimizer::Updater;
use std::ops::ControlFlow;

/// The largest number of steps of one sample in one call.
pub(super) const STEPS_PER_CALL: usize = 1024;

/// The next calls of a hook within an epoch.
pub(super) struct Pauses {
    epoch: u64,
    /// The batch from which the totals count.
    first_batch: u64,
    /// The steps until the next pause.
    left: u64,
    /// The steps before the next call before a step.
    to_check: u64,
    /// Whether the pause reads the gradients of the last batch, which is then a step by itself.
    sees_gradients: bool,
}

impl Pauses {
    /// From a batch on, before which the epoch had `totals`.
    #[inline]
    pub(super) fn new<M: Model>(
        start: Position,
        totals: &EpochTotals,
        hook: &impl BatchHook<M>,
    ) -> Self {
        let first_batch = start.batch.wrapping_sub(totals.n_batches);
        let mut pauses = Pauses {
            epoch: start.epoch,
            first_batch,
            left: 0,
            to_check: hook.steps_to_check(totals),
            sees_gradients: false,
        };
        pauses.plan(totals, hook);
        pauses
    }

    /// Finds the next pause.
    #[inline]
    fn plan<M: Model>(&mut self, totals: &EpochTotals, hook: &impl BatchHook<M>) {
        self.left = hook.steps_to_pause(totals).max(1);
        let n_batches = totals.n_batches.checked_add(self.left);
        self.sees_gradients = n_batches
            .is_some_and(|n_batches| hook.sees_gradients(&EpochTotals { n_batches, ..*totals }));
    }

    /// Whether the hook is called after the next step.
    pub(super) fn is_next(&self) -> bool {
        self.left <= 1
    }

    /// After a step without a call.
    pub(super) fn pass(&mut self) {
        self.left -= 1;
        self.to_check = self.to_check.saturating_sub(1);
    }

    /// The epoch.
    pub(super) fn epoch(&self) -> u64 {
        self.epoch
    }

    /// The number of steps of one sample that one call may make.
    #[inline]
    pub(super) fn steps_a_call(&self) -> usize {
        let apart = u64::from(self.sees_gradients && self.left > 1);
        let to_check = if self.to_check == 0 { u64::MAX } else { self.to_check };
        (self.left - apart).min(to_check).min(STEPS_PER_CALL as u64) as usize
    }

    /// Before a step, or a call that makes one for each sample of the batch.
    #[inline]
    pub(super) fn before<'b, M: Model, R: UpdateRule, B: Batch<'b, M::Element>>(
        &mut self,
        batch: &B,
        by_rows: bool,
        model: &M,
        updater: &Updater<R, M::Element>,
        totals: &EpochTotals,
        hook: &mut impl BatchHook<M>,
    ) {
        if self.to_check == 0 {
            hook.before_step(model, updater, batch, by_rows);
            let after = EpochTotals { n_batches: totals.n_batches + 1, ..*totals };
            self.to_check = hook.steps_to_check(&after).saturating_add(1);
        }
    }

    /// After some steps, the last of them on `batch`, with the totals of the epoch.
    #[inline]
    pub(super) fn after<M: Model, R: UpdateRule>(
        &mut self,
        n_steps: u64,
        batch: &M::Batch<'_>,
        model: &mut M,
        updater: &mut Updater<R, M::Element>,
        totals: &EpochTotals,
        hook: &mut impl BatchHook<M>,
    ) -> Result<ControlFlow<()>> {
        self.left = self.left.saturating_sub(n_steps);
        self.to_check = self.to_check.saturating_sub(n_steps);
        if self.left > 0 {
            return Ok(ControlFlow::Continue(()));
        }
        self.pause(batch, model, updater, totals, hook)
    }

    /// Calls the hook.
    #[cold]
    fn pause<M: Model, R: UpdateRule>(
        &mut self,
        batch: &M::Batch<'_>,
        model: &mut M,
        updater: &mut Updater<R, M::Element>,
        totals: &EpochTotals,
        hook: &mut impl BatchHook<M>,
    ) -> Result<ControlFlow<()>> {
        if self.sees_gradients {
            model.loss_and_grads(batch)?;
            if !M::TAKES_BATCHES {
                for index in 0..M::PARAMETERS.len() {
                    gradient::trained(model, index)?;
                }
            }
            hook.gradients(model);
        }
        let batch = self.first_batch.wrapping_add(totals.n_batches);
        model.to_host(updater)?;
        let flow = hook.pause(model, updater, Position { epoch: self.epoch, batch }, totals)?;
        self.plan(totals, hook);
        Ok(flow)
    }
}

//! The trainer's hook: everything that it does around steps.

use super::any_updater::{AnyUpdater, erased};
use super::callback::{Callback, Moment, State, is_due, replay, states};
use super::checkpoint::Run;
use super::measure::Measure;
use super::precision::Checks;
use super::progress::Reporter;
use super::{BatchHook, EpochTotals};
use crate::error::Result;
use crate::schedule::Schedule;
use nnz_arrays::in_library;
use nnz_data::{Batch, Position};
use nnz_optim::UpdateRule;
use nnz_step::model::{AnyModel, GradientMut, Model};
use nnz_step::optimizer::Updater;
use nnz_step::optimizer::clip::sum_of_squares;
use sparse_core::element::Float;
use std::ops::ControlFlow;

/// The trainer's work around each step.
pub(super) struct Hook<'s, 'a> {
    pub(super) measure: Measure,
    pub(super) reporter: Reporter,
    /// Present where the rate changes by step.
    pub(super) schedule: Option<&'s Schedule>,
    pub(super) base_rate: f64,
    pub(super) max_norm: Option<f64>,
    pub(super) callbacks: &'s mut [Box<dyn Callback + 'a>],
    pub(super) run: Run,
    /// Whether a callback has ended the run.
    pub(super) is_stopped: bool,
    /// Whether callbacks learn of the end of the run.
    pub(super) has_end: bool,
    /// The gradients at a pause, by parameter, where a callback reads them.
    pub(super) gradient_norms: Vec<Option<f64>>,
    pub(super) checks: Checks<'s>,
}

impl Hook<'_, '_> {
    /// Calls all callbacks with the last report.
    pub(super) fn end_epoch(&mut self, state: &dyn State) -> Result<()> {
        let Some(report) = self.run.epochs.last() else { return Ok(()) };
        self.run.callbacks = states(self.callbacks, report.epoch);
        for callback in &mut *self.callbacks {
            let moment = Moment::new(&self.run, state);
            self.is_stopped |= callback.epoch(report, &moment)?.is_break();
        }
        Ok(())
    }

    /// Calls all callbacks at the end of the run, unless the run has no end.
    pub(super) fn end(&mut self, state: &dyn State) -> Result<()> {
        if !self.has_end {
            return Ok(());
        }
        let moment = Moment::new(&self.run, state);
        self.callbacks.iter_mut().try_for_each(|callback| callback.end(&moment))
    }

    /// Calls the callbacks that asked for a call between two batches.
    fn look(
        &mut self,
        state: &dyn State,
        position: Position,
        totals: &EpochTotals,
    ) -> Result<ControlFlow<()>> {
        (self.run.position, self.run.totals) = (position, *totals);
        self.run.metrics = self.measure.states();
        for callback in &mut *self.callbacks {
            if is_due(&**callback, totals.n_batches) {
                let moment = Moment::new(&self.run, state).with_gradients(&self.gradient_norms);
                self.is_stopped |= callback.batch(&moment)?.is_break();
            }
        }
        self.gradient_norms.clear();
        if self.is_stopped {
            // Now, while rows wait for what they missed: that is the state which a checkpoint goes
            // on from to the same bits.
            self.end(state)?;
            return Ok(ControlFlow::Break(()));
        }
        Ok(ControlFlow::Continue(()))
    }

    /// Adds the norm of each gradient.
    fn add_norms<T: Float>(&mut self, model: &mut dyn AnyModel<T>) {
        fn add<T: Float>(norms: &mut Vec<Option<f64>>, model: &mut dyn AnyModel<T>) {
            for index in 0..model.facts().parameters.len() {
                let gradient = model.gradient_mut(index);
                let norm =
                    |gradient: GradientMut<'_, T>| sum_of_squares(gradient.view().values()).sqrt();
                norms.push(gradient.map(norm));
            }
        }
        let norms = &mut self.gradient_norms;
        in_library!(<T> add::<T> => (
            norms: &mut Vec<Option<f64>>,
            model: &mut dyn AnyModel<T>,
        ) -> ());
    }

    /// [`look`](Self::look), compiled once for elements of a type.
    fn look_at<T: Float>(
        &mut self,
        model: &dyn AnyModel<T>,
        updater: &dyn AnyUpdater<T>,
        position: Position,
        totals: &EpochTotals,
    ) -> Result<ControlFlow<()>> {
        fn look<T: Float>(
            hook: &mut Hook<'_, '_>,
            model: &dyn AnyModel<T>,
            updater: &dyn AnyUpdater<T>,
            position: Position,
            totals: &EpochTotals,
        ) -> Result<ControlFlow<()>> {
            hook.look(&(model, updater), position, totals)
        }
        let hook = self;
        in_library!(<T> look::<T> => (
            hook: &mut Hook<'_, '_>,
            model: &dyn AnyModel<T>,
            updater: &dyn AnyUpdater<T>,
            position: Position,
            totals: &EpochTotals,
        ) -> Result<ControlFlow<()>>)
    }

    /// Replays the epochs before a resumed run to all callbacks.
    pub(super) fn replay(&mut self) {
        self.is_stopped = replay(self.callbacks, &self.run);
    }
}

impl<M: Model> BatchHook<M> for Hook<'_, '_> {
    #[inline(always)]
    fn learning_rate(&mut self, step: u64, epoch: u64) -> Option<f64> {
        let schedule = self.schedule?;
        Some(self.base_rate * schedule.factor(step, epoch))
    }

    #[inline(always)]
    fn max_norm(&self) -> Option<f64> {
        self.max_norm
    }

    #[inline(always)]
    fn sees_steps(&self) -> bool {
        self.schedule.is_some() || !self.measure.is_empty()
    }

    fn sees_batches(&self) -> bool {
        !self.measure.is_empty()
    }

    fn after_steps(&mut self, _: &M, n_steps: u64) -> Result<()> {
        self.reporter.advance(n_steps);
        Ok(())
    }

    #[inline(always)]
    fn after_step<'b, B: Batch<'b, M::Element>>(
        &mut self,
        model: &M,
        batch: &B,
        _loss: f64,
    ) -> Result<()> {
        self.reporter.advance(1);
        self.measure.update(model, batch)
    }

    fn steps_to_check(&self, totals: &EpochTotals) -> u64 {
        self.checks.steps_until(totals.n_batches)
    }

    fn before_step<'b, R: UpdateRule, B: Batch<'b, M::Element>>(
        &mut self,
        model: &M,
        updater: &Updater<R, M::Element>,
        batch: &B,
        by_rows: bool,
    ) {
        self.checks.check(model, erased(updater), batch, by_rows);
    }

    fn steps_to_pause(&self, totals: &EpochTotals) -> u64 {
        let next =
            self.callbacks.iter().filter_map(|callback| callback.next_batch(totals.n_batches));
        next.min().map_or(u64::MAX, |next| next.saturating_sub(totals.n_batches))
    }

    fn sees_gradients(&self, totals: &EpochTotals) -> bool {
        self.callbacks
            .iter()
            .any(|callback| callback.sees_gradients() && is_due(&**callback, totals.n_batches))
    }

    fn gradients(&mut self, model: &mut M) {
        self.add_norms(model);
    }

    fn pause<R: UpdateRule>(
        &mut self,
        model: &mut M,
        updater: &mut Updater<R, M::Element>,
        position: Position,
        totals: &EpochTotals,
    ) -> Result<ControlFlow<()>> {
        self.look_at(&*model, erased(updater), position, totals)
    }
}

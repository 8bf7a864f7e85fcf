//! Where steps begin and end: the clock, the resolved steps of the rule, and what idle rows miss.

use super::error::OptimizerError;
use super::updater::Updater;
use crate::error::Result;
use crate::in_library_by_rule;
use nnz_optim::{IdleMap, LazyUpdate, Step, UpdateRule};
use sparse_core::element::Float;

/// The steps that have begun and not ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum BegunSteps {
    Nothing,
    /// One, by [`Updater::begin_step`].
    One,
    /// By [`Updater::begin_steps`], whose idle steps are recorded.
    Several(u64),
}

/// The most steps that begin together: with those since the last flush they fit 32 bits.
const MAX_BEGUN: usize = 1 << 30;

impl<R: UpdateRule, T: Float> Updater<R, T> {
    /// Starts a step.
    ///
    /// # Errors
    ///
    /// [`OptimizerError::NotPrepared`] for a rule that corrects gradients: a trainer prepares its
    /// steps.
    #[inline]
    pub fn begin_step(&mut self) -> Result<()> {
        let updater = self;
        in_library_by_rule!(<R, T> Updater::<R, T>::begin_one => (
            updater: &mut Updater<R, T>,
        ) -> Result<()>)
    }

    fn begin_one(&mut self) -> Result<()> {
        if R::CORRECTS && !self.reduction.is_prepared {
            return Err(OptimizerError::NotPrepared { rule: R::NAME }.into());
        }
        self.take_back_steps();
        if self.clock <= self.counts_until || self.learning_rate != self.resolved {
            self.resolve();
        }
        self.begun = BegunSteps::One;
        Ok(())
    }

    /// Ends a step: advances the clock.
    ///
    /// # Errors
    ///
    /// [`OptimizerError::NotBegun`] without [`begin_step`](Self::begin_step). In
    /// [`LazyUpdate::Dense`], a parameter that is not frozen and was not updated.
    #[inline]
    pub fn end_step(&mut self) -> Result<()> {
        let updater = self;
        in_library_by_rule!(<R, T> Updater::<R, T>::end_one => (
            updater: &mut Updater<R, T>,
        ) -> Result<()>)
    }

    fn end_one(&mut self) -> Result<()> {
        if self.begun != BegunSteps::One {
            return self.end_several(1);
        }
        if self.mode == LazyUpdate::Dense {
            self.check_finished()?;
        }
        self.record_idle(1);
        self.clock += 1;
        self.begun = BegunSteps::Nothing;
        Ok(())
    }

    /// Starts as many steps as one call can make at one learning rate: returns their number, from 1
    /// to `at_most`, and at most 2³⁰. They end by [`end_steps`](Self::end_steps).
    ///
    /// # Errors
    ///
    /// As [`begin_step`](Self::begin_step).
    #[inline]
    pub fn begin_steps(&mut self, at_most: usize) -> Result<usize> {
        let updater = self;
        in_library_by_rule!(<R, T> Updater::<R, T>::begin_several => (
            updater: &mut Updater<R, T>,
            at_most: usize,
        ) -> Result<usize>)
    }

    fn begin_several(&mut self, at_most: usize) -> Result<usize> {
        self.begin_one()?;
        // What each step does to all rows, and rules that count their steps, take them one by one.
        let alike = self.mode != LazyUpdate::Dense && self.clock > self.counts_until;
        let count = if alike { at_most.clamp(1, MAX_BEGUN) } else { 1 };
        // A single step is recorded when it ends, as by `end_step`: products of maps have other
        // last bits where they are made in another order.
        if count > 1 {
            self.record_idle(count as u64);
            self.begun = BegunSteps::Several(count as u64);
        }
        Ok(count)
    }

    /// Ends `made` of the steps that began together: advances the clock by `made`.
    ///
    /// # Errors
    ///
    /// As [`end_step`](Self::end_step); [`OptimizerError::NotBegun`] for more steps than have
    /// begun.
    #[inline]
    pub fn end_steps(&mut self, made: usize) -> Result<()> {
        let updater = self;
        in_library_by_rule!(<R, T> Updater::<R, T>::end_several => (
            updater: &mut Updater<R, T>,
            made: usize,
        ) -> Result<()>)
    }

    fn end_several(&mut self, made: usize) -> Result<()> {
        let made = made as u64;
        let begun = match self.begun {
            BegunSteps::Nothing => 0,
            BegunSteps::One => 1,
            BegunSteps::Several(count) => count,
        };
        if made > begun {
            return Err(OptimizerError::NotBegun { made, begun }.into());
        }
        if self.mode == LazyUpdate::Dense {
            self.check_finished()?;
        }
        if self.begun == BegunSteps::One {
            self.record_idle(made);
        }
        self.begun = BegunSteps::Nothing;
        self.clock += made;
        self.take_back_steps();
        Ok(())
    }

    /// Drops steps that began and were not made.
    #[inline]
    fn take_back_steps(&mut self) {
        for group in &mut self.groups {
            if group.history.steps() > self.clock {
                group.history.take_back(self.clock);
            }
        }
    }

    /// Records the effect of some steps, all like the present one, on a row without a gradient.
    #[inline]
    fn record_idle(&mut self, count: u64) {
        for group in &mut self.groups {
            // Before the first idle map there is nothing to be caught up with, and a count is
            // enough.
            if group.active {
                // There is a map: a rule that has none is not lazy.
                group.history.push_many(group.idle.map().unwrap_or(IdleMap::IDENTITY), count);
            } else {
                group.history.skip(count);
            }
        }
    }

    /// Resolves the groups' steps for the current learning rate and clock.
    #[cold]
    pub(super) fn resolve(&mut self) {
        self.resolved = self.learning_rate;
        for group in &mut self.groups {
            let learning_rate = self.learning_rate * group.learning_rate_scale;
            let step = self.rule.step(learning_rate, group.weight_decay_scale, self.clock);
            group.step = step.with_correction(self.reduction.correction);
            group.idle = group.step.idle();
        }
        self.prepare();
    }

    /// Allocates the memory that the groups' steps need and the tables lack.
    pub(super) fn prepare(&mut self) {
        for (index, group) in self.groups.iter_mut().enumerate() {
            let activated = group.lazy && !group.active && group.idle.changes();
            group.active |= activated;
            if activated {
                group.activated = self.clock;
            }
            for table in &mut self.parameters {
                if table.group != index || table.spec.gradient.is_none() {
                    continue;
                }
                if activated {
                    // Idle steps have changed nothing so far.
                    table.base = table.base.max(self.clock);
                    if self.clock > 0 {
                        // Nobody has noted the rows of the steps so far.
                        table.touched.give_up();
                    }
                }
            }
        }
    }

    fn check_finished(&mut self) -> Result<()> {
        for table in &mut self.parameters {
            if table.spec.gradient.is_some() && !std::mem::take(&mut table.finished) {
                return Err(
                    OptimizerError::Unfinished { parameter: table.spec.name.to_string() }.into()
                );
            }
        }
        Ok(())
    }
}

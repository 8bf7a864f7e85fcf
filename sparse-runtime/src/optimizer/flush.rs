//! Bringing whole tables up to date.

use super::error::OptimizerError;
use super::memory::{Memory, Weights};
use super::rows::{Beside, General, IdleOf, StateOf, UpdateKind, on_weight};
use super::updater::{Record, Updater};
use crate::error::Result;
use crate::model::Model;
use sparse_core::element::Float;
use sparse_core::update_rules::{IdleMap, StateBlock, Step, UpdateRule};

impl<R: UpdateRule, T: Float> Updater<R, T> {
    /// Brings every row of a parameter up to date: before the whole table is read (evaluation, saving), and
    /// at the end of an epoch. O(values) where rows wait, O(1) otherwise.
    ///
    /// # Errors
    ///
    /// As [`rows`](Self::rows), but frozen parameters are fine.
    pub fn flush<'a>(
        &mut self,
        parameter: usize,
        weights: impl Into<Weights<'a, T>>,
    ) -> Result<()> {
        let mut weights = weights.into();
        let record = self.record(parameter)?;
        if record.size != weights.len() {
            return Err(self.wrong_count(parameter, weights.len()));
        }
        if record.beside && matches!(weights, Weights::Values(_)) {
            return Err(self.states_in_table(parameter));
        }
        self.settle_all(parameter, &mut weights);
        let index = self.parameters[parameter].group;
        if self.groups[index].history.n_runs() > 0 {
            let of_group = |table: &&Record<_, _>| table.lazy && table.group == index;
            let waiting = self.parameters.iter().filter(of_group);
            let oldest = waiting.map(|table| table.base).min();
            let history = &mut self.groups[index].history;
            history.forget_before(oldest.unwrap_or(self.clock));
        }
        Ok(())
    }

    /// [`flush`](Self::flush) for every parameter of a model.
    ///
    /// # Errors
    ///
    /// The updater was made for another model.
    pub fn flush_model<M: Model<Element = T>>(&mut self, model: &mut M) -> Result<()> {
        let parameters = model.parameters_mut();
        if parameters.len() != self.parameters.len() {
            return Err(OptimizerError::OtherModel { model: M::NAME }.into());
        }
        for (index, parameter) in parameters.into_iter().enumerate() {
            self.flush(index, parameter.table)?;
        }
        Ok(())
    }

    /// Settles all rows and moves the base to the clock.
    #[inline]
    pub(super) fn settle_all(&mut self, parameter: usize, weights: &mut Weights<'_, T>) {
        let record = &self.parameters[parameter];
        if record.lazy && record.base < self.clock {
            match record.beside {
                true => self.settle_waiting::<Beside>(parameter, weights),
                false => self.settle_waiting::<General>(parameter, weights),
            }
        }
    }

    #[inline(never)]
    fn settle_waiting<K: UpdateKind>(&mut self, parameter: usize, weights: &mut Weights<'_, T>) {
        let record = &mut self.parameters[parameter];
        let group = &self.groups[record.group];
        let base = std::mem::replace(&mut record.base, self.clock);
        if !group.active {
            return;
        }
        let (n_rows, row_size) = (record.spec.n_rows, record.spec.row_size);
        let mut memory =
            Memory::<_, _, K>::of(weights.reborrow(), &mut record.states, row_size, &self.tenant);
        // Most rows wait since the last flush; they share one map.
        let longest = group.history.between(base, self.clock);
        let mut none = StateOf::<R, T>::default();
        for row in 0..n_rows {
            let mut map = longest;
            if let Some(last) = record.last.get_mut(row)
                && *last != 0
            {
                // A row that was updated in the present step is a step ahead of the clock.
                let settled = base + u64::from(*last);
                *last = settled.saturating_sub(self.clock) as u32;
                map = group.history.between(settled.min(self.clock), self.clock);
            }
            if map == IdleOf::<R, T>::IDENTITY {
                continue;
            }
            // SAFETY: a row of the table, whose size was compared with that of the weights.
            let (weights, states) = unsafe { memory.parts(row) };
            for (column, weight) in weights.iter_mut().enumerate() {
                let state = states.get_mut(column).unwrap_or(&mut none);
                let (mut new_weight, mut new_state) = (*weight, *state);
                on_weight(&mut new_weight, |weight| {
                    group.step.apply_idle(&map, weight, &mut new_state);
                });
                // Memory that nobody has written is left alone, so that it stays unmapped.
                if new_weight != *weight {
                    *weight = new_weight;
                }
                if new_state.values() != state.values() {
                    *state = new_state;
                }
            }
        }
    }
}

//! Bringing whole tables up to date.

use super::error::OptimizerError;
use super::rows::{IdleOf, StateOf, on_weight};
use super::updater::{Table, Updater};
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
    pub fn flush(&mut self, parameter: usize, values: &mut [T]) -> Result<()> {
        let table = self.table(parameter)?;
        if table.size != values.len() {
            return Err(self.wrong_count(parameter, values.len()));
        }
        self.settle_all(parameter, values);
        let index = self.parameters[parameter].group;
        if self.groups[index].history.n_runs() > 0 {
            let of_group = |table: &&Table<_, _>| table.lazy && table.group == index;
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
            self.flush(index, parameter.values)?;
        }
        Ok(())
    }

    /// Settles all rows and moves the base to the clock.
    #[inline]
    pub(super) fn settle_all(&mut self, parameter: usize, values: &mut [T]) {
        let table = &self.parameters[parameter];
        if table.lazy && table.base < self.clock {
            self.settle_waiting(parameter, values);
        }
    }

    #[inline(never)]
    fn settle_waiting(&mut self, parameter: usize, values: &mut [T]) {
        let table = &mut self.parameters[parameter];
        let group = &self.groups[table.group];
        let base = std::mem::replace(&mut table.base, self.clock);
        if !group.active {
            return;
        }
        let row_size = table.spec.row_size;
        // Most rows wait since the last flush; they share one map.
        let longest = group.history.since(base);
        let mut none = StateOf::<R, T>::default();
        for row in 0..table.spec.n_rows {
            let mut map = longest;
            if let Some(last) = table.last.get_mut(row)
                && *last != 0
            {
                // A row that was updated in the present step is a step ahead of the clock.
                let settled = base + u64::from(*last);
                *last = settled.saturating_sub(self.clock) as u32;
                map = group.history.since(settled.min(self.clock));
            }
            if map == IdleOf::<R, T>::IDENTITY {
                continue;
            }
            let start = row * row_size;
            for (column, weight) in values[start..start + row_size].iter_mut().enumerate() {
                let state = table.states.get_mut(start + column).unwrap_or(&mut none);
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

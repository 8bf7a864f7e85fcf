//! Flushes: the catch-up of whole tables.

use super::cursor::RowCursor;
use super::error::OptimizerError;
use super::last_steps::LastSteps;
use super::memory::{Memory, Weights};
use super::missed::Missed;
use super::touched::TouchedRows;
use super::update_kind::{Beside, General, IdleOf, StateOf, UpdateKind, WithSlots, on_weight};
use super::updater::{Record, Updater};
use crate::error::Result;
use crate::in_library_by_rule;
use crate::model::{Model, ParameterMut};
use nnz_arrays::parameter_memory::Recorder;
use nnz_optim::{IdleMap, StateBlock, Step, UpdateRule};
use sparse_core::element::Float;
use std::marker::PhantomData;

impl<R: UpdateRule, T: Float> Updater<R, T> {
    /// Brings every row of a parameter up to date: before the whole table is read (evaluation,
    /// saving), and at the end of an epoch.
    ///
    /// O(values of the rows that batches have touched so far + rows / 4096) where rows wait and the
    /// others are not changed by idle steps: those of zeros in a
    /// [`Table`](nnz_arrays::parameter_memory::Table) that nobody else writes, and any under a rule
    /// whose idle steps move only what had a gradient (momentum without weight decay). Else
    /// O(values): weight decay shrinks every weight. O(1) where no row waits.
    ///
    /// # Errors
    ///
    /// As [`rows`](Self::rows), but frozen parameters are fine.
    pub fn flush<'a>(
        &mut self,
        parameter: usize,
        weights: impl Into<Weights<'a, T>>,
    ) -> Result<()> {
        let (updater, weights) = (self, weights.into());
        in_library_by_rule!(<R, T> Updater::<R, T>::flush_weights => (
            updater: &mut Updater<R, T>,
            parameter: usize,
            weights: Weights<'_, T>,
        ) -> Result<()>)
    }

    fn flush_weights(&mut self, parameter: usize, mut weights: Weights<'_, T>) -> Result<()> {
        let record = self.record(parameter)?;
        if record.size != weights.len() {
            return Err(self.wrong_count(parameter, weights.len()));
        }
        if record.beside && matches!(weights, Weights::Values(_)) {
            return Err(self.states_in_table(parameter));
        }
        if !record.may_be_of(&weights) {
            let parameter = record.spec.name.to_string();
            return Err(OptimizerError::OtherTable { parameter }.into());
        }
        self.settle_all(parameter, &mut weights);
        let record = &self.parameters[parameter];
        if let Weights::Table(table) = &mut weights
            && record.knows_touched()
        {
            record.touched.tell(table);
        }
        self.forget_history(self.parameters[parameter].group);
        Ok(())
    }

    /// Forgets the steps of a group that no row waits for.
    pub(super) fn forget_history(&mut self, group: usize) {
        if self.groups[group].history.n_runs() > 0 {
            let of_group = |table: &&Record<_, _>| table.lazy && table.group == group;
            let waiting = self.parameters.iter().filter(of_group);
            let oldest = waiting.map(|table| table.base).min();
            let history = &mut self.groups[group].history;
            history.forget_before(oldest.unwrap_or(self.clock));
        }
    }

    /// [`flush`](Self::flush) for every parameter of a model, which are on the host then.
    ///
    /// # Errors
    ///
    /// The updater was made for another model.
    pub fn flush_model<M: Model<Element = T>>(&mut self, model: &mut M) -> Result<()> {
        self.check_model(model)?;
        model.to_host(self)?;
        let (updater, parameters) = (self, model.parameters_mut());
        in_library_by_rule!(<R, T> Updater::<R, T>::flush_all => (
            updater: &mut Updater<R, T>,
            parameters: Vec<ParameterMut<'_, T>>,
        ) -> Result<()>)
    }

    fn flush_all(&mut self, parameters: Vec<ParameterMut<'_, T>>) -> Result<()> {
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
            let waits = self.groups[record.group].settles_since(record.base);
            if !waits || self.rests_in_first_run(parameter, weights) {
                self.parameters[parameter].base = self.clock;
                return;
            }
            if !record.beside {
                self.catch_up_lazy_rows::<General>(parameter, weights);
            } else if self.keeps_slots(parameter, weights) {
                self.catch_up_lazy_rows::<WithSlots<Beside>>(parameter, weights);
            } else {
                self.catch_up_lazy_rows::<Beside>(parameter, weights);
            }
        }
    }

    /// Of a rule whose maps [forget](IdleMap::FORGETS), true where idle steps so far change no row:
    /// those that were ever updated were so in the one run that there is, which leaves them and
    /// those that were not.
    pub(super) fn rests_in_first_run(&self, parameter: usize, weights: &Weights<'_, T>) -> bool {
        let group = &self.groups[self.parameters[parameter].group];
        let is_first = || group.history.newest_run() == Some(group.activated);
        let spares_fresh = || group.history.since(group.activated).spares_fresh();
        IdleOf::<R, T>::FORGETS
            && is_first()
            && (spares_fresh() || self.is_fresh_elsewhere(parameter, weights))
    }

    /// True where the rows that no batch has touched are zeros with a state at its start, and idle
    /// steps leave them so.
    pub(super) fn is_fresh_elsewhere(&self, parameter: usize, weights: &Weights<'_, T>) -> bool {
        let record = &self.parameters[parameter];
        let group = &self.groups[record.group];
        let Weights::Table(table) = weights else {
            return false;
        };
        if !record.touched.is_complete() || !table.is_zero_but_for(&self.tenant) {
            return false;
        }
        let (mut weight, mut state) = (T::zero().widen(), StateOf::<R, T>::default());
        let map = group.history.between(record.base.min(self.clock), self.clock);
        group.step.apply_idle(&map, &mut weight, &mut state);
        weight == T::zero().widen() && state.values().eq(StateOf::<R, T>::default().values())
    }

    #[inline(never)]
    fn catch_up_lazy_rows<K: UpdateKind>(
        &mut self,
        parameter: usize,
        weights: &mut Weights<'_, T>,
    ) {
        let record = &self.parameters[parameter];
        let group = &self.groups[record.group];
        // Most rows wait since the last flush; they share one map.
        let longest = group.history.between(record.base, self.clock);
        let only_touched = !IdleOf::<R, T>::FORGETS
            && record.knows_touched()
            && self.clock - record.base < u64::from(u32::MAX)
            && (longest.spares_fresh() || self.is_fresh_elsewhere(parameter, weights));
        let record = &mut self.parameters[parameter];
        let recorder = if only_touched { record.touched.recorder() } else { Recorder::NONE };
        let base = std::mem::replace(&mut record.base, self.clock);
        let (n_rows, row_size) = (record.spec.n_rows, record.spec.row_size);
        let mut memory = Memory::<_, _, K>::of(
            weights.reborrow(),
            &mut record.states,
            row_size,
            (&self.tenant, recorder),
            0,
        );
        let mut last = if record.counts {
            memory.last_steps(&mut record.last, n_rows)
        } else {
            LastSteps::NONE
        };
        if only_touched {
            let step = group.step;
            let cursor = |places| RowCursor::<R, T, K> {
                places,
                step,
                factor: T::zero().widen(),
                rows: PhantomData,
            };
            let now = (self.clock - base) as u32 + 1;
            let missed = Missed::new(&group.history, base, now);
            let touched = &record.touched;
            // The compiler knows the size of the shortest, and of the usual step that nothing else
            // is to be asked.
            return match row_size {
                1 => {
                    let cursor = cursor(memory.places(1));
                    match (cursor.without_options(), missed.without_scalars()) {
                        (Some(cursor), Some(missed)) => {
                            settle_touched(cursor, last, touched, missed);
                        }
                        _ => settle_touched(cursor, last, touched, missed),
                    }
                }
                _ => settle_touched(cursor(memory.places(row_size)), last, touched, missed),
            };
        }
        let mut none = StateOf::<R, T>::default();
        (0..n_rows).for_each(|row| {
            let (mut map, mut from) = (longest, base);
            if let Some(last) = last.get_mut(row)
                && *last != 0
            {
                // As above.
                let settled = base + u64::from(*last) - 1;
                *last = settled.saturating_sub(self.clock) as u32 + 1;
                from = settled.min(self.clock);
                map = group.history.between(from, self.clock);
            }
            if map == IdleOf::<R, T>::IDENTITY {
                return;
            }
            // SAFETY: a row of the table, whose size was compared with that of the weights.
            let (weights, states) = unsafe { memory.parts(row) };
            for (column, weight) in weights.iter_mut().enumerate() {
                let state = states.get_mut(column).unwrap_or(&mut none);
                let (mut new_weight, mut new_state) = (*weight, *state);
                on_weight(&mut new_weight, |weight| {
                    if !group.step.try_idle(&map, weight, &mut new_state) {
                        let steps = (from, self.clock);
                        group.step.idle_in_pieces(&group.history, steps, weight, &mut new_state);
                    }
                });
                // Memory that nobody has written is left alone, so that it stays unmapped.
                if new_weight != *weight {
                    *weight = new_weight;
                }
                if new_state.values().ne(state.values()) {
                    *state = new_state;
                }
            }
        });
    }
}

/// Settles the rows that were touched, of a table that `cursor` goes over; after that, `last`
/// counts from the present step.
#[inline(always)]
fn settle_touched<R: UpdateRule, T: Float, K: UpdateKind>(
    cursor: RowCursor<'_, R, T, K>,
    mut last: LastSteps<'_>,
    touched: &TouchedRows,
    missed: Missed<'_, R, T>,
) {
    touched.for_each(
        #[inline(always)]
        move |row| {
            let Some(last) = last.get_mut(row) else { return };
            let before = *last;
            // A row that was updated in the present step is a step ahead of it.
            *last = before.saturating_sub(missed.now) + 1;
            // SAFETY: a row of the table, whose size was compared with that of the weights.
            unsafe { missed.settle(cursor, row, before) };
        },
    );
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::optimizer::ParameterSpec;
    use nnz_arrays::parameter_memory::Table;
    use nnz_optim::{Ftrl, LazyUpdate, Sgd};
    use sparse_core::storage::Storage;

    const N_ROWS: usize = 300;

    /// The rows of step `t`: of the first 20 alone.
    fn hit(t: usize) -> [usize; 2] {
        [t * 7 % 20, (t * 7 + 3) % 20]
    }

    fn updater<R: UpdateRule>(rule: &R, lazy_update: LazyUpdate) -> Updater<R, f64> {
        let mut rule = rule.clone();
        rule.set_lazy_update(lazy_update);
        let spec = ParameterSpec::new("w", N_ROWS, 1, Some(Storage::RowSparse));
        Updater::new(rule, vec![spec]).unwrap()
    }

    /// Steps with a flush now and then, and weights that somebody else sets after step 60.
    fn train<R: UpdateRule>(
        rule: &R,
        lazy_update: LazyUpdate,
        rate: impl Fn(usize) -> f64,
        mut table: Table<f64>,
        set: &[usize],
    ) -> Result<Vec<f64>> {
        let mut updater = updater(rule, lazy_update);
        for t in 0..120 {
            updater.set_learning_rate(rate(t)).unwrap();
            updater.begin_step().unwrap();
            crate::with_rows!(R, f64; updater, [0 => &mut table], |[rows]| {
                for row in hit(t) {
                    rows.settle(row);
                    rows.update(row, 0, (t as f64).sin());
                }
                rows.finish();
            });
            updater.end_step().unwrap();
            if t % 25 == 10 {
                updater.flush(0, &mut table).unwrap();
            }
            if t == 60 && !set.is_empty() {
                updater.flush(0, &mut table).unwrap();
                set.iter().for_each(|row| table.values_mut()[*row] = 0.75);
            }
        }
        updater.flush(0, &mut table).unwrap();
        Ok(table.values().to_vec())
    }

    #[test]
    fn flushing_touched_rows_is_flushing_all() -> Result<()> {
        let zeros = || Table::zeros(N_ROWS, 1);
        let drawn =
            || Table::from_values(1, &(0..N_ROWS).map(|i| (i as f64).cos()).collect::<Vec<_>>());
        let decay = Sgd { weight_decay: 0.02, ..Sgd::default() };
        let both = Sgd { momentum: 0.8, ..decay.clone() };
        let momentum = Sgd { momentum: 0.8, ..Sgd::default() };
        let rates: [fn(usize) -> f64; 3] =
            [|_| 0.1, |t| 0.2 / (1.0 + t as f64), |t| if t < 20 { 0.0 } else { 0.1 }];
        for rate in rates {
            for table in [zeros, drawn] as [fn() -> Table<f64>; 2] {
                for set in [&[][..], &[5, 250]] {
                    for rule in [&decay, &both, &momentum] {
                        let exact = train(rule, LazyUpdate::Exact, rate, table(), set)?;
                        let dense = train(rule, LazyUpdate::Dense, rate, table(), set)?;
                        for (row, (exact, dense)) in exact.iter().zip(&dense).enumerate() {
                            assert!((exact - dense).abs() < 1e-12, "{rule:?}, {row}");
                        }
                    }
                }
                // A weight that is set by hand where its row has a state is forgotten, but counts
                // in the next step of its row.
                let rule = Ftrl { l1: 0.1, l2: 0.1, ..Ftrl::default() };
                let exact = train(&rule, LazyUpdate::Exact, rate, table(), &[])?;
                let dense = train(&rule, LazyUpdate::Dense, rate, table(), &[])?;
                assert!(exact.iter().zip(&dense).all(|(a, b)| (a - b).abs() < 1e-12));
                // One that never had a gradient stays as it is, to the bit.
                let (start, rows) = (table(), 20..N_ROWS);
                assert!(exact[rows.clone()] == start.values()[rows]);
            }
        }
        Ok(())
    }

    /// The rows that a flush looks at are those that batches have touched.
    #[test]
    fn rows_that_no_batch_touched_are_not_looked_at() {
        let rule = Sgd { momentum: 0.5, ..Sgd::default() };
        let mut updater = updater(&rule, LazyUpdate::Exact);
        let mut w = [1.0; N_ROWS];
        for t in 0..40 {
            updater.begin_step().unwrap();
            let mut rows = updater.rows(0, &mut w).unwrap();
            for row in hit(t) {
                rows.settle(row);
                rows.update(row, 0, 1.0);
            }
            rows.finish();
            updater.end_step().unwrap();
        }
        // What a flush would notice if it looked: a state that no step has made.
        updater.parameters[0].states[250] = [1.0];
        updater.flush(0, &mut w).unwrap();
        assert_eq!((w[250], updater.parameters[0].states[250]), (1.0, [1.0]));
        assert!(w[..20].iter().all(|w| *w != 1.0));
    }
}

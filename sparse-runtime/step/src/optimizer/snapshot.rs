//! Snapshots of an updater, from which another one continues to the bit.

use super::begun_steps::BegunSteps;
use super::error::OptimizerError;
use super::reserve::check_states;
use super::spec::ParameterSpec;
use super::touched::TouchedRows;
use super::update_kind::{IdleOf, StateOf};
use super::updater::Updater;
use crate::error::Result;
use nnz_arrays::parameter_memory::{Recorder, Table};
use nnz_optim::{IdleHistory, IdleMap, LazyUpdate, UpdateRule};
use serde::{Deserialize, Serialize};
use sparse_core::element::Float;

/// The most steps of a run: some thousand years of a fast one. Sums of such numbers fit all types
/// that count steps.
pub const MOST_STEPS: u64 = 1 << 53;

/// All of an updater that is not the same in any other one for the same rule and parameters,
/// without the states of weights.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Snapshot {
    /// The steps made.
    pub clock: u64,
    /// The bits of the learning rate.
    pub learning_rate: u64,
    /// The histories of parameters with the same scales.
    pub groups: Vec<GroupSnapshot>,
    /// The record of each parameter.
    pub parameters: Vec<RecordSnapshot>,
}

/// Of the parameters with the same scales: see `Group`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct GroupSnapshot {
    active: bool,
    /// The step at which the history began.
    pub activated: u64,
    /// The first step of each run of the history.
    #[serde(skip)]
    pub starts: Vec<u64>,
    /// The numbers of the runs' maps, one after the other.
    #[serde(skip)]
    pub maps: Vec<f64>,
}

/// Of one parameter: see `Record`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct RecordSnapshot {
    /// The step from which rows count theirs.
    pub base: u64,
    pub(super) touched_is_complete: bool,
    /// Whether the rows that this updater has not written are zeros.
    pub(super) zero_elsewhere: bool,
    /// Whether there are states yet.
    pub has_states: bool,
    /// What [`Updater::visit_settled`] visits; empty in a snapshot that was just taken, so that
    /// nothing is copied.
    #[serde(skip)]
    pub last: Vec<u32>,
}

impl<R: UpdateRule, T: Float> Updater<R, T> {
    /// What this updater is, between two steps. `tables` are those of all its parameters. O(runs of
    /// the history).
    pub fn snapshot(&self, tables: &[&Table<T>]) -> Snapshot {
        let parameters = tables.iter().enumerate().take(self.parameters.len());
        Snapshot {
            clock: self.clock,
            learning_rate: self.learning_rate.to_bits(),
            groups: (0..self.groups.len()).map(|group| self.group_snapshot(group)).collect(),
            parameters: parameters
                .map(|(index, table)| self.record_snapshot(index, table))
                .collect(),
        }
    }

    /// The history of one group, without its parameters. O(runs of the history).
    pub fn group_snapshot(&self, group: usize) -> GroupSnapshot {
        let group = &self.groups[group];
        let mut maps = Vec::new();
        group.history.runs().iter().for_each(|(map, _)| map.write(&mut maps));
        let starts = group.history.runs().iter().map(|run| run.1).collect();
        GroupSnapshot { active: group.active, activated: group.activated, starts, maps }
    }

    /// The record of one parameter. O(1).
    pub fn record_snapshot(&self, parameter: usize, table: &Table<T>) -> RecordSnapshot {
        let record = &self.parameters[parameter];
        RecordSnapshot {
            base: record.base,
            touched_is_complete: record.touched.is_complete(),
            zero_elsewhere: table.is_zero_but_for(&self.tenant),
            has_states: record.beside || !record.states.is_empty(),
            last: Vec::new(),
        }
    }

    /// What updates depend on besides the state, by name, as text from which numbers come back to
    /// the bit.
    pub fn settings(&self) -> Vec<(String, String)> {
        let mut rule = self.rule.clone();
        let mut settings = vec![
            ("rule".to_owned(), R::NAME.to_owned()),
            ("lazy_update".to_owned(), format!("{:?}", self.mode)),
        ];
        if let Some(method) = rule.variance_reduction() {
            settings.push(("variance_reduction".to_owned(), format!("{method:?}")));
        }
        settings.extend(rule.hyperparameters().iter().map(|row| {
            let value = row.get().map_or("none".to_owned(), |value| format!("{value:?}"));
            (row.name.to_owned(), value)
        }));
        for record in &self.parameters {
            let ParameterSpec { name, weight_decay_scale, learning_rate_scale, .. } = &record.spec;
            settings
                .push((format!("weight_decay_scale of {name}"), format!("{weight_decay_scale:?}")));
            settings.push((
                format!("learning_rate_scale of {name}"),
                format!("{learning_rate_scale:?}"),
            ));
        }
        settings
    }

    /// The rows of a parameter that batches have touched, where that is known: rows are caught up
    /// later, and nothing made the updater lose count.
    pub fn n_rows_touched(&self, parameter: usize) -> Option<u64> {
        let record = self.parameters.get(parameter)?;
        let counts = record.lazy && !IdleOf::<R, T>::FORGETS && record.counts;
        if !counts || !record.touched.is_complete() {
            return None;
        }
        let mut n_rows = 0;
        record.touched.for_each(|_| n_rows += 1);
        Some(n_rows)
    }

    /// True where no row waits for steps that it missed: [`flush`](Self::flush) would change
    /// nothing.
    pub fn is_settled(&self) -> bool {
        self.parameters.iter().all(|record| {
            !record.lazy
                || record.base >= self.clock
                || !self.groups[record.group].settles_since(record.base)
        })
    }

    /// Whether it is known up to which step each row of a parameter is settled: nobody asks
    /// elsewhere.
    pub fn knows_settled(&self, parameter: usize) -> bool {
        self.parameters.get(parameter).is_some_and(|record| record.counts)
    }

    /// Calls `visit` with the step up to which each row of a parameter is settled, in order, as the
    /// updater counts; not at all where it does not. A table that took the place of another has
    /// zeros, as a step would find them.
    pub fn visit_settled(&self, parameter: usize, table: &Table<T>, mut visit: impl FnMut(u32)) {
        match self.parameters.get(parameter) {
            Some(record) if record.counts && Self::has_last_beside(record) => {
                if table.is_of(&self.tenant) {
                    table.visit_last(&self.tenant, visit)
                } else {
                    (0..record.spec.n_rows).for_each(|_| visit(0))
                }
            }
            Some(record) => record.last.iter().copied().for_each(visit),
            None => {}
        }
    }

    /// Calls `visit` with the states of each row of a parameter, in order. A table that took the
    /// place of another has zeros.
    pub fn visit_states(
        &self,
        parameter: usize,
        table: &Table<T>,
        mut visit: impl FnMut(&[StateOf<R, T>]),
    ) {
        let Some(record) = self.parameters.get(parameter) else { return };
        if !record.beside {
            record.states.chunks(record.states_of_row().max(1)).for_each(&mut visit);
        } else if table.is_of(&self.tenant) {
            table.visit_states(&self.tenant, visit);
        } else {
            let zeros = vec![Default::default(); record.states_of_row()];
            (0..record.spec.n_rows).for_each(|_| visit(&zeros));
        }
    }

    /// Refuses a snapshot of other parameters, or one that no updater can be in: nothing that was
    /// written and read again.
    ///
    /// # Errors
    ///
    /// [`OptimizerError::Snapshot`].
    pub fn check_snapshot(&self, snapshot: &Snapshot) -> Result<()> {
        let refuse = |problem: String| Err(OptimizerError::Snapshot { problem }.into());
        let (n_groups, n_parameters) = (self.groups.len(), self.parameters.len());
        if (snapshot.groups.len(), snapshot.parameters.len()) != (n_groups, n_parameters) {
            return refuse(format!(
                "it is of {} parameters in {} groups, not of {n_parameters} in {n_groups}",
                snapshot.parameters.len(),
                snapshot.groups.len()
            ));
        }
        if snapshot.clock > MOST_STEPS {
            return refuse(format!(
                "it has made {} steps, but no run makes more than {MOST_STEPS}",
                snapshot.clock
            ));
        }
        let rate = f64::from_bits(snapshot.learning_rate);
        if !(rate >= 0.0 && rate.is_finite()) {
            return refuse(format!("its learning rate is {rate}"));
        }
        for (index, group) in snapshot.groups.iter().enumerate() {
            if group.activated > snapshot.clock {
                return refuse(format!(
                    "the history of idle steps of group {index} begins at step {}, but {} were made",
                    group.activated, snapshot.clock
                ));
            }
            if history::<IdleOf<R, T>, T::Accumulator>(group, snapshot.clock).is_none() {
                return refuse(format!(
                    "the history of idle steps of group {index} makes no sense: its runs of equal steps must ascend up to step {}, each with the \
                     numbers of one map",
                    snapshot.clock
                ));
            }
        }
        for (record, saved) in self.parameters.iter().zip(&snapshot.parameters) {
            let (name, n_rows) = (&record.spec.name, record.spec.n_rows);
            if saved.base > snapshot.clock {
                return refuse(format!(
                    "parameter `{name}` is settled up to step {} of {}",
                    saved.base, snapshot.clock
                ));
            }
            if !saved.last.is_empty() && saved.last.len() != n_rows {
                return refuse(format!(
                    "it knows {} rows of parameter `{name}`, which has {n_rows}",
                    saved.last.len()
                ));
            }
            // 0 for a row that was not touched, else one more than the step, or two within one.
            let most = (snapshot.clock - saved.base).saturating_add(2);
            if let Some(row) = saved.last.iter().position(|last| u64::from(*last) > most) {
                return refuse(format!(
                    "row {row} of parameter `{name}` is settled after step {}, the last",
                    snapshot.clock
                ));
            }
            if saved.has_states {
                check_states::<R, T>(name, n_rows, record.spec.row_size)?;
            }
        }
        Ok(())
    }

    /// Becomes what a snapshot that was [checked](Self::check_snapshot) says, with states that are
    /// all zero and lie apart: [`states_mut`](Self::states_mut) are then to be set.
    pub fn restore(&mut self, snapshot: Snapshot) {
        (self.clock, self.begun) = (snapshot.clock, BegunSteps::Nothing);
        self.learning_rate = f64::from_bits(snapshot.learning_rate);
        // Equal to no rate: the next step resolves the rule anew.
        self.resolved = f64::NAN;
        for (group, saved) in self.groups.iter_mut().zip(snapshot.groups) {
            group.active = saved.active;
            group.activated = saved.activated;
            group.history = history(&saved, snapshot.clock).unwrap_or_default();
        }
        // Where states may still lie in tables, it is as those of another updater.
        self.tenant = Default::default();
        let is_exact = self.mode == LazyUpdate::Exact;
        for (record, saved) in self.parameters.iter_mut().zip(snapshot.parameters) {
            let n_states =
                if saved.has_states { record.spec.n_rows * record.states_of_row() } else { 0 };
            record.states = vec![Default::default(); n_states];
            record.beside = false;
            record.table = None;
            record.base = saved.base;
            record.touched = TouchedRows::default();
            if is_exact && !saved.last.is_empty() {
                record.touched.reserve(record.spec.n_rows);
                let rows = saved.last.iter().enumerate();
                rows.filter(|(_, last)| **last != 0).for_each(|(row, _)| record.touched.add(row));
            }
            if !saved.touched_is_complete {
                record.touched.give_up();
            }
            record.counts = !saved.last.is_empty();
            record.last = saved.last;
            record.sums.clear();
            record.finished = false;
        }
    }

    /// The states of a parameter that [`restore`](Self::restore) has made, row major.
    pub fn states_mut(&mut self, parameter: usize) -> &mut [StateOf<R, T>] {
        self.parameters.get_mut(parameter).map_or(&mut [], |record| &mut record.states[..])
    }

    /// The weights of a table, to be replaced by those of a snapshot. As far as the snapshot knows
    /// and the table allows, they count as written by this updater.
    pub fn weights_mut<'t>(&self, saved: &RecordSnapshot, table: &'t mut Table<T>) -> &'t mut [T] {
        if saved.zero_elsewhere && table.is_zero_but_for(&self.tenant) {
            table.values_mut_by(&self.tenant, Recorder::NONE)
        } else {
            table.values_mut()
        }
    }
}

/// The history that a group had after `clock` steps, where it makes sense.
fn history<M: IdleMap, A: Float>(group: &GroupSnapshot, clock: u64) -> Option<IdleHistory<M, A>> {
    let (n_runs, n_numbers) = (group.starts.len(), group.maps.len());
    if n_runs == 0 {
        return (n_numbers == 0).then(|| IdleHistory::of_runs(clock, &[])).flatten();
    }
    let size = n_numbers / n_runs;
    if size * n_runs != n_numbers {
        return None;
    }
    let map = |run: usize| M::read(&group.maps[run * size..(run + 1) * size]);
    let runs = group.starts.iter().enumerate().map(|(run, start)| Some((map(run)?, *start)));
    IdleHistory::of_runs(clock, &runs.collect::<Option<Vec<_>>>()?)
}

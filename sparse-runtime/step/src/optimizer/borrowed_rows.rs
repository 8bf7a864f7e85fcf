//! Loans of the table rows of parameters to a step.

use super::begun_steps::BegunSteps;
use super::catch_up::CatchUp;
use super::error::OptimizerError;
use super::hogwild::not_shared;
use super::last_steps::LastSteps;
use super::memory::{Memory, Weights, states_of_row};
use super::missed::Missed;
use super::rows::RowUpdater;
use super::update_kind::{IdleOf, StateOf, StepOf, UpdateKind, WithSlots};
use super::updater::{GroupOf, Record, Updater};
use crate::error::Result;
use crate::in_library_by_rule;
use nnz_arrays::parameter_memory::{Recorder, Table, Tenant};
use nnz_optim::{IdleMap, LazyUpdate, StateBlock, Step, UpdateRule};
use sparse_core::element::Float;
use sparse_core::storage::Storage;

/// Steps after which a table is flushed, so that a step counted from the last flush fits 32 bits.
const MAX_STEPS: u64 = 1 << 31;

/// Entries of a batch from which on the slots of its sums do not lie in a table.
const MAX_SLOTS: usize = 1 << 30;

impl<R: UpdateRule, T: Float> Updater<R, T> {
    /// True where the rule can do without state.
    pub const OPTIONAL_STATE: bool = StepOf::<R, T>::OPTIONAL_STATE;

    /// True where the updates of a parameter are `weight += factor · grad` and nothing else: then
    /// [`rows_of`](Self::rows_of) gives [`Plain`](super::Plain) handles.
    #[inline]
    pub fn is_plain(&self, parameter: usize) -> bool {
        let Some(table) = self.parameters.get(parameter) else {
            return false;
        };
        let group = &self.groups[table.group];
        Self::OPTIONAL_STATE
            && !group.active
            && !group.idle.changes()
            && group.step.gradient_factor().is_some()
    }

    /// True where the states of a parameter are to lie beside its weights: they are lent as a
    /// table, and the rule has state. Then [`rows_of`](Self::rows_of) gives
    /// [`Beside`](super::Beside) handles.
    #[inline]
    pub fn is_beside(&self, parameter: usize, weights: &Weights<'_, T>) -> bool {
        matches!(weights, Weights::Table(_)) && self.uses_state(parameter)
    }

    /// True where the rule has state for a parameter that there is.
    #[inline(always)]
    pub(super) fn uses_state(&self, parameter: usize) -> bool {
        !Self::OPTIONAL_STATE
            || self
                .parameters
                .get(parameter)
                .is_some_and(|record| self.groups[record.group].step.uses_state())
    }

    /// The blocks of a table with this updater's states, zeros at first; `None` where the rule
    /// keeps none.
    pub fn blocks_of(&self, parameter: usize, table: &mut Table<T>) -> Option<*mut u8> {
        let n_states = states_of_row::<T::Accumulator, StateOf<R, T>>(table.row_size());
        let recorder = Recorder::NONE;
        self.uses_state(parameter)
            .then(|| table.blocks::<StateOf<R, T>>(&self.tenant, recorder, n_states))
    }

    /// The rows of a parameter during this step. O(1), but for the first call and for a flush after
    /// 2²⁰ changes of the learning rate.
    ///
    /// # Errors
    ///
    /// No such parameter, a frozen one, or values of another length;
    /// [`OptimizerError::OutsideStep`] between two steps.
    #[inline]
    pub fn rows<'a>(
        &'a mut self,
        parameter: usize,
        weights: impl Into<Weights<'a, T>>,
    ) -> Result<RowUpdater<'a, R, T>> {
        self.rows_as(parameter, weights)
    }

    /// [`rows`](Self::rows) as a `K`, with the same bounds on it as in [`rows_of`](Self::rows_of):
    /// the way of a step that takes 50 ns, without arrays of handles to be moved.
    ///
    /// # Errors
    ///
    /// As [`rows`](Self::rows); `Plain` or `Beside` for a parameter that is not.
    #[inline(always)]
    pub fn rows_as<'a, K: UpdateKind>(
        &'a mut self,
        parameter: usize,
        weights: impl Into<Weights<'a, T>>,
    ) -> Result<RowUpdater<'a, R, T, K>> {
        let weights = weights.into();
        self.check_kind::<K>(parameter, &weights)?;
        self.check_begun(parameter)?;
        Ok(self.lend_checked(parameter, weights))
    }

    /// [`rows_as`](Self::rows_as) of rows that are settled and not updated, which may be between
    /// two steps.
    #[inline(always)]
    pub(super) fn rows_to_settle<'a, K: UpdateKind>(
        &'a mut self,
        parameter: usize,
        weights: Weights<'a, T>,
    ) -> Result<RowUpdater<'a, R, T, K>> {
        self.check_kind::<K>(parameter, &weights)?;
        Ok(self.lend_checked(parameter, weights))
    }

    #[inline(always)]
    fn lend_checked<'a, K: UpdateKind>(
        &'a mut self,
        parameter: usize,
        mut weights: Weights<'a, T>,
    ) -> RowUpdater<'a, R, T, K> {
        self.ready::<K>(parameter, &mut weights);
        let record = &mut self.parameters[parameter];
        let group = &self.groups[record.group];
        lend(record, group, (weights, 0), &self.tenant, self.clock, self.mode)
    }

    /// Whether a batch of `n_entries` entries in `n_rows` rows of data is to have the rows of a
    /// table of one column [with slots](Self::rows_with_slots): not where rows may have to be
    /// settled, what is known of which lies there, nor where to change the form of the table does
    /// not [pay](Table::slots_pay).
    #[inline]
    pub(crate) fn wants_slots(
        &self,
        parameter: usize,
        table: &mut Table<T>,
        (n_rows, n_entries): (usize, usize),
    ) -> bool {
        let Some(record) = self.parameters.get(parameter) else { return false };
        if table.row_size() != 1 || n_entries >= MAX_SLOTS || StateOf::<R, T>::BY_ROW || R::RACES {
            return false;
        }
        let n_states = if self.uses_state(parameter) { record.states_of_row() } else { 0 };
        !self.keeps_steps(record)
            && match n_rows {
                // Either form will do, so that it stays.
                1 if n_states > 0 => table.has_slots(&self.tenant),
                1 => table.has_newest_slots(&self.tenant),
                _ => table.slots_pay::<StateOf<R, T>>(&self.tenant, n_states, n_entries),
            }
    }

    /// Whether it is kept, or may be from now on, up to which step each row is settled: where slots
    /// would lie.
    #[inline(always)]
    fn keeps_steps(&self, record: &Record<T::Accumulator, StateOf<R, T>>) -> bool {
        record.counts
            || match self.mode {
                LazyUpdate::Touched => false,
                LazyUpdate::Exact => {
                    record.lazy && self.groups[record.group].active && !IdleOf::<R, T>::FORGETS
                }
                LazyUpdate::Dense => true,
            }
    }

    /// Whether the rows of a parameter are to be lent with slots, to leave the form of the table as
    /// it is.
    #[inline]
    pub(crate) fn keeps_slots(&self, parameter: usize, weights: &Weights<'_, T>) -> bool {
        let Some(record) = self.parameters.get(parameter) else { return false };
        !self.keeps_steps(record)
            && matches!(weights, Weights::Table(table) if table.has_slots(&self.tenant))
    }

    #[cfg(test)]
    pub(crate) fn has_slots(&self, table: &Table<T>) -> bool {
        table.has_slots(&self.tenant)
    }

    /// The rows of a parameter of one column, each with a slot for the sum of a batch of
    /// `n_entries`, which [wants](Self::wants_slots) them.
    ///
    /// # Errors
    ///
    /// As [`rows_as`](Self::rows_as).
    #[inline]
    pub(crate) fn rows_with_slots<'a, K: UpdateKind>(
        &'a mut self,
        parameter: usize,
        table: &'a mut Table<T>,
        n_entries: usize,
    ) -> Result<RowUpdater<'a, R, T, WithSlots<K>>>
    where
        WithSlots<K>: UpdateKind,
    {
        let n_slots = slots_of(n_entries, table);
        let mut weights = Weights::Table(table);
        self.check_kind::<WithSlots<K>>(parameter, &weights)?;
        self.check_begun(parameter)?;
        self.ready::<WithSlots<K>>(parameter, &mut weights);
        let record = &mut self.parameters[parameter];
        let group = &self.groups[record.group];
        Ok(lend(record, group, (weights, n_slots), &self.tenant, self.clock, self.mode))
    }

    /// [`rows_with_slots`](Self::rows_with_slots) of a parameter, and the rows of another one.
    ///
    /// # Errors
    ///
    /// As [`rows_of`](Self::rows_of).
    #[inline]
    #[allow(clippy::type_complexity)]
    pub(crate) fn rows_with_slots_beside<'a, K: UpdateKind>(
        &'a mut self,
        (with_slots, table): (usize, &'a mut Table<T>),
        (other, other_table): (usize, &'a mut Table<T>),
        n_entries: usize,
    ) -> Result<(RowUpdater<'a, R, T, WithSlots<K>>, RowUpdater<'a, R, T, K>)>
    where
        WithSlots<K>: UpdateKind,
    {
        let n_slots = slots_of(n_entries, table);
        let [mut weights, mut others] = [Weights::Table(table), Weights::Table(other_table)];
        self.check_kind::<WithSlots<K>>(with_slots, &weights)?;
        self.check_kind::<K>(other, &others)?;
        self.check_begun(with_slots)?;
        self.ready::<WithSlots<K>>(with_slots, &mut weights);
        self.ready::<K>(other, &mut others);
        let (groups, tenant, clock, mode) = (&self.groups, &self.tenant, self.clock, self.mode);
        let indices = [with_slots, other];
        let Ok([first, second]) = self.parameters.get_disjoint_mut(indices) else {
            return Err(OptimizerError::Repeated { indices: indices.to_vec() }.into());
        };
        let groups = [first.group, second.group].map(|group| &groups[group]);
        Ok((
            lend(first, groups[0], (weights, n_slots), tenant, clock, mode),
            lend(second, groups[1], (others, 0), tenant, clock, mode),
        ))
    }

    /// The rows of several parameters at once. `K` is [`General`](super::General), or
    /// [`Plain`](super::Plain) where [`is_plain`](Self::is_plain) says so of each, or
    /// [`Beside`](super::Beside) where [`is_beside`](Self::is_beside) does; the macro `with_rows!`
    /// chooses.
    ///
    /// # Errors
    ///
    /// As [`rows`](Self::rows); a parameter named twice; `Plain` or `Beside` for one that is not.
    #[inline]
    pub fn rows_of<'a, K: UpdateKind, const N: usize>(
        &'a mut self,
        parameters: [(usize, impl Into<Weights<'a, T>>); N],
    ) -> Result<[RowUpdater<'a, R, T, K>; N]> {
        let parameters: [(usize, Weights<'a, T>); N] =
            parameters.map(|(index, weights)| (index, weights.into()));
        let indices = std::array::from_fn(|i| parameters[i].0);
        for (index, weights) in &parameters {
            self.check_kind::<K>(*index, weights)?;
            self.check_begun(*index)?;
        }
        let mut lent: [Option<Weights<'a, T>>; N] = parameters.map(|(_, weights)| Some(weights));
        for (&index, weights) in indices.iter().zip(&mut lent) {
            if let Some(weights) = weights {
                self.ready::<K>(index, weights);
            }
        }
        let (groups, tenant, clock, mode) = (&self.groups, &self.tenant, self.clock, self.mode);
        let Ok(records) = self.parameters.get_disjoint_mut(indices) else {
            return Err(OptimizerError::Repeated { indices: indices.to_vec() }.into());
        };
        let mut lent = lent.into_iter();
        Ok(records.map(|record| {
            // There is one for each record.
            let weights = lent.next().flatten().unwrap_or(Weights::Values(&mut []));
            lend(record, &groups[record.group], (weights, 0), tenant, clock, mode)
        }))
    }

    /// The rows of at most `N` parameters, in the order of the parameters, like
    /// [`rows_of`](Self::rows_of): each among the first ones, or among the second ones, with slots
    /// for a batch of so many entries, which it [wants](Self::wants_slots).
    ///
    /// # Errors
    ///
    /// As there; parameters in another order, or more than `N`.
    #[allow(clippy::type_complexity)]
    pub(crate) fn rows_in_order<'a, K: UpdateKind, S: UpdateKind, const N: usize>(
        &'a mut self,
        parameters: impl Iterator<Item = (usize, &'a mut Table<T>, Option<usize>)>,
    ) -> Result<([Option<RowUpdater<'a, R, T, K>>; N], [Option<RowUpdater<'a, R, T, S>>; N])> {
        let mut wanted: [Option<(usize, Weights<'a, T>, Option<u32>)>; N] = [const { None }; N];
        for (place, (index, table, n_entries)) in parameters.enumerate() {
            let n_slots = n_entries.filter(|_| S::SLOTS).map(|count| slots_of(count, table));
            let mut weights = Weights::Table(table);
            self.check_kind::<K>(index, &weights)?;
            self.check_begun(index)?;
            match n_slots {
                Some(_) => self.ready::<S>(index, &mut weights),
                None => self.ready::<K>(index, &mut weights),
            }
            let is_next = wanted[..place.min(N)]
                .last()
                .is_none_or(|last| last.as_ref().is_some_and(|(before, ..)| *before < index));
            match wanted.get_mut(place).filter(|_| is_next) {
                Some(wanted) => *wanted = Some((index, weights, n_slots)),
                None => return Err(OptimizerError::Repeated { indices: vec![index] }.into()),
            }
        }
        let (groups, tenant, clock, mode) = (&self.groups, &self.tenant, self.clock, self.mode);
        let (mut rows, mut slotted) = ([const { None }; N], [const { None }; N]);
        let mut records = self.parameters.iter_mut().enumerate();
        for (place, wanted) in wanted.into_iter().enumerate() {
            let Some((index, weights, n_slots)) = wanted else { break };
            // Ascending, and each there is: it was checked.
            let Some((_, record)) = records.find(|(number, _)| *number == index) else { break };
            let group = &groups[record.group];
            match n_slots {
                Some(n_slots) => {
                    let weights = (weights, n_slots);
                    slotted[place] = Some(lend(record, group, weights, tenant, clock, mode));
                }
                None => rows[place] = Some(lend(record, group, (weights, 0), tenant, clock, mode)),
            }
        }
        Ok((rows, slotted))
    }

    /// Readies a record whose rows are about to be lent as a `K`: `last` where it is needed, a
    /// flush where one is due, the states where `K` looks for them.
    #[inline]
    pub(super) fn ready<K: UpdateKind>(&mut self, parameter: usize, weights: &mut Weights<'_, T>) {
        if !K::PLAIN
            && let Weights::Table(table) = weights
        {
            self.parameters[parameter].belong_to(table);
        }
        let record = &self.parameters[parameter];
        if !K::PLAIN {
            let moves = if K::BESIDE {
                !record.beside
            } else {
                record.beside || (record.states.is_empty() && self.uses_state(parameter))
            };
            if moves {
                self.move_states(K::BESIDE, parameter, weights);
            }
        }
        let record = &self.parameters[parameter];
        let group = &self.groups[record.group];
        let needed = match self.mode {
            LazyUpdate::Exact => record.lazy && group.active && !IdleOf::<R, T>::FORGETS,
            LazyUpdate::Touched => false,
            LazyUpdate::Dense => group.idle.changes(),
        };
        if needed {
            // A table flushed lately is not flushed again because another one keeps the history
            // long.
            let waits = self.clock.saturating_sub(record.base);
            let due = record.lazy
                && (waits >= MAX_STEPS
                    || group.history.n_runs() > self.max_runs
                        && waits as usize > self.max_runs / 2);
            if due || !record.counts {
                self.make_ready(parameter, weights, due);
            }
        } else if IdleOf::<R, T>::FORGETS && record.lazy && group.settles_since(record.base) {
            if self.rests_in_first_run(parameter, weights) {
                self.parameters[parameter].base = self.clock;
            } else if self.clock.saturating_sub(record.base) >= MAX_STEPS {
                self.make_ready(parameter, weights, true);
            }
        }
    }

    #[cold]
    fn make_ready(&mut self, parameter: usize, weights: &mut Weights<'_, T>, due: bool) {
        let updater = self;
        in_library_by_rule!(<R, T> Updater::<R, T>::make_rows_ready => (
            updater: &mut Updater<R, T>,
            parameter: usize,
            weights: &mut Weights<'_, T>,
            due: bool,
        ) -> ())
    }

    fn make_rows_ready(&mut self, parameter: usize, weights: &mut Weights<'_, T>, due: bool) {
        let record = &mut self.parameters[parameter];
        if !(record.counts || record.lazy && IdleOf::<R, T>::FORGETS) {
            record.counts = true;
            if !Self::has_last_beside(record) {
                record.last = vec![0; record.spec.n_rows];
            }
            record.touched.reserve(record.spec.n_rows);
        }
        if due {
            // The lengths were checked before.
            let _ = self.flush(parameter, weights.reborrow());
        }
    }

    /// Brings the states, and up to which step rows are settled, to where they are looked for,
    /// zeros where there are none yet. O(values).
    #[cold]
    #[inline(never)]
    pub(super) fn move_states(
        &mut self,
        beside: bool,
        parameter: usize,
        weights: &mut Weights<'_, T>,
    ) {
        let record = &mut self.parameters[parameter];
        match weights {
            Weights::Table(table) if beside => {
                table.turn_into_blocks::<StateOf<R, T>>(&self.tenant, record.states_of_row());
                table.set_states(&self.tenant, &std::mem::take(&mut record.states));
                record.beside = true;
                if Self::has_last_beside(record) {
                    table.set_last(&self.tenant, &std::mem::take(&mut record.last));
                }
            }
            Weights::Table(table) if record.beside => {
                record.states = table.states_of(&self.tenant);
                if Self::has_last_beside(record) && record.counts {
                    record.last = vec![0; record.spec.n_rows];
                    let mut places = record.last.iter_mut();
                    table.visit_last(&self.tenant, |last| {
                        places.next().into_iter().for_each(|place| *place = last);
                    });
                }
                table.forget(&self.tenant);
            }
            _ => {}
        }
        record.beside = beside;
        let is_short = !beside && record.states.is_empty();
        if is_short && self.uses_state(parameter) {
            let record = &mut self.parameters[parameter];
            record.states = vec![Default::default(); record.spec.n_rows * record.states_of_row()];
        }
    }

    #[inline(always)]
    fn check_kind<K: UpdateKind>(&self, parameter: usize, weights: &Weights<'_, T>) -> Result<()> {
        self.check(parameter, weights)?;
        if R::RACES {
            return Err(not_shared::<R>(&self.parameters[parameter].spec));
        }
        if K::PLAIN && !self.is_plain(parameter) || K::BESIDE && !self.is_beside(parameter, weights)
        {
            return Err(self.not_of_kind::<K>(parameter));
        }
        Ok(())
    }

    /// Refuses to lend a parameter, of those there are, to a step that was not begun.
    #[inline(always)]
    pub(super) fn check_begun(&self, parameter: usize) -> Result<()> {
        if self.begun == BegunSteps::Nothing {
            return Err(self.outside_step(parameter));
        }
        Ok(())
    }

    #[cold]
    fn outside_step(&self, parameter: usize) -> crate::Error {
        let parameter = self.parameters[parameter].spec.name.to_string();
        OptimizerError::OutsideStep { parameter }.into()
    }

    #[cold]
    fn not_of_kind<K: UpdateKind>(&self, parameter: usize) -> crate::Error {
        let parameter = self.parameters[parameter].spec.name.to_string();
        if K::PLAIN {
            OptimizerError::NotPlain { parameter, rule: R::NAME }.into()
        } else {
            OptimizerError::NotBeside { parameter, rule: R::NAME }.into()
        }
    }
}

/// The sums that a batch of so many entries may have at most.
#[inline(always)]
fn slots_of<T: Float>(n_entries: usize, table: &Table<T>) -> u32 {
    // Fits, as whoever wants slots has asked.
    n_entries.min(table.n_rows()) as u32
}

/// The handle of a record whose weights were checked and which is ready.
#[inline(always)]
pub(super) fn lend<'a, R: UpdateRule, T: Float, K: UpdateKind>(
    record: &'a mut Record<T::Accumulator, StateOf<R, T>>,
    group: &'a GroupOf<R, T>,
    (weights, n_slots): (Weights<'a, T>, u32),
    tenant: &Tenant,
    clock: u64,
    mode: LazyUpdate,
) -> RowUpdater<'a, R, T, K> {
    let settles = record.lazy && group.settles_since(record.base);
    let base = record.base.min(clock);
    // Fits: `ready` has flushed a table whose base is further away.
    let now = if settles { (clock - base) as u32 + 1 } else { 0 };
    let sweeps = mode == LazyUpdate::Dense
        && record.spec.gradient == Some(Storage::RowSparse)
        && group.idle.changes();
    let n_rows = record.spec.n_rows;
    debug_assert!(!K::SLOTS || !record.counts, "the last step of a row lies where its slot does");
    // Rows are added as they are settled for the first time, which they are before an update.
    let recorder =
        if settles && record.knows_touched() { record.touched.recorder() } else { Recorder::NONE };
    let (states, row_size) = (&mut record.states, record.spec.row_size);
    let mut memory = Memory::of(weights, states, row_size, (tenant, recorder), n_slots);
    // Not where the rule forgets.
    let last = if (settles || sweeps) && record.counts {
        memory.last_steps(&mut record.last, n_rows)
    } else {
        LastSteps::NONE
    };
    let catch_up = CatchUp {
        last,
        touched: &mut record.touched,
        missed: Missed::new(&group.history, base, now),
        settles,
    };
    RowUpdater {
        memory,
        catch_up,
        sums: &mut record.sums,
        finished: &mut record.finished,
        step: group.step,
        factor: group.step.gradient_factor().unwrap_or(T::zero().widen()),
        n_rows,
        sweeps,
    }
}

//! The updater of one model's parameters.

use super::accumulator::RowAccumulator;
use super::error::OptimizerError;
use super::memory::{Memory, Weights};
use super::rows::{IdleOf, RowUpdater, StateOf, StepOf, UpdateKind};
use super::spec::ParameterSpec;
use crate::error::Result;
use crate::model::Model;
use crate::table::{Table, Tenant};
use sparse_core::element::Float;
use sparse_core::storage::Storage;
use sparse_core::update_rules::{Idle, IdleHistory, IdleMap, LazyUpdate, Step, UpdateRule};

/// Runs of equal idle maps after which tables are flushed and the history starts afresh: some 80 MB.
const MAX_RUNS: usize = 1 << 20;

/// Steps after which a table is flushed, so that a step counted from the last flush fits 32 bits.
const MAX_STEPS: u64 = 1 << 31;

/// An update rule at work on the parameters of one model.
///
/// A step is [`begin_step`](Self::begin_step), then for each parameter that is not frozen either
/// [`rows`](Self::rows) (settle, read, update, finish), or [`apply_row_sparse`](Self::apply_row_sparse), or
/// [`apply_dense`](Self::apply_dense), then [`end_step`](Self::end_step). The values stay with their owner
/// and are lent to each call. A parameter whose gradient is row_sparse may be left out of a step, which is
/// then an idle one for all its rows; one whose gradient is dense has all its rows updated at every step.
///
/// Memory: the rule's state for each weight, 4 bytes a row where rows are caught up later, 4 bytes a row
/// where batches are accumulated; all of it mapped by the system only where rows are touched.
#[derive(Clone, Debug)]
pub struct Updater<R: UpdateRule, T: Float> {
    rule: R,
    mode: LazyUpdate,
    /// What the next step will use.
    learning_rate: f64,
    /// What the groups' steps are made for.
    resolved: f64,
    pub(super) clock: u64,
    pub(super) groups: Vec<Group<StepOf<R, T>, IdleOf<R, T>>>,
    pub(super) parameters: Vec<Record<T::Accumulator, StateOf<R, T>>>,
    pub(super) max_runs: usize,
    records_outputs: bool,
    /// Names this updater and its copies in the tables that their states lie in.
    pub(super) tenant: Tenant,
}

/// The parameters with one weight-decay scale: they have one resolved step and one idle history.
#[derive(Clone, Debug)]
pub(super) struct Group<S, M> {
    weight_decay_scale: f64,
    pub(super) step: S,
    idle: Idle<M>,
    /// True where one of its tables is lazy.
    lazy: bool,
    /// True from the first idle map on: rows have something to catch up with.
    pub(super) active: bool,
    pub(super) history: IdleHistory<M>,
}

/// What the updater keeps for one parameter.
#[derive(Clone, Debug)]
pub(super) struct Record<T, S> {
    pub(super) spec: ParameterSpec,
    pub(super) size: usize,
    pub(super) group: usize,
    /// Rows are caught up later: mode `Exact` and a row_sparse gradient.
    pub(super) lazy: bool,
    /// One a weight where the rule uses them and they do not lie in the parameter's table.
    pub(super) states: Vec<S>,
    /// Whether they do.
    pub(super) beside: bool,
    /// See `RowUpdater::last`. Empty is as good as all 0: the pages are asked for when rows are.
    pub(super) last: Vec<u32>,
    /// Of a lazy table: the step that `last == 0` stands for, at most `MAX_STEPS` ago whenever rows are lent.
    pub(super) base: u64,
    sums: RowAccumulator<T>,
    /// Updated in this step (asked for in mode `Dense` only).
    pub(super) finished: bool,
}

impl<R: UpdateRule, T: Float> Updater<R, T> {
    /// A rule at work on these parameters, at step 0.
    ///
    /// # Errors
    ///
    /// What [`UpdateRule::check`] refuses, a weight-decay scale below 0, a table that cannot be addressed.
    pub fn new(rule: R, parameters: impl Into<Vec<ParameterSpec>>) -> Result<Self> {
        rule.check()?;
        let learning_rate = rule.learning_rate();
        let mode = rule.lazy_update();
        let mut groups: Vec<Group<StepOf<R, T>, IdleOf<R, T>>> = Vec::new();
        let mut tables = Vec::new();
        for spec in parameters.into() {
            let scale = spec.weight_decay_scale;
            if !(scale >= 0.0 && scale.is_finite()) {
                return Err(OptimizerError::WeightDecayScale {
                    parameter: spec.name.into_owned(),
                    value: scale,
                }
                .into());
            }
            let Some(size) = spec
                .n_rows
                .checked_mul(spec.row_size)
                .filter(|size| size.checked_mul(size_of::<StateOf<R, T>>().max(8)).is_some())
            else {
                return Err(OptimizerError::TooLarge {
                    parameter: spec.name.into_owned(),
                    n_rows: spec.n_rows,
                    row_size: spec.row_size,
                }
                .into());
            };
            let lazy = mode == LazyUpdate::Exact && spec.gradient == Some(Storage::RowSparse);
            let known = groups.iter().position(|group| group.weight_decay_scale == scale);
            let group = known.unwrap_or_else(|| {
                let step = rule.step(learning_rate, scale, 0);
                groups.push(Group {
                    weight_decay_scale: scale,
                    step,
                    idle: step.idle(),
                    lazy: false,
                    active: false,
                    history: IdleHistory::default(),
                });
                groups.len() - 1
            });
            groups[group].lazy |= lazy;
            tables.push(Record {
                size,
                group,
                lazy,
                states: Vec::new(),
                beside: false,
                last: Vec::new(),
                base: 0,
                sums: RowAccumulator::new(spec.n_rows, spec.row_size),
                finished: false,
                spec,
            });
        }
        let mut updater = Updater {
            rule,
            mode,
            learning_rate,
            resolved: learning_rate,
            clock: 0,
            groups,
            parameters: tables,
            max_runs: MAX_RUNS,
            records_outputs: true,
            tenant: Tenant::default(),
        };
        updater.prepare();
        Ok(updater)
    }

    /// A rule at work on the parameters of `model`, with weight decay as
    /// [`ParameterSpec::of_model`] says.
    ///
    /// # Errors
    ///
    /// As [`new`](Self::new).
    pub fn for_model<M: Model<Element = T>>(rule: R, model: &M) -> Result<Self> {
        Self::new(rule, ParameterSpec::of_model(model))
    }

    /// The rule.
    pub fn rule(&self) -> &R {
        &self.rule
    }

    /// The parameters, as they were given.
    pub fn parameters(&self) -> impl ExactSizeIterator<Item = &ParameterSpec> {
        self.parameters.iter().map(|table| &table.spec)
    }

    /// The steps made so far.
    pub fn clock(&self) -> u64 {
        self.clock
    }

    /// The learning rate of the next step.
    pub fn learning_rate(&self) -> f64 {
        self.learning_rate
    }

    /// Sets the learning rate, from the next [`begin_step`](Self::begin_step) on.
    ///
    /// # Errors
    ///
    /// A rate that is negative, infinite or NaN. 0 is a step that changes no weight by its gradient.
    #[inline]
    pub fn set_learning_rate(&mut self, learning_rate: f64) -> Result<()> {
        if !(learning_rate >= 0.0 && learning_rate.is_finite()) {
            return Err(OptimizerError::LearningRate { value: learning_rate }.into());
        }
        self.learning_rate = learning_rate;
        Ok(())
    }

    /// True if [`Model::train_step`] is to leave its outputs in place, as it does unless told otherwise.
    #[inline]
    pub fn records_outputs(&self) -> bool {
        self.records_outputs
    }

    /// Tells training steps whether anybody reads their outputs: a fused step can save the stores.
    pub fn set_records_outputs(&mut self, records: bool) {
        self.records_outputs = records;
    }

    /// The states of a parameter, one a value, row major; nothing where the rule keeps none or none was needed yet. Up to
    /// date after [`flush`](Self::flush). O(values).
    ///
    /// # Errors
    ///
    /// No such parameter.
    pub fn states(&self, parameter: usize, table: &Table<T>) -> Result<Vec<StateOf<R, T>>> {
        let record = self.record(parameter)?;
        Ok(match record.beside {
            true => table.states_of(&self.tenant),
            false => record.states.clone(),
        })
    }

    /// The states of a parameter that is lent as a slice of values, as [`states`](Self::states).
    ///
    /// # Errors
    ///
    /// No such parameter; one whose states lie in its table.
    pub fn states_apart(&self, parameter: usize) -> Result<&[StateOf<R, T>]> {
        let record = self.record(parameter)?;
        match record.beside {
            true => Err(self.states_in_table(parameter)),
            false => Ok(&record.states),
        }
    }

    /// Starts a step.
    ///
    /// # Errors
    ///
    /// None today; rules that must refuse a step will say so here.
    #[inline]
    pub fn begin_step(&mut self) -> Result<()> {
        if R::COUNTS_STEPS || self.learning_rate != self.resolved {
            self.resolve();
        }
        Ok(())
    }

    /// Ends a step: advances the clock.
    ///
    /// # Errors
    ///
    /// In [`LazyUpdate::Dense`], a parameter that is not frozen and was not updated.
    #[inline]
    pub fn end_step(&mut self) -> Result<()> {
        if self.mode == LazyUpdate::Dense {
            self.check_finished()?;
        }
        for group in &mut self.groups {
            // Before the first idle map there is nothing to be caught up with, and a count is enough.
            if group.active {
                // There is a map: a rule that has none is not lazy.
                group.history.push(group.idle.map().unwrap_or(IdleMap::IDENTITY));
            } else {
                group.history.skip();
            }
        }
        self.clock += 1;
        Ok(())
    }

    /// True where the updates of a parameter are `weight += factor · grad` and nothing else: then
    /// [`rows_of`](Self::rows_of) gives [`Plain`](super::Plain) handles.
    #[inline]
    pub fn is_plain(&self, parameter: usize) -> bool {
        let Some(table) = self.parameters.get(parameter) else {
            return false;
        };
        let group = &self.groups[table.group];
        !group.active && !group.idle.changes() && group.step.gradient_factor().is_some()
    }

    /// True where the states of a parameter are to lie beside its weights: they are lent as a table, and the rule has
    /// state. Then [`rows_of`](Self::rows_of) gives [`Beside`](super::Beside) handles.
    #[inline]
    pub fn is_beside(&self, parameter: usize, weights: &Weights<'_, T>) -> bool {
        let Some(record) = self.parameters.get(parameter) else {
            return false;
        };
        matches!(weights, Weights::Table(_))
            && record.spec.gradient == Some(Storage::RowSparse)
            && self.groups[record.group].step.uses_state()
    }

    /// The rows of a parameter during this step. O(1), but for the first call and for a flush after 2²⁰
    /// changes of the learning rate.
    ///
    /// # Errors
    ///
    /// No such parameter, a frozen one, or values of another length.
    #[inline]
    pub fn rows<'a>(
        &'a mut self,
        parameter: usize,
        weights: impl Into<Weights<'a, T>>,
    ) -> Result<RowUpdater<'a, R, T>> {
        self.rows_as(parameter, weights)
    }

    /// [`rows`](Self::rows) as a `K`, with the same bounds on it as in [`rows_of`](Self::rows_of): the way of a step
    /// that takes 50 ns, without arrays of handles to be moved.
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
        let mut weights = weights.into();
        self.check_kind::<K>(parameter, &weights)?;
        self.ready::<K>(parameter, &mut weights);
        let record = &mut self.parameters[parameter];
        let group = &self.groups[record.group];
        Ok(lend(record, group, weights, &self.tenant, self.clock, self.mode))
    }

    /// The rows of several parameters at once. `K` is [`General`](super::General), or [`Plain`](super::Plain) where
    /// [`is_plain`](Self::is_plain) says so of each, or [`Beside`](super::Beside) where [`is_beside`](Self::is_beside)
    /// does; the macro `with_rows!` chooses.
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
            lend(record, &groups[record.group], weights, tenant, clock, mode)
        }))
    }

    /// Makes the groups' steps for the current learning rate and clock.
    #[cold]
    fn resolve(&mut self) {
        self.resolved = self.learning_rate;
        for group in &mut self.groups {
            group.step = self.rule.step(self.learning_rate, group.weight_decay_scale, self.clock);
            group.idle = group.step.idle();
        }
        self.prepare();
    }

    /// Allocates what the groups' steps need and the tables do not have yet.
    fn prepare(&mut self) {
        for (index, group) in self.groups.iter_mut().enumerate() {
            let activated = group.lazy && !group.active && group.idle.changes();
            group.active |= activated;
            for table in &mut self.parameters {
                if table.group != index || table.spec.gradient.is_none() {
                    continue;
                }
                if activated {
                    // Idle steps have changed nothing so far.
                    table.base = table.base.max(self.clock);
                }
            }
        }
    }

    /// Readies a record whose rows are about to be lent as a `K`: `last` where it is needed, a flush where one is due, the
    /// states where `K` looks for them.
    #[inline]
    pub(super) fn ready<K: UpdateKind>(&mut self, parameter: usize, weights: &mut Weights<'_, T>) {
        let record = &self.parameters[parameter];
        let group = &self.groups[record.group];
        if !K::PLAIN {
            let moves = match K::BESIDE {
                true => !record.beside,
                false => record.beside || (record.states.is_empty() && group.step.uses_state()),
            };
            if moves {
                self.move_states(K::BESIDE, parameter, weights);
            }
        }
        let record = &self.parameters[parameter];
        let group = &self.groups[record.group];
        let needed = match self.mode {
            LazyUpdate::Exact => record.lazy && group.active,
            LazyUpdate::Touched => false,
            LazyUpdate::Dense => group.idle.changes(),
        };
        if needed {
            // A table flushed lately is not flushed again because another one keeps the history long.
            let waits = self.clock.saturating_sub(record.base);
            let due = record.lazy
                && (waits >= MAX_STEPS
                    || group.history.n_runs() > self.max_runs
                        && waits as usize > self.max_runs / 2);
            if due || record.last.is_empty() {
                self.make_ready(parameter, weights, due);
            }
        }
    }

    #[cold]
    fn make_ready(&mut self, parameter: usize, weights: &mut Weights<'_, T>, due: bool) {
        let record = &mut self.parameters[parameter];
        if record.last.is_empty() {
            record.last = vec![0; record.spec.n_rows];
        }
        if due {
            // The lengths were checked before.
            let _ = self.flush(parameter, weights.reborrow());
        }
    }

    /// Brings the states to where they are looked for, zeros where there are none yet. O(values).
    #[cold]
    #[inline(never)]
    fn move_states(&mut self, beside: bool, parameter: usize, weights: &mut Weights<'_, T>) {
        let record = &mut self.parameters[parameter];
        match weights {
            Weights::Table(table) if beside => {
                table.blocks::<StateOf<R, T>>(&self.tenant);
                table.set_states(&self.tenant, &std::mem::take(&mut record.states));
            }
            Weights::Table(table) if record.beside => {
                record.states = table.states_of(&self.tenant);
                table.forget(&self.tenant);
            }
            _ => {}
        }
        record.beside = beside;
        let uses_state = self.groups[record.group].step.uses_state();
        if !beside && record.states.is_empty() && uses_state {
            record.states = vec![Default::default(); record.size];
        }
    }

    #[inline(always)]
    fn check_kind<K: UpdateKind>(&self, parameter: usize, weights: &Weights<'_, T>) -> Result<()> {
        self.check(parameter, weights)?;
        if K::PLAIN && !self.is_plain(parameter) || K::BESIDE && !self.is_beside(parameter, weights)
        {
            return Err(self.not_of_kind::<K>(parameter));
        }
        Ok(())
    }

    #[inline]
    pub(super) fn check(&self, parameter: usize, weights: &Weights<'_, T>) -> Result<()> {
        match self.parameters.get(parameter) {
            Some(record)
                if record.size == weights.len()
                    && record.spec.gradient.is_some()
                    && !(record.beside && matches!(weights, Weights::Values(_))) =>
            {
                Ok(())
            }
            _ => Err(self.refusal(parameter, weights.len())),
        }
    }

    pub(super) fn record(
        &self,
        parameter: usize,
    ) -> Result<&Record<T::Accumulator, StateOf<R, T>>> {
        match self.parameters.get(parameter) {
            Some(table) => Ok(table),
            None => Err(self.refusal(parameter, 0)),
        }
    }

    #[cold]
    fn refusal(&self, parameter: usize, n_values: usize) -> crate::Error {
        match self.parameters.get(parameter) {
            None => OptimizerError::NoSuchParameter {
                index: parameter,
                n_parameters: self.parameters.len(),
            }
            .into(),
            Some(table) if table.spec.gradient.is_none() => {
                OptimizerError::Frozen { parameter: table.spec.name.to_string() }.into()
            }
            Some(table) if table.size != n_values => self.wrong_count(parameter, n_values),
            Some(_) => self.states_in_table(parameter),
        }
    }

    #[cold]
    pub(super) fn states_in_table(&self, parameter: usize) -> crate::Error {
        let parameter = self.parameters[parameter].spec.name.to_string();
        OptimizerError::StatesInTable { parameter }.into()
    }

    #[cold]
    pub(super) fn wrong_count(&self, parameter: usize, n_values: usize) -> crate::Error {
        let table = &self.parameters[parameter];
        OptimizerError::ValueCount {
            parameter: table.spec.name.to_string(),
            expected: table.size,
            found: n_values,
        }
        .into()
    }

    #[cold]
    fn not_of_kind<K: UpdateKind>(&self, parameter: usize) -> crate::Error {
        let parameter = self.parameters[parameter].spec.name.to_string();
        match K::PLAIN {
            true => OptimizerError::NotPlain { parameter, rule: R::NAME }.into(),
            false => OptimizerError::NotBeside { parameter, rule: R::NAME }.into(),
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

/// The handle of a record whose weights were checked and which is ready.
#[inline(always)]
pub(super) fn lend<'a, R: UpdateRule, T: Float, K: UpdateKind>(
    record: &'a mut Record<T::Accumulator, StateOf<R, T>>,
    group: &'a Group<StepOf<R, T>, IdleOf<R, T>>,
    weights: Weights<'a, T>,
    tenant: &Tenant,
    clock: u64,
    mode: LazyUpdate,
) -> RowUpdater<'a, R, T, K> {
    let settles = record.lazy && group.active;
    // Fits: `ready` has flushed a table whose base is further away.
    let now = if settles { (clock - record.base.min(clock)) as u32 } else { 0 };
    let sweeps = mode == LazyUpdate::Dense
        && record.spec.gradient == Some(Storage::RowSparse)
        && group.idle.changes();
    let last = if settles || sweeps { &mut record.last[..] } else { &mut [] };
    let memory = Memory::of(weights, &mut record.states, record.spec.row_size, tenant);
    RowUpdater {
        memory,
        last,
        sums: &mut record.sums,
        finished: &mut record.finished,
        history: &group.history,
        step: group.step,
        factor: group.step.gradient_factor().unwrap_or(T::zero().widen()),
        n_rows: record.spec.n_rows,
        base: record.base,
        now,
        mark: now + 1,
        settles,
        sweeps,
    }
}

//! The updater of one model's parameters.

use super::accumulator::RowAccumulator;
use super::begun_steps::BegunSteps;
use super::error::OptimizerError;
use super::hogwild::racer::Racer;
use super::memory::{Weights, has_last_beside, states_of_row};
use super::spec::ParameterSpec;
use super::touched::TouchedRows;
use super::update_kind::{IdleOf, StateOf, StepOf};
use super::variance_reduction::state::Reduction;
use crate::error::Result;
use crate::in_library_by_rule;
use crate::model::Model;
use nnz_arrays::parameter_memory::{Owner, Table, Tenant};
use nnz_optim::{Idle, IdleHistory, IdleMap, LazyUpdate, StateBlock, Step, UpdateRule};
use sparse_core::element::Float;
use sparse_core::storage::Storage;
use std::marker::PhantomData;

/// Runs of equal idle maps after which tables are flushed and the history restarts: some 80 MB, 190
/// for maps as large as Adam's.
const MAX_RUNS: usize = 1 << 20;

/// An update rule at work on the parameters of one model.
///
/// A step is [`begin_step`](Self::begin_step), then for each parameter that is not frozen either
/// [`rows`](Self::rows) (settle, read, update, finish), or
/// [`apply_row_sparse`](Self::apply_row_sparse), or [`apply_dense`](Self::apply_dense), then
/// [`end_step`](Self::end_step). The values stay with their owner and are lent to each call. A step
/// may leave out a parameter whose gradient is row_sparse: it is then an idle step for all its
/// rows. A parameter whose gradient is dense has all its rows updated at every step.
///
/// Memory: the rule's state for each weight; 4 bytes and a bit a table row where rows are caught up
/// later (the bytes in an unused part of the row's block, if it has one); 4 bytes a table row where
/// batches are accumulated. The system maps all of it only where rows are touched.
#[derive(Clone, Debug)]
pub struct Updater<R: UpdateRule, T: Float> {
    pub(super) rule: R,
    pub(super) mode: LazyUpdate,
    /// The learning rate of the next step.
    pub(super) learning_rate: f64,
    /// What the groups' steps are made for.
    pub(super) resolved: f64,
    /// [`UpdateRule::counts_until`]: until then, each step is resolved anew.
    pub(super) counts_until: u64,
    pub(super) clock: u64,
    pub(super) begun: BegunSteps,
    pub(super) groups: Vec<GroupOf<R, T>>,
    pub(super) parameters: Vec<Record<T::Accumulator, StateOf<R, T>>>,
    pub(super) max_runs: usize,
    records_outputs: bool,
    /// The token of this updater and its copies in the tables with their states.
    pub(super) tenant: Tenant,
    pub(super) reduction: Reduction<T>,
    /// Of a rule that [races](UpdateRule::RACES): the part in a table that threads share.
    pub(super) racer: Option<Racer<T>>,
    /// For each parameter, the steps that rows may have missed, for a GPU.
    #[cfg(feature = "cuda")]
    pub(super) on_gpu: Vec<super::cuda::idle_products::IdleProducts<IdleOf<R, T>>>,
}

/// The parameters with the same scales: they have one resolved step and one idle history.
#[derive(Clone, Debug)]
pub(super) struct Group<S, M, A> {
    pub(super) weight_decay_scale: f64,
    pub(super) learning_rate_scale: f64,
    pub(super) step: S,
    pub(super) idle: Idle<M>,
    /// True where one of its tables is lazy.
    pub(super) lazy: bool,
    /// True from the first idle map on: rows have something to catch up with.
    pub(super) active: bool,
    /// The step since which it is.
    pub(super) activated: u64,
    pub(super) history: IdleHistory<M, A>,
}

/// The group of rule `R` on weights of type `T`.
pub(super) type GroupOf<R, T> = Group<StepOf<R, T>, IdleOf<R, T>, <T as Float>::Accumulator>;

impl<S, M: IdleMap, A: Float> Group<S, M, A> {
    /// The factors of the learning rate and of the penalties.
    pub(crate) fn scales(&self) -> (f64, f64) {
        (self.learning_rate_scale, self.weight_decay_scale)
    }

    /// Whether rows of a table that is caught up to step `base` may miss idle steps, or will.
    #[inline(always)]
    pub(super) fn settles_since(&self, base: u64) -> bool {
        self.active && (!M::FORGETS || self.history.newest_run().is_some_and(|first| base <= first))
    }
}

/// The updater's data for one parameter.
#[derive(Clone, Debug)]
pub(super) struct Record<T, S> {
    pub(super) spec: ParameterSpec,
    pub(super) size: usize,
    pub(super) group: usize,
    /// Rows are caught up later: mode `Exact` and a row_sparse gradient.
    pub(super) lazy: bool,
    /// One a weight or a row, where the rule uses them and they do not lie in the parameter's
    /// table.
    pub(super) states: Vec<S>,
    /// Whether they do.
    pub(super) beside: bool,
    /// Whether the steps are kept up to which rows are settled: see
    /// [`CatchUp::last`](super::CatchUp).
    pub(super) counts: bool,
    /// These, unless they lie beside the states in the parameter's table. Pages are asked for when
    /// rows are.
    pub(super) last: Vec<u32>,
    /// Of a lazy table: the step up to which rows are settled of which `last` does not know more,
    /// at most `MAX_STEPS` ago whenever rows are lent.
    pub(super) base: u64,
    /// Of a lazy table: see `RowUpdater::touched`. Complete while rows are lent with `last` alone.
    pub(super) touched: TouchedRows,
    pub(super) sums: RowAccumulator,
    /// Of a dense parameter: the sums of its gradient, between steps that
    /// [take](Updater::take_sums) them.
    pub(super) dense_sums: Vec<f64>,
    /// Updated in this step (asked for in mode `Dense` only).
    pub(super) finished: bool,
    /// The table that states and missed steps are of, once there are some.
    pub(super) table: Option<Owner>,
    pub(super) accumulator: PhantomData<T>,
}

impl<T, S: StateBlock<T>> Record<T, S> {
    /// One for each weight of a row, or one for all.
    pub(super) fn states_of_row(&self) -> usize {
        states_of_row::<T, S>(self.spec.row_size)
    }

    /// True where `touched` are all rows that any batch has touched.
    pub(super) fn knows_touched(&self) -> bool {
        self.lazy && self.touched.is_complete() && self.counts
    }
}

impl<R: UpdateRule, T: Float> Updater<R, T> {
    /// A rule for these parameters, at step 0.
    ///
    /// # Errors
    ///
    /// Refusals of [`UpdateRule::check`], a scale of a parameter below 0, a table that cannot be
    /// addressed, states without memory.
    pub fn new(rule: R, parameters: impl Into<Vec<ParameterSpec>>) -> Result<Self> {
        let parameters = parameters.into();
        in_library_by_rule!(<R, T> Updater::<R, T>::of_specs => (
            rule: R,
            parameters: Vec<ParameterSpec>,
        ) -> Result<Updater<R, T>>)
    }

    fn of_specs(rule: R, parameters: Vec<ParameterSpec>) -> Result<Self> {
        rule.check()?;
        let learning_rate = rule.learning_rate();
        let mode = rule.lazy_update();
        let mut groups: Vec<GroupOf<R, T>> = Vec::new();
        let mut tables = Vec::new();
        for spec in parameters {
            let (decay, rate) = (spec.weight_decay_scale, spec.learning_rate_scale);
            for (what, value) in [("weight decay", decay), ("learning rate", rate)] {
                if !(value >= 0.0 && value.is_finite()) {
                    let parameter = spec.name.into_owned();
                    return Err(OptimizerError::Scale { parameter, what, value }.into());
                }
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
            let known = groups.iter().position(|group| {
                (group.weight_decay_scale, group.learning_rate_scale) == (decay, rate)
            });
            let group = known.unwrap_or_else(|| {
                let step = rule.step(learning_rate * rate, decay, 0);
                groups.push(Group {
                    weight_decay_scale: decay,
                    learning_rate_scale: rate,
                    step,
                    idle: step.idle(),
                    lazy: false,
                    active: false,
                    activated: 0,
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
                counts: false,
                last: Vec::new(),
                base: 0,
                touched: TouchedRows::default(),
                sums: RowAccumulator::new(spec.n_rows, spec.row_size),
                dense_sums: Vec::new(),
                finished: false,
                table: None,
                accumulator: PhantomData,
                spec,
            });
        }
        let mut updater = Updater {
            mode,
            learning_rate,
            resolved: learning_rate,
            counts_until: rule.counts_until(),
            rule,
            clock: 0,
            begun: BegunSteps::Nothing,
            groups,
            parameters: tables,
            max_runs: MAX_RUNS,
            records_outputs: true,
            tenant: Tenant::default(),
            reduction: Reduction::default(),
            racer: None,
            #[cfg(feature = "cuda")]
            on_gpu: Vec::new(),
        };
        #[cfg(feature = "cuda")]
        updater.on_gpu.resize_with(updater.parameters.len(), Default::default);
        updater.prepare();
        updater.check_memory()?;
        Ok(updater)
    }

    /// A rule for the parameters of `model`, with weight decay as in [`ParameterSpec::of_model`].
    ///
    /// # Errors
    ///
    /// As [`new`](Self::new); [`OptimizerError::NoState`] for weights that follow from no state of
    /// the rule.
    pub fn for_model<M: Model<Element = T>>(rule: R, model: &M) -> Result<Self> {
        let updater = Self::new(rule, ParameterSpec::of_model(model))?;
        updater.check_weights(model)?;
        Ok(updater)
    }

    /// The rule.
    pub fn rule(&self) -> &R {
        &self.rule
    }

    /// The parameters, as given.
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
    /// A rate that is negative, infinite or NaN. A step at rate 0 changes no weight by its
    /// gradient.
    #[inline]
    pub fn set_learning_rate(&mut self, learning_rate: f64) -> Result<()> {
        if !(learning_rate >= 0.0 && learning_rate.is_finite()) {
            return Err(OptimizerError::LearningRate { value: learning_rate }.into());
        }
        self.learning_rate = learning_rate;
        Ok(())
    }

    /// True, the default, if [`Model::train_step`] leaves its outputs in place.
    #[inline]
    pub fn records_outputs(&self) -> bool {
        self.records_outputs
    }

    /// Says whether the outputs of training steps are read: a fused step can save the stores.
    pub fn set_records_outputs(&mut self, records: bool) {
        self.records_outputs = records;
    }

    /// The states of a parameter, one a value or [a row](nnz_optim::OfRow), row
    /// major. Empty if the rule has none or needed none yet. Up to date after
    /// [`flush`](Self::flush). O(values).
    ///
    /// # Errors
    ///
    /// No such parameter.
    pub fn states(&self, parameter: usize, table: &Table<T>) -> Result<Vec<StateOf<R, T>>> {
        let record = self.record(parameter)?;
        Ok(if record.beside { table.states_of(&self.tenant) } else { record.states.clone() })
    }

    /// The states of a parameter that is lent as a slice of values, like [`states`](Self::states).
    ///
    /// # Errors
    ///
    /// No such parameter; one whose states lie in its table.
    pub fn states_apart(&self, parameter: usize) -> Result<&[StateOf<R, T>]> {
        let record = self.record(parameter)?;
        if record.beside { Err(self.states_in_table(parameter)) } else { Ok(&record.states) }
    }

    #[inline]
    pub(super) fn check(&self, parameter: usize, weights: &Weights<'_, T>) -> Result<()> {
        match self.parameters.get(parameter) {
            Some(record)
                if weights.are_rows(record.spec.n_rows, record.spec.row_size)
                    && record.spec.gradient.is_some()
                    && !(record.beside && matches!(weights, Weights::Values(_)))
                    && record.may_be_of(weights) =>
            {
                Ok(())
            }
            _ => Err(self.refusal(parameter, weights)),
        }
    }

    /// True if the last steps of a parameter's rows lie in its table, if they are kept.
    pub(super) fn has_last_beside(record: &Record<T::Accumulator, StateOf<R, T>>) -> bool {
        record.beside && has_last_beside::<T, StateOf<R, T>>(record.spec.row_size)
    }

    pub(super) fn record(
        &self,
        parameter: usize,
    ) -> Result<&Record<T::Accumulator, StateOf<R, T>>> {
        match self.parameters.get(parameter) {
            Some(table) => Ok(table),
            None => Err(self.refusal(parameter, &Weights::Values(&mut []))),
        }
    }

    #[cold]
    fn refusal(&self, parameter: usize, weights: &Weights<'_, T>) -> crate::Error {
        let updater = self;
        in_library_by_rule!(<R, T> Updater::<R, T>::reason => (
            updater: &Updater<R, T>,
            parameter: usize,
            weights: &Weights<'_, T>,
        ) -> crate::Error)
    }

    /// Why weights are refused.
    fn reason(&self, parameter: usize, weights: &Weights<'_, T>) -> crate::Error {
        match self.parameters.get(parameter) {
            None => OptimizerError::NoSuchParameter {
                index: parameter,
                n_parameters: self.parameters.len(),
            }
            .into(),
            Some(table) if table.spec.gradient.is_none() => {
                OptimizerError::Frozen { parameter: table.spec.name.to_string() }.into()
            }
            Some(table) if table.size != weights.len() => {
                self.wrong_count(parameter, weights.len())
            }
            Some(Record { spec, .. }) if !weights.are_rows(spec.n_rows, spec.row_size) => {
                OptimizerError::RowSize {
                    parameter: spec.name.to_string(),
                    expected: spec.row_size,
                    n_rows: spec.n_rows,
                }
                .into()
            }
            Some(record) if !record.may_be_of(weights) => {
                OptimizerError::OtherTable { parameter: record.spec.name.to_string() }.into()
            }
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
}

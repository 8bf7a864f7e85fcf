//! Epochs without the types of rule, model and data: everything but the steps is compiled once.

use super::TrainError;
use super::any_updater::{AnyUpdater, erased, erased_mut};
use super::batch_loop::fit_from;
use super::checkpoint::Run;
use super::epoch_totals::EpochTotals;
use super::evaluation::{Evaluation, check_evaluation};
use super::measure::Measure;
use super::precision::Checks;
use super::progress::Reporter;
use super::report::{EpochReport, FitReport, ScoreReport};
use super::score::{check_batch_size, score_first};
use super::trainer_config::TrainerConfig;
use super::trainer_hook::Hook;
use super::variance_reduction::VarianceReducer;
use crate::error::Result;
use crate::metric::Metric;
use nnz_arrays::in_library;
use nnz_arrays::kernels::Parallel;
use nnz_data::{BatchOptions, Batches, BytesRead, DataSource, LastBatch, Position};
use nnz_optim::UpdateRule;
use nnz_step::model::{AnyModel, Model, ModelFacts};
use nnz_step::optimizer::Updater;
use sparse_core::element::Float;
use std::time::Instant;

/// The part of an updater's work that one call does.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum RunScope {
    /// All of it: the updater exists for this call.
    WholeRun,
    /// Some epochs of a run.
    SomeEpochs,
    /// One pass of many that are one run without a known end.
    OnePass,
}

/// What a run needs to know of the rule.
#[derive(Clone, Copy)]
pub(super) struct RuleFacts {
    name: &'static str,
    one_rate: bool,
    corrects: bool,
    learning_rate: f64,
}

/// What a run does with types of its own. The order of the calls is that of
/// [`TrainerConfig::run_epochs`].
pub(super) trait AnyEpochs<T: Float> {
    /// What the run needs to know of the rule.
    fn rule(&self) -> RuleFacts;

    /// The model and the updater.
    fn state(&self) -> (&dyn AnyModel<T>, &dyn AnyUpdater<T>);

    /// The updater.
    fn updater(&mut self) -> &mut dyn AnyUpdater<T>;

    /// The samples of the data, if they are known.
    fn n_rows(&self) -> Option<usize>;

    /// [`Evaluation::BY_TRAINER`].
    fn evaluates_by_trainer(&self) -> bool;

    /// [`DataSource::IN_SEQUENCE`] of the data of the evaluation.
    fn evaluates_in_sequence(&self) -> bool;

    /// Refuses data of an evaluation that does not fit.
    fn check_evaluation(&mut self, metrics: &[Box<dyn Metric>]) -> Result<()>;

    /// Scores the first batch of the data, for the errors.
    fn score_first(&mut self, options: &BatchOptions, metrics: &[Box<dyn Metric>]) -> Result<()>;

    /// Prepares the first epoch: opens the data.
    fn open(&mut self, options: &BatchOptions) -> Result<()>;

    /// Prepares the first epoch: the threads of the model, the updater, and what the rule needs.
    fn begin(
        &mut self,
        options: &BatchOptions,
        parallel: Parallel,
        max_norm: Option<f64>,
        scope: RunScope,
    ) -> Result<()>;

    /// Goes to an epoch. Its number of batches, and the bytes of the data read so far, if these are
    /// known.
    fn start_epoch(&mut self, epoch: u64) -> Result<(Option<u64>, Option<BytesRead>)>;

    /// Makes the steps of the rest of an epoch, like [`fit_from`].
    fn fit_epoch(
        &mut self,
        start: Position,
        totals: EpochTotals,
        hook: &mut Hook<'_, '_>,
    ) -> Result<EpochTotals>;

    /// As [`Evaluation::evaluate`].
    fn evaluate(
        &mut self,
        metrics: &[Box<dyn Metric>],
        rows_at_a_time: usize,
    ) -> Result<Option<ScoreReport>>;
}

/// The epochs of a model on data `'d` by an updater.
pub(super) struct EpochsOf<'r, 'd, R, M, S, E>
where
    R: UpdateRule,
    M: Model,
    S: DataSource<M::Element>,
{
    pub(super) learning_rate: f64,
    pub(super) updater: &'r mut Updater<R, M::Element>,
    pub(super) model: &'r mut M,
    pub(super) data: &'d S,
    pub(super) evaluation: &'r E,
    reducer: Option<VarianceReducer<'d, M, S>>,
    batches: Option<S::Batches<'d>>,
}

impl<'r, 'd, R, M, S, E> EpochsOf<'r, 'd, R, M, S, E>
where
    R: UpdateRule,
    M: Model,
    S: DataSource<M::Element>,
{
    /// At the learning rate of the rule.
    pub(super) fn new(
        rule: &R,
        updater: &'r mut Updater<R, M::Element>,
        model: &'r mut M,
        data: &'d S,
        evaluation: &'r E,
    ) -> Self {
        let learning_rate = rule.learning_rate();
        let (reducer, batches) = (None, None);
        EpochsOf { learning_rate, updater, model, data, evaluation, reducer, batches }
    }

    fn batches(&mut self) -> Result<&mut S::Batches<'d>> {
        // The run opens them first.
        self.batches.as_mut().ok_or_else(|| TrainError::NoRows.into())
    }
}

impl<R, M, S, E> AnyEpochs<M::Element> for EpochsOf<'_, '_, R, M, S, E>
where
    R: UpdateRule,
    M: Model,
    S: DataSource<M::Element>,
    E: Evaluation<M::Element>,
{
    fn rule(&self) -> RuleFacts {
        RuleFacts {
            name: R::NAME,
            one_rate: R::ONE_RATE,
            corrects: R::CORRECTS,
            learning_rate: self.learning_rate,
        }
    }

    fn state(&self) -> (&dyn AnyModel<M::Element>, &dyn AnyUpdater<M::Element>) {
        (&*self.model, erased(self.updater))
    }

    fn updater(&mut self) -> &mut dyn AnyUpdater<M::Element> {
        erased_mut(self.updater)
    }

    fn n_rows(&self) -> Option<usize> {
        self.data.n_rows()
    }

    fn evaluates_by_trainer(&self) -> bool {
        E::BY_TRAINER
    }

    fn evaluates_in_sequence(&self) -> bool {
        <E::Source as DataSource<M::Element>>::IN_SEQUENCE
    }

    fn check_evaluation(&mut self, metrics: &[Box<dyn Metric>]) -> Result<()> {
        check_evaluation(self.evaluation, self.model, metrics)
    }

    fn score_first(&mut self, options: &BatchOptions, metrics: &[Box<dyn Metric>]) -> Result<()> {
        score_first(self.model, self.data, options, metrics).map(|_| ())
    }

    fn open(&mut self, options: &BatchOptions) -> Result<()> {
        self.batches = Some(self.data.batches(M::INPUTS, options)?);
        Ok(())
    }

    fn begin(
        &mut self,
        options: &BatchOptions,
        parallel: Parallel,
        max_norm: Option<f64>,
        scope: RunScope,
    ) -> Result<()> {
        self.model.set_parallel(parallel);
        self.updater.check_model(self.model)?;
        if self.updater.clock() == 0 {
            // The model may have been loaded since the updater was made.
            self.updater.check_weights(self.model)?;
        }
        if const { R::CORRECTS } {
            // An updater of this call sees no other data.
            let is_whole = scope == RunScope::WholeRun;
            let fingerprint = if is_whole { None } else { self.data.fingerprint()? };
            self.reducer = VarianceReducer::new(
                self.updater,
                self.model,
                self.data,
                fingerprint,
                options,
                max_norm,
            )?;
        }
        Ok(())
    }

    fn start_epoch(&mut self, epoch: u64) -> Result<(Option<u64>, Option<BytesRead>)> {
        let batches = self.batches()?;
        batches.start_epoch(epoch)?;
        Ok((batches.n_batches(), batches.bytes_read()))
    }

    fn fit_epoch(
        &mut self,
        start: Position,
        totals: EpochTotals,
        hook: &mut Hook<'_, '_>,
    ) -> Result<EpochTotals> {
        let Self { model, updater, batches, reducer, .. } = self;
        let Some(batches) = batches else { return Err(TrainError::NoRows.into()) };
        if const { R::CORRECTS }
            && let Some(reducer) = reducer
        {
            return reducer.fit_epoch(*model, updater, batches, start, totals, hook);
        }
        fit_from(*model, updater, batches, start, totals, hook)
    }

    fn evaluate(
        &mut self,
        metrics: &[Box<dyn Metric>],
        rows_at_a_time: usize,
    ) -> Result<Option<ScoreReport>> {
        self.evaluation.evaluate(self.model, metrics, rows_at_a_time)
    }
}

impl TrainerConfig<'_> {
    /// Refuses, before the first step, what [`run`](Self::run) does, and data of the evaluation
    /// that does not fit the model.
    pub(super) fn check_run<M: Model, E: Evaluation<M::Element>>(
        &self,
        evaluation: &E,
        model: &mut M,
    ) -> Result<()> {
        self.check_before_steps(&ModelFacts::of::<M>(), E::BY_TRAINER)?;
        check_evaluation(evaluation, model, &self.metrics)
    }

    /// Refuses, before the first step: a shuffle that changes what an input means, and a watched
    /// metric that no report will have, of an evaluation `by_trainer`.
    fn check_before_steps(&self, model: &ModelFacts, by_trainer: bool) -> Result<()> {
        self.check_order(model)?;
        let known: Vec<_> = self.metrics.iter().map(|metric| metric.name()).collect();
        let mut watched = self.callbacks.iter().filter_map(|callback| callback.watches());
        match watched.find(|name| by_trainer && !known.contains(name)) {
            Some(name) => Err(TrainError::unknown_metric(name, &known).into()),
            None => Ok(()),
        }
    }

    /// Trains from a position up to an epoch. Callbacks learn of the end if the part has one.
    pub(super) fn run<T: Float>(
        &mut self,
        epochs: &mut dyn AnyEpochs<T>,
        run: Run,
        end: u64,
        scope: RunScope,
    ) -> Result<FitReport> {
        let config = self;
        in_library!(<T> TrainerConfig::run_epochs::<T> => (
            config: &mut TrainerConfig<'_>,
            epochs: &mut dyn AnyEpochs<T>,
            run: Run,
            end: u64,
            scope: RunScope,
        ) -> Result<FitReport>)
    }

    fn run_epochs<T: Float>(
        &mut self,
        epochs: &mut dyn AnyEpochs<T>,
        mut run: Run,
        end: u64,
        scope: RunScope,
    ) -> Result<FitReport> {
        let (rule, model) = (epochs.rule(), epochs.state().0.facts());
        let span = tracing::info_span!("fit", model = model.name, rule = rule.name);
        let _entered = span.enter();
        self.check(rule.name, rule.one_rate)?;
        let options = self.batch_options();
        self.check_before_steps(&model, epochs.evaluates_by_trainer())?;
        epochs.check_evaluation(&self.metrics)?;
        check_batch_size(epochs.state().0, epochs.n_rows(), &options)?;
        if !self.metrics.is_empty() {
            epochs.score_first(&options, &self.metrics)?;
        }
        epochs.open(&options)?;
        let base_rate = rule.learning_rate;
        run.settings.push(self.metrics_setting());
        let rows_at_a_time = self.rows_at_a_time(epochs.state().0, epochs.evaluates_in_sequence());
        if scope == RunScope::WholeRun || epochs.updater().clock() == 0 {
            self.warned.clear();
        }
        let mut hook = Hook {
            measure: Measure::new(&model, &self.metrics)?,
            reporter: Reporter::new(self.progress),
            schedule: self.schedule.changes_by_step().then_some(&self.schedule),
            base_rate,
            max_norm: self.clip_norm,
            callbacks: &mut self.callbacks,
            run,
            is_stopped: false,
            has_end: scope != RunScope::OnePass,
            gradient_norms: Vec::new(),
            checks: Checks::new(&model, rule.corrects, self.clip_norm, &mut self.warned),
        };
        hook.measure.restore(&hook.run.metrics)?;
        hook.replay();
        let begin = hook.run.position;
        epochs.updater().set_records_outputs(!hook.measure.is_empty());
        epochs.begin(&options, self.parallel, self.clip_norm, scope)?;
        while hook.run.position.epoch < end && !hook.is_stopped {
            let (start, totals) = (hook.run.position, hook.run.totals);
            let epoch = start.epoch;
            let span = tracing::info_span!("epoch", number = epoch + 1);
            let _entered = span.enter();
            // Constant within the epoch, unless the hook sets it at every step.
            if start.batch == 0 {
                let updater = epochs.updater();
                let factor = self.schedule.factor(updater.clock(), epoch);
                updater.set_learning_rate(base_rate * factor)?;
            }
            let (n_batches, bytes_read) = epochs.start_epoch(epoch)?;
            let (clock, n_steps) = (epochs.updater().clock(), Checks::batches_of(n_batches));
            let number = match scope {
                // Pieces are counted by their steps.
                RunScope::OnePass => clock / n_steps.max(1),
                RunScope::WholeRun | RunScope::SomeEpochs => epoch,
            };
            hook.checks.start_epoch(number, n_batches, clock.max(n_steps.saturating_mul(end)));
            hook.reporter.start_epoch(epoch, end, n_batches, bytes_read);
            hook.reporter.advance(start.batch);
            let began = Instant::now();
            let totals = epochs.fit_epoch(start, totals, &mut hook)?;
            if hook.is_stopped {
                // Ended within the epoch, of which everybody was told then: nobody is to take it
                // for a whole one.
                let (epochs, warnings) = (hook.run.epochs, hook.checks.warnings);
                return Ok(FitReport { epochs, stopped: true, warnings });
            }
            hook.checks.end_epoch(totals.n_batches);
            let seconds = began.elapsed().as_secs_f64();
            // Rows that roll over may fill no batch yet.
            if totals.n_rows == 0 && options.last_batch != LastBatch::RollOver {
                return Err(TrainError::NoRows.into());
            }
            let evaluation = epochs.evaluate(&self.metrics, rows_at_a_time)?;
            let metrics = match scope {
                // A piece of data may be too little for a metric.
                RunScope::OnePass => hook.measure.take_or_nan(),
                RunScope::WholeRun | RunScope::SomeEpochs if totals.n_rows == 0 => {
                    hook.measure.take_or_nan()
                }
                RunScope::WholeRun | RunScope::SomeEpochs => {
                    hook.measure.take("the training data")?
                }
            };
            let report = EpochReport {
                epoch,
                epochs: end,
                loss: totals.mean_loss(),
                metrics,
                evaluation,
                learning_rate: epochs.updater().learning_rate(),
                n_rows: totals.n_rows,
                seconds,
            };
            tracing::info!(loss = report.loss, seconds, "trained");
            hook.reporter.end_epoch(&report);
            hook.run.epochs.push(report);
            hook.run.position = Position { epoch: epoch + 1, batch: 0 };
            (hook.run.totals, hook.run.metrics) = Default::default();
            hook.end_epoch(&epochs.state())?;
        }
        // Nor have they in any epoch.
        if !hook.run.epochs.is_empty() && hook.run.epochs.iter().all(|epoch| epoch.n_rows == 0) {
            return Err(TrainError::NoRows.into());
        }
        if hook.run.position != begin {
            hook.end(&epochs.state())?;
        }
        let stopped = hook.is_stopped && hook.run.position.epoch < end;
        let (epochs, warnings) = (hook.run.epochs, hook.checks.warnings);
        Ok(FitReport { epochs, stopped, warnings })
    }
}

//! Epochs without the type of the rule: everything but the steps is compiled once for all rules.

use super::TrainError;
use super::any_updater::AnyUpdater;
use super::batch_loop::fit_from;
use super::checkpoint::Run;
use super::epoch_totals::EpochTotals;
use super::evaluation::Evaluation;
use super::measure::Measure;
use super::precision::Checks;
use super::progress::Reporter;
use super::report::{EpochReport, FitReport};
use super::score::{check_batch_size, check_source, score_first};
use super::trainer_config::TrainerConfig;
use super::trainer_hook::Hook;
use super::variance_reduction::VarianceReducer;
use crate::error::Result;
use nnz_data::{BatchOptions, Batches, DataSource, LastBatch, Position};
use nnz_optim::UpdateRule;
use nnz_step::model::Model;
use nnz_step::optimizer::Updater;
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

/// Makes the steps of a run on data `'d`.
pub(super) trait Steps<'d, M: Model, S: DataSource<M::Element>> {
    /// What the run needs to know of the rule.
    fn rule(&self) -> RuleFacts;

    /// The updater.
    fn updater(&mut self) -> &mut dyn AnyUpdater<M::Element>;

    /// Prepares the first epoch.
    fn begin(
        &mut self,
        model: &M,
        data: &'d S,
        options: &BatchOptions,
        max_norm: Option<f64>,
        scope: RunScope,
    ) -> Result<()>;

    /// Makes the steps of the rest of an epoch, like [`fit_from`].
    fn fit_epoch(
        &mut self,
        model: &mut M,
        batches: &mut S::Batches<'d>,
        start: Position,
        totals: EpochTotals,
        hook: &mut Hook<'_, '_>,
    ) -> Result<EpochTotals>;
}

/// Steps by an updater.
pub(super) struct StepsBy<'u, 'd, R, M, S>
where
    R: UpdateRule,
    M: Model,
    S: DataSource<M::Element>,
{
    learning_rate: f64,
    updater: &'u mut Updater<R, M::Element>,
    reducer: Option<VarianceReducer<'d, M, S>>,
}

impl<'u, R, M, S> StepsBy<'u, '_, R, M, S>
where
    R: UpdateRule,
    M: Model,
    S: DataSource<M::Element>,
{
    /// At the learning rate of the rule.
    pub(super) fn new(rule: &R, updater: &'u mut Updater<R, M::Element>) -> Self {
        StepsBy { learning_rate: rule.learning_rate(), updater, reducer: None }
    }
}

impl<'d, R, M, S> Steps<'d, M, S> for StepsBy<'_, 'd, R, M, S>
where
    R: UpdateRule,
    M: Model,
    S: DataSource<M::Element>,
{
    fn rule(&self) -> RuleFacts {
        RuleFacts {
            name: R::NAME,
            one_rate: R::ONE_RATE,
            corrects: R::CORRECTS,
            learning_rate: self.learning_rate,
        }
    }

    fn updater(&mut self) -> &mut dyn AnyUpdater<M::Element> {
        self.updater
    }

    fn begin(
        &mut self,
        model: &M,
        data: &'d S,
        options: &BatchOptions,
        max_norm: Option<f64>,
        scope: RunScope,
    ) -> Result<()> {
        self.updater.check_model(model)?;
        if self.updater.clock() == 0 {
            // The model may have been loaded since the updater was made.
            self.updater.check_weights(model)?;
        }
        if R::CORRECTS {
            // An updater of this call sees no other data.
            let fingerprint = if scope == RunScope::WholeRun { None } else { data.fingerprint()? };
            self.reducer =
                VarianceReducer::new(self.updater, model, data, fingerprint, options, max_norm)?;
        }
        Ok(())
    }

    fn fit_epoch(
        &mut self,
        model: &mut M,
        batches: &mut S::Batches<'d>,
        start: Position,
        totals: EpochTotals,
        hook: &mut Hook<'_, '_>,
    ) -> Result<EpochTotals> {
        match &mut self.reducer {
            Some(reducer) if R::CORRECTS => {
                reducer.fit_epoch(model, self.updater, batches, start, totals, hook)
            }
            _ => fit_from(model, self.updater, batches, start, totals, hook),
        }
    }
}

impl TrainerConfig<'_> {
    /// Refuses, before the first step: a shuffle that changes what an input means, a watched metric
    /// that no report will have, and evaluation data that does not fit the model's declarations.
    pub(super) fn check_before_steps<M: Model, E: Evaluation<M::Element>>(
        &self,
        evaluation: &E,
        model: &mut M,
    ) -> Result<()> {
        self.check_order::<M>()?;
        let known = || self.metrics.iter().map(|metric| metric.name());
        let mut watched = self.callbacks.iter().filter_map(|callback| callback.watches());
        let is_unknown = |name: &&str| E::BY_TRAINER && !known().any(|known| known == *name);
        if let Some(name) = watched.find(is_unknown) {
            return Err(TrainError::unknown_metric(name, known()).into());
        }
        evaluation.source().map_or(Ok(()), |data| check_source(model, data, &self.metrics))
    }

    /// Trains from a position up to an epoch. Callbacks learn of the end if the part has one.
    #[allow(clippy::too_many_arguments)]
    pub(super) fn go_on<'d, M, S, E>(
        &mut self,
        evaluation: &E,
        model: &mut M,
        steps: &mut dyn Steps<'d, M, S>,
        data: &'d S,
        mut run: Run,
        end: u64,
        scope: RunScope,
    ) -> Result<FitReport>
    where
        M: Model,
        S: DataSource<M::Element>,
        E: Evaluation<M::Element>,
    {
        let rule = steps.rule();
        let span = tracing::info_span!("fit", model = M::NAME, rule = rule.name);
        let _entered = span.enter();
        self.check(rule.name, rule.one_rate)?;
        let options = self.batch_options();
        self.check_before_steps(evaluation, model)?;
        check_batch_size(model, data.n_rows(), &options)?;
        if !self.metrics.is_empty() {
            score_first(model, data, &options, &self.metrics)?;
        }
        let mut batches = data.batches(M::INPUTS, &options)?;
        let base_rate = rule.learning_rate;
        run.settings.push(self.metrics_setting());
        let rows_at_a_time = self.rows_at_a_time::<M, E::Source>(model);
        if scope == RunScope::WholeRun || steps.updater().clock() == 0 {
            self.warned.clear();
        }
        let mut hook = Hook {
            measure: Measure::new::<M>(&self.metrics)?,
            reporter: Reporter::new(self.progress),
            schedule: self.schedule.changes_by_step().then_some(&self.schedule),
            base_rate,
            max_norm: self.clip_norm,
            callbacks: &mut self.callbacks,
            run,
            is_stopped: false,
            has_end: scope != RunScope::OnePass,
            gradient_norms: Vec::new(),
            checks: Checks::new::<M>(rule.corrects, self.clip_norm, &mut self.warned),
        };
        model.set_parallel(self.parallel);
        hook.measure.restore(&hook.run.metrics)?;
        hook.replay();
        let begin = hook.run.position;
        steps.updater().set_records_outputs(!hook.measure.is_empty());
        steps.begin(model, data, &options, self.clip_norm, scope)?;
        while hook.run.position.epoch < end && !hook.is_stopped {
            let (start, totals) = (hook.run.position, hook.run.totals);
            let epoch = start.epoch;
            let span = tracing::info_span!("epoch", number = epoch + 1);
            let _entered = span.enter();
            // Constant within the epoch, unless the hook sets it at every step.
            if start.batch == 0 {
                let updater = steps.updater();
                let factor = self.schedule.factor(updater.clock(), epoch);
                updater.set_learning_rate(base_rate * factor)?;
            }
            batches.start_epoch(epoch)?;
            let n_batches = batches.n_batches();
            let (clock, n_steps) = (steps.updater().clock(), Checks::batches_of(n_batches));
            let number = match scope {
                // Pieces are counted by their steps.
                RunScope::OnePass => clock / n_steps.max(1),
                RunScope::WholeRun | RunScope::SomeEpochs => epoch,
            };
            hook.checks.start_epoch(number, n_batches, clock.max(n_steps.saturating_mul(end)));
            hook.reporter.start_epoch(epoch, end, n_batches, batches.bytes_read());
            hook.reporter.advance(start.batch);
            let began = Instant::now();
            let totals = steps.fit_epoch(model, &mut batches, start, totals, &mut hook)?;
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
            let evaluation = evaluation.evaluate(model, &self.metrics, rows_at_a_time)?;
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
                learning_rate: steps.updater().learning_rate(),
                n_rows: totals.n_rows,
                seconds,
            };
            tracing::info!(loss = report.loss, seconds, "trained");
            hook.reporter.end_epoch(&report);
            hook.run.epochs.push(report);
            hook.run.position = Position { epoch: epoch + 1, batch: 0 };
            (hook.run.totals, hook.run.metrics) = Default::default();
            hook.end_epoch(&(&*model, &*steps.updater()))?;
        }
        // Nor have they in any epoch.
        if !hook.run.epochs.is_empty() && hook.run.epochs.iter().all(|epoch| epoch.n_rows == 0) {
            return Err(TrainError::NoRows.into());
        }
        if hook.run.position != begin {
            hook.end(&(&*model, &*steps.updater()))?;
        }
        let stopped = hook.is_stopped && hook.run.position.epoch < end;
        let (epochs, warnings) = (hook.run.epochs, hook.checks.warnings);
        Ok(FitReport { epochs, stopped, warnings })
    }
}

//! The coordinator of a run whose steps are made elsewhere, by Hogwild threads or by workers: it
//! evaluates, reports and calls callbacks.

use super::EpochTotals;
use super::callback::{Moment, State, is_due, replay, states};
use super::checkpoint::Run;
use super::evaluation::Evaluation;
use super::progress::Reporter;
use super::report::{EpochReport, FitReport};
use super::trainer_config::TrainerConfig;
use crate::error::Result;
use nnz_data::{DataSource, Position};
use nnz_step::model::Model;
use std::ops::ControlFlow;

/// A run whose steps are made elsewhere, between two steps.
pub(super) trait CoordinatedRun<M>: State {
    /// The model, whose parameters are all up to date: after an epoch.
    ///
    /// # Errors
    ///
    /// Failures to collect them.
    fn model(&mut self) -> Result<&mut M>;

    /// The model, whose parameters may be out of date.
    fn facts(&mut self) -> &M;
}

/// Receives the events of a run, and says when it ends.
pub(super) trait RunEvents<M> {
    /// Whether the run is to end.
    fn is_stopped(&self) -> bool;

    /// Whether [`batch`](Self::batch) is called after this number of batches of an epoch.
    fn is_due(&self, n_batches: u64) -> bool;

    /// Between two batches.
    fn batch(
        &mut self,
        run: &dyn State,
        position: Position,
        totals: &EpochTotals,
    ) -> Result<ControlFlow<()>>;

    /// After an epoch.
    fn epoch(
        &mut self,
        run: &mut dyn CoordinatedRun<M>,
        done: EpochOutcome,
    ) -> Result<ControlFlow<()>>;
}

/// The outcome of an epoch.
pub(super) struct EpochOutcome {
    pub(super) epoch: u64,
    pub(super) totals: EpochTotals,
    pub(super) learning_rate: f64,
    pub(super) seconds: f64,
}

/// A trainer as coordinator, without the type of its rule.
struct Coordinator<'t, 'a, E> {
    config: &'t mut TrainerConfig<'a>,
    evaluation: &'t E,
    reporter: Reporter,
    run_so_far: Run,
    is_stopped: bool,
}

impl TrainerConfig<'_> {
    /// Trains by `run`, which starts as `run_so_far` says and reports its events: epochs are
    /// evaluated and reported, and callbacks are called. `rule` is the name of the rule.
    pub(super) fn coordinate<M, E>(
        &mut self,
        evaluation: &E,
        rule: &'static str,
        run_so_far: Run,
        run: impl FnOnce(&mut dyn RunEvents<M>) -> Result<()>,
    ) -> Result<FitReport>
    where
        M: Model,
        E: Evaluation<M::Element>,
    {
        let span = tracing::info_span!("fit", model = M::NAME, rule);
        let _entered = span.enter();
        self.begin(0);
        let is_stopped = replay(&mut self.callbacks, &run_so_far);
        let (reporter, epochs) = (Reporter::new(self.progress), self.epochs);
        let mut coordinator =
            Coordinator { config: self, evaluation, reporter, run_so_far, is_stopped };
        run(&mut coordinator)?;
        let stopped = coordinator.is_stopped && coordinator.run_so_far.position.epoch < epochs;
        Ok(FitReport { epochs: coordinator.run_so_far.epochs, stopped, warnings: Vec::new() })
    }
}

impl<E> Coordinator<'_, '_, E> {
    /// Tells all callbacks that the run ends, if it ends here.
    fn flow(&mut self, ends: bool, run: &dyn State) -> Result<ControlFlow<()>> {
        if ends || self.is_stopped {
            let moment = Moment::new(&self.run_so_far, run);
            self.config.callbacks.iter_mut().try_for_each(|callback| callback.end(&moment))?;
        }
        Ok(if self.is_stopped { ControlFlow::Break(()) } else { ControlFlow::Continue(()) })
    }
}

impl<M: Model, E: Evaluation<M::Element>> RunEvents<M> for Coordinator<'_, '_, E> {
    fn is_stopped(&self) -> bool {
        self.is_stopped
    }

    fn is_due(&self, n_batches: u64) -> bool {
        self.config.callbacks.iter().any(|callback| is_due(&**callback, n_batches))
    }

    fn batch(
        &mut self,
        run: &dyn State,
        position: Position,
        totals: &EpochTotals,
    ) -> Result<ControlFlow<()>> {
        (self.run_so_far.position, self.run_so_far.totals) = (position, *totals);
        for callback in &mut self.config.callbacks {
            if is_due(&**callback, totals.n_batches) {
                let moment = Moment::new(&self.run_so_far, run);
                self.is_stopped |= callback.batch(&moment)?.is_break();
            }
        }
        self.flow(false, run)
    }

    fn epoch(
        &mut self,
        run: &mut dyn CoordinatedRun<M>,
        done: EpochOutcome,
    ) -> Result<ControlFlow<()>> {
        let rows_at_a_time = self.config.rows_at_a_time(run.facts(), E::Source::IN_SEQUENCE);
        let metrics = &self.config.metrics;
        let evaluation = if E::BY_TRAINER && self.evaluation.source().is_none() {
            None
        } else {
            self.evaluation.evaluate(run.model()?, metrics, rows_at_a_time)?
        };
        let epochs = self.config.epochs;
        let report = EpochReport {
            epoch: done.epoch,
            epochs,
            loss: done.totals.mean_loss(),
            metrics: Vec::new(),
            evaluation,
            learning_rate: done.learning_rate,
            n_rows: done.totals.n_rows,
            seconds: done.seconds,
        };
        tracing::info!(loss = report.loss, seconds = report.seconds, "trained");
        self.reporter.end_epoch(&report);
        self.run_so_far.position = Position { epoch: done.epoch + 1, batch: 0 };
        self.run_so_far.totals = EpochTotals::default();
        self.run_so_far.epochs.push(report);
        self.run_so_far.callbacks = states(&self.config.callbacks, done.epoch);
        let moment = Moment::new(&self.run_so_far, run);
        for callback in &mut self.config.callbacks {
            if let Some(report) = moment.epochs().last() {
                self.is_stopped |= callback.epoch(report, &moment)?.is_break();
            }
        }
        self.flow(done.epoch + 1 == epochs, run)
    }
}

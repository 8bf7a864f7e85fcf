//! The coordinator of a run whose steps are made elsewhere, by Hogwild threads or by workers: it
//! evaluates, reports and calls callbacks.

use super::EpochTotals;
use super::callback::{Moment, State, is_due, replay, states};
use super::checkpoint::Run;
use super::evaluation::Evaluation;
use super::plan::Plan;
use super::progress::Reporter;
use super::report::{EpochReport, FitReport};
use crate::error::Result;
use nnz_data::Position;
use nnz_step::model::Model;
use std::ops::ControlFlow;

/// A coordinated run, between two steps.
pub(super) trait Led<M>: State {
    /// The model, whose parameters are all up to date: after an epoch.
    fn model(&mut self) -> &mut M;
}

/// Receives the events of a run.
pub(super) trait Leader<M> {
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
    fn epoch(&mut self, run: &mut dyn Led<M>, done: Epoch) -> Result<ControlFlow<()>>;
}

/// The outcome of an epoch.
pub(super) struct Epoch {
    pub(super) epoch: u64,
    pub(super) totals: EpochTotals,
    pub(super) learning_rate: f64,
    pub(super) seconds: f64,
}

/// A trainer as coordinator, without the type of its rule.
struct Lead<'t, 'a, E> {
    plan: &'t mut Plan<'a>,
    evaluation: &'t E,
    reporter: Reporter,
    made: Run,
    is_stopped: bool,
}

impl Plan<'_> {
    /// Trains by `run`, which starts as `made` says and reports its events: epochs are evaluated
    /// and reported, and callbacks are called. `rule` is the name of the rule.
    pub(super) fn leading<M, E>(
        &mut self,
        evaluation: &E,
        rule: &'static str,
        made: Run,
        run: impl FnOnce(&mut dyn Leader<M>) -> Result<()>,
    ) -> Result<FitReport>
    where
        M: Model,
        E: Evaluation<M::Element>,
    {
        let span = tracing::info_span!("fit", model = M::NAME, rule);
        let _entered = span.enter();
        self.begin(0);
        let is_stopped = replay(&mut self.callbacks, &made);
        let (reporter, epochs) = (Reporter::new(self.progress), self.epochs);
        let mut lead = Lead { plan: self, evaluation, reporter, made, is_stopped };
        run(&mut lead)?;
        let stopped = lead.is_stopped && lead.made.position.epoch < epochs;
        Ok(FitReport { epochs: lead.made.epochs, stopped, warnings: Vec::new() })
    }
}

impl<E> Lead<'_, '_, E> {
    /// Tells all callbacks that the run ends, if it ends here.
    fn flow(&mut self, ends: bool, run: &dyn State) -> Result<ControlFlow<()>> {
        if ends || self.is_stopped {
            let moment = Moment::new(&self.made, run);
            self.plan.callbacks.iter_mut().try_for_each(|callback| callback.end(&moment))?;
        }
        Ok(if self.is_stopped { ControlFlow::Break(()) } else { ControlFlow::Continue(()) })
    }
}

impl<M: Model, E: Evaluation<M::Element>> Leader<M> for Lead<'_, '_, E> {
    fn is_stopped(&self) -> bool {
        self.is_stopped
    }

    fn is_due(&self, n_batches: u64) -> bool {
        self.plan.callbacks.iter().any(|callback| is_due(&**callback, n_batches))
    }

    fn batch(
        &mut self,
        run: &dyn State,
        position: Position,
        totals: &EpochTotals,
    ) -> Result<ControlFlow<()>> {
        (self.made.position, self.made.totals) = (position, *totals);
        for callback in &mut self.plan.callbacks {
            if is_due(&**callback, totals.n_batches) {
                let moment = Moment::new(&self.made, run);
                self.is_stopped |= callback.batch(&moment)?.is_break();
            }
        }
        self.flow(false, run)
    }

    fn epoch(&mut self, run: &mut dyn Led<M>, done: Epoch) -> Result<ControlFlow<()>> {
        let rows_at_a_time = self.plan.rows_at_a_time::<M, E::Source>(run.model());
        let metrics = &self.plan.metrics;
        let evaluation = self.evaluation.evaluate(run.model(), metrics, rows_at_a_time)?;
        let epochs = self.plan.epochs;
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
        self.made.position = Position { epoch: done.epoch + 1, batch: 0 };
        self.made.totals = EpochTotals::default();
        self.made.epochs.push(report);
        self.made.callbacks = states(&self.plan.callbacks, done.epoch);
        let moment = Moment::new(&self.made, run);
        for callback in &mut self.plan.callbacks {
            if let Some(report) = moment.epochs().last() {
                self.is_stopped |= callback.epoch(report, &moment)?.is_break();
            }
        }
        self.flow(done.epoch + 1 == epochs, run)
    }
}

//! Who evaluates, reports and tells callbacks of a run whose steps are made elsewhere: by threads that share a model, or by workers.

use super::callback::{Moment, State, is_due};
use super::checkpoint::Run;
use super::evaluation::Evaluation;
use super::progress::Reporter;
use super::report::{EpochReport, FitReport};
use super::{EpochTotals, Trainer};
use crate::data::Position;
use crate::error::Result;
use crate::model::Model;
use sparse_core::update_rules::UpdateRule;
use std::ops::ControlFlow;

/// A run that is led, between two steps.
pub(super) trait Led<M>: State {
    /// The model, where all parameters are up to date: after an epoch.
    fn model(&mut self) -> &mut M;
}

/// Who is told by the run.
pub(super) trait Leader<M> {
    /// Whether the run is to end.
    fn is_stopped(&self) -> bool;

    /// Whether [`batch`](Self::batch) is to be called after so many batches of an epoch.
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

/// What an epoch came to.
pub(super) struct Epoch {
    pub(super) epoch: u64,
    pub(super) totals: EpochTotals,
    pub(super) learning_rate: f64,
    pub(super) seconds: f64,
}

/// A trainer that leads.
struct Lead<'t, 'a, R: UpdateRule, E> {
    trainer: &'t mut Trainer<'a, R, E>,
    reporter: Reporter,
    made: Run,
    is_stopped: bool,
}

impl<R: UpdateRule, E> Trainer<'_, R, E> {
    /// Trains by `run`, which has begun as `made` says and tells the leader of what it does: epochs are evaluated and reported, and callbacks are
    /// told.
    pub(super) fn leading<M>(
        &mut self,
        made: Run,
        run: impl FnOnce(&mut dyn Leader<M>) -> Result<()>,
    ) -> Result<FitReport>
    where
        M: Model,
        E: Evaluation<M::Element>,
    {
        let span = tracing::info_span!("fit", model = M::NAME, rule = R::NAME);
        let _entered = span.enter();
        self.begin(0);
        let mut is_stopped = false;
        for report in &made.epochs {
            is_stopped = false;
            for callback in &mut self.callbacks {
                is_stopped |= callback.replay(report).is_break();
            }
        }
        let (reporter, epochs) = (Reporter::new(self.progress), self.epochs);
        let mut lead = Lead { trainer: self, reporter, made, is_stopped };
        run(&mut lead)?;
        let stopped = lead.is_stopped && lead.made.position.epoch < epochs;
        Ok(FitReport { epochs: lead.made.epochs, stopped })
    }
}

impl<R: UpdateRule, E> Lead<'_, '_, R, E> {
    /// Tells everybody of the end of the run, where it ends here.
    fn flow(&mut self, ends: bool, run: &dyn State) -> Result<ControlFlow<()>> {
        if ends || self.is_stopped {
            let moment = Moment::new(&self.made, run);
            self.trainer.callbacks.iter_mut().try_for_each(|callback| callback.end(&moment))?;
        }
        Ok(if self.is_stopped { ControlFlow::Break(()) } else { ControlFlow::Continue(()) })
    }
}

impl<M, R, E> Leader<M> for Lead<'_, '_, R, E>
where
    M: Model,
    R: UpdateRule,
    E: Evaluation<M::Element>,
{
    fn is_stopped(&self) -> bool {
        self.is_stopped
    }

    fn is_due(&self, n_batches: u64) -> bool {
        self.trainer.callbacks.iter().any(|callback| is_due(&**callback, n_batches))
    }

    fn batch(
        &mut self,
        run: &dyn State,
        position: Position,
        totals: &EpochTotals,
    ) -> Result<ControlFlow<()>> {
        (self.made.position, self.made.totals) = (position, *totals);
        for callback in &mut self.trainer.callbacks {
            if is_due(&**callback, totals.n_batches) {
                let moment = Moment::new(&self.made, run);
                self.is_stopped |= callback.batch(&moment)?.is_break();
            }
        }
        self.flow(false, run)
    }

    fn epoch(&mut self, run: &mut dyn Led<M>, done: Epoch) -> Result<ControlFlow<()>> {
        let rows_at_a_time = self.trainer.rows_at_a_time();
        let metrics = &self.trainer.metrics;
        let evaluation = self.trainer.evaluation.evaluate(run.model(), metrics, rows_at_a_time)?;
        let epochs = self.trainer.epochs;
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
        let moment = Moment::new(&self.made, run);
        for callback in &mut self.trainer.callbacks {
            if let Some(report) = moment.epochs().last() {
                self.is_stopped |= callback.epoch(report, &moment)?.is_break();
            }
        }
        self.flow(done.epoch + 1 == epochs, run)
    }
}

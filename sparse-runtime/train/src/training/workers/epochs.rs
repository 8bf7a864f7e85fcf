//! The epochs of one worker of a run.

use super::job::Job;
use super::session::Session;
use super::worker::{Goal, Worker};
use crate::error::Result;
use crate::store::Communicator;
use crate::training::TrainError;
use crate::training::blame::blame;
use crate::training::coordinator::{EpochOutcome, RunEvents};
use crate::training::epoch_totals::EpochTotals;
use crate::training::variance_reduction::mean_gradient_options;
use nnz_data::{Batch, Batches, DataSource, LastBatch, Position};
use nnz_optim::{UpdateRule, VarianceReduction};
use nnz_step::model::{BatchSource, Model};
use sparse_core::element::Float;
use std::ops::ControlFlow;
use std::time::Instant;

impl<R: UpdateRule, T: Float> Job<R, T> {
    /// A worker's part of the run. Worker 0 has a `coordinator`.
    pub(super) fn run<M, S, C>(
        &self,
        model: &mut M,
        data: &S,
        communicator: C,
        mut coordinator: Option<&mut dyn RunEvents<M>>,
    ) -> Result<()>
    where
        M: Model<Element = T>,
        S: DataSource<T>,
        C: Communicator,
    {
        let update_freq = match self.rule.variance_reduction() {
            None => None,
            Some(VarianceReduction::Snapshot { update_freq }) => Some(update_freq),
            Some(VarianceReduction::LastSeen) => {
                let why = "derivatives of samples are kept where they were computed; use `Svrg`";
                return Err(TrainError::NotOnWorkers { what: R::NAME, why }.into());
            }
        };
        if M::WRITES_STATES {
            let why = "its states follow from whole batches, of which a worker sees a part";
            return Err(TrainError::NotOnWorkers { what: M::NAME, why }.into());
        }
        model.set_parallel(self.parallel);
        let mut worker = Worker::new(self, model, communicator)?;
        let mut batches = data.batches(M::INPUTS, &self.options)?;
        let mut all_rows = match update_freq {
            Some(_) => Some(data.batches(M::INPUTS, &mean_gradient_options::<M>(&self.options))?),
            None => None,
        };
        // A callback that hears of the epochs before may have ended the run.
        let flow = match &coordinator {
            Some(coordinator) if coordinator.is_stopped() => ControlFlow::Break(()),
            _ => ControlFlow::Continue(()),
        };
        if agree(&mut worker, coordinator.is_some(), flow)?.is_break() {
            return Ok(());
        }
        let (mut start, mut totals) = (self.begun.position, self.begun.totals);
        let mut is_nothing_learnt = start == Position::default();
        while start.epoch < self.epochs {
            let (epoch, began) = (start.epoch, Instant::now());
            if start.batch == 0 {
                worker.set_learning_rate(self.learning_rate(worker.n_steps(), epoch))?;
                if let (Some(update_freq), Some(all_rows)) = (update_freq, &mut all_rows)
                    && epoch.is_multiple_of(update_freq)
                {
                    self.gather_mean(&mut worker, all_rows, epoch)?;
                }
            }
            batches.start_epoch(epoch)?;
            batches.seek(start)?;
            let goal = if update_freq.is_some() { Goal::CorrectedStep } else { Goal::Step };
            let first_batch = start.batch.wrapping_sub(totals.n_batches);
            let begin = Position { epoch, batch: first_batch };
            let first = (worker.n_steps() == 0).then_some(start);
            let flow =
                self.pass(&mut worker, &mut batches, goal, begin, &mut totals, &mut coordinator);
            // Every worker finds the same.
            let flow = flow.map_err(|error| blame(error, worker.model(), &mut batches, first))?;
            if flow.is_break() {
                return Ok(());
            }
            // Rows that roll over may fill no batch yet.
            if totals.n_rows == 0 && self.options.last_batch != LastBatch::RollOver {
                return Err(TrainError::NoRows.into());
            }
            is_nothing_learnt &= totals.n_rows == 0;
            if is_nothing_learnt && epoch + 1 == self.epochs {
                return Err(TrainError::NoRows.into());
            }
            worker.flush()?;
            let (learning_rate, seconds) = (worker.learning_rate(), began.elapsed().as_secs_f64());
            let flow = match &mut coordinator {
                Some(coordinator) => {
                    let mut session = Session::new(self, &mut worker, true);
                    let done = EpochOutcome { epoch, totals, learning_rate, seconds };
                    let flow = coordinator.epoch(&mut session, done)?;
                    session.end()?;
                    if flow.is_break() || epoch + 1 == self.epochs {
                        // The model has the result.
                        worker.collect()?;
                    }
                    flow
                }
                None => ControlFlow::Continue(()),
            };
            if agree(&mut worker, coordinator.is_some(), flow)?.is_break() {
                break;
            }
            start = Position { epoch: epoch + 1, batch: 0 };
            totals = EpochTotals::default();
        }
        Ok(())
    }

    /// Adds up the mean gradient at the present parameters.
    fn gather_mean<M, C, B>(
        &self,
        worker: &mut Worker<'_, M, C>,
        all_rows: &mut B,
        epoch: u64,
    ) -> Result<()>
    where
        M: Model<Element = T>,
        C: Communicator,
        B: Batches<T>,
    {
        all_rows.start_epoch(0)?;
        worker.begin_mean()?;
        let clock = worker.n_steps();
        let (mut totals, begin) = (EpochTotals::default(), Position { epoch, batch: 0 });
        // No callback looks, so it runs to its end.
        let _ = self.pass(worker, all_rows, Goal::Mean, begin, &mut totals, &mut None)?;
        worker.end_mean(clock, totals.n_rows)
    }

    /// Goes over the batches of an epoch, or the rest of it: `totals` count from batch `begin`.
    /// Callbacks that asked for a call after a batch get it.
    fn pass<M, C, B>(
        &self,
        worker: &mut Worker<'_, M, C>,
        batches: &mut B,
        goal: Goal,
        begin: Position,
        totals: &mut EpochTotals,
        coordinator: &mut Option<&mut dyn RunEvents<M>>,
    ) -> Result<ControlFlow<()>>
    where
        M: Model<Element = T>,
        C: Communicator,
        B: Batches<T>,
    {
        let epoch = begin.epoch;
        while let Some(batch) = batches.next_batch()? {
            if goal != Goal::Mean && self.schedule.changes_by_step() {
                worker.set_learning_rate(self.learning_rate(worker.n_steps(), epoch))?;
            }
            let next = totals.n_batches + 1;
            let pauses = coordinator.as_ref().is_some_and(|coordinator| coordinator.is_due(next));
            let done = worker.step(&batch, goal, epoch, totals.n_batches, pauses)?;
            totals.add(done.loss, batch.n_rows(), batch.n_padding());
            if !done.pauses {
                continue;
            }
            let flow = match coordinator {
                Some(coordinator) => {
                    let batch = begin.batch.wrapping_add(totals.n_batches);
                    let session = Session::new(self, &mut *worker, false);
                    let flow = coordinator.batch(&session, Position { epoch, batch }, totals)?;
                    session.end()?;
                    flow
                }
                None => ControlFlow::Continue(()),
            };
            if agree(worker, coordinator.is_some(), flow)?.is_break() {
                return Ok(ControlFlow::Break(()));
            }
        }
        Ok(ControlFlow::Continue(()))
    }

    fn learning_rate(&self, n_steps: u64, epoch: u64) -> f64 {
        self.rule.learning_rate() * self.schedule.factor(n_steps, epoch)
    }
}

/// Whether all continue, which worker 0 decides.
fn agree<M: Model, C: Communicator>(
    worker: &mut Worker<'_, M, C>,
    leads: bool,
    flow: ControlFlow<()>,
) -> Result<ControlFlow<()>> {
    if leads { worker.say(flow.into()).map(|()| flow) } else { worker.listen() }
}

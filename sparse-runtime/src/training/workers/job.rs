//! A run, as every worker of it knows it.

use super::super::epoch::EpochTotals;
use super::super::reduced::gathering_options;
use super::worker::{Goal, Worker};
use crate::data::{Batch, BatchOptions, Batches, DataSource, LastBatch};
use crate::error::Result;
use crate::kernels::Parallel;
use crate::model::{BatchSource, Model};
use crate::optimizer::ParameterSpec;
use crate::schedule::Schedule;
use crate::store::Communicator;
use crate::training::TrainError;
use sparse_core::update_rules::{UpdateRule, VarianceReduction};
use std::ops::ControlFlow;
use std::time::Instant;

/// What every worker does.
pub(super) struct Job<R> {
    pub(super) rule: R,
    pub(super) specs: Vec<ParameterSpec>,
    pub(super) options: BatchOptions,
    /// What the norm of the gradients of each step, of all parameters together, is clipped to.
    pub(super) clip_norm: Option<f64>,
    pub(super) schedule: Schedule,
    pub(super) epochs: u64,
    pub(super) leaves: usize,
    pub(super) parallel: Parallel,
}

/// What an epoch came to.
pub(in crate::training) struct Epoch {
    pub(in crate::training) epoch: u64,
    pub(in crate::training) totals: EpochTotals,
    pub(in crate::training) n_steps: u64,
    pub(in crate::training) learning_rate: f64,
    pub(in crate::training) seconds: f64,
}

/// What is done after an epoch, with all parameters: by worker 0, where there are several.
pub(in crate::training) type AfterEpoch<'a, M> =
    &'a mut dyn FnMut(&mut M, Epoch) -> Result<ControlFlow<()>>;

impl<R: UpdateRule> Job<R> {
    /// A worker's part of the run. `lead` is there at worker 0.
    pub(super) fn run<M, S, C>(
        &self,
        model: &mut M,
        data: &S,
        communicator: C,
        mut lead: Option<AfterEpoch<'_, M>>,
    ) -> Result<()>
    where
        M: Model,
        S: DataSource<M::Element>,
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
            Some(_) => Some(data.batches(M::INPUTS, &gathering_options(&self.options))?),
            None => None,
        };
        for epoch in 0..self.epochs {
            let began = Instant::now();
            worker.set_learning_rate(self.learning_rate(worker.n_steps(), epoch))?;
            if let (Some(update_freq), Some(all_rows)) = (update_freq, &mut all_rows)
                && epoch.is_multiple_of(update_freq)
            {
                all_rows.start_epoch(0)?;
                worker.begin_mean()?;
                let clock = worker.n_steps();
                let totals = self.pass(&mut worker, all_rows, epoch, Goal::Mean)?;
                worker.end_mean(clock, totals.n_rows)?;
            }
            batches.start_epoch(epoch)?;
            let goal = if update_freq.is_some() { Goal::CorrectedStep } else { Goal::Step };
            let totals = self.pass(&mut worker, &mut batches, epoch, goal)?;
            // Rows that roll over may fill no batch yet.
            if totals.n_rows == 0 && self.options.last_batch != LastBatch::RollOver {
                return Err(TrainError::NoRows.into());
            }
            worker.flush()?;
            let done = Epoch {
                epoch,
                totals,
                n_steps: worker.n_steps(),
                learning_rate: worker.learning_rate(),
                seconds: began.elapsed().as_secs_f64(),
            };
            worker.pull_all(lead.is_some())?;
            let flow = match &mut lead {
                Some(after_epoch) => after_epoch(worker.model(), done)?,
                None => ControlFlow::Continue(()),
            };
            if worker.any_breaks(flow)? {
                break;
            }
        }
        Ok(())
    }

    /// Goes over the batches of an epoch.
    fn pass<M: Model, C: Communicator, B: Batches<M::Element>>(
        &self,
        worker: &mut Worker<'_, M, C>,
        batches: &mut B,
        epoch: u64,
        goal: Goal,
    ) -> Result<EpochTotals> {
        let mut totals = EpochTotals::default();
        while let Some(batch) = batches.next_batch()? {
            if goal != Goal::Mean && self.schedule.changes_by_step() {
                worker.set_learning_rate(self.learning_rate(worker.n_steps(), epoch))?;
            }
            let loss = worker.step(&batch, goal, epoch, totals.n_batches)?;
            totals.add(loss, batch.n_rows(), batch.n_padding());
        }
        Ok(totals)
    }

    fn learning_rate(&self, n_steps: u64, epoch: u64) -> f64 {
        self.rule.learning_rate() * self.schedule.factor(n_steps, epoch)
    }
}

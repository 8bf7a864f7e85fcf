//! One worker: rows pulled, gradients of its leaves, pushes.

use super::job::Job;
use crate::data::{Batch, Part};
use crate::error::Result;
use crate::formats::RowIdsView;
use crate::model::{Model, RowIds};
use crate::store::{Communicator, KvStore, LeafSum};
use crate::training::TrainError;
use sparse_core::update_rules::UpdateRule;
use std::ops::{ControlFlow, Range};

/// What becomes of the gradient of a batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Goal {
    /// A step.
    Step,
    /// A step of the gradient less that at the snapshot.
    CorrectedStep,
    /// It is part of the mean gradient.
    Mean,
}

/// One worker of a run.
pub(super) struct Worker<'m, M: Model, C> {
    /// A model whose tables are up to date where the part of the present batch reads them.
    model: &'m mut M,
    /// The same of the snapshot.
    snapshot: Option<M>,
    store: KvStore<M::Element, C>,
    sums: Vec<LeafSum<M::Element>>,
    clip_norm: Option<f64>,
    rows: RowIds,
    /// Of this worker's leaves, times their rows.
    losses: Vec<f64>,
    all_losses: Vec<f64>,
}

fn no_rows<'r>() -> RowIdsView<'r> {
    let none: &[u64] = &[];
    RowIdsView::Listed(none)
}

/// The parameters that are trained, by position and name.
fn trained<M: Model>() -> impl Iterator<Item = (usize, &'static str)> {
    let parameters = M::PARAMETERS.iter().enumerate();
    parameters.filter(|(_, info)| info.gradient.is_some()).map(|(index, info)| (index, info.name))
}

impl<'m, M: Model, C: Communicator> Worker<'m, M, C> {
    /// A worker of a store that has the parameters of the model.
    pub(super) fn new<R: UpdateRule>(
        job: &Job<R>,
        model: &'m mut M,
        communicator: C,
    ) -> Result<Self> {
        let mut store = KvStore::new(communicator, job.leaves)?;
        for (parameter, spec) in model.parameters().into_iter().zip(&job.specs) {
            if spec.gradient.is_some() {
                store.init(spec.clone(), parameter.values())?;
            }
        }
        store.set_optimizer(job.rule.clone())?;
        let sums = vec![LeafSum::new(); M::PARAMETERS.len()];
        let (rows, losses, all_losses) = (RowIds::new(), Vec::new(), Vec::new());
        let clip_norm = job.clip_norm;
        Ok(Worker { model, snapshot: None, store, sums, clip_norm, rows, losses, all_losses })
    }

    pub(super) fn model(&mut self) -> &mut M {
        self.model
    }

    pub(super) fn n_steps(&self) -> u64 {
        self.store.n_steps()
    }

    pub(super) fn learning_rate(&self) -> f64 {
        self.store.learning_rate().unwrap_or(f64::NAN)
    }

    pub(super) fn set_learning_rate(&mut self, learning_rate: f64) -> Result<()> {
        self.store.set_learning_rate(learning_rate)
    }

    pub(super) fn flush(&mut self) -> Result<()> {
        self.store.flush()
    }

    pub(super) fn begin_mean(&mut self) -> Result<()> {
        if self.snapshot.is_none() {
            self.snapshot = Some(self.model.clone());
        }
        self.store.begin_mean()
    }

    pub(super) fn end_mean(&mut self, clock: u64, n_rows: u64) -> Result<()> {
        self.store.end_mean(clock, n_rows)
    }

    /// Takes part in pulls of all parameters, which this worker gets where it wants them.
    pub(super) fn pull_all(&mut self, is_wanted: bool) -> Result<()> {
        let rows = if is_wanted { RowIdsView::All } else { no_rows() };
        let mut parameters = self.model.parameters_mut();
        for (index, name) in trained::<M>() {
            self.store.pull_rows(name, rows, parameters[index].table.values_mut())?;
        }
        Ok(())
    }

    /// Whether worker 0 ends the run.
    pub(super) fn any_breaks(&mut self, flow: ControlFlow<()>) -> Result<bool> {
        let breaks = if flow.is_break() { 1.0 } else { 0.0 };
        self.store.gather(&[breaks], &mut self.all_losses)?;
        Ok(self.all_losses.contains(&1.0))
    }

    /// Takes part in what all workers make of a batch; returns its mean loss.
    pub(super) fn step<'b, B: Batch<'b, M::Element>>(
        &mut self,
        batch: &B,
        goal: Goal,
        epoch: u64,
        n_batches: u64,
    ) -> Result<f64> {
        let n_rows = batch.n_rows();
        let (leaves, own) = (self.store.leaves(), self.store.own_leaves());
        let first = leaves.rows_of(own.start, n_rows).start;
        self.pull(batch, first..leaves.rows_of(own.end, n_rows).start, goal)?;
        self.losses.clear();
        for leaf in own {
            let rows = leaves.rows_of(leaf, n_rows);
            if !rows.is_empty() {
                self.add_leaf(batch, leaf, rows, n_rows, goal)?;
            }
        }
        self.store.gather(&self.losses, &mut self.all_losses)?;
        let loss = self.all_losses.iter().sum::<f64>() / n_rows as f64;
        if !loss.is_finite() {
            let learning_rate = self.learning_rate();
            return Err(
                TrainError::Diverged { epoch, batch: n_batches, loss, learning_rate }.into()
            );
        }
        if let (Goal::Step, Some(max_norm)) = (goal, self.clip_norm) {
            let sums = self.sums.iter_mut().zip(M::PARAMETERS);
            let mut sums = Vec::from_iter(
                sums.filter(|(_, info)| info.gradient.is_some())
                    .map(|(sum, info)| (info.name, sum)),
            );
            self.store.push_clipped(&mut sums, max_norm)?;
            return Ok(loss);
        }
        for (index, name) in trained::<M>() {
            let sum = &mut self.sums[index];
            match goal {
                Goal::Step | Goal::CorrectedStep => self.store.push(name, sum)?,
                // Shares of leaves are those of a mean over the batch, and the whole is a sum over all rows.
                Goal::Mean => self.store.push_to_mean(name, sum, n_rows as f64)?,
            }
        }
        Ok(loss)
    }

    /// Pulls what some rows of a batch read of each parameter.
    fn pull<'b, B: Batch<'b, M::Element>>(
        &mut self,
        batch: &B,
        rows: Range<usize>,
        goal: Goal,
    ) -> Result<()> {
        let is_empty = rows.is_empty();
        let bound = self.model.bind(&Part::new(batch, rows))?;
        for (index, name) in trained::<M>() {
            let ids = match is_empty {
                true => no_rows(),
                false => self.model.rows_read(&bound, index, &mut self.rows)?,
            };
            let mut parameters = self.model.parameters_mut();
            self.store.pull_rows(name, ids, parameters[index].table.values_mut())?;
            if let (Goal::CorrectedStep, Some(snapshot)) = (goal, &mut self.snapshot) {
                let mut parameters = snapshot.parameters_mut();
                self.store.pull_snapshot_rows(name, ids, parameters[index].table.values_mut())?;
            }
        }
        Ok(())
    }

    /// Adds the gradients of one leaf to the sums.
    fn add_leaf<'b, B: Batch<'b, M::Element>>(
        &mut self,
        batch: &B,
        leaf: usize,
        rows: Range<usize>,
        n_rows: usize,
        goal: Goal,
    ) -> Result<()> {
        let n_own = rows.len() as f64;
        let bound = self.model.bind(&Part::new(batch, rows))?;
        self.losses.push(self.model.loss_and_grads(&bound)? * n_own);
        let mut snapshot = self.snapshot.as_mut().filter(|_| goal == Goal::CorrectedStep);
        if let Some(snapshot) = &mut snapshot {
            snapshot.loss_and_grads(&bound)?;
        }
        for (index, _) in trained::<M>() {
            let Some(mut gradient) = self.model.gradient_mut(index) else { continue };
            if let Some(old) = snapshot.as_mut().and_then(|snapshot| snapshot.gradient_mut(index)) {
                gradient.subtract(old)?;
            }
            self.sums[index].add(leaf, gradient.view(), n_own / n_rows as f64)?;
        }
        Ok(())
    }
}

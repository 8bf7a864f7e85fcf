//! One worker: pulls table rows, computes gradients of its leaves, pushes.

use super::job::Job;
use crate::error::Result;
use crate::store::{Communicator, KvStore, LeafSum, StoreError, Waiting};
use crate::training::TrainError;
use nnz_arrays::formats::RowIdsView;
use nnz_arrays::parameter_memory::Table;
use nnz_data::{Batch, Part};
use nnz_optim::UpdateRule;
use nnz_step::model::{Model, RowIds, gradient};
use nnz_step::optimizer::Updater;
use std::ops::{ControlFlow, Range};

/// The use of the gradient of a batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Goal {
    /// A step.
    Step,
    /// A step by the gradient less that at the snapshot.
    CorrectedStep,
    /// A part of the mean gradient.
    Mean,
}

/// A message of worker 0 between two steps, while the others wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Word {
    GoOn = 0,
    Stop = 1,
    /// All workers send their state.
    Gather = 2,
}

impl From<ControlFlow<()>> for Word {
    fn from(flow: ControlFlow<()>) -> Self {
        if flow.is_break() { Word::Stop } else { Word::GoOn }
    }
}

/// The outcome of a batch.
pub(super) struct Done {
    /// Its mean loss, without padding.
    pub(super) loss: f64,
    /// Whether worker 0 pauses now.
    pub(super) pauses: bool,
}

/// One worker of a run.
pub(super) struct Worker<'m, M: Model, C> {
    /// A model whose tables are up to date in the rows that its part of the present batch reads.
    model: &'m mut M,
    /// The same for the snapshot.
    snapshot: Option<M>,
    store: KvStore<M::Element, C>,
    sums: Vec<LeafSum<M::Element>>,
    clip_norm: Option<f64>,
    rows: RowIds,
    /// The losses of this worker's leaves, times their samples without padding; at worker 0 its
    /// message comes first.
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
        job: &Job<R, M::Element>,
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
        for (state, spec) in job.tables.iter().zip(&job.specs) {
            if let Some(state) = state {
                store.restore_table(&spec.name, state)?;
            }
        }
        let sums = vec![LeafSum::new(); M::PARAMETERS.len()];
        let (rows, losses, all_losses) = (RowIds::new(), Vec::new(), Vec::new());
        let clip_norm = job.clip_norm;
        let has_snapshot = job.tables.iter().flatten().any(|state| !state.kept.is_empty());
        // Its rows are pulled before they are read.
        let snapshot = has_snapshot.then(|| model.clone());
        Ok(Worker { model, snapshot, store, sums, clip_norm, rows, losses, all_losses })
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

    /// Takes part in pulls of all parameters; this worker gets them where it asks for them.
    pub(super) fn pull_all(&mut self, is_wanted: bool) -> Result<()> {
        let rows = if is_wanted { RowIdsView::All } else { no_rows() };
        let mut parameters = self.model.parameters_mut();
        for (index, name) in trained::<M>() {
            self.store.pull_rows(name, rows, parameters[index].table.values_mut())?;
        }
        Ok(())
    }

    /// Sends a message to the others, as worker 0.
    pub(super) fn say(&mut self, word: Word) -> Result<()> {
        self.store.gather(&[f64::from(word as u8)], &mut self.all_losses)?;
        if word != Word::Gather {
            // Steps follow.
            self.store.set_waiting(Waiting::Step);
        }
        Ok(())
    }

    /// Follows the messages of worker 0 until it says whether to continue. It may be long in
    /// between: it evaluates, saves and calls callbacks.
    pub(super) fn listen(&mut self) -> Result<ControlFlow<()>> {
        self.store.set_waiting(Waiting::Pause);
        let flow = self.follow();
        self.store.set_waiting(Waiting::Step);
        flow
    }

    fn follow(&mut self) -> Result<ControlFlow<()>> {
        loop {
            self.store.gather(&[], &mut self.all_losses)?;
            let word = self.all_losses.first().copied();
            let is = |known: Word| word == Some(f64::from(known as u8));
            if is(Word::GoOn) {
                return Ok(ControlFlow::Continue(()));
            } else if is(Word::Stop) {
                return Ok(ControlFlow::Break(()));
            } else if is(Word::Gather) {
                self.store.gather_tables()?;
            } else {
                return Err(StoreError::OutOfStep { rank: 0, here: self.store.rank() }.into());
            }
        }
    }

    /// Collects the state of all workers, as worker 0. Returns the updater that one process would
    /// have, and puts the weights into the model as they are; table rows may miss steps. O(values).
    pub(super) fn gather<R: UpdateRule>(
        &mut self,
        job: &Job<R, M::Element>,
    ) -> Result<Updater<R, M::Element>> {
        self.say(Word::Gather)?;
        let mut gathered = self.store.gather_tables()?.into_iter();
        let states = job.specs.iter().map(|spec| spec.gradient.and_then(|_| gathered.next()));
        let states = Vec::from_iter(states);
        let mut updater = Updater::new(job.rule.clone(), job.specs.clone())?;
        let mut parameters = self.model.parameters_mut();
        updater.restore_tables(
            parameters.iter_mut().map(|parameter| &mut *parameter.table),
            &states,
        )?;
        if states.iter().flatten().any(|state| !state.kept.is_empty()) {
            let kept = parameters.iter().zip(&states).map(|(parameter, state)| {
                let values = state.as_ref().map_or(parameter.table.values(), |state| &state.kept);
                Table::from_values(parameter.table.row_size(), values)
            });
            updater.keep_snapshot(kept.collect());
        }
        Ok(updater)
    }

    /// Takes part in adding up a batch. Worker 0 says whether all pause after it.
    pub(super) fn step<'b, B: Batch<'b, M::Element>>(
        &mut self,
        batch: &B,
        goal: Goal,
        epoch: u64,
        n_batches: u64,
        pauses: bool,
    ) -> Result<Done> {
        let n_rows = batch.n_rows();
        let n_real = n_rows - batch.n_padding().min(n_rows);
        let (leaves, own) = (self.store.leaves(), self.store.own_leaves());
        let own = leaves.rows_of(own.start, n_rows).start..leaves.rows_of(own.end, n_rows).start;
        self.pull(batch, own.clone(), goal)?;
        self.losses.clear();
        if self.store.rank() == 0 {
            self.losses.push(f64::from(u8::from(pauses)));
        }
        // Leaves without a row are passed over, be they millions.
        let mut next = own.start;
        while next < own.end {
            let leaf = leaves.of_row(next, n_rows);
            let rows = leaves.rows_of(leaf, n_rows);
            next = rows.end;
            self.add_leaf(batch, leaf, rows, n_rows, goal)?;
        }
        self.store.gather(&self.losses, &mut self.all_losses)?;
        let (pauses, losses) = match self.all_losses.split_first() {
            Some((pauses, losses)) => (*pauses != 0.0, losses),
            None => (false, &[][..]),
        };
        let done = Done { loss: losses.iter().sum::<f64>() / n_real as f64, pauses };
        let loss = done.loss;
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
            return Ok(done);
        }
        for (index, name) in trained::<M>() {
            let sum = &mut self.sums[index];
            match goal {
                Goal::Step | Goal::CorrectedStep => self.store.push(name, sum)?,
                // Shares of leaves are those of a mean over the batch, and the whole is a sum over
                // all rows.
                Goal::Mean => self.store.push_to_mean(name, sum, n_rows as f64)?,
            }
        }
        Ok(done)
    }

    /// Pulls the table rows of each parameter that some samples of a batch read.
    fn pull<'b, B: Batch<'b, M::Element>>(
        &mut self,
        batch: &B,
        rows: Range<usize>,
        goal: Goal,
    ) -> Result<()> {
        let is_empty = rows.is_empty();
        let bound = self.model.bind(&Part::new(batch, rows))?;
        for (index, name) in trained::<M>() {
            let ids = if is_empty {
                no_rows()
            } else {
                self.model.rows_read(&bound, index, &mut self.rows)?
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
        // Those that are not padding.
        let real = rows.start..rows.end.min(n_rows - batch.n_padding().min(n_rows)).max(rows.start);
        let real_sum = match real.len() {
            n_real if n_real == rows.len() => None,
            0 => Some(0.0),
            n_real => {
                let bound = self.model.bind(&Part::new(batch, real))?;
                Some(self.model.loss(&bound)? * n_real as f64)
            }
        };
        let bound = self.model.bind(&Part::new(batch, rows))?;
        let sum = self.model.loss_and_grads(&bound)? * n_own;
        // A loss that is not finite is not to be overlooked, be it of padding.
        self.losses.push(real_sum.filter(|_| sum.is_finite()).unwrap_or(sum));
        let mut snapshot = self.snapshot.as_mut().filter(|_| goal == Goal::CorrectedStep);
        if let Some(snapshot) = &mut snapshot {
            snapshot.loss_and_grads(&bound)?;
        }
        for (index, _) in trained::<M>() {
            let Some(mut gradient) = gradient::trained(&mut *self.model, index)? else { continue };
            if let Some(snapshot) = &mut snapshot
                && let Some(old) = gradient::trained(&mut **snapshot, index)?
            {
                gradient.subtract(old)?;
            }
            self.sums[index].add(leaf, gradient.view(), n_own / n_rows as f64)?;
        }
        Ok(())
    }
}

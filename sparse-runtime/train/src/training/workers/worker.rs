//! One worker: pulls table rows, computes gradients of its leaves, pushes.

use super::compact_step::CompactStep;
use super::job::Job;
use crate::error::Result;
use crate::store::{Communicator, KvStore, LeafSum, StoreError, Waiting};
use crate::training::TrainError;
use nnz_arrays::formats::RowIdsView;
use nnz_arrays::parameter_memory::Table;
use nnz_data::{Batch, Part};
use nnz_optim::{Correction, UpdateRule};
use nnz_step::model::{BatchSource, GradientMut, Model, RowIds, gradient};
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
    /// All workers send the values of their rows.
    Collect = 3,
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
    /// The model of the run. Without a compact one its tables are up to date in the rows that its
    /// part of the present batch reads.
    pub(super) model: &'m mut M,
    /// The same for the snapshot.
    snapshot: Option<M>,
    /// The model of one step, for models that allow it, and the keys of the store.
    pub(super) compact: Option<CompactStep<M>>,
    pub(super) store: KvStore<M::Element, C>,
    sums: Vec<LeafSum<M::Element>>,
    pub(super) clip_norm: Option<f64>,
    rows: RowIds,
    /// Whether the model has the values after the last step.
    is_collected: bool,
    /// The losses of this worker's leaves, times their samples without padding; at worker 0 its
    /// message comes first.
    pub(super) losses: Vec<f64>,
    pub(super) all_losses: Vec<f64>,
}

fn no_rows<'r>() -> RowIdsView<'r> {
    let none: &[u64] = &[];
    RowIdsView::Listed(none)
}

/// The parameters that are trained, by position and name.
pub(super) fn trained<M: Model>() -> impl Iterator<Item = (usize, &'static str)> {
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
        let compact = Self::compact(job, model, &store)?;
        let mut worker = Worker {
            model,
            snapshot: None,
            compact,
            store,
            sums,
            clip_norm,
            rows,
            is_collected: false,
            losses,
            all_losses,
        };
        if has_snapshot {
            worker.make_snapshot();
        }
        Ok(worker)
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
        self.make_snapshot();
        self.store.begin_mean()
    }

    /// A model for rows of the snapshot, which are pulled before they are read.
    fn make_snapshot(&mut self) {
        match &mut self.compact {
            Some((compact, _)) => {
                compact.snapshot.get_or_insert_with(|| compact.model.clone());
            }
            None => {
                self.snapshot.get_or_insert_with(|| self.model.clone());
            }
        }
    }

    pub(super) fn end_mean(&mut self, clock: u64, n_rows: u64) -> Result<()> {
        self.store.end_mean(clock, n_rows)
    }

    /// Collects all parameters, as worker 0, unless they were since the last step. O(values).
    pub(super) fn collect(&mut self) -> Result<()> {
        if !self.is_collected {
            self.say(Word::Collect)?;
            self.pull_all(true)?;
            self.is_collected = true;
        }
        Ok(())
    }

    /// Takes part in pulls of all parameters; this worker gets them where it asks for them.
    fn pull_all(&mut self, is_wanted: bool) -> Result<()> {
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
        if matches!(word, Word::GoOn | Word::Stop) {
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
            } else if is(Word::Collect) {
                self.pull_all(false)?;
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
        self.is_collected = false;
        self.losses.clear();
        if self.store.rank() == 0 {
            self.losses.push(f64::from(u8::from(pauses)));
        }
        if self.compact.is_some() {
            self.add_compact(batch, goal)?;
        } else {
            self.add_whole(batch, goal)?;
            self.store.gather(&self.losses, &mut self.all_losses)?;
        }
        let n_real = n_rows - batch.n_padding().min(n_rows);
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
        let correction = match goal {
            Goal::Step | Goal::CorrectedStep => Correction::Apply { share: 0.0 },
            // Shares of leaves are those of a mean over the batch, and the whole is a sum over all
            // rows.
            Goal::Mean => Correction::Gather { share: n_rows as f64 },
        };
        let max_norm = self.clip_norm.filter(|_| goal == Goal::Step);
        match &self.compact {
            Some((_, keys)) => self.store.apply_step(keys, correction, max_norm)?,
            None => self.push_whole(goal, n_rows, max_norm)?,
        }
        Ok(done)
    }

    /// The samples of this worker's leaves, of a batch with so many.
    pub(super) fn own_rows(&self, n_rows: usize) -> Range<usize> {
        let (leaves, own) = (self.store.leaves(), self.store.own_leaves());
        leaves.rows_of(own.start, n_rows).start..leaves.rows_of(own.end, n_rows).start
    }

    /// Computes the gradients of this worker's leaves with whole tables.
    fn add_whole<'b, B: Batch<'b, M::Element>>(&mut self, batch: &B, goal: Goal) -> Result<()> {
        let (n_rows, leaves) = (batch.n_rows(), self.store.leaves());
        let own = self.own_rows(n_rows);
        self.pull(batch, own.clone(), goal)?;
        // Leaves without a row are passed over, be they millions.
        let mut next = own.start;
        while next < own.end {
            let leaf = leaves.of_row(next, n_rows);
            let rows = leaves.rows_of(leaf, n_rows);
            next = rows.end;
            self.add_leaf(batch, leaf, rows, n_rows, goal)?;
        }
        Ok(())
    }

    /// Pushes the gradients that [`add_whole`](Self::add_whole) has added, key by key.
    fn push_whole(&mut self, goal: Goal, n_rows: usize, max_norm: Option<f64>) -> Result<()> {
        if let Some(max_norm) = max_norm {
            let sums = self.sums.iter_mut().zip(M::PARAMETERS);
            let mut sums = Vec::from_iter(
                sums.filter(|(_, info)| info.gradient.is_some())
                    .map(|(sum, info)| (info.name, sum)),
            );
            return self.store.push_clipped(&mut sums, max_norm);
        }
        for (index, name) in trained::<M>() {
            let sum = &mut self.sums[index];
            match goal {
                Goal::Step | Goal::CorrectedStep => self.store.push(name, sum)?,
                Goal::Mean => self.store.push_to_mean(name, sum, n_rows as f64)?,
            }
        }
        Ok(())
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
        let share = rows.len() as f64 / n_rows as f64;
        let real = rows.start..rows.end.min(n_rows - batch.n_padding().min(n_rows)).max(rows.start);
        let snapshot = self.snapshot.as_mut().filter(|_| goal == Goal::CorrectedStep);
        let mut snapshot = snapshot;
        let loss = gradients(self.model, snapshot.as_deref_mut(), batch, rows, real)?;
        self.losses.push(loss);
        for (index, _) in trained::<M>() {
            let snapshot = snapshot.as_deref_mut();
            let Some(gradient) = gradient_of(&mut *self.model, snapshot, index)? else { continue };
            self.sums[index].add(leaf, gradient.view(), share)?;
        }
        Ok(())
    }
}

/// Computes the gradients of some samples of a batch, of which those of `real` are not padding: at
/// the parameters of a model, and at those of a snapshot if there is one. Returns the sum of the
/// losses without padding.
pub(super) fn gradients<'b, M: Model, S: BatchSource<'b, M::Element>>(
    model: &mut M,
    snapshot: Option<&mut M>,
    batch: &S,
    rows: Range<usize>,
    real: Range<usize>,
) -> Result<f64> {
    let n_own = rows.len() as f64;
    let real_sum = match real.len() {
        n_real if n_real == rows.len() => None,
        0 => Some(0.0),
        n_real => {
            let bound = model.bind(&Part::new(batch, real))?;
            Some(model.loss(&bound)? * n_real as f64)
        }
    };
    let bound = model.bind(&Part::new(batch, rows))?;
    let sum = model.loss_and_grads(&bound)? * n_own;
    if let Some(snapshot) = snapshot {
        snapshot.loss_and_grads(&bound)?;
    }
    // A loss that is not finite is not to be overlooked, be it of padding.
    Ok(real_sum.filter(|_| sum.is_finite()).unwrap_or(sum))
}

/// The gradient of a parameter by [`gradients`], less that at the snapshot.
pub(super) fn gradient_of<'m, M: Model>(
    model: &'m mut M,
    snapshot: Option<&mut M>,
    index: usize,
) -> Result<Option<GradientMut<'m, M::Element>>> {
    let Some(mut gradient) = gradient::trained(model, index)? else { return Ok(None) };
    if let Some(snapshot) = snapshot
        && let Some(old) = gradient::trained(snapshot, index)?
    {
        gradient.subtract(old)?;
    }
    Ok(Some(gradient))
}

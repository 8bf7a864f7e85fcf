//! Hogwild: threads that train one model at once, without locks.

use super::batch_loop::diverged;
use super::blame::blame;
use super::callback::{State, check_finite, parameter_reports};
use super::checkpoint::{self, Attachments, CheckpointError};
use super::coordinator::{CoordinatedRun, EpochOutcome, RunEvents};
use super::epoch_totals::EpochTotals;
use super::evaluation::EvaluatedOn;
use super::pauses::STEPS_PER_CALL;
use super::report::FitReport;
use super::workers::{message_of, not_started};
use super::{ParameterReport, TrainError, Trainer};
use crate::error::Result;
use crate::schedule::Schedule;
use crate::store::StoreError;
use nnz_arrays::kernels::TooManyThreads;
use nnz_arrays::parameter_memory::Table;
use nnz_data::{BatchOptions, Batches, DataSource, Position};
use nnz_optim::{LazyUpdate, Racing, UpdateRule};
use nnz_step::model::{BatchSource, Model, ModelError};
use nnz_step::optimizer::{
    HotRows, OwnTable, ParameterSpec, Racer, Shared, Updater, why_not_racing,
};
use sparse_core::storage::Storage;
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Instant;

/// How [`Trainer::fit_hogwild`] divides the samples of an epoch among threads, and which table rows
/// each thread copies.
///
/// ```
/// use nnz::training::Hogwild;
/// let on_two_threads = Hogwild::threads(2).hot_rows(1024).merge_every(64);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Hogwild {
    threads: usize,
    hot_rows: usize,
    merge_every: usize,
}

impl Hogwild {
    /// This number of threads, from 1 to [`MAX_THREADS`](nnz_arrays::kernels::MAX_THREADS), which
    /// share every row of the parameters with row_sparse gradients.
    pub fn threads(threads: usize) -> Self {
        Hogwild { threads, hot_rows: 0, merge_every: 64 }
    }

    /// The number of hot rows of each table that each thread copies: those that the first samples
    /// name most often; 0 by default. Where ids follow a power law, most steps update the same few
    /// rows, which otherwise go from cache to cache. `hot_rows(4096).merge_every(256)` is then a
    /// good start. A power of two uses the map best: of rows with the same place in it, the most
    /// frequent one is copied. Training refuses more than 2²⁴.
    #[must_use]
    pub fn hot_rows(mut self, hot_rows: usize) -> Self {
        self.hot_rows = hot_rows;
        self
    }

    /// The number of samples after which a thread adds its changes to copies (hot rows, and
    /// parameters with dense gradients) to those of the others; 64 by default. A larger number
    /// costs less time and more loss: threads learn from older copies.
    #[must_use]
    pub fn merge_every(mut self, rows: usize) -> Self {
        self.merge_every = rows;
        self
    }
}

impl<R: UpdateRule, E> Trainer<'_, R, E> {
    /// Trains a model on several threads that make steps of single samples on shared weights
    /// without locks (Hogwild), from its present parameters and with fresh optimizer state.
    ///
    /// **The result differs from run to run**: a step may read weights that another thread is about
    /// to change, and of two additions to one weight at once one may be lost in part.
    ///
    /// - The model has parameters with row_sparse gradients, and its step is one loop over the
    ///   samples, as [`PLAN`](Model) says.
    /// - The rule leaves untouched table rows alone: SGD without momentum and penalties, AdaGrad;
    ///   others with [`LazyUpdate::Touched`].
    /// - Each thread has copies of parameters with dense gradients, whose states are its own, and
    ///   of [hot rows](Hogwild::hot_rows).
    ///
    /// A [schedule](Trainer::schedule) by step counts the steps of a thread times the number of
    /// threads. Its rate is set before each step, which takes longer than steps at one rate.
    ///
    /// The gain over [`fit`](Self::fit) depends on rule and data: with ids that follow a power law,
    /// two threads take longer than one unless they have copies of [hot rows](Hogwild::hot_rows).
    /// `benches/RESULTS.md` has times and losses.
    ///
    /// Metrics are those of the evaluation; callbacks are called after epochs. The loss is that of
    /// the samples as each thread saw them.
    ///
    /// ```
    /// use nnz::core::update_rules::AdaGrad;
    /// use nnz::data::Dataset;
    /// use nnz::model::Model;
    /// use nnz::training::{FitReport, Hogwild, Trainer};
    ///
    /// fn train<M: Model + Send>(
    ///     model: &mut M,
    ///     data: &Dataset<M::Element>,
    /// ) -> nnz::Result<FitReport> {
    ///     Trainer::new(AdaGrad::default()).epochs(3).fit_hogwild(model, data, Hogwild::threads(2))
    /// }
    /// ```
    ///
    /// # Errors
    ///
    /// As [`fit`](Self::fit). [`TrainError::Threads`], [`TrainError::HotRows`], and
    /// [`TrainError::ThreadNotStarted`] where the system starts no more threads.
    /// [`TrainError::NotHogwild`] for anything that threads cannot share, a batch size other than
    /// 1, and data with an unknown number of samples. The error of a thread ends all; the
    /// parameters are as the steps so far left them.
    pub fn fit_hogwild<M, S>(
        &mut self,
        model: &mut M,
        data: &S,
        hogwild: Hogwild,
    ) -> Result<FitReport>
    where
        M: Model + EvaluatedOn<E> + Send,
        S: DataSource<M::Element> + Sync,
    {
        let mut run = Run::new(self, model, data, hogwild)?;
        let Trainer { evaluation, config, .. } = self;
        let evaluation = M::evaluation(evaluation);
        config.check_run(evaluation, model)?;
        config.coordinate(evaluation, R::NAME, Default::default(), |coordinator| {
            run.epochs(model, data, coordinator)
        })
    }
}

/// State of a run that lives from epoch to epoch.
struct Run<R: UpdateRule, M: Model> {
    hogwild: Hogwild,
    options: BatchOptions,
    schedule: Schedule,
    rate: f64,
    epochs: u64,
    /// The shared parameters, each with its hot rows.
    shared: Vec<(usize, HotRows)>,
    /// The first updater has the states of the shared table.
    threads: Vec<Worker<R, M>>,
}

/// State of one thread.
struct Worker<R: UpdateRule, M: Model> {
    /// A model whose shared tables are unused.
    model: M,
    updater: Updater<Racing<R>, M::Element>,
}

/// The view for callbacks.
struct AfterEpoch<'m, M> {
    model: &'m mut M,
    n_steps: u64,
    learning_rate: f64,
}

impl<M: Model> CoordinatedRun<M> for AfterEpoch<'_, M> {
    fn model(&mut self) -> Result<&mut M> {
        Ok(self.model)
    }

    fn facts(&mut self) -> &M {
        self.model
    }
}

impl<M: Model> State for AfterEpoch<'_, M> {
    fn n_steps(&self) -> u64 {
        self.n_steps
    }

    fn learning_rate(&self) -> f64 {
        self.learning_rate
    }

    fn parameters(&self) -> Vec<ParameterReport> {
        parameter_reports(&*self.model, &|_| None)
    }

    fn check_finite(&self) -> Result<()> {
        check_finite(&*self.model)
    }

    fn save_model(&self, path: &Path, attachments: Attachments<'_>) -> Result<()> {
        checkpoint::save_with(&*self.model, path, attachments)
    }

    fn save_run(&self, _: &checkpoint::Run, path: &Path) -> Result<()> {
        Err(CheckpointError::Hogwild { path: path.to_owned() }.into())
    }
}

impl<R: UpdateRule, M: Model + Send> Run<R, M> {
    fn new<E, S: DataSource<M::Element>>(
        trainer: &Trainer<'_, R, E>,
        model: &mut M,
        data: &S,
        hogwild: Hogwild,
    ) -> Result<Self> {
        let refuse = |what, why| Err(TrainError::NotHogwild { what, why }.into());
        trainer.check_settings()?;
        if hogwild.threads == 0 || hogwild.merge_every == 0 {
            return refuse("Hogwild", "`threads` and `merge_every` must be at least 1");
        }
        TooManyThreads::check("Hogwild::threads", hogwild.threads).map_err(TrainError::from)?;
        if hogwild.hot_rows > HotRows::MOST {
            let (found, limit) = (hogwild.hot_rows, HotRows::MOST);
            return Err(TrainError::HotRows { found, limit }.into());
        }
        if trainer.config.options.batch_size != 1 {
            return refuse(
                "batch_size",
                "its steps are of one row; use `parallel` for larger batches",
            );
        }
        if trainer.config.clip_norm.is_some() {
            return refuse("clip_norm", "nobody has the whole gradient; use `clip_gradient`");
        }
        if trainer.config.callbacks.iter().any(|callback| callback.next_batch(0).is_some()) {
            return refuse("a callback between batches", "threads do not wait for each other then");
        }
        if !M::TRAINS_ROWS || M::WRITES_STATES {
            return refuse(M::NAME, "a step of one row is not one loop; use `fit_on_threads`");
        }
        let by_rows = |index: &usize| M::PARAMETERS[*index].gradient == Some(Storage::RowSparse);
        let parameters: Vec<usize> = (0..M::PARAMETERS.len()).filter(by_rows).collect();
        if parameters.is_empty() {
            let why = "it has no parameter with a row_sparse gradient; use `fit_on_threads`";
            return refuse(M::NAME, why);
        }
        if let Some(why) = why_not_racing::<R, M::Element>(&trainer.rule, hogwild.hot_rows > 0) {
            return refuse(R::NAME, why);
        }
        let specs: Vec<ParameterSpec> = trainer.updater(model)?.parameters().cloned().collect();
        // Now that no row waits for steps which it was not touched by.
        let mut rule = Racing(trainer.rule.clone());
        rule.set_lazy_update(LazyUpdate::Touched);
        let options = trainer.config.batch_options();
        let threads = (0..hogwild.threads).map(|_| {
            let mut updater = Updater::new(rule.clone(), specs.clone())?;
            updater.set_records_outputs(false);
            Ok(Worker { model: replica(model, &parameters)?, updater })
        });
        let threads = threads.collect::<Result<_>>()?;
        let shared = parameters.iter().map(|parameter| {
            let hot = hot_rows(model, data, &options, *parameter, hogwild.hot_rows)?;
            Ok((*parameter, hot))
        });
        Ok(Run {
            threads,
            shared: shared.collect::<Result<_>>()?,
            hogwild,
            options,
            schedule: trainer.config.schedule.clone(),
            rate: trainer.rule.learning_rate(),
            epochs: trainer.config.epochs,
        })
    }

    fn epochs<S: DataSource<M::Element> + Sync>(
        &mut self,
        model: &mut M,
        data: &S,
        coordinator: &mut dyn RunEvents<M>,
    ) -> Result<()> {
        let mut batches = data.batches(M::INPUTS, &self.options)?;
        for epoch in 0..self.epochs {
            batches.start_epoch(epoch)?;
            let Some(n_rows) = batches.n_batches() else {
                let why = "threads divide its rows, whose number is not known; read it into memory";
                return Err(TrainError::NotHogwild { what: "data", why }.into());
            };
            let began = Instant::now();
            let n_steps = self.threads.iter().map(|thread| thread.updater.clock()).sum();
            let learning_rate = self.rate * self.schedule.factor(n_steps, epoch);
            for Worker { updater, .. } in &mut self.threads {
                updater.set_learning_rate(learning_rate)?;
            }
            let totals = self.epoch(model, data, epoch, n_rows)?;
            if totals.n_rows == 0 {
                return Err(TrainError::NoRows.into());
            }
            let seconds = began.elapsed().as_secs_f64();
            let n_steps = n_steps + totals.n_batches;
            let learning_rate = self.threads[0].updater.learning_rate();
            let mut run = AfterEpoch { model, n_steps, learning_rate };
            if coordinator
                .epoch(&mut run, EpochOutcome { epoch, totals, learning_rate, seconds })?
                .is_break()
            {
                break;
            }
        }
        Ok(())
    }

    /// One epoch. Afterwards the model has the threads' results, also where one of them has failed.
    fn epoch<S: DataSource<M::Element> + Sync>(
        &mut self,
        model: &mut M,
        data: &S,
        epoch: u64,
        n_rows: u64,
    ) -> Result<EpochTotals> {
        let mut tables: Vec<OwnTable<M::Element>> = Vec::new();
        for (parameter, hot) in &mut self.shared {
            let table = std::mem::replace(&mut *table_of(model, *parameter)?, Table::zeros(0, 0));
            tables.push((*parameter, table, std::mem::take(hot)));
        }
        let shared = Arc::new(Shared::new(&self.threads[0].updater, tables, model));
        let (n_threads, failed) = (self.threads.len() as u64, AtomicBool::new(false));
        let pass = Pass {
            epoch,
            options: &self.options,
            schedule: self.schedule.changes_by_step().then_some((&self.schedule, self.rate)),
            n_threads,
            merge_every: self.hogwild.merge_every,
            failed: &failed,
        };
        let parts = thread::scope(|scope| {
            let threads: Vec<_> = (0..)
                .zip(&mut self.threads)
                .map(|(number, Worker { model, updater })| {
                    let rows = number * n_rows / n_threads..(number + 1) * n_rows / n_threads;
                    let (shared, pass) = (&shared, &pass);
                    let work = move || {
                        updater.set_racer(Some(Racer::new(shared, model)));
                        let result = pass.run(model, updater, data, rows);
                        pass.failed.fetch_or(result.is_err(), Ordering::Relaxed);
                        result
                    };
                    let thread = thread::Builder::new().spawn_scoped(scope, work);
                    pass.failed.fetch_or(thread.is_err(), Ordering::Relaxed);
                    thread
                })
                .collect();
            let ends = (0..).zip(threads).map(|(rank, thread)| match thread.map(|it| it.join()) {
                Ok(Ok(result)) => result,
                Ok(Err(panic)) => {
                    Err(StoreError::Panicked { rank, message: message_of(&*panic) }.into())
                }
                Err(error) => Err(not_started(rank, n_threads as usize, &error)),
            });
            ends.collect::<Vec<_>>()
        });
        for Worker { updater, .. } in &mut self.threads {
            updater.set_racer(None);
        }
        // No other thread has it.
        let ended = Arc::into_inner(shared).map(|shared| shared.end(model));
        let ended = ended.into_iter().flatten();
        for ((parameter, hot), (_, table, of_table)) in self.shared.iter_mut().zip(ended) {
            *hot = of_table;
            *table_of(model, *parameter)? = table;
        }
        let mut totals = EpochTotals::default();
        for part in parts {
            totals.extend(&part?);
        }
        Ok(totals)
    }
}

/// Settings of an epoch, for its threads.
struct Pass<'p> {
    epoch: u64,
    options: &'p BatchOptions,
    /// Present where the rate changes by step, with the rule's own rate.
    schedule: Option<(&'p Schedule, f64)>,
    n_threads: u64,
    merge_every: usize,
    failed: &'p AtomicBool,
}

impl Pass<'_> {
    /// A step for each sample of a thread's part of the epoch.
    fn run<R: UpdateRule, M: Model, S: DataSource<M::Element>>(
        &self,
        model: &mut M,
        updater: &mut Updater<Racing<R>, M::Element>,
        data: &S,
        rows: Range<u64>,
    ) -> Result<EpochTotals> {
        let mut totals = EpochTotals::default();
        let mut batches = data.batches(M::INPUTS, self.options)?;
        batches.seek(Position { epoch: self.epoch, batch: rows.start })?;
        let merges = updater.racer_mut().is_some_and(|racer| racer.merges());
        // A rate that changes by step is set before each.
        let at_most = match self.schedule {
            Some(_) => 1,
            None if merges => self.merge_every,
            None => STEPS_PER_CALL,
        };
        let n_rows = rows.end - rows.start;
        let mut since_merge = 0;
        while totals.n_rows < n_rows && !self.failed.load(Ordering::Relaxed) {
            if let Some((schedule, rate)) = self.schedule {
                // As if all threads had made as many steps.
                let n_steps = updater.clock() * self.n_threads;
                updater.set_learning_rate(rate * schedule.factor(n_steps, self.epoch))?;
            }
            let left = (n_rows - totals.n_rows).min(at_most as u64) as usize;
            let Some(at_hand) = batches.next_rows(left)? else { break };
            let bound = model.bind(&at_hand)?;
            let steps = model.train_rows(&bound, updater)?;
            totals.add_rows(&steps);
            if steps.diverged() {
                let batch = rows.start + totals.n_batches - 1;
                let error = diverged(self.epoch, batch, steps.last_loss, updater);
                drop(at_hand);
                return Err(blame(error, model, &mut batches, None));
            }
            since_merge += steps.n_steps;
            let is_due = since_merge >= self.merge_every || totals.n_rows >= n_rows;
            if is_due && let Some(racer) = updater.racer_mut() {
                racer.merge(model);
                since_merge = 0;
            }
        }
        Ok(totals)
    }
}

/// The table of a parameter.
fn table_of<M: Model>(model: &mut M, parameter: usize) -> Result<&mut Table<M::Element>> {
    let known = M::PARAMETERS.len();
    let found = model.parameters_mut().into_iter().nth(parameter);
    let found = found.map(|parameter| parameter.table);
    found.ok_or(ModelError::NoParameter { model: M::NAME, index: parameter, known }.into())
}

/// A model with the same parameters, except those in `zero`, of which no page is mapped.
fn replica<M: Model>(model: &M, zero: &[usize]) -> Result<M> {
    let parameters = model.parameters();
    Ok(M::from_tables(model.dims().clone(), &mut |name, shape| {
        let found = parameters.iter().position(|parameter| parameter.name == name);
        Ok(match found {
            Some(index) if !zero.contains(&index) => parameters[index].table.clone(),
            _ => Table::zeros(shape.n_rows(), shape.row_size()),
        })
    })?)
}

/// The table rows that the first samples name most often, by descending frequency. O(entries of
/// these).
fn hot_rows<M: Model, S: DataSource<M::Element>>(
    model: &M,
    data: &S,
    options: &BatchOptions,
    parameter: usize,
    at_most: usize,
) -> Result<HotRows> {
    /// The number of samples that are counted.
    const ROWS: usize = 2048;
    if at_most == 0 {
        return Ok(HotRows::default());
    }
    let mut batches = data.batches(M::INPUTS, options)?;
    batches.start_epoch(0)?;
    let mut named = Vec::new();
    let mut n_rows = 0;
    while n_rows < ROWS {
        let Some(batch) = batches.next_rows(ROWS - n_rows)? else { break };
        n_rows += batch.n_rows().max(1);
        let bound = model.bind(&batch)?;
        M::PARAMETERS[parameter].reads.visit::<M>(&bound, &mut |row| {
            named.push(row);
            Ok(())
        })?;
    }
    named.sort_unstable();
    // Data of another width is refused by the steps.
    let n_rows = model.parameters()[parameter].shape.n_rows();
    named.retain(|row| *row < n_rows);
    let mut counts: Vec<_> = named.chunk_by(|a, b| a == b).map(|run| (run.len(), run[0])).collect();
    counts.sort_unstable_by(|a, b| b.0.cmp(&a.0).then(a.1.cmp(&b.1)));
    Ok(HotRows::new(counts.into_iter().map(|(_, row)| row), at_most.min(n_rows)))
}

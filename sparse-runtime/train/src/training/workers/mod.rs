//! Data-parallel training: workers that divide each batch, and share parameters through a store.

mod agreement;
mod compact;
mod compact_step;
mod ending;
mod epochs;
mod job;
mod session;
mod worker;

use super::checkpoint::Run;
use super::checkpoint::run::{compare_settings, load_run_if};
use super::evaluation::EvaluatedOn;
use super::report::FitReport;
use super::{TrainError, Trainer};
use crate::error::{Error, Result};
use crate::store::{Communicator, CommunicatorError, StoreError, Threads, Waiting, agree, share};
use ending::in_group;
use job::Job;
use nnz_data::DataSource;
use nnz_optim::UpdateRule;
use nnz_step::model::{Model, ParameterRef};
use std::any::Any;
use std::io;
use std::path::Path;
use std::thread;

impl<R: UpdateRule, E> Trainer<'_, R, E> {
    /// Trains a model on `n_workers` threads that share its parameters through a
    /// [`KvStore`](crate::store::KvStore). Each batch is cut into [leaves](Self::leaves). A worker
    /// computes gradients of some leaves, from the table rows that its part
    /// [reads](Model::rows_read), and updates the rows that it owns. The bits of the result do not
    /// depend on the number of workers, one included. It is the result of [`fit`](Self::fit) except
    /// for the order in which gradients are added, and only where a batch's loss is a mean over its
    /// samples.
    ///
    /// Use it for models whose gradients cost more than moving rows, and as the program that a
    /// cluster runs by [`fit_as_worker`](Self::fit_as_worker). On one machine
    /// [`parallel`](Self::parallel) moves less. Each worker has a copy of the model: pages of a
    /// table that is zero at first are mapped where its batches read. Metrics are those of the
    /// evaluation. Callbacks are called after epochs and batches. Parameters and optimizer state
    /// that they read between two batches are collected for them, in O(values).
    ///
    /// ```
    /// use nnz::core::update_rules::AdaGrad;
    /// use nnz::data::Dataset;
    /// use nnz::model::Model;
    /// use nnz::training::{FitReport, Trainer};
    ///
    /// fn train<M: Model + Send>(
    ///     model: &mut M,
    ///     data: &Dataset<M::Element>,
    /// ) -> nnz::Result<FitReport> {
    ///     let mut trainer = Trainer::new(AdaGrad::default()).batch_size(1024).epochs(3);
    ///     trainer.fit_on_threads(model, data, 4)
    /// }
    /// ```
    ///
    /// # Errors
    ///
    /// As [`fit`](Self::fit). [`TrainError::NotOnWorkers`] for callbacks that see gradients, SAGA,
    /// and models that write states.
    /// [`ModelError::NoGradient`](nnz_step::model::ModelError::NoGradient) for a model written by
    /// hand without [`gradient_mut`](Model::gradient_mut). [`StoreError::LeafCount`];
    /// [`CommunicatorError::NoWorkers`] and [`CommunicatorError::TooManyWorkers`];
    /// [`TrainError::ThreadNotStarted`] where the system starts no more threads;
    /// [`StoreError::Panicked`] where a worker panicked. The error of a worker ends all. The
    /// model's parameters are then as before the run, or as at some point of it.
    ///
    /// # Panics
    ///
    /// Panics of code on the calling thread, which is worker 0: data and callbacks. The others have
    /// ended by then.
    pub fn fit_on_threads<M, S>(
        &mut self,
        model: &mut M,
        data: &S,
        n_workers: usize,
    ) -> Result<FitReport>
    where
        M: Model + EvaluatedOn<E> + Send,
        S: DataSource<M::Element> + Sync,
    {
        let job = self.job(model, data, None)?;
        self.on_threads(&job, model, data, n_workers)
    }

    /// Continues a run on workers that [`Checkpoints`](super::Checkpoints) saved, as
    /// [`resume`](Self::resume) does for [`fit`](Self::fit), on any number of workers: the file has
    /// no number of workers.
    ///
    /// # Errors
    ///
    /// As [`fit_on_threads`](Self::fit_on_threads) and [`resume`](Self::resume). A run of `fit`,
    /// which adds gradients in another order, is refused, and so are other [leaves](Self::leaves).
    pub fn resume_on_threads<M, S>(
        &mut self,
        model: &mut M,
        data: &S,
        n_workers: usize,
        path: impl AsRef<Path>,
    ) -> Result<FitReport>
    where
        M: Model + EvaluatedOn<E> + Send,
        S: DataSource<M::Element> + Sync,
    {
        let job = self.job(model, data, Some(path.as_ref()))?;
        self.on_threads(&job, model, data, n_workers)
    }

    fn on_threads<M, S>(
        &mut self,
        job: &Job<R, M::Element>,
        model: &mut M,
        data: &S,
        n_workers: usize,
    ) -> Result<FitReport>
    where
        M: Model + EvaluatedOn<E> + Send,
        S: DataSource<M::Element> + Sync,
    {
        let mut ends = Threads::group(n_workers).map_err(StoreError::from)?.into_iter();
        let Some(own) = ends.next() else {
            return Err(StoreError::from(CommunicatorError::NoWorkers).into());
        };
        thread::scope(|scope| {
            let others: Vec<_> = ends
                .map(|end| {
                    let mut replica = model.clone();
                    let work = move || job.run(&mut replica, data, end, None);
                    thread::Builder::new().spawn_scoped(scope, work)
                })
                .collect();
            // The end of a thread that was not started is gone, which ends the others.
            let trained = self.run_coordinated(job, model, data, own);
            let mut errors = Vec::new();
            for (rank, other) in (1..).zip(others) {
                errors.extend(match other.map(|thread| thread.join()) {
                    Ok(Ok(result)) => result.err(),
                    Ok(Err(panic)) => {
                        let message = message_of(&*panic);
                        Some(StoreError::Panicked { rank, message }.into())
                    }
                    Err(error) => Some(not_started(rank, n_workers, &error)),
                });
            }
            match trained {
                // The error that ended the others, not what they say of it.
                Ok(report) => {
                    errors.into_iter().find(|error| !is_echo(error)).map_or(Ok(report), Err)
                }
                Err(error) if !is_echo(&error) => Err(error),
                Err(echo) => Err(errors.into_iter().find(|error| !is_echo(error)).unwrap_or(echo)),
            }
        })
    }

    /// One worker's part of [`fit_on_threads`](Self::fit_on_threads), for your own group. Every
    /// worker of the communicator calls this with the same settings, the same data and a model with
    /// the same parameters; the first exchange compares them, with checksums of data and values.
    /// Worker 0 evaluates and calls callbacks, and its model has the result. All get its report.
    ///
    /// The communicator may be borrowed, as `&mut group`, for several runs. Where this worker fails
    /// or panics it is [ended](Communicator::end), so that the others fail at once.
    ///
    /// # Errors
    ///
    /// As [`fit_on_threads`](Self::fit_on_threads). [`StoreError::Disagreement`], the same at every
    /// worker, which names a worker and the setting that differs. [`StoreError::Exchange`] where
    /// another worker has ended, failed, or given no sign until the deadline.
    pub fn fit_as_worker<M, S, C>(
        &mut self,
        model: &mut M,
        data: &S,
        communicator: C,
    ) -> Result<FitReport>
    where
        M: Model + EvaluatedOn<E>,
        S: DataSource<M::Element>,
        C: Communicator,
    {
        in_group(communicator, |communicator| {
            let job = self.job(model, data, None)?;
            self.as_worker(&job, model, data, communicator)
        })
    }

    /// One worker's part of [`resume_on_threads`](Self::resume_on_threads): every worker reads the
    /// file, which worker 0 has written.
    ///
    /// # Errors
    ///
    /// As [`fit_as_worker`](Self::fit_as_worker) and
    /// [`resume_on_threads`](Self::resume_on_threads).
    pub fn resume_as_worker<M, S, C>(
        &mut self,
        model: &mut M,
        data: &S,
        communicator: C,
        path: impl AsRef<Path>,
    ) -> Result<FitReport>
    where
        M: Model + EvaluatedOn<E>,
        S: DataSource<M::Element>,
        C: Communicator,
    {
        in_group(communicator, |communicator| {
            let job = self.job(model, data, Some(path.as_ref()))?;
            self.as_worker(&job, model, data, communicator)
        })
    }

    fn as_worker<M, S, C>(
        &mut self,
        job: &Job<R, M::Element>,
        model: &mut M,
        data: &S,
        communicator: &mut C,
    ) -> Result<FitReport>
    where
        M: Model + EvaluatedOn<E>,
        S: DataSource<M::Element>,
        C: Communicator,
    {
        // The others may be opening their data.
        communicator.set_waiting(Waiting::Pause);
        if communicator.size() > 1 {
            let of_trainer = self.config.settings(data, Some(self.config.leaves))?;
            let (of_updater, epochs) = (&job.updater_settings, job.epochs);
            let start = job.begun.position;
            let settings = agreement::settings(model, of_updater, of_trainer, epochs, start);
            agree(communicator, &settings)?;
        }
        let own = match communicator.rank() {
            0 => Some(self.run_coordinated(job, model, data, &mut *communicator)?),
            _ => {
                job.run(model, data, &mut *communicator, None)?;
                None
            }
        };
        communicator.set_waiting(Waiting::Pause);
        Ok(share(communicator, own.as_ref())?)
    }

    /// The work of every worker, from the beginning or from the position in a file, whose
    /// parameters the model then has.
    fn job<M, S>(&self, model: &mut M, data: &S, path: Option<&Path>) -> Result<Job<R, M::Element>>
    where
        M: Model,
        S: DataSource<M::Element>,
    {
        self.check_settings()?;
        if R::CORRECTS && self.config.clip_norm.is_some() {
            return Err(TrainError::ClipCorrected { rule: R::NAME }.into());
        }
        let mut looking =
            self.config.callbacks.iter().filter(|callback| callback.next_batch(0).is_some());
        if looking.any(|callback| callback.sees_gradients()) {
            let what = "a callback that sees gradients";
            let why =
                "to compute them for it would settle rows, on which the bits of later steps depend";
            return Err(TrainError::NotOnWorkers { what, why }.into());
        }
        let mut updater = self.updater(model)?;
        let begun = match path {
            None => {
                let settings = self.config.settings_to_save(data, Some(self.config.leaves))?;
                Run { settings, ..Run::default() }
            }
            Some(path) => {
                let settings = self.config.settings(data, Some(self.config.leaves))?;
                let run = load_run_if(model, &mut updater, path, &|run| {
                    Ok(compare_settings(path, &run.settings, &settings)?)
                })?;
                Run { settings, ..run }
            }
        };
        let state = |(index, parameter): (usize, ParameterRef<'_, M::Element>)| {
            let is_trained = M::PARAMETERS[index].gradient.is_some();
            let kept = updater.kept_snapshot().get(index);
            is_trained.then(|| updater.table_state(index, parameter.table, kept))
        };
        Ok(Job {
            rule: self.rule.clone(),
            updater_settings: updater.settings(),
            tables: match path {
                Some(_) => model.parameters().into_iter().enumerate().map(state).collect(),
                None => Vec::new(),
            },
            begun,
            specs: updater.parameters().cloned().collect(),
            options: self.config.batch_options(),
            clip_norm: self.config.clip_norm,
            schedule: self.config.schedule.clone(),
            epochs: self.config.epochs,
            leaves: self.config.leaves,
            parallel: self.config.parallel,
        })
    }

    /// The work of worker 0, which reports.
    fn run_coordinated<M, S, C>(
        &mut self,
        job: &Job<R, M::Element>,
        model: &mut M,
        data: &S,
        communicator: C,
    ) -> Result<FitReport>
    where
        M: Model + EvaluatedOn<E>,
        S: DataSource<M::Element>,
        C: Communicator,
    {
        let Trainer { evaluation, config, .. } = self;
        let evaluation = M::evaluation(evaluation);
        config.check_run(evaluation, model)?;
        config.coordinate(evaluation, R::NAME, job.begun.clone(), |coordinator| {
            job.run(model, data, communicator, Some(coordinator))
        })
    }
}

/// Whether another worker ended this one.
fn is_echo(error: &Error) -> bool {
    use CommunicatorError::{PeerFailed, PeerLost};
    let Error::Store(StoreError::Exchange { error, .. }) = error else { return false };
    matches!(error, PeerLost { .. } | PeerFailed { .. })
}

/// The error of a thread that the system did not start.
#[cold]
pub(super) fn not_started(number: usize, n_threads: usize, error: &io::Error) -> Error {
    TrainError::ThreadNotStarted { number, n_threads, problem: error.to_string() }.into()
}

pub(super) fn message_of(panic: &(dyn Any + Send)) -> String {
    match (panic.downcast_ref::<&str>(), panic.downcast_ref::<String>()) {
        (Some(message), _) => (*message).to_owned(),
        (None, Some(message)) => message.clone(),
        (None, None) => "without a message".to_owned(),
    }
}

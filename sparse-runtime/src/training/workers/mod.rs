//! Data-parallel training: workers that divide each batch, and share parameters through a store.

mod job;
mod worker;

use super::callback::{Moment, State, parameter_reports};
use super::checkpoint::{self, CheckpointError, Run};
use super::evaluation::Evaluation;
use super::progress::Reporter;
use super::report::{EpochReport, FitReport};
use super::score::score;
use super::{ParameterReport, TrainError, Trainer};
use crate::data::{DataSource, Position};
use crate::error::{Error, Result};
use crate::model::Model;
use crate::store::{Communicator, CommunicatorError, StoreError, Threads};
use job::Job;
pub(super) use job::{AfterEpoch, Epoch};
use sparse_core::update_rules::UpdateRule;
use std::any::Any;
use std::ops::ControlFlow;
use std::path::Path;
use std::thread;

impl<R: UpdateRule, E> Trainer<'_, R, E> {
    /// Trains a model on `n_workers` threads that share its parameters through a [`KvStore`](crate::store::KvStore): each computes the
    /// gradients of some of the [leaves](Self::leaves) that a batch is cut into, of the rows that the compiler found its part to
    /// [read](Model::rows_read), and updates the rows that it owns. The result has the same bits for any number of workers, one included; it is
    /// that of [`fit`](Self::fit) but for the order in which gradients are added, and only where a batch's loss is a mean over its rows.
    ///
    /// For models whose gradients cost more than moving rows, and as the program that a cluster runs by
    /// [`fit_as_worker`](Self::fit_as_worker). On one machine [`parallel`](Self::parallel) has less to move. Each worker has a copy of the model: pages
    /// of a table that is zero at first are mapped where its batches read. Metrics are those of the evaluation; callbacks are told of epochs.
    ///
    /// ```
    /// use sparse_core::update_rules::AdaGrad;
    /// use sparse_runtime::data::Dataset;
    /// use sparse_runtime::model::Model;
    /// use sparse_runtime::training::{FitReport, Trainer};
    ///
    /// fn train<M: Model + Send>(model: &mut M, data: &Dataset<M::Element>) -> sparse_runtime::Result<FitReport> {
    ///     Trainer::new(AdaGrad::default()).batch_size(1024).epochs(3).fit_on_threads(model, data, 4)
    /// }
    /// ```
    ///
    /// # Errors
    ///
    /// As [`fit`](Self::fit). [`TrainError::NotOnWorkers`] for callbacks between batches, SAGA, and models that write states. [`StoreError::LeafCount`]; [`StoreError::Panicked`] where a worker has. The error of a worker ends all; the model's
    /// parameters are then as they were, or as after some whole epoch.
    pub fn fit_on_threads<M, S>(
        &mut self,
        model: &mut M,
        data: &S,
        n_workers: usize,
    ) -> Result<FitReport>
    where
        M: Model + Send,
        S: DataSource<M::Element> + Sync,
        E: Evaluation<M::Element>,
    {
        let job = self.job(model)?;
        let mut ends = Threads::group(n_workers).map_err(StoreError::from)?.into_iter();
        let Some(own) = ends.next() else {
            return Err(StoreError::from(CommunicatorError::NoWorkers).into());
        };
        thread::scope(|scope| {
            let others: Vec<_> = ends
                .map(|end| {
                    let (mut replica, job) = (model.clone(), &job);
                    scope.spawn(move || job.run(&mut replica, data, end, None))
                })
                .collect();
            let led = self.lead(&job, model, data, own);
            let mut errors = Vec::new();
            for (rank, other) in (1..).zip(others) {
                errors.extend(match other.join() {
                    Ok(result) => result.err(),
                    Err(panic) => {
                        let message = message_of(&*panic);
                        Some(StoreError::Panicked { rank, message }.into())
                    }
                });
            }
            match led {
                // The error that ended the others, not what they say of it.
                Ok(report) => {
                    errors.into_iter().find(|error| !is_echo(error)).map_or(Ok(report), Err)
                }
                Err(error) if !is_echo(&error) => Err(error),
                Err(echo) => Err(errors.into_iter().find(|error| !is_echo(error)).unwrap_or(echo)),
            }
        })
    }

    /// One worker's part of what [`fit_on_threads`](Self::fit_on_threads) does, for a group of one's own: every worker of the communicator calls this
    /// with the same settings, the same data and a model with the same parameters. Worker 0 evaluates, reports and calls callbacks, and its
    /// model has the result.
    ///
    /// # Errors
    ///
    /// As [`fit_on_threads`](Self::fit_on_threads); [`CommunicatorError::PeerLost`] where another worker has ended by an error of its own.
    pub fn fit_as_worker<M, S, C>(
        &mut self,
        model: &mut M,
        data: &S,
        communicator: C,
    ) -> Result<FitReport>
    where
        M: Model,
        S: DataSource<M::Element>,
        E: Evaluation<M::Element>,
        C: Communicator,
    {
        let job = self.job(model)?;
        match communicator.rank() {
            0 => self.lead(&job, model, data, communicator),
            _ => job.run(model, data, communicator, None).map(|()| FitReport::default()),
        }
    }

    /// What every worker does.
    fn job<M: Model>(&self, model: &M) -> Result<Job<R>> {
        self.check_settings()?;
        if R::CORRECTS && self.clip_norm.is_some() {
            return Err(TrainError::ClipCorrected { rule: R::NAME }.into());
        }
        if self.callbacks.iter().any(|callback| callback.next_batch(0).is_some()) {
            let what = "a callback between batches";
            let why = "parameters are spread over workers then";
            return Err(TrainError::NotOnWorkers { what, why }.into());
        }
        Ok(Job {
            rule: self.rule.clone(),
            specs: self.updater(model)?.parameters().cloned().collect(),
            options: self.batch_options(),
            clip_norm: self.clip_norm,
            schedule: self.schedule.clone(),
            epochs: self.epochs,
            leaves: self.leaves,
            parallel: self.parallel,
        })
    }

    /// Does the part of worker 0, which reports.
    fn lead<M, S, C>(
        &mut self,
        job: &Job<R>,
        model: &mut M,
        data: &S,
        communicator: C,
    ) -> Result<FitReport>
    where
        M: Model,
        S: DataSource<M::Element>,
        E: Evaluation<M::Element>,
        C: Communicator,
    {
        self.check_evaluation(model)?;
        self.reporting(|after_epoch| job.run(model, data, communicator, Some(after_epoch)))
    }

    /// Trains by `run`, which tells of epochs that it has made: these are evaluated and reported, and callbacks are told of them.
    pub(super) fn reporting<M>(
        &mut self,
        run: impl FnOnce(AfterEpoch<'_, M>) -> Result<()>,
    ) -> Result<FitReport>
    where
        M: Model,
        E: Evaluation<M::Element>,
    {
        let span = tracing::info_span!("fit", model = M::NAME, rule = R::NAME);
        let _entered = span.enter();
        let rows_at_a_time = self.rows_at_a_time();
        let epochs = self.epochs;
        self.begin(0);
        let mut reporter = Reporter::new(self.progress);
        let mut made = Run::default();
        let mut stopped = false;
        let mut after_epoch = |model: &mut M, done: Epoch| {
            let evaluation = match self.evaluation.source() {
                Some(data) => Some(score(model, data, &self.metrics, rows_at_a_time)?),
                None => None,
            };
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
            reporter.end_epoch(&report);
            made.position = Position { epoch: done.epoch + 1, batch: 0 };
            made.epochs.push(report);
            let state = Lead { model: &*model, done: &done };
            let moment = Moment::new(&made, &state);
            for callback in &mut self.callbacks {
                if let Some(report) = moment.epochs().last() {
                    stopped |= callback.epoch(report, &moment)?.is_break();
                }
            }
            if stopped || done.epoch + 1 == epochs {
                self.callbacks.iter_mut().try_for_each(|callback| callback.end(&moment))?;
            }
            Ok(if stopped { ControlFlow::Break(()) } else { ControlFlow::Continue(()) })
        };
        run(&mut after_epoch)?;
        let stopped = stopped && made.position.epoch < epochs;
        Ok(FitReport { epochs: made.epochs, stopped })
    }
}

/// The model after an epoch.
struct Lead<'m, M> {
    model: &'m M,
    done: &'m Epoch,
}

impl<M: Model> State for Lead<'_, M> {
    fn n_steps(&self) -> u64 {
        self.done.n_steps
    }

    fn learning_rate(&self) -> f64 {
        self.done.learning_rate
    }

    fn parameters(&self) -> Vec<ParameterReport> {
        parameter_reports(self.model, |_| None)
    }

    fn save_model(&self, path: &Path) -> Result<()> {
        checkpoint::save(self.model, path)
    }

    fn save_run(&self, _: &Run, path: &Path) -> Result<()> {
        Err(CheckpointError::OnWorkers { path: path.to_owned() }.into())
    }
}

/// Whether a worker was ended by another one.
fn is_echo(error: &Error) -> bool {
    matches!(error, Error::Store(StoreError::Communicator(CommunicatorError::PeerLost { .. })))
}

pub(super) fn message_of(panic: &(dyn Any + Send)) -> String {
    match (panic.downcast_ref::<&str>(), panic.downcast_ref::<String>()) {
        (Some(message), _) => (*message).to_owned(),
        (None, Some(message)) => message.clone(),
        (None, None) => "without a message".to_owned(),
    }
}

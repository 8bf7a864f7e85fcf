//! What a trainer does: it fits, goes on, scores and predicts.

use super::checkpoint::Run;
use super::checkpoint::run::{compare_settings, load_run_if};
use super::epoch::fit_from;
use super::evaluation::Evaluation;
use super::hook::Hook;
use super::measure::Measure;
use super::progress::Reporter;
use super::reduced::Reduced;
use super::report::{EpochReport, FitReport, ScoreReport};
use super::score::{ROWS_AT_A_TIME, check_source, predict, score, score_first};
use super::{TrainError, Trainer};
use crate::data::{Batches, DataSource, LastBatch, Position};
use crate::error::Result;
use crate::formats::Dense;
use crate::model::Model;
use crate::optimizer::Updater;
use sparse_core::update_rules::UpdateRule;
use std::ops::Range;
use std::path::Path;
use std::time::Instant;

/// How much of what its updater does a call makes.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Part {
    /// All: the updater is there for this call.
    Whole,
    /// Some epochs of a run.
    Epochs,
    /// A pass of many that are one run, whose end nobody knows.
    Piece,
}

impl<R: UpdateRule, E> Trainer<'_, R, E> {
    /// Trains a model from its present parameters, with fresh optimizer state.
    ///
    /// # Errors
    ///
    /// Before the first step: options that make no sense, data that is not what the model declares, to train or to evaluate on, a metric
    /// that does not fit. Then [`TrainError::Diverged`], and whatever data and model report. The parameters
    /// are as the steps made so far left them.
    pub fn fit<M, S>(&mut self, model: &mut M, data: &S) -> Result<FitReport>
    where
        M: Model,
        S: DataSource<M::Element>,
        E: Evaluation<M::Element>,
    {
        let mut updater = self.updater(model)?;
        let settings = self.settings_to_save(data, None)?;
        self.begin(0);
        let run = Run { settings, ..Run::default() };
        self.go_on(model, &mut updater, data, run, self.epochs, Part::Whole)
    }

    /// Trains a model for some epochs with an updater of one's own, from [`updater`](Self::updater):
    /// `0..5` and then `5..10` is `0..10`.
    ///
    /// # Errors
    ///
    /// As [`fit`](Self::fit).
    pub fn fit_epochs<M, S>(
        &mut self,
        model: &mut M,
        updater: &mut Updater<R, M::Element>,
        data: &S,
        epochs: Range<u64>,
    ) -> Result<FitReport>
    where
        M: Model,
        S: DataSource<M::Element>,
        E: Evaluation<M::Element>,
    {
        let position = Position { epoch: epochs.start, batch: 0 };
        let settings = self.settings_to_save(data, None)?;
        let run = Run { position, settings, ..Run::default() };
        self.begin(epochs.start);
        self.go_on(model, updater, data, run, epochs.end, Part::Epochs)
    }

    /// Goes on with a run that [`Checkpoints`](super::Checkpoints) saved, up to the trainer's number of epochs, on the same data: what comes of
    /// it, parameters, optimizer state and report, is to the bit what the run would have come to if it had not been ended.
    ///
    /// The model is made as for the run, and its parameters are replaced. Callbacks are told of the epochs before by
    /// [`replay`](super::Callback::replay); where one of them had ended the run, nothing is done.
    ///
    /// ```
    /// use sparse_core::update_rules::Ftrl;
    /// use sparse_runtime::data::Dataset;
    /// use sparse_runtime::model::Model;
    /// use sparse_runtime::training::{Checkpoints, FitReport, Trainer};
    /// use std::path::Path;
    ///
    /// /// Trains, and goes on after an interruption when it is called again.
    /// fn train<M: Model>(
    ///     model: &mut M,
    ///     data: &Dataset<M::Element>,
    ///     path: &Path,
    /// ) -> sparse_runtime::Result<FitReport> {
    ///     let mut trainer = Trainer::new(Ftrl::default()).callback(Checkpoints::new(path));
    ///     match path.exists() {
    ///         true => trainer.resume(model, data, path),
    ///         false => trainer.fit(model, data),
    ///     }
    /// }
    /// ```
    ///
    /// # Errors
    ///
    /// As [`fit`](Self::fit) and [`load_run`](super::checkpoint::load_run); [`CheckpointError::Setting`](super::checkpoint::CheckpointError::Setting) where the trainer is not set as it was.
    pub fn resume<M, S>(
        &mut self,
        model: &mut M,
        data: &S,
        path: impl AsRef<Path>,
    ) -> Result<FitReport>
    where
        M: Model,
        S: DataSource<M::Element>,
        E: Evaluation<M::Element>,
    {
        let path = path.as_ref();
        let mut updater = self.updater(model)?;
        let settings = self.settings(data, None)?;
        let mut run = load_run_if(model, &mut updater, path, |run| {
            compare_settings(path, &run.settings, &settings)?;
            if run.position.batch > 0 {
                compare_settings(path, &run.settings, &[self.metrics_setting()])?;
            }
            Measure::new::<M>(&self.metrics)?.restore(&run.metrics)
        })?;
        run.settings = settings;
        self.begin(0);
        self.go_on(model, &mut updater, data, run, self.epochs, Part::Whole)
    }

    /// One pass over some more data, in its order if [`shuffle`](Self::shuffle) is off: learning that goes on for ever, a
    /// piece of data at a time. The updater, from [`updater`](Self::updater), carries the optimizer's state from call to call;
    /// schedules count its steps, and the epoch is always the first. To callbacks all calls are one run, whose beginning and end they are not told
    /// of; what one says after a pass ends nothing. [`Saga`](sparse_core::update_rules::Saga) computes its mean gradient anew for other data, as
    /// [`Svrg`](sparse_core::update_rules::Svrg) does for each piece.
    ///
    /// # Errors
    ///
    /// As [`fit`](Self::fit). [`TrainError::Stopped`] where a callback ended the pass between two batches.
    pub fn partial_fit<M, S>(
        &mut self,
        model: &mut M,
        updater: &mut Updater<R, M::Element>,
        data: &S,
    ) -> Result<EpochReport>
    where
        M: Model,
        S: DataSource<M::Element>,
        E: Evaluation<M::Element>,
    {
        let run = Run { settings: self.settings_to_save(data, None)?, ..Run::default() };
        let report = self.go_on(model, updater, data, run, 1, Part::Piece)?;
        let stopped = || TrainError::Stopped { n_steps: updater.clock() }.into();
        report.epochs.into_iter().next().ok_or_else(stopped)
    }

    /// Refuses data to evaluate on that is not what the model declares, and to watch a metric that no report will have, before the first step.
    pub(super) fn check_evaluation<M: Model>(&self, model: &mut M) -> Result<()>
    where
        E: Evaluation<M::Element>,
    {
        let known = || self.metrics.iter().map(|metric| metric.name());
        let mut watched = self.callbacks.iter().filter_map(|callback| callback.watches());
        let is_unknown = |name: &&str| E::BY_TRAINER && !known().any(|known| known == *name);
        if let Some(name) = watched.find(is_unknown) {
            return Err(TrainError::unknown_metric(name, known()).into());
        }
        self.evaluation.source().map_or(Ok(()), |data| check_source(model, data, &self.metrics))
    }

    /// Tells everybody that a run begins.
    pub(super) fn begin(&mut self, epoch: u64) {
        self.callbacks.iter_mut().for_each(|callback| callback.begin(epoch));
    }

    /// Trains from where a run stands up to an epoch, of which callbacks are told if the part has an end.
    fn go_on<M, S>(
        &mut self,
        model: &mut M,
        updater: &mut Updater<R, M::Element>,
        data: &S,
        mut run: Run,
        end: u64,
        part: Part,
    ) -> Result<FitReport>
    where
        M: Model,
        S: DataSource<M::Element>,
        E: Evaluation<M::Element>,
    {
        let span = tracing::info_span!("fit", model = M::NAME, rule = R::NAME);
        let _entered = span.enter();
        self.check_settings()?;
        let options = self.batch_options();
        self.check_evaluation(model)?;
        if !self.metrics.is_empty() {
            score_first(model, data, &options, &self.metrics)?;
        }
        let mut batches = data.batches(M::INPUTS, &options)?;
        let base_rate = self.rule.learning_rate();
        run.settings.push(self.metrics_setting());
        let rows_at_a_time = self.rows_at_a_time();
        let mut hook = Hook {
            measure: Measure::new::<M>(&self.metrics)?,
            reporter: Reporter::new(self.progress),
            schedule: self.schedule.changes_by_step().then_some(&self.schedule),
            base_rate,
            max_norm: self.clip_norm,
            callbacks: &mut self.callbacks,
            run,
            is_stopped: false,
            has_end: part != Part::Piece,
            gradient_norms: Vec::new(),
        };
        model.set_parallel(self.parallel);
        hook.measure.restore(&hook.run.metrics)?;
        hook.replay();
        let begin = hook.run.position;
        updater.set_records_outputs(!hook.measure.is_empty());
        // An updater that nobody else has sees no other data.
        let fingerprint =
            if part == Part::Whole { None } else { R::CORRECTS.then(|| data.fingerprint()) };
        let fingerprint = fingerprint.transpose()?.flatten();
        let mut reduced =
            Reduced::new(updater, model, data, fingerprint, &options, self.clip_norm)?;
        while hook.run.position.epoch < end && !hook.is_stopped {
            let (start, totals) = (hook.run.position, hook.run.totals);
            let epoch = start.epoch;
            let span = tracing::info_span!("epoch", number = epoch + 1);
            let _entered = span.enter();
            // Constant within the epoch, unless the hook sets it at every step.
            if start.batch == 0 {
                let factor = self.schedule.factor(updater.clock(), epoch);
                updater.set_learning_rate(base_rate * factor)?;
            }
            batches.start_epoch(epoch)?;
            hook.reporter.start_epoch(epoch, end, batches.n_batches(), batches.bytes_read());
            hook.reporter.advance(start.batch);
            let began = Instant::now();
            let totals = match &mut reduced {
                Some(reduced) if R::CORRECTS => {
                    reduced.fit_epoch(model, updater, &mut batches, start, totals, &mut hook)?
                }
                _ => fit_from(model, updater, &mut batches, start, totals, &mut hook)?,
            };
            if hook.is_stopped {
                // Ended within the epoch, of which everybody was told then: nobody is to take it for a whole one.
                return Ok(FitReport { epochs: hook.run.epochs, stopped: true });
            }
            let seconds = began.elapsed().as_secs_f64();
            // Rows that roll over may fill no batch yet.
            if totals.n_rows == 0 && options.last_batch != LastBatch::RollOver {
                return Err(TrainError::NoRows.into());
            }
            let evaluation = self.evaluation.evaluate(model, &self.metrics, rows_at_a_time)?;
            let report = EpochReport {
                epoch,
                epochs: end,
                loss: totals.mean_loss(),
                metrics: hook.measure.take(),
                evaluation,
                learning_rate: updater.learning_rate(),
                n_rows: totals.n_rows,
                seconds,
            };
            tracing::info!(loss = report.loss, seconds, "trained");
            hook.reporter.end_epoch(&report);
            hook.run.epochs.push(report);
            hook.run.position = Position { epoch: epoch + 1, batch: 0 };
            (hook.run.totals, hook.run.metrics) = Default::default();
            hook.end_epoch(model, updater)?;
        }
        // Nor have they in any epoch.
        if !hook.run.epochs.is_empty() && hook.run.epochs.iter().all(|epoch| epoch.n_rows == 0) {
            return Err(TrainError::NoRows.into());
        }
        if hook.run.position != begin {
            hook.end(model, updater)?;
        }
        let stopped = hook.is_stopped && hook.run.position.epoch < end;
        Ok(FitReport { epochs: hook.run.epochs, stopped })
    }

    /// The mean loss and the metrics of a model over some data.
    ///
    /// # Errors
    ///
    /// As [`score`](super::score()).
    pub fn score<M, S>(&self, model: &mut M, data: &S) -> Result<ScoreReport>
    where
        M: Model,
        S: DataSource<M::Element>,
    {
        score(model, data, &self.metrics, self.rows_at_a_time())
    }

    /// The first output of a model for every row of some data, in order; without labels as well.
    ///
    /// # Errors
    ///
    /// As [`predict`].
    pub fn predict<M, S>(&self, model: &mut M, data: &S) -> Result<Dense<M::Element>>
    where
        M: Model,
        S: DataSource<M::Element>,
    {
        predict(model, data, self.rows_at_a_time())
    }

    pub(super) fn rows_at_a_time(&self) -> usize {
        self.options.batch_size.max(ROWS_AT_A_TIME)
    }
}

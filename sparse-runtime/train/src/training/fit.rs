//! Fitting, resuming, scoring and predicting by a trainer.

use super::any_updater::erased_mut;
use super::checkpoint::Run;
use super::checkpoint::run::{compare_settings, load_run_if};
use super::epochs::{EpochsOf, RunScope};
use super::evaluation::EvaluatedOn;
use super::measure::Measure;
use super::report::{EpochReport, FitReport, ScoreReport};
use super::score::{predict, score};
use super::{TrainError, Trainer};
use crate::error::Result;
use nnz_arrays::formats::Dense;
use nnz_data::{DataSource, Position};
use nnz_optim::UpdateRule;
use nnz_step::model::{Model, ModelFacts};
use nnz_step::optimizer::Updater;
use std::ops::Range;
use std::path::Path;

impl<R: UpdateRule, E> Trainer<'_, R, E> {
    /// Trains a model from its present parameters, with fresh optimizer state.
    ///
    /// # Errors
    ///
    /// Before the first step: invalid options, training or evaluation data that does not fit the
    /// model's declarations, a metric that does not fit. Then [`TrainError::Diverged`], or
    /// [`TrainError::BeyondRange`] and [`TrainError::FirstStep`] where a number of the data is the
    /// cause. After an epoch [`TrainError::ScoreNotFinite`] and [`TrainError::NoValue`]; callbacks
    /// are not called then, so nothing is saved. Any error of data and model. The parameters are as
    /// the steps so far left them.
    pub fn fit<M, S>(&mut self, model: &mut M, data: &S) -> Result<FitReport>
    where
        M: Model + EvaluatedOn<E>,
        S: DataSource<M::Element>,
    {
        let mut updater = self.updater(model)?;
        let settings = self.config.settings_to_save(data, None)?;
        self.config.begin(0);
        let run = Run { settings, ..Run::default() };
        self.go_on(model, &mut updater, data, run, self.config.epochs, RunScope::WholeRun)
    }

    /// Trains a model for some epochs with a given updater, from [`updater`](Self::updater): `0..5`
    /// and then `5..10` is `0..10`.
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
        M: Model + EvaluatedOn<E>,
        S: DataSource<M::Element>,
    {
        let position = Position { epoch: epochs.start, batch: 0 };
        let settings = self.config.settings_to_save(data, None)?;
        let run = Run { position, settings, ..Run::default() };
        self.config.begin(epochs.start);
        self.go_on(model, updater, data, run, epochs.end, RunScope::SomeEpochs)
    }

    /// Continues a run that [`Checkpoints`](super::Checkpoints) saved, on the same data, up to the
    /// trainer's number of epochs. Parameters, optimizer state and report equal, to the bit, those
    /// of an uninterrupted run. The report has at most the last
    /// [`KEPT_REPORTS`](super::checkpoint::KEPT_REPORTS) of the epochs before the interruption.
    ///
    /// The model is created as for the run, and its parameters are replaced. Callbacks get the
    /// earlier epochs by [`replay`](super::Callback::replay). If one of them had ended the run,
    /// nothing is done.
    ///
    /// ```
    /// use nnz::core::update_rules::Ftrl;
    /// use nnz::data::Dataset;
    /// use nnz::model::Model;
    /// use nnz::training::{Checkpoints, FitReport, Trainer};
    /// use std::path::Path;
    ///
    /// /// Trains, and continues after an interruption when it is called again.
    /// fn train<M: Model>(
    ///     model: &mut M,
    ///     data: &Dataset<M::Element>,
    ///     path: &Path,
    /// ) -> nnz::Result<FitReport> {
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
    /// As [`fit`](Self::fit) and [`load_run`](super::checkpoint::load_run);
    /// [`CheckpointError::Setting`](super::checkpoint::CheckpointError::Setting) for a trainer with
    /// other settings.
    pub fn resume<M, S>(
        &mut self,
        model: &mut M,
        data: &S,
        path: impl AsRef<Path>,
    ) -> Result<FitReport>
    where
        M: Model + EvaluatedOn<E>,
        S: DataSource<M::Element>,
    {
        let path = path.as_ref();
        let mut updater = self.updater(model)?;
        let settings = self.config.settings(data, None)?;
        let metrics = &self.config.metrics;
        let mut run = load_run_if(model, erased_mut(&mut updater), path, &|run| {
            compare_settings(path, &run.settings, &settings)?;
            if run.position.batch > 0 {
                compare_settings(path, &run.settings, &[self.config.metrics_setting()])?;
            }
            Measure::new(&ModelFacts::of::<M>(), metrics)?.restore(&run.metrics)
        })?;
        run.settings = settings;
        self.config.begin(0);
        self.go_on(model, &mut updater, data, run, self.config.epochs, RunScope::WholeRun)
    }

    /// One pass over more data, in its order if [`shuffle`](Self::shuffle) is off: for learning
    /// without an end, a piece of data at a time. The updater, from [`updater`](Self::updater),
    /// carries the optimizer's state from call to call. Schedules count its steps, and the epoch is
    /// always the first.
    ///
    /// For callbacks all calls are one run, without calls for its beginning and end. A callback
    /// that stops after a pass ends nothing. A metric that has no value on a piece of data is NaN
    /// in its report. [`Saga`](nnz_optim::Saga) computes its mean gradient anew for
    /// other data, [`Svrg`](nnz_optim::Svrg) for each piece.
    ///
    /// # Errors
    ///
    /// As [`fit`](Self::fit). [`TrainError::Stopped`] where a callback ended the pass between two
    /// batches.
    pub fn partial_fit<M, S>(
        &mut self,
        model: &mut M,
        updater: &mut Updater<R, M::Element>,
        data: &S,
    ) -> Result<EpochReport>
    where
        M: Model + EvaluatedOn<E>,
        S: DataSource<M::Element>,
    {
        let run = Run { settings: self.config.settings_to_save(data, None)?, ..Run::default() };
        let report = self.go_on(model, updater, data, run, 1, RunScope::OnePass)?;
        let stopped = || TrainError::Stopped { n_steps: updater.clock() }.into();
        report.epochs.into_iter().next().ok_or_else(stopped)
    }

    /// Trains from a position up to an epoch. Callbacks learn of the end if the part has one.
    fn go_on<M, S>(
        &mut self,
        model: &mut M,
        updater: &mut Updater<R, M::Element>,
        data: &S,
        run: Run,
        end: u64,
        scope: RunScope,
    ) -> Result<FitReport>
    where
        M: Model + EvaluatedOn<E>,
        S: DataSource<M::Element>,
    {
        let evaluation = M::evaluation(&self.evaluation);
        let mut epochs = EpochsOf::new(&self.rule, updater, model, data, evaluation);
        self.config.run(&mut epochs, run, end, scope)
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
        let rows_at_a_time = self.config.rows_at_a_time(&*model, S::IN_SEQUENCE);
        score(model, data, &self.config.metrics, rows_at_a_time)
    }

    /// The first output of a model for every sample, in order. The data needs no labels.
    ///
    /// # Errors
    ///
    /// As [`predict`].
    pub fn predict<M, S>(&self, model: &mut M, data: &S) -> Result<Dense<M::Element>>
    where
        M: Model,
        S: DataSource<M::Element>,
    {
        let rows_at_a_time = self.config.rows_at_a_time(&*model, S::IN_SEQUENCE);
        predict(model, data, rows_at_a_time)
    }
}

//! What a trainer does: it fits, goes on, scores and predicts.

use super::checkpoint::Run;
use super::checkpoint::run::{compare_settings, load_run_if};
use super::evaluation::Evaluation;
use super::measure::Measure;
use super::report::{EpochReport, FitReport, ScoreReport};
use super::score::{predict, score};
use super::steps::{Part, StepsBy};
use super::{TrainError, Trainer};
use crate::data::{DataSource, Position};
use crate::error::Result;
use crate::formats::Dense;
use crate::model::Model;
use crate::optimizer::Updater;
use sparse_core::update_rules::UpdateRule;
use std::ops::Range;
use std::path::Path;

impl<R: UpdateRule, E> Trainer<'_, R, E> {
    /// Trains a model from its present parameters, with fresh optimizer state.
    ///
    /// # Errors
    ///
    /// Before the first step: options that make no sense, data that is not what the model declares, to train or to evaluate on, a metric
    /// that does not fit. Then [`TrainError::Diverged`], or [`TrainError::BeyondRange`] and [`TrainError::FirstStep`] where a number of the
    /// data is to blame; after an epoch [`TrainError::ScoreNotFinite`] and [`TrainError::NoValue`], of which no callback is told, so that
    /// nothing is saved; and whatever data and model report. The parameters are as the steps made so far left them.
    pub fn fit<M, S>(&mut self, model: &mut M, data: &S) -> Result<FitReport>
    where
        M: Model,
        S: DataSource<M::Element>,
        E: Evaluation<M::Element>,
    {
        let mut updater = self.updater(model)?;
        let settings = self.plan.settings_to_save(data, None)?;
        self.plan.begin(0);
        let run = Run { settings, ..Run::default() };
        self.go_on(model, &mut updater, data, run, self.plan.epochs, Part::Whole)
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
        let settings = self.plan.settings_to_save(data, None)?;
        let run = Run { position, settings, ..Run::default() };
        self.plan.begin(epochs.start);
        self.go_on(model, updater, data, run, epochs.end, Part::Epochs)
    }

    /// Goes on with a run that [`Checkpoints`](super::Checkpoints) saved, up to the trainer's number of epochs, on the same data: what comes of
    /// it, parameters, optimizer state and report, is to the bit what the run would have come to if it had not been ended; but the report has no
    /// more than the last [`KEPT_REPORTS`](super::checkpoint::KEPT_REPORTS) of the epochs that were made before.
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
        let settings = self.plan.settings(data, None)?;
        let metrics = &self.plan.metrics;
        let mut run = load_run_if(model, &mut updater, path, &|run| {
            compare_settings(path, &run.settings, &settings)?;
            if run.position.batch > 0 {
                compare_settings(path, &run.settings, &[self.plan.metrics_setting()])?;
            }
            Measure::new::<M>(metrics)?.restore(&run.metrics)
        })?;
        run.settings = settings;
        self.plan.begin(0);
        self.go_on(model, &mut updater, data, run, self.plan.epochs, Part::Whole)
    }

    /// One pass over some more data, in its order if [`shuffle`](Self::shuffle) is off: learning that goes on for ever, a
    /// piece of data at a time. The updater, from [`updater`](Self::updater), carries the optimizer's state from call to call;
    /// schedules count its steps, and the epoch is always the first. To callbacks all calls are one run, whose beginning and end they are not told
    /// of; what one says after a pass ends nothing. A metric that has no value on a piece of data is NaN in its report. [`Saga`](sparse_core::update_rules::Saga) computes its mean gradient anew for other data, as
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
        let run = Run { settings: self.plan.settings_to_save(data, None)?, ..Run::default() };
        let report = self.go_on(model, updater, data, run, 1, Part::Piece)?;
        let stopped = || TrainError::Stopped { n_steps: updater.clock() }.into();
        report.epochs.into_iter().next().ok_or_else(stopped)
    }

    /// Trains from where a run stands up to an epoch, of which callbacks are told if the part has an end.
    fn go_on<M, S>(
        &mut self,
        model: &mut M,
        updater: &mut Updater<R, M::Element>,
        data: &S,
        run: Run,
        end: u64,
        part: Part,
    ) -> Result<FitReport>
    where
        M: Model,
        S: DataSource<M::Element>,
        E: Evaluation<M::Element>,
    {
        let mut steps = StepsBy::new(&self.rule, updater);
        self.plan.go_on(&self.evaluation, model, &mut steps, data, run, end, part)
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
        let rows_at_a_time = self.plan.rows_at_a_time::<M, S>(model);
        score(model, data, &self.plan.metrics, rows_at_a_time)
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
        let rows_at_a_time = self.plan.rows_at_a_time::<M, S>(model);
        predict(model, data, rows_at_a_time)
    }
}

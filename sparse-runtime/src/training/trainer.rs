//! The trainer: what to do for how many epochs, and whom to tell.

use super::TrainError;
use super::epoch::{BatchHook, fit_epoch};
use super::measure::Measure;
use super::progress::{Progress, Reporter};
use super::reduced::Reduced;
use super::report::{EpochReport, FitReport, ScoreReport};
use super::score::{ROWS_AT_A_TIME, predict, score};
use crate::data::{Batch, BatchOptions, Batches, DataSource, Dataset, Labels, LastBatch, Order};
use crate::error::Result;
use crate::formats::Dense;
use crate::kernels::Parallel;
use crate::metric::Metric;
use crate::model::Model;
use crate::optimizer::{ParameterSpec, Updater};
use crate::schedule::Schedule;
use sparse_core::element::Float;
use sparse_core::update_rules::UpdateRule;
use std::fmt;
use std::ops::{ControlFlow, Range};
use std::time::Instant;

/// Trains models: an update rule, and how often, in what order and under whose eyes it is applied.
///
/// | | default |
/// |---|---|
/// | [`batch_size`](Self::batch_size) | 1 |
/// | [`epochs`](Self::epochs) | 10 |
/// | [`shuffle`](Self::shuffle), [`seed`](Self::seed) | in a new order every epoch, by seed 0 |
/// | [`last_batch`](Self::last_batch) | [`LastBatch::Short`] |
/// | [`schedule`](Self::schedule) | [`Schedule::Constant`] |
/// | weight decay | not on dense parameters of rank 0 and 1, see [`ParameterSpec::of_model`] |
/// | [`parallel`](Self::parallel) | one thread |
/// | [`progress`](Self::progress) | a bar on a terminal, else a line an epoch, to the error stream |
///
/// ```
/// use sparse_core::update_rules::Sgd;
/// use sparse_runtime::data::Dataset;
/// use sparse_runtime::metric::Mse;
/// use sparse_runtime::model::Model;
/// use sparse_runtime::training::{Progress, Trainer};
///
/// fn train<M: Model>(model: &mut M, data: &Dataset<M::Element>) -> sparse_runtime::Result<f64> {
///     let rule = Sgd { learning_rate: 0.05, momentum: 0.9, ..Sgd::default() };
///     let mut trainer = Trainer::new(rule)
///         .batch_size(32)
///         .epochs(10)
///         .metric(Mse)
///         .progress(Progress::Silent);
///     trainer.fit(model, data)?;
///     Ok(trainer.score(model, data)?.loss)
/// }
/// ```
pub struct Trainer<'a, R: UpdateRule, E = NoEvaluation> {
    rule: R,
    options: BatchOptions,
    epochs: u64,
    shuffle: bool,
    seed: u64,
    schedule: Schedule,
    metrics: Vec<Box<dyn Metric>>,
    evaluation: E,
    callbacks: Vec<Callback<'a>>,
    progress: Progress,
    decay_all: bool,
    scales: Vec<(String, Scale)>,
    clip_norm: Option<f64>,
    parallel: Parallel,
}

/// What is multiplied for one parameter, and by how much.
#[derive(Clone, Copy, Debug)]
enum Scale {
    WeightDecay(f64),
    LearningRate(f64),
}

type Callback<'a> = Box<dyn FnMut(&EpochReport) -> ControlFlow<()> + 'a>;

impl<R: UpdateRule> Trainer<'_, R> {
    /// A trainer with the defaults.
    pub fn new(rule: R) -> Self {
        Trainer {
            rule,
            options: BatchOptions::default(),
            epochs: 10,
            shuffle: true,
            seed: 0,
            schedule: Schedule::Constant,
            metrics: Vec::new(),
            evaluation: NoEvaluation,
            callbacks: Vec::new(),
            progress: Progress::Auto,
            decay_all: false,
            scales: Vec::new(),
            clip_norm: None,
            parallel: Parallel::Sequential,
        }
    }
}

impl<'a, R: UpdateRule, E> Trainer<'a, R, E> {
    /// The rows of a batch, at least 1.
    #[must_use]
    pub fn batch_size(mut self, batch_size: usize) -> Self {
        self.options.batch_size = batch_size;
        self
    }

    /// How often the data is gone through.
    #[must_use]
    pub fn epochs(mut self, epochs: u64) -> Self {
        self.epochs = epochs;
        self
    }

    /// What becomes of the rows that do not fill a batch.
    #[must_use]
    pub fn last_batch(mut self, last_batch: LastBatch) -> Self {
        self.options.last_batch = last_batch;
        self
    }

    /// Whether rows come in a new random order in every epoch, or as they lie. The order follows from
    /// [`seed`](Self::seed) and the number of the epoch, on every machine the same.
    #[must_use]
    pub fn shuffle(mut self, shuffle: bool) -> Self {
        self.shuffle = shuffle;
        self
    }

    /// The seed of the order.
    #[must_use]
    pub fn seed(mut self, seed: u64) -> Self {
        self.seed = seed;
        self
    }

    /// How the learning rate changes.
    #[must_use]
    pub fn schedule(mut self, schedule: Schedule) -> Self {
        self.schedule = schedule;
        self
    }

    /// One more metric, of the model's first output against its first label.
    #[must_use]
    pub fn metric(mut self, metric: impl Metric) -> Self {
        self.metrics.push(Box::new(metric));
        self
    }

    /// Data that the model is scored on after every epoch: a reference to a source, or an `Option` of one.
    #[must_use]
    pub fn evaluation<D>(self, data: D) -> Trainer<'a, R, D> {
        Trainer {
            rule: self.rule,
            options: self.options,
            epochs: self.epochs,
            shuffle: self.shuffle,
            seed: self.seed,
            schedule: self.schedule,
            metrics: self.metrics,
            evaluation: data,
            callbacks: self.callbacks,
            progress: self.progress,
            decay_all: self.decay_all,
            scales: self.scales,
            clip_norm: self.clip_norm,
            parallel: self.parallel,
        }
    }

    /// Somebody to tell after every epoch, who may end the run by `ControlFlow::Break(())`.
    #[must_use]
    pub fn callback(mut self, callback: impl FnMut(&EpochReport) -> ControlFlow<()> + 'a) -> Self {
        self.callbacks.push(Box::new(callback));
        self
    }

    /// What is printed.
    #[must_use]
    pub fn progress(mut self, progress: Progress) -> Self {
        self.progress = progress;
        self
    }

    /// Parameters that weight decay leaves alone, besides those that it does anyway.
    #[must_use]
    pub fn weight_decay_exempt<N: Into<String>>(
        mut self,
        names: impl IntoIterator<Item = N>,
    ) -> Self {
        let exempt = |name: N| (name.into(), Scale::WeightDecay(0.0));
        self.scales.extend(names.into_iter().map(exempt));
        self
    }

    /// Multiplies the penalties of one parameter, weight decay and L1, by a number of its own in place of 1, or of 0 for a
    /// dense parameter of rank 0 or 1.
    #[must_use]
    pub fn weight_decay_scale(mut self, parameter: impl Into<String>, scale: f64) -> Self {
        self.scales.push((parameter.into(), Scale::WeightDecay(scale)));
        self
    }

    /// Multiplies the learning rate of one parameter.
    #[must_use]
    pub fn learning_rate_scale(mut self, parameter: impl Into<String>, scale: f64) -> Self {
        self.scales.push((parameter.into(), Scale::LearningRate(scale)));
        self
    }

    /// Clips the gradient of each step, of all parameters together, to this norm: see
    /// [`Model::clipped_step`]. `None`, the default, does not.
    #[must_use]
    pub fn clip_norm(mut self, max_norm: impl Into<Option<f64>>) -> Self {
        self.clip_norm = max_norm.into();
        self
    }

    /// How many threads the steps of large batches may use, and kernels: [`Model::set_parallel`]. The results have the same bits
    /// whatever this says.
    #[must_use]
    pub fn parallel(mut self, parallel: Parallel) -> Self {
        self.parallel = parallel;
        self
    }

    /// Weight decay on every parameter that [`weight_decay_exempt`](Self::weight_decay_exempt) does not name,
    /// biases included.
    #[must_use]
    pub fn decay_all(mut self) -> Self {
        self.decay_all = true;
        self
    }

    /// The updater that [`fit`](Self::fit) trains with: for runs that are to be continued.
    ///
    /// # Errors
    ///
    /// A hyperparameter or scale that makes no sense, a scale of a parameter that the model does not have.
    pub fn updater<M: Model>(&self, model: &M) -> Result<Updater<R, M::Element>> {
        let mut specs = ParameterSpec::of_model(model);
        if self.decay_all {
            for spec in &mut specs {
                spec.weight_decay_scale = 1.0;
            }
        }
        for (name, scale) in &self.scales {
            match (specs.iter_mut().find(|spec| spec.name == *name), scale) {
                (Some(spec), Scale::WeightDecay(scale)) => spec.weight_decay_scale = *scale,
                (Some(spec), Scale::LearningRate(scale)) => spec.learning_rate_scale = *scale,
                (None, _) => {
                    let known: Vec<_> = M::PARAMETERS.iter().map(|info| info.name).collect();
                    return Err(TrainError::UnknownParameter {
                        model: M::NAME,
                        name: name.clone(),
                        known: known.join(", "),
                    }
                    .into());
                }
            }
        }
        Updater::new(self.rule.clone(), specs)
    }

    /// Trains a model from its present parameters, with fresh optimizer state.
    ///
    /// # Errors
    ///
    /// Before the first step: options that make no sense, data that is not what the model declares, a metric
    /// that does not fit. Then [`TrainError::Diverged`], and whatever data and model report. The parameters
    /// are as the steps made so far left them.
    pub fn fit<M, S>(&mut self, model: &mut M, data: &S) -> Result<FitReport>
    where
        M: Model,
        S: DataSource<M::Element>,
        E: Evaluation<M::Element>,
    {
        let mut updater = self.updater(model)?;
        self.fit_epochs(model, &mut updater, data, 0..self.epochs)
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
        self.schedule.check()?;
        if let Some(value) = self.clip_norm.filter(|norm| norm.is_nan() || *norm <= 0.0) {
            return Err(TrainError::ClipNorm { value }.into());
        }
        let order =
            if self.shuffle { Order::Shuffled { seed: self.seed } } else { Order::Sequential };
        let options = BatchOptions { order, labels: Labels::Required, ..self.options };
        let mut batches = data.batches(M::INPUTS, &options)?;
        let base_rate = self.rule.learning_rate();
        let mut hook = Hook {
            measure: Measure::new::<M>(&self.metrics)?,
            reporter: Reporter::new(self.progress),
            schedule: self.schedule.changes_by_step().then_some(&self.schedule),
            base_rate,
            max_norm: self.clip_norm,
        };
        model.set_parallel(self.parallel);
        updater.set_records_outputs(!hook.measure.is_empty());
        let mut reduced = Reduced::new(updater, model, data, &options, self.clip_norm)?;
        let mut report = FitReport::default();
        for epoch in epochs.clone() {
            let span = tracing::info_span!("epoch", number = epoch + 1);
            let _entered = span.enter();
            // Constant within the epoch, unless the hook sets it at every step.
            let factor = self.schedule.factor(updater.clock(), epoch);
            updater.set_learning_rate(base_rate * factor)?;
            batches.start_epoch(epoch)?;
            hook.reporter.start_epoch(epoch, epochs.end, batches.n_batches());
            let start = Instant::now();
            let totals = match &mut reduced {
                Some(reduced) if R::CORRECTS => {
                    reduced.fit_epoch(model, updater, &mut batches, epoch, &mut hook)?
                }
                _ => fit_epoch(model, updater, &mut batches, epoch, &mut hook)?,
            };
            let seconds = start.elapsed().as_secs_f64();
            // Rows that roll over may fill no batch yet.
            if totals.n_rows == 0 && options.last_batch != LastBatch::RollOver {
                return Err(TrainError::NoRows.into());
            }
            let evaluation = match self.evaluation.source() {
                Some(data) => Some(score(model, data, &self.metrics, self.rows_at_a_time())?),
                None => None,
            };
            let epoch_report = EpochReport {
                epoch,
                epochs: epochs.end,
                loss: totals.mean_loss(),
                metrics: hook.measure.take(),
                evaluation,
                learning_rate: updater.learning_rate(),
                n_rows: totals.n_rows,
                seconds,
            };
            tracing::info!(loss = epoch_report.loss, seconds, "trained");
            hook.reporter.end_epoch(&epoch_report);
            let mut stop = false;
            for callback in &mut self.callbacks {
                // Everybody is told, whoever ends the run.
                stop |= callback(&epoch_report).is_break();
            }
            report.epochs.push(epoch_report);
            if stop {
                report.stopped = epoch + 1 < epochs.end;
                break;
            }
        }
        if let Some(reduced) = reduced {
            reduced.finish(updater);
        }
        Ok(report)
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

    fn rows_at_a_time(&self) -> usize {
        self.options.batch_size.max(ROWS_AT_A_TIME)
    }
}

/// Everything but data and callbacks.
impl<R: UpdateRule, E> fmt::Debug for Trainer<'_, R, E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let metrics: Vec<_> = self.metrics.iter().map(|metric| metric.name()).collect();
        f.debug_struct("Trainer")
            .field("rule", &self.rule)
            .field("options", &self.options)
            .field("epochs", &self.epochs)
            .field("shuffle", &self.shuffle)
            .field("seed", &self.seed)
            .field("schedule", &self.schedule)
            .field("metrics", &metrics)
            .field("progress", &self.progress)
            .field("decay_all", &self.decay_all)
            .field("scales", &self.scales)
            .field("clip_norm", &self.clip_norm)
            .field("parallel", &self.parallel)
            .finish_non_exhaustive()
    }
}

/// What a [`Trainer`] evaluates on after every epoch: nothing, a source, or perhaps a source.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is no data to evaluate a model of `{T}` on",
    note = "give a reference to a data set of the element type of the model: `.evaluation(&data)`"
)]
pub trait Evaluation<T: Float> {
    /// The source.
    type Source: DataSource<T>;

    /// The source, if there is one.
    fn source(&self) -> Option<&Self::Source>;
}

/// No evaluation.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoEvaluation;

impl<T: Float> Evaluation<T> for NoEvaluation {
    type Source = Dataset<T>;

    fn source(&self) -> Option<&Dataset<T>> {
        None
    }
}

impl<T: Float, D: DataSource<T>> Evaluation<T> for &D {
    type Source = D;

    fn source(&self) -> Option<&D> {
        Some(self)
    }
}

impl<T: Float, D: DataSource<T>> Evaluation<T> for Option<&D> {
    type Source = D;

    fn source(&self) -> Option<&D> {
        *self
    }
}

/// What the trainer does around each step.
struct Hook<'s> {
    measure: Measure,
    reporter: Reporter,
    /// Where the rate changes by step.
    schedule: Option<&'s Schedule>,
    base_rate: f64,
    max_norm: Option<f64>,
}

impl<M: Model> BatchHook<M> for Hook<'_> {
    #[inline(always)]
    fn learning_rate(&mut self, step: u64, epoch: u64) -> Option<f64> {
        let schedule = self.schedule?;
        Some(self.base_rate * schedule.factor(step, epoch))
    }

    #[inline(always)]
    fn max_norm(&self) -> Option<f64> {
        self.max_norm
    }

    #[inline(always)]
    fn sees_steps(&self) -> bool {
        self.schedule.is_some() || !self.measure.is_empty()
    }

    fn after_steps(&mut self, _: &M, n_steps: u64) -> Result<()> {
        self.reporter.advance(n_steps);
        Ok(())
    }

    #[inline(always)]
    fn after_step<'b, B: Batch<'b, M::Element>>(
        &mut self,
        model: &M,
        batch: &B,
        _loss: f64,
    ) -> Result<()> {
        self.reporter.advance(1);
        self.measure.update(model, batch)
    }
}

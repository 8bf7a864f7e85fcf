//! The trainer: its settings, as builder methods.

use super::callback::Callback;
use super::evaluation::NoEvaluation;
use super::progress::Progress;
use super::trainer_config::{Scale, TrainerConfig};
use crate::error::Result;
use crate::metric::Metric;
use crate::schedule::Schedule;
use nnz_arrays::kernels::Parallel;
use nnz_data::LastBatch;
use nnz_optim::UpdateRule;
use nnz_step::model::Model;
use nnz_step::optimizer::Updater;
use std::fmt;

/// Trains models: an update rule, with the number and order of epochs, metrics, evaluation and
/// callbacks.
///
/// | | default |
/// |---|---|
/// | [`batch_size`](Self::batch_size) | 1 |
/// | [`epochs`](Self::epochs) | 10 |
/// | [`shuffle`](Self::shuffle), [`seed`](Self::seed) | a new order of the samples in every epoch, by seed 0 |
/// | [`last_batch`](Self::last_batch) | [`LastBatch::Short`] |
/// | [`schedule`](Self::schedule) | [`Schedule::Constant`] |
/// | weight decay | not on dense parameters of rank 0 and 1, see [`ParameterSpec::of_model`](nnz_step::optimizer::ParameterSpec::of_model) |
/// | [`parallel`](Self::parallel) | one thread |
/// | [`leaves`](Self::leaves) | 8, where workers divide batches |
/// | [`progress`](Self::progress) | to the error stream: a bar on a terminal, otherwise a line an epoch |
///
/// ```
/// use nnz::core::update_rules::Sgd;
/// use nnz::data::Dataset;
/// use nnz::metric::Mse;
/// use nnz::model::Model;
/// use nnz::training::{Progress, Trainer};
///
/// fn train<M: Model>(model: &mut M, data: &Dataset<M::Element>) -> nnz::Result<f64> {
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
    pub(super) rule: R,
    pub(super) evaluation: E,
    pub(super) config: TrainerConfig<'a>,
}

impl<R: UpdateRule> Trainer<'_, R> {
    /// A trainer with the default settings.
    pub fn new(rule: R) -> Self {
        Trainer { rule, evaluation: NoEvaluation, config: TrainerConfig::default() }
    }
}

impl<'a, R: UpdateRule, E> Trainer<'a, R, E> {
    /// The number of samples of a batch, at least 1.
    #[must_use]
    pub fn batch_size(mut self, batch_size: usize) -> Self {
        self.config.options.batch_size = batch_size;
        self
    }

    /// The number of passes over the data.
    #[must_use]
    pub fn epochs(mut self, epochs: u64) -> Self {
        self.config.epochs = epochs;
        self
    }

    /// What happens to the last samples, which do not fill a batch.
    #[must_use]
    pub fn last_batch(mut self, last_batch: LastBatch) -> Self {
        self.config.options.last_batch = last_batch;
        self
    }

    /// Whether samples come in a new random order in every epoch, or in the order of the data. The
    /// order is a function of [`seed`](Self::seed) and the number of the epoch, the same on every
    /// machine.
    #[must_use]
    pub fn shuffle(mut self, shuffle: bool) -> Self {
        self.config.shuffle = shuffle;
        self
    }

    /// The seed of the order of the samples.
    #[must_use]
    pub fn seed(mut self, seed: u64) -> Self {
        self.config.seed = seed;
        self
    }

    /// How the learning rate changes with steps or epochs.
    #[must_use]
    pub fn schedule(mut self, schedule: Schedule) -> Self {
        self.config.schedule = schedule;
        self
    }

    /// Adds a metric of the model's first output against its first label.
    #[must_use]
    pub fn metric(mut self, metric: impl Metric) -> Self {
        self.config.metrics.push(Box::new(metric));
        self
    }

    /// Data on which the model is scored after every epoch: a reference to a source, or an `Option`
    /// of one.
    #[must_use]
    pub fn evaluation<D>(self, data: D) -> Trainer<'a, R, D> {
        Trainer { rule: self.rule, evaluation: data, config: self.config }
    }

    /// Adds a callback, which is called after every epoch, and between batches if it asks for that.
    /// It may end the run. It is a closure `|report: &EpochReport| …`,
    /// [`EarlyStopping`](super::EarlyStopping), [`BestModel`](super::BestModel),
    /// [`Checkpoints`](super::Checkpoints), or a [`Callback`] of your own.
    #[must_use]
    pub fn callback(mut self, callback: impl Callback + 'a) -> Self {
        self.config.callbacks.push(Box::new(callback));
        self
    }

    /// The progress that is printed.
    #[must_use]
    pub fn progress(mut self, progress: Progress) -> Self {
        self.config.progress = progress;
        self
    }

    /// Exempts parameters from weight decay, besides those that do not decay by their uses.
    #[must_use]
    pub fn weight_decay_exempt<N: Into<String>>(
        mut self,
        names: impl IntoIterator<Item = N>,
    ) -> Self {
        let exempt = |name: N| (name.into(), Scale::WeightDecay(0.0));
        self.config.scales.extend(names.into_iter().map(exempt));
        self
    }

    /// Multiplies the penalties of one parameter, weight decay and L1, by `scale`. Without it the
    /// factor is 1, or 0 for a parameter that does not
    /// [decay](nnz_step::model::ParameterInfo::decays) by its uses.
    #[must_use]
    pub fn weight_decay_scale(mut self, parameter: impl Into<String>, scale: f64) -> Self {
        self.config.scales.push((parameter.into(), Scale::WeightDecay(scale)));
        self
    }

    /// Multiplies the learning rate of one parameter by `scale`.
    #[must_use]
    pub fn learning_rate_scale(mut self, parameter: impl Into<String>, scale: f64) -> Self {
        self.config.scales.push((parameter.into(), Scale::LearningRate(scale)));
        self
    }

    /// Clips the gradient of each step, of all parameters together, to this norm: see
    /// [`Model::clipped_step`]. `None`, the default, does not clip.
    #[must_use]
    pub fn clip_norm(mut self, max_norm: impl Into<Option<f64>>) -> Self {
        self.config.clip_norm = max_norm.into();
        self
    }

    /// The number of threads for kernels and for steps of large batches: [`Model::set_parallel`].
    /// The bits of results do not depend on it. Training refuses more than
    /// [`MAX_THREADS`](nnz_arrays::kernels::MAX_THREADS).
    #[must_use]
    pub fn parallel(mut self, parallel: Parallel) -> Self {
        self.config.parallel = parallel;
        self
    }

    /// The number of leaves of each batch, which [workers](Self::fit_on_threads) divide among
    /// themselves: a power of two. Bits of the result depend on it. No more workers than leaves
    /// have work.
    #[must_use]
    pub fn leaves(mut self, leaves: usize) -> Self {
        self.config.leaves = leaves;
        self
    }

    /// Adds a setting, by name, on which the result depends and which the trainer cannot know, such
    /// as how the data was made. It is saved with the run, and [`resume`](Self::resume) requires
    /// the same value. A setting that only one of the two has is not compared.
    #[must_use]
    pub fn setting(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.config.more_settings.push((name.into(), value.into()));
        self
    }

    /// Applies weight decay to every parameter that
    /// [`weight_decay_exempt`](Self::weight_decay_exempt) does not name, biases included.
    #[must_use]
    pub fn decay_all(mut self) -> Self {
        self.config.decay_all = true;
        self
    }

    /// The updater with which [`fit`](Self::fit) trains, for runs in several calls.
    ///
    /// # Errors
    ///
    /// A hyperparameter or scale out of its bounds, a scale of an unknown parameter,
    /// [`OptimizerError::NoState`](nnz_step::optimizer::OptimizerError::NoState).
    pub fn updater<M: Model>(&self, model: &M) -> Result<Updater<R, M::Element>> {
        let updater = Updater::new(self.rule.clone(), self.config.specs(model)?)?;
        updater.check_weights(model)?;
        Ok(updater)
    }

    /// Refuses an invalid schedule or norm before the first step.
    pub(super) fn check_settings(&self) -> Result<()> {
        self.config.check(R::NAME, R::ONE_RATE)
    }
}

/// Shows all settings but data and callbacks.
impl<R: UpdateRule, E> fmt::Debug for Trainer<'_, R, E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Trainer")
            .field("rule", &self.rule)
            .field("config", &self.config)
            .finish_non_exhaustive()
    }
}

//! The trainer: what to do for how many epochs, and whom to tell.

use super::callback::Callback;
use super::evaluation::NoEvaluation;
use super::plan::{Plan, Scale};
use super::progress::Progress;
use crate::data::LastBatch;
use crate::error::Result;
use crate::kernels::Parallel;
use crate::metric::Metric;
use crate::model::Model;
use crate::optimizer::Updater;
use crate::schedule::Schedule;
use sparse_core::update_rules::UpdateRule;
use std::fmt;

/// Trains models: an update rule, and how often, in what order and under whose eyes it is applied.
///
/// | | default |
/// |---|---|
/// | [`batch_size`](Self::batch_size) | 1 |
/// | [`epochs`](Self::epochs) | 10 |
/// | [`shuffle`](Self::shuffle), [`seed`](Self::seed) | in a new order every epoch, by seed 0 |
/// | [`last_batch`](Self::last_batch) | [`LastBatch::Short`] |
/// | [`schedule`](Self::schedule) | [`Schedule::Constant`] |
/// | weight decay | not on dense parameters of rank 0 and 1, see [`ParameterSpec::of_model`](crate::optimizer::ParameterSpec::of_model) |
/// | [`parallel`](Self::parallel) | one thread |
/// | [`leaves`](Self::leaves) | 8, where workers divide batches |
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
    pub(super) rule: R,
    pub(super) evaluation: E,
    pub(super) plan: Plan<'a>,
}

impl<R: UpdateRule> Trainer<'_, R> {
    /// A trainer with the defaults.
    pub fn new(rule: R) -> Self {
        Trainer { rule, evaluation: NoEvaluation, plan: Plan::default() }
    }
}

impl<'a, R: UpdateRule, E> Trainer<'a, R, E> {
    /// The rows of a batch, at least 1.
    #[must_use]
    pub fn batch_size(mut self, batch_size: usize) -> Self {
        self.plan.options.batch_size = batch_size;
        self
    }

    /// How often the data is gone through.
    #[must_use]
    pub fn epochs(mut self, epochs: u64) -> Self {
        self.plan.epochs = epochs;
        self
    }

    /// What becomes of the rows that do not fill a batch.
    #[must_use]
    pub fn last_batch(mut self, last_batch: LastBatch) -> Self {
        self.plan.options.last_batch = last_batch;
        self
    }

    /// Whether rows come in a new random order in every epoch, or as they lie. The order follows from
    /// [`seed`](Self::seed) and the number of the epoch, on every machine the same.
    #[must_use]
    pub fn shuffle(mut self, shuffle: bool) -> Self {
        self.plan.shuffle = shuffle;
        self
    }

    /// The seed of the order.
    #[must_use]
    pub fn seed(mut self, seed: u64) -> Self {
        self.plan.seed = seed;
        self
    }

    /// How the learning rate changes.
    #[must_use]
    pub fn schedule(mut self, schedule: Schedule) -> Self {
        self.plan.schedule = schedule;
        self
    }

    /// One more metric, of the model's first output against its first label.
    #[must_use]
    pub fn metric(mut self, metric: impl Metric) -> Self {
        self.plan.metrics.push(Box::new(metric));
        self
    }

    /// Data that the model is scored on after every epoch: a reference to a source, or an `Option` of one.
    #[must_use]
    pub fn evaluation<D>(self, data: D) -> Trainer<'a, R, D> {
        Trainer { rule: self.rule, evaluation: data, plan: self.plan }
    }

    /// Somebody to tell after every epoch, and between batches if asked for, who may end the run: a closure
    /// `|report: &EpochReport| …`, [`EarlyStopping`](super::EarlyStopping), [`BestModel`](super::BestModel),
    /// [`Checkpoints`](super::Checkpoints), or a [`Callback`] of your own.
    #[must_use]
    pub fn callback(mut self, callback: impl Callback + 'a) -> Self {
        self.plan.callbacks.push(Box::new(callback));
        self
    }

    /// What is printed.
    #[must_use]
    pub fn progress(mut self, progress: Progress) -> Self {
        self.plan.progress = progress;
        self
    }

    /// Parameters that weight decay leaves alone, besides those that it does anyway.
    #[must_use]
    pub fn weight_decay_exempt<N: Into<String>>(
        mut self,
        names: impl IntoIterator<Item = N>,
    ) -> Self {
        let exempt = |name: N| (name.into(), Scale::WeightDecay(0.0));
        self.plan.scales.extend(names.into_iter().map(exempt));
        self
    }

    /// Multiplies the penalties of one parameter, weight decay and L1, by a number of its own in
    /// place of 1, or of 0 for one that does not [decay](crate::model::ParameterInfo::decays) by
    /// its uses.
    #[must_use]
    pub fn weight_decay_scale(mut self, parameter: impl Into<String>, scale: f64) -> Self {
        self.plan.scales.push((parameter.into(), Scale::WeightDecay(scale)));
        self
    }

    /// Multiplies the learning rate of one parameter.
    #[must_use]
    pub fn learning_rate_scale(mut self, parameter: impl Into<String>, scale: f64) -> Self {
        self.plan.scales.push((parameter.into(), Scale::LearningRate(scale)));
        self
    }

    /// Clips the gradient of each step, of all parameters together, to this norm: see
    /// [`Model::clipped_step`]. `None`, the default, does not.
    #[must_use]
    pub fn clip_norm(mut self, max_norm: impl Into<Option<f64>>) -> Self {
        self.plan.clip_norm = max_norm.into();
        self
    }

    /// How many threads the steps of large batches may use, and kernels: [`Model::set_parallel`]. The results have the same bits
    /// whatever this says. Training refuses more than [`MAX_THREADS`](crate::kernels::MAX_THREADS).
    #[must_use]
    pub fn parallel(mut self, parallel: Parallel) -> Self {
        self.plan.parallel = parallel;
        self
    }

    /// Into how many parts each batch is cut that [workers](Self::fit_on_threads) divide among themselves, a power of two: bits of the result
    /// depend on it, and no more workers than that have something to compute.
    #[must_use]
    pub fn leaves(mut self, leaves: usize) -> Self {
        self.plan.leaves = leaves;
        self
    }

    /// What else the result depends on, by name, of which the trainer cannot know, such as how the data was made: it is saved with the run,
    /// which [`resume`](Self::resume) goes on with only where it is the same. What one of the two does not say is not compared.
    #[must_use]
    pub fn setting(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.plan.more_settings.push((name.into(), value.into()));
        self
    }

    /// Weight decay on every parameter that [`weight_decay_exempt`](Self::weight_decay_exempt) does not name,
    /// biases included.
    #[must_use]
    pub fn decay_all(mut self) -> Self {
        self.plan.decay_all = true;
        self
    }

    /// The updater that [`fit`](Self::fit) trains with: for runs that are to be continued.
    ///
    /// # Errors
    ///
    /// A hyperparameter or scale that makes no sense, a scale of a parameter that the model does not have,
    /// [`OptimizerError::NoState`](crate::optimizer::OptimizerError::NoState).
    pub fn updater<M: Model>(&self, model: &M) -> Result<Updater<R, M::Element>> {
        let updater = Updater::new(self.rule.clone(), self.plan.specs(model)?)?;
        updater.check_weights(model)?;
        Ok(updater)
    }

    /// Refuses a schedule and a norm that make no sense, before the first step.
    pub(super) fn check_settings(&self) -> Result<()> {
        self.plan.check(R::NAME, R::ONE_RATE)
    }
}

/// Everything but data and callbacks.
impl<R: UpdateRule, E> fmt::Debug for Trainer<'_, R, E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Trainer")
            .field("rule", &self.rule)
            .field("plan", &self.plan)
            .finish_non_exhaustive()
    }
}

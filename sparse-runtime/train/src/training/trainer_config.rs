//! The settings of a run that do not depend on the update rule: epochs, order, metrics, callbacks.

use super::TrainError;
use super::callback::Callback;
use super::progress::Progress;
use super::score::{ROWS_AT_A_TIME, fixed_batch};
use crate::error::Result;
use crate::metric::Metric;
use crate::schedule::Schedule;
use nnz_arrays::kernels::Parallel;
use nnz_data::{BatchOptions, DataSource, Labels, Order};
use nnz_step::model::{AnyModel, Extent, InputInfo, Model, ModelFacts};
use nnz_step::optimizer::ParameterSpec;
use sparse_core::element::Float;
use std::fmt;

/// All settings of a [`Trainer`](super::Trainer) but its rule and its evaluation data. Code that
/// needs no more is compiled once for all rules.
pub(super) struct TrainerConfig<'a> {
    pub(super) options: BatchOptions,
    pub(super) epochs: u64,
    pub(super) shuffle: bool,
    pub(super) seed: u64,
    pub(super) schedule: Schedule,
    pub(super) metrics: Vec<Box<dyn Metric>>,
    pub(super) callbacks: Vec<Box<dyn Callback + 'a>>,
    pub(super) progress: Progress,
    pub(super) decay_all: bool,
    pub(super) scales: Vec<(String, Scale)>,
    pub(super) clip_norm: Option<f64>,
    pub(super) parallel: Parallel,
    pub(super) leaves: usize,
    pub(super) more_settings: Vec<(String, String)>,
    /// By parameter: whether the run has warned of its numbers.
    pub(super) warned: Vec<bool>,
}

/// A factor for one parameter, and the quantity that it multiplies.
#[derive(Clone, Copy, Debug)]
pub(super) enum Scale {
    WeightDecay(f64),
    LearningRate(f64),
}

impl Default for TrainerConfig<'_> {
    fn default() -> Self {
        TrainerConfig {
            options: BatchOptions::default(),
            epochs: 10,
            shuffle: true,
            seed: 0,
            schedule: Schedule::Constant,
            metrics: Vec::new(),
            callbacks: Vec::new(),
            progress: Progress::Auto,
            decay_all: false,
            scales: Vec::new(),
            clip_norm: None,
            parallel: Parallel::Sequential,
            leaves: 8,
            more_settings: Vec::new(),
            warned: Vec::new(),
        }
    }
}

impl TrainerConfig<'_> {
    /// The update settings of each parameter of a model.
    ///
    /// # Errors
    ///
    /// A scale of an unknown parameter.
    pub(super) fn specs<M: Model>(&self, model: &M) -> Result<Vec<ParameterSpec>> {
        self.specs_of(M::NAME, ParameterSpec::of_model(model))
    }

    fn specs_of(
        &self,
        model: &'static str,
        mut specs: Vec<ParameterSpec>,
    ) -> Result<Vec<ParameterSpec>> {
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
                    let known: Vec<_> = specs.iter().map(|spec| &*spec.name).collect();
                    return Err(TrainError::UnknownParameter {
                        model,
                        name: name.clone(),
                        known: known.join(", "),
                    }
                    .into());
                }
            }
        }
        Ok(specs)
    }

    /// The settings on which the result of a run depends besides the updater, by name: those of the
    /// trainer, and the data. Workers add gradients by `leaves`.
    pub(super) fn settings<T: Float>(
        &self,
        data: &impl DataSource<T>,
        leaves: Option<usize>,
    ) -> Result<Vec<(String, String)>> {
        let (n_rows, buffer) = (data.n_rows(), data.shuffle_buffer());
        Ok(self.settings_of(n_rows, buffer, data.fingerprint()?, leaves))
    }

    fn settings_of(
        &self,
        n_rows: Option<usize>,
        buffer: Option<usize>,
        fingerprint: Option<u64>,
        leaves: Option<usize>,
    ) -> Vec<(String, String)> {
        let order = self.order();
        let mut settings = vec![
            ("batch_size", self.options.batch_size.to_string()),
            ("last_batch", format!("{:?}", self.options.last_batch)),
            ("order", format!("{order:?}")),
            ("schedule", format!("{:?}", self.schedule)),
            ("clip_norm", format!("{:?}", self.clip_norm)),
            (
                "leaves",
                leaves.map_or("none, without workers".to_owned(), |leaves| leaves.to_string()),
            ),
        ];
        settings.extend(n_rows.map(|n_rows| ("rows of the data", n_rows.to_string())));
        // Rows that come as they lie do so whatever the buffer is.
        let buffer = buffer.filter(|_| self.shuffle);
        settings.extend(buffer.map(|bytes| ("buffer of the stream", format!("{bytes} bytes"))));
        let settings = settings.into_iter().map(|(name, value)| (name.to_owned(), value));
        let mut settings: Vec<_> = settings.chain(self.more_settings.iter().cloned()).collect();
        // Last: what else differs says more.
        settings.extend(fingerprint.map(|fingerprint| {
            ("fingerprint of the data".to_owned(), format!("{fingerprint:016x}"))
        }));
        settings
    }

    /// The [`settings`](Self::settings) of a new run. Only callbacks can save them.
    pub(super) fn settings_to_save<T: Float>(
        &self,
        data: &impl DataSource<T>,
        leaves: Option<usize>,
    ) -> Result<Vec<(String, String)>> {
        if self.callbacks.is_empty() { Ok(Vec::new()) } else { self.settings(data, leaves) }
    }

    /// The settings that count within an epoch alone: its metrics continue from their state.
    pub(super) fn metrics_setting(&self) -> (String, String) {
        ("metrics".to_owned(), format!("{:?}", self.metrics))
    }

    fn order(&self) -> Order {
        if self.shuffle { Order::Shuffled { seed: self.seed } } else { Order::Sequential }
    }

    /// Refuses to shuffle samples that are the columns of an input as well, as the nodes of
    /// `csr[n, n]`: only its rows would change places.
    pub(super) fn check_order(&self, model: &ModelFacts) -> Result<()> {
        let is_of_samples = |extent: &Extent| matches!(extent, Extent::Named(_));
        let of_columns = |info: &&InputInfo| match info.shape {
            [samples, columns @ ..] => is_of_samples(samples) && columns.contains(samples),
            [] => false,
        };
        match model.inputs.iter().find(of_columns) {
            Some(info) if self.shuffle => {
                Err(TrainError::ShuffledColumns { model: model.name, input: info.name }.into())
            }
            _ => Ok(()),
        }
    }

    /// The batches of a run: size, order, last batch.
    pub(super) fn batch_options(&self) -> BatchOptions {
        BatchOptions { order: self.order(), labels: Labels::Required, ..self.options }
    }

    /// The number of samples of a batch of an evaluation or of predictions: the number that the
    /// model [fixes](fixed_batch), if it does; as in training, if states are carried from batch to
    /// batch; otherwise a large number, since every batch size gives the same.
    pub(super) fn rows_at_a_time<T: Float>(
        &self,
        model: &dyn AnyModel<T>,
        in_sequence: bool,
    ) -> usize {
        let carries = model.facts().writes_states && in_sequence;
        let least = if carries { 0 } else { ROWS_AT_A_TIME };
        fixed_batch(model).unwrap_or(self.options.batch_size.max(least))
    }

    /// Refuses an invalid schedule or norm before the first step by a rule of this name, which may
    /// forbid schedules.
    pub(super) fn check(&self, rule: &'static str, one_rate: bool) -> Result<()> {
        self.schedule.check()?;
        self.parallel.check("Trainer::parallel").map_err(TrainError::from)?;
        if one_rate && self.schedule != Schedule::Constant {
            return Err(TrainError::OneRate { rule }.into());
        }
        let names = || self.metrics.iter().map(|metric| metric.name());
        if let Some((_, name)) = names()
            .enumerate()
            .find(|(place, name)| names().take(*place).any(|other| other == *name))
        {
            return Err(TrainError::MetricNamedTwice { name }.into());
        }
        match self.clip_norm.filter(|norm| norm.is_nan() || *norm <= 0.0) {
            Some(value) => Err(TrainError::ClipNorm { value }.into()),
            None => Ok(()),
        }
    }

    /// Tells all callbacks that a run begins.
    pub(super) fn begin(&mut self, epoch: u64) {
        self.callbacks.iter_mut().for_each(|callback| callback.begin(epoch));
    }
}

impl fmt::Debug for TrainerConfig<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let metrics: Vec<_> = self.metrics.iter().map(|metric| metric.name()).collect();
        f.debug_struct("TrainerConfig")
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
            .field("leaves", &self.leaves)
            .field("more_settings", &self.more_settings)
            .finish_non_exhaustive()
    }
}

//! Callbacks that watch a value of each epoch: early stopping, the best model.

use super::checkpoint::Attachments;
use super::{Callback, EpochReport, Moment, TrainError};
use crate::error::Result;
use nnz_data::IdMap;
use std::ops::ControlFlow;
use std::path::PathBuf;

/// A value of each epoch, and whether small or large is better.
///
/// ```
/// use nnz::training::Watch;
///
/// let loss = Watch::default();
/// let auc = Watch::largest("auc");
/// ```
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Watch {
    /// A metric, or the loss.
    metric: Option<String>,
    is_largest: bool,
}

impl Watch {
    /// The metric of this name, smaller is better: on the evaluation set, or on the training data
    /// if there is none.
    pub fn smallest(metric: impl Into<String>) -> Self {
        Watch { metric: Some(metric.into()), is_largest: false }
    }

    /// The metric of this name, larger is better: on the evaluation set, or on the training data if
    /// there is none.
    pub fn largest(metric: impl Into<String>) -> Self {
        Watch { metric: Some(metric.into()), is_largest: true }
    }

    /// The value of an epoch. The loss is that on the evaluation set, or the progressive loss of
    /// training if there is none.
    ///
    /// # Errors
    ///
    /// [`TrainError::UnknownMetric`].
    pub fn value(&self, report: &EpochReport) -> Result<f64, TrainError> {
        let Some(name) = &self.metric else {
            return Ok(report.evaluation.as_ref().map_or(report.loss, |score| score.loss));
        };
        let value = match &report.evaluation {
            Some(score) => score.metric(name),
            None => report.metric(name),
        };
        value.ok_or_else(|| {
            let known: Vec<_> = report.metrics.iter().map(|(name, _)| &name[..]).collect();
            TrainError::unknown_metric(name, &known)
        })
    }

    /// With a name, the key that distinguishes the state of a callback on this value from others.
    fn key(&self, name: &'static str) -> (String, Option<String>, bool) {
        (name.to_owned(), self.metric.clone(), self.is_largest)
    }

    /// The [`value`](Self::value) of an epoch. `None` where there is none, as of samples that have
    /// not filled a batch yet.
    ///
    /// # Errors
    ///
    /// As it; [`TrainError::WatchedNotANumber`].
    fn number(&self, report: &EpochReport) -> Result<Option<f64>, TrainError> {
        let value = self.value(report)?;
        if report.n_rows == 0 && report.evaluation.is_none() {
            return Ok(None);
        }
        if value.is_nan() {
            let watched = match &self.metric {
                Some(name) => format!("metric `{name}`"),
                None => "the loss".to_owned(),
            };
            return Err(TrainError::WatchedNotANumber { watched, epoch: report.epoch });
        }
        Ok(Some(value))
    }

    /// Whether `value` improves on `best` by more than `min_delta`.
    fn is_better(&self, value: f64, best: f64, min_delta: f64) -> bool {
        let gain = if self.is_largest { value - best } else { best - value };
        gain > min_delta
    }
}

/// Ends a run when a value has not improved for some epochs.
///
/// ```
/// use nnz::core::update_rules::Sgd;
/// use nnz::training::{EarlyStopping, Trainer, Watch};
///
/// let trainer = Trainer::new(Sgd::default())
///     .epochs(100)
///     .callback(EarlyStopping::patience(3).min_delta(1e-4))
///     .callback(EarlyStopping::patience(5).watch(Watch::largest("auc")));
/// ```
#[derive(Clone, Debug)]
pub struct EarlyStopping {
    patience: u64,
    min_delta: f64,
    watch: Watch,
    /// The best value of the run.
    best: Option<f64>,
    /// The number of epochs since.
    n_worse_epochs: u64,
}

impl EarlyStopping {
    /// Ends the run after this number of consecutive epochs without an improvement on the best one
    /// before them; 0 and 1 mean after the first.
    pub fn patience(patience: u64) -> Self {
        EarlyStopping {
            patience,
            min_delta: 0.0,
            watch: Watch::default(),
            best: None,
            n_worse_epochs: 0,
        }
    }

    /// The smallest improvement that counts.
    #[must_use]
    pub fn min_delta(mut self, min_delta: f64) -> Self {
        self.min_delta = min_delta;
        self
    }

    /// The watched value; the loss by default.
    #[must_use]
    pub fn watch(mut self, watch: Watch) -> Self {
        self.watch = watch;
        self
    }

    fn end_of_epoch(&mut self, report: &EpochReport) -> Result<ControlFlow<()>, TrainError> {
        let Some(value) = self.watch.number(report)? else {
            return Ok(ControlFlow::Continue(()));
        };
        let Some(best) =
            self.best.filter(|best| !self.watch.is_better(value, *best, self.min_delta))
        else {
            (self.best, self.n_worse_epochs) = (Some(value), 0);
            return Ok(ControlFlow::Continue(()));
        };
        self.n_worse_epochs = self.n_worse_epochs.saturating_add(1);
        if self.n_worse_epochs < self.patience {
            return Ok(ControlFlow::Continue(()));
        }
        tracing::info!(best, epochs_since = self.n_worse_epochs, "stopped early");
        Ok(ControlFlow::Break(()))
    }
}

impl Callback for EarlyStopping {
    fn watches(&self) -> Option<&str> {
        self.watch.metric.as_deref()
    }

    fn begin(&mut self, epoch: u64) {
        if epoch == 0 {
            (self.best, self.n_worse_epochs) = (None, 0);
        }
    }

    fn epoch(&mut self, report: &EpochReport, _: &Moment<'_>) -> Result<ControlFlow<()>> {
        Ok(self.end_of_epoch(report)?)
    }

    fn state(&self) -> Option<String> {
        let own = (self.watch.key("early stopping"), self.min_delta.to_bits());
        serde_json::to_string(&(own, self.best.map(f64::to_bits), self.n_worse_epochs)).ok()
    }

    fn restore(&mut self, state: &str) -> bool {
        let own = (self.watch.key("early stopping"), self.min_delta.to_bits());
        let Ok((found, best, worse)) = serde_json::from_str::<(_, Option<u64>, u64)>(state) else {
            return false;
        };
        if own == found {
            (self.best, self.n_worse_epochs) = (best.map(f64::from_bits), worse);
        }
        own == found
    }

    fn replay(&mut self, report: &EpochReport) -> ControlFlow<()> {
        // A missing metric is reported by the first epoch.
        self.end_of_epoch(report).unwrap_or(ControlFlow::Continue(()))
    }
}

/// Keeps the best model of a run in a file, which [`checkpoint::load`](super::checkpoint::load)
/// loads.
///
/// ```
/// use nnz::core::update_rules::Sgd;
/// use nnz::training::{BestModel, Trainer, Watch};
///
/// let best = BestModel::new("best.safetensors").watch(Watch::smallest("log_loss"));
/// let trainer = Trainer::new(Sgd::default()).callback(best);
/// ```
#[derive(Clone, Debug)]
pub struct BestModel {
    path: PathBuf,
    watch: Watch,
    notes: Vec<(String, String)>,
    ids: Vec<(String, IdMap)>,
    best: Option<f64>,
}

impl BestModel {
    /// Saves the parameters to this file after each epoch that is the best so far.
    pub fn new(path: impl Into<PathBuf>) -> Self {
        BestModel {
            path: path.into(),
            watch: Watch::default(),
            notes: Vec::new(),
            ids: Vec::new(),
            best: None,
        }
    }

    /// The watched value; the loss by default.
    #[must_use]
    pub fn watch(mut self, watch: Watch) -> Self {
        self.watch = watch;
        self
    }

    /// Adds a note to the file:
    /// [`checkpoint::save_with_notes`](super::checkpoint::save_with_notes).
    #[must_use]
    pub fn note(mut self, name: impl Into<String>, note: impl Into<String>) -> Self {
        self.notes.push((name.into(), note.into()));
        self
    }

    /// Adds a note that becomes known during a run; it replaces one of the same name.
    pub fn set_note(&mut self, name: impl Into<String>, note: impl Into<String>) {
        let name = name.into();
        self.notes.retain(|(known, _)| *known != name);
        self.notes.push((name, note.into()));
    }

    /// Adds the ids that the rows of a table stand for:
    /// [`checkpoint::save_with`](super::checkpoint::save_with).
    #[must_use]
    pub fn ids(mut self, name: impl Into<String>, ids: IdMap) -> Self {
        self.ids.push((name.into(), ids));
        self
    }

    /// Whether an epoch is the best so far; it counts from now on.
    fn is_best(&mut self, report: &EpochReport) -> Result<bool, TrainError> {
        let Some(value) = self.watch.number(report)? else { return Ok(false) };
        let is_best = self.best.is_none_or(|best| self.watch.is_better(value, best, 0.0));
        if is_best {
            self.best = Some(value);
        }
        Ok(is_best)
    }
}

impl Callback for BestModel {
    fn watches(&self) -> Option<&str> {
        self.watch.metric.as_deref()
    }

    fn begin(&mut self, epoch: u64) {
        if epoch == 0 {
            self.best = None;
        }
    }

    fn epoch(&mut self, report: &EpochReport, moment: &Moment<'_>) -> Result<ControlFlow<()>> {
        if self.is_best(report)? {
            let notes = self.notes.iter().map(|(name, note)| (&name[..], &note[..]));
            let ids = self.ids.iter().map(|(name, ids)| (&name[..], ids));
            let (notes, ids) = (notes.collect::<Vec<_>>(), ids.collect::<Vec<_>>());
            moment.save_model_with(&self.path, Attachments { notes: &notes, ids: &ids })?;
        }
        Ok(ControlFlow::Continue(()))
    }

    fn state(&self) -> Option<String> {
        serde_json::to_string(&(self.watch.key("best model"), self.best.map(f64::to_bits))).ok()
    }

    fn restore(&mut self, state: &str) -> bool {
        let own = self.watch.key("best model");
        let Ok((found, best)) = serde_json::from_str::<(_, Option<u64>)>(state) else {
            return false;
        };
        if own == found {
            self.best = best.map(f64::from_bits);
        }
        own == found
    }

    fn replay(&mut self, report: &EpochReport) -> ControlFlow<()> {
        let _ = self.is_best(report);
        ControlFlow::Continue(())
    }
}

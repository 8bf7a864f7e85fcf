//! Checkpoints of a run in progress.

use super::callback::next_multiple;
use super::{Callback, EpochReport, Moment};
use crate::error::Result;
use nnz_data::Position;
use std::ops::ControlFlow;
use std::path::PathBuf;

/// Saves a run to a file at intervals. [`Trainer::resume`](super::Trainer::resume) continues from
/// it, to the bit as if the run had not been interrupted. The file is replaced atomically: a killed
/// process leaves the old one or the new one.
///
/// ```
/// use nnz::core::update_rules::Sgd;
/// use nnz::training::{Checkpoints, Trainer};
///
/// let trainer = Trainer::new(Sgd::default())
///     .callback(Checkpoints::new("run.safetensors").every_batches(100_000));
/// ```
#[derive(Clone, Debug)]
pub struct Checkpoints {
    path: PathBuf,
    epochs: u64,
    batches: Option<u64>,
    /// The number of epochs made. Passes over pieces of data, which are all a first epoch, count as
    /// one each.
    made: u64,
    /// The position at the last save.
    saved: Option<Position>,
}

impl Checkpoints {
    /// Saves after every epoch.
    pub fn new(path: impl Into<PathBuf>) -> Self {
        Checkpoints { path: path.into(), epochs: 1, batches: None, made: 0, saved: None }
    }

    /// Saves after every `epochs` epochs, at least 1, and at the end of the run, also if a callback
    /// ends it. Passes of [`partial_fit`](super::Trainer::partial_fit) count as epochs, and have no
    /// end.
    #[must_use]
    pub fn every_epochs(mut self, epochs: u64) -> Self {
        self.epochs = epochs.max(1);
        self
    }

    /// Saves after every `batches` batches of an epoch as well, at least 1. The bits of the trained
    /// model do not depend on it.
    #[must_use]
    pub fn every_batches(mut self, batches: u64) -> Self {
        self.batches = Some(batches.max(1));
        self
    }
}

impl Checkpoints {
    fn save(&mut self, moment: &Moment<'_>) -> Result<()> {
        moment.save_run(&self.path)?;
        self.saved = Some(moment.position());
        Ok(())
    }
}

impl Callback for Checkpoints {
    fn begin(&mut self, epoch: u64) {
        (self.made, self.saved) = (epoch, None);
    }

    fn epoch(&mut self, report: &EpochReport, moment: &Moment<'_>) -> Result<ControlFlow<()>> {
        self.made = (self.made + 1).max(report.epoch + 1);
        if self.made.is_multiple_of(self.epochs) {
            self.save(moment)?;
        }
        Ok(ControlFlow::Continue(()))
    }

    fn replay(&mut self, report: &EpochReport) -> ControlFlow<()> {
        self.made = report.epoch + 1;
        ControlFlow::Continue(())
    }

    fn end(&mut self, moment: &Moment<'_>) -> Result<()> {
        if self.saved != Some(moment.position()) {
            self.save(moment)?;
        }
        Ok(())
    }

    fn next_batch(&self, n_batches: u64) -> Option<u64> {
        self.batches.map(|every| next_multiple(n_batches, every))
    }

    fn batch(&mut self, moment: &Moment<'_>) -> Result<ControlFlow<()>> {
        self.save(moment)?;
        Ok(ControlFlow::Continue(()))
    }
}

//! The losses, samples and batches of an epoch so far.

use super::json;
use nnz_step::model::RowSteps;
use serde::{Deserialize, Serialize};

/// Totals of an epoch.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct EpochTotals {
    /// The sum over samples of the loss just before each was learnt from (progressive loss),
    /// without padding. The step of a padded batch
    /// ([`LastBatch::Pad`](nnz_data::LastBatch::Pad)) minimises the mean over all its samples,
    /// copies included; only the loss of the true samples counts here. For a model whose batches
    /// all have a fixed size each sample counts with the mean.
    #[serde(with = "json")]
    pub loss_sum: f64,
    /// The samples, without padding.
    pub n_rows: u64,
    /// The batches; each is one step.
    pub n_batches: u64,
}

impl EpochTotals {
    /// The mean loss over the samples; NaN over none.
    pub fn mean_loss(&self) -> f64 {
        self.loss_sum / self.n_rows as f64
    }

    /// Adds a batch of `n_rows` samples and `n_padding` copies, with its mean loss.
    #[inline(always)]
    pub(super) fn add(&mut self, loss: f64, n_rows: usize, n_padding: usize) {
        let n_rows = n_rows - n_padding.min(n_rows);
        self.loss_sum += loss * n_rows as f64;
        self.n_rows += n_rows as u64;
        self.n_batches += 1;
    }

    /// Adds the totals of another part of the epoch.
    pub(super) fn extend(&mut self, part: &EpochTotals) {
        self.loss_sum += part.loss_sum;
        self.n_rows += part.n_rows;
        self.n_batches += part.n_batches;
    }

    /// Adds batches of one sample.
    #[inline]
    pub(super) fn add_rows(&mut self, steps: &RowSteps) {
        self.loss_sum += steps.loss_sum;
        self.n_rows += steps.n_steps as u64;
        self.n_batches += steps.n_steps as u64;
    }
}

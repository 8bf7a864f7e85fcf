//! The progressive loss within an epoch.

use super::callback::next_multiple;
use super::{Callback, EpochReport, EpochTotals, Moment};
use crate::error::Result;
use std::fmt;
use std::io::{self, Write};
use std::ops::ControlFlow;

/// Reports the progressive loss within an epoch, as Vowpal Wabbit does: the mean loss of samples
/// just before they are learnt from. In the first epoch it is an honest estimate of the loss on
/// unseen samples. Steps stay as fast as without it.
///
/// ```
/// use nnz::core::update_rules::Sgd;
/// use nnz::training::{ProgressiveLoss, Trainer};
///
/// // Lines on the error stream after 1, 2, 4, 8, … batches.
/// let trainer = Trainer::new(Sgd::default()).callback(ProgressiveLoss::doubling());
///
/// let mut curve = Vec::new();
/// let by_hand = ProgressiveLoss::every(1000).to(|line| curve.push((line.n_rows, line.loss)));
/// ```
pub struct ProgressiveLoss<'a> {
    /// After every `n` batches, or after each doubling.
    every: Option<u64>,
    tell: Box<dyn FnMut(&ProgressiveLine) + 'a>,
    /// The totals of the epoch at the last line.
    before: EpochTotals,
}

/// A line: `epoch 1 8192 rows loss 0.412345 since last 0.398765`.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct ProgressiveLine {
    /// The epoch, from zero.
    pub epoch: u64,
    /// The samples of the epoch so far.
    pub n_rows: u64,
    /// The mean loss over them.
    pub loss: f64,
    /// The mean loss over the samples since the last line; at the first line of a run that is
    /// resumed within an epoch, over the epoch so far.
    pub since_last: f64,
}

impl fmt::Display for ProgressiveLine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ProgressiveLine { epoch, n_rows, loss, since_last } = self;
        let number = epoch + 1;
        write!(f, "epoch {number} {n_rows:>11} rows  loss {loss:.6}  since last {since_last:.6}")
    }
}

impl<'a> ProgressiveLoss<'a> {
    /// A line after 1, 2, 4, 8, … batches of each epoch.
    pub fn doubling() -> Self {
        ProgressiveLoss { every: None, tell: Box::new(print), before: EpochTotals::default() }
    }

    /// A line after every `batches` batches of each epoch, at least 1.
    pub fn every(batches: u64) -> Self {
        ProgressiveLoss { every: Some(batches.max(1)), ..ProgressiveLoss::doubling() }
    }

    /// Sends lines to `tell` in place of the error stream.
    #[must_use]
    pub fn to<'b>(self, tell: impl FnMut(&ProgressiveLine) + 'b) -> ProgressiveLoss<'b> {
        ProgressiveLoss { every: self.every, tell: Box::new(tell), before: self.before }
    }
}

/// A closed stream is ignored.
fn print(line: &ProgressiveLine) {
    let _ = writeln!(io::stderr(), "{line}");
}

impl Callback for ProgressiveLoss<'_> {
    fn begin(&mut self, _: u64) {
        self.before = EpochTotals::default();
    }

    fn epoch(&mut self, _: &EpochReport, _: &Moment<'_>) -> Result<ControlFlow<()>> {
        self.before = EpochTotals::default();
        Ok(ControlFlow::Continue(()))
    }

    fn next_batch(&self, n_batches: u64) -> Option<u64> {
        match self.every {
            Some(every) => Some(next_multiple(n_batches, every)),
            None => n_batches.checked_add(1)?.checked_next_power_of_two(),
        }
    }

    fn batch(&mut self, moment: &Moment<'_>) -> Result<ControlFlow<()>> {
        let totals = moment.totals();
        let n_rows = totals.n_rows - self.before.n_rows.min(totals.n_rows);
        (self.tell)(&ProgressiveLine {
            epoch: moment.position().epoch,
            n_rows: totals.n_rows,
            loss: totals.mean_loss(),
            since_last: (totals.loss_sum - self.before.loss_sum) / n_rows as f64,
        });
        self.before = *totals;
        Ok(ControlFlow::Continue(()))
    }
}

impl fmt::Debug for ProgressiveLoss<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ProgressiveLoss").field("every", &self.every).finish_non_exhaustive()
    }
}

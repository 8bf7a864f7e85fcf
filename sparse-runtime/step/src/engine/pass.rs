//! What a pass of a program over a batch is for.

use super::any_updater::AnyUpdater;
use sparse_core::element::Float;
use std::fmt;

/// What is made of a batch: training steps, or gradients.
pub enum Pass<'u, T: Float<Accumulator = T>> {
    /// A step for each of its samples, in order.
    EachSample(&'u mut dyn AnyUpdater<T>),
    /// One step.
    Batch(&'u mut dyn AnyUpdater<T>),
    /// One step by the gradients of all parameters, multiplied by one factor so that their common
    /// norm is at most this.
    Clipped(&'u mut dyn AnyUpdater<T>, f64),
    /// The gradients of all parameters, which stay as they are: in
    /// [`TrainedTable::gradient`](super::TrainedTable::gradient) and
    /// [`TrainedDense::gradient`](super::TrainedDense::gradient).
    Gradients,
}

impl<T: Float<Accumulator = T>> Pass<'_, T> {
    /// The samples that the mean of a loss is of, of a batch of `n_samples`.
    #[inline]
    pub fn samples_of_mean(&self, n_samples: usize) -> usize {
        if matches!(self, Pass::EachSample(_)) { 1 } else { n_samples }
    }

    /// Whether the outputs of a batch of `n_samples` are written. Those of samples that have a step
    /// each are not, unless there is one of them.
    pub fn records_outputs(&self, n_samples: usize) -> bool {
        match self {
            Pass::EachSample(updater) => n_samples == 1 && updater.records_outputs(),
            Pass::Batch(updater) | Pass::Clipped(updater, _) => updater.records_outputs(),
            Pass::Gradients => true,
        }
    }
}

impl<T: Float<Accumulator = T>> fmt::Debug for Pass<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Pass::EachSample(_) => "EachSample",
            Pass::Batch(_) => "Batch",
            Pass::Clipped(..) => "Clipped",
            Pass::Gradients => "Gradients",
        })
    }
}

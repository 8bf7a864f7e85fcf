//! What becomes of parameters while they are trained.

use super::callback::next_multiple;
use super::{Callback, EpochReport, Moment};
use crate::data::Position;
use crate::error::Result;
use serde::Serialize;
use std::fmt;
use std::ops::ControlFlow;

/// A parameter at a moment of training.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[non_exhaustive]
pub struct ParameterReport {
    /// Its name.
    pub name: &'static str,
    /// The root of the sum of the squares of its values.
    pub norm: f64,
    /// The same of its gradient, of the batch that was learnt from last, at the values that came of it: between batches, where somebody
    /// [asks](Callback::sees_gradients), of a parameter that is not frozen.
    pub gradient_norm: Option<f64>,
    /// Its rows.
    pub n_rows: u64,
    /// The rows with a value that is not 0.
    pub n_rows_not_zero: u64,
    /// The rows that batches have touched so far, where the updater keeps count: where rows that are not touched are to be caught up with.
    pub n_rows_touched: Option<u64>,
}

/// Tells norms of parameters and the rows touched after every epoch, and between batches if asked to, there also norms of gradients. O(values)
/// each time.
///
/// ```
/// use sparse_core::update_rules::Sgd;
/// use sparse_runtime::training::{Monitor, Trainer};
///
/// let mut norms = Vec::new();
/// let monitor = Monitor::new(|at, parameters| norms.push((at, parameters[0].norm)));
/// let trainer = Trainer::new(Sgd::default()).callback(monitor.every_batches(1000).gradients());
/// ```
pub struct Monitor<F> {
    tell: F,
    batches: Option<u64>,
    gradients: bool,
}

impl<F: FnMut(Position, &[ParameterReport])> Monitor<F> {
    /// With somebody to tell: which batch comes next, and all parameters in the order of their declaration.
    pub fn new(tell: F) -> Self {
        Monitor { tell, batches: None, gradients: false }
    }

    /// After every so many batches of an epoch as well, at least 1. There, rows may wait for steps that they missed.
    #[must_use]
    pub fn every_batches(mut self, batches: u64) -> Self {
        self.batches = Some(batches.max(1));
        self
    }

    /// Norms of gradients as well, between batches: one more gradient each time.
    #[must_use]
    pub fn gradients(mut self) -> Self {
        self.gradients = true;
        self
    }
}

impl<F: FnMut(Position, &[ParameterReport])> Callback for Monitor<F> {
    fn epoch(&mut self, _: &EpochReport, moment: &Moment<'_>) -> Result<ControlFlow<()>> {
        self.batch(moment)
    }

    fn next_batch(&self, n_batches: u64) -> Option<u64> {
        self.batches.map(|every| next_multiple(n_batches, every))
    }

    fn sees_gradients(&self) -> bool {
        self.gradients
    }

    fn batch(&mut self, moment: &Moment<'_>) -> Result<ControlFlow<()>> {
        (self.tell)(moment.position(), &moment.parameters());
        Ok(ControlFlow::Continue(()))
    }
}

impl<F> fmt::Debug for Monitor<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Monitor")
            .field("batches", &self.batches)
            .field("gradients", &self.gradients)
            .finish_non_exhaustive()
    }
}

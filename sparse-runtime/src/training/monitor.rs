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
    /// Its rows.
    pub n_rows: u64,
    /// The rows with a value that is not 0.
    pub n_rows_not_zero: u64,
    /// The rows that batches have touched so far, where the updater keeps count: where rows that are not touched are to be caught up with.
    pub n_rows_touched: Option<u64>,
}

/// Tells norms of parameters and the rows touched after every epoch, and between batches if asked to. O(values) each time.
///
/// ```
/// use sparse_core::update_rules::Sgd;
/// use sparse_runtime::training::{Monitor, Trainer};
///
/// let mut norms = Vec::new();
/// let monitor = Monitor::new(|at, parameters| norms.push((at, parameters[0].norm)));
/// let trainer = Trainer::new(Sgd::default()).callback(monitor.every_batches(1000));
/// ```
pub struct Monitor<F> {
    tell: F,
    batches: Option<u64>,
}

impl<F: FnMut(Position, &[ParameterReport])> Monitor<F> {
    /// With somebody to tell: which batch comes next, and all parameters in the order of their declaration.
    pub fn new(tell: F) -> Self {
        Monitor { tell, batches: None }
    }

    /// After every so many batches of an epoch as well, at least 1. There, rows may wait for steps that they missed.
    #[must_use]
    pub fn every_batches(mut self, batches: u64) -> Self {
        self.batches = Some(batches.max(1));
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

    fn batch(&mut self, moment: &Moment<'_>) -> Result<ControlFlow<()>> {
        (self.tell)(moment.position(), &moment.parameters());
        Ok(ControlFlow::Continue(()))
    }
}

impl<F> fmt::Debug for Monitor<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Monitor").field("batches", &self.batches).finish_non_exhaustive()
    }
}

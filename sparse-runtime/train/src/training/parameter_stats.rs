//! Norms and touched rows of parameters during training.

use super::callback::next_multiple;
use super::{Callback, EpochReport, Moment};
use crate::error::Result;
use nnz_data::Position;
use serde::Serialize;
use std::fmt;
use std::ops::ControlFlow;

/// A parameter at one point of training.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[non_exhaustive]
pub struct ParameterReport {
    /// Its name.
    pub name: &'static str,
    /// The root of the sum of the squares of its values.
    pub norm: f64,
    /// The norm of its gradient, for the last batch, at the values after its step. It is computed
    /// between batches, where a callback [asks](Callback::sees_gradients), for parameters that are
    /// not frozen.
    pub gradient_norm: Option<f64>,
    /// Its table rows.
    pub n_rows: u64,
    /// The table rows with a value that is not 0.
    pub n_rows_not_zero: u64,
    /// The table rows that batches have touched so far, where the updater counts them: for rules
    /// that catch up untouched rows.
    pub n_rows_touched: Option<u64>,
}

/// Reports norms of parameters and the rows touched after every epoch. On request it does so
/// between batches, with norms of gradients. After an epoch it costs what
/// [`Table::norms`](nnz_arrays::parameter_memory::Table::norms) does, between batches O(values).
///
/// ```
/// use nnz::core::update_rules::Sgd;
/// use nnz::training::{Monitor, Trainer};
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
    /// Calls `tell` with the position of the next batch, and all parameters in the order of
    /// declaration.
    pub fn new(tell: F) -> Self {
        Monitor { tell, batches: None, gradients: false }
    }

    /// Reports after every `batches` batches of an epoch as well, at least 1. Table rows may miss
    /// steps there.
    #[must_use]
    pub fn every_batches(mut self, batches: u64) -> Self {
        self.batches = Some(batches.max(1));
        self
    }

    /// Computes norms of gradients as well, between batches: one more gradient each time.
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

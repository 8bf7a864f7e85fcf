//! Batches without the type of their source.

use crate::error::Result;
use nnz_data::{Batch, Batches};
use sparse_core::element::Float;

/// What a batch is passed to.
pub(super) type Visit<'v, T> = &'v mut dyn FnMut(&dyn Batch<'_, T>) -> Result<()>;

/// The interface of [`Batches`] for code that is compiled once for all sources; methods are
/// documented there.
pub(super) trait AnyBatches<T: Float> {
    fn start_epoch(&mut self, epoch: u64) -> Result<()>;

    /// Passes the next batch of the epoch on; `false` at its end.
    fn visit_next(&mut self, visit: Visit<'_, T>) -> Result<bool>;
}

impl<T: Float, B: Batches<T>> AnyBatches<T> for B {
    fn start_epoch(&mut self, epoch: u64) -> Result<()> {
        Ok(Batches::start_epoch(self, epoch)?)
    }

    fn visit_next(&mut self, visit: Visit<'_, T>) -> Result<bool> {
        match self.next_batch()? {
            Some(batch) => visit(&batch).map(|()| true),
            None => Ok(false),
        }
    }
}

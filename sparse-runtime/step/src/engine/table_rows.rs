//! The rows of a trained table under a rule, behind one object: for whole batches, of which threads
//! share the work.

use super::sample_rows;
use super::table_reads::TableFacts;
use crate::column_partition::RowPart;
use crate::optimizer::{RowAccumulator, RowUpdater, RowWeights, UpdateKind};
use crate::scatter_gradient;
use nnz_arrays::formats::ColumnIdsView;
use nnz_arrays::with_column_ids;
use nnz_optim::UpdateRule;
use sparse_core::element::Float;

/// The rows of a trained table during one step.
pub(crate) trait TableRows<T: Float<Accumulator = T>> {
    /// What is known of them.
    fn facts(&self) -> TableFacts;

    /// Prefetches rows. Any ids will do.
    fn prefetch(&mut self, ids: ColumnIdsView<'_>);

    /// Gives rows the steps that they missed.
    ///
    /// # Safety
    ///
    /// The ids are below the rows.
    unsafe fn catch_up(&mut self, ids: ColumnIdsView<'_>);

    /// The weights. Nothing may write them while they are read.
    fn weights(&mut self) -> RowWeights<'_, T>;

    /// The sums of gradients by rows, and the weights.
    fn sums_and_weights(&mut self) -> (&mut RowAccumulator, RowWeights<'_, T>);

    /// Updates each summed row by its sum, and forgets the sums. The rows were caught up in this
    /// step.
    fn apply_sums(&mut self);

    /// Sums and updates parts of the rows, each part on one thread. `sum(place, part, weights)`
    /// sums the gradients of the rows of a part, no row in two parts.
    fn update_parts(&mut self, parts: &mut [RowPart<T>], sum: &SumOfPart<'_, T>);
}

/// Sums the gradients of the rows of a part.
pub(super) type SumOfPart<'f, T> = dyn Fn(usize, &mut RowPart<T>, RowWeights<'_, T>) + Sync + 'f;

impl<R: UpdateRule, T: Float<Accumulator = T>, K: UpdateKind> TableRows<T>
    for RowUpdater<'_, R, T, K>
{
    fn facts(&self) -> TableFacts {
        sample_rows::facts(self)
    }

    fn prefetch(&mut self, ids: ColumnIdsView<'_>) {
        let row_size = self.row_size();
        with_column_ids!(ids, |ids| self.prefetch_each(row_size, ids));
    }

    unsafe fn catch_up(&mut self, ids: ColumnIdsView<'_>) {
        let (cursor, mut settling) = self.split(self.row_size());
        // SAFETY: promised by the caller.
        with_column_ids!(ids, |ids| unsafe { settling.settle_each(cursor, ids, false) });
    }

    fn weights(&mut self) -> RowWeights<'_, T> {
        self.weights_to_read()
    }

    fn sums_and_weights(&mut self) -> (&mut RowAccumulator, RowWeights<'_, T>) {
        RowUpdater::sums_and_weights(self)
    }

    fn apply_sums(&mut self) {
        self.apply_settled();
    }

    fn update_parts(&mut self, parts: &mut [RowPart<T>], sum: &SumOfPart<'_, T>) {
        scatter_gradient::update_parts(self, parts, sum);
    }
}

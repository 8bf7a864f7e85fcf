//! A caught-up copy of the table rows that a batch reads, beside a model in training.

use super::any_updater::AnyUpdater;
use crate::error::Result;
use nnz_arrays::formats::RowIdsView;
use nnz_arrays::parameter_memory::Table;
use nnz_device::memory;
use nnz_step::model::{AnyModel, BatchSource, RowIds};
use sparse_core::element::Float;

/// A model with the rows of another one that batches read. Rows are caught up on the copy, so that
/// the model in training keeps its bits. The other rows are zeros, of which no page is mapped.
pub(super) struct SettledCopy<'m, T: Float> {
    copy: Box<dyn AnyModel<T> + 'm>,
    rows: RowIds,
}

impl<'m, T: Float> SettledCopy<'m, T> {
    /// `None` where the system has no memory for it. O(1) for a model that can be made of tables,
    /// otherwise O(values).
    pub(super) fn of(model: &(dyn AnyModel<T> + 'm)) -> Result<Option<Self>> {
        // Weights, gradients, and where these are found.
        if !memory::is_there_for::<u8>(bytes_of(model).saturating_mul(3)) {
            return Ok(None);
        }
        let copy = model.with_tables(&mut |_, shape| {
            Ok(Table::zeros_on_small_pages(shape.n_rows(), shape.row_size()))
        });
        let copy = copy.unwrap_or_else(|_| model.copy());
        Ok(Some(SettledCopy { copy, rows: RowIds::new() }))
    }

    /// The copy, with the rows of `model` that a batch reads. O(elements of these rows).
    pub(super) fn with_rows_of(
        &mut self,
        model: &dyn AnyModel<T>,
        updater: &dyn AnyUpdater<T>,
        batch: &dyn BatchSource<'_, T>,
    ) -> Result<&mut (dyn AnyModel<T> + 'm)> {
        for (index, from) in model.parameters().into_iter().enumerate() {
            let row_size = from.table.row_size();
            let mut parameters = self.copy.parameters_mut();
            let Some(to) = parameters.get_mut(index) else { continue };
            let to = to.table.values_mut();
            let mut copy = |row: usize| {
                if let Some(to) = to.get_mut(row * row_size..(row + 1) * row_size) {
                    updater.copy_settled(index, from.table, row, to);
                }
            };
            match model.rows_read(batch, index, &mut self.rows)? {
                RowIdsView::All => (0..from.table.n_rows()).for_each(&mut copy),
                RowIdsView::Listed(rows) => rows.iter().for_each(|row| copy(*row as usize)),
            }
        }
        Ok(&mut *self.copy)
    }
}

/// The bytes of the weights of a model.
pub(super) fn bytes_of<T: Float>(model: &dyn AnyModel<T>) -> usize {
    let sizes = model.parameters().into_iter().map(|parameter| parameter.table.len());
    sizes.sum::<usize>().saturating_mul(size_of::<T>())
}

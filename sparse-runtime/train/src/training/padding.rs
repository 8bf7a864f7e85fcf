//! The loss of a padded batch over the samples that are not copies.

use super::any_updater::{AnyUpdater, erased};
use super::settled_copy::SettledCopy;
use crate::error::Result;
use nnz_arrays::in_library;
use nnz_data::{Batch, Part};
use nnz_optim::UpdateRule;
use nnz_step::model::{AnyModel, BatchSource, Extent, InputInfo, Model};
use nnz_step::optimizer::Updater;
use sparse_core::element::Float;

/// The mean loss over the samples of a batch that repeat no earlier ones, at the present
/// parameters. The epoch counts it in place of the loss of the step, which is the mean over the
/// whole batch. `None` for a batch without padding, and for a model whose batches all have a fixed
/// size.
///
/// It is computed on a [copy](SettledCopy) of the table rows that the batch reads, so that the step
/// keeps its bits: two catch-ups, one after the other, round differently from one. Where there is
/// no memory for a copy, and for a model that computes elsewhere, all table rows of the model are
/// caught up for it. O(loss of the batch).
///
/// # Errors
///
/// As [`Model::loss`] and [`Updater::flush_model`].
pub(super) fn loss_without_padding<'b, M, R, B>(
    model: &mut M,
    updater: &mut Updater<R, M::Element>,
    batch: &B,
) -> Result<Option<f64>>
where
    M: Model,
    R: UpdateRule,
    B: Batch<'b, M::Element>,
{
    let n_real = batch.n_rows() - batch.n_padding().min(batch.n_rows());
    if batch.n_padding() == 0 || n_real == 0 || has_fixed_batches(M::INPUTS) {
        return Ok(None);
    }
    if !M::TAKES_BATCHES
        && let Some(loss) = loss_of_copy::<M::Element>(model, erased(updater), batch, n_real)?
    {
        return Ok(Some(loss));
    }
    updater.flush_model(model)?;
    AnyModel::loss(model, &Part::new(batch, 0..n_real)).map(Some).map_err(Into::into)
}

/// The loss of the first samples of a batch on a copy of a model; `None` without memory for it.
fn loss_of_copy<T: Float>(
    model: &dyn AnyModel<T>,
    updater: &dyn AnyUpdater<T>,
    batch: &dyn BatchSource<'_, T>,
    n_real: usize,
) -> Result<Option<f64>> {
    fn loss<T: Float>(
        model: &dyn AnyModel<T>,
        updater: &dyn AnyUpdater<T>,
        batch: &dyn BatchSource<'_, T>,
        n_real: usize,
    ) -> Result<Option<f64>> {
        let Some(mut copy) = SettledCopy::of(model)? else { return Ok(None) };
        let part = Part::new(batch, 0..n_real);
        model.check_batch(&part, true)?;
        Ok(Some(copy.with_rows_of(model, updater, &part)?.loss(&part)?))
    }
    in_library!(<T> loss::<T> => (
        model: &dyn AnyModel<T>,
        updater: &dyn AnyUpdater<T>,
        batch: &dyn BatchSource<'_, T>,
        n_real: usize,
    ) -> Result<Option<f64>>)
}

/// Whether the source fixes the number of samples of a batch.
pub(super) fn has_fixed_batches(inputs: &[InputInfo]) -> bool {
    inputs.iter().any(|input| matches!(input.shape.first(), Some(Extent::Constant(_))))
}

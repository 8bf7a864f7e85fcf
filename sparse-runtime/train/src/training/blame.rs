//! The cause of a loss that is not finite, as far as its batch shows it: a number of a sample,
//! rather than the learning rate.

use super::TrainError;
use crate::error::{Error, Result};
use nnz_arrays::in_library;
use nnz_data::{Batch, Batches, Position};
use nnz_step::model::{AnyModel, BatchSource, InputInfo, Model};
use sparse_core::element::{Float, Stored};
use sparse_core::storage::Storage;

/// A number of a batch.
#[derive(Clone, Copy)]
struct Found {
    input: &'static str,
    row: usize,
    column: usize,
    value: f64,
}

/// Names the number of the failed batch that is not finite, or whose square is not, in place of
/// [`TrainError::Diverged`]. For the first step of an updater, `first`, it names the largest number
/// of the batch. Reads the batch once more; a fault in that leaves the error as it is.
#[cold]
#[inline(never)]
pub(super) fn blame<M: Model, B: Batches<M::Element>>(
    error: Error,
    model: &M,
    batches: &mut B,
    first: Option<Position>,
) -> Error {
    let Error::Train(TrainError::Diverged { epoch, batch, loss, .. }) = error else { return error };
    let position = Position { epoch, batch };
    match look(model, batches, position, loss, first == Some(position)) {
        Ok(Some(found)) => found.into(),
        Ok(None) | Err(_) => error,
    }
}

fn look<M: Model, B: Batches<M::Element>>(
    model: &M,
    batches: &mut B,
    position: Position,
    loss: f64,
    is_first: bool,
) -> Result<Option<TrainError>> {
    batches.seek(position)?;
    let Some(batch) = batches.next_batch()? else { return Ok(None) };
    let Some(found) = largest(model.facts().inputs, &batch) else { return Ok(None) };
    let Found { input, row, column, value } = found;
    let sample = batch.row_id(row).unwrap_or(row as u64);
    let Position { epoch, batch } = position;
    Ok(if is_beyond::<M::Element>(value * value) {
        let element = M::Element::TYPE;
        Some(TrainError::BeyondRange { epoch, batch, loss, input, sample, column, value, element })
    } else if is_first {
        Some(TrainError::FirstStep { loss, input, sample, column, value })
    } else {
        None
    })
}

fn is_beyond<T: Float>(number: f64) -> bool {
    !T::of(number).is_finite()
}

/// The first number of a batch that is not finite, otherwise the largest.
fn largest<T: Float>(inputs: &[InputInfo], batch: &dyn BatchSource<'_, T>) -> Option<Found> {
    in_library!(<T> largest_of::<T> => (
        inputs: &[InputInfo],
        batch: &dyn BatchSource<'_, T>,
    ) -> Option<Found>)
}

fn largest_of<T: Float>(inputs: &[InputInfo], batch: &dyn BatchSource<'_, T>) -> Option<Found> {
    let mut largest: Option<Found> = None;
    for (index, info) in inputs.iter().enumerate() {
        let mut see = |row, column, value: f64| {
            let is_larger = |known: &Found| {
                let is_known_bad = !known.value.is_finite();
                !is_known_bad && (!value.is_finite() || value.abs() > known.value.abs())
            };
            if largest.as_ref().is_none_or(is_larger) {
                largest = Some(Found { input: info.name, row, column, value });
            }
        };
        match info.storage {
            _ if info.element != T::TYPE => {}
            Storage::Csr => {
                for (row, entries) in batch.csr(index).ok()?.iter_rows().enumerate() {
                    entries.for_each(|(column, value)| see(row, column, value.as_f64()));
                }
            }
            Storage::Dense => {
                let dense = batch.dense(index).ok()?;
                let row_size = dense.shape().row_size().max(1);
                for (at, value) in dense.values().iter().enumerate() {
                    see(at / row_size, at % row_size, value.as_f64());
                }
            }
            Storage::RowSparse => {}
        }
    }
    largest
}

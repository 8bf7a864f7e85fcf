//! Checks that a batch reads the table rows that it is said to read, and no others.

use super::{GradientMut, Model, ModelError, RowIds};
use crate::error::Result;
use nnz_arrays::formats::RowIdsView;
use sparse_core::element::Float;

/// Checks that neither the loss of a batch nor its gradients depend on table rows that
/// [`rows_read`](Model::rows_read) leaves out, and that the gradients store the rows of
/// [`rows_written`](Model::rows_written) only. It is for tests of models whose operators say which
/// rows they read: an exact update leaves other rows behind.
///
/// Copies the model once for each parameter, and computes the loss and the gradients of each copy,
/// whose other rows are NaN: O(elements of all parameters) for each parameter.
///
/// # Errors
///
/// [`ModelError::OtherRowsRead`], [`ModelError::OtherRowStored`]; those of
/// [`loss_and_grads`](Model::loss_and_grads).
pub fn check_rows_read<M: Model>(model: &M, batch: &M::Batch<'_>) -> Result<()> {
    let mut expected = model.clone();
    let loss = expected.loss_and_grads(batch)?;
    let gradients = gradients(&mut expected);
    let mut ids = RowIds::new();
    for (index, info) in M::PARAMETERS.iter().enumerate() {
        if let Some((stored, _)) = &gradients[index] {
            check_stored(model, batch, index, stored, &mut ids)?;
        }
        let RowIdsView::Listed(read) = model.rows_read(batch, index, &mut ids)? else { continue };
        let mut other = model.clone();
        let mut parameters = other.parameters_mut();
        let parameter = &mut parameters[index];
        let row_size = parameter.shape.row_size().max(1);
        for (row, values) in (0u64..).zip(parameter.values_mut().chunks_mut(row_size)) {
            if read.binary_search(&row).is_err() {
                values.fill(M::Element::of(f64::NAN));
            }
        }
        drop(parameters);
        let found = other.loss_and_grads(batch)?;
        if found.to_bits() != loss.to_bits() || self::gradients(&mut other) != gradients {
            return Err(ModelError::OtherRowsRead { model: M::NAME, parameter: info.name }.into());
        }
    }
    Ok(())
}

fn check_stored<M: Model>(
    model: &M,
    batch: &M::Batch<'_>,
    index: usize,
    stored: &[u64],
    ids: &mut RowIds,
) -> Result<()> {
    let RowIdsView::Listed(written) = model.rows_written(batch, index, ids)? else {
        return Ok(());
    };
    match stored.iter().find(|row| written.binary_search(row).is_err()) {
        None => Ok(()),
        Some(row) => {
            let (model, of) = (M::NAME, M::PARAMETERS[index].name);
            Err(ModelError::OtherRowStored {
                model,
                what: "gradient of the parameter",
                of,
                row: *row,
            }
            .into())
        }
    }
}

/// The stored rows of each gradient, and the bits of its elements.
fn gradients<M: Model>(model: &mut M) -> Vec<Option<(Vec<u64>, Vec<u64>)>> {
    let of_parameter = |index| {
        let (rows, values) = match model.gradient_mut(index)? {
            GradientMut::Dense(all) => (Vec::new(), all.values().to_vec()),
            GradientMut::RowSparse(some) => (some.indices().to_vec(), some.values().to_vec()),
        };
        Some((rows, values.iter().map(|value| value.as_f64().to_bits()).collect()))
    };
    (0..M::PARAMETERS.len()).map(of_parameter).collect()
}

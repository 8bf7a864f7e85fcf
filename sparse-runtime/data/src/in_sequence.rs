//! Data whose batches follow each other in time.

use super::{BatchOptions, DataSource, Order};
use crate::error::Result;
use nnz_step::model::InputInfo;
use sparse_core::element::Float;

/// Data in sequence: its batches come in the order of its samples, never shuffled, and a model with
/// states carries them from batch to batch in scores, evaluations and predictions too.
///
/// Training steps update a `state` of a model. `score`,
/// `predict`, the trainer's methods of these names, its
/// `.evaluation(&data)` and `write_predictions` leave it
/// as it is, and read it so in every batch. That is right for statistics of the training data, such
/// as running means.
///
/// With `InSequence(&data)` each batch reads the states that the previous one leaves. That is right
/// for models that depend on earlier samples, such as a recurrent one. The first batch reads the
/// states of the model: those of the end of training unless they were set. After the last batch the
/// model has its own states again: no evaluation changes a model. To keep the states that batches
/// leave, call [`Model::forward_carrying`](nnz_step::model::Model::forward_carrying).
///
/// A trainer gives such data batches of its `batch_size`, as in training; `score` and `predict`
/// give the size in their arguments.
///
/// ```
/// use nnz::data::{DataSource, InSequence};
/// use nnz::model::Model;
/// use nnz::training::predict;
///
/// /// The forecasts for the time after the training data, 32 samples a step.
/// fn forecast<M: Model>(model: &mut M, next: &impl DataSource<M::Element>) ->
/// nnz::Result<Vec<M::Element>> {
///     Ok(predict(model, &InSequence(next), 32)?.values().to_vec())
/// }
/// ```
#[derive(Clone, Copy, Debug)]
pub struct InSequence<'a, S>(pub &'a S);

impl<T: Float, S: DataSource<T>> DataSource<T> for InSequence<'_, S> {
    const IN_SEQUENCE: bool = true;

    type Batches<'s>
        = S::Batches<'s>
    where
        Self: 's;

    fn n_rows(&self) -> Option<usize> {
        self.0.n_rows()
    }

    fn fingerprint(&self) -> Result<Option<u64>> {
        self.0.fingerprint()
    }

    fn batches<'s>(
        &'s self,
        inputs: &[InputInfo],
        options: &BatchOptions,
    ) -> Result<Self::Batches<'s>> {
        self.0.batches(inputs, &BatchOptions { order: Order::Sequential, ..*options })
    }
}

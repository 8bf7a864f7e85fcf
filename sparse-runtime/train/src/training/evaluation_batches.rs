//! Evaluation batches: computed without learning, in order. A model that takes batches takes the
//! next one while the last one is computed.

use super::any_batches::AnyBatches;
use crate::error::{Error, Result};
use nnz_data::Batch;
use nnz_step::model::AnyModel;
use sparse_core::element::Float;

/// Receives batches and their outputs.
pub(super) trait EvaluationSink<T: Float> {
    /// The part of a batch that is kept until its outputs are there.
    type PendingBatch;

    /// Receives a batch, which is valid until the next one is read.
    fn receive_batch(&mut self, batch: &dyn Batch<'_, T>) -> Result<Self::PendingBatch>;

    /// Receives the outputs of a batch, with the loss, if that is computed.
    fn receive_outputs(
        &mut self,
        model: &dyn AnyModel<T>,
        pending: Self::PendingBatch,
        loss: f64,
    ) -> Result<()>;
}

/// Computes all remaining batches: with `labels` losses and outputs, otherwise outputs. With data
/// [in sequence](nnz_data::DataSource::IN_SEQUENCE) each batch reads the states that the previous
/// one leaves. After the last one they are as before the first.
///
/// # Errors
///
/// A fault of a batch, after those of earlier batches, and errors of the reader.
pub(super) fn evaluate<T: Float>(
    model: &mut dyn AnyModel<T>,
    (batches, in_sequence): (&mut dyn AnyBatches<T>, bool),
    labels: bool,
    sink: &mut impl EvaluationSink<T>,
) -> Result<()> {
    if !(model.facts().writes_states && in_sequence) {
        return evaluate_apart(model, batches, labels, sink);
    }
    let states = states(model);
    let evaluated = evaluate_carrying(model, batches, labels, sink);
    restore(model, &states);
    evaluated
}

/// Computes batches, each with the states that the previous one leaves.
fn evaluate_carrying<T: Float>(
    model: &mut dyn AnyModel<T>,
    batches: &mut dyn AnyBatches<T>,
    labels: bool,
    sink: &mut impl EvaluationSink<T>,
) -> Result<()> {
    while batches.visit_next(&mut |batch| {
        let loss = if labels {
            model.loss_carrying(batch)?
        } else {
            model.forward_carrying(batch).map(|()| f64::NAN)?
        };
        let pending = sink.receive_batch(batch)?;
        sink.receive_outputs(model, pending, loss)
    })? {}
    Ok(())
}

/// The values of the states of a model, by the positions of their parameters. O(values of the
/// states).
fn states<T: Float>(model: &dyn AnyModel<T>) -> Vec<(usize, Vec<T>)> {
    let (parameters, infos) = (model.parameters(), model.facts().parameters);
    let states = parameters.iter().enumerate().filter(|(index, _)| infos[*index].is_state);
    states.map(|(index, state)| (index, state.values().to_vec())).collect()
}

fn restore<T: Float>(model: &mut dyn AnyModel<T>, states: &[(usize, Vec<T>)]) {
    let mut parameters = model.parameters_mut();
    for (index, values) in states {
        parameters[*index].table.values_mut().copy_from_slice(values);
    }
}

/// Computes batches that do not depend on each other.
fn evaluate_apart<T: Float>(
    model: &mut dyn AnyModel<T>,
    batches: &mut dyn AnyBatches<T>,
    labels: bool,
    sink: &mut impl EvaluationSink<T>,
) -> Result<()> {
    if !model.facts().takes_batches {
        while batches.visit_next(&mut |batch| {
            let loss = if labels {
                model.loss(batch)?
            } else {
                model.forward(batch).map(|()| f64::NAN)?
            };
            let pending = sink.receive_batch(batch)?;
            sink.receive_outputs(model, pending, loss)
        })? {}
        return Ok(());
    }
    let mut begun = None;
    loop {
        let next = begin_next(model, batches, labels, sink);
        if let Some(pending) = begun.take() {
            let ended = model
                .end_evaluation()
                .map_err(Error::from)
                .and_then(|loss| sink.receive_outputs(model, pending, loss));
            if let Err(error) = ended {
                if let Ok(Some(_)) = next {
                    // Its result is no longer needed.
                    let _ = model.end_evaluation();
                }
                return Err(error);
            }
        }
        begun = next?;
        if begun.is_none() {
            return Ok(());
        }
    }
}

fn begin_next<T: Float, S: EvaluationSink<T>>(
    model: &mut dyn AnyModel<T>,
    batches: &mut dyn AnyBatches<T>,
    labels: bool,
    sink: &mut S,
) -> Result<Option<S::PendingBatch>> {
    let mut begun = None;
    batches.visit_next(&mut |batch| {
        let pending = sink.receive_batch(batch)?;
        model.begin_evaluation(batch, labels)?;
        begun = Some(pending);
        Ok(())
    })?;
    Ok(begun)
}

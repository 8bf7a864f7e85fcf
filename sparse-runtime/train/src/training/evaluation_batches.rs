//! Evaluation batches: computed without learning, in order. A model that takes batches takes the
//! next one while the last one is computed.

use crate::error::{Error, Result};
use nnz_data::{Batch, Batches, DataSource};
use nnz_step::model::Model;

/// Receives batches and their outputs.
pub(super) trait EvaluationSink<M: Model> {
    /// The part of a batch that is kept until its outputs are there.
    type PendingBatch;

    /// Receives a batch, which is valid until the next one is read.
    fn receive_batch<'b, B: Batch<'b, M::Element>>(
        &mut self,
        batch: &B,
    ) -> Result<Self::PendingBatch>;

    /// Receives the outputs of a batch, with the loss, if that is computed.
    fn receive_outputs(&mut self, model: &M, pending: Self::PendingBatch, loss: f64) -> Result<()>;
}

/// Computes all remaining batches: with `labels` losses and outputs, otherwise outputs. With data
/// [in sequence](DataSource::IN_SEQUENCE) each batch reads the states that the previous one leaves.
/// After the last one they are as before the first.
///
/// # Errors
///
/// A fault of a batch, after those of earlier batches, and errors of the reader.
pub(super) fn evaluate<M: Model, S: DataSource<M::Element>, R: EvaluationSink<M>>(
    model: &mut M,
    batches: &mut S::Batches<'_>,
    labels: bool,
    sink: &mut R,
) -> Result<()> {
    if !(M::WRITES_STATES && S::IN_SEQUENCE) {
        return evaluate_apart(model, batches, labels, sink);
    }
    let states = states(model);
    let evaluated = evaluate_carrying(model, batches, labels, sink);
    restore(model, &states);
    evaluated
}

/// Computes batches, each with the states that the previous one leaves.
fn evaluate_carrying<M: Model, B: Batches<M::Element>, R: EvaluationSink<M>>(
    model: &mut M,
    batches: &mut B,
    labels: bool,
    sink: &mut R,
) -> Result<()> {
    while let Some(batch) = batches.next_batch()? {
        let bound = model.bind(&batch)?;
        let loss = if labels {
            model.loss_carrying(&bound)?
        } else {
            model.forward_carrying(&bound).map(|_| f64::NAN)?
        };
        let pending = sink.receive_batch(&batch)?;
        sink.receive_outputs(model, pending, loss)?;
    }
    Ok(())
}

/// The values of the states of a model, by the positions of their parameters. O(values of the
/// states).
fn states<M: Model>(model: &M) -> Vec<(usize, Vec<M::Element>)> {
    let parameters = model.parameters();
    let states = parameters.iter().enumerate().filter(|(index, _)| M::PARAMETERS[*index].is_state);
    states.map(|(index, state)| (index, state.values().to_vec())).collect()
}

fn restore<M: Model>(model: &mut M, states: &[(usize, Vec<M::Element>)]) {
    let mut parameters = model.parameters_mut();
    for (index, values) in states {
        parameters[*index].table.values_mut().copy_from_slice(values);
    }
}

/// Computes batches that do not depend on each other.
fn evaluate_apart<M: Model, B: Batches<M::Element>, R: EvaluationSink<M>>(
    model: &mut M,
    batches: &mut B,
    labels: bool,
    sink: &mut R,
) -> Result<()> {
    if !M::TAKES_BATCHES {
        while let Some(batch) = batches.next_batch()? {
            let bound = model.bind(&batch)?;
            let loss = if labels {
                model.loss(&bound)?
            } else {
                model.forward(&bound).map(|_| f64::NAN)?
            };
            let pending = sink.receive_batch(&batch)?;
            sink.receive_outputs(model, pending, loss)?;
        }
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

fn begin_next<M: Model, B: Batches<M::Element>, R: EvaluationSink<M>>(
    model: &mut M,
    batches: &mut B,
    labels: bool,
    sink: &mut R,
) -> Result<Option<R::PendingBatch>> {
    let Some(batch) = batches.next_batch()? else { return Ok(None) };
    let pending = sink.receive_batch(&batch)?;
    let bound = model.bind(&batch)?;
    model.begin_evaluation(&bound, labels)?;
    Ok(Some(pending))
}

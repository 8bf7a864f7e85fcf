//! Batches that a model computes without learning, in order; of a model that takes batches the next one while the last one is computed.

use crate::data::{Batch, Batches};
use crate::error::Result;
use crate::model::Model;

/// Whoever looks at batches and their outputs.
pub(super) trait Reader<M: Model> {
    /// What is kept of a batch until its outputs are there.
    type Noted;

    /// Sees a batch, which is valid until the next one is read.
    fn note<'b, B: Batch<'b, M::Element>>(&mut self, batch: &B) -> Result<Self::Noted>;

    /// Sees the outputs of a batch, with the loss, if that is computed.
    fn read(&mut self, model: &M, noted: Self::Noted, loss: f64) -> Result<()>;
}

/// Computes all batches that are left: with `labels` losses and outputs, else outputs.
///
/// # Errors
///
/// What is wrong with a batch, after what is wrong with those before it, and what the reader says.
pub(super) fn evaluate<M: Model, B: Batches<M::Element>, R: Reader<M>>(
    model: &mut M,
    batches: &mut B,
    labels: bool,
    reader: &mut R,
) -> Result<()> {
    if !M::TAKES_BATCHES {
        while let Some(batch) = batches.next_batch()? {
            let bound = model.bind(&batch)?;
            let loss = match labels {
                true => model.loss(&bound)?,
                false => model.forward(&bound).map(|_| f64::NAN)?,
            };
            let noted = reader.note(&batch)?;
            reader.read(model, noted, loss)?;
        }
        return Ok(());
    }
    let mut begun = None;
    loop {
        let next = begin_next(model, batches, labels, reader);
        if let Some(noted) = begun.take() {
            let ended = model.end_evaluation().and_then(|loss| reader.read(model, noted, loss));
            if let Err(error) = ended {
                if let Ok(Some(_)) = next {
                    // Of which nobody wants to know any more.
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

fn begin_next<M: Model, B: Batches<M::Element>, R: Reader<M>>(
    model: &mut M,
    batches: &mut B,
    labels: bool,
    reader: &mut R,
) -> Result<Option<R::Noted>> {
    let Some(batch) = batches.next_batch()? else { return Ok(None) };
    let noted = reader.note(&batch)?;
    let bound = model.bind(&batch)?;
    model.begin_evaluation(&bound, labels)?;
    Ok(Some(noted))
}

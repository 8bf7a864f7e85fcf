//! The steps of a model that takes batches: the next one is read and taken while a step is computed.

use super::epoch::{Pauses, diverged};
use super::{BatchHook, EpochTotals};
use crate::data::{Batch, Batches};
use crate::error::Result;
use crate::model::{BatchSource, Model};
use crate::optimizer::Updater;
use sparse_core::update_rules::UpdateRule;
use std::convert::identity;

/// The steps of what is left of an epoch: in the same order, with the same results and the same errors as without looking ahead.
///
/// A batch is valid until the next one is read, so that nobody may look at it during such a step: where the hook does, the next one
/// is read afterwards. What is wrong with the next batch is said after the step.
pub(super) fn steps_ahead<M, R, B, H>(
    model: &mut M,
    updater: &mut Updater<R, M::Element>,
    batches: &mut B,
    mut pauses: Pauses,
    mut totals: EpochTotals,
    hook: &mut H,
) -> Result<EpochTotals>
where
    M: Model,
    R: UpdateRule,
    B: Batches<M::Element>,
    H: BatchHook<M>,
{
    let (epoch, max_norm) = (pauses.epoch(), hook.max_norm());
    let mut next = take_next(model, batches)?;
    // Moved as a whole: what is left of it would be a batch that is still borrowed.
    loop {
        let Some(batch) = identity(next) else { return Ok(totals) };
        if let Some(learning_rate) = hook.learning_rate(updater.clock(), epoch) {
            updater.set_learning_rate(learning_rate)?;
        }
        let (n_rows, n_padding) = (batch.n_rows(), batch.n_padding());
        if hook.sees_batches() || pauses.is_next() {
            let loss = model.step_on_taken(updater, max_norm, |_| ())?;
            if !loss.is_finite() {
                return Err(diverged(epoch, totals.n_batches, loss, updater));
            }
            totals.add(loss, n_rows, n_padding);
            hook.after_step(model, &batch, loss)?;
            let bound = model.bind(&batch)?;
            if pauses.after(1, &bound, model, updater, &totals, hook)?.is_break() {
                return Ok(totals);
            }
            drop(batch);
            next = take_next(model, batches)?;
        } else {
            drop(batch);
            let mut taken = Ok(None);
            let (of, to) = (&mut *batches, &mut taken);
            let meanwhile = move |model: &mut M| {
                // Not borrowed from the closure, which the batch outlives.
                let of = of;
                *to = take_next(model, of);
            };
            let loss = model.step_on_taken(updater, max_norm, meanwhile)?;
            if !loss.is_finite() {
                return Err(diverged(epoch, totals.n_batches, loss, updater));
            }
            totals.add(loss, n_rows, n_padding);
            hook.after_steps(model, 1)?;
            pauses.pass();
            next = taken?;
        }
    }
}

fn take_next<'b, M: Model, B: Batches<M::Element>>(
    model: &mut M,
    batches: &'b mut B,
) -> Result<Option<B::Batch<'b>>> {
    let batch = batches.next_batch()?;
    if let Some(batch) = &batch {
        let bound = model.bind(batch)?;
        model.take_batch(&bound)?;
    }
    Ok(batch)
}

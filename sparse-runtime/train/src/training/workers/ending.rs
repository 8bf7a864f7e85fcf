//! A worker that fails ends the group.

use crate::error::Result;
use crate::store::{Communicator, Outcome, StoreError};
use crate::training::workers::message_of;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};

/// Does a worker's part of a run. Where it fails or panics, the group is told so with its error; a
/// panic goes on.
///
/// # Errors
///
/// Those of `work`.
pub(super) fn in_group<C: Communicator, A>(
    mut communicator: C,
    work: impl FnOnce(&mut C) -> Result<A>,
) -> Result<A> {
    // A panic leaves a communicator that is only told of its end.
    let done = catch_unwind(AssertUnwindSafe(|| work(&mut communicator)));
    // The error that is returned says more than one of telling the others.
    match done {
        Ok(Ok(result)) => Ok(result),
        Ok(Err(error)) => {
            let _ = communicator.end(Outcome::Failed(&error));
            Err(error)
        }
        Err(panic) => {
            let (rank, message) = (communicator.rank(), message_of(&*panic));
            let _ = communicator.end(Outcome::Failed(&StoreError::Panicked { rank, message }));
            resume_unwind(panic)
        }
    }
}

//! Communicators: how workers exchange bytes.

use super::deadline::Waiting;
use nnz_arrays::kernels::MAX_THREADS;
use std::error::Error;
use std::time::Duration;

/// One worker's end of a group that exchanges bytes.
///
/// One method moves all data, so another kind of group is short to write: [`rank`](Self::rank),
/// [`size`](Self::size) and [`exchange`](Self::exchange) are enough. The others have defaults for a
/// group that cannot overlap an exchange with work, and that finds its lost workers by itself.
/// `&mut C` is a communicator too, for several runs of one group.
#[diagnostic::on_unimplemented(
    message = "`{Self}` does not connect workers",
    note = "`OneProcess` is a group of one worker, `Threads::group(n)` gives the ends of `n`"
)]
pub trait Communicator {
    /// This worker's number, below [`size`](Self::size). It never changes.
    fn rank(&self) -> usize;

    /// The number of workers, from 1 to [`MAX_THREADS`]. It never changes.
    fn size(&self) -> usize;

    /// Gives each worker, this one included, its parcel of `outgoing`, and puts each worker's
    /// parcel for this one into `incoming`. Collective. An implementation may take the memory of
    /// `outgoing`, whose contents are not read afterwards; both keep one parcel for each worker.
    ///
    /// # Errors
    ///
    /// [`CommunicatorError::PeerLost`] where a worker has ended: an implementation must notice, and
    /// not wait for it.
    fn exchange(
        &mut self,
        outgoing: &mut Parcels,
        incoming: &mut Parcels,
    ) -> Result<(), CommunicatorError>;

    /// Begins an exchange: parcels may be on their way until [`finish`](Self::finish), which every
    /// `begin` is followed by. `outgoing` is not changed in between. By default nothing happens
    /// before `finish`; an implementation overrides both or neither.
    ///
    /// # Errors
    ///
    /// As [`exchange`](Self::exchange).
    fn begin(&mut self, outgoing: &mut Parcels) -> Result<(), CommunicatorError> {
        let _ = outgoing;
        Ok(())
    }

    /// Ends the exchange that [`begin`](Self::begin) began with the same `outgoing`. By default it
    /// is the whole exchange.
    ///
    /// # Errors
    ///
    /// As [`exchange`](Self::exchange).
    fn finish(
        &mut self,
        outgoing: &mut Parcels,
        incoming: &mut Parcels,
    ) -> Result<(), CommunicatorError> {
        self.exchange(outgoing, incoming)
    }

    /// Says what the others do in the next exchanges, which decides how long this worker waits for
    /// them: see [`Deadlines`](super::Deadlines). [`Waiting::Step`] until it is called. By default
    /// nothing.
    fn set_waiting(&mut self, waiting: Waiting) {
        let _ = waiting;
    }

    /// Ends this worker's part in the group. After [`Outcome::Failed`] the exchanges of the others
    /// are errors, at once; after [`Outcome::Done`] this worker makes no further exchange, and an
    /// implementation may wait until all say so. Training calls it where a worker fails. By default
    /// nothing: a dropped end tells the others.
    ///
    /// # Errors
    ///
    /// As [`exchange`](Self::exchange), where it waits for the others.
    fn end(&mut self, outcome: Outcome<'_>) -> Result<(), CommunicatorError> {
        let _ = outcome;
        Ok(())
    }
}

/// How a worker's part in a group ends.
#[derive(Clone, Copy, Debug)]
pub enum Outcome<'e> {
    /// Its work is done.
    Done,
    /// It cannot go on.
    Failed(&'e (dyn Error + 'static)),
}

impl<C: Communicator + ?Sized> Communicator for &mut C {
    fn rank(&self) -> usize {
        (**self).rank()
    }

    fn size(&self) -> usize {
        (**self).size()
    }

    fn exchange(
        &mut self,
        outgoing: &mut Parcels,
        incoming: &mut Parcels,
    ) -> Result<(), CommunicatorError> {
        (**self).exchange(outgoing, incoming)
    }

    fn begin(&mut self, outgoing: &mut Parcels) -> Result<(), CommunicatorError> {
        (**self).begin(outgoing)
    }

    fn finish(
        &mut self,
        outgoing: &mut Parcels,
        incoming: &mut Parcels,
    ) -> Result<(), CommunicatorError> {
        (**self).finish(outgoing, incoming)
    }

    fn set_waiting(&mut self, waiting: Waiting) {
        (**self).set_waiting(waiting);
    }

    fn end(&mut self, outcome: Outcome<'_>) -> Result<(), CommunicatorError> {
        (**self).end(outcome)
    }
}

/// Workers can no longer exchange bytes.
#[derive(Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum CommunicatorError {
    /// A worker has ended while others need it.
    #[error("worker {rank} has ended while worker {here} waits for it: its own error says why")]
    PeerLost {
        /// The worker that has ended.
        rank: usize,
        /// The worker that noticed.
        here: usize,
    },
    /// A worker has failed, and has told the others.
    #[error("worker {rank} has failed while worker {here} waits for it: {problem}")]
    PeerFailed {
        /// The worker that has failed.
        rank: usize,
        /// The worker that was told.
        here: usize,
        /// The error of the worker that has failed.
        problem: String,
    },
    /// A worker has given no sign until the deadline.
    #[error(
        "worker {here} has waited {waited:.1?} for worker {rank}, which gives no sign: it may be stopped, cut off, or busy for longer than `Deadlines` allows"
    )]
    Deadline {
        /// The worker that gives no sign.
        rank: usize,
        /// The worker that has waited.
        here: usize,
        /// The time that it has waited.
        waited: Duration,
    },
    /// A group has another number of workers than it is to have.
    #[error(
        "`{by}` says that the group has {expected} workers, but it has {found}: start the program by the launcher of the library that it is linked to, {library}"
    )]
    OtherSize {
        /// The variable of the environment that says so.
        by: &'static str,
        /// The name of the library.
        library: String,
        /// The number that it says.
        expected: usize,
        /// The number of workers found.
        found: usize,
    },
    /// The transport of the group has failed.
    #[error("worker {here} cannot exchange data: {problem}")]
    Failed {
        /// The worker that noticed.
        here: usize,
        /// The fault.
        problem: String,
    },
    /// A group of no worker was requested.
    #[error("a group has at least one worker, but 0 were asked for")]
    NoWorkers,
    /// A group of more workers than the maximum.
    #[error("a group has {MAX_THREADS} workers at most, but {found} were asked for")]
    TooManyWorkers {
        /// The number requested.
        found: usize,
    },
    /// A rank outside of its group.
    #[error(
        "the rank of a worker is {rank}, but its group has {size} workers: ranks are below `Communicator::size`"
    )]
    Rank {
        /// The rank.
        rank: usize,
        /// The workers of the group.
        size: usize,
    },
    /// An exchange changed the number of parcels.
    #[error(
        "worker {here} has {found} parcels after an exchange among {size} workers: `Communicator::exchange` leaves one for each"
    )]
    Parcels {
        /// The worker that noticed.
        here: usize,
        /// The parcels.
        found: usize,
        /// The workers of the group.
        size: usize,
    },
}

sparse_core::debug_of_errors!(CommunicatorError);

impl CommunicatorError {
    /// Refuses invalid numbers of workers.
    pub(super) fn check_size(size: usize) -> Result<(), Self> {
        match size {
            0 => Err(CommunicatorError::NoWorkers),
            1..=MAX_THREADS => Ok(()),
            found => Err(CommunicatorError::TooManyWorkers { found }),
        }
    }
}

/// Bytes for each worker of a group, or from each. The memory is reused from exchange to exchange.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Parcels {
    parcels: Vec<Vec<u8>>,
}

impl Parcels {
    /// Empty parcels, for a group of `size` workers.
    pub fn new(size: usize) -> Self {
        Parcels { parcels: vec![Vec::new(); size] }
    }

    /// Empties all of them.
    pub fn clear(&mut self) {
        self.parcels.iter_mut().for_each(Vec::clear);
    }

    /// The number of workers.
    pub fn size(&self) -> usize {
        self.parcels.len()
    }

    /// The parcels, by rank.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = &[u8]> {
        self.parcels.iter().map(Vec::as_slice)
    }

    /// The parcels, by rank, for writing.
    pub fn iter_mut(&mut self) -> impl ExactSizeIterator<Item = &mut Vec<u8>> {
        self.parcels.iter_mut()
    }

    pub(super) fn of(&self, rank: usize) -> &[u8] {
        self.parcels.get(rank).map_or(&[], Vec::as_slice)
    }
}

/// A group of one worker.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct OneProcess;

impl Communicator for OneProcess {
    fn rank(&self) -> usize {
        0
    }

    fn size(&self) -> usize {
        1
    }

    fn exchange(
        &mut self,
        outgoing: &mut Parcels,
        incoming: &mut Parcels,
    ) -> Result<(), CommunicatorError> {
        std::mem::swap(outgoing, incoming);
        Ok(())
    }
}

//! Communicators: how workers exchange bytes.

use nnz_arrays::kernels::MAX_THREADS;

/// One worker's end of a group that exchanges bytes.
///
/// One method moves all data, so another kind of group is short to write: over MPI an exchange is
/// an `MPI_Alltoall` of lengths and an `MPI_Alltoallv` of bytes.
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

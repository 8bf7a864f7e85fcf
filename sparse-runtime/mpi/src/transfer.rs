//! The messages of one exchange that are on their way.

use crate::library::{self, Problem};
use mpi_sys as ffi;
use nnz::store::Parcels;
use std::ffi::c_int;
use std::mem;

/// A part of a parcel that more follow.
const MORE: c_int = 1;
/// A parcel's last part, or the whole of it.
const LAST: c_int = 2;
/// The last message of a worker that has failed: its exit code and its error.
pub(crate) const FAREWELL: c_int = 3;

/// The messages of one exchange, which own their memory until they are done: MPI reads and writes
/// it in the background. It circulates between exchanges, as that of [`Parcels`] does.
pub(crate) struct Transfer {
    rank: usize,
    /// The parcels to the others, by rank, and this worker's own.
    sending: Vec<Vec<u8>>,
    /// The messages of `sending`, with the worker to which each goes.
    sends: Vec<ffi::MPI_Request>,
    to: Vec<usize>,
    receipts: Vec<Receipt>,
    is_under_way: bool,
}

/// The parcel of one worker.
#[derive(Default)]
struct Receipt {
    bytes: Vec<u8>,
    /// The part that is being received, its length, and whether it is the last.
    part: Option<(ffi::MPI_Request, usize, bool)>,
    is_complete: bool,
}

/// What a look at the messages has found.
pub(crate) enum Found {
    /// All are done.
    All,
    /// Some have moved.
    Some,
    /// Nothing has happened.
    Nothing,
    /// A worker has failed instead of sending its parcel.
    Farewell(library::Arrived),
}

impl Transfer {
    pub(crate) fn new(rank: usize, size: usize) -> Self {
        Transfer {
            rank,
            sending: vec![Vec::new(); size],
            sends: Vec::new(),
            to: Vec::new(),
            receipts: (0..size).map(|_| Receipt::default()).collect(),
            is_under_way: false,
        }
    }

    /// Whether an exchange was begun and is not done.
    pub(crate) fn is_under_way(&self) -> bool {
        self.is_under_way
    }

    /// Takes the parcels and begins to send them, in messages of at most `max_message` bytes.
    pub(crate) fn begin(
        &mut self,
        comm: ffi::MPI_Comm,
        outgoing: &mut Parcels,
        max_message: usize,
    ) -> Result<(), Problem> {
        self.is_under_way = true;
        self.sending.iter_mut().zip(outgoing.iter_mut()).for_each(|(own, out)| mem::swap(own, out));
        for (from, receipt) in self.receipts.iter_mut().enumerate() {
            receipt.bytes.clear();
            receipt.is_complete = from == self.rank;
        }
        let size = self.sending.len();
        // Each begins with the next, so that not all send to the first at once.
        for to in (1..size).map(|step| (self.rank + step) % size) {
            let parcel = &self.sending[to];
            let mut rest = &parcel[..];
            loop {
                let (part, after) = rest.split_at(rest.len().min(max_message));
                let tag = if after.is_empty() { LAST } else { MORE };
                // SAFETY: `sending` is not touched before the request is done, and is leaked where
                // it never is.
                self.sends.push(unsafe { library::send(comm, part, to, tag)? });
                self.to.push(to);
                if after.is_empty() {
                    break;
                }
                rest = after;
            }
        }
        Ok(())
    }

    /// Looks at all messages once, without waiting.
    pub(crate) fn look(&mut self, comm: ffi::MPI_Comm) -> Result<Found, Problem> {
        let (mut moved, mut is_all) = (false, true);
        for (from, receipt) in self.receipts.iter_mut().enumerate() {
            if receipt.is_complete {
                continue;
            }
            if receipt.part.is_none()
                && let Some(arrived) = library::probe(comm, Some(from), None)?
            {
                if arrived.tag == FAREWELL {
                    return Ok(Found::Farewell(arrived));
                }
                receipt.receive(arrived)?;
                moved = true;
            }
            moved |= receipt.look()?;
            is_all &= receipt.is_complete;
        }
        if !self.sends.is_empty() && library::are_done(&mut self.sends)? {
            self.sends.clear();
            self.to.clear();
            moved = true;
        }
        Ok(match (is_all && self.sends.is_empty(), moved) {
            (true, _) => Found::All,
            (false, true) => Found::Some,
            (false, false) => Found::Nothing,
        })
    }

    /// Hands out the parcels of all workers, all of which have been received.
    pub(crate) fn finish(&mut self, incoming: &mut Parcels) {
        for (from, parcel) in incoming.iter_mut().enumerate() {
            if from == self.rank {
                mem::swap(parcel, &mut self.sending[from]);
            } else {
                mem::swap(parcel, &mut self.receipts[from].bytes);
            }
        }
        self.is_under_way = false;
    }

    /// A worker of which a parcel is missing, or that has not taken its own.
    pub(crate) fn waits_for(&self) -> usize {
        let missing = self.receipts.iter().position(|receipt| !receipt.is_complete);
        missing.or(self.to.first().copied()).unwrap_or(self.rank)
    }
}

impl Receipt {
    /// Begins to receive a part.
    fn receive(&mut self, arrived: library::Arrived) -> Result<(), Problem> {
        let (n_bytes, is_last) = (arrived.n_bytes, arrived.tag == LAST);
        self.bytes.reserve(n_bytes);
        let place = self.bytes.spare_capacity_mut().as_mut_ptr().cast();
        // SAFETY: there is room for `n_bytes` behind the bytes received before; the memory stays
        // where it is until the request is done, and is leaked where it never is.
        let request = unsafe { library::receive(arrived, place)? };
        self.part = Some((request, n_bytes, is_last));
        Ok(())
    }

    /// Whether the part that was being received is there now.
    fn look(&mut self) -> Result<bool, Problem> {
        let Some((request, n_bytes, is_last)) = &mut self.part else { return Ok(false) };
        if !library::is_done(request)? {
            return Ok(false);
        }
        // SAFETY: so many bytes have been written behind the others.
        unsafe { self.bytes.set_len(self.bytes.len() + *n_bytes) };
        self.is_complete = *is_last;
        self.part = None;
        Ok(true)
    }
}

impl Drop for Transfer {
    fn drop(&mut self) {
        // MPI may still read and write what was not done.
        if !self.sends.is_empty() {
            mem::forget(mem::take(&mut self.sending));
        }
        for receipt in self.receipts.iter_mut().filter(|receipt| receipt.part.is_some()) {
            mem::forget(mem::take(&mut receipt.bytes));
        }
    }
}

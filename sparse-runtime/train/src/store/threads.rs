//! A group of workers that are threads of one process.

use super::communicator::{Communicator, CommunicatorError, Outcome, Parcels};
use super::deadline::{Deadlines, Wait, Waiting};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, OnceLock, PoisonError};

/// One thread's end of a group of threads: [`group`](Self::group) gives all of them. A dropped end,
/// also by a panic of its thread, is a worker that has ended.
///
/// ```
/// use nnz::store::{Communicator, Parcels, Threads};
///
/// let ends = Threads::group(2)?;
/// std::thread::scope(|scope| {
///     for mut end in ends {
///         scope.spawn(move || {
///             let (mut outgoing, mut incoming) = (Parcels::new(2), Parcels::new(2));
///             outgoing.iter_mut().for_each(|parcel| parcel.push(end.rank() as u8));
///             end.exchange(&mut outgoing, &mut incoming)?;
///             assert!(incoming.iter().eq([[0], [1]]));
///             Ok::<(), nnz::store::CommunicatorError>(())
///         });
///     }
/// });
/// # Ok::<(), nnz::store::CommunicatorError>(())
/// ```
#[derive(Debug)]
pub struct Threads {
    rank: usize,
    group: Arc<Group>,
    deadlines: Option<Deadlines>,
    waiting: Waiting,
}

#[derive(Debug)]
struct Group {
    size: usize,
    /// From each worker to each: `from · size + to`.
    boxes: Vec<Mailbox>,
    has_ended: Vec<AtomicBool>,
    /// The errors of workers that have said why they ended.
    problems: Vec<OnceLock<String>>,
}

/// A slot for one parcel in transit. The memory of parcels circulates: a sender takes that of an
/// earlier parcel.
#[derive(Debug, Default)]
struct Mailbox {
    slot: Mutex<Slot>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct Slot {
    parcel: Vec<u8>,
    is_full: bool,
}

impl Threads {
    /// The ends of a group, one for each of `size` threads, by rank. Memory: some 50 bytes for each
    /// pair of threads, and the parcels.
    ///
    /// # Errors
    ///
    /// [`CommunicatorError::NoWorkers`], [`CommunicatorError::TooManyWorkers`].
    pub fn group(size: usize) -> Result<Vec<Threads>, CommunicatorError> {
        CommunicatorError::check_size(size)?;
        let boxes = (0..size * size).map(|_| Mailbox::default()).collect();
        let has_ended = (0..size).map(|_| AtomicBool::new(false)).collect();
        let problems = (0..size).map(|_| OnceLock::new()).collect();
        let group = Arc::new(Group { size, boxes, has_ended, problems });
        let end = |rank| Threads {
            rank,
            group: Arc::clone(&group),
            deadlines: None,
            waiting: Waiting::default(),
        };
        Ok((0..size).map(end).collect())
    }

    /// The longest times that this end waits for another. Without them it waits for ever: threads
    /// of a process are stopped together, and those that end say so.
    #[must_use]
    pub fn deadlines(mut self, deadlines: Deadlines) -> Self {
        self.deadlines = Some(deadlines);
        self
    }

    /// Exchanges one parcel with the slot between two workers, when it is full or empty as
    /// requested. `peer` is the other worker.
    fn swap(
        &self,
        [from, to]: [usize; 2],
        peer: usize,
        when_full: bool,
        parcel: &mut Vec<u8>,
    ) -> Result<(), CommunicatorError> {
        let mailbox = &self.group.boxes[from * self.group.size + to];
        let mut slot = mailbox.lock();
        let mut wait = None;
        while slot.is_full != when_full {
            // What a worker has sent before it ended is still taken.
            if self.group.has_ended[peer].load(Ordering::Acquire) {
                return Err(self.ended(peer));
            }
            let Some(deadlines) = self.deadlines else {
                slot = mailbox.changed.wait(slot).unwrap_or_else(PoisonError::into_inner);
                continue;
            };
            let wait = wait.get_or_insert_with(|| Wait::new(deadlines.of(self.waiting)));
            if wait.is_over() {
                let (rank, here, waited) = (peer, self.rank, wait.waited());
                return Err(CommunicatorError::Deadline { rank, here, waited });
            }
            let looked = mailbox.changed.wait_timeout(slot, wait.next_look());
            slot = looked.unwrap_or_else(PoisonError::into_inner).0;
        }
        std::mem::swap(&mut slot.parcel, parcel);
        slot.is_full = !when_full;
        mailbox.changed.notify_one();
        Ok(())
    }

    /// The error for a wait for a worker that has ended.
    fn ended(&self, rank: usize) -> CommunicatorError {
        let here = self.rank;
        match self.group.problems[rank].get() {
            Some(problem) => CommunicatorError::PeerFailed { rank, here, problem: problem.clone() },
            None => CommunicatorError::PeerLost { rank, here },
        }
    }

    /// Ends the waits of the others for this worker.
    fn leave(&self) {
        self.group.has_ended[self.rank].store(true, Ordering::Release);
        for peer in 0..self.group.size {
            for (from, to) in [(self.rank, peer), (peer, self.rank)] {
                let mailbox = &self.group.boxes[from * self.group.size + to];
                // Under the lock, so that no thread is between its check and its wait.
                let _slot = mailbox.lock();
                mailbox.changed.notify_all();
            }
        }
    }
}

impl Mailbox {
    fn lock(&self) -> MutexGuard<'_, Slot> {
        // Nothing in here panics while it holds the lock.
        self.slot.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Communicator for Threads {
    fn rank(&self) -> usize {
        self.rank
    }

    fn size(&self) -> usize {
        self.group.size
    }

    fn exchange(
        &mut self,
        outgoing: &mut Parcels,
        incoming: &mut Parcels,
    ) -> Result<(), CommunicatorError> {
        self.begin(outgoing)?;
        self.finish(outgoing, incoming)
    }

    fn begin(&mut self, outgoing: &mut Parcels) -> Result<(), CommunicatorError> {
        // A slot is emptied by the exchange that filled it, which depends on no later one: nobody
        // waits in a circle.
        for (to, parcel) in outgoing.iter_mut().enumerate() {
            self.swap([self.rank, to], to, false, parcel)?;
        }
        Ok(())
    }

    fn finish(&mut self, _: &mut Parcels, incoming: &mut Parcels) -> Result<(), CommunicatorError> {
        for (from, parcel) in incoming.iter_mut().enumerate() {
            self.swap([from, self.rank], from, true, parcel)?;
        }
        Ok(())
    }

    fn set_waiting(&mut self, waiting: Waiting) {
        self.waiting = waiting;
    }

    /// Waits for nobody.
    fn end(&mut self, outcome: Outcome<'_>) -> Result<(), CommunicatorError> {
        if let Outcome::Failed(error) = outcome {
            self.group.problems[self.rank].get_or_init(|| error.to_string());
        }
        self.leave();
        Ok(())
    }
}

impl Drop for Threads {
    fn drop(&mut self) {
        self.leave();
    }
}

//! A process's end of a group.

use crate::library::{self, Arrived, Problem};
use crate::transfer::{FAREWELL, Found, Transfer};
use mpi_sys as ffi;
use nnz::store::{Communicator, CommunicatorError, Deadlines, Outcome, Parcels, Wait, Waiting};
use std::ffi::c_int;
use std::io::Write;
use std::marker::PhantomData;
use std::time::{Duration, Instant};
use std::{fmt, mem, thread};

/// The exit code of a job that may be started again: a worker was lost. `EX_TEMPFAIL` of
/// `sysexits.h`.
const TRY_AGAIN: c_int = 75;
/// The exit code of a job that has failed.
const FAILED: c_int = 1;
/// The exit code of a job in which a worker has panicked.
const PANICKED: c_int = 101;

/// The bytes of the largest message: below the 2³¹ that MPI can count, and so few that a slow
/// network moves a message, which is a sign, well within a deadline.
const MAX_MESSAGE: usize = 1 << 26;

/// The bytes of the longest farewell: libraries send it at once, whatever the receiver does.
const LONGEST_FAREWELL: usize = 1024;

/// The longest time that a worker tries to send farewells.
const FAREWELL_TIME: Duration = Duration::from_millis(200);

/// A process's end of a group: a [`Communicator`] over MPI. [`group()`](crate::group()) gives it.
///
/// Parcels travel straight from and into the memory of [`Parcels`]. A wait spins for a while, then
/// yields the processor, then sleeps for some microseconds at a time.
///
/// A program ends it by [`end`](Communicator::end) with [`Outcome::Done`], which waits until all
/// workers do so. A group that is dropped before is a failure, of which the others are told; where
/// training has failed, dropping the group ends the job.
pub struct Group {
    comm: ffi::MPI_Comm,
    rank: usize,
    size: usize,
    deadlines: Deadlines,
    waiting: Waiting,
    max_message: usize,
    transfer: Transfer,
    state: State,
    /// The exit code, if the group has failed.
    code: c_int,
    /// MPI is called by the thread that began it.
    thread: PhantomData<*const ()>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Open,
    Failed,
    Ended,
}

impl Group {
    pub(crate) fn new(comm: ffi::MPI_Comm, rank: usize, size: usize) -> Self {
        Group {
            comm,
            rank,
            size,
            deadlines: Deadlines::default(),
            waiting: Waiting::default(),
            max_message: MAX_MESSAGE,
            transfer: Transfer::new(rank, size),
            state: State::Open,
            code: FAILED,
            thread: PhantomData,
        }
    }

    /// Sets the longest times that this worker waits for another without a sign of it.
    #[must_use]
    pub fn deadlines(mut self, deadlines: Deadlines) -> Self {
        self.deadlines = deadlines;
        self
    }

    /// Sets the bytes of the largest message, from 1 to 2³¹ - 1: longer parcels go in several.
    /// Workers may differ in it. 2²⁶ by default.
    #[must_use]
    pub fn max_message(mut self, n_bytes: usize) -> Self {
        self.max_message = n_bytes.clamp(1, c_int::MAX as usize);
        self
    }

    /// The error of a failure of MPI, after which the job may be started again.
    fn failed(&mut self, problem: Problem) -> CommunicatorError {
        self.code = TRY_AGAIN;
        CommunicatorError::Failed { here: self.rank, problem }
    }

    /// Refuses exchanges of a group that has ended, or has failed.
    fn check_open(&self) -> Result<(), CommunicatorError> {
        let problem = match self.state {
            State::Open => return Ok(()),
            State::Failed => "the group has failed before",
            State::Ended => "the group has ended",
        };
        Err(CommunicatorError::Failed { here: self.rank, problem: problem.to_owned() })
    }

    /// Receives the messages of an exchange.
    fn wait(&mut self) -> Result<(), CommunicatorError> {
        let mut wait = Wait::new(self.deadlines.of(self.waiting));
        let mut n_idle = 0u32;
        loop {
            match self.transfer.look(self.comm).map_err(|problem| self.failed(problem))? {
                Found::All => return Ok(()),
                Found::Farewell(arrived) => return Err(self.told(arrived)),
                Found::Some => {
                    wait.restart();
                    n_idle = 0;
                }
                Found::Nothing => n_idle = n_idle.saturating_add(1),
            }
            if n_idle % LOOKS_BETWEEN == LOOKS_BETWEEN - 1 {
                let farewell = library::probe(self.comm, None, Some(FAREWELL));
                if let Some(arrived) = farewell.map_err(|problem| self.failed(problem))? {
                    return Err(self.told(arrived));
                }
                if wait.is_over() {
                    self.code = TRY_AGAIN;
                    let (rank, here) = (self.transfer.waits_for(), self.rank);
                    let waited = wait.waited();
                    return Err(CommunicatorError::Deadline { rank, here, waited });
                }
            }
            idle(n_idle);
        }
    }

    /// The error of a worker that has failed, as it says itself.
    fn told(&mut self, arrived: Arrived) -> CommunicatorError {
        let (rank, here) = (arrived.from, self.rank);
        let mut text = vec![0; arrived.n_bytes];
        // SAFETY: room for the message, in memory that is leaked unless the message is there.
        let mut request = match unsafe { library::receive(arrived, text.as_mut_ptr()) } {
            Ok(request) => request,
            Err(problem) => return self.failed(problem),
        };
        let mut wait = Wait::new(FAREWELL_TIME);
        while !matches!(library::is_done(&mut request), Ok(true)) {
            if wait.is_over() {
                mem::forget(text);
                return CommunicatorError::PeerLost { rank, here };
            }
        }
        let Some((code, text)) = text.split_first() else {
            return CommunicatorError::PeerLost { rank, here };
        };
        self.code = c_int::from(*code);
        let problem = String::from_utf8_lossy(text).into_owned();
        CommunicatorError::PeerFailed { rank, here, problem }
    }

    /// Tells the others that this worker has failed.
    fn tell(&mut self, problem: &str) {
        self.state = State::Failed;
        let mut farewell = vec![u8::try_from(self.code).unwrap_or(1)];
        let mut ends = (0..=problem.len().min(LONGEST_FAREWELL)).rev();
        let end = ends.find(|end| problem.is_char_boundary(*end)).unwrap_or(0);
        farewell.extend_from_slice(&problem.as_bytes()[..end]);
        let others = (0..self.size).filter(|to| *to != self.rank);
        // SAFETY: the bytes are leaked unless they are sent. A worker that cannot be told finds out
        // by its deadline.
        let sends = others
            .filter_map(|to| unsafe { library::send(self.comm, &farewell, to, FAREWELL) }.ok());
        let mut sends = Vec::from_iter(sends);
        let began = Instant::now();
        while !matches!(library::are_done(&mut sends), Ok(true)) {
            if began.elapsed() > FAREWELL_TIME {
                mem::forget(farewell);
                return;
            }
            thread::yield_now();
        }
    }
}

/// Looks at an exchange's messages between two looks at the clock and for farewells.
const LOOKS_BETWEEN: u32 = 64;

/// Waits for a moment, longer after more looks in vain.
fn idle(n_looks: u32) {
    match n_looks {
        0..200 => std::hint::spin_loop(),
        200..20_000 => thread::yield_now(),
        _ => thread::sleep(Duration::from_micros(50)),
    }
}

impl Communicator for Group {
    fn rank(&self) -> usize {
        self.rank
    }

    fn size(&self) -> usize {
        self.size
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
        self.check_open()?;
        let (here, found, size) = (self.rank, outgoing.size(), self.size);
        if found != size {
            return Err(CommunicatorError::Parcels { here, found, size });
        }
        if self.transfer.is_under_way() {
            let problem = "an exchange was begun before the one before was finished".to_owned();
            return Err(CommunicatorError::Failed { here, problem });
        }
        let begun = self.transfer.begin(self.comm, outgoing, self.max_message);
        begun.map_err(|problem| self.failed(problem))
    }

    fn finish(&mut self, _: &mut Parcels, incoming: &mut Parcels) -> Result<(), CommunicatorError> {
        self.check_open()?;
        let (here, found, size) = (self.rank, incoming.size(), self.size);
        if found != size {
            return Err(CommunicatorError::Parcels { here, found, size });
        }
        if !self.transfer.is_under_way() {
            let problem = "an exchange was finished that was not begun".to_owned();
            return Err(CommunicatorError::Failed { here, problem });
        }
        self.wait()?;
        self.transfer.finish(incoming);
        Ok(())
    }

    fn set_waiting(&mut self, waiting: Waiting) {
        self.waiting = waiting;
    }

    /// [`Outcome::Done`] waits until all workers say so, then ends MPI. [`Outcome::Failed`] prints
    /// the error, with this worker's number, and tells the others.
    fn end(&mut self, outcome: Outcome<'_>) -> Result<(), CommunicatorError> {
        match outcome {
            Outcome::Failed(error) => {
                if self.state == State::Open && self.size > 1 {
                    // In one piece, because others write as well.
                    let line = format!("worker {}: error: {error}\n", self.rank);
                    let _ = std::io::stderr().write_all(line.as_bytes());
                    self.tell(&error.to_string());
                }
                Ok(())
            }
            Outcome::Done => {
                self.check_open()?;
                let (mut outgoing, mut incoming) =
                    (Parcels::new(self.size), Parcels::new(self.size));
                // The others may be saving what they have.
                self.waiting = Waiting::Pause;
                if let Err(error) = self.exchange(&mut outgoing, &mut incoming) {
                    self.end(Outcome::Failed(&error))?;
                    return Err(error);
                }
                self.state = State::Ended;
                library::finish().map_err(|problem| self.failed(problem))
            }
        }
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        let panics = thread::panicking();
        match self.state {
            State::Ended => return,
            // A process without others leaves it to the program what it says and returns.
            _ if self.size == 1 => return,
            State::Failed => {}
            State::Open if panics => {
                self.code = PANICKED;
                self.tell("it has panicked");
            }
            // What the program returns is printed after this. Its exit ends the job.
            State::Open => {
                self.tell("it has ended without `Outcome::Done`: its own output says why");
                return;
            }
        }
        library::abort(if panics { PANICKED } else { self.code });
    }
}

impl fmt::Debug for Group {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Group")
            .field("rank", &self.rank)
            .field("size", &self.size)
            .field("deadlines", &self.deadlines)
            .field("max_message", &self.max_message)
            .field("state", &self.state)
            .finish_non_exhaustive()
    }
}

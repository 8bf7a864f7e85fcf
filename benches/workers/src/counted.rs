//! A communicator that counts exchanges, bytes, and the processor time of its thread outside of
//! exchanges.

use nnz::store::{Communicator, CommunicatorError, Outcome, Parcels, Threads, Waiting};
use rustix::time::{ClockId, clock_gettime};

/// What a worker has used so far.
#[derive(Clone, Copy, Debug, Default)]
pub struct Used {
    /// Processor seconds of its thread, without exchanges.
    pub seconds: f64,
    pub exchanges: u64,
    /// To other workers.
    pub bytes: u64,
}

pub struct Counted {
    end: Threads,
    /// Processor seconds within exchanges.
    within: f64,
    exchanges: u64,
    bytes: u64,
}

/// The processor seconds of this thread.
pub fn of_thread() -> f64 {
    seconds(ClockId::ThreadCPUTime)
}

/// The processor seconds of all threads of this process.
pub fn of_process() -> f64 {
    seconds(ClockId::ProcessCPUTime)
}

fn seconds(clock: ClockId) -> f64 {
    let time = clock_gettime(clock);
    time.tv_sec as f64 + time.tv_nsec as f64 / 1e9
}

impl Counted {
    pub fn new(end: Threads) -> Self {
        Counted { end, within: 0.0, exchanges: 0, bytes: 0 }
    }

    /// What was used since this thread had used `began` seconds.
    pub fn used_since(&self, began: f64) -> Used {
        let seconds = of_thread() - began - self.within;
        Used { seconds, exchanges: self.exchanges, bytes: self.bytes }
    }

    fn count<A>(&mut self, work: impl FnOnce(&mut Threads) -> A) -> A {
        let began = of_thread();
        let done = work(&mut self.end);
        self.within += of_thread() - began;
        done
    }
}

impl Communicator for Counted {
    fn rank(&self) -> usize {
        self.end.rank()
    }

    fn size(&self) -> usize {
        self.end.size()
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
        self.exchanges += 1;
        let lengths = outgoing.iter().map(<[u8]>::len).enumerate();
        let to_others = lengths.filter(|(to, _)| *to != self.end.rank()).map(|(_, len)| len as u64);
        self.bytes += to_others.sum::<u64>();
        self.count(|end| end.begin(outgoing))
    }

    fn finish(
        &mut self,
        outgoing: &mut Parcels,
        incoming: &mut Parcels,
    ) -> Result<(), CommunicatorError> {
        self.count(|end| end.finish(outgoing, incoming))
    }

    fn set_waiting(&mut self, waiting: Waiting) {
        self.end.set_waiting(waiting);
    }

    fn end(&mut self, outcome: Outcome<'_>) -> Result<(), CommunicatorError> {
        self.end.end(outcome)
    }
}

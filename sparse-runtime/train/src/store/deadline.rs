//! Deadlines: the time that a worker waits for another without a sign of it.

use std::time::{Duration, Instant};

/// What the others do while a worker waits for them in an exchange.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Waiting {
    /// They compute the same step.
    #[default]
    Step,
    /// They may work for long without an exchange: worker 0 evaluates, saves or calls callbacks, or
    /// a worker opens its data before the first step.
    Pause,
}

/// The longest times that a worker waits for another without a sign of it. They find workers that
/// are stopped or cut off: a worker that fails, panics or ends says so, whatever they are.
///
/// ```
/// use nnz::store::{Deadlines, Waiting};
/// use std::time::Duration;
///
/// let deadlines = Deadlines { step: Duration::from_secs(5), ..Deadlines::default() };
/// assert_eq!(deadlines.of(Waiting::Step), Duration::from_secs(5));
/// assert_eq!(deadlines.of(Waiting::Pause), Duration::from_secs(3600));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Deadlines {
    /// For [`Waiting::Step`]: 30 s by default.
    pub step: Duration,
    /// For [`Waiting::Pause`]: an hour by default.
    pub pause: Duration,
}

impl Default for Deadlines {
    fn default() -> Self {
        Deadlines { step: Duration::from_secs(30), pause: Duration::from_secs(3600) }
    }
}

impl Deadlines {
    /// The deadline of an exchange.
    pub fn of(&self, waiting: Waiting) -> Duration {
        match waiting {
            Waiting::Step => self.step,
            Waiting::Pause => self.pause,
        }
    }
}

/// A wait against a deadline, for implementations of [`Communicator`](super::Communicator).
///
/// It counts the time between two looks at the clock as one second at most, so that a job that was
/// suspended as a whole does not find its deadline over when it goes on.
#[derive(Clone, Copy, Debug)]
pub struct Wait {
    deadline: Duration,
    waited: Duration,
    last: Instant,
}

/// The time that counts between two looks at the clock.
const LONGEST_TICK: Duration = Duration::from_secs(1);

impl Wait {
    /// Begins to wait.
    pub fn new(deadline: Duration) -> Self {
        Wait { deadline, waited: Duration::ZERO, last: Instant::now() }
    }

    /// Whether the deadline is over. Look at it at least once a second.
    pub fn is_over(&mut self) -> bool {
        let now = Instant::now();
        self.waited += now.duration_since(self.last).min(LONGEST_TICK);
        self.last = now;
        self.waited >= self.deadline
    }

    /// Begins anew: another worker has given a sign.
    pub fn restart(&mut self) {
        (self.waited, self.last) = (Duration::ZERO, Instant::now());
    }

    /// The time waited, at the last look.
    pub fn waited(&self) -> Duration {
        self.waited
    }

    /// The time until the next look is due.
    pub fn next_look(&self) -> Duration {
        self.deadline.saturating_sub(self.waited).clamp(Duration::from_millis(1), LONGEST_TICK)
    }
}

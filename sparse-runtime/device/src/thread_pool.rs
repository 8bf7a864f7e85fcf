//! A pool of helper threads that spin between jobs.
//!
//! The phases of a step last some hundred microseconds, and waking a sleeping thread takes a good
//! part of that. A helper that has done its part therefore spins for the next job before it sleeps,
//! and a job that begins meanwhile costs next to nothing. No job waits for an absent helper: the
//! calling thread does parts that have not begun.

use std::any::Any;
use std::cell::UnsafeCell;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering};
use std::sync::{Mutex, OnceLock, PoisonError, TryLockError};
use std::thread::{self, Thread};
use std::time::{Duration, Instant};

/// The largest number of parts of a job: a bit of a word each.
pub const MAX_PARTS: usize = u32::BITS as usize;

/// The largest number of threads of a job, with the calling one.
static MAX_THREADS: AtomicUsize = AtomicUsize::new(usize::MAX);

/// Bounds the threads of this process that work at a job: `threads`, at least 1, with the calling
/// one. Call it before the first job: helpers that were started stay.
pub fn set_max_threads(threads: usize) {
    MAX_THREADS.store(threads.max(1), Ordering::Relaxed);
}

/// How long a helper spins for the next job.
const LOOKS_OUT: Duration = Duration::from_micros(200);

/// Calls `body` once with each of some parts and its number, on as many threads as there are parts
/// and processors. The calling thread does the first part.
///
/// Allocates only if more helpers are needed than ever before. If the helpers are at another job,
/// or this is a part of one, the calling thread does all parts.
pub fn each<P: Send>(parts: &mut [P], body: impl Fn(usize, &mut P) + Sync) {
    /// A pointer for several threads.
    struct Start<P>(*mut P);
    // SAFETY: each thread makes references to parts of its own, which may be sent to it.
    unsafe impl<P: Send> Sync for Start<P> {}

    let (start, n_parts) = (Start(parts.as_mut_ptr()), parts.len());
    let start = &start;
    let body = |place: usize| {
        // SAFETY: `beside` calls this once for each place below `n_parts`, so that this is the only
        // reference to it.
        body(place, unsafe { &mut *start.0.add(place) });
    };
    beside(n_parts, || body(0), &body);
}

/// Runs `own` on the calling thread, and `body` once with each number of `1..n_parts` on helpers
/// beside it, or on the calling thread afterwards.
#[inline]
pub fn beside(n_parts: usize, own: impl FnOnce(), body: &(dyn Fn(usize) + Sync)) {
    match n_parts {
        0 => {}
        1 => own(),
        _ => {
            let mut own = Some(own);
            beside_helpers(n_parts, &mut || own.take().into_iter().for_each(|own| own()), body);
        }
    }
}

/// [`beside`] with several parts, compiled once for all of them. `own` is called once.
fn beside_helpers(n_parts: usize, own: &mut dyn FnMut(), body: &(dyn Fn(usize) + Sync)) {
    debug_assert!(n_parts <= MAX_PARTS);
    let helpers = match TEAM.helpers.try_lock() {
        Ok(helpers) => Some(helpers),
        Err(TryLockError::Poisoned(helpers)) => Some(helpers.into_inner()),
        Err(TryLockError::WouldBlock) => None,
    };
    let Some(mut helpers) = helpers else {
        own();
        return (1..n_parts).for_each(body);
    };
    Team::enlist(&mut helpers, n_parts);
    TEAM.begin(&helpers, n_parts, body);
    let under_way = UnderWay;
    own();
    while let Some(part) = TEAM.claim(0) {
        // What is claimed is done, also where it panics: `UnderWay` waits for it.
        let done = Done;
        body(part);
        drop(done);
    }
    drop(under_way);
    let panic = TEAM.panic();
    drop(helpers);
    if let Some(panic) = panic {
        resume_unwind(panic);
    }
}

/// A job for helpers. They refer to the stack of its giver, who waits for them, also in a panic.
struct UnderWay;

impl Drop for UnderWay {
    fn drop(&mut self) {
        TEAM.end();
        if thread::panicking() {
            TEAM.panic();
        }
    }
}

/// A part that is done when this is dropped.
struct Done;

impl Drop for Done {
    fn drop(&mut self) {
        TEAM.unfinished.fetch_sub(1, Ordering::Release);
    }
}

/// The helpers of this process.
struct Team {
    /// The lock to give a job.
    helpers: Mutex<Vec<Thread>>,
    /// A bit for each part that has not begun.
    waiting: AtomicU32,
    /// The parts that are not done, without those of the calling thread.
    unfinished: AtomicU32,
    /// A bit for each helper that sleeps or is about to.
    asleep: AtomicU32,
    /// Invariant: while `unfinished` is not 0, the job of these parts.
    job: UnsafeCell<Option<Job>>,
    /// The panic of the first helper that panicked.
    panic: Mutex<Option<Box<dyn Any + Send>>>,
}

/// A job; the caller of [`beside`] guarantees its lifetime.
type Job = *const (dyn Fn(usize) + Sync + 'static);

// SAFETY: `job` is written by the holder of `helpers` alone, while no part waits or is under way,
// and read by who has claimed a part, which happens after that. What it points to may be called by
// any thread.
unsafe impl Sync for Team {}

static TEAM: Team = Team {
    helpers: Mutex::new(Vec::new()),
    waiting: AtomicU32::new(0),
    unfinished: AtomicU32::new(0),
    asleep: AtomicU32::new(0),
    job: UnsafeCell::new(None),
    panic: Mutex::new(None),
};

impl Team {
    /// Starts helpers for a job of some parts, as many as there are processors for them, but at
    /// least one, and none beyond the [bound](set_max_threads). If the system starts none, the
    /// calling thread works alone.
    fn enlist(helpers: &mut Vec<Thread>, n_parts: usize) {
        static PROCESSORS: OnceLock<usize> = OnceLock::new();
        if helpers.len() + 1 >= n_parts {
            return;
        }
        let processors =
            *PROCESSORS.get_or_init(|| thread::available_parallelism().map_or(1, usize::from));
        let max_threads = processors.max(2).min(MAX_THREADS.load(Ordering::Relaxed));
        while helpers.len() + 1 < n_parts.min(max_threads) {
            let number = helpers.len();
            let name = format!("nnz-{}", number + 1);
            match thread::Builder::new().name(name).spawn(move || TEAM.help(number)) {
                Ok(handle) => helpers.push(handle.thread().clone()),
                Err(_) => return,
            }
        }
    }

    /// Publishes a job of the parts `1..n_parts`. It must exist until [`end`](Self::end) has
    /// returned.
    fn begin(&self, helpers: &[Thread], n_parts: usize, body: &(dyn Fn(usize) + Sync)) {
        let body: *const (dyn Fn(usize) + Sync + '_) = body;
        // SAFETY: the two types differ in a lifetime only, and `end` is called before it is over.
        // No part of another job is under way: its giver has waited for that, and this one holds
        // `helpers`.
        unsafe {
            *self.job.get() =
                Some(std::mem::transmute::<*const (dyn Fn(usize) + Sync + '_), Job>(body))
        };
        self.unfinished.store(n_parts as u32 - 1, Ordering::Relaxed);
        let all = u32::MAX >> (MAX_PARTS - n_parts) as u32;
        // A helper about to sleep writes `asleep` and then reads `waiting`: one of the two sees the
        // other.
        self.waiting.store(all & !1, Ordering::SeqCst);
        let asleep = self.asleep.load(Ordering::SeqCst);
        for (number, helper) in helpers.iter().enumerate().take(n_parts - 1) {
            if asleep & 1 << number != 0 {
                helper.unpark();
            }
        }
    }

    /// Takes back parts that have not begun and waits for the rest.
    fn end(&self) {
        let dropped = self.waiting.swap(0, Ordering::AcqRel).count_ones();
        self.unfinished.fetch_sub(dropped, Ordering::Relaxed);
        let mut looks = 0u32;
        while self.unfinished.load(Ordering::Acquire) != 0 {
            wait_a_little(&mut looks);
        }
    }

    /// The panic of a helper, once.
    fn panic(&self) -> Option<Box<dyn Any + Send>> {
        self.panic.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    /// A part that has not begun, the one with this number if possible.
    fn claim(&self, number: usize) -> Option<usize> {
        loop {
            let waiting = self.waiting.load(Ordering::Relaxed);
            if waiting == 0 {
                return None;
            }
            let own = waiting & 1 << number;
            let part = if own != 0 { number as u32 } else { waiting.trailing_zeros() };
            if self.waiting.fetch_and(!(1 << part), Ordering::AcqRel) & 1 << part != 0 {
                return Some(part as usize);
            }
        }
    }

    /// The main loop of helper `number`. In every job it begins with the same part, whose data may
    /// still be in its cache.
    fn help(&self, number: usize) {
        loop {
            self.look_out(number);
            while let Some(part) = self.claim(number + 1) {
                // SAFETY: the part was claimed, so that its giver waits until it is done, and what
                // it wrote is seen.
                let job = unsafe { *self.job.get() };
                let done = Done;
                let Some(job) = job else { continue };
                // SAFETY: as above.
                let result = catch_unwind(AssertUnwindSafe(|| unsafe { (*job)(part) }));
                if let Err(panic) = result {
                    let mut first = self.panic.lock().unwrap_or_else(PoisonError::into_inner);
                    first.get_or_insert(panic);
                }
                drop(done);
            }
        }
    }

    /// Returns when there are parts.
    fn look_out(&self, number: usize) {
        /// The number of checks between two reads of the clock.
        const LOOKS: u32 = 64;
        let since = Instant::now();
        while self.waiting.load(Ordering::Relaxed) == 0 {
            // Nobody else is let on the processor: who is so may not leave it for milliseconds.
            for _ in 0..LOOKS {
                if self.waiting.load(Ordering::Relaxed) != 0 {
                    return;
                }
                std::hint::spin_loop();
            }
            if since.elapsed() < LOOKS_OUT {
                continue;
            }
            self.asleep.fetch_or(1 << number, Ordering::SeqCst);
            while self.waiting.load(Ordering::SeqCst) == 0 {
                thread::park();
            }
            self.asleep.fetch_and(!(1 << number), Ordering::SeqCst);
        }
    }
}

/// Between two checks of another thread's progress: that thread may need the processor.
pub fn wait_a_little(looks: &mut u32) {
    const LOOKS: u32 = 64;
    *looks = looks.wrapping_add(1);
    if looks.is_multiple_of(LOOKS) {
        thread::yield_now();
    } else {
        std::hint::spin_loop();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_part_is_done_once() {
        for n_parts in [0, 1, 2, 3, 7, MAX_PARTS] {
            for _ in 0..100 {
                let mut parts = vec![0; n_parts];
                each(&mut parts, |place, part| *part += place + 1);
                assert!(parts.iter().copied().eq(1..=n_parts));
            }
        }
    }

    #[test]
    fn a_part_may_be_a_job() {
        let mut parts = [[0; 3]; 4];
        each(&mut parts, |place, part| each(part, |inner, out| *out = place * 3 + inner));
        assert!(parts.iter().flatten().copied().eq(0..12));
    }

    #[test]
    fn jobs_of_several_threads() {
        thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(every_part_is_done_once);
            }
        });
    }

    #[test]
    fn a_panic_comes_back_and_others_are_waited_for() {
        for panics in 0..3 {
            let mut parts = [0; 3];
            let result = catch_unwind(AssertUnwindSafe(|| {
                each(&mut parts, |place, part| {
                    assert!(place != panics, "part {place}");
                    *part += 1;
                });
            }));
            assert!(result.is_err());
            assert_eq!(parts[panics], 0);
        }
        every_part_is_done_once();
    }
}

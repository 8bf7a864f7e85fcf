//! A pipeline of threads over the samples of a batch.
//!
//! A sum over the entries of a sample in their order cannot be divided among threads, but it can be
//! handed on. The thread that owns the first entries begins the sum, the next one continues it, and
//! the bits are those of one thread. While one sample is at its second stage another is at its
//! first. The data handed on has the size of the sums, for any number of entries.

use nnz_device::thread_pool;
use std::ops::Range;
use std::sync::atomic::{AtomicUsize, Ordering};

/// The runs of neighbouring rows that go through the stages together.
const MAX_RUNS: usize = 64;

/// How often a thread that keeps to its stage looks for something to do there before it helps
/// others: for longer than a run of a usual batch is at a stage.
const LOOKS: u32 = 1024;

/// How rows go through stages.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Order {
    /// How many.
    pub(crate) n_stages: usize,
    /// Whether a thread does the stages of others only after it has waited for them for a while.
    /// What a stage reads is then in the cache of one thread, which writes it after the stages;
    /// else it would first have to take it from the other's.
    pub(crate) keeps: bool,
}

/// Makes rows of `out`, `width` elements each, in stages, at most as many as there are parts, on as
/// many threads as these: `stage(number, part, rows, out)`, in the order of the stages for each
/// row, with a part of that thread. A thread prefers the stage of its own number. The calling
/// thread takes some rows after the other in order, as soon as all stages are done:
/// `take(rows, out)`.
pub(crate) fn in_stages<P: Send, U: Send>(
    parts: &mut [P],
    order: Order,
    out: &mut [U],
    width: usize,
    stage: impl Fn(usize, &mut P, Range<usize>, &mut [U]) + Sync,
    mut take: impl FnMut(Range<usize>, &mut [U]),
) {
    /// Pointers for several threads.
    struct Starts<P, U>(*mut P, *mut U);
    // SAFETY: a part and a run are referred to by one thread at a time, as `each_run` says, and may
    // be sent to it.
    unsafe impl<P: Send, U: Send> Sync for Starts<P, U> {}

    let width = width.max(1);
    let (n_parts, n_rows) = (parts.len(), out.len() / width);
    let starts = &Starts(parts.as_mut_ptr(), out.as_mut_ptr());
    let out = |rows: &Range<usize>| {
        let len = (rows.end - rows.start) * width;
        // SAFETY: inside `out`; as above.
        unsafe { std::slice::from_raw_parts_mut(starts.1.add(rows.start * width), len) }
    };
    each_run(
        (n_parts, n_rows),
        order,
        &|number, thread, rows| {
            // SAFETY: as above.
            let part = unsafe { &mut *starts.0.add(thread) };
            let out = out(&rows);
            stage(number, part, rows, out);
        },
        &mut |rows| {
            let out = out(&rows);
            take(rows, out);
        },
    );
}

/// [`in_stages`] by runs of rows, in one copy whatever is done with them.
/// `stage(number, thread, rows)` is called on thread `thread` of `n_threads`. Runs do not overlap,
/// and each is given to one thread at a time: to the one that has begun a stage until it is done,
/// and once all are to the calling one, which takes it.
fn each_run(
    (n_threads, n_rows): (usize, usize),
    Order { n_stages, keeps }: Order,
    stage: &(dyn Fn(usize, usize, Range<usize>) + Sync),
    take: &mut dyn FnMut(Range<usize>),
) {
    let n_runs = MAX_RUNS.min(n_rows.isqrt());
    assert!((1..=n_threads).contains(&n_stages), "{n_stages} stages of {n_threads} parts");
    // Ever shorter ones, so that threads end at about the same time.
    let squared = |runs: usize| (runs * runs) as u64;
    let rows_after = |run: usize| n_rows as u64 * squared(n_runs - run) / squared(n_runs);
    let rows_before = |run: usize| n_rows - rows_after(run) as usize;
    let rows = |run: usize| rows_before(run)..rows_before(run + 1);
    let progress = Progress::new(n_runs, n_stages);
    let make_next = |thread: usize, helps: bool| {
        // What is nearest to its end comes next: so that there is something to take.
        let own = thread.min(n_stages - 1);
        let others = if helps { n_stages } else { 0 };
        let mut order = std::iter::once(own).chain((0..others).rev());
        let next = order.find_map(|number| Some((number, progress.begin(number)?)));
        let Some((number, (run, _done))) = next else { return false };
        stage(number, thread, rows(run));
        true
    };
    // Who has once waited in vain helps from then on: the other one may not be there at all.
    let own = || {
        let _ended = Ended(&progress);
        let (mut looks, mut helps) = (0, !keeps);
        for run in 0..n_runs {
            while !progress.is_done(run) {
                if make_next(0, helps) {
                    looks = 0;
                } else {
                    thread_pool::wait_a_little(&mut looks);
                    helps |= looks > LOOKS;
                }
            }
            looks = 0;
            take(rows(run));
        }
    };
    thread_pool::beside(n_threads, own, &|part| {
        let (mut looks, mut helps) = (0, !keeps);
        while !progress.is_all_begun() {
            if make_next(part, helps) {
                looks = 0;
            } else {
                thread_pool::wait_a_little(&mut looks);
                helps |= looks > LOOKS;
            }
        }
    });
}

/// How far each run has come.
struct Progress {
    n_runs: usize,
    n_stages: usize,
    /// The stages that are done, of each run.
    done: [AtomicUsize; MAX_RUNS],
    /// The runs that were begun, of each stage.
    begun: [AtomicUsize; thread_pool::MAX_PARTS],
}

impl Progress {
    fn new(n_runs: usize, n_stages: usize) -> Self {
        let done = [const { AtomicUsize::new(0) }; MAX_RUNS];
        Progress {
            n_runs,
            n_stages,
            done,
            begun: [const { AtomicUsize::new(0) }; thread_pool::MAX_PARTS],
        }
    }

    /// The next run of a stage, if those before it are done with it. It is the caller's until what
    /// comes with it is dropped.
    fn begin(&self, stage: usize) -> Option<(usize, Done<'_>)> {
        let next = |run: usize| {
            let is_ready = run < self.n_runs && self.done[run].load(Ordering::Acquire) >= stage;
            is_ready.then_some(run + 1)
        };
        let run =
            self.begun[stage].fetch_update(Ordering::Relaxed, Ordering::Relaxed, next).ok()?;
        Some((run, Done(&self.done[run], stage + 1)))
    }

    fn is_done(&self, run: usize) -> bool {
        self.done[run].load(Ordering::Acquire) == self.n_stages
    }

    /// Whether every run has begun the last stage, so that nothing is left to begin.
    fn is_all_begun(&self) -> bool {
        self.begun[self.n_stages - 1].load(Ordering::Relaxed) == self.n_runs
    }
}

/// Says that a stage is done, also if it panicked, so that nobody waits for it.
struct Done<'a>(&'a AtomicUsize, usize);

impl Drop for Done<'_> {
    fn drop(&mut self) {
        self.0.store(self.1, Ordering::Release);
    }
}

/// Lets nobody begin anything once the calling thread takes nothing more, also if that panicked.
struct Ended<'a>(&'a Progress);

impl Drop for Ended<'_> {
    fn drop(&mut self) {
        for begun in &self.0.begun {
            begun.store(self.0.n_runs, Ordering::Relaxed);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stages_follow_one_another_and_rows_are_taken_in_order() {
        let stages_and_parts = [(1, 1), (1, 2), (2, 2), (2, 3), (3, 3), (1, 7), (7, 7)];
        for ((n_stages, n_parts), keeps) in
            stages_and_parts.into_iter().flat_map(|counts| [(counts, false), (counts, true)])
        {
            for n_rows in [0, 1, 63, 64, 65, 1000] {
                let (mut out, mut taken) = (vec![[0; 2]; 2 * n_rows], 0);
                in_stages(
                    &mut vec![(); n_parts],
                    Order { n_stages, keeps },
                    &mut out,
                    2,
                    |stage, (), rows, out| {
                        for (row, out) in rows.zip(out.chunks_exact_mut(2)) {
                            assert_eq!(out, [[stage, stage * row]; 2]);
                            out.fill([stage + 1, (stage + 1) * row]);
                        }
                    },
                    |rows, out| {
                        for (row, out) in rows.zip(out.chunks_exact_mut(2)) {
                            assert_eq!(out, [[n_stages, n_stages * row]; 2]);
                            assert_eq!(row, taken);
                            taken += 1;
                        }
                    },
                );
                assert_eq!(taken, n_rows);
            }
        }
    }

    #[test]
    fn nobody_waits_after_a_panic() {
        let with = |stage_panics: bool, take_panics: bool| {
            std::panic::catch_unwind(|| {
                let stage = |stage, (): &mut (), rows: Range<usize>, _: &mut [()]| {
                    assert!(!(stage_panics && stage == 1 && rows.contains(&100)));
                };
                let take = |rows: Range<usize>, _: &mut [()]| {
                    assert!(!(take_panics && rows.contains(&10)));
                };
                let order = Order { n_stages: 3, keeps: stage_panics };
                in_stages(&mut [(); 3], order, &mut [(); 1000], 1, stage, take);
            })
        };
        assert!(with(true, false).is_err());
        assert!(with(false, true).is_err());
        assert!(with(false, false).is_ok());
    }
}

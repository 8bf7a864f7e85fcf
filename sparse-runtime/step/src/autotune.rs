//! Chooses between one thread and several by timing both.
//!
//! The gain of threads depends on the processor, whose cores share a cache or do not, and on its
//! other load: no estimate of work shows it. The bits of a step do not depend on its threads. Both
//! ways are therefore tried, where the work allows it, and the faster one is kept: sharing never
//! costs more than its trials.

use crate::column_partition::parts_of_work;
use nnz_arrays::kernels::Parallel;
use std::time::Instant;

/// What of a step is shared by itself.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Stage {
    /// What is computed of rows of data, and the updates that go with it.
    Rows,
    /// The update of a parameter by scattered gradients.
    Update(usize),
}

/// What was seen of the stages of a model's step, for batches of about the same work.
#[derive(Clone, Debug, Default)]
pub(crate) struct Autotune {
    stages: Vec<[Pace; CLASSES]>,
}

/// Batches whose work lies between the same powers of two are one class.
const CLASSES: usize = usize::BITS as usize;

/// A stage that was begun, to be [ended](Autotune::end).
#[derive(Debug)]
pub(crate) struct Begun {
    /// In how many parts it is to be done.
    pub(crate) n_parts: usize,
    /// Of a stage that threads can share: its place, and when it began.
    timed: Option<(usize, usize, usize, Instant)>,
}

impl Autotune {
    /// Chooses for a stage of so much work, in about a quarter of a nanosecond, how many threads
    /// are to share it. O(1); allocates where a stage is new.
    #[inline]
    pub(crate) fn begin(&mut self, stage: Stage, parallel: Parallel, work: usize) -> Begun {
        match parts_of_work(parallel, work) {
            1 => Begun { n_parts: 1, timed: None },
            n_parts => self.choose(stage, n_parts, work),
        }
    }

    /// Notes how long a stage took. One that failed need not be noted.
    #[inline]
    pub(crate) fn end(&mut self, begun: Begun) {
        if let Some((stage, class, work, start)) = begun.timed {
            self.stages[stage][class].note(start.elapsed().as_secs_f64() / work as f64);
        }
    }

    #[inline(never)]
    fn choose(&mut self, stage: Stage, n_parts: usize, work: usize) -> Begun {
        let stage = match stage {
            Stage::Rows => 0,
            Stage::Update(parameter) => 1 + parameter,
        };
        if self.stages.len() <= stage {
            self.stages.resize(stage + 1, [Pace::NEW; CLASSES]);
        }
        let class = work.ilog2() as usize;
        let n_parts = if self.stages[stage][class].shared { n_parts } else { 1 };
        Begun { n_parts, timed: Some((stage, class, work, Instant::now())) }
    }
}

/// What was seen of one stage, in seconds a unit of work.
#[derive(Clone, Copy, Debug)]
struct Pace {
    /// The last steps of the way that is kept, since its last trial; infinite where there were
    /// none.
    recent: [f64; 4],
    /// Their [pace](Self::typical) when the other way's trial began.
    kept: f64,
    /// The best pace of such steps.
    best: f64,
    /// The way in which it goes now.
    shared: bool,
    /// True while the other way is tried.
    is_trial: bool,
    /// The steps that are left until the other way's turn.
    left: u32,
    /// The steps between two trials.
    stretch: u32,
}

impl Pace {
    /// The steps of a trial. In the first, tables are in the caches of whom they were for before:
    /// it does not count, but the mean of the others does.
    const TRIAL: u32 = 3;

    /// The steps before the first trial, which are shared. The first of them touch memory that was
    /// not touched before, which would speak for the other way.
    const BEGINNING: u32 = 8;

    /// The steps between trials, where the way was changed just now. Few, so that a wrong choice
    /// does not last.
    const SHORTEST: u32 = 8;

    /// The most that the steps between trials become, twice as many after each that changed
    /// nothing: so many that trials are one step in a hundred.
    const LONGEST: u32 = 512;

    /// What the other way's time must be of this one's for a change.
    const BETTER: f64 = 0.97;

    /// What the fastest of the last steps must take of the best time of its way for the other one
    /// to have its turn at once: then who else uses the processor has changed, and what was found
    /// before says little.
    const SLOWER: f64 = 1.25;

    /// The steps after a trial in which steps that become slower bring no other one: where
    /// processors are now fast and now slow, trials are not to take more than one step in ten.
    const SETTLED: u32 = 32;

    const NEW: Pace = Pace {
        recent: [f64::INFINITY; 4],
        kept: f64::INFINITY,
        best: f64::INFINITY,
        shared: true,
        is_trial: false,
        left: Self::BEGINNING,
        stretch: Self::SHORTEST / 2,
    };

    /// The mean of the last steps without the slowest, which may have waited for the processor, or
    /// for memory that others had used before.
    fn typical(&self) -> f64 {
        let [a, b, c, d] = self.recent;
        let slowest = a.max(b).max(c).max(d);
        if slowest.is_finite() { (a + b + c + d - slowest) / 3.0 } else { f64::INFINITY }
    }

    #[inline(never)]
    fn note(&mut self, pace: f64) {
        self.left -= 1;
        if !self.is_trial {
            self.recent.rotate_left(1);
            self.recent[3] = pace;
            let (typical, fastest) = (self.typical(), self.recent.into_iter().fold(pace, f64::min));
            let is_settled = self.stretch.saturating_sub(self.left) >= Self::SETTLED;
            if typical.is_finite() && is_settled && fastest > Self::SLOWER * self.best {
                (self.left, self.best) = (0, typical);
            }
            self.best = self.best.min(typical);
            if self.left == 0 {
                (self.is_trial, self.shared, self.left) = (true, !self.shared, Self::TRIAL);
                self.kept = typical;
            }
            return;
        }
        if self.left > 0 {
            // The last of these is the second step.
            self.recent[0] = pace;
            return;
        }
        if (self.recent[0] + pace) / 2.0 < self.kept * Self::BETTER {
            (self.stretch, self.best) = (Self::SHORTEST, f64::INFINITY);
        } else {
            self.shared = !self.shared;
            self.stretch = Self::LONGEST.min(2 * self.stretch);
        }
        (self.is_trial, self.left, self.recent) = (false, self.stretch, Self::NEW.recent);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The share of some steps that were shared, where they cost so much alone and shared.
    fn shared_of(pace: &mut Pace, steps: u32, [alone, shared]: [f64; 2]) -> f64 {
        let mut count = 0;
        for _ in 0..steps {
            count += u32::from(pace.shared);
            pace.note(if pace.shared { shared } else { alone });
        }
        f64::from(count) / f64::from(steps)
    }

    #[test]
    fn the_faster_way_is_kept() {
        for (cost, expected) in [([2.0, 1.0], 1.0), ([1.0, 2.0], 0.0)] {
            let mut pace = Pace::NEW;
            assert!((shared_of(&mut pace, 1000, cost) - expected).abs() < 0.03, "{cost:?}");
            assert!((shared_of(&mut pace, 10_000, cost) - expected).abs() < 0.01, "{cost:?}");
        }
    }

    #[test]
    fn a_way_that_becomes_the_faster_one_is_found() {
        let mut pace = Pace::NEW;
        shared_of(&mut pace, 10_000, [1.0, 2.0]);
        shared_of(&mut pace, 2 * Pace::LONGEST, [2.0, 1.0]);
        assert!(shared_of(&mut pace, 1000, [2.0, 1.0]) > 0.98);
    }

    #[test]
    fn a_way_that_becomes_slower_is_left_at_once() {
        let mut pace = Pace::NEW;
        shared_of(&mut pace, 10_000, [2.0, 1.0]);
        while pace.is_trial {
            pace.note(2.0);
        }
        assert!(pace.shared && shared_of(&mut pace, 100, [2.0, 3.0]) < 0.15);
        // Of two that have become slower the better one stays, and the other one is tried as seldom
        // as before.
        let mut pace = Pace::NEW;
        shared_of(&mut pace, 10_000, [2.0, 1.0]);
        assert!(shared_of(&mut pace, 10_000, [4.0, 2.0]) > 0.99);
    }

    #[test]
    fn what_is_now_fast_and_now_slow_is_not_tried_all_the_time() {
        let mut pace = Pace::NEW;
        shared_of(&mut pace, 10_000, [2.0, 1.0]);
        let (mut shared, mut slowness) = (0.0, 1.0);
        for _ in 0..200 {
            shared += shared_of(&mut pace, 10, [2.0 * slowness, slowness]) / 200.0;
            slowness = 3.0 - slowness;
        }
        assert!(shared > 0.9, "{shared}");
    }

    #[test]
    fn one_step_that_waited_decides_nothing() {
        let mut pace = Pace::NEW;
        [9.0, 9.0, 9.0, 9.0, 1.0, 1.0, 1.0, 50.0].into_iter().for_each(|cost| pace.note(cost));
        assert!(!pace.shared && pace.is_trial);
        [1.5; Pace::TRIAL as usize].into_iter().for_each(|cost| pace.note(cost));
        assert!(pace.shared && !pace.is_trial);
        // Nor do three after which it goes on as before.
        [1.0, 1.0, 1.0, 1.0, 3.0, 3.0, 3.0].into_iter().for_each(|cost| pace.note(cost));
        assert!(pace.shared && !pace.is_trial);
    }

    /// Of steps that are now fast and now slow it counts what they take together.
    #[test]
    fn a_way_is_not_kept_for_its_fast_steps_alone() {
        let mut pace = Pace::NEW;
        let mut shared = 0;
        for step in 0..10_000 {
            shared += u32::from(pace.shared);
            let of_shared = if step % 3 == 0 { 1.0 } else { 2.0 };
            pace.note(if pace.shared { of_shared } else { 1.3 });
        }
        assert!(shared < 1000, "{shared}");
    }

    #[test]
    fn work_for_one_thread_is_not_timed() {
        let mut autotune = Autotune::default();
        for (parallel, work) in [
            (Parallel::Sequential, usize::MAX),
            (Parallel::Threads(2), 0),
            (Parallel::Threads(1), 1 << 40),
        ] {
            let begun = autotune.begin(Stage::Rows, parallel, work);
            assert!(begun.n_parts == 1 && begun.timed.is_none());
            autotune.end(begun);
        }
        assert!(autotune.stages.is_empty());
        let begun = autotune.begin(Stage::Update(1), Parallel::Threads(2), 1 << 30);
        assert_eq!((begun.n_parts, autotune.stages.len()), (2, 3));
        autotune.end(begun);
    }
}

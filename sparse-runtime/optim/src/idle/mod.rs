//! The idle steps made so far, any interval of which is one map.

use super::maps::IdleMap;
use super::mean_run::MeanRun;
use super::powers::{Powers, Runs};
use super::suffixes::Suffixes;
use sparse_core::element::Float;

/// The idle maps of all steps so far, so that any interval of steps can be applied as one map.
///
/// Steps with equal maps form a run. A query inside the newest run is one power (with a table for
/// short ones); a query over several runs combines O(log runs) tabulated products, so that a
/// learning rate that changes at every step costs O(log steps) and not O(gap). Of maps that
/// [forget](IdleMap::FORGETS) the newest runs are kept and nothing is multiplied.
///
/// Maps are multiplied in `f64`; [scalar](IdleMap::scalar) powers are tabulated in `A`, that in
/// which they are applied.
#[derive(Clone, Debug)]
pub struct IdleHistory<M, A = f64> {
    /// Steps recorded.
    steps: u64,
    /// The map and the first step of each run.
    runs: Vec<(M, u64)>,
    /// The products of the runs before the newest.
    finished: Suffixes<M>,
    /// Those of the newest run's map, as far as the run is long.
    powers: Powers<M, A>,
}

impl<M, A> Default for IdleHistory<M, A> {
    fn default() -> Self {
        IdleHistory {
            steps: 0,
            runs: Vec::new(),
            finished: Suffixes::default(),
            powers: Powers::default(),
        }
    }
}

impl<M: IdleMap, A: Float> IdleHistory<M, A> {
    /// The steps recorded so far.
    pub fn steps(&self) -> u64 {
        self.steps
    }

    /// The runs of equal maps: the memory that the history takes, in units of some 100 bytes.
    pub fn n_runs(&self) -> usize {
        self.runs.len()
    }

    /// The map and the first step of each run that is kept: with the number of steps, all that a
    /// history is.
    pub fn runs(&self) -> &[(M, u64)] {
        &self.runs
    }

    /// The history of so many steps with these runs, which gives the same bits as the one that they
    /// were [taken](Self::runs) from. `None` where steps go back or beyond the last.
    pub fn of_runs(steps: u64, runs: &[(M, u64)]) -> Option<Self> {
        let last = runs.last().map_or(0, |run| run.1);
        if last > steps || !runs.is_sorted_by_key(|run| run.1) || M::FORGETS && runs.len() > 2 {
            return None;
        }
        let mut history = IdleHistory::default();
        if M::FORGETS {
            history.runs.extend_from_slice(runs);
        } else {
            for &(map, first) in runs {
                history.steps = first;
                history.start_run(map);
            }
        }
        history.steps = steps;
        if let (false, Some((_, start))) = (M::FORGETS, runs.last()) {
            history.powers.reach(steps - start);
        }
        Some(history)
    }

    /// Forgets everything but the number of steps. Only after every row has been brought up to
    /// date. The newest run goes on: the powers of its map are still good.
    pub fn forget(&mut self) {
        if M::FORGETS {
            return;
        }
        if let Some(&(map, _)) = self.runs.last() {
            self.runs.clear();
            self.runs.push((map, self.steps));
        }
        self.finished.clear();
    }

    /// Forgets everything and counts on from `steps`, as if nothing had been recorded since. Only
    /// after every row has been brought up to date.
    pub fn restart(&mut self, steps: u64) {
        self.runs.clear();
        self.finished.clear();
        self.steps = steps;
    }

    /// Forgets what only intervals that begin before step `from` can ask for. O(runs kept).
    pub fn forget_before(&mut self, from: u64) {
        if M::FORGETS || from >= self.steps {
            return self.forget();
        }
        let kept = self.runs.partition_point(|&(_, first)| first <= from);
        self.runs.drain(..kept.saturating_sub(1));
        self.finished.clear();
        for run in 1..self.runs.len() {
            self.finished.push(self.run_product(run - 1));
        }
    }

    /// Records one more step, with its idle map.
    #[inline]
    pub fn push(&mut self, map: M) {
        if M::FORGETS {
            return self.replace(map);
        }
        match self.runs.last() {
            Some((last, start)) if *last == map => {
                self.powers.reach(self.steps - start + 1);
            }
            _ => self.start_run(map),
        }
        self.steps += 1;
    }

    /// Records some more steps, all with this map.
    #[inline]
    pub fn push_many(&mut self, map: M, count: u64) {
        if count == 0 {
            return;
        }
        self.push(map);
        self.steps += count - 1;
        if M::FORGETS {
            return;
        }
        let start = self.runs.last().map_or(0, |(_, start)| *start);
        self.powers.reach(self.steps - start);
    }

    /// Counts some more steps that change nothing. While no step has been recorded that is all, and
    /// an interval that begins before such a step must not be asked for later.
    #[inline]
    pub fn skip(&mut self, count: u64) {
        if self.runs.is_empty() {
            self.steps += count;
        } else {
            self.push_many(M::IDENTITY, count);
        }
    }

    /// Takes back what was recorded after the first `steps` steps: all of it at once, by
    /// [`push_many`](Self::push_many), or skipped at once. Nothing, if `steps` or fewer were
    /// recorded.
    pub fn take_back(&mut self, steps: u64) {
        self.steps = steps.min(self.steps);
        if M::FORGETS {
            self.runs.pop_if(|run| run.1 >= steps);
        } else if self.runs.last().is_some_and(|(_, start)| *start > steps) {
            self.take_back_runs();
        }
    }

    /// Takes back the runs that begin after the steps: they were recorded by several calls.
    #[cold]
    fn take_back_runs(&mut self) {
        let kept = self.runs.partition_point(|run| run.1 <= self.steps);
        // Runs ascend, and those that are kept are not beyond the steps.
        *self = Self::of_runs(self.steps, &self.runs[..kept]).unwrap_or_default();
    }

    /// Records a step of maps of which only the last counts. Two runs are kept: the newest may be
    /// steps that are yet to come.
    #[inline]
    fn replace(&mut self, map: M) {
        let last = self.runs.last().map(|run| run.0);
        let newest = last.map_or(map, |last| map.after(&last));
        if last != Some(newest) {
            if self.runs.len() > 1 {
                self.runs.remove(0);
            }
            self.runs.push((newest, self.steps));
        }
        self.steps += 1;
    }

    /// The last map of an interval, of maps of which only the last counts.
    #[inline]
    fn last_of(&self, from: u64, to: u64) -> M {
        let before = self.runs.iter().rev().find(|run| run.1 < to);
        before.filter(|_| from < to).map_or(M::IDENTITY, |run| run.0)
    }

    /// The first step of the newest run of equal maps; none before the first.
    #[inline]
    pub fn newest_run(&self) -> Option<u64> {
        self.runs.last().map(|run| run.1)
    }

    /// The map of the steps `from .. self.steps()`.
    #[inline]
    pub fn since(&self, from: u64) -> M {
        self.between(from, self.steps)
    }

    /// The first step of the newest run of equal maps, and the first powers of its map, from the
    /// first on: the maps of as many steps of that run.
    #[inline]
    pub fn newest_powers(&self) -> Option<(u64, &[M])> {
        let &(_, start) = self.runs.last()?;
        Some((start, self.powers.first()?))
    }

    /// The powers of the newest run's map as [runs](IdleMap::run), as far as that run is long.
    #[inline]
    pub fn newest_runs(&self) -> Runs<'_, A> {
        self.powers.runs()
    }

    /// The run of so many steps of the newest run, where these are more than are tabulated one by
    /// one, and [none of them](IdleMap::is_spent) moves a weight any more.
    #[inline(never)]
    pub fn newest_spent_run(&self, count: u64) -> Option<MeanRun<A>> {
        self.powers.spent_run(count)
    }

    /// The first powers of the newest run's map as [scalars](IdleMap::scalar), from the power 0 on,
    /// which changes nothing; none where it is no such map. All up to the steps of that run, as far
    /// as there is room.
    #[inline]
    pub fn newest_scalars(&self) -> &[[A; 2]] {
        self.powers.scalars()
    }

    /// The map of the steps `from .. to`, as far as they were recorded. O(runs) where `to` is
    /// before the newest run of equal maps.
    pub fn between(&self, from: u64, to: u64) -> M {
        let to = to.min(self.steps);
        let from = from.min(to);
        match self.runs.last() {
            None => M::IDENTITY,
            Some(_) if M::FORGETS => self.last_of(from, to),
            Some(&(_, start)) if from >= start => self.powers.of(to - from),
            Some(&(_, start)) if to >= start => self.over_runs(from, to, start),
            Some(_) => self.over_older_runs(from, to),
        }
    }

    /// The map of an interval that ends before the newest run.
    #[cold]
    fn over_older_runs(&self, from: u64, to: u64) -> M {
        let mut result = M::IDENTITY;
        for (run, next) in self.runs.iter().zip(self.runs.iter().skip(1)) {
            let count = to.min(next.1).saturating_sub(from.max(run.1));
            result = run.0.power(count).after(&result);
        }
        result
    }

    /// The map of an interval that begins in a finished run.
    #[inline(never)]
    fn over_runs(&self, from: u64, to: u64, start: u64) -> M {
        // Where every run is one step long, its number is known; elsewhere it is looked for.
        let guess = from.saturating_sub(self.runs[0].1) as usize;
        let run = match self.runs.get(guess) {
            Some(&(_, first)) if first == from => guess,
            _ => {
                let after = self.runs.partition_point(|&(_, first)| first <= from);
                after.saturating_sub(1)
            }
        };
        // From `from` to the end of its run, the runs between, the newest run.
        let (map, first) = self.runs[run];
        let rest = map.power(self.runs[run + 1].1 - from.max(first));
        let between = self.finished.since(run + 1);
        self.powers.of(to - start).after(&between.after(&rest))
    }

    /// The map of a step, and the first step after it that may have another one.
    pub(super) fn run_at(&self, step: u64) -> (M, u64) {
        let after = self.runs.partition_point(|&(_, first)| first <= step);
        let end = self.runs.get(after).map_or(self.steps, |run| run.1);
        (after.checked_sub(1).map_or(M::IDENTITY, |run| self.runs[run].0), end)
    }

    #[inline(never)]
    fn start_run(&mut self, map: M) {
        if let Some(newest) = self.runs.len().checked_sub(1) {
            self.finished.push(self.run_product(newest));
        }
        self.runs.push((map, self.steps));
        self.powers.start(map);
    }

    /// The product of a finished run.
    fn run_product(&self, run: usize) -> M {
        let (map, start) = self.runs[run];
        map.power(self.runs.get(run + 1).map_or(self.steps, |next| next.1) - start)
    }
}

#[cfg(test)]
mod tests;

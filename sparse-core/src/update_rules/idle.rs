//! The idle steps made so far, any interval of which is one map.

use super::maps::IdleMap;
use super::suffixes::Suffixes;

/// The idle maps of all steps so far, so that any interval of steps can be applied as one map.
///
/// Steps with equal maps form a run. A query inside the newest run is one power (with a table for short
/// ones); a query over several runs combines O(log runs) tabulated products, so that a learning rate that
/// changes at every step costs O(log steps) and not O(gap). Of maps that [forget](IdleMap::FORGETS) the newest runs are
/// kept and nothing is multiplied.
#[derive(Clone, Debug)]
pub struct IdleHistory<M> {
    /// Steps recorded.
    steps: u64,
    /// The map and the first step of each run.
    runs: Vec<(M, u64)>,
    /// The products of the runs before the newest.
    finished: Suffixes<M>,
    /// `powers[k][d - 1]` is the newest run's map to the power `d · DIGIT^k`, as far as the run is long: any
    /// power is a product of one map a digit.
    powers: Vec<Vec<M>>,
    /// The first powers of the newest run's map, from the first on, where it is a [scalar](IdleMap::scalar) one: as many as the run has
    /// steps, at least, up to [`SCALARS`].
    scalars: Vec<[f64; 2]>,
    /// Tables for later: all that a run can come to need are made with the first one, so that a step in steady
    /// state allocates nothing.
    spare: Vec<Vec<M>>,
    /// The power up to which, exclusively, the tables have them: the length from which on the newest run needs more.
    tabulated: u64,
}

/// Powers are tabulated by the digits of the exponent to this base.
const DIGIT: u64 = 1024;

/// The most scalar powers that are tabulated: a megabyte.
const SCALARS: usize = 1 << 16;

/// The tables for runs of 2⁴⁰ steps; longer ones allocate when they get there.
const TABLES: usize = 4;

impl<M> Default for IdleHistory<M> {
    fn default() -> Self {
        IdleHistory {
            steps: 0,
            runs: Vec::new(),
            finished: Suffixes::default(),
            powers: Vec::new(),
            scalars: Vec::new(),
            spare: Vec::new(),
            tabulated: 0,
        }
    }
}

impl<M: IdleMap> IdleHistory<M> {
    /// The steps recorded so far.
    pub fn steps(&self) -> u64 {
        self.steps
    }

    /// The runs of equal maps: the memory that the history takes, in units of some 100 bytes.
    pub fn n_runs(&self) -> usize {
        self.runs.len()
    }

    /// The map and the first step of each run that is kept: with the number of steps, all that a history is.
    pub fn runs(&self) -> &[(M, u64)] {
        &self.runs
    }

    /// The history of so many steps with these runs, which gives the same bits as the one that they were
    /// [taken](Self::runs) from. `None` where steps go back or beyond the last.
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
        if let (false, Some((map, start))) = (M::FORGETS, runs.last()) {
            history.tabulate_run(*map, steps - start);
        }
        Some(history)
    }

    /// Forgets everything but the number of steps. Only after every row has been brought up to date. The newest run goes on:
    /// the powers of its map are still good.
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

    /// Forgets everything and counts on from `steps`, as if nothing had been recorded since. Only after every row has been brought up
    /// to date.
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
                self.tabulate_run(map, self.steps - start + 1);
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
        self.tabulate_run(map, self.steps - start);
    }

    /// Counts some more steps that change nothing. Only while no step has been recorded: an interval that begins before such
    /// a step must not be asked for later.
    #[inline]
    pub fn skip(&mut self, count: u64) {
        debug_assert!(self.runs.is_empty());
        self.steps += count;
    }

    /// Takes back what was recorded after the first `steps` steps: all of it at once, by
    /// [`push_many`](Self::push_many), or skipped at once.
    pub fn take_back(&mut self, steps: u64) {
        debug_assert!(steps <= self.steps);
        debug_assert!(self.runs.last().is_none_or(|(_, start)| *start <= steps));
        self.steps = steps;
        if M::FORGETS {
            self.runs.pop_if(|run| run.1 >= steps);
        }
    }

    /// Records a step of maps of which only the last counts. Two runs are kept: the newest may be steps that are yet to
    /// come.
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

    /// The first step of the newest run of equal maps, and the first powers of its map, from the first on: the maps of as many
    /// steps of that run.
    #[inline]
    pub fn newest_powers(&self) -> Option<(u64, &[M])> {
        let &(_, start) = self.runs.last()?;
        Some((start, self.powers.first()?))
    }

    /// The first powers of the newest run's map as [scalars](IdleMap::scalar), from the first on; nothing where it is no such map. Not fewer
    /// than the steps of that run, up to a limit.
    #[inline]
    pub fn newest_scalars(&self) -> &[[f64; 2]] {
        &self.scalars
    }

    /// The map of the steps `from .. to`, where `to` is not before the newest run of equal maps.
    pub fn between(&self, from: u64, to: u64) -> M {
        debug_assert!(from <= to && to <= self.steps);
        match self.runs.last() {
            None => M::IDENTITY,
            Some(_) if M::FORGETS => self.last_of(from, to),
            Some(&(_, start)) if from >= start => self.newest_power(to - from),
            Some(&(_, start)) => self.over_runs(from, to, start),
        }
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
        self.newest_power(to - start).after(&between.after(&rest))
    }

    /// A power of the newest run's map, not above the run's length.
    #[inline(never)]
    fn newest_power(&self, mut count: u64) -> M {
        let mut result = None;
        for table in &self.powers {
            let digit = (count % DIGIT) as usize;
            count /= DIGIT;
            if digit > 0 {
                let power = &table[digit - 1];
                result = Some(result.map_or(*power, |low| power.after(&low)));
            }
        }
        debug_assert_eq!(count, 0);
        result.unwrap_or(M::IDENTITY)
    }

    #[inline(never)]
    fn start_run(&mut self, map: M) {
        if let Some(newest) = self.runs.len().checked_sub(1) {
            self.finished.push(self.run_product(newest));
        }
        self.runs.push((map, self.steps));
        // A rate that changes at every step never needs more than the first power.
        self.spare.append(&mut self.powers);
        let mut table = self.new_table();
        table.push(map);
        self.powers.push(table);
        self.tabulated = 2;
        if M::HAS_SCALARS {
            self.start_scalars(map);
        }
    }

    /// The powers of the map before are kept where it was the same one.
    fn start_scalars(&mut self, map: M) {
        let first = map.scalar();
        if self.scalars.first() == first.as_ref() {
            return;
        }
        self.scalars.clear();
        if first.is_some() {
            self.scalars.reserve(SCALARS);
        }
        self.scalars.extend(first);
    }

    /// Tabulates what the newest run needs, now that it is of so many steps.
    #[inline]
    fn tabulate_run(&mut self, map: M, steps: u64) {
        while steps >= self.tabulated {
            self.tabulate(map);
        }
        if M::HAS_SCALARS && !self.scalars.is_empty() {
            while (self.scalars.len() as u64) < steps.min(SCALARS as u64) {
                self.double_scalars();
            }
        }
    }

    #[cold]
    fn double_scalars(&mut self) {
        let (Some(&[scale, shift]), Some(&last)) = (self.scalars.first(), self.scalars.last())
        else {
            return;
        };
        let (mut last, len) = (last, self.scalars.len());
        for _ in len..SCALARS.min(2 * len) {
            last = [scale * last[0], scale * last[1] + shift];
            self.scalars.push(last);
        }
    }

    /// An empty table.
    fn new_table(&mut self) -> Vec<M> {
        if self.powers.capacity() == 0 {
            self.powers.reserve(TABLES);
            self.spare.extend((0..TABLES).map(|_| Vec::with_capacity(DIGIT as usize - 1)));
        }
        let mut table = self.spare.pop().unwrap_or_default();
        table.clear();
        table
    }

    /// Tabulates as many powers again as there are, now that the newest run is long enough to use them: in all O(1) a step.
    #[cold]
    fn tabulate(&mut self, map: M) {
        let full = DIGIT as usize - 1;
        // The power that each entry of the last table is one more of.
        let (unit, last) = match self.powers.last() {
            Some(table) if table.len() < full => (table[0], table[table.len() - 1]),
            Some(table) => {
                let unit = table[0].after(&table[full - 1]);
                let table = self.new_table();
                self.powers.push(table);
                (unit, M::IDENTITY)
            }
            None => (map, M::IDENTITY),
        };
        let weight = DIGIT.saturating_pow(self.powers.len() as u32 - 1);
        if let Some(table) = self.powers.last_mut() {
            let (mut last, count) = (last, table.len().max(1));
            while table.len() < full.min(2 * count) {
                last = unit.after(&last);
                table.push(last);
            }
            // Lower digits count up to one more unit.
            self.tabulated = weight.saturating_mul(table.len() as u64 + 1);
        }
    }

    /// The product of a finished run.
    fn run_product(&self, run: usize) -> M {
        let (map, start) = self.runs[run];
        map.power(self.runs.get(run + 1).map_or(self.steps, |next| next.1) - start)
    }
}

#[cfg(test)]
mod tests {
    use super::super::maps::MatrixMap;
    use super::*;

    fn map(momentum: f64, decay: f64) -> MatrixMap {
        MatrixMap::of_rows([1.0 - decay, momentum], [-decay, momentum])
    }

    fn close(a: MatrixMap, b: MatrixMap) {
        for (x, y) in a.0.iter().flatten().zip(b.0.iter().flatten()) {
            assert!((x - y).abs() <= 1e-13 * (1.0 + y.abs()), "{a:?} {b:?}");
        }
    }

    /// Every interval of a history equals the product of its steps one by one.
    fn check(maps: &[MatrixMap]) {
        let mut history = IdleHistory::default();
        for (n, step) in maps.iter().enumerate() {
            history.push(*step);
            for from in 0..=n + 1 {
                let slow = maps[from..=n].iter().fold(MatrixMap::IDENTITY, |acc, m| m.after(&acc));
                close(history.since(from as u64), slow);
            }
        }
    }

    #[test]
    fn one_run() {
        check(&vec![map(0.9, 0.01); 150]);
    }

    #[test]
    fn a_long_run_by_the_digits_of_its_length() {
        let mut history = IdleHistory::default();
        history.push(map(0.3, 0.2));
        for _ in 0..300_000 {
            history.push(map(0.9, 1e-5));
        }
        for gap in [0, 1, 2, 63, 64, 65, 127, 128, 4095, 4096, 4097, 262_144, 270_000] {
            close(history.since(history.steps() - gap), map(0.9, 1e-5).power(gap));
        }
        let whole = map(0.9, 1e-5).power(300_000).after(&map(0.3, 0.2));
        close(history.since(0), whole);
    }

    #[test]
    fn many_steps_at_once_and_some_of_them_taken_back() {
        let (first, second) = (map(0.9, 0.01), map(0.5, 0.1));
        for (count, kept) in [(1, 1), (2, 1), (63, 10), (64, 64), (5000, 70), (3, 0)] {
            let mut history = IdleHistory::default();
            history.push_many(first, 3);
            history.push_many(second, count);
            let end = 3 + count;
            for from in 0..=end {
                let slow = (from..end).fold(MatrixMap::IDENTITY, |acc, t| {
                    if t < 3 { first.after(&acc) } else { second.after(&acc) }
                });
                close(history.since(from), slow);
                // Up to any step of the newest run.
                if from <= 4 && end > 4 {
                    let until = (from..4).fold(MatrixMap::IDENTITY, |acc, t| {
                        if t < 3 { first.after(&acc) } else { second.after(&acc) }
                    });
                    close(history.between(from, 4), until);
                }
            }
            history.take_back(3 + kept);
            assert_eq!(history.steps(), 3 + kept);
            history.push_many(first, 2);
            let all = first.power(2).after(&second.power(kept).after(&first.power(3)));
            close(history.since(0), all);
        }
    }

    /// The last of some steps that set a number.
    #[derive(Clone, Copy, Debug, PartialEq)]
    struct Last(Option<u64>);

    impl IdleMap for Last {
        const IDENTITY: Self = Last(None);
        const FORGETS: bool = true;

        fn after(&self, first: &Self) -> Self {
            Last(self.0.or(first.0))
        }

        fn write(&self, numbers: &mut Vec<f64>) {
            numbers.push(self.0.map_or(-1.0, |last| last as f64));
        }

        fn read(numbers: &[f64]) -> Option<Self> {
            let &[last] = numbers else { return None };
            Some(Last((last >= 0.0).then_some(last as u64)))
        }
    }

    #[test]
    fn of_maps_that_forget_the_last_counts() {
        // Steps 3, 4 and 9 do nothing.
        let step = |t: u64| Last((t < 3 || t > 4 && t != 9).then_some(t / 2));
        let mut history = IdleHistory::default();
        for t in 0..12 {
            history.push(step(t));
            history.forget_before(t);
            assert!(history.n_runs() <= 2);
            let last = (0..=t).rev().find_map(|t| step(t).0);
            assert_eq!((history.since(0), history.since(t + 1)), (Last(last), Last(None)));
        }
        assert_eq!((history.newest_run(), history.since(8)), (Some(10), Last(Some(5))));
        // Steps that are yet to come.
        history.push_many(Last(Some(7)), 3);
        assert_eq!(history.between(0, 12), Last(Some(5)));
        assert_eq!(history.between(0, 13), Last(Some(7)));
        history.take_back(13);
        assert_eq!((history.steps(), history.since(0)), (13, Last(Some(7))));
        history.push_many(Last(Some(8)), 2);
        history.take_back(13);
        assert_eq!((history.steps(), history.since(0)), (13, Last(Some(7))));
    }

    /// As many as the newest run is long, the same as maps: also where a run goes on, is taken back, or follows one of the same map.
    #[test]
    fn scalar_powers_are_the_powers() {
        use super::super::maps::DriftMap;
        let map = |t: u64| DriftMap::of_scalar([1.0 - 0.01 * (t / 1500) as f64, -0.1]);
        let mut history = IdleHistory::default();
        let check = |history: &IdleHistory<DriftMap>| {
            let start = history.newest_run().unwrap();
            let scalars = history.newest_scalars();
            assert!(scalars.len() as u64 >= history.steps() - start);
            for count in [1, 2, 3, 700, 1023, 1024, 1025, 1400] {
                if count > history.steps() - start {
                    break;
                }
                let [scale, shift] = history.since(history.steps() - count).scalar().unwrap();
                let found = scalars[count as usize - 1];
                assert!((found[0] - scale).abs() < 1e-13, "{count}");
                assert!((found[1] - shift).abs() < 1e-11 * shift.abs(), "{count}");
            }
        };
        for t in 0..4000 {
            history.push(map(t));
            check(&history);
        }
        let copy = IdleHistory::of_runs(history.steps(), history.runs()).unwrap();
        let len = (history.steps() - history.newest_run().unwrap()) as usize;
        assert_eq!(copy.newest_scalars()[..len], history.newest_scalars()[..len]);
        history.push_many(map(3999), 900);
        check(&history);
        history.take_back(4000);
        check(&history);
        history.forget();
        assert_eq!(history.newest_scalars().first(), Some(&[0.98, -0.1]));
        // Momentum: a state moves as well, and there is more to know than two numbers.
        let moving = MatrixMap::of_rows([0.9, 0.5], [-0.1, 0.5]);
        history.push(DriftMap { matrix: moving, drift: [-0.1; 2] });
        assert!(history.newest_scalars().is_empty());
        let decayed = MatrixMap::of_scale(0.9);
        assert_eq!(DriftMap { matrix: decayed, drift: [-0.1; 2] }.scalar(), None);
    }

    /// To the bit, in what is asked now and later.
    #[test]
    fn a_history_of_the_same_runs_is_the_same_history() {
        let step = |t: u64| map(0.9, [0.0, 0.01, 0.02][(t / 40) as usize % 3]);
        for (steps, forgotten) in [(0, 0), (1, 0), (39, 7), (300, 0), (300, 70), (300, 300)] {
            let mut original = IdleHistory::default();
            (0..steps).for_each(|t| original.push(step(t)));
            original.forget_before(forgotten);
            let mut copy = IdleHistory::of_runs(original.steps(), original.runs()).unwrap();
            for t in steps..steps + 300 {
                for from in [forgotten, (forgotten + t) / 2, t] {
                    assert_eq!(copy.since(from), original.since(from), "{steps} {from}");
                    let (start, powers) = copy.newest_powers().unwrap_or_default();
                    let known = powers.get(((t - from) as usize).wrapping_sub(1));
                    let known = known.filter(|_| from >= start);
                    assert!(known.is_none_or(|map| *map == original.since(from)));
                }
                original.push(step(t));
                copy.push(step(t));
            }
        }
        let late = |first| (map(0.9, 0.1), first);
        assert!(IdleHistory::of_runs(4, &[late(5)]).is_none());
        assert!(IdleHistory::of_runs(9, &[late(5), late(4)]).is_none());
        assert!(IdleHistory::of_runs(9, &[(Last(None), 1); 3]).is_none());
        let last = IdleHistory::of_runs(9, &[(Last(Some(2)), 3), (Last(Some(3)), 8)]).unwrap();
        assert_eq!((last.since(0), last.between(0, 8)), (Last(Some(3)), Last(Some(2))));
    }

    #[test]
    fn forgetting_the_past_keeps_the_rest() {
        let step = |t: u64| map(0.9, 0.001 * (t / 3) as f64);
        for from in 0..=40 {
            let mut history = IdleHistory::default();
            (0..40).for_each(|t| history.push(step(t)));
            let runs = history.n_runs();
            history.forget_before(from);
            assert!(history.n_runs() == runs - (from as usize / 3).min(runs) || from >= 39);
            (40..60).for_each(|t| history.push(step(t)));
            for start in from..=60 {
                let slow = (start..60).fold(MatrixMap::IDENTITY, |acc, t| step(t).after(&acc));
                close(history.since(start), slow);
            }
        }
    }

    #[test]
    fn a_rate_that_changes_at_every_step() {
        check(&(0..150).map(|t| map(0.9, 0.1 / (1.0 + t as f64))).collect::<Vec<_>>());
    }

    #[test]
    fn runs_of_uneven_length() {
        let maps: Vec<_> = (0..40)
            .flat_map(|run| vec![map(0.5, 0.01 * (run % 7) as f64); 1 + (run * run) % 11])
            .collect();
        check(&maps);
    }

    #[test]
    fn forgetting_keeps_the_clock() {
        let mut history = IdleHistory::default();
        for t in 0..10 {
            history.push(map(0.9, 0.01 * t as f64));
        }
        history.forget();
        assert_eq!(history.since(10), MatrixMap::IDENTITY);
        history.push(map(0.5, 0.1));
        assert_eq!(history.since(10), map(0.5, 0.1));
        assert_eq!(history.steps(), 11);
    }
}

//! Idle steps in closed form: what a run of steps without gradient does to (weight, state).

/// A linear map on (weight, state): row 0 gives the new weight, row 1 the new state.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct IdleMap(pub [[f64; 2]; 2]);

impl IdleMap {
    /// The map that changes nothing.
    pub const IDENTITY: IdleMap = IdleMap([[1.0, 0.0], [0.0, 1.0]]);

    /// `self` after `first`.
    pub fn after(&self, first: &IdleMap) -> IdleMap {
        let (a, b) = (&self.0, &first.0);
        let entry = |i: usize, j: usize| a[i][0] * b[0][j] + a[i][1] * b[1][j];
        IdleMap([[entry(0, 0), entry(0, 1)], [entry(1, 0), entry(1, 1)]])
    }

    /// `self` applied `count` times, in O(log count) products.
    pub fn power(&self, mut count: u64) -> IdleMap {
        let mut result = IdleMap::IDENTITY;
        let mut square = *self;
        while count > 0 {
            if count & 1 == 1 {
                result = square.after(&result);
            }
            square = square.after(&square);
            count >>= 1;
        }
        result
    }
}

/// The idle maps of all steps so far, so that any interval of steps can be applied as one map.
///
/// Steps with equal maps form a run. A query inside the newest run is one power (with a table for short
/// ones); a query over several runs combines a tree of run products, O(log runs) products, so that a
/// learning rate that changes at every step costs O(log steps) and not O(gap).
#[derive(Clone, Debug, Default)]
pub struct IdleHistory {
    /// Steps recorded.
    steps: u64,
    /// The map and the first step of each run.
    runs: Vec<(IdleMap, u64)>,
    /// `levels[j][i]` is the product of the finished runs `i · 2^(j+1) .. (i+1) · 2^(j+1)`.
    levels: Vec<Vec<IdleMap>>,
    /// Powers 1.. of the newest run's map.
    powers: Vec<IdleMap>,
}

/// Powers kept in the table for short gaps.
const SHORT: usize = 64;

impl IdleHistory {
    /// The steps recorded so far.
    pub fn steps(&self) -> u64 {
        self.steps
    }

    /// The runs of equal maps: the memory that the history takes, in units of some 100 bytes.
    pub fn n_runs(&self) -> usize {
        self.runs.len()
    }

    /// Forgets everything but the number of steps. Only after every row has been brought up to date.
    pub fn forget(&mut self) {
        self.runs.clear();
        self.levels.clear();
        self.powers.clear();
    }

    /// Records one more step, with its idle map.
    pub fn push(&mut self, map: IdleMap) {
        if self.runs.last().is_none_or(|(last, _)| *last != map) {
            self.finish_run();
            self.runs.push((map, self.steps));
            self.powers.clear();
            self.powers.push(map);
            if self.runs.len() == 1 {
                // A steady rule is the common case: tabulate at once.
                self.tabulate(SHORT);
            }
        } else if self.powers.len() == 1 {
            self.tabulate(SHORT);
        }
        self.steps += 1;
    }

    /// The map of the steps `from .. self.steps()`.
    pub fn since(&self, from: u64) -> IdleMap {
        debug_assert!(from <= self.steps);
        let Some(&(map, start)) = self.runs.last() else {
            return IdleMap::IDENTITY;
        };
        if from >= start {
            return self.newest_power(map, self.steps - from);
        }
        let mut result = IdleMap::IDENTITY;
        // The run that `from` lies in, from there to its end.
        let mut run = self
            .runs
            .partition_point(|&(_, first)| first <= from)
            .saturating_sub(1);
        let end = self.runs[run + 1].1;
        result = self.runs[run]
            .0
            .power(end - from.max(self.runs[run].1))
            .after(&result);
        run += 1;
        // Whole finished runs, by the largest aligned blocks.
        let last = self.runs.len() - 1;
        while run < last {
            let mut level = 0;
            while level < self.levels.len()
                && run % (2 << level) == 0
                && run + (2 << level) <= last
                && run / (2 << level) < self.levels[level].len()
            {
                level += 1;
            }
            let block = if level == 0 {
                self.run_product(run)
            } else {
                self.levels[level - 1][run / (1 << level)]
            };
            result = block.after(&result);
            run += 1 << level;
        }
        self.newest_power(map, self.steps - start).after(&result)
    }

    fn newest_power(&self, map: IdleMap, count: u64) -> IdleMap {
        match count {
            0 => IdleMap::IDENTITY,
            n if n as usize <= self.powers.len() => self.powers[n as usize - 1],
            n => map.power(n),
        }
    }

    fn tabulate(&mut self, count: usize) {
        while self.powers.len() < count {
            let next = self.powers[0].after(&self.powers[self.powers.len() - 1]);
            self.powers.push(next);
        }
    }

    /// The product of a finished run.
    fn run_product(&self, run: usize) -> IdleMap {
        let (map, start) = self.runs[run];
        map.power(self.runs.get(run + 1).map_or(self.steps, |next| next.1) - start)
    }

    /// Enters the newest run, which is about to end, into the tree.
    fn finish_run(&mut self) {
        let finished = self.runs.len();
        if finished == 0 {
            return;
        }
        let mut product = self.run_product(finished - 1);
        let mut level = 0;
        while finished % (2 << level) == 0 {
            let block = finished / (2 << level);
            let left = if level == 0 {
                self.run_product(finished - 2)
            } else {
                self.levels[level - 1][2 * block - 2]
            };
            product = product.after(&left);
            if self.levels.len() == level {
                self.levels.push(Vec::new());
            }
            self.levels[level].push(product);
            level += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn map(momentum: f64, decay: f64) -> IdleMap {
        IdleMap([[1.0 - decay, momentum], [-decay, momentum]])
    }

    fn close(a: IdleMap, b: IdleMap) {
        for (x, y) in a.0.iter().flatten().zip(b.0.iter().flatten()) {
            assert!((x - y).abs() <= 1e-13 * (1.0 + y.abs()), "{a:?} {b:?}");
        }
    }

    /// Every interval of a history equals the product of its steps one by one.
    fn check(maps: &[IdleMap]) {
        let mut history = IdleHistory::default();
        for (n, step) in maps.iter().enumerate() {
            history.push(*step);
            for from in 0..=n + 1 {
                let slow = maps[from..=n]
                    .iter()
                    .fold(IdleMap::IDENTITY, |acc, m| m.after(&acc));
                close(history.since(from as u64), slow);
            }
        }
    }

    #[test]
    fn one_run() {
        check(&vec![map(0.9, 0.01); 150]);
    }

    #[test]
    fn a_rate_that_changes_at_every_step() {
        check(
            &(0..150)
                .map(|t| map(0.9, 0.1 / (1.0 + t as f64)))
                .collect::<Vec<_>>(),
        );
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
        assert_eq!(history.since(10), IdleMap::IDENTITY);
        history.push(map(0.5, 0.1));
        assert_eq!(history.since(10), map(0.5, 0.1));
        assert_eq!(history.steps(), 11);
    }
}

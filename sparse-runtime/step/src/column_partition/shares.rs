//! The number of a batch's entries for each thread. Equal shares take unequal times if cores differ
//! in speed, or if another process uses one of them. A step takes as long as its slowest thread.

/// The shares of some threads in all entries, 1 together.
#[derive(Clone, Debug, Default)]
pub(super) struct Shares(Vec<f64>);

impl Shares {
    /// Gives so many threads the same.
    pub(super) fn make_equal(&mut self, n_parts: usize) {
        self.0.clear();
        self.0.resize(n_parts, 1.0 / n_parts as f64);
    }

    /// Gives more to those that were done earlier: half of what would have had all end at the same
    /// time, since what is measured once may not be so again. The share of each took it so many
    /// seconds; where those of one are not known, which is 0, nothing changes.
    pub(super) fn correct(&mut self, seconds: impl Iterator<Item = f64> + Clone) {
        /// What a thread has at least of an equal share: of less there would be nothing to learn
        /// from.
        const LEAST: f64 = 0.5;
        let Shares(shares) = self;
        if !seconds.clone().all(|seconds| seconds > 0.0) {
            return;
        }
        let speed = |(share, seconds): (&f64, f64)| share / seconds;
        let speeds: f64 = shares.iter().zip(seconds.clone()).map(speed).sum();
        let (least, mut sum) = (LEAST / shares.len() as f64, 0.0);
        for (share, seconds) in shares.iter_mut().zip(seconds) {
            let fair = speed((share, seconds)) / speeds;
            *share = f64::midpoint(*share, fair).max(least);
            sum += *share;
        }
        shares.iter_mut().for_each(|share| *share /= sum);
    }

    /// Where the share of each thread but the first begins, from 0 to 1.
    pub(super) fn starts(&self) -> impl Iterator<Item = f64> {
        let before = self.0.split_last().map_or(&[][..], |(_, before)| before);
        before.iter().scan(0.0, |start, share| {
            *start += share;
            Some(*start)
        })
    }
}

/// How long a thread took for its share of some steps.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Times {
    sum: f64,
    longest: f64,
}

impl Times {
    /// Notes those of one more step.
    pub(super) fn note(&mut self, seconds: f64) {
        self.sum += seconds;
        self.longest = self.longest.max(seconds);
    }

    /// The seconds of all steps but the longest, in which the thread may have had to wait for a
    /// processor; 0 where there was no other.
    pub(super) fn seconds(&self) -> f64 {
        self.sum - self.longest
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The shares of threads of these speeds after some corrections.
    fn shares_of<const N: usize>(speeds: [f64; N], corrections: usize) -> [f64; N] {
        let mut shares = Shares::default();
        shares.make_equal(N);
        for _ in 0..corrections {
            let seconds: Vec<f64> = shares.0.iter().zip(speeds).map(|(s, v)| s / v).collect();
            shares.correct(seconds.into_iter());
        }
        shares.0.try_into().unwrap()
    }

    #[test]
    fn all_end_at_the_same_time() {
        let [a, b] = shares_of([3.0, 2.0], 12);
        assert!((a - 0.6).abs() < 1e-3 && (a + b - 1.0).abs() < 1e-12, "{a} {b}");
        let [a, b, c] = shares_of([1.0, 2.0, 1.0], 12);
        assert!((b - 0.5).abs() < 1e-3 && (a - c).abs() < 1e-12, "{a} {b} {c}");
        assert_eq!(shares_of([1.0; 4], 5), [0.25; 4]);
    }

    #[test]
    fn a_thread_that_hardly_moves_has_some_all_the_same() {
        let [a, b] = shares_of([1.0, 1e-6], 40);
        assert!((0.2..0.3).contains(&b) && (a + b - 1.0).abs() < 1e-12, "{a} {b}");
    }

    #[test]
    fn what_is_not_known_changes_nothing() {
        let mut shares = Shares::default();
        shares.make_equal(2);
        shares.correct([0.0, 1.0].into_iter());
        assert!(shares.0 == [0.5; 2] && shares.starts().eq([0.5]));
        let mut times = Times::default();
        times.note(2.0);
        assert_eq!(times.seconds(), 0.0);
        times.note(9.0);
        times.note(1.0);
        assert_eq!(times.seconds(), 3.0);
    }
}

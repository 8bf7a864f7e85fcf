//! A mean over everything seen.

/// A sum in `f64` and what it is divided by.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Mean {
    sum: f64,
    count: u64,
}

impl Mean {
    /// Takes in the sum of `count` terms.
    pub(super) fn add(&mut self, sum: f64, count: usize) {
        self.sum += sum;
        self.count += count as u64;
    }

    /// Takes in another mean.
    pub(super) fn merge(&mut self, other: &Mean) {
        self.sum += other.sum;
        self.count += other.count;
    }

    /// The mean, or NaN over nothing.
    pub(super) fn value(&self) -> f64 {
        self.sum / self.count as f64
    }
}

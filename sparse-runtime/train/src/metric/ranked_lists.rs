//! Precision, recall and NDCG of the first items of ranked lists.

/// Means over ranked lists, one for each user or query, of what their first `k` items come to.
///
/// A list has relevant items and others. With r of them relevant in all, and h among the first k:
///
/// - precision@k is h / k;
/// - recall@k is h / r;
/// - NDCG@k is Σ 1 / log₂(i + 1) over the ranks i ≤ k of relevant items, counted from one, divided
///   by the sum of the best order, which has the relevant items first.
///
/// A list without relevant items does not count. Source of NDCG: Järvelin & Kekäläinen,
/// *Cumulated gain-based evaluation of IR techniques*, ACM TOIS 20 (2002), with gains 0 and 1.
///
/// ```
/// use nnz::metric::RankedLists;
///
/// let mut lists = RankedLists::new(2);
/// // The first of two relevant items has rank 2, the other one is not among the first two.
/// lists.add([false, true], 2);
/// assert_eq!(lists.precision(), Some(0.5));
/// assert_eq!(lists.recall(), Some(0.5));
/// let best = 1.0 + 1.0 / 3f64.log2();
/// assert_eq!(lists.ndcg(), Some(1.0 / 3f64.log2() / best));
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RankedLists {
    k: usize,
    n_lists: u64,
    precision: f64,
    recall: f64,
    ndcg: f64,
}

impl RankedLists {
    /// Without lists; `k` is at least 1.
    pub fn new(k: usize) -> Self {
        RankedLists { k: k.max(1), n_lists: 0, precision: 0.0, recall: 0.0, ndcg: 0.0 }
    }

    /// Adds a list: whether its items are relevant, in the order of the ranks, of which the first
    /// `k` are looked at; `n_relevant` are so in all. O(k).
    pub fn add(&mut self, is_relevant: impl IntoIterator<Item = bool>, n_relevant: usize) {
        if n_relevant == 0 {
            return;
        }
        let (mut n_found, mut gain) = (0.0, 0.0);
        for (rank, _) in is_relevant.into_iter().take(self.k).enumerate().filter(|(_, is)| *is) {
            n_found += 1.0;
            gain += discount(rank);
        }
        let best: f64 = (0..n_relevant.min(self.k)).map(discount).sum();
        self.n_lists += 1;
        self.precision += n_found / self.k as f64;
        self.recall += n_found / n_relevant as f64;
        self.ndcg += gain / best;
    }

    /// The number of lists with relevant items.
    pub fn n_lists(&self) -> u64 {
        self.n_lists
    }

    /// The mean precision@k; `None` without lists.
    pub fn precision(&self) -> Option<f64> {
        self.mean(self.precision)
    }

    /// The mean recall@k; `None` without lists.
    pub fn recall(&self) -> Option<f64> {
        self.mean(self.recall)
    }

    /// The mean NDCG@k; `None` without lists.
    pub fn ndcg(&self) -> Option<f64> {
        self.mean(self.ndcg)
    }

    fn mean(&self, sum: f64) -> Option<f64> {
        (self.n_lists > 0).then(|| sum / self.n_lists as f64)
    }
}

/// The gain of a relevant item at a rank from zero.
fn discount(rank: usize) -> f64 {
    1.0 / (rank as f64 + 2.0).log2()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Two lists by hand: log₂ 2 = 1, log₂ 3 = 1.584963, log₂ 4 = 2.
    #[test]
    fn means_are_over_lists_with_relevant_items() {
        let mut lists = RankedLists::new(3);
        lists.add([true, false, true, true], 4);
        lists.add([false, false, true], 1);
        lists.add([false; 3], 0);
        assert_eq!(lists.n_lists(), 2);
        assert_eq!(lists.precision(), Some((2.0 / 3.0 + 1.0 / 3.0) / 2.0));
        assert_eq!(lists.recall(), Some((0.5 + 1.0) / 2.0));
        // 1.5 of at most 2.130930, and 0.5 of at most 1.
        let ndcg = (1.5 / 2.130_929_753_571_457_4 + 0.5) / 2.0;
        assert!((lists.ndcg().unwrap() - ndcg).abs() < 1e-12);
        assert_eq!(RankedLists::new(3).ndcg(), None);
    }
}

//! Random orders that are the same on every machine.

use nnz_arrays::random::shuffle;

/// Appends the samples `0..n_rows` in the order of an epoch, a function of seed and epoch.
/// O(n_rows).
pub(crate) fn append_shuffled(order: &mut Vec<usize>, n_rows: usize, seed: u64, epoch: u64) {
    let start = order.len();
    order.extend(0..n_rows);
    shuffle(&mut order[start..], seed, epoch);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shuffled(n_rows: usize, seed: u64, epoch: u64) -> Vec<usize> {
        let mut order = Vec::new();
        append_shuffled(&mut order, n_rows, seed, epoch);
        order
    }

    #[test]
    fn is_a_permutation_that_seed_and_epoch_determine() {
        for n in [0, 1, 2, 100] {
            let mut sorted = shuffled(n, 7, 3);
            assert_eq!(sorted, shuffled(n, 7, 3));
            sorted.sort_unstable();
            assert_eq!(sorted, (0..n).collect::<Vec<_>>());
        }
        assert_ne!(shuffled(100, 7, 3), shuffled(100, 7, 4));
        assert_ne!(shuffled(100, 7, 3), shuffled(100, 8, 3));
    }

    #[test]
    fn every_order_is_equally_likely() {
        let mut counts = std::collections::BTreeMap::new();
        for epoch in 0..24_000 {
            *counts.entry(shuffled(4, 1, epoch)).or_insert(0) += 1;
        }
        assert_eq!(counts.len(), 24);
        // Five standard deviations of a binomial count with mean 1000.
        assert!(counts.values().all(|&count: &i32| (count - 1000).abs() < 155), "{counts:?}");
    }
}

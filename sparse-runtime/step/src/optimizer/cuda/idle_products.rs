//! Products of the maps of consecutive idle steps, by which a GPU catches rows up.

use nnz_optim::{IdleHistory, IdleMap, MOST_IDLE_NUMBERS, Suffixes};
use sparse_core::element::Float;

/// The levels of products.
pub(super) const LEVELS: usize = 5;

/// How many products of a level are one of the next.
pub(super) const FAN: usize = Suffixes::<()>::FAN;

/// The maps of the steps of a table since one, as products.
#[derive(Clone, Debug)]
pub(in crate::optimizer) struct IdleProducts<M> {
    pub(super) base: u64,
    pub(super) of: Suffixes<M>,
}

impl<M> Default for IdleProducts<M> {
    fn default() -> Self {
        IdleProducts { base: 0, of: Suffixes::default() }
    }
}

impl<M: IdleMap> IdleProducts<M> {
    /// Becomes those of the steps from `base` to `to`, of which those that are there stay.
    pub(super) fn reach<A: Float>(&mut self, history: &IdleHistory<M, A>, base: u64, to: u64) {
        if self.base != base || base + self.of.len() as u64 > to {
            *self = IdleProducts { base, of: Suffixes::default() };
        }
        let runs = history.runs();
        for step in base + self.of.len() as u64..to {
            let after = runs.partition_point(|&(_, first)| first <= step);
            // Before the first run nothing changed.
            self.of.push(after.checked_sub(1).map_or(M::IDENTITY, |run| runs[run].0));
        }
    }

    /// What is behind the last blocks of the levels above the first.
    pub(super) fn tails(&self) -> [u64; (LEVELS - 1) * MOST_IDLE_NUMBERS] {
        let mut numbers = Vec::with_capacity((LEVELS - 1) * MOST_IDLE_NUMBERS);
        (1..LEVELS).for_each(|level| self.of.tail(level).write(&mut numbers));
        std::array::from_fn(|place| numbers.get(place).map_or(0, |number| number.to_bits()))
    }
}

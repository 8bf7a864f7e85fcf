//! Pushes: gradients of all workers, added up and given to the owners of the table rows.

use super::communicator::Communicator;
use super::error::StoreError;
use super::kv_store::{KvStore, no_mean};
use super::leaf_sum::LeafSum;
use super::message::{Call, begin, put_node};
use crate::error::Result;
use crate::metric::ExactSum;
use nnz_optim::Correction;
use nnz_step::optimizer::clip;
use sparse_core::element::Float;
use sparse_core::storage::Storage;
use std::collections::BTreeSet;

impl<T: Float, C: Communicator> KvStore<T, C> {
    /// Adds the gradients of all workers, each those of its [own leaves](Self::own_leaves), and
    /// makes a step by the sum. Empties `sum`. Collective. A worker sends O(rows of its sum). An
    /// owner adds O(rows of all, once for each level of the tree that joins workers).
    ///
    /// # Errors
    ///
    /// [`StoreError::UnknownKey`], [`StoreError::Frozen`], [`StoreError::GradientShape`],
    /// [`StoreError::GradientStorage`], [`StoreError::Leaf`] for a leaf of another worker; this
    /// worker has sent nothing then. Refusals of the rule.
    pub fn push(&mut self, key: &str, sum: &mut LeafSum<T>) -> Result<()> {
        self.push_as(key, sum, Correction::Apply { share: 0.0 })
    }

    /// Adds `share` times the gradients of all workers to the mean gradient of a rule that
    /// [corrects](nnz_optim::UpdateRule::CORRECTS) gradients; weights stay as they
    /// are. Otherwise like [`push`](Self::push).
    ///
    /// # Errors
    ///
    /// As [`push`](Self::push); [`StoreError::NoOptimizer`].
    pub fn push_to_mean(&mut self, key: &str, sum: &mut LeafSum<T>, share: f64) -> Result<()> {
        let shard = &self.shards[self.index(key)?];
        if !shard.optimizer.as_ref().is_some_and(|optimizer| optimizer.corrects()) {
            return Err(no_mean(shard));
        }
        self.push_as(key, sum, Correction::Gather { share })
    }

    /// Makes a step by the gradients of several keys, like a [`push`](Self::push) of each, all
    /// multiplied by one factor so that the common norm of their elements is at most `max_norm`.
    /// The sum of squares is exact, so the factor does not depend on the ownership of rows.
    /// Collective; one exchange more than pushes, of 0.5 KB.
    ///
    /// # Errors
    ///
    /// As [`push`](Self::push), and [`StoreError::RepeatedKey`]; faults of any key are found before
    /// anything is sent.
    pub fn push_clipped(
        &mut self,
        sums: &mut [(&str, &mut LeafSum<T>)],
        max_norm: f64,
    ) -> Result<()> {
        let checked = sums.iter_mut().map(|(key, sum)| self.check(key, sum));
        let indices = checked.collect::<Result<Vec<_>>>()?;
        let mut seen = BTreeSet::new();
        if let Some(place) = indices.iter().position(|index| !seen.insert(index)) {
            return Err(StoreError::RepeatedKey { key: sums[place].0.to_owned() }.into());
        }
        for (&index, (_, sum)) in indices.iter().zip(sums) {
            self.add_up(index, sum)?;
        }
        let factor = self.clip_factor(&indices, max_norm)?;
        for index in indices {
            self.shards[index].apply_sum(Correction::Apply { share: 0.0 }, factor)?;
        }
        Ok(())
    }

    /// The factor that makes the common norm of the summed gradients of several keys at most
    /// `max_norm`. Collective; one exchange of 0.5 KB.
    pub(super) fn clip_factor(&mut self, indices: &[usize], max_norm: f64) -> Result<f64> {
        let mut squares = ExactSum::default();
        indices.iter().for_each(|index| self.shards[*index].add_squares(&mut squares));
        let (own, mut all) = (Vec::from_iter(squares.numbers()), Vec::new());
        self.gather(&own, &mut all)?;
        let mut squares = ExactSum::default();
        let of_workers = all.chunks(own.len()).map(ExactSum::of_numbers);
        let mut n_workers = 0;
        for of_worker in of_workers {
            let problem = "it is no sum of squares";
            let of_worker = of_worker.ok_or(StoreError::Message { rank: n_workers, problem })?;
            squares.merge(&of_worker);
            n_workers += 1;
        }
        if n_workers != self.size() {
            let problem = "it has no sum of squares";
            return Err(StoreError::Message { rank: n_workers, problem }.into());
        }
        Ok(clip::factor(max_norm, &[squares.value()]))
    }

    fn push_as(&mut self, key: &str, sum: &mut LeafSum<T>, correction: Correction) -> Result<()> {
        let index = self.check(key, sum)?;
        self.add_up(index, sum)?;
        self.shards[index].apply_sum(correction, 1.0)
    }

    /// The position of a key, for gradients of this worker's leaves.
    fn check(&self, key: &str, sum: &mut LeafSum<T>) -> Result<usize> {
        let index = self.index(key)?;
        sum.complete(self.own_leaves())?;
        self.check_sum(index, sum)?;
        Ok(index)
    }

    /// Exchanges the gradients of a key: the sums for this worker's rows are in its shard
    /// afterwards. Empties `sum`.
    fn add_up(&mut self, index: usize, sum: &mut LeafSum<T>) -> Result<()> {
        self.outgoing.clear();
        self.outgoing.iter_mut().for_each(|parcel| begin(parcel, Call::Push, index));
        for node in sum.nodes() {
            put_node(self.outgoing.iter_mut(), node);
        }
        sum.clear();
        self.exchange(Call::Push)?;
        let layout = self.layout(index);
        let mut total = std::mem::take(&mut self.shards[index].sum);
        total.clear();
        for rank in 0..self.size() {
            let mut message = self.message(rank, Call::Push, index)?;
            while !message.is_empty() {
                let mut node = total.room(0, 0);
                message.node(layout, &mut node)?;
                total.push(node);
            }
        }
        let height = self.leaves.height();
        let is_whole = matches!(total.nodes(), [root] if (root.level, root.index) == (height, 0));
        self.shards[index].sum = total;
        if !is_whole {
            let problem = "its leaves and those of the others are not all leaves";
            return Err(StoreError::Message { rank: self.rank(), problem }.into());
        }
        Ok(())
    }

    /// Refuses gradients that do not fit a key.
    fn check_sum(&self, index: usize, sum: &LeafSum<T>) -> Result<(), StoreError> {
        let spec = &self.shards[index].spec;
        let key = || spec.name.to_string();
        let Some(expected) = spec.gradient else {
            return Err(StoreError::Frozen { key: key() });
        };
        for node in sum.nodes().iter().filter(|node| !node.values.is_empty()) {
            if (node.n_rows, node.row_size) != (spec.n_rows, spec.row_size) {
                return Err(StoreError::GradientShape {
                    key: key(),
                    n_rows: spec.n_rows,
                    row_size: spec.row_size,
                    found_rows: node.n_rows,
                    found_size: node.row_size,
                });
            }
            let found = if node.is_listed { Storage::RowSparse } else { Storage::Dense };
            if found != expected {
                let (expected, found) = (expected.name(), found.name());
                return Err(StoreError::GradientStorage { key: key(), expected, found });
            }
        }
        Ok(())
    }
}

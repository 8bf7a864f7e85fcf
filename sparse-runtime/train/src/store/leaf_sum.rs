//! Gradients of leaves, added by one binary tree, independently of the number of workers.

use super::error::{MAX_LEAVES, StoreError};
use nnz_arrays::formats::{RowIdsView, RowSparseView};
use sparse_core::element::Float;
use sparse_core::storage::Storage;
use std::ops::Range;

/// The leaves of a step: a fixed number of parts of its batch, each computed by one worker. The sum
/// over them does not depend on the number of workers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Leaves {
    count: usize,
}

impl Leaves {
    /// `count` leaves.
    ///
    /// # Errors
    ///
    /// [`StoreError::LeafCount`] unless it is a power of two, at most 2³¹.
    pub fn new(count: usize) -> Result<Self, StoreError> {
        if !count.is_power_of_two() || count > MAX_LEAVES {
            return Err(StoreError::LeafCount { found: count });
        }
        Ok(Leaves { count })
    }

    /// The number of leaves.
    pub fn count(self) -> usize {
        self.count
    }

    /// The leaves of worker `rank` of `size`: divided as evenly as possible. Some workers get none
    /// if there are more workers than leaves, and so does a rank that is not below `size`.
    pub fn of_worker(self, rank: usize, size: usize) -> Range<usize> {
        part(self.count, rank, size)
    }

    /// The samples of a leaf, in a batch of `n_rows`. Empty for some leaves of a batch with fewer
    /// samples, and for a leaf out of range.
    pub fn rows_of(self, leaf: usize, n_rows: usize) -> Range<usize> {
        part(n_rows, leaf, self.count)
    }

    /// The leaf of a sample of a batch of `n_rows`.
    pub(crate) fn of_row(self, row: usize, n_rows: usize) -> usize {
        // The first one that ends after the row.
        let (row, count) = (row as u128 + 1, self.count as u128);
        ((row * count).div_ceil(n_rows.max(1) as u128) - 1) as usize
    }

    /// The level of the tree's root.
    pub(super) fn height(self) -> u32 {
        self.count.trailing_zeros()
    }
}

/// Part `part` of `parts` of `len`.
fn part(len: usize, part: usize, parts: usize) -> Range<usize> {
    let parts = parts.max(1);
    let start = |part: usize| (len as u128 * part.min(parts) as u128 / parts as u128) as usize;
    start(part)..start(part.saturating_add(1))
}

/// The gradients of one table for consecutive leaves, added as far as the tree over all leaves
/// says.
///
/// Node `i` of level `l` is the sum of the leaves `i · 2^l` to `(i + 1) · 2^l`: of its left half,
/// then its right. If one half does not store a table row, the sum is that of the other. Sums are
/// in the [accumulator](Float::Accumulator) of `T`. Memory is reused for the next sum.
#[derive(Clone, Debug)]
pub struct LeafSum<T: Float> {
    /// Nodes. Levels fall where they are adjacent, and no two are halves of one node.
    nodes: Vec<Node<T::Accumulator>>,
    spare: Vec<Node<T::Accumulator>>,
    /// The smallest leaf that may come next.
    next: usize,
}

/// The sum of the leaves below one node of the tree.
#[derive(Clone, Debug, Default)]
pub(super) struct Node<A> {
    pub(super) level: u32,
    pub(super) index: usize,
    /// The stored rows, ascending; empty if all rows are stored.
    pub(super) ids: Vec<u64>,
    /// The rows, one after the other; empty if no leaf had a gradient.
    pub(super) values: Vec<A>,
    pub(super) row_size: usize,
    pub(super) n_rows: usize,
    /// Whether rows are listed.
    pub(super) is_listed: bool,
}

impl<T: Float> Default for LeafSum<T> {
    fn default() -> Self {
        LeafSum { nodes: Vec::new(), spare: Vec::new(), next: 0 }
    }
}

impl<T: Float> LeafSum<T> {
    /// An empty sum.
    pub fn new() -> Self {
        LeafSum::default()
    }

    /// Adds `share` times the gradient of a leaf: a row_sparse one, or a dense one as a
    /// [view of all rows](RowSparseView::all). Leaves come in ascending order; omitted ones have no
    /// gradient. O(values stored), and as much again for each level of the tree on the average
    /// leaf.
    ///
    /// # Errors
    ///
    /// [`StoreError::LeafOrder`], [`StoreError::NoSuchLeaf`]; [`StoreError::LeafShape`] for a
    /// gradient of another shape or storage type than earlier ones.
    pub fn add(
        &mut self,
        leaf: usize,
        gradient: RowSparseView<'_, T>,
        share: f64,
    ) -> Result<(), StoreError> {
        if leaf < self.next {
            return Err(StoreError::LeafOrder { leaf, previous: self.next - 1 });
        }
        if leaf >= MAX_LEAVES {
            return Err(StoreError::NoSuchLeaf { leaf });
        }
        self.check_alike(leaf, gradient)?;
        if !self.nodes.is_empty() {
            self.skip_to(leaf);
        }
        let mut node = self.room(0, leaf);
        node.row_size = gradient.shape().row_size();
        node.n_rows = gradient.shape().n_rows();
        match gradient.indices() {
            RowIdsView::All => node.is_listed = false,
            RowIdsView::Listed(ids) => {
                node.is_listed = true;
                node.ids.extend_from_slice(ids);
            }
        }
        let share = T::Accumulator::of(share);
        node.values.extend(gradient.values().iter().map(|value| value.widen() * share));
        self.next = leaf + 1;
        self.push(node);
        Ok(())
    }

    /// Refuses a gradient that cannot be added to earlier ones.
    fn check_alike(&self, leaf: usize, gradient: RowSparseView<'_, T>) -> Result<(), StoreError> {
        // What has no values has no row either, whatever it lists.
        let mut known = self.nodes.iter().filter(|node| !node.values.is_empty());
        let (shape, is_listed) =
            (gradient.shape(), matches!(gradient.indices(), RowIdsView::Listed(_)));
        let found = (shape.n_rows(), shape.row_size(), is_listed);
        match known.next().map(|node| (node.n_rows, node.row_size, node.is_listed)) {
            Some(expected) if expected != found && !gradient.values().is_empty() => {
                let text = |(n_rows, row_size, is_listed)| {
                    let storage = if is_listed { Storage::RowSparse } else { Storage::Dense };
                    format!("{}[{n_rows}, {row_size}]", storage.name())
                };
                let (expected, found) = (text(expected), text(found));
                Err(StoreError::LeafShape { leaf, expected, found })
            }
            _ => Ok(()),
        }
    }

    /// Clears everything; the memory is kept.
    pub fn clear(&mut self) {
        self.next = 0;
        self.spare.append(&mut self.nodes);
    }

    /// Completes the sum over the leaves `own`: those without a gradient count as such.
    pub(super) fn complete(&mut self, own: Range<usize>) -> Result<(), StoreError> {
        let Range { start: first, end } = own;
        let begun = self.nodes.first().map(|node| node.index << node.level);
        if let Some(leaf) = begun.filter(|leaf| *leaf < first) {
            return Err(StoreError::Leaf { leaf, first, end });
        }
        if self.next > end {
            return Err(StoreError::Leaf { leaf: self.next - 1, first, end });
        }
        match begun {
            Some(leaf) if leaf > first => {
                // Leaves before the first gradient: what is there is added up anew, behind them.
                let nodes = std::mem::take(&mut self.nodes);
                self.next = first;
                for node in nodes {
                    self.skip_to(node.index << node.level);
                    self.next = (node.index + 1) << node.level;
                    self.push(node);
                }
            }
            Some(_) => {}
            None => self.next = first,
        }
        self.skip_to(end);
        Ok(())
    }

    /// The nodes, by their leaves.
    pub(super) fn nodes(&self) -> &[Node<T::Accumulator>] {
        &self.nodes
    }

    /// An empty node, to be [pushed](Self::push).
    pub(super) fn room(&mut self, level: u32, index: usize) -> Node<T::Accumulator> {
        let mut node = self.spare.pop().unwrap_or_default();
        (node.level, node.index) = (level, index);
        (node.row_size, node.n_rows, node.is_listed) = (0, 0, false);
        node.ids.clear();
        node.values.clear();
        node
    }

    /// Adds a node whose leaves follow the present ones, and joins halves.
    pub(super) fn push(&mut self, node: Node<T::Accumulator>) {
        self.nodes.push(node);
        while let [.., left, right] = &self.nodes[..]
            && left.level == right.level
            && left.index + 1 == right.index
            && left.index.is_multiple_of(2)
            && let (Some(right), Some(left)) = (self.nodes.pop(), self.nodes.pop())
        {
            let parent = self.join(left, right);
            self.nodes.push(parent);
        }
    }

    /// Counts the leaves before this one as leaves without a gradient. O(log leaves): by the
    /// largest possible nodes.
    fn skip_to(&mut self, leaf: usize) {
        while self.next < leaf {
            let level = self.next.trailing_zeros().min((leaf - self.next).ilog2());
            let node = self.room(level, self.next >> level);
            self.next += 1 << level;
            self.push(node);
        }
    }

    fn join(
        &mut self,
        mut left: Node<T::Accumulator>,
        mut right: Node<T::Accumulator>,
    ) -> Node<T::Accumulator> {
        let (level, index) = (left.level + 1, left.index / 2);
        if left.values.is_empty() {
            std::mem::swap(&mut left, &mut right);
        }
        let mut sum = left;
        if !right.values.is_empty() {
            if sum.is_listed {
                let mut union = self.room(level, index);
                union.of_rows(&sum, &right);
                self.spare.push(std::mem::replace(&mut sum, union));
            } else {
                sum.values.iter_mut().zip(&right.values).for_each(|(sum, value)| *sum += *value);
            }
        }
        self.spare.push(right);
        (sum.level, sum.index) = (level, index);
        sum
    }
}

impl<A: Float> Node<A> {
    /// Becomes the sum of two nodes that list their rows.
    fn of_rows(&mut self, left: &Node<A>, right: &Node<A>) {
        (self.row_size, self.n_rows, self.is_listed) = (left.row_size, left.n_rows, true);
        let row = |node: &Node<A>, at: usize| at * node.row_size..(at + 1) * node.row_size;
        let (mut i, mut j) = (0, 0);
        while let (Some(&a), Some(&b)) = (left.ids.get(i), right.ids.get(j)) {
            self.ids.push(a.min(b));
            if a == b {
                let (a, b) = (&left.values[row(left, i)], &right.values[row(right, j)]);
                self.values.extend(a.iter().zip(b).map(|(a, b)| *a + *b));
            } else if a < b {
                self.values.extend_from_slice(&left.values[row(left, i)]);
            } else {
                self.values.extend_from_slice(&right.values[row(right, j)]);
            }
            i += usize::from(a <= b);
            j += usize::from(b <= a);
        }
        for (node, at) in [(left, i), (right, j)] {
            self.ids.extend_from_slice(&node.ids[at..]);
            self.values.extend_from_slice(&node.values[at * node.row_size..]);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use nnz_arrays::formats::RowSparse;

    /// Numbers whose sum depends on the order in which they are added.
    fn gradient(leaf: usize) -> RowSparse {
        let ids: Vec<u64> = (0..5).filter(|id| !(id + leaf as u64).is_multiple_of(3)).collect();
        let values = ids.iter().map(|id| (0.1 + *id as f32) * 1.7f32.powi(leaf as i32)).collect();
        RowSparse::new([5, 1], ids, values).unwrap()
    }

    fn sum(own: Range<usize>, without: &[usize]) -> LeafSum<f32> {
        let mut sum = LeafSum::new();
        for leaf in own.clone().filter(|leaf| !without.contains(leaf)) {
            sum.add(leaf, gradient(leaf).view(), 0.3).unwrap();
        }
        sum.complete(own).unwrap();
        sum
    }

    #[test]
    fn the_tree_is_that_of_all_leaves_however_they_are_divided() {
        for without in [&[][..], &[0], &[0, 1, 2], &[7], &[3, 4], &[0, 1, 2, 3, 4, 5, 6, 7]] {
            let whole = sum(0..8, without);
            assert_eq!((whole.nodes.len(), whole.nodes[0].level), (1, 3));
            for cuts in [&[0, 1, 8][..], &[0, 3, 5, 8], &[0, 0, 4, 8], &[0, 1, 2, 3, 4, 5, 6, 7, 8]]
            {
                let mut joined = LeafSum::<f32>::new();
                for own in cuts.windows(2).map(|cut| cut[0]..cut[1]) {
                    sum(own, without).nodes.into_iter().for_each(|node| joined.push(node));
                }
                let [root] = &joined.nodes[..] else { panic!("{cuts:?}: no root") };
                assert_eq!(root.ids, whole.nodes[0].ids, "{cuts:?}");
                let bits =
                    |node: &Node<f32>| Vec::from_iter(node.values.iter().map(|v| v.to_bits()));
                assert_eq!(bits(root), bits(&whole.nodes[0]), "{cuts:?}");
            }
        }
    }

    #[test]
    fn the_sum_is_that_of_the_tree_by_hand() {
        let leaf = |leaf, id: usize| gradient(leaf).row(id).map_or(0.0, |row| row[0] * 0.3);
        let sum = sum(0..4, &[]);
        let root = &sum.nodes[0];
        assert_eq!(root.ids, [0, 1, 2, 3, 4]);
        for id in 0..5 {
            let expected = (leaf(0, id) + leaf(1, id)) + (leaf(2, id) + leaf(3, id));
            assert_eq!(root.values[id], expected, "row {id}");
        }
    }

    #[test]
    fn leaves_come_in_order_and_are_the_workers_own() {
        let mut sum = LeafSum::<f32>::new();
        sum.add(2, gradient(2).view(), 1.0).unwrap();
        let error = sum.add(2, gradient(2).view(), 1.0).unwrap_err();
        assert_eq!(error, StoreError::LeafOrder { leaf: 2, previous: 2 });
        let error = sum.complete(3..4).unwrap_err();
        assert_eq!(error, StoreError::Leaf { leaf: 2, first: 3, end: 4 });
        let error = sum.complete(0..2).unwrap_err();
        assert_eq!(error, StoreError::Leaf { leaf: 2, first: 0, end: 2 });
    }

    #[test]
    fn leaves_and_rows_are_cut_evenly() {
        let leaves = Leaves::new(8).unwrap();
        let of = |size| Vec::from_iter((0..size).map(|rank| leaves.of_worker(rank, size)));
        assert_eq!(of(3), [0..2, 2..5, 5..8]);
        assert_eq!((0..8).map(|leaf| leaves.rows_of(leaf, 3).len()).sum::<usize>(), 3);
        assert_eq!(Leaves::new(6), Err(StoreError::LeafCount { found: 6 }));
        assert_eq!(Leaves::new(0), Err(StoreError::LeafCount { found: 0 }));
    }
}

//! Gradients of leaves by numbered table rows, added by the tree over all leaves.
//!
//! The sums are those of a [`LeafSum`](super::LeafSum), to the bit. They lie in planes with a place
//! for each row that a step names, so that two are added place by place.

use nnz_arrays::bytes::copy_values;
use nnz_device::simd::wide;
use sparse_core::element::Float;

/// The gradients of one table for consecutive leaves, added as far as the tree over all leaves
/// says: see [`LeafSum`](super::LeafSum). Memory: a plane for each level of the tree, kept from
/// step to step.
#[derive(Clone, Debug, Default)]
pub(crate) struct SlotSum<A> {
    n_slots: usize,
    row_size: usize,
    /// As those of a `LeafSum`.
    nodes: Vec<SlotNode<A>>,
    /// Planes without rows.
    spare: Vec<Plane<A>>,
    /// The smallest leaf that may come next.
    next: usize,
}

/// The sum of the leaves below one node of the tree.
#[derive(Clone, Debug)]
pub(super) struct SlotNode<A> {
    pub(super) level: u32,
    pub(super) index: usize,
    /// None if no leaf had a gradient.
    pub(super) plane: Option<Plane<A>>,
}

/// The rows of a sum, by their slots.
///
/// Invariant: rows that are not present are -0, which changes nothing that it is added to.
#[derive(Clone, Debug, Default)]
pub(super) struct Plane<A> {
    values: Vec<A>,
    /// A bit for each slot.
    present: Vec<u64>,
    n_present: usize,
}

impl<A: Float> SlotSum<A> {
    /// Starts with the leaves from `first` on, for rows with numbers below `n_slots`.
    pub(crate) fn begin(&mut self, n_slots: usize, row_size: usize, first: usize) {
        self.clear();
        if row_size != self.row_size {
            self.spare.clear();
        }
        (self.n_slots, self.row_size, self.next) = (n_slots, row_size, first);
    }

    /// Forgets the sums. O(rows).
    pub(crate) fn clear(&mut self) {
        for node in self.nodes.drain(..) {
            if let Some(mut plane) = node.plane {
                plane.clear(self.row_size);
                self.spare.push(plane);
            }
        }
    }

    /// Adds `share` times the rows of a leaf's gradient. Slots ascend, and leaves do. O(rows), and
    /// as much again for each level of the tree on the average leaf.
    pub(crate) fn add<T: Float<Accumulator = A>>(
        &mut self,
        leaf: usize,
        slots: &[u64],
        values: &[T],
        share: f64,
    ) {
        self.skip_to(leaf);
        let (share, row_size) = (A::of(share), self.row_size);
        let mut plane = self.plane();
        if row_size == 1 {
            for (slot, value) in slots.iter().zip(values) {
                plane.values[*slot as usize] = value.widen() * share;
            }
        } else {
            for (slot, values) in slots.iter().zip(values.chunks_exact(row_size.max(1))) {
                let row = plane.row_mut(*slot as usize, row_size);
                row.iter_mut().zip(values).for_each(|(sum, value)| *sum = value.widen() * share);
            }
        }
        plane.mark(slots.iter().map(|slot| *slot as usize));
        self.next = leaf + 1;
        self.push(SlotNode { level: 0, index: leaf, plane: Some(plane) });
    }

    /// Counts the leaves before this one as leaves without a gradient. O(log leaves).
    pub(crate) fn skip_to(&mut self, leaf: usize) {
        while self.next < leaf {
            let level = self.next.trailing_zeros().min((leaf - self.next).ilog2());
            let node = SlotNode { level, index: self.next >> level, plane: None };
            self.next += 1 << level;
            self.push(node);
        }
    }

    pub(super) fn row_size(&self) -> usize {
        self.row_size
    }

    /// The nodes, by their leaves.
    pub(super) fn nodes(&self) -> &[SlotNode<A>] {
        &self.nodes
    }

    /// A plane without rows, to be [pushed](Self::push) in a node.
    pub(super) fn plane(&mut self) -> Plane<A> {
        let mut plane = self.spare.pop().unwrap_or_default();
        plane.make_room(self.n_slots, self.row_size);
        plane
    }

    /// Adds the next node, and what becomes complete by it.
    pub(super) fn push(&mut self, mut node: SlotNode<A>) {
        while let Some(left) = self.nodes.last()
            && left.level == node.level
            && left.index.is_multiple_of(2)
            && left.index + 1 == node.index
        {
            let Some(left) = self.nodes.pop() else { break };
            let plane = match (left.plane, node.plane) {
                (Some(mut sum), Some(mut right)) => {
                    sum.take_up(&mut right, self.n_slots, self.row_size);
                    self.spare.push(right);
                    Some(sum)
                }
                (left, right) => left.or(right),
            };
            node = SlotNode { level: left.level + 1, index: left.index / 2, plane };
        }
        self.nodes.push(node);
    }
}

impl<A: Float> Plane<A> {
    fn make_room(&mut self, n_slots: usize, row_size: usize) {
        let (n_values, n_words) = (n_slots * row_size, n_slots.div_ceil(64));
        if self.values.len() < n_values {
            self.values.resize(n_values, nothing());
        }
        if self.present.len() < n_words {
            self.present.resize(n_words, 0);
        }
    }

    fn row_mut(&mut self, slot: usize, row_size: usize) -> &mut [A] {
        &mut self.values[slot * row_size..(slot + 1) * row_size]
    }

    /// Slots whose rows were written, each once.
    fn mark(&mut self, slots: impl ExactSizeIterator<Item = usize>) {
        self.n_present += slots.len();
        slots.for_each(|slot| self.present[slot / 64] |= 1 << (slot % 64));
    }

    pub(super) fn has(&self, slot: usize) -> bool {
        self.present[slot / 64] >> (slot % 64) & 1 == 1
    }

    pub(super) fn n_present(&self) -> usize {
        self.n_present
    }

    /// The rows of the first slots.
    pub(super) fn rows(&self, n_slots: usize, row_size: usize) -> &[A] {
        &self.values[..n_slots * row_size]
    }

    pub(super) fn row(&self, slot: usize, row_size: usize) -> &[A] {
        &self.values[slot * row_size..(slot + 1) * row_size]
    }

    /// Writes a row that it has not.
    pub(super) fn put(&mut self, slot: usize, row: &[A]) {
        self.row_mut(slot, row.len()).copy_from_slice(row);
        self.mark([slot].into_iter());
    }

    /// Writes a row that it has not, from bytes.
    pub(super) fn put_bytes(&mut self, slot: usize, row_size: usize, bytes: &[u8]) {
        copy_values(bytes, self.row_mut(slot, row_size));
        self.mark([slot].into_iter());
    }

    /// Adds the rows of another plane, which is left without rows.
    fn take_up(&mut self, right: &mut Plane<A>, n_slots: usize, row_size: usize) {
        /// Places for each row from which on rows are added one by one.
        const FEW: usize = 8;
        let n_values = n_slots * row_size;
        if right.n_present * FEW > n_slots {
            let (sums, terms) = (&mut self.values[..n_values], &mut right.values[..n_values]);
            wide(
                #[inline(always)]
                || {
                    for (sum, term) in sums.iter_mut().zip(terms) {
                        *sum += *term;
                        *term = nothing();
                    }
                },
            );
        } else {
            for slot in slots_of(&right.present) {
                let row = slot * row_size..(slot + 1) * row_size;
                let (sums, terms) = (&mut self.values[row.clone()], &mut right.values[row]);
                for (sum, term) in sums.iter_mut().zip(terms) {
                    *sum += *term;
                    *term = nothing();
                }
            }
        }
        let mut n_present = 0;
        for (own, other) in self.present.iter_mut().zip(&mut right.present) {
            *own |= std::mem::take(other);
            n_present += own.count_ones() as usize;
        }
        (self.n_present, right.n_present) = (n_present, 0);
    }

    fn clear(&mut self, row_size: usize) {
        for word in 0..self.present.len() {
            let bits = std::mem::take(&mut self.present[word]);
            if bits != 0 {
                let end = (64 * (word + 1) * row_size).min(self.values.len());
                self.values[64 * word * row_size..end].fill(nothing());
            }
        }
        self.n_present = 0;
    }
}

/// The number that changes no other one to which it is added, -0 included.
fn nothing<A: Float>() -> A {
    -A::zero()
}

/// The slots that are present, ascending.
fn slots_of(present: &[u64]) -> impl Iterator<Item = usize> {
    present.iter().enumerate().flat_map(|(word, bits)| {
        let mut bits = *bits;
        std::iter::from_fn(move || {
            let bit = (bits != 0).then(|| bits.trailing_zeros() as usize)?;
            bits &= bits - 1;
            Some(64 * word + bit)
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::LeafSum;
    use nnz_arrays::formats::RowSparse;

    /// The gradient of a leaf, numbers whose sum depends on the order, with -0 among them.
    fn gradient(leaf: usize, n_rows: u64, row_size: usize) -> RowSparse {
        let ids: Vec<u64> =
            (0..n_rows).filter(|id| !(id * 7 + leaf as u64).is_multiple_of(3)).collect();
        let value = |at: usize| match at % 5 {
            0 => -0.0,
            _ => (0.1 + at as f32) * (-1.7f32).powi(leaf as i32),
        };
        let values = (0..ids.len() * row_size).map(value).collect();
        RowSparse::new([n_rows as usize, row_size], ids, values).unwrap()
    }

    #[test]
    fn sums_by_slots_have_the_bits_of_sums_of_lists() {
        let mut by_slots = SlotSum::<f32>::default();
        for (n_rows, row_size) in [(200, 1), (3, 4), (130, 3)] {
            for own in [0..8, 3..8, 0..5, 2..3] {
                let mut lists = LeafSum::<f32>::new();
                by_slots.begin(n_rows as usize, row_size, own.start);
                for leaf in own.clone().filter(|leaf| ![1, 4, 5].contains(leaf)) {
                    let gradient = gradient(leaf, n_rows, row_size);
                    lists.add(leaf, gradient.view(), 0.3).unwrap();
                    by_slots.add(leaf, gradient.indices(), gradient.values(), 0.3);
                }
                by_slots.skip_to(own.end);
                lists.complete(own.clone()).unwrap();
                assert_eq!(by_slots.nodes.len(), lists.nodes().len(), "{own:?}");
                for (found, expected) in by_slots.nodes.iter().zip(lists.nodes()) {
                    assert_eq!((found.level, found.index), (expected.level, expected.index));
                    let rows = found.plane.iter().flat_map(|plane| {
                        slots_of(&plane.present).map(|slot| (slot, plane.row(slot, row_size)))
                    });
                    let bits = |row: &[f32]| Vec::from_iter(row.iter().map(|v| v.to_bits()));
                    let found = Vec::from_iter(rows.map(|(slot, row)| (slot as u64, bits(row))));
                    let rows = expected.values.chunks_exact(row_size).map(bits);
                    let expected = Vec::from_iter(expected.ids.iter().copied().zip(rows));
                    assert_eq!(found, expected, "{own:?}");
                }
            }
        }
    }

    #[test]
    fn a_few_rows_are_added_like_many() {
        let mut sum = SlotSum::<f64>::default();
        for slots in [&[700u64][..], &[1, 2, 999]] {
            sum.begin(1000, 2, 0);
            let all: Vec<u64> = (0..1000).collect();
            sum.add(0, &all, &vec![1.0f64; 2000], 1.0);
            sum.add(1, slots, &vec![2.0f64; 2 * slots.len()], 1.0);
            let plane = sum.nodes[0].plane.as_ref().unwrap();
            for slot in 0..1000u64 {
                let expected = if slots.contains(&slot) { 3.0 } else { 1.0 };
                assert_eq!(plane.row(slot as usize, 2), [expected; 2]);
            }
        }
    }
}

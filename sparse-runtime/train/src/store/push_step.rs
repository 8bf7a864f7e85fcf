//! The gradients of a training step, of all keys at once, in the order in which rows were pulled:
//! ids are not sent again.

use super::communicator::Communicator;
use super::error::StoreError;
use super::kv_store::KvStore;
use super::leaf_sum::Node;
use super::message::{Call, Layout, Message, begin, put_node, put_values, put_word};
use super::slot_sum::{SlotNode, SlotSum};
use super::step_keys::{Gradient, RowList, StepKey, StepKeys};
use crate::error::Result;
use nnz_optim::Correction;
use sparse_core::element::Float;

impl<T: Float, C: Communicator> KvStore<T, C> {
    /// Gives the gradients of this worker's leaves to the owners of rows, which add up those of
    /// all workers, and `numbers` to all workers: `all` are those of all, by rank. One exchange.
    /// The sums are [applied](Self::apply_step) by a call of its own. O(rows, once for each level
    /// of the tree that joins workers).
    ///
    /// # Errors
    ///
    /// As [`pull_step`](Self::pull_step); [`StoreError::Leaf`] for a leaf of another worker.
    pub(crate) fn exchange_gradients(
        &mut self,
        step: &mut StepKeys<T>,
        numbers: &[f64],
        all: &mut Vec<f64>,
    ) -> Result<()> {
        let (rank, size, own) = (self.rank(), self.size(), self.own_leaves());
        self.outgoing.clear();
        for parcel in self.outgoing.iter_mut() {
            begin(parcel, Call::StepGradients, 0);
            put_word(parcel, numbers.len());
            put_values(parcel, numbers);
        }
        for StepKey { index, gradient, .. } in &mut step.keys {
            match gradient {
                Gradient::Listed(list, sum, _) => {
                    sum.skip_to(own.end);
                    let row_size = self.shards[*index].spec.row_size;
                    let parcels = self.outgoing.iter_mut().zip(&step.lists[*list].slots);
                    for (_, (parcel, slots)) in parcels.enumerate().filter(|(to, _)| *to != rank) {
                        put_word(parcel, sum.nodes().len());
                        sum.nodes()
                            .iter()
                            .for_each(|node| put_slots(parcel, node, slots, row_size));
                    }
                }
                Gradient::Whole(sum) => {
                    sum.complete(own.clone())?;
                    let n_nodes = sum.nodes().len();
                    self.outgoing.iter_mut().for_each(|parcel| put_word(parcel, n_nodes));
                    sum.nodes().iter().for_each(|node| put_node(self.outgoing.iter_mut(), node));
                }
            }
        }
        self.exchange(Call::StepGradients)?;
        all.clear();
        // The sums leave the shards, which messages borrow.
        let mut totals = Vec::from_iter(step.keys.iter().map(|StepKey { index, .. }| {
            let mut total = std::mem::take(&mut self.shards[*index].sum);
            total.clear();
            total
        }));
        let mut messages = self.messages(Call::StepGradients)?;
        for message in &mut messages {
            for _ in 0..message.word()? {
                all.push(f64::from_bits(message.word()?));
            }
        }
        for (StepKey { index, gradient, .. }, total) in step.keys.iter_mut().zip(&mut totals) {
            let layout = self.layout(*index);
            match gradient {
                Gradient::Listed(list, sum, merged) => {
                    let list = &step.lists[*list];
                    if size > 1 {
                        merged.begin(list.owned.rows().len(), layout.row_size, 0);
                        for (from, message) in messages.iter_mut().enumerate() {
                            if from == rank {
                                merge_own(merged, sum, list, rank);
                            } else {
                                merge(merged, message, &list.numbers[from], layout.row_size)?;
                            }
                        }
                    }
                    let (sum, rows) = match size {
                        1 => (&*sum, &list.asked[rank][..]),
                        _ => (&*merged, list.owned.rows()),
                    };
                    for node in sum.nodes() {
                        let room = total.room(node.level, node.index);
                        total.push(listed(room, node, rows, layout));
                    }
                }
                Gradient::Whole(_) => {
                    for message in &mut messages {
                        for _ in 0..message.word()? {
                            let mut node = total.room(0, 0);
                            message.node(layout, &mut node)?;
                            total.push(node);
                        }
                    }
                }
            }
        }
        let height = self.leaves.height();
        for (StepKey { index, gradient, .. }, total) in step.keys.iter_mut().zip(totals) {
            let is_whole =
                matches!(total.nodes(), [root] if (root.level, root.index) == (height, 0));
            self.shards[*index].sum = total;
            if !is_whole {
                let problem = "its leaves and those of the others are not all leaves";
                return Err(StoreError::Message { rank, problem }.into());
            }
            match gradient {
                Gradient::Listed(_, sum, merged) => {
                    sum.clear();
                    merged.clear();
                }
                Gradient::Whole(sum) => sum.clear(),
            }
        }
        Ok(())
    }

    /// Makes a step of each key by the sums of
    /// [`exchange_gradients`](Self::exchange_gradients), or adds them to mean gradients. With a
    /// `max_norm` the sums of all keys are multiplied by one factor, so that their common norm is
    /// at most this, and there is one exchange. O(rows that this worker owns of them).
    ///
    /// # Errors
    ///
    /// Refusals of the rule; those of the communicator.
    pub(crate) fn apply_step(
        &mut self,
        step: &StepKeys<T>,
        correction: Correction,
        max_norm: Option<f64>,
    ) -> Result<()> {
        let factor = match max_norm {
            None => 1.0,
            Some(max_norm) => {
                let indices = Vec::from_iter(step.keys.iter().map(|key| key.index));
                self.clip_factor(&indices, max_norm)?
            }
        };
        let mut keys = step.keys.iter();
        keys.try_for_each(|key| self.shards[key.index].apply_sum(correction, factor))
    }
}

/// Appends the rows of a node that an owner has, those of `slots`: level, index and count; a bit
/// for each of the slots, unless the node has all or none; their values.
fn put_slots<A: Float>(parcel: &mut Vec<u8>, node: &SlotNode<A>, slots: &[u32], row_size: usize) {
    put_word(parcel, node.level as usize);
    put_word(parcel, node.index);
    let Some(plane) = &node.plane else { return put_word(parcel, 0) };
    let present = || slots.iter().map(|slot| *slot as usize).filter(|slot| plane.has(*slot));
    let count = present().count();
    put_word(parcel, count);
    if count > 0 && count < slots.len() {
        parcel.extend(slots.chunks(8).map(|slots| {
            let bits =
                (0..).zip(slots).map(|(bit, slot)| u8::from(plane.has(*slot as usize)) << bit);
            bits.fold(0, |bits, bit| bits | bit)
        }));
    }
    parcel.reserve(count * row_size * A::TYPE.bytes() as usize);
    present().for_each(|slot| put_values(parcel, plane.row(slot, row_size)));
}

/// Adds nodes that [`put_slots`] wrote of rows with these numbers.
fn merge<A: Float>(
    merged: &mut SlotSum<A>,
    message: &mut Message<'_>,
    numbers: &[u32],
    row_size: usize,
) -> Result<(), StoreError> {
    let row_bytes = row_size * A::TYPE.bytes() as usize;
    for _ in 0..message.word()? {
        let (level, index, count) = (message.word()?, message.word()?, message.word()?);
        if level >= 32 || index >= 1 << 32 {
            return Err(message.problem("a node is in no tree"));
        }
        let has_all = count == numbers.len() as u64;
        let n_bytes = if count == 0 || has_all { 0 } else { numbers.len().div_ceil(8) };
        let bits = message.bytes(n_bytes)?;
        let is_present = |place: usize| match bits.get(place / 8) {
            Some(bits) => bits >> (place % 8) & 1 == 1,
            None => has_all,
        };
        let present = || (0..numbers.len()).filter(|place| is_present(*place));
        if count != 0 && present().count() as u64 != count {
            return Err(message.problem("it has another number of rows than it says"));
        }
        let values = message.list(count as usize, row_bytes)?;
        let plane = (count > 0).then(|| {
            let mut plane = merged.plane();
            for (place, bytes) in present().zip(values.chunks_exact(row_bytes.max(1))) {
                plane.put_bytes(numbers[place] as usize, row_size, bytes);
            }
            plane
        });
        merged.push(SlotNode { level: level as u32, index: index as usize, plane });
    }
    Ok(())
}

/// Adds the rows of this worker's own sums that it owns.
fn merge_own<A: Float>(merged: &mut SlotSum<A>, sum: &SlotSum<A>, list: &RowList, rank: usize) {
    for SlotNode { level, index, plane } in sum.nodes() {
        let plane = plane.as_ref().map(|own| {
            let mut plane = merged.plane();
            for (slot, number) in list.slots[rank].iter().zip(&list.numbers[rank]) {
                if own.has(*slot as usize) {
                    plane.put(*number as usize, own.row(*slot as usize, sum.row_size()));
                }
            }
            plane
        });
        merged.push(SlotNode { level: *level, index: *index, plane });
    }
}

/// A node as a list of rows: `rows` are those of its slots.
fn listed<A: Float>(
    mut listed: Node<A>,
    node: &SlotNode<A>,
    rows: &[u64],
    layout: Layout,
) -> Node<A> {
    (listed.row_size, listed.n_rows, listed.is_listed) = (layout.row_size, layout.n_owned, true);
    if let Some(plane) = &node.plane {
        if plane.n_present() == rows.len() {
            listed.ids.extend_from_slice(rows);
            listed.values.extend_from_slice(plane.rows(rows.len(), layout.row_size));
        } else {
            for (slot, row) in rows.iter().enumerate().filter(|(slot, _)| plane.has(*slot)) {
                listed.ids.push(*row);
                listed.values.extend_from_slice(plane.row(slot, layout.row_size));
            }
        }
    }
    listed
}

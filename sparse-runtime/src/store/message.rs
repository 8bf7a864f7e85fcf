//! What workers send each other, as bytes.

use super::error::StoreError;
use super::leaf_sum::Node;
use crate::training::checkpoint::bytes::{append, for_each};
use sparse_core::element::Float;

/// The call that a message belongs to: all workers make the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Call {
    Request,
    Rows,
    Push,
    Gather,
    State,
}

/// A call and what it is about, as one word that begins each message.
fn header(call: Call, key: usize) -> u64 {
    (call as u64) << 56 | key as u64
}

/// The bytes that row ids of a table take.
fn id_bytes(n_rows: usize) -> usize {
    if n_rows as u64 > u64::from(u32::MAX) { 8 } else { 4 }
}

/// Begins a message.
pub(super) fn begin(parcel: &mut Vec<u8>, call: Call, key: usize) {
    parcel.extend(header(call, key).to_le_bytes());
}

/// Appends a row id of a table of `n_rows`.
#[inline]
pub(super) fn put_id(parcel: &mut Vec<u8>, id: u64, n_rows: usize) {
    parcel.extend_from_slice(&id.to_le_bytes()[..id_bytes(n_rows)]);
}

/// Appends values.
#[inline]
pub(super) fn put_values<T: Float>(parcel: &mut Vec<u8>, values: &[T]) {
    append(values, parcel);
}

/// Appends, to each worker's message, the rows of a node that it owns: level, index, count, then the rows, each with its id among the
/// owner's where rows are listed.
pub(super) fn put_node<'p, A: Float>(
    parcels: impl Iterator<Item = &'p mut Vec<u8>>,
    node: &Node<A>,
) {
    let mut parcels: Vec<&mut Vec<u8>> = parcels.collect();
    let size = parcels.len();
    let mut counts = vec![0u64; size];
    let starts: Vec<usize> = parcels
        .iter_mut()
        .map(|parcel| {
            parcel.extend(u64::from(node.level).to_le_bytes());
            parcel.extend((node.index as u64).to_le_bytes());
            let start = parcel.len();
            parcel.extend(0u64.to_le_bytes());
            start
        })
        .collect();
    for (position, row) in node.values.chunks_exact(node.row_size.max(1)).enumerate() {
        let id = if node.is_listed { node.ids[position] as usize } else { position };
        let owner = id % size;
        counts[owner] += 1;
        if node.is_listed {
            put_id(parcels[owner], (id / size) as u64, node.n_rows);
        }
        append(row, parcels[owner]);
    }
    for ((parcel, start), count) in parcels.into_iter().zip(starts).zip(counts) {
        parcel[start..start + 8].copy_from_slice(&count.to_le_bytes());
    }
}

/// The table that a message is about, as its reader knows it.
#[derive(Clone, Copy)]
pub(super) struct Layout {
    /// All rows of all workers: their ids say how wide ids are.
    pub(super) n_rows: usize,
    /// The rows that are this worker's.
    pub(super) n_owned: usize,
    pub(super) row_size: usize,
    pub(super) is_listed: bool,
}

/// A message, read from its start.
#[derive(Clone, Copy)]
pub(super) struct Message<'m> {
    bytes: &'m [u8],
    rank: usize,
}

impl<'m> Message<'m> {
    /// The message of worker `rank`, for a call that this worker, `here`, makes as well.
    ///
    /// # Errors
    ///
    /// [`StoreError::OutOfStep`] if it is for another.
    pub(super) fn open(
        bytes: &'m [u8],
        rank: usize,
        here: usize,
        call: Call,
        key: usize,
    ) -> Result<Self, StoreError> {
        let mut message = Message { bytes, rank };
        match message.word() {
            Ok(found) if found == header(call, key) => Ok(message),
            _ => Err(StoreError::OutOfStep { rank, here }),
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    pub(super) fn problem(&self, problem: &'static str) -> StoreError {
        StoreError::Message { rank: self.rank, problem }
    }

    /// The next `len` bytes.
    pub(super) fn bytes(&mut self, len: usize) -> Result<&'m [u8], StoreError> {
        let (bytes, rest) =
            self.bytes.split_at_checked(len).ok_or_else(|| self.problem("it ends early"))?;
        self.bytes = rest;
        Ok(bytes)
    }

    /// The next `count` things of `size` bytes each.
    pub(super) fn list(&mut self, count: usize, size: usize) -> Result<&'m [u8], StoreError> {
        self.bytes(count.checked_mul(size).ok_or_else(|| self.problem("it ends early"))?)
    }

    pub(super) fn word(&mut self) -> Result<u64, StoreError> {
        let mut word = [0; 8];
        word.copy_from_slice(self.bytes(8)?);
        Ok(u64::from_le_bytes(word))
    }

    /// A row id below `n_owned`.
    #[inline]
    pub(super) fn id(&mut self, layout: Layout) -> Result<u64, StoreError> {
        let bytes = self.bytes(id_bytes(layout.n_rows))?;
        let mut word = [0; 8];
        word[..bytes.len()].copy_from_slice(bytes);
        let id = u64::from_le_bytes(word);
        match id < layout.n_owned as u64 {
            true => Ok(id),
            false => Err(self.problem("a row id is out of range")),
        }
    }

    /// A node that [`put_node`] wrote.
    pub(super) fn node<A: Float>(
        &mut self,
        layout: Layout,
        node: &mut Node<A>,
    ) -> Result<(), StoreError> {
        let (level, index, count) = (self.word()?, self.word()?, self.word()?);
        if level >= 32 || index >= 1 << 32 {
            return Err(self.problem("a node is in no tree"));
        }
        (node.level, node.index) = (level as u32, index as usize);
        (node.row_size, node.n_rows) = (layout.row_size, layout.n_owned);
        node.is_listed = layout.is_listed;
        if count > layout.n_owned as u64
            || !layout.is_listed && ![0, layout.n_owned as u64].contains(&count)
        {
            return Err(self.problem("it has another number of rows than its table"));
        }
        let row_bytes = layout.row_size * A::TYPE.bytes() as usize;
        for _ in 0..count {
            if layout.is_listed {
                let id = self.id(layout)?;
                if node.ids.last().is_some_and(|last| *last >= id) {
                    return Err(self.problem("row ids do not ascend"));
                }
                node.ids.push(id);
            }
            for_each(self.bytes(row_bytes)?, |value| node.values.push(value));
        }
        Ok(())
    }
}

//! Messages between workers, as bytes.

use super::error::StoreError;
use super::leaf_sum::Node;
use nnz_arrays::bytes::{append, append_values};
use nnz_arrays::formats::RowIdsView;
use sparse_core::element::Float;

/// The call to which a message belongs: all workers make the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Call {
    Request,
    TableRows,
    Push,
    Gather,
    State,
    Agree,
    StepRows,
    StepValues,
    StepGradients,
    Share,
}

impl Call {
    /// The name for messages of errors.
    pub(super) fn name(self) -> &'static str {
        match self {
            Call::Request | Call::TableRows => "pull",
            Call::Push => "push",
            Call::StepRows | Call::StepValues => "pull of a step",
            Call::StepGradients => "push of a step",
            Call::Gather => "gather",
            Call::State => "gather of the state",
            Call::Agree => "agree",
            Call::Share => "report",
        }
    }
}

/// A call and its key, as one word at the start of each message.
fn header(call: Call, key: usize) -> u64 {
    (call as u64) << 56 | key as u64
}

/// The size in bytes of row ids of a table.
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

/// Appends a word.
pub(super) fn put_word(parcel: &mut Vec<u8>, word: usize) {
    parcel.extend((word as u64).to_le_bytes());
}

/// Appends values.
#[inline]
pub(super) fn put_values<T: Float>(parcel: &mut Vec<u8>, values: &[T]) {
    append(values, parcel);
}

/// Appends to each worker's message the rows of a node that it owns: level, index and count. Then,
/// if rows are listed, the id of each among the owner's, then their values.
pub(super) fn put_node<'p, A: Float>(
    parcels: impl Iterator<Item = &'p mut Vec<u8>>,
    node: &Node<A>,
) {
    let mut parcels: Vec<&mut Vec<u8>> = parcels.collect();
    let size = parcels.len();
    let row_size = node.row_size.max(1);
    let id_of =
        |position: usize| if node.is_listed { node.ids[position] as usize } else { position };
    let n_rows = node.values.len() / row_size;
    let mut counts = vec![0u64; size];
    (0..n_rows).for_each(|position| counts[id_of(position) % size] += 1);
    for (parcel, count) in parcels.iter_mut().zip(counts) {
        for word in [u64::from(node.level), node.index as u64, count] {
            parcel.extend(word.to_le_bytes());
        }
    }
    for id in node.ids.iter().take(n_rows) {
        put_id(parcels[*id as usize % size], *id / size as u64, node.n_rows);
    }
    match &mut parcels[..] {
        [only] => append(&node.values, only),
        parcels => {
            for (position, row) in node.values.chunks_exact(row_size).enumerate() {
                append(row, parcels[id_of(position) % size]);
            }
        }
    }
}

/// The requested values of a table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Version {
    Newest,
    Snapshot,
}

/// Two bytes: the version, and whether all rows are requested.
pub(super) fn begin_request(parcel: &mut Vec<u8>, version: Version, rows: RowIdsView<'_>) {
    parcel.extend([version as u8, u8::from(matches!(rows, RowIdsView::All))]);
}

pub(super) fn read_request(message: &mut Message<'_>) -> Result<(Version, bool), StoreError> {
    match message.bytes(2)? {
        [version, is_all @ (0 | 1)] if *version == Version::Newest as u8 => {
            Ok((Version::Newest, *is_all == 1))
        }
        [version, is_all @ (0 | 1)] if *version == Version::Snapshot as u8 => {
            Ok((Version::Snapshot, *is_all == 1))
        }
        _ => Err(message.problem("it asks for nothing that there is")),
    }
}

/// The table of a message, as its reader knows it.
#[derive(Clone, Copy)]
pub(super) struct Layout {
    /// All rows of all workers; their number decides the width of ids.
    pub(super) n_rows: usize,
    /// The rows of this worker.
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
    /// [`StoreError::OutOfStep`] if it belongs to another call.
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

    /// The bytes that were not read.
    pub(super) fn rest(&self) -> &'m [u8] {
        self.bytes
    }

    /// The next `len` bytes.
    pub(super) fn bytes(&mut self, len: usize) -> Result<&'m [u8], StoreError> {
        let (bytes, rest) =
            self.bytes.split_at_checked(len).ok_or_else(|| self.problem("it ends early"))?;
        self.bytes = rest;
        Ok(bytes)
    }

    /// The next `count` items of `size` bytes each.
    pub(super) fn list(&mut self, count: usize, size: usize) -> Result<&'m [u8], StoreError> {
        self.bytes(count.checked_mul(size).ok_or_else(|| self.problem("it ends early"))?)
    }

    pub(super) fn word(&mut self) -> Result<u64, StoreError> {
        self.array().map(u64::from_le_bytes)
    }

    #[inline]
    fn array<const N: usize>(&mut self) -> Result<[u8; N], StoreError> {
        let (array, rest) =
            self.bytes.split_first_chunk().ok_or_else(|| self.problem("it ends early"))?;
        self.bytes = rest;
        Ok(*array)
    }

    /// A row id below `n_owned`.
    #[inline]
    pub(super) fn id(&mut self, layout: Layout) -> Result<u64, StoreError> {
        let id = match id_bytes(layout.n_rows) {
            4 => u32::from_le_bytes(self.array()?).into(),
            _ => self.word()?,
        };
        if id < layout.n_owned as u64 {
            Ok(id)
        } else {
            Err(self.problem("a row id is out of range"))
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
        if layout.is_listed {
            for _ in 0..count {
                let id = self.id(layout)?;
                if node.ids.last().is_some_and(|last| *last >= id) {
                    return Err(self.problem("row ids do not ascend"));
                }
                node.ids.push(id);
            }
        }
        let row_bytes = layout.row_size * A::TYPE.bytes() as usize;
        append_values(self.list(count as usize, row_bytes)?, &mut node.values);
        Ok(())
    }
}

//! The state of all workers, collected at worker 0 and restored: the state in a checkpoint of a
//! run.

use super::communicator::Communicator;
use super::error::StoreError;
use super::kv_store::KvStore;
use super::message::{Call, Message, begin, put_values};
use super::shard::n_owned;
use crate::error::Result;
use nnz_arrays::bytes::append_values;
use nnz_arrays::parameter_memory::Table;
use nnz_step::optimizer::{Snapshot, TableState};
use serde::{Deserialize, Serialize};
use sparse_core::element::{Float, Stored};

/// The start of a message: everything but lists of numbers, and the lengths of these.
#[derive(Serialize, Deserialize)]
struct Header {
    snapshot: Snapshot,
    has_mean: bool,
    n_starts: usize,
    n_maps: usize,
    n_last: usize,
    n_states: usize,
    is_kept: bool,
}

impl<T: Float, C: Communicator> KvStore<T, C> {
    /// The states that the workers keep of each key with an update rule, by its position, at worker
    /// 0; empty elsewhere. Nothing is caught up for it. Collective. O(values).
    ///
    /// # Errors
    ///
    /// [`StoreError::Message`] where the shares of a table do not fit together.
    pub(crate) fn gather_tables(&mut self) -> Result<Vec<TableState<T>>> {
        let mut tables = Vec::new();
        for index in 0..self.shards.len() {
            let shard = &self.shards[index];
            let Some(optimizer) = &shard.optimizer else { continue };
            self.outgoing.clear();
            let own = optimizer.state(&shard.table, shard.snapshot.as_ref());
            for (rank, parcel) in self.outgoing.iter_mut().enumerate() {
                begin(parcel, Call::State, index);
                if rank == 0 {
                    put_state(parcel, own_header(&own), &own)?;
                }
            }
            self.exchange(Call::State)?;
            if self.rank() > 0 {
                continue;
            }
            let spec = &self.shards[index].spec;
            let (n_rows, row_size, size) = (spec.n_rows, spec.row_size, self.size());
            let read = |rank| {
                let message = self.message(rank, Call::State, index)?;
                read_state(message, n_owned(n_rows, rank, size), row_size)
            };
            let shares = (0..size).map(read).collect::<Result<Vec<_>, StoreError>>()?;
            let problem = "its part of a table is not of the same step as the others";
            tables.push(TableState::join(&shares).ok_or(StoreError::Message { rank: 0, problem })?);
        }
        Ok(tables)
    }

    /// Restores a key to a collected state, from any number of workers. Not collective, but every
    /// worker calls it. O(own values).
    ///
    /// # Errors
    ///
    /// [`StoreError::UnknownKey`], [`StoreError::NoOptimizer`]; a state of another table.
    pub(crate) fn restore_table(&mut self, key: &str, state: &TableState<T>) -> Result<()> {
        let (rank, size, index) = (self.rank(), self.size(), self.index(key)?);
        let shard = &mut self.shards[index];
        let (n_rows, row_size) = (shard.spec.n_rows, shard.spec.row_size);
        let found = state.weights.len();
        if (state.n_rows, n_rows.checked_mul(row_size)) != (n_rows, Some(found)) {
            return Err(
                StoreError::ValueCount { key: key.to_owned(), n_rows, row_size, found }.into()
            );
        }
        let Some(optimizer) = &mut shard.optimizer else {
            let needed = "could go on from a checkpoint";
            return Err(StoreError::NoOptimizer { key: key.to_owned(), needed }.into());
        };
        let share = state.share(rank, size);
        shard.snapshot =
            (!state.kept.is_empty()).then(|| Table::from_values(row_size, &share.kept));
        // Zeros, so that rows of zeros are not written.
        shard.table = Table::zeros(share.n_rows, row_size);
        optimizer.restore(&mut shard.table, share)
    }
}

fn own_header<T: Float>(state: &TableState<T>) -> Header {
    let (group, record) = (state.snapshot.groups.first(), state.snapshot.parameters.first());
    Header {
        snapshot: state.snapshot.clone(),
        has_mean: state.has_mean,
        n_starts: group.map_or(0, |group| group.starts.len()),
        n_maps: group.map_or(0, |group| group.maps.len()),
        n_last: record.map_or(0, |record| record.last.len()),
        n_states: state.states.len(),
        is_kept: !state.kept.is_empty(),
    }
}

fn put_state<T: Float>(parcel: &mut Vec<u8>, header: Header, state: &TableState<T>) -> Result<()> {
    let problem = "a state has no text";
    let text = serde_json::to_vec(&header).map_err(|_| StoreError::Message { rank: 0, problem })?;
    parcel.extend((text.len() as u64).to_le_bytes());
    parcel.extend(text);
    for group in &state.snapshot.groups {
        parcel.extend(group.starts.iter().flat_map(|start| start.to_le_bytes()));
        put_values(parcel, &group.maps);
    }
    for record in &state.snapshot.parameters {
        parcel.extend(record.last.iter().flat_map(|last| last.to_le_bytes()));
    }
    put_values(parcel, &state.weights);
    put_values(parcel, &state.states);
    put_values(parcel, &state.kept);
    Ok(())
}

/// Reads the message of [`put_state`] for this number of rows.
fn read_state<T: Float>(
    mut message: Message<'_>,
    n_rows: usize,
    row_size: usize,
) -> Result<TableState<T>, StoreError> {
    let n_bytes = message.word()?;
    let text = message.bytes(usize::try_from(n_bytes).unwrap_or(usize::MAX))?;
    let Ok(header) = serde_json::from_slice::<Header>(text) else {
        return Err(message.problem("the state of a table cannot be read"));
    };
    let Header { mut snapshot, has_mean, n_starts, n_maps, n_last, n_states, is_kept } = header;
    let ([group], [record]) = (&mut snapshot.groups[..], &mut snapshot.parameters[..]) else {
        return Err(message.problem("a state is not that of one table"));
    };
    let bytes = message.list(n_starts, size_of::<u64>())?;
    group.starts = bytes.as_chunks().0.iter().map(|word| u64::from_le_bytes(*word)).collect();
    group.maps = read_values(message.list(n_maps, size_of::<f64>())?);
    let bytes = message.list(n_last, size_of::<u32>())?;
    record.last = bytes.as_chunks().0.iter().map(|word| u32::from_le_bytes(*word)).collect();
    let n_values = n_rows * row_size;
    let element = T::TYPE.bytes() as usize;
    let weights = read_values(message.list(n_values, element)?);
    let of_state = <T::Accumulator as Stored>::TYPE.bytes() as usize;
    let states = read_values(message.list(n_states, of_state)?);
    let kept = read_values(message.list(if is_kept { n_values } else { 0 }, element)?);
    if message.is_empty() {
        Ok(TableState { n_rows, snapshot, has_mean, weights, states, kept })
    } else {
        Err(message.problem("it goes on after the state of a table"))
    }
}

fn read_values<T: Float>(bytes: &[u8]) -> Vec<T> {
    let mut values = Vec::new();
    append_values(bytes, &mut values);
    values
}

//! The rows of a training step, of all keys at once: ids out, their values back.

use super::communicator::Communicator;
use super::kv_store::{KvStore, ROWS_AHEAD};
use super::message::{Call, Layout, begin, put_id, put_values, put_word};
use super::owners::Owners;
use super::shard::n_owned;
use super::step_keys::{Gradient, RowList, StepKey, StepKeys};
use crate::error::Result;
use nnz_arrays::bytes::copy_values;
use nnz_arrays::parameter_memory::Table;
use nnz_device::prefetch::prefetch_row_of;
use sparse_core::element::Float;

/// The tables into which a step's rows of one key are pulled.
#[derive(Debug)]
pub(crate) struct Pulled<'t, T> {
    pub(crate) newest: &'t mut [T],
    /// Of the snapshot, where it is read.
    pub(crate) snapshot: Option<&'t mut [T]>,
}

impl<T: Float, C: Communicator> KvStore<T, C> {
    /// Writes the rows that a step names into tables with room for them: row number `i` of a list
    /// at place `i`, and dense parameters whole. `rows` are the distinct rows of each list,
    /// ascending and in range, `tables` those of each key. Two exchanges. O(rows that this worker
    /// names + rows that others name of its own).
    ///
    /// # Errors
    ///
    /// Those of the communicator, and of messages.
    pub(crate) fn pull_step(
        &mut self,
        step: &mut StepKeys<T>,
        rows: &[&[u64]],
        tables: &mut [Pulled<'_, T>],
    ) -> Result<()> {
        self.request_rows(step, rows)?;
        let reads_snapshot = tables.iter().any(|table| table.snapshot.is_some());
        self.answer_rows(step, reads_snapshot)?;
        self.take_rows(step, tables)
    }

    fn request_rows(&mut self, step: &mut StepKeys<T>, rows: &[&[u64]]) -> Result<()> {
        let (rank, size) = (self.rank(), self.size());
        let owners = Owners::new(size);
        self.outgoing.clear();
        self.outgoing.iter_mut().for_each(|parcel| begin(parcel, Call::StepRows, 0));
        for (list, rows) in step.lists.iter_mut().zip(rows) {
            list.divide(rows, owners, rank);
            let parcels = self.outgoing.iter_mut().zip(&list.slots).enumerate();
            for (_, (parcel, slots)) in parcels.filter(|(to, _)| *to != rank) {
                put_word(parcel, slots.len());
                for slot in slots {
                    put_id(parcel, owners.of(rows[*slot as usize]).1, list.n_rows);
                }
            }
        }
        self.exchange(Call::StepRows)?;
        for from in (0..size).filter(|from| *from != rank) {
            let mut message = self.message(from, Call::StepRows, 0)?;
            for list in &mut step.lists {
                let n_owned = n_owned(list.n_rows, rank, size);
                let layout = Layout { n_rows: list.n_rows, n_owned, row_size: 0, is_listed: true };
                let asked = &mut list.asked[from];
                for _ in 0..message.word()? {
                    let id = message.id(layout)?;
                    // Each once, so that the answer is no longer than this worker's rows.
                    if asked.last().is_some_and(|last| *last >= id) {
                        return Err(message.problem("row ids do not ascend").into());
                    }
                    asked.push(id);
                }
            }
        }
        if size > 1 {
            let own = step.lists.iter_mut();
            own.for_each(|list| list.number_owned(n_owned(list.n_rows, rank, size)));
        }
        Ok(())
    }

    fn answer_rows(&mut self, step: &StepKeys<T>, reads_snapshot: bool) -> Result<()> {
        let rank = self.rank();
        self.outgoing.clear();
        self.outgoing.iter_mut().for_each(|parcel| begin(parcel, Call::StepValues, 0));
        for StepKey { index, gradient, .. } in &step.keys {
            let shard = &mut self.shards[*index];
            match (&mut shard.optimizer, gradient) {
                (None, _) => {}
                (Some(optimizer), Gradient::Listed(list, ..)) => {
                    let mut asked = step.lists[*list].asked.iter();
                    asked.try_for_each(|rows| optimizer.settle(&mut shard.table, rows))?;
                }
                (Some(optimizer), Gradient::Whole(_)) => optimizer.flush(&mut shard.table)?,
            }
            let snapshot = if reads_snapshot { Some(shard.snapshot()?) } else { None };
            for table in [Some(&shard.table), snapshot].into_iter().flatten() {
                let parcels = self.outgoing.iter_mut().enumerate();
                for (to, parcel) in parcels.filter(|(to, _)| *to != rank) {
                    match gradient {
                        Gradient::Listed(list, ..) => {
                            put_rows(parcel, table, &step.lists[*list].asked[to]);
                        }
                        Gradient::Whole(_) => put_values(parcel, table.values()),
                    }
                }
            }
        }
        Ok(self.exchange(Call::StepValues)?)
    }

    fn take_rows(&mut self, step: &StepKeys<T>, tables: &mut [Pulled<'_, T>]) -> Result<()> {
        let (rank, size) = (self.rank(), self.size());
        let mut answers = self.messages(Call::StepValues)?;
        for (StepKey { index, gradient, .. }, pulled) in step.keys.iter().zip(tables) {
            let shard = &self.shards[*index];
            let (n_rows, row_size) = (shard.spec.n_rows, shard.spec.row_size);
            let row_bytes = row_size * T::TYPE.bytes() as usize;
            let newest = (&shard.table, &mut *pulled.newest);
            let snapshot = match &mut pulled.snapshot {
                Some(table) => Some((shard.snapshot()?, &mut **table)),
                None => None,
            };
            for (own, table) in [Some(newest), snapshot].into_iter().flatten() {
                for (from, answer) in answers.iter_mut().enumerate() {
                    match gradient {
                        Gradient::Listed(list, ..) => {
                            let RowList { slots, asked, .. } = &step.lists[*list];
                            let slots = &slots[from];
                            if from == rank {
                                copy_rows(own.values(), &asked[rank], slots, row_size, table);
                                continue;
                            }
                            let bytes = answer.list(slots.len(), row_bytes)?;
                            let rows = bytes.chunks_exact(row_bytes.max(1));
                            for (slot, bytes) in slots.iter().zip(rows) {
                                let first = *slot as usize * row_size;
                                copy_values(bytes, &mut table[first..first + row_size]);
                            }
                        }
                        Gradient::Whole(_) if from == rank => {
                            let rows = own.values().chunks_exact(row_size.max(1));
                            let places = table.chunks_exact_mut(row_size.max(1));
                            let places = places.skip(from).step_by(size);
                            places.zip(rows).for_each(|(place, row)| place.copy_from_slice(row));
                        }
                        Gradient::Whole(_) => {
                            let bytes = answer.list(n_owned(n_rows, from, size), row_bytes)?;
                            let rows = bytes.chunks_exact(row_bytes.max(1));
                            let places = table.chunks_exact_mut(row_size.max(1));
                            let places = places.skip(from).step_by(size);
                            places.zip(rows).for_each(|(place, row)| copy_values(row, place));
                        }
                    }
                }
            }
        }
        Ok(())
    }
}

/// Appends rows of a table.
fn put_rows<T: Float>(parcel: &mut Vec<u8>, table: &Table<T>, rows: &[u64]) {
    let (values, row_size) = (table.values(), table.row_size());
    parcel.reserve(rows.len() * row_size * T::TYPE.bytes() as usize);
    let mut ahead = rows.iter().skip(ROWS_AHEAD);
    for row in rows {
        if let Some(row) = ahead.next() {
            prefetch_row_of(values, *row as usize, row_size);
        }
        let first = *row as usize * row_size;
        put_values(parcel, &values[first..first + row_size]);
    }
}

/// Copies rows of a table to the places of their numbers in another.
fn copy_rows<T: Float>(from: &[T], rows: &[u64], slots: &[u32], row_size: usize, to: &mut [T]) {
    let mut ahead = rows.iter().skip(ROWS_AHEAD);
    for (row, slot) in rows.iter().zip(slots) {
        if let Some(row) = ahead.next() {
            prefetch_row_of(from, *row as usize, row_size);
        }
        let (row, slot) = (*row as usize, *slot as usize);
        if row_size == 1 {
            to[slot] = from[row];
        } else {
            to[slot * row_size..(slot + 1) * row_size]
                .copy_from_slice(&from[row * row_size..(row + 1) * row_size]);
        }
    }
}

//! One worker's end of a parameter store.

use super::communicator::{Communicator, CommunicatorError, Parcels};
use super::deadline::Waiting;
use super::error::StoreError;
use super::leaf_sum::Leaves;
use super::message::{
    Call, Layout, Message, Version, begin, begin_request, put_id, put_values, read_request,
};
use super::shard::{Shard, n_owned};
use crate::error::Result;
use nnz_arrays::bytes::{append_values, copy_values};
use nnz_arrays::formats::{RowIdsView, RowSparse};
use nnz_device::prefetch::prefetch_row_of;
use nnz_optim::{Step, UpdateRule};
use nnz_step::optimizer::ParameterSpec;
use sparse_core::element::Float;
use sparse_core::storage::Storage;
use std::fmt;
use std::ops::Range;
use std::time::Instant;

/// One worker's end of a store of tables, by name. See the [module](super).
///
/// A step is a pull of table rows, gradients at them, and a push, which the owners of rows apply. A
/// row outside of the push is updated when it is next pulled, as an
/// [`Updater`](nnz_step::optimizer::Updater) does in its lazy-update mode.
///
/// Traffic per worker and step by these calls, with u rows of its own batch, of which each of P
/// workers owns as many: it sends (1 - 1/P) · u · (2 · s + 2 · b · row size) bytes, with s for an
/// id (4, or 8 above 2³² rows) and b for a value, and receives as many: ids and gradients of its
/// own rows, values of rows for the others. Rows of a snapshot make it 3 · s + 3 · b · row size. A
/// message has 8 bytes more, a request 10, and a push 24 for each subtree of leaves. A
/// [trainer](crate::training::Trainer::fit_as_worker) sends each id once, for all keys:
/// (1 - 1/P) · u · (s + 2 · b · row size), with a snapshot s + 3 · b · row size. The traffic does
/// not depend on the height of the table. Memory: the worker's rows and their states, and the rows
/// of the largest step.
pub struct KvStore<T: Float, C> {
    communicator: C,
    /// The communicator's values when the store was made.
    rank: usize,
    size: usize,
    pub(super) leaves: Leaves,
    pub(super) shards: Vec<Shard<T>>,
    pub(super) outgoing: Parcels,
    incoming: Parcels,
    /// Rows that another worker requests.
    asked: Vec<u64>,
}

impl<T: Float, C: Communicator> KvStore<T, C> {
    /// A store without keys, for steps that are cut into `leaves` leaves.
    ///
    /// # Errors
    ///
    /// [`StoreError::LeafCount`]; [`CommunicatorError::NoWorkers`],
    /// [`CommunicatorError::TooManyWorkers`] and [`CommunicatorError::Rank`] for a communicator
    /// with an invalid rank or size.
    pub fn new(communicator: C, leaves: usize) -> Result<Self> {
        let (rank, size) = (communicator.rank(), communicator.size());
        CommunicatorError::check_size(size).map_err(StoreError::from)?;
        if rank >= size {
            return Err(StoreError::from(CommunicatorError::Rank { rank, size }).into());
        }
        Ok(KvStore {
            communicator,
            rank,
            size,
            leaves: Leaves::new(leaves)?,
            shards: Vec::new(),
            outgoing: Parcels::new(size),
            incoming: Parcels::new(size),
            asked: Vec::new(),
        })
    }

    /// This worker's number.
    pub fn rank(&self) -> usize {
        self.rank
    }

    /// The number of workers.
    pub fn size(&self) -> usize {
        self.size
    }

    /// The leaves of a step.
    pub fn leaves(&self) -> Leaves {
        self.leaves
    }

    /// The leaves of a step that belong to this worker.
    pub fn own_leaves(&self) -> Range<usize> {
        self.leaves.of_worker(self.rank(), self.size())
    }

    /// Creates a key with the name of `spec`. Every worker passes the same values, row major, and
    /// keeps its own rows. A row_sparse gradient is pushed by rows, a dense one as a whole; a key
    /// without a gradient cannot be pushed. O(values). Not collective, but every worker creates the
    /// same keys in the same order.
    ///
    /// # Errors
    ///
    /// [`StoreError::KeyExists`], [`StoreError::ValueCount`].
    pub fn init(&mut self, spec: ParameterSpec, values: &[T]) -> Result<()> {
        let (n_rows, row_size) = (spec.n_rows, spec.row_size);
        let key = spec.name.to_string();
        if self.shards.iter().any(|shard| shard.spec.name == spec.name) {
            return Err(StoreError::KeyExists { key }.into());
        }
        if n_rows.checked_mul(row_size) != Some(values.len()) {
            let found = values.len();
            return Err(StoreError::ValueCount { key, n_rows, row_size, found }.into());
        }
        self.shards.push(Shard::new(spec, values, self.rank(), self.size()));
        Ok(())
    }

    /// Makes every later push a step of this rule, with fresh states, on every present key with a
    /// gradient. Without a rule a push replaces the values. Every worker passes the same rule.
    ///
    /// # Errors
    ///
    /// As [`Updater::new`](nnz_step::optimizer::Updater::new); [`StoreError::ByNorms`].
    pub fn set_optimizer<R: UpdateRule>(&mut self, rule: R) -> Result<()> {
        if R::Step::<T::Accumulator>::BY_NORMS && self.size() > 1 {
            return Err(StoreError::ByNorms { rule: R::NAME, n_workers: self.size() }.into());
        }
        for shard in self.shards.iter_mut().filter(|shard| shard.spec.gradient.is_some()) {
            shard.optimizer = Some(shard.optimizer(rule.clone())?);
        }
        Ok(())
    }

    /// Sets the learning rate of later steps, for all keys.
    ///
    /// # Errors
    ///
    /// As [`Updater::set_learning_rate`](nnz_step::optimizer::Updater::set_learning_rate).
    pub fn set_learning_rate(&mut self, learning_rate: f64) -> Result<()> {
        let mut optimizers = self.shards.iter_mut().filter_map(|shard| shard.optimizer.as_mut());
        optimizers.try_for_each(|optimizer| optimizer.set_learning_rate(learning_rate))
    }

    /// The learning rate of the next step, if there is a rule.
    pub fn learning_rate(&self) -> Option<f64> {
        let mut optimizers = self.shards.iter().filter_map(|shard| shard.optimizer.as_ref());
        optimizers.next().map(|optimizer| optimizer.learning_rate())
    }

    /// Rows of a key, distinct and ascending, for any order of `ids`. Collective; a worker may
    /// request none.
    ///
    /// # Errors
    ///
    /// [`StoreError::UnknownKey`], [`StoreError::RowOutOfRange`]; this worker has sent nothing
    /// then.
    pub fn row_sparse_pull(&mut self, key: &str, ids: &[u64]) -> Result<RowSparse<T>> {
        let mut ids = ids.to_vec();
        ids.sort_unstable();
        ids.dedup();
        let index = self.index(key)?;
        let spec = &self.shards[index].spec;
        let shape = [spec.n_rows, spec.row_size];
        let mut values = Vec::with_capacity(ids.len() * spec.row_size);
        self.fetch(index, Version::Newest, RowIdsView::Listed(ids.as_slice()), |_, row| {
            append_values(row, &mut values);
        })?;
        Ok(RowSparse::new(shape, ids, values)?)
    }

    /// Writes rows of a key, ascending and distinct, into a table of all its rows; the other rows
    /// stay as they are. Collective. Memory does not grow after the largest call.
    ///
    /// # Errors
    ///
    /// As [`row_sparse_pull`](Self::row_sparse_pull); [`StoreError::RowOrder`],
    /// [`StoreError::ValueCount`].
    pub fn pull_rows(&mut self, key: &str, rows: RowIdsView<'_>, table: &mut [T]) -> Result<()> {
        let index = self.index(key)?;
        self.fetch_into(index, Version::Newest, rows, table)
    }

    /// Writes all values of a key into a table, row major. Collective. O(values).
    ///
    /// # Errors
    ///
    /// As [`pull_rows`](Self::pull_rows).
    pub fn pull(&mut self, key: &str, table: &mut [T]) -> Result<()> {
        self.pull_rows(key, RowIdsView::All, table)
    }

    /// [`pull_rows`](Self::pull_rows) of the values at the call of
    /// [`begin_mean`](Self::begin_mean).
    ///
    /// # Errors
    ///
    /// As [`pull_rows`](Self::pull_rows); [`StoreError::NoSnapshot`].
    pub fn pull_snapshot_rows(
        &mut self,
        key: &str,
        rows: RowIdsView<'_>,
        table: &mut [T],
    ) -> Result<()> {
        let index = self.index(key)?;
        self.fetch_into(index, Version::Snapshot, rows, table)
    }

    /// Takes a snapshot of all keys with a gradient, and starts mean gradients at 0. Not
    /// collective, but every worker calls it between the same calls. O(values).
    ///
    /// # Errors
    ///
    /// [`StoreError::NoOptimizer`] for a rule that does not correct gradients.
    pub fn begin_mean(&mut self) -> Result<()> {
        for shard in self.shards.iter_mut().filter(|shard| shard.spec.gradient.is_some()) {
            let Some(optimizer) = shard.optimizer.as_mut().filter(|rule| rule.corrects()) else {
                return Err(no_mean(shard));
            };
            optimizer.flush(&mut shard.table)?;
            optimizer.begin_mean(&mut shard.table)?;
            shard.snapshot = Some(shard.table.clone());
        }
        Ok(())
    }

    /// Turns the [pushes](Self::push_to_mean) since [`begin_mean`](Self::begin_mean) into means,
    /// over gradients that sum those of `n_rows` samples. `clock` is the number of
    /// [steps](Self::n_steps) at that call, to which the count returns. Not collective, as
    /// `begin_mean`.
    ///
    /// # Errors
    ///
    /// As [`begin_mean`](Self::begin_mean).
    pub fn end_mean(&mut self, clock: u64, n_rows: u64) -> Result<()> {
        for shard in &mut self.shards {
            if let Some(optimizer) = &mut shard.optimizer {
                optimizer.end_mean(&mut shard.table, clock, n_rows)?;
            }
        }
        Ok(())
    }

    /// The number of steps so far, of the key that has most.
    pub fn n_steps(&self) -> u64 {
        let optimizers = self.shards.iter().filter_map(|shard| shard.optimizer.as_ref());
        optimizers.map(|optimizer| optimizer.clock()).max().unwrap_or(0)
    }

    /// Catches up all rows that this worker owns, like
    /// [`Updater::flush`](nnz_step::optimizer::Updater::flush). Not collective. Bits depend on it,
    /// so every worker calls it between the same calls.
    ///
    /// # Errors
    ///
    /// None in a store of this library.
    pub fn flush(&mut self) -> Result<()> {
        self.shards.iter_mut().try_for_each(Shard::flush)
    }

    /// The numbers of all workers, one list after the other by rank. Collective.
    ///
    /// # Errors
    ///
    /// Those of the communicator.
    pub fn gather(&mut self, numbers: &[f64], all: &mut Vec<f64>) -> Result<()> {
        all.clear();
        self.outgoing.clear();
        for parcel in self.outgoing.iter_mut() {
            begin(parcel, Call::Gather, 0);
            put_values(parcel, numbers);
        }
        self.exchange(Call::Gather)?;
        for rank in 0..self.size() {
            let mut message = self.message(rank, Call::Gather, 0)?;
            while !message.is_empty() {
                all.push(f64::from_bits(message.word()?));
            }
        }
        Ok(())
    }

    fn fetch_into(
        &mut self,
        index: usize,
        version: Version,
        rows: RowIdsView<'_>,
        table: &mut [T],
    ) -> Result<()> {
        let spec = &self.shards[index].spec;
        let (n_rows, row_size) = (spec.n_rows, spec.row_size);
        if table.len() != n_rows * row_size {
            let (key, found) = (spec.name.to_string(), table.len());
            return Err(StoreError::ValueCount { key, n_rows, row_size, found }.into());
        }
        let listed = match rows {
            RowIdsView::Listed(ids) => ids,
            RowIdsView::All => &[],
        };
        let mut ahead = listed.iter().skip(ROWS_AHEAD);
        self.fetch(index, version, rows, |row, bytes| {
            if let Some(row) = ahead.next() {
                prefetch_row_of(table, *row as usize, row_size);
            }
            copy_values(bytes, &mut table[row * row_size..(row + 1) * row_size]);
        })
    }

    /// Passes the requested rows to `take`, in order, each as bytes.
    fn fetch(
        &mut self,
        index: usize,
        version: Version,
        rows: RowIdsView<'_>,
        mut take: impl FnMut(usize, &[u8]),
    ) -> Result<()> {
        let (n_rows, size) = (self.shards[index].spec.n_rows, self.size());
        if let RowIdsView::Listed(ids) = rows {
            self.check_rows(index, ids)?;
        }
        self.outgoing.clear();
        for parcel in self.outgoing.iter_mut() {
            begin(parcel, Call::Request, index);
            begin_request(parcel, version, rows);
        }
        if let RowIdsView::Listed(ids) = rows {
            let mut parcels: Vec<_> = self.outgoing.iter_mut().collect();
            for id in ids {
                put_id(parcels[*id as usize % size], *id / size as u64, n_rows);
            }
        }
        self.exchange(Call::Request)?;
        self.answer(index)?;
        self.exchange(Call::TableRows)?;

        let row_bytes = self.shards[index].spec.row_size * T::TYPE.bytes() as usize;
        let answers = (0..size).map(|rank| self.message(rank, Call::TableRows, index));
        let mut answers = answers.collect::<Result<Vec<_>, _>>()?;
        let mut take_row = |row: usize| {
            take(row, answers[row % size].bytes(row_bytes)?);
            Ok::<(), StoreError>(())
        };
        match rows {
            RowIdsView::All => (0..n_rows).try_for_each(take_row)?,
            RowIdsView::Listed(ids) => ids.iter().try_for_each(|id| take_row(*id as usize))?,
        }
        Ok(())
    }

    /// Refuses rows that are out of range, or not ascending.
    fn check_rows(&self, index: usize, ids: &[u64]) -> Result<(), StoreError> {
        let spec = &self.shards[index].spec;
        let (key, n_rows) = (|| spec.name.to_string(), spec.n_rows);
        if let Some(row) = ids.iter().copied().find(|id| *id >= n_rows as u64) {
            return Err(StoreError::RowOutOfRange { key: key(), row, n_rows });
        }
        match ids.iter().zip(ids.iter().skip(1)).find(|(previous, row)| previous >= row) {
            Some((&previous, &row)) => Err(StoreError::RowOrder { key: key(), row, previous }),
            None => Ok(()),
        }
    }

    /// Writes the answers to the requests received.
    fn answer(&mut self, index: usize) -> Result<()> {
        let (size, layout) = (self.size(), self.layout(index));
        let mut asked = std::mem::take(&mut self.asked);
        self.outgoing.clear();
        for rank in 0..size {
            let mut message = self.message(rank, Call::Request, index)?;
            let (version, is_all) = read_request(&mut message)?;
            asked.clear();
            while !message.is_empty() {
                let id = message.id(layout)?;
                // Each once, so that the answer is no longer than this worker's rows.
                if asked.last().is_some_and(|last| *last >= id) {
                    return Err(message.problem("row ids do not ascend").into());
                }
                asked.push(id);
            }
            let shard = &mut self.shards[index];
            let table = match (version, &mut shard.optimizer) {
                (Version::Newest, Some(optimizer)) => {
                    if is_all {
                        optimizer.flush(&mut shard.table)?
                    } else {
                        optimizer.settle(&mut shard.table, &asked)?
                    }
                    &shard.table
                }
                (Version::Newest, None) => &shard.table,
                (Version::Snapshot, _) => shard.snapshot()?,
            };
            let Some(parcel) = self.outgoing.iter_mut().nth(rank) else { continue };
            begin(parcel, Call::TableRows, index);
            let (values, row_size) = (table.values(), table.row_size());
            if is_all {
                put_values(parcel, values)
            } else {
                let rows = || asked.iter().map(|row| *row as usize);
                let mut ahead = rows().skip(ROWS_AHEAD);
                parcel.reserve(asked.len() * row_size * T::TYPE.bytes() as usize);
                for row in rows() {
                    if let Some(row) = ahead.next() {
                        prefetch_row_of(values, row, row_size);
                    }
                    put_values(parcel, &values[row * row_size..(row + 1) * row_size]);
                }
            }
        }
        self.asked = asked;
        Ok(())
    }

    /// Says what the others do in the next exchanges.
    pub(crate) fn set_waiting(&mut self, waiting: Waiting) {
        self.communicator.set_waiting(waiting);
    }

    /// Sends the parcels that are written, and receives those of the others.
    pub(super) fn exchange(&mut self, call: Call) -> Result<(), StoreError> {
        let began = Instant::now();
        let exchanged = self.communicator.exchange(&mut self.outgoing, &mut self.incoming);
        exchanged.map_err(|error| StoreError::Exchange {
            call: call.name(),
            n_steps: self.n_steps(),
            waited: began.elapsed(),
            error,
        })?;
        let (here, size) = (self.rank, self.size);
        for parcels in [&mut self.outgoing, &mut self.incoming] {
            let found = parcels.size();
            if found != size {
                *parcels = Parcels::new(size);
                return Err(CommunicatorError::Parcels { here, found, size }.into());
            }
        }
        Ok(())
    }

    pub(super) fn message(
        &self,
        rank: usize,
        call: Call,
        key: usize,
    ) -> Result<Message<'_>, StoreError> {
        Message::open(self.incoming.of(rank), rank, self.rank(), call, key)
    }

    /// The messages of all workers.
    pub(super) fn messages(&self, call: Call) -> Result<Vec<Message<'_>>, StoreError> {
        (0..self.size).map(|rank| self.message(rank, call, 0)).collect()
    }

    pub(super) fn layout(&self, index: usize) -> Layout {
        let spec = &self.shards[index].spec;
        Layout {
            n_rows: spec.n_rows,
            n_owned: n_owned(spec.n_rows, self.rank(), self.size()),
            row_size: spec.row_size,
            is_listed: spec.gradient == Some(Storage::RowSparse),
        }
    }

    pub(super) fn index(&self, key: &str) -> Result<usize, StoreError> {
        let position = self.shards.iter().position(|shard| shard.spec.name == key);
        position.ok_or_else(|| {
            let known: Vec<_> =
                self.shards.iter().map(|shard| format!("`{}`", shard.spec.name)).collect();
            StoreError::UnknownKey { key: key.to_owned(), known: known.join(", ") }
        })
    }
}

/// Rows between prefetching one and copying it.
pub(super) const ROWS_AHEAD: usize = 16;

pub(super) fn no_mean<T: Float>(shard: &Shard<T>) -> crate::Error {
    let key = shard.spec.name.to_string();
    StoreError::NoOptimizer { key, needed: "adds a mean gradient, as `Svrg` does" }.into()
}

impl<T: Float, C: Communicator> fmt::Debug for KvStore<T, C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let keys: Vec<_> = self.shards.iter().map(|shard| &shard.spec.name).collect();
        f.debug_struct("KvStore")
            .field("rank", &self.rank())
            .field("size", &self.size())
            .field("leaves", &self.leaves.count())
            .field("keys", &keys)
            .finish_non_exhaustive()
    }
}

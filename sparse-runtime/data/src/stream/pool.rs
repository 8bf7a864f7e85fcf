//! The thread that makes pools: blocks of samples become runs of samples in the order in which they
//! are learnt from.

use super::super::order::append_shuffled;
use super::super::text::Chunk;
use super::super::{BatchOptions, LastBatch, Order, Position, ReadError};
use super::feed::{Feed, Purpose};
use super::label_check::LabelCheck;
use super::labels::{add_rows, of_no_rows};
use super::mixed_labels::first_mixed;
use super::parsed::Parsed;
use super::{Source, UnitSize, lost_thread, spawn};
use crate::hashing::xxh64;
use sparse_core::element::Float;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread::JoinHandle;

/// Samples in the order in which they are learnt from.
pub(super) struct OrderedSamples<T: Float> {
    pub(super) chunk: Chunk<T>,
    /// The number in the data of each, or [`UNKNOWN`].
    pub(super) ids: Vec<u64>,
    /// The number of samples at the end that repeat earlier ones of the epoch.
    pub(super) n_padding: usize,
}

/// A sample with an unknown number of samples before it.
pub(super) const UNKNOWN: u64 = u64::MAX;

/// The output of an epoch.
pub(super) enum Event<T: Float> {
    /// Samples: a whole number of batches, or the rest at the end.
    Samples(OrderedSamples<T>),
    /// The end; the number of batches of the whole epoch.
    End { n_batches: u64 },
}

/// An epoch that is being read. The threads end when it is dropped.
pub(super) struct Pools<T: Float> {
    events: Option<Receiver<Result<Event<T>, ReadError>>>,
    thread: Option<JoinHandle<()>>,
}

impl<T: Float> Pools<T> {
    /// Starts to read an epoch from one of its batches.
    pub(super) fn start(
        source: &Arc<Source<T>>,
        options: BatchOptions,
        position: Position,
        checks: Vec<LabelCheck>,
    ) -> Result<Self, ReadError> {
        // The sender waits until the pool is taken: there are never more than two.
        let (sender, events) = sync_channel(0);
        let source = Arc::clone(source);
        let thread = spawn(move || {
            let mut epoch = Epoch::new(&source, options, position, &sender);
            let last = epoch.run(checks);
            let _ = match last {
                Ok(Some(n_batches)) => sender.send(Ok(Event::End { n_batches })),
                Ok(None) => Ok(()),
                Err(error) => sender.send(Err(source.cause_of(error))),
            };
        });
        Ok(Pools { events: Some(events), thread: Some(thread?) })
    }

    /// The next output; none after an error or the end.
    pub(super) fn next(&mut self) -> Result<Event<T>, ReadError> {
        let event = self.events.as_ref().map(Receiver::recv);
        event.and_then(Result::ok).unwrap_or_else(|| Err(lost_thread()))
    }
}

impl<T: Float> Drop for Pools<T> {
    fn drop(&mut self) {
        self.events = None;
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

impl<T: Float> OrderedSamples<T> {
    pub(super) fn new(source: &Source<T>) -> Self {
        OrderedSamples { chunk: Chunk::new(&source.layout), ids: Vec::new(), n_padding: 0 }
    }

    fn append(&mut self, other: &OrderedSamples<T>, rows: &[usize]) {
        self.chunk.append_rows(&other.chunk, rows);
        self.ids.extend(rows.iter().map(|&row| other.ids[row]));
    }

    fn truncate(&mut self, n_rows: usize) {
        self.chunk.truncate(n_rows);
        self.ids.truncate(n_rows);
    }

    fn len(&self) -> usize {
        self.ids.len()
    }
}

/// An epoch in progress.
struct Epoch<'a, T: Float> {
    source: &'a Arc<Source<T>>,
    options: BatchOptions,
    position: Position,
    sender: &'a SyncSender<Result<Event<T>, ReadError>>,
    /// The samples that did not fill a batch of the last pool.
    carry: OrderedSamples<T>,
    /// The first batch of the epoch, if padding needs it.
    head: OrderedSamples<T>,
    /// The samples of the epoch so far.
    n_rows: u64,
    /// The pools so far.
    n_pools: u64,
}

impl<'a, T: Float> Epoch<'a, T> {
    fn new(
        source: &'a Arc<Source<T>>,
        options: BatchOptions,
        position: Position,
        sender: &'a SyncSender<Result<Event<T>, ReadError>>,
    ) -> Self {
        let (carry, head) = (OrderedSamples::new(source), OrderedSamples::new(source));
        Epoch { source, options, position, sender, carry, head, n_rows: 0, n_pools: 0 }
    }

    /// Sends pools; returns the batches of the epoch, or `None` if the receiver is gone.
    fn run(&mut self, checks: Vec<LabelCheck>) -> Result<Option<u64>, ReadError> {
        let order = self.order();
        let first = self.fast_forward(&order);
        let bases = self.bases(&order, first);
        let mut left = order[first..].iter().copied().zip(bases).peekable();
        let units = order[first..].to_vec();
        let mut feed = Feed::start(self.source, units, checks.clone(), Purpose::Samples)?;
        let mut keeping =
            self.source.epoch_cache.as_ref().and_then(|kept| kept.keep(checks.clone()));
        let mut labels = of_no_rows(&self.source.layout);
        let mut parts: Vec<(Chunk<T>, u64)> = Vec::new();
        let mut bytes = 0;
        let mut size = UnitSize { rows: 0, bytes: 0 };
        // What is read again is counted again.
        self.source.known().skipped = super::super::text::Skips::new(self.source.on_error());
        while let Some(parsed) = feed.next()? {
            if let Some(kept) = keeping.as_mut().filter(|_| !parsed.is_cached)
                && let Err(error) = kept.add(&parsed)
            {
                tracing::warn!(%error, "rows cannot be kept any more: later epochs parse the text");
                keeping = None;
            }
            let Parsed { unit, is_last, rows, faults, written, .. } = parsed;
            for (place, problem) in faults {
                self.source.known().skipped.add(place, problem)?;
            }
            let mixed = self.source.known().mixed_column(&written);
            if let Some(column) = mixed {
                return Err(first_mixed(self.source, &checks, column));
            }
            if !self.source.known().labels.has(unit) {
                add_rows(&mut labels, &self.source.layout, &rows);
            }
            // Units come in order, each perhaps in several blocks.
            while left.next_if(|(next, _)| *next != unit).is_some() {}
            let base = left.peek().map_or(UNKNOWN, |(_, base)| *base);
            let base = if base == UNKNOWN { UNKNOWN } else { base + size.rows };
            // A row of a pool has its number as well.
            let bytes_of_rows = rows.bytes() + rows.n_rows * size_of::<u64>();
            let block = UnitSize { rows: rows.n_rows as u64, bytes: bytes_of_rows };
            size = UnitSize { rows: size.rows + block.rows, bytes: size.bytes + block.bytes };
            parts.push((rows, base));
            bytes += block.bytes;
            if is_last {
                let mut known = self.source.known();
                (known.units[unit], known.rows[unit]) = (Some(size), Some(size.rows));
                known.labels.add_unit(unit, &labels);
                labels = of_no_rows(&self.source.layout);
                size = UnitSize { rows: 0, bytes: 0 };
            }
            if bytes >= self.source.sizes.pool {
                bytes = 0;
                if !self.send_pool(&mut parts) {
                    return Ok(None);
                }
            }
        }
        if !self.send_pool(&mut parts) {
            return Ok(None);
        }
        self.source.known().n_rows = Some(self.n_rows);
        let batch_size = self.options.batch_size as u64;
        let n_full = self.n_rows / batch_size;
        let n_batches = match self.options.last_batch {
            LastBatch::Discard => n_full,
            _ => self.n_rows.div_ceil(batch_size),
        };
        if self.carry.len() > 0 && !self.send_last() {
            return Ok(None);
        }
        Ok(Some(n_batches))
    }

    /// The units in the order of the epoch.
    fn order(&self) -> Vec<usize> {
        let n_units = self.source.units.len();
        let mut order = Vec::new();
        match self.options.order {
            Order::Sequential => order.extend(0..n_units),
            Order::Shuffled { seed } => {
                append_shuffled(&mut order, n_units, seed, self.position.epoch);
            }
        }
        order
    }

    /// The first requested sample.
    fn wanted(&self) -> u64 {
        self.position.batch.saturating_mul(self.options.batch_size as u64)
    }

    /// Skips whole pools before the requested batch, if the sizes of all their units are known.
    /// Returns the number of units skipped.
    fn fast_forward(&mut self, order: &[usize]) -> usize {
        if self.options.last_batch == LastBatch::Pad {
            // The last batch needs the first rows.
            return 0;
        }
        let known = self.source.known();
        let (mut first, mut rows, mut bytes) = (0, 0, 0);
        for (position, &unit) in order.iter().enumerate() {
            // A unit of several blocks may hold the end of a pool.
            let is_block = matches!(self.source.units[unit], super::Unit::Lines { .. });
            let Some(size) = known.units[unit].filter(|_| is_block) else { break };
            rows += size.rows;
            bytes += size.bytes;
            if bytes < self.source.sizes.pool {
                continue;
            }
            if self.n_rows + rows
                > self.position.batch.saturating_mul(self.options.batch_size as u64)
            {
                break;
            }
            self.n_rows += rows;
            self.n_pools += 1;
            first = position + 1;
            (rows, bytes) = (0, 0);
        }
        first
    }

    /// The number in the data of the first sample of each unit, if known.
    fn bases(&self, order: &[usize], first: usize) -> Vec<u64> {
        let known = self.source.known();
        let mut base = 0;
        let mut bases = Vec::with_capacity(known.rows.len());
        for rows in &known.rows {
            bases.push(base);
            base = match rows {
                Some(rows) if base != UNKNOWN => base + rows,
                _ => UNKNOWN,
            };
        }
        order[first..].iter().map(|&unit| bases[unit]).collect()
    }

    /// Makes a pool of blocks and sends it; false if the receiver is gone.
    fn send_pool(&mut self, parts: &mut Vec<(Chunk<T>, u64)>) -> bool {
        let n_rows: usize = parts.iter().map(|(rows, _)| rows.n_rows).sum();
        if n_rows == 0 {
            parts.clear();
            return true;
        }
        let mut order = Vec::new();
        match self.options.order {
            Order::Sequential => order.extend(0..n_rows),
            Order::Shuffled { seed } => {
                let seed = xxh64(&self.n_pools.to_le_bytes(), seed);
                append_shuffled(&mut order, n_rows, seed, self.position.epoch);
            }
        }
        self.n_pools += 1;
        // What is before the batch that is wanted is passed over, but for what padding needs.
        let (before, wanted) = (self.n_rows, self.wanted());
        self.n_rows += n_rows as u64;
        let pads = self.options.last_batch == LastBatch::Pad;
        if pads && self.head.len() < self.options.batch_size {
            let n = (self.options.batch_size - self.head.len()).min(n_rows);
            let mut head = std::mem::replace(&mut self.head, OrderedSamples::new(self.source));
            copy_rows(parts, &order[..n], before, self.options.order, &mut head);
            self.head = head;
        }
        let passed = usize::try_from(wanted.saturating_sub(before)).unwrap_or(usize::MAX);
        let order = &order[passed.min(n_rows)..];
        let mut pool = OrderedSamples::new(self.source);
        let chunks = parts.iter().map(|(rows, _)| rows);
        pool.chunk.reserve_for(std::iter::once(&self.carry.chunk).chain(chunks));
        let all: Vec<usize> = (0..self.carry.len()).collect();
        pool.append(&self.carry, &all);
        copy_rows(parts, order, before, self.options.order, &mut pool);
        parts.clear();
        let n_full = pool.len() / self.options.batch_size * self.options.batch_size;
        let rest: Vec<usize> = (n_full..pool.len()).collect();
        self.carry = OrderedSamples::new(self.source);
        self.carry.append(&pool, &rest);
        pool.truncate(n_full);
        n_full == 0 || self.sender.send(Ok(Event::Samples(pool))).is_ok()
    }

    /// Sends the samples that do not fill a batch; false if the receiver is gone.
    fn send_last(&mut self) -> bool {
        let mut last = std::mem::replace(&mut self.carry, OrderedSamples::new(self.source));
        match self.options.last_batch {
            LastBatch::Discard => return true,
            LastBatch::Pad => {
                last.n_padding = self.options.batch_size - last.len();
                let rows: Vec<usize> = (0..last.n_padding).map(|i| i % self.head.len()).collect();
                last.append(&self.head, &rows);
            }
            // Streams refuse to roll over.
            LastBatch::Short | LastBatch::RollOver => {}
        }
        self.sender.send(Ok(Event::Samples(last))).is_ok()
    }
}

/// Appends samples of blocks, by their positions in all blocks together. `before` is the number of
/// samples of the epoch before the blocks.
fn copy_rows<T: Float>(
    parts: &[(Chunk<T>, u64)],
    order: &[usize],
    before: u64,
    kind: Order,
    rows: &mut OrderedSamples<T>,
) {
    let mut starts = Vec::with_capacity(parts.len());
    let mut n = 0;
    for (part, _) in parts {
        starts.push(n);
        n += part.n_rows;
    }
    let place = |row: usize| {
        // The last block that starts at or before it: those without rows start where the next one
        // does.
        let part = starts.partition_point(|&start| start <= row) - 1;
        (part, row - starts[part])
    };
    for run in order.chunk_by(|a, b| b.wrapping_sub(*a) == 1 && place(*a).0 == place(*b).0) {
        let (part, first) = place(run[0]);
        let (source, base) = &parts[part];
        rows.chunk.append_run(source, first..first + run.len());
        rows.ids.extend(run.iter().map(|&row| match (kind, *base) {
            // As they lie: their numbers are known without those of other blocks.
            (Order::Sequential, _) => before + row as u64,
            (Order::Shuffled { .. }, UNKNOWN) => UNKNOWN,
            (Order::Shuffled { .. }, base) => base + (row - starts[part]) as u64,
        }));
    }
}

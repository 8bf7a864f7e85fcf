//! Batches of data in memory.
//!
//! Names, types, labels, ranks, and each epoch's order are resolved before the first batch. A batch
//! of consecutive samples, or of one sample anywhere, is then a slice. Any other batch gathers the
//! bounds of its samples and its labels into reused buffers; non-zeros are never copied.

use super::binding::{Bound, BoundDense, bind};
use super::column::append_rows;
use super::order::append_shuffled;
use super::source::{Batch, Batches, DataSource};
use super::{BatchOptions, DataError, Dataset, LastBatch, Order, Position, fingerprint};
use crate::error::Result;
use nnz_arrays::formats::{
    CsrArrays, CsrView, DenseView, DividedEntries, GatheredBounds, IdsView, Shape,
};
use nnz_arrays::in_library;
use nnz_arrays::with_column_ids;
use nnz_arrays::with_ids;
use nnz_device::prefetch::{AHEAD, DATA_AHEAD};
use nnz_device::prefetch::{prefetch, prefetch_lone_runs};
use nnz_step::model::{BatchSource, InputInfo};
use sparse_core::element::{Element, Float, Stored, Unit};
use sparse_core::storage::ElementType;
use std::fmt;

impl<T: Float> DataSource<T> for Dataset<T> {
    type Batches<'s> = DatasetBatches<'s, T>;

    fn n_rows(&self) -> Option<usize> {
        Some(Dataset::n_rows(self))
    }

    fn fingerprint(&self) -> Result<Option<u64>> {
        Ok(Some(fingerprint::of_dataset(self)))
    }

    fn batches<'s>(
        &'s self,
        inputs: &[InputInfo],
        options: &BatchOptions,
    ) -> Result<DatasetBatches<'s, T>> {
        let data = self;
        in_library!(<T> batches_of::<T> => <'d>(
            data: &'d Dataset<T>,
            inputs: &[InputInfo],
            options: &BatchOptions,
        ) -> Result<DatasetBatches<'d, T>>)
    }
}

fn batches_of<'s, T: Float>(
    data: &'s Dataset<T>,
    inputs: &[InputInfo],
    options: &BatchOptions,
) -> Result<DatasetBatches<'s, T>> {
    options.check()?;
    options.check_roll_over(data.n_rows())?;
    let bound = bind(data, inputs, options.labels)?;
    let mut batches = DatasetBatches {
        columns: bound.into_iter().map(BatchColumn::new).collect(),
        n_rows: data.n_rows(),
        options: *options,
        epoch: 0,
        sequence: Sequence::default(),
        next: 0,
    };
    batches.lay_out();
    Ok(batches)
}

/// The batches of a [`Dataset`]; see [`Batches`].
pub struct DatasetBatches<'s, T: Float> {
    columns: Vec<BatchColumn<'s, T>>,
    n_rows: usize,
    options: BatchOptions,
    epoch: u64,
    sequence: Sequence,
    /// The next batch.
    next: usize,
}

/// The samples of one epoch in order, padding and rolled-over ones included.
#[derive(Default)]
struct Sequence {
    /// The samples one by one, or empty if they are consecutive.
    listed: Vec<usize>,
    /// The first of consecutive samples; after the last sample comes sample 0 again.
    first: usize,
    /// Buffer for a batch of consecutive samples that wraps around the end.
    wrapped: Vec<usize>,
    n_batches: usize,
    /// The samples of all batches: `n_batches` times the batch size, or less if the last is short.
    len: usize,
    /// The samples without padding.
    n_real: usize,
}

/// One bound array, and buffers for a gathered batch of it.
enum BatchColumn<'s, T: Float> {
    Csr(CsrColumn<'s, T>),
    Unit(CsrColumn<'s, Unit>),
    Dense(DenseColumn<'s, T>),
    Ids(IdsColumn<'s>),
    Ignored(Shape, ElementType),
}

struct CsrColumn<'s, V: Stored> {
    all: CsrArrays<'s, V>,
    /// The bounds of gathered samples.
    starts: Vec<u64>,
    ends: Vec<u64>,
    /// The same entries by threads, and buffers for the bounds of gathered samples.
    divided: Option<&'s DividedEntries<V>>,
    divided_bounds: GatheredBounds,
}

/// Smaller batches are hardly ever shared among threads, so their entries by threads are not looked
/// up.
const MIN_DIVIDED_BATCH: usize = 512;

struct DenseColumn<'s, E> {
    all: BoundDense<'s, E>,
    gathered: Vec<E>,
}

enum IdsColumn<'s> {
    U32(DenseColumn<'s, u32>),
    U64(DenseColumn<'s, u64>),
    I64(DenseColumn<'s, i64>),
}

/// A batch of a [`Dataset`].
pub struct DatasetBatch<'b, T: Float> {
    columns: &'b [BatchColumn<'b, T>],
    rows: BatchSamples<'b>,
    n_padding: usize,
    /// For a batch of one sample: the sample `AHEAD` batches later, if there is one. Loops over
    /// larger batches prefetch themselves.
    upcoming: Option<usize>,
}

/// The samples of a batch.
#[derive(Clone, Copy, Debug)]
enum BatchSamples<'b> {
    /// A run of samples of the data.
    Run { first: usize, len: usize },
    /// These samples, gathered.
    Gathered(&'b [usize]),
}

impl<T: Float> fmt::Debug for DatasetBatches<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DatasetBatches")
            .field("n_rows", &self.n_rows)
            .field("epoch", &self.epoch)
            .field("next", &self.next)
            .finish_non_exhaustive()
    }
}

impl<T: Float> fmt::Debug for DatasetBatch<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DatasetBatch").field("rows", &self.rows).finish_non_exhaustive()
    }
}

impl<T: Float> DatasetBatches<'_, T> {
    /// Lays out the samples of `self.epoch`. O(1) for sequential order, O(n_rows) for shuffled
    /// order.
    fn lay_out_epoch(&mut self) {
        let batches = self;
        in_library!(<T> DatasetBatches::<T>::lay_out => (batches: &mut DatasetBatches<'_, T>) -> ());
    }

    fn lay_out(&mut self) {
        let n_rows = self.n_rows;
        let batch_size = self.options.batch_size;
        // Epochs that roll over are cut from one endless sequence, so that what is left of those
        // before follows from their number.
        let n_left = match self.options.last_batch {
            LastBatch::RollOver => {
                let before = u128::from(self.epoch) * n_rows as u128;
                (before % batch_size as u128) as usize
            }
            LastBatch::Short | LastBatch::Discard | LastBatch::Pad => 0,
        };
        let n_real = n_left + n_rows;
        let (n_batches, len) = match self.options.last_batch {
            LastBatch::Short => (n_real.div_ceil(batch_size), n_real),
            LastBatch::Discard | LastBatch::RollOver => {
                (n_real / batch_size, n_real / batch_size * batch_size)
            }
            LastBatch::Pad => {
                let n_batches = n_real.div_ceil(batch_size);
                (n_batches, n_batches.saturating_mul(batch_size))
            }
        };
        let sequence = &mut self.sequence;
        (sequence.n_batches, sequence.len, sequence.n_real) = (n_batches, len, n_real);
        sequence.listed.clear();
        sequence.first = 0;
        if n_batches == 0 {
            return;
        }
        match self.options.order {
            Order::Sequential => sequence.first = (n_rows - n_left % n_rows) % n_rows,
            Order::Shuffled { seed } => {
                let listed = &mut sequence.listed;
                let n_epochs_left = n_left.div_ceil(n_rows) as u64;
                for epoch in self.epoch - n_epochs_left..=self.epoch {
                    append_shuffled(listed, n_rows, seed, epoch);
                }
                listed.drain(..listed.len() - n_real);
                for padding in n_real..len {
                    listed.push(listed[padding - n_rows]);
                }
            }
        }
    }
}

impl<T: Float> Batches<T> for DatasetBatches<'_, T> {
    type Batch<'b>
        = DatasetBatch<'b, T>
    where
        Self: 'b;

    fn seek(&mut self, position: Position) -> Result<()> {
        if position.epoch != self.epoch {
            self.epoch = position.epoch;
            self.lay_out_epoch();
        }
        match usize::try_from(position.batch) {
            Ok(batch) if batch <= self.sequence.n_batches => {
                self.next = batch;
                Ok(())
            }
            _ => Err(DataError::BatchOutOfRange {
                epoch: position.epoch,
                batch: position.batch,
                n_batches: self.sequence.n_batches as u64,
            }
            .into()),
        }
    }

    #[inline(always)]
    fn next_batch(&mut self) -> Result<Option<DatasetBatch<'_, T>>> {
        Ok(self.take(1))
    }

    fn next_rows(&mut self, at_most: usize) -> Result<Option<DatasetBatch<'_, T>>> {
        Ok(self.take(if self.options.batch_size == 1 { at_most.max(1) } else { 1 }))
    }

    fn batch_size(&self) -> Option<usize> {
        Some(self.options.batch_size)
    }

    fn position(&self) -> Position {
        Position { epoch: self.epoch, batch: self.next as u64 }
    }

    fn n_batches(&self) -> Option<u64> {
        Some(self.sequence.n_batches as u64)
    }
}

impl<T: Float> DatasetBatches<'_, T> {
    /// Up to `count` batches as one.
    #[inline(always)]
    fn take(&mut self, count: usize) -> Option<DatasetBatch<'_, T>> {
        let sequence = &mut self.sequence;
        let count = count.min(sequence.n_batches - self.next);
        if count == 0 {
            return None;
        }
        let start = self.next * self.options.batch_size;
        let len = (count * self.options.batch_size).min(sequence.len - start);
        self.next += count;
        let n_padding = (start + len).saturating_sub(sequence.n_real);
        let mut upcoming = None;
        let rows = if sequence.listed.is_empty() {
            let first = match start + sequence.first {
                first if first < self.n_rows => first,
                beyond => beyond % self.n_rows,
            };
            if first + len <= self.n_rows {
                upcoming = (len == 1 && first + AHEAD < self.n_rows).then_some(first + AHEAD);
                BatchSamples::Run { first, len }
            } else {
                let rows = sequence.wrap(first, len, self.n_rows);
                gather(&mut self.columns, rows)
            }
        } else {
            match &sequence.listed[start..start + len] {
                &[first] => {
                    upcoming = sequence.listed.get(start + AHEAD).copied();
                    // The processor foresees rows that lie one after the other; not these. First
                    // where a row lies, then the row, then what its entries refer to.
                    let far = sequence.listed.get(start + 2 * DATA_AHEAD).copied();
                    let near = sequence.listed.get(start + DATA_AHEAD).copied();
                    ask_for(&self.columns, far, near);
                    BatchSamples::Run { first, len: 1 }
                }
                rows => gather(&mut self.columns, rows),
            }
        };
        Some(DatasetBatch { columns: &self.columns, rows, n_padding, upcoming })
    }
}

impl Sequence {
    /// The samples of a batch that wraps from the last sample to the first.
    #[inline(never)]
    fn wrap(&mut self, first: usize, len: usize, n_rows: usize) -> &[usize] {
        self.wrapped.clear();
        self.wrapped.extend((first..first + len).map(|row| row % n_rows));
        &self.wrapped
    }
}

impl<'s, T: Float> BatchColumn<'s, T> {
    fn new(all: Bound<'s, T>) -> Self {
        match all {
            Bound::Csr(all) => BatchColumn::Csr(CsrColumn::new(all)),
            Bound::Unit(all) => BatchColumn::Unit(CsrColumn::new(all)),
            Bound::Dense(all) => BatchColumn::Dense(DenseColumn::new(all)),
            Bound::Ids(ids, shape) => BatchColumn::Ids(match ids {
                IdsView::U32(ids) => IdsColumn::U32(DenseColumn::of(ids, shape)),
                IdsView::U64(ids) => IdsColumn::U64(DenseColumn::of(ids, shape)),
                IdsView::I64(ids) => IdsColumn::I64(DenseColumn::of(ids, shape)),
            }),
            Bound::Ignored(shape, element) => BatchColumn::Ignored(shape, element),
        }
    }

    /// Prefetches the bounds of a sample.
    #[inline]
    fn prefetch_bounds(&self, row: usize) {
        match self {
            BatchColumn::Csr(column) => prefetch(column.all.starts, row),
            BatchColumn::Unit(column) => prefetch(column.all.starts, row),
            _ => {}
        }
    }

    /// Prefetches a sample.
    #[inline]
    fn prefetch(&self, row: usize) {
        match self {
            BatchColumn::Csr(column) => column.prefetch(row),
            BatchColumn::Unit(column) => column.prefetch(row),
            BatchColumn::Dense(column) => column.prefetch(row),
            BatchColumn::Ids(column) => with_ids!(IdsColumn, column, |ids| ids.prefetch(row)),
            BatchColumn::Ignored(..) => {}
        }
    }

    fn gather(&mut self, rows: &[usize]) {
        match self {
            BatchColumn::Csr(column) => column.gather(rows),
            BatchColumn::Unit(column) => column.gather(rows),
            BatchColumn::Dense(column) => column.gather(rows),
            BatchColumn::Ids(column) => with_ids!(IdsColumn, column, |ids| ids.gather(rows)),
            BatchColumn::Ignored(..) => {}
        }
    }
}

impl<'s, V: Stored> CsrColumn<'s, V> {
    fn new(all: CsrView<'s, V>) -> Self {
        CsrColumn {
            all: all.arrays(),
            starts: Vec::new(),
            ends: Vec::new(),
            divided: all.divided().map(|divided| divided.entries()),
            divided_bounds: GatheredBounds::default(),
        }
    }

    #[inline]
    fn prefetch(&self, row: usize) {
        let (start, end) = (self.all.starts[row] as usize, self.all.ends[row] as usize);
        with_column_ids!(self.all.columns, |ids| prefetch_lone_runs(
            ids,
            self.all.values,
            start,
            end
        ));
    }

    fn gather(&mut self, rows: &[usize]) {
        let CsrArrays { starts, ends, .. } = self.all;
        self.starts.resize(rows.len(), 0);
        self.ends.resize(rows.len(), 0);
        // In one pass: both of a row lie in one line, which is often not near.
        for ((start, end), &row) in self.starts.iter_mut().zip(&mut self.ends).zip(rows) {
            (*start, *end) = (starts[row], ends[row]);
        }
        if let Some(divided) = self.divided
            && rows.len() >= MIN_DIVIDED_BATCH
        {
            self.divided_bounds.gather(divided, rows);
        }
    }

    /// The samples of a batch, and the sample that is read after it.
    #[inline(always)]
    fn rows(
        &self,
        rows: BatchSamples<'_>,
        upcoming: Option<usize>,
    ) -> nnz_step::Result<CsrView<'_, V>> {
        let arrays: CsrArrays<'_, V> = self.all;
        let all = arrays.view();
        let BatchSamples::Run { first, len } = rows else {
            let rows = all.with_rows(&self.starts, &self.ends);
            return Ok(match self.divided {
                Some(divided) if rows.n_rows() >= MIN_DIVIDED_BATCH => {
                    rows.with_divided(divided.gathered(&self.divided_bounds))
                }
                _ => rows,
            });
        };
        let rows = all.rows(first..first + len)?;
        if len >= MIN_DIVIDED_BATCH
            && let Some(divided) = self.divided
        {
            return Ok(rows.with_divided(divided.rows(first..first + len)));
        }
        Ok(match upcoming {
            Some(row) => rows.with_upcoming((arrays.starts[row], arrays.ends[row])),
            None => rows,
        })
    }
}

impl<'s, E: Element> DenseColumn<'s, E> {
    fn new(all: BoundDense<'s, E>) -> Self {
        DenseColumn { all, gathered: Vec::new() }
    }

    /// `shape` has as many elements as the array.
    fn of(array: DenseView<'s, E>, shape: Shape) -> Self {
        DenseColumn::new(BoundDense::new(array.values(), shape))
    }

    #[inline]
    fn prefetch(&self, row: usize) {
        prefetch(self.all.values, row * self.all.row_size);
    }

    fn gather(&mut self, rows: &[usize]) {
        self.gathered.clear();
        append_rows(&mut self.gathered, self.all.values, self.all.row_size, rows);
    }

    /// The samples of a batch, gathered unless they are consecutive.
    #[inline(always)]
    fn rows(&self, rows: BatchSamples<'_>) -> DenseView<'_, E> {
        let all = &self.all;
        let (n_rows, values) = match rows {
            BatchSamples::Run { first, len } => {
                let range = first * all.row_size..(first + len) * all.row_size;
                (len, &all.values[range])
            }
            BatchSamples::Gathered(rows) => (rows.len(), &self.gathered[..]),
        };
        // As many values as the shape says, by the invariant of `BoundDense`.
        DenseView::table(all.shape.with_n_rows(n_rows), values)
    }
}

/// Gathers the samples of every column. Out of line, away from consecutive batches, which are the
/// shortest steps.
#[inline(never)]
fn gather<'r, T: Float>(columns: &mut [BatchColumn<'_, T>], rows: &'r [usize]) -> BatchSamples<'r> {
    in_library!(<T> gather_columns::<T> => (
        columns: &mut [BatchColumn<'_, T>],
        rows: &[usize],
    ) -> ());
    BatchSamples::Gathered(rows)
}

/// Asks for where a far sample lies, and for a near one.
#[inline(always)]
fn ask_for<T: Float>(columns: &[BatchColumn<'_, T>], far: Option<usize>, near: Option<usize>) {
    in_library!(<T> prefetch_samples::<T> => (
        columns: &[BatchColumn<'_, T>],
        far: Option<usize>,
        near: Option<usize>,
    ) -> ());
}

fn prefetch_samples<T: Float>(
    columns: &[BatchColumn<'_, T>],
    far: Option<usize>,
    near: Option<usize>,
) {
    if let Some(row) = far {
        columns.iter().for_each(|column| column.prefetch_bounds(row));
    }
    if let Some(row) = near {
        columns.iter().for_each(|column| column.prefetch(row));
    }
}

fn gather_columns<T: Float>(columns: &mut [BatchColumn<'_, T>], rows: &[usize]) {
    columns.iter_mut().for_each(|column| column.gather(rows));
}

#[cold]
fn wrong_position(index: usize, asked: &'static str) -> DataError {
    DataError::WrongPosition { index, asked }
}

impl<'b, T: Float> BatchSource<'b, T> for DatasetBatch<'b, T> {
    #[inline(always)]
    fn n_rows(&self) -> usize {
        match self.rows {
            BatchSamples::Run { len, .. } => len,
            BatchSamples::Gathered(rows) => rows.len(),
        }
    }

    #[inline(always)]
    fn csr(&self, index: usize) -> nnz_step::Result<CsrView<'b, T>> {
        match self.columns.get(index) {
            Some(BatchColumn::Csr(column)) => column.rows(self.rows, self.upcoming),
            Some(BatchColumn::Ignored(..)) => Ok(CsrView::default()),
            _ => Err(wrong_position(index, "csr array").into()),
        }
    }

    #[inline(always)]
    fn unit(&self, index: usize) -> nnz_step::Result<CsrView<'b, Unit>> {
        match self.columns.get(index) {
            Some(BatchColumn::Unit(column)) => column.rows(self.rows, self.upcoming),
            Some(BatchColumn::Ignored(..)) => Ok(CsrView::default()),
            _ => Err(wrong_position(index, "csr array of units").into()),
        }
    }

    #[inline(always)]
    fn dense(&self, index: usize) -> nnz_step::Result<DenseView<'b, T>> {
        match self.columns.get(index) {
            Some(BatchColumn::Dense(column)) => Ok(column.rows(self.rows)),
            Some(BatchColumn::Ignored(shape, _)) => Ok(DenseView::new(*shape, &[])?),
            _ => Err(wrong_position(index, "dense array of numbers").into()),
        }
    }

    #[inline]
    fn ids(&self, index: usize) -> nnz_step::Result<IdsView<'b>> {
        match self.columns.get(index) {
            Some(BatchColumn::Ids(column)) => {
                Ok(with_ids!(IdsColumn, column, |ids| ids.rows(self.rows).into()))
            }
            Some(BatchColumn::Ignored(shape, element)) => Ok(IdsView::none(*shape, *element)?),
            _ => Err(wrong_position(index, "array of ids").into()),
        }
    }
}

impl<'b, T: Float> Batch<'b, T> for DatasetBatch<'b, T> {
    fn n_padding(&self) -> usize {
        self.n_padding
    }

    fn row_id(&self, row: usize) -> Option<u64> {
        let id = match self.rows {
            BatchSamples::Run { first, len } => (row < len).then_some(first + row)?,
            BatchSamples::Gathered(rows) => *rows.get(row)?,
        };
        Some(id as u64)
    }

    fn append_row_ids(&self, ids: &mut Vec<usize>) {
        match self.rows {
            BatchSamples::Run { first, len } => ids.extend(first..first + len),
            BatchSamples::Gathered(rows) => ids.extend_from_slice(rows),
        }
    }
}

#[cfg(test)]
mod tests;

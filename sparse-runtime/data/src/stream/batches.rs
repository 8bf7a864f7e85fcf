//! The batches of a stream: runs of the samples of a pool.

use super::super::binding::{Bound, bind, resolve};
use super::super::source::{Batch, Batches, BytesRead, DataSource};
use super::super::text::Chunk;
use super::super::{BatchOptions, ColumnValues, DataError, LastBatch, Position};
use super::Source;
use super::label_check::LabelCheck;
use super::open::StreamedDataset;
use super::pool::{Event, Pools, UNKNOWN};
use crate::error::Result;
use nnz_arrays::formats::{CsrView, DenseView, IdsView, Shape};
use nnz_arrays::in_library;
use nnz_arrays::with_ids;
use nnz_device::prefetch::AHEAD;
use nnz_step::model::{BatchSource, InputInfo, InputRole};
use sparse_core::element::Float;
use sparse_core::storage::ElementType;
use std::fmt;
use std::sync::Arc;

// The error for a type that is not data names the type of most data.
#[diagnostic::do_not_recommend]
impl<T: Float> DataSource<T> for StreamedDataset<T> {
    type Batches<'s> = StreamBatches<T>;

    fn n_rows(&self) -> Option<usize> {
        StreamedDataset::n_rows(self)
    }

    fn fingerprint(&self) -> Result<Option<u64>> {
        Ok(Some(self.source.fingerprint()?))
    }

    fn shuffle_buffer(&self) -> Option<usize> {
        Some(self.source.sizes.buffer)
    }

    /// As for any source; labels are checked as they are read, and a label that its loss does not
    /// accept ends the epoch.
    fn batches(&self, inputs: &[InputInfo], options: &BatchOptions) -> Result<StreamBatches<T>> {
        let data = self;
        in_library!(<T> StreamedDataset::<T>::bound_batches => (
            data: &StreamedDataset<T>,
            inputs: &[InputInfo],
            options: &BatchOptions,
        ) -> Result<StreamBatches<T>>)
    }
}

impl<T: Float> StreamedDataset<T> {
    fn bound_batches(
        &self,
        inputs: &[InputInfo],
        options: &BatchOptions,
    ) -> Result<StreamBatches<T>> {
        options.check()?;
        if options.last_batch == LastBatch::RollOver {
            return Err(DataError::StreamRollsOver.into());
        }
        let source = &self.source;
        // Everything but values can be settled on data without rows.
        let empty = Chunk::<T>::new(&source.layout).into_dataset(&source.layout)?;
        let positions = resolve(&empty, inputs, options.labels)?;
        let bound = bind(&empty, inputs, options.labels)?;
        let columns = bound.into_iter().zip(&positions).map(|(bound, position)| match bound {
            // That values are all 1 is found out batch by batch.
            Bound::Csr(_) | Bound::Unit(_) => {
                Binding::Column(position.unwrap_or_default(), Shape::default())
            }
            Bound::Dense(dense) => Binding::Column(position.unwrap_or_default(), dense.shape),
            Bound::Ids(_, shape) => Binding::Column(position.unwrap_or_default(), shape),
            Bound::Ignored(shape, element) => Binding::Ignored(shape, element),
        });
        let labels = inputs.iter().zip(&positions).filter_map(|(declared, position)| {
            let column = position.filter(|_| declared.role == InputRole::Label)?;
            Some(LabelCheck { column, declared: declared.name, kind: declared.label })
        });
        Ok(StreamBatches {
            source: Arc::clone(source),
            options: *options,
            columns: columns.collect(),
            checks: labels.collect(),
            position: Position::default(),
            pools: None,
            is_fresh: false,
            rows: Vec::new(),
            ids: Vec::new(),
            n_padding: 0,
            next: 0,
            n_batches: None,
        })
    }
}

/// The batches of a [`StreamedDataset`]; see [`Batches`]. Threads read ahead while batches are
/// used; they end when this is dropped.
pub struct StreamBatches<T: Float> {
    source: Arc<Source<T>>,
    options: BatchOptions,
    columns: Vec<Binding>,
    checks: Vec<LabelCheck>,
    /// The next batch.
    position: Position,
    pools: Option<Pools<T>>,
    /// Whether no batch has been taken since `seek`.
    is_fresh: bool,
    /// The columns of the pool.
    rows: Vec<ColumnValues<T>>,
    /// The number in the data of each sample of the pool.
    ids: Vec<u64>,
    n_padding: usize,
    /// The next sample of the pool.
    next: usize,
    n_batches: Option<u64>,
}

/// The position of a declaration's array, and the shape of a row.
#[derive(Clone, Copy)]
enum Binding {
    Column(usize, Shape),
    Ignored(Shape, ElementType),
}

/// A batch of a [`StreamedDataset`].
pub struct StreamBatch<'b, T: Float> {
    columns: &'b [Binding],
    rows: &'b [ColumnValues<T>],
    ids: &'b [u64],
    first: usize,
    len: usize,
    n_padding: usize,
}

impl<T: Float> fmt::Debug for StreamBatches<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StreamBatches")
            .field("position", &self.position)
            .field("n_batches", &self.n_batches)
            .finish_non_exhaustive()
    }
}

impl<T: Float> fmt::Debug for StreamBatch<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StreamBatch")
            .field("first", &self.first)
            .field("len", &self.len)
            .finish_non_exhaustive()
    }
}

impl<T: Float> StreamBatches<T> {
    /// Up to `count` batches of the pool as one.
    #[inline]
    fn take(&mut self, count: usize) -> Result<Option<StreamBatch<'_, T>>> {
        self.is_fresh = false;
        if self.next == self.ids.len() && !self.next_pool()? {
            return Ok(None);
        }
        let (first, batch_size) = (self.next, self.options.batch_size);
        let len = batch_size.saturating_mul(count).min(self.ids.len() - first);
        self.next += len;
        self.position.batch += len.div_ceil(batch_size) as u64;
        let n_padding = if self.next == self.ids.len() { self.n_padding } else { 0 };
        let StreamBatches { columns, rows, ids, .. } = self;
        Ok(Some(StreamBatch { columns, rows, ids, first, len, n_padding }))
    }

    fn go_to(&mut self, position: Position) -> Result<()> {
        if self.is_fresh && self.pools.is_some() && position == self.position {
            return Ok(());
        }
        let n_batches = Batches::n_batches(self);
        if let Some(n_batches) = n_batches.filter(|&n_batches| position.batch > n_batches) {
            let Position { epoch, batch } = position;
            return Err(DataError::BatchOutOfRange { epoch, batch, n_batches }.into());
        }
        // The threads of the old epoch end first, so that there is one buffer.
        self.pools = None;
        (self.rows, self.ids, self.next) = (Vec::new(), Vec::new(), 0);
        self.position = position;
        self.is_fresh = true;
        self.start()
    }

    fn start(&mut self) -> Result<()> {
        let (source, position) = (&self.source, self.position);
        self.pools = Some(Pools::start(source, self.options, position, self.checks.clone())?);
        Ok(())
    }

    /// Takes the next pool; false at the end of the epoch.
    #[cold]
    fn next_pool(&mut self) -> Result<bool> {
        let batches = self;
        in_library!(<T> StreamBatches::<T>::take_pool => (
            batches: &mut StreamBatches<T>,
        ) -> Result<bool>)
    }

    fn take_pool(&mut self) -> Result<bool> {
        let Some(pools) = &mut self.pools else { return Ok(false) };
        // The memory of the old pool is free before there is another.
        (self.rows, self.ids) = (Vec::new(), Vec::new());
        self.next = 0;
        match pools.next() {
            Ok(Event::Samples(rows)) => {
                self.n_padding = rows.n_padding;
                self.ids = rows.ids;
                self.rows = rows.chunk.into_values()?;
                Ok(true)
            }
            Ok(Event::End { n_batches }) => {
                self.pools = None;
                self.n_batches = Some(n_batches);
                let Position { epoch, batch } = self.position;
                if batch > n_batches {
                    return Err(DataError::BatchOutOfRange { epoch, batch, n_batches }.into());
                }
                Ok(false)
            }
            Err(error) => {
                self.pools = None;
                Err(error.into())
            }
        }
    }
}

impl<T: Float> Batches<T> for StreamBatches<T> {
    type Batch<'b>
        = StreamBatch<'b, T>
    where
        Self: 'b;

    /// Reading starts here. In the middle of an epoch earlier text must be parsed, unless an
    /// earlier epoch has counted the samples of the blocks.
    fn seek(&mut self, position: Position) -> Result<()> {
        let batches = self;
        in_library!(<T> StreamBatches::<T>::go_to => (
            batches: &mut StreamBatches<T>,
            position: Position,
        ) -> Result<()>)
    }

    #[inline]
    fn next_batch(&mut self) -> Result<Option<StreamBatch<'_, T>>> {
        self.take(1)
    }

    fn next_rows(&mut self, at_most: usize) -> Result<Option<StreamBatch<'_, T>>> {
        self.take(if self.options.batch_size == 1 { at_most.max(1) } else { 1 })
    }

    fn batch_size(&self) -> Option<usize> {
        Some(self.options.batch_size)
    }

    fn position(&self) -> Position {
        self.position
    }

    /// Known once an epoch has been read, or if the number of samples is known.
    fn n_batches(&self) -> Option<u64> {
        let batch_size = self.options.batch_size as u64;
        let of_rows = |n_rows: u64| match self.options.last_batch {
            LastBatch::Discard => n_rows / batch_size,
            _ => n_rows.div_ceil(batch_size),
        };
        self.n_batches.or_else(|| self.source.known().n_rows.map(of_rows))
    }

    fn bytes_read(&self) -> Option<BytesRead> {
        let bytes = Arc::clone(&self.source.bytes);
        Some(BytesRead { bytes, total: self.source.total_bytes() })
    }
}

#[cold]
fn wrong_position(index: usize, asked: &'static str) -> DataError {
    DataError::WrongPosition { index, asked }
}

impl<'b, T: Float> BatchSource<'b, T> for StreamBatch<'b, T> {
    #[inline(always)]
    fn n_rows(&self) -> usize {
        self.len
    }

    #[inline]
    fn csr(&self, index: usize) -> nnz_step::Result<CsrView<'b, T>> {
        match self.columns.get(index) {
            Some(Binding::Column(column, _)) => match &self.rows[*column] {
                ColumnValues::Csr(csr) => {
                    let rows = csr.view().rows(self.first..self.first + self.len)?;
                    let ahead = self.first + AHEAD;
                    Ok(if self.len == 1 && ahead < csr.n_rows() {
                        rows.with_upcoming((csr.indptr()[ahead], csr.indptr()[ahead + 1]))
                    } else {
                        rows
                    })
                }
                _ => Err(wrong_position(index, "csr array").into()),
            },
            Some(Binding::Ignored(..)) => Ok(CsrView::default()),
            None => Err(wrong_position(index, "csr array").into()),
        }
    }

    #[inline]
    fn dense(&self, index: usize) -> nnz_step::Result<DenseView<'b, T>> {
        match self.columns.get(index) {
            Some(Binding::Column(column, shape)) => match &self.rows[*column] {
                ColumnValues::Dense(dense) => {
                    let size = shape.row_size();
                    let range = self.first * size..(self.first + self.len) * size;
                    // As many values as the shape says: the column has `row_size` of it a row,
                    // which `bind` checked.
                    Ok(DenseView::table(shape.with_n_rows(self.len), &dense.values()[range]))
                }
                _ => Err(wrong_position(index, "dense array of numbers").into()),
            },
            Some(Binding::Ignored(shape, _)) => Ok(DenseView::new(*shape, &[])?),
            None => Err(wrong_position(index, "dense array of numbers").into()),
        }
    }

    #[inline]
    fn ids(&self, index: usize) -> nnz_step::Result<IdsView<'b>> {
        match self.columns.get(index) {
            Some(Binding::Column(column, shape)) => match &self.rows[*column] {
                ColumnValues::Ids(ids) => {
                    let size = shape.row_size();
                    let range = self.first * size..(self.first + self.len) * size;
                    let shape = shape.with_n_rows(self.len);
                    Ok(with_ids!(IdsView, ids.view(), |ids| DenseView::table(
                        shape,
                        &ids.values()[range]
                    )
                    .into()))
                }
                _ => Err(wrong_position(index, "array of ids").into()),
            },
            Some(Binding::Ignored(shape, element)) => Ok(IdsView::none(*shape, *element)?),
            None => Err(wrong_position(index, "array of ids").into()),
        }
    }
}

impl<'b, T: Float> Batch<'b, T> for StreamBatch<'b, T> {
    fn n_padding(&self) -> usize {
        self.n_padding
    }

    /// In shuffled order known from the second epoch on, when the samples of earlier blocks have
    /// been counted.
    fn row_id(&self, row: usize) -> Option<u64> {
        let id = self.ids[self.first..self.first + self.len].get(row)?;
        Some(*id).filter(|&id| id != UNKNOWN)
    }
}

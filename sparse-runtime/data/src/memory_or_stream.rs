//! Data in memory or a stream, chosen at run time.

use super::stream::{StreamBatch, StreamBatches, StreamedDataset};
use super::{
    Batch, BatchOptions, Batches, BytesRead, Classes, DataSource, Dataset, DatasetBatch,
    DatasetBatches, LabelStatistics, Position,
};
use crate::error::Result;
use nnz_arrays::formats::{CsrView, DenseView, IdsView};
use nnz_step::model::{BatchSource, InputInfo};
use sparse_core::element::{Float, Unit};

/// Data in memory or a stream, as one type, so that code that trains on either is compiled once. A
/// batch costs one branch more for each of its arrays.
///
/// ```
/// use nnz::data::{AnyDataset, DataSource};
/// use nnz::data::synthetic::click_log;
///
/// let data = AnyDataset::from(click_log(100, 1 << 10, 5, 1)?);
/// assert_eq!((data.n_rows(), data.n_features()), (Some(100), 1 << 10));
/// # Ok::<(), nnz::Error>(())
/// ```
#[derive(Debug)]
pub enum AnyDataset<T: Float = f32> {
    /// Lies in memory.
    Memory(Dataset<T>),
    /// Is read anew in every epoch.
    Stream(StreamedDataset<T>),
}

/// The batches of an [`AnyDataset`]; see [`Batches`].
#[derive(Debug)]
pub enum AnyBatches<'s, T: Float> {
    /// Of data in memory.
    Memory(DatasetBatches<'s, T>),
    /// Of a stream.
    Stream(StreamBatches<T>),
}

/// A batch of an [`AnyDataset`].
#[derive(Debug)]
pub enum AnyBatch<'b, T: Float> {
    /// Of data in memory.
    Memory(DatasetBatch<'b, T>),
    /// Of a stream.
    Stream(StreamBatch<'b, T>),
}

/// Whatever it is.
macro_rules! either {
    ($Enum:ident, $either:expr, |$inner:ident| $body:expr) => {
        match $either {
            $Enum::Memory($inner) => $body,
            $Enum::Stream($inner) => $body,
        }
    };
}

impl<T: Float> AnyDataset<T> {
    /// The number of features, like [`Dataset::n_features`].
    pub fn n_features(&self) -> usize {
        either!(AnyDataset, self, |data| data.n_features())
    }

    /// Statistics of the labels, like [`Dataset::label_statistics`]; those of a stream are known
    /// once all of it has been read.
    pub fn label_statistics(&self) -> Option<Vec<LabelStatistics>> {
        match self {
            AnyDataset::Memory(data) => Some(data.label_statistics()),
            AnyDataset::Stream(data) => data.label_statistics(),
        }
    }

    /// The classes that the ids of the label stand for, if it has some.
    pub fn classes(&self) -> Option<&Classes> {
        either!(AnyDataset, self, |data| data.classes())
    }
}

impl<T: Float> From<Dataset<T>> for AnyDataset<T> {
    fn from(data: Dataset<T>) -> Self {
        AnyDataset::Memory(data)
    }
}

impl<T: Float> From<StreamedDataset<T>> for AnyDataset<T> {
    fn from(data: StreamedDataset<T>) -> Self {
        AnyDataset::Stream(data)
    }
}

// The error for a type that is not data names the type of most data.
#[diagnostic::do_not_recommend]
impl<T: Float> DataSource<T> for AnyDataset<T> {
    type Batches<'s> = AnyBatches<'s, T>;

    fn n_rows(&self) -> Option<usize> {
        either!(AnyDataset, self, |data| DataSource::n_rows(data))
    }

    fn fingerprint(&self) -> Result<Option<u64>> {
        either!(AnyDataset, self, |data| data.fingerprint())
    }

    fn shuffle_buffer(&self) -> Option<usize> {
        either!(AnyDataset, self, |data| data.shuffle_buffer())
    }

    fn batches<'s>(
        &'s self,
        inputs: &[InputInfo],
        options: &BatchOptions,
    ) -> Result<AnyBatches<'s, T>> {
        Ok(match self {
            AnyDataset::Memory(data) => AnyBatches::Memory(data.batches(inputs, options)?),
            AnyDataset::Stream(data) => AnyBatches::Stream(data.batches(inputs, options)?),
        })
    }
}

impl<T: Float> Batches<T> for AnyBatches<'_, T> {
    type Batch<'b>
        = AnyBatch<'b, T>
    where
        Self: 'b;

    fn start_epoch(&mut self, epoch: u64) -> Result<()> {
        either!(AnyBatches, self, |batches| batches.start_epoch(epoch))
    }

    fn seek(&mut self, position: Position) -> Result<()> {
        either!(AnyBatches, self, |batches| batches.seek(position))
    }

    #[inline]
    fn next_batch(&mut self) -> Result<Option<AnyBatch<'_, T>>> {
        Ok(match self {
            AnyBatches::Memory(batches) => batches.next_batch()?.map(AnyBatch::Memory),
            AnyBatches::Stream(batches) => batches.next_batch()?.map(AnyBatch::Stream),
        })
    }

    #[inline]
    fn next_rows(&mut self, at_most: usize) -> Result<Option<AnyBatch<'_, T>>> {
        Ok(match self {
            AnyBatches::Memory(batches) => batches.next_rows(at_most)?.map(AnyBatch::Memory),
            AnyBatches::Stream(batches) => batches.next_rows(at_most)?.map(AnyBatch::Stream),
        })
    }

    fn batch_size(&self) -> Option<usize> {
        either!(AnyBatches, self, |batches| batches.batch_size())
    }

    fn position(&self) -> Position {
        either!(AnyBatches, self, |batches| batches.position())
    }

    fn n_batches(&self) -> Option<u64> {
        either!(AnyBatches, self, |batches| Batches::n_batches(batches))
    }

    fn bytes_read(&self) -> Option<BytesRead> {
        either!(AnyBatches, self, |batches| batches.bytes_read())
    }
}

impl<'b, T: Float> BatchSource<'b, T> for AnyBatch<'b, T> {
    #[inline]
    fn n_rows(&self) -> usize {
        either!(AnyBatch, self, |batch| batch.n_rows())
    }

    #[inline]
    fn csr(&self, index: usize) -> nnz_step::Result<CsrView<'b, T>> {
        either!(AnyBatch, self, |batch| batch.csr(index))
    }

    #[inline]
    fn unit(&self, index: usize) -> nnz_step::Result<CsrView<'b, Unit>> {
        either!(AnyBatch, self, |batch| batch.unit(index))
    }

    #[inline]
    fn dense(&self, index: usize) -> nnz_step::Result<DenseView<'b, T>> {
        either!(AnyBatch, self, |batch| batch.dense(index))
    }

    #[inline]
    fn ids(&self, index: usize) -> nnz_step::Result<IdsView<'b>> {
        either!(AnyBatch, self, |batch| batch.ids(index))
    }
}

impl<'b, T: Float> Batch<'b, T> for AnyBatch<'b, T> {
    fn n_padding(&self) -> usize {
        either!(AnyBatch, self, |batch| batch.n_padding())
    }

    fn row_id(&self, row: usize) -> Option<u64> {
        either!(AnyBatch, self, |batch| batch.row_id(row))
    }

    fn append_row_ids(&self, ids: &mut Vec<usize>) {
        either!(AnyBatch, self, |batch| batch.append_row_ids(ids));
    }
}

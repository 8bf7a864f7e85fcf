//! The interface between data and a training loop, for data in memory and streams.
//!
//! A loop calls a [`DataSource`] once for its [`Batches`], with the model's declarations; all names
//! and types are resolved and checked there. Then it walks through epochs. A batch borrows from the
//! batches until the next one is read, so that a reader can reuse its buffers:
//!
//! ```
//! use nnz::data::{BatchOptions, Batches, DataSource};
//! use nnz::model::{BatchSource, Model};
//!
//! /// The mean loss over the data.
//! fn mean_loss<M, S>(model: &mut M, data: &S) -> nnz::Result<f64>
//! where
//!     M: Model,
//!     S: DataSource<M::Element>,
//! {
//!     let mut batches = data.batches(M::INPUTS, &BatchOptions::default())?;
//!     let (mut sum, mut n_rows) = (0.0, 0);
//!     batches.start_epoch(0)?;
//!     while let Some(batch) = batches.next_batch()? {
//!         sum += model.loss(&model.bind(&batch)?)? * batch.n_rows() as f64;
//!         n_rows += batch.n_rows();
//!     }
//!     Ok(sum / n_rows as f64)
//! }
//! ```

use super::DataError;
use crate::error::Result;
use nnz_step::model::{BatchSource, InputInfo};
use serde::{Deserialize, Serialize};
use sparse_core::element::Float;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Data that a model can be trained on.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not data for a model of `{T}`",
    note = "a `Dataset` of the same element type is: read one, `libsvm::read(path, \
            IndexBase::Zero)?`, or make one, `Dataset::new(features, labels)?`; one of another \
            element type becomes one by `data.cast::<{T}>()?`"
)]
pub trait DataSource<T: Float> {
    /// Whether its batches follow each other in time, so that a model carries its states from batch
    /// to batch: [`InSequence`](super::InSequence).
    const IN_SEQUENCE: bool = false;

    /// The batches of this source.
    type Batches<'s>: Batches<T>
    where
        Self: 's;

    /// The number of samples, if it is known without reading all of them.
    fn n_rows(&self) -> Option<usize>;

    /// A fingerprint of the data. Other data of the same size has another one, except for chance
    /// and for differences outside of the hashed pieces. A
    /// resumed (`nnz::training::Trainer::resume`) run refuses data with another one. `None`,
    /// the default, is not compared.
    ///
    /// It costs little at any size of the data, and depends on contents alone: not on paths,
    /// threads, buffers, or earlier reads. A [`Dataset`](super::Dataset) hashes names, shapes and
    /// pieces of its arrays, all of those of up to 65,536 elements. A [stream](super::stream)
    /// hashes its columns, and of each file the length and 64 KiB in 16 places.
    ///
    /// ```
    /// use nnz::data::{DataSource, Dataset};
    /// use nnz::formats::Csr;
    ///
    /// let data = |label| Dataset::new(Csr::<f32>::zeros(2, 5), vec![0.0, label]);
    /// assert_eq!(data(1.0)?.fingerprint()?, data(1.0)?.fingerprint()?);
    /// assert_ne!(data(1.0)?.fingerprint()?, data(2.0)?.fingerprint()?);
    /// # Ok::<(), nnz::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// Errors of reading the data, such as [`ReadError::Io`](super::ReadError::Io) for a missing
    /// file.
    fn fingerprint(&self) -> Result<Option<u64>> {
        Ok(None)
    }

    /// The bytes of the buffer on which the order of a shuffled epoch depends, besides the seed: a
    /// resumed (`nnz::training::Trainer::resume`) run refuses another one. `None`, the
    /// default, where any two samples of the data may be neighbours. A [stream](super::stream) has
    /// [one](super::stream::Stream::buffer).
    fn shuffle_buffer(&self) -> Option<usize> {
        None
    }

    /// Finds the arrays for a model's declarations: by name if the data has a column of that name,
    /// otherwise by role and order among the columns that no declaration names. Each is checked
    /// against its declaration. Reads every label once.
    ///
    /// # Errors
    ///
    /// A [`DataError`](super::DataError) if a declaration has no data, if storage type, element
    /// type, rank or a constant extent differ, if a label does not suit its loss, or if the batch
    /// size is 0.
    fn batches<'s>(
        &'s self,
        inputs: &[InputInfo],
        options: &BatchOptions,
    ) -> Result<Self::Batches<'s>>;
}

/// The batches of a source, epoch after epoch. The options alone determine an epoch and a batch in
/// it, whatever was read before: training can resume anywhere.
#[diagnostic::on_unimplemented(
    message = "`{Self}` does not give batches for a model of `{T}`",
    note = "`DataSource::batches` of a data set of the same element type does"
)]
pub trait Batches<T: Float> {
    /// One batch, valid until the next one.
    type Batch<'b>: Batch<'b, T>
    where
        Self: 'b;

    /// Goes to the first batch of an epoch; the order of its samples is a function of the seed and
    /// this number.
    fn start_epoch(&mut self, epoch: u64) -> Result<()> {
        self.seek(Position { epoch, batch: 0 })
    }

    /// Goes to a batch of an epoch.
    ///
    /// # Errors
    ///
    /// [`DataError::BatchOutOfRange`](super::DataError::BatchOutOfRange).
    fn seek(&mut self, position: Position) -> Result<()>;

    /// The next batch of the epoch, or `None` at its end.
    fn next_batch(&mut self) -> Result<Option<Self::Batch<'_>>>;

    /// For batches of one sample: up to `at_most` of them, at least 1, as one batch, for
    /// [`Model::train_rows`](nnz_step::model::Model::train_rows). Sources that cannot join several
    /// give one.
    ///
    /// # Errors
    ///
    /// As [`next_batch`](Self::next_batch).
    #[inline]
    fn next_rows(&mut self, at_most: usize) -> Result<Option<Self::Batch<'_>>> {
        let _ = at_most;
        self.next_batch()
    }

    /// The number of samples of a batch, as in [`BatchOptions::batch_size`], if it is known.
    fn batch_size(&self) -> Option<usize> {
        None
    }

    /// The position of the next batch, for checkpoints.
    fn position(&self) -> Position;

    /// The number of batches in this epoch, if it is known.
    fn n_batches(&self) -> Option<u64>;

    /// The bytes of the epoch's files read so far, for streams.
    fn bytes_read(&self) -> Option<BytesRead> {
        None
    }
}

/// The bytes of an epoch's files read so far. Reading is ahead of batches by the content of the
/// buffer.
#[derive(Clone, Debug)]
pub struct BytesRead {
    pub(super) bytes: Arc<AtomicU64>,
    pub(super) total: u64,
}

impl BytesRead {
    /// The bytes read so far.
    pub fn bytes(&self) -> u64 {
        self.bytes.load(Ordering::Relaxed)
    }

    /// The bytes of all files.
    pub fn total(&self) -> u64 {
        self.total
    }
}

/// A batch of a source.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a batch for a model of `{T}`",
    note = "batches come from a data set of the same element type: `batches.next_batch()?`"
)]
pub trait Batch<'b, T: Float>: BatchSource<'b, T> {
    /// The number of samples at the end that repeat earlier ones of the epoch ([`LastBatch::Pad`]).
    /// Do not count them in a sum over the data.
    fn n_padding(&self) -> usize;

    /// The number in the data of sample `row` of the batch: for methods that keep state for every
    /// sample, and to restore the order of predictions. `None` beyond the batch.
    fn row_id(&self, row: usize) -> Option<u64>;

    /// Appends [`row_id`](Self::row_id) of each sample of the batch, `usize::MAX` for `None`.
    fn append_row_ids(&self, ids: &mut Vec<usize>) {
        let id = |row| self.row_id(row).and_then(|id| usize::try_from(id).ok());
        ids.extend((0..self.n_rows()).map(|row| id(row).unwrap_or(usize::MAX)));
    }
}

/// A position between two batches.
#[derive(
    Clone,
    Copy,
    Debug,
    Default,
    PartialEq,
    Eq,
    PartialOrd,
    Ord,
    serde::Serialize,
    serde::Deserialize,
)]
pub struct Position {
    /// The epoch, from zero.
    pub epoch: u64,
    /// The batch in the epoch, from zero.
    pub batch: u64,
}

/// The options for cutting data into batches.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct BatchOptions {
    /// The number of samples of a batch, at least 1.
    pub batch_size: usize,
    /// The order of the samples.
    pub order: Order,
    /// The handling of the last samples, which do not fill a batch.
    pub last_batch: LastBatch,
    /// Whether the model's labels are needed.
    pub labels: Labels,
}

/// One sample at a time, in the order of the data, with labels.
impl Default for BatchOptions {
    fn default() -> Self {
        BatchOptions {
            batch_size: 1,
            order: Order::Sequential,
            last_batch: LastBatch::Short,
            labels: Labels::Required,
        }
    }
}

impl BatchOptions {
    /// The most samples of a padded batch: each of them is listed, in the data or not.
    const MAX_PADDED: usize = 1 << 24;

    /// Refuses sizes of batches that no source can give.
    pub(super) fn check(&self) -> Result<(), DataError> {
        match self.last_batch {
            _ if self.batch_size == 0 => Err(DataError::ZeroBatchSize),
            LastBatch::Pad if self.batch_size > Self::MAX_PADDED => {
                Err(DataError::PaddedBatchSize {
                    batch_size: self.batch_size,
                    limit: Self::MAX_PADDED,
                })
            }
            _ => Ok(()),
        }
    }

    /// Refuses batches of [`LastBatch::RollOver`] that would list the samples of very many epochs.
    pub(super) fn check_roll_over(&self, n_rows: usize) -> Result<(), DataError> {
        let (batch_size, limit) = (self.batch_size, Self::MAX_PADDED.max(n_rows));
        match self.last_batch {
            LastBatch::RollOver if batch_size > limit => {
                Err(DataError::RolledBatchSize { batch_size, limit })
            }
            _ => Ok(()),
        }
    }
}

/// The order of the samples in an epoch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Order {
    /// The order of the data.
    Sequential,
    /// A new random order in every epoch, the same on every machine.
    Shuffled {
        /// The seed; the order is a function of it and the number of the epoch.
        seed: u64,
    },
}

/// The handling of the samples at the end of an epoch that do not fill a batch.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
#[non_exhaustive]
pub enum LastBatch {
    /// They are a shorter batch.
    #[default]
    Short,
    /// They are left out (all of them, if there are fewer than a batch).
    Discard,
    /// The batch is padded with samples from the beginning of this epoch's order, repeatedly if
    /// they are few; [`Batch::n_padding`] is their number. The step of the batch is by the mean
    /// gradient of all its samples, copies included; losses and metrics of the epoch do not count
    /// copies. Batches have at most 2²⁴ samples then ([`DataError::PaddedBatchSize`]).
    Pad,
    /// They come first in the next epoch. Batches have at most 2²⁴ samples then, or as many as the
    /// data ([`DataError::RolledBatchSize`]).
    RollOver,
}

/// Whether labels are needed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Labels {
    /// Every label must exist and be valid.
    #[default]
    Required,
    /// The data may lack labels, and a batch has an array without rows for each: enough to predict.
    Ignored,
}

//! Streams: files of any size, read anew in every epoch, in bounded memory.
//!
//! ```text
//!  feeder ──▶ block ──▶ parser ─┐
//!    │                          ├──▶ pool builder ──▶ pool of rows ──▶ batches
//!    └──────▶ block ──▶ parser ─┘    (in order)        (in the order of the epoch)
//! ```
//!
//! A *block* is the lines that begin in a run of bytes of a file: it is found without reading
//! earlier text. Blocks come in the order of the epoch, which seed and epoch determine. Parsers
//! take them in turn and return them in turn, so their number changes nothing. A *pool* is as many
//! samples as the buffer allows. Its samples are shuffled once more, and laid out in the order in
//! which they are learnt from, so that a batch is a run of them. Samples that do not fill a batch
//! come first in the next pool.
//!
//! A compressed file cannot be read from the middle. It is one unit of the order, and neighbours in
//! it stay near, up to the size of a pool.
//!
//! Every epoch reads the same files: length, modification time and inode of each are compared with
//! those at the opening of the stream, when a file is opened and when an epoch has read all of its
//! text. A difference ends the epoch with [`ReadError::Changed`].
//!
//! A columnar file (feature `parquet`) has a unit for each row group. The feeder decodes batches of
//! it in place of text, and parsers make samples of these.
//!
//! If samples are kept, the feeder passes places of a file in place of text, and parsers read the
//! samples there; the rest is the same.

mod batches;
mod binary_labels;
mod blocks;
#[cfg(feature = "parquet")]
mod columnar;
mod epoch_cache;
mod feed;
mod label_check;
mod labels;
mod mixed_labels;
mod open;
mod parsed;
mod pool;
#[cfg(test)]
mod tests;

pub use batches::{StreamBatch, StreamBatches};
pub use open::{Stream, StreamedDataset};

use super::blocks::io_error;
use super::file_stamp::FileStamp;
use super::fingerprint::Fingerprint;
use super::libsvm::IndexBase;
use super::text::{ColumnKind, ColumnLayout, OnError, ReadOptions, RowFormat, RowParser};
use super::{Classes, ReadError};
#[cfg(feature = "parquet")]
use crate::columnar::BatchParser;
#[cfg(feature = "parquet")]
use arrow_schema::Schema;
use blocks::Unit;
use epoch_cache::EpochCache;
use labels::SeenLabels;
use sparse_core::element::Float;
use std::fs::Metadata;
use std::io;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;

/// State that the threads of a stream share.
pub(super) struct Source<T: Float> {
    pub(super) format: Arc<dyn AnyFormat<T>>,
    pub(super) files: Vec<SourceFile>,
    /// The units that can be read independently, in the order of the files.
    pub(super) units: Vec<Unit>,
    pub(super) sizes: Sizes,
    pub(super) options: ReadOptions,
    pub(super) classes: Option<Classes>,
    /// The columns of the format, and those that the model sees.
    pub(super) parsed_layout: Vec<ColumnLayout>,
    pub(super) layout: Vec<ColumnLayout>,
    pub(super) known: Mutex<Known>,
    /// The bytes of the files read in the current epoch.
    pub(super) bytes: Arc<AtomicU64>,
    /// The kept samples, if they are kept.
    epoch_cache: Option<EpochCache>,
}

/// A file of a stream.
#[derive(Clone)]
pub(super) struct SourceFile {
    pub(super) path: PathBuf,
    pub(super) name: String,
    pub(super) len: u64,
    /// Its beginning, from which a parser recognises the kind of file.
    pub(super) head: Vec<u8>,
    /// The file at the opening of the stream: every epoch reads that one.
    stamp: FileStamp,
    /// The row groups, of a columnar file.
    #[cfg(feature = "parquet")]
    pub(super) columns: Option<columnar::SourceColumns>,
}

impl SourceFile {
    /// Refuses a file that differs from that at the opening.
    pub(super) fn check(&self, metadata: io::Result<Metadata>) -> Result<(), ReadError> {
        let metadata = metadata.map_err(|source| io_error(&self.name, source))?;
        match self.stamp.change(&FileStamp::of(&metadata)) {
            None => Ok(()),
            Some(change) => Err(ReadError::Changed { file: self.name.clone(), change }),
        }
    }
}

/// The division of the buffer. A quarter each for blocks that are read and parsed, for parsed
/// samples of the next pool, for the pool that is laid out, and for the pool that is learnt from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Sizes {
    /// The bytes of the whole buffer.
    pub(super) buffer: usize,
    /// The bytes of text of a block.
    pub(super) block: usize,
    /// The bytes of the samples of a pool; the block that reaches it is the last of the pool.
    pub(super) pool: usize,
    /// The longest line.
    pub(super) line: usize,
    /// The number of parsers at work at once.
    pub(super) max_parsers: usize,
}

/// The smallest buffer of a stream.
const MIN_BUFFER: usize = 1 << 20;

impl Sizes {
    /// A function of the size of the buffer alone: the order of an epoch depends on it.
    fn of_buffer(bytes: usize) -> Self {
        let block = (bytes / 256).clamp(4 << 10, 1 << 20);
        // Of each parser there may be two blocks of text and two of rows, which may take three
        // times the bytes.
        let max_parsers = (bytes / 4 / (8 * block)).max(1);
        Sizes { buffer: bytes, block, pool: bytes / 4, line: bytes / 8, max_parsers }
    }
}

/// The findings so far.
#[derive(Clone, Debug, Default)]
pub(super) struct Known {
    /// The samples of each unit and their bytes, for units that were read.
    pub(super) units: Vec<Option<UnitSize>>,
    /// The samples of each unit, for units that were counted.
    pub(super) rows: Vec<Option<u64>>,
    /// The number of samples, once all were read.
    pub(super) n_rows: Option<u64>,
    /// The samples skipped in the current or last epoch.
    pub(super) skipped: super::text::Skips,
    /// Whether labels of a binary loss occurred in each [way](binary_labels::Way), by column.
    written: Vec<[bool; 2]>,
    /// Statistics of labels.
    labels: SeenLabels,
}

/// The size of a unit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct UnitSize {
    pub(super) rows: u64,
    pub(super) bytes: usize,
}

impl<T: Float> Source<T> {
    /// A thread that panicked leaves nothing half done: each change is one assignment.
    pub(super) fn known(&self) -> MutexGuard<'_, Known> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn on_error(&self) -> OnError {
        self.options.on_error
    }

    /// The bytes of all files on disk.
    pub(super) fn total_bytes(&self) -> u64 {
        self.files.iter().map(|file| file.len).sum()
    }

    /// Refuses files that differ from those at the opening.
    fn check_files(&self) -> Result<(), ReadError> {
        self.files.iter().try_for_each(|file| file.check(std::fs::metadata(&file.path)))
    }

    /// The error of an epoch: that a file has changed, in place of errors that follow from it.
    /// Parsed samples are not kept then.
    #[cold]
    pub(super) fn cause_of(&self, error: ReadError) -> ReadError {
        let error = match self.check_files() {
            Err(changed @ ReadError::Changed { .. }) => changed,
            _ => error,
        };
        if let (ReadError::Changed { .. }, Some(kept)) = (&error, &self.epoch_cache) {
            kept.forget();
        }
        error
    }

    /// Reports that this number of bytes was read, some of them of a file.
    pub(super) fn tell(&self, file: &SourceFile, bytes: u64) {
        self.bytes.store(bytes, Ordering::Relaxed);
        self.options.tell(&file.name, bytes, Some(self.total_bytes()));
    }

    /// The fingerprint of the present files, and of the columns. How a format makes columns of text
    /// is not in it.
    fn fingerprint(&self) -> Result<u64, ReadError> {
        let mut made = Fingerprint::new("stream");
        made.number(self.layout.len() as u64);
        for column in &self.layout {
            let kind = match column.kind {
                ColumnKind::Csr(width) => [0, width.map_or(u64::MAX, |width| width as u64)],
                ColumnKind::Dense(width) => [1, width as u64],
                ColumnKind::Ids(width) => [2, width as u64],
            };
            made.column(column.name.as_deref(), column.role, &kind);
        }
        made.number(match self.format.known_base() {
            None | Some(IndexBase::Detect) => 0,
            Some(IndexBase::Zero) => 1,
            Some(IndexBase::One) => 2,
        });
        for label in self.classes.iter().flat_map(Classes::labels) {
            made.bytes(&label.to_le_bytes());
        }
        self.files.iter().try_for_each(|file| made.file(&file.path))?;
        Ok(made.finish())
    }
}

/// A format without its type.
pub(super) trait AnyFormat<T: Float>: Send + Sync {
    fn parser(&self, head: &[u8]) -> Box<dyn RowParser<T>>;
    fn known_base(&self) -> Option<IndexBase>;
    /// Whether fields may be quoted.
    fn has_quotes(&self) -> bool;
    /// As [`RowFormat::columnar`].
    #[cfg(feature = "parquet")]
    fn columnar(&self, schema: &Schema) -> Option<Result<Box<dyn BatchParser<T>>, String>>;
}

impl<T: Float, F: RowFormat<T>> AnyFormat<T> for F {
    fn parser(&self, head: &[u8]) -> Box<dyn RowParser<T>> {
        Box::new(RowFormat::parser(self, head))
    }

    fn known_base(&self) -> Option<IndexBase> {
        RowFormat::known_base(self)
    }

    fn has_quotes(&self) -> bool {
        RowFormat::quoted_separator(self).is_some()
    }

    #[cfg(feature = "parquet")]
    fn columnar(&self, schema: &Schema) -> Option<Result<Box<dyn BatchParser<T>>, String>> {
        RowFormat::columnar(self, schema)
    }
}

/// The error for a thread that ended without a message.
/// Starts a thread of a stream.
pub(super) fn spawn(body: impl FnOnce() + Send + 'static) -> Result<JoinHandle<()>, ReadError> {
    let thread = std::thread::Builder::new().name("nnz-stream".to_owned()).spawn(body);
    thread.map_err(|error| {
        let reason = format!("the system starts no thread more ({error}): give it fewer threads");
        ReadError::Stream { reason }
    })
}

pub(super) fn lost_thread() -> ReadError {
    let message = "a thread that reads it ended early".to_owned();
    ReadError::Content { file: "the stream".to_owned(), message }
}

//! A columnar file: its schema, its row groups, and the batches of a row group.

use super::zstd_pages::{self, has_zstd};
use crate::ReadError;
use crate::blocks::{Compression, io_error};
use arrow_array::RecordBatch;
use arrow_ipc::reader::FileReader;
use arrow_schema::SchemaRef;
use parquet::arrow::ProjectionMask;
use parquet::arrow::arrow_reader::{
    ArrowReaderMetadata, ArrowReaderOptions, ParquetRecordBatchReader,
    ParquetRecordBatchReaderBuilder,
};
use parquet::basic;
use std::fs::File;
use std::io::{BufReader, Read};
use std::path::{Path, PathBuf};

/// An open file. What is read of it depends on no other file handle.
#[derive(Clone)]
pub(crate) struct ColumnarFile {
    name: String,
    path: PathBuf,
    schema: SchemaRef,
    groups: Vec<RowGroup>,
    /// The footer of a Parquet file; an Arrow file has its own beside each batch.
    parquet: Option<ArrowReaderMetadata>,
}

/// A row group of a Parquet file, or a record batch of an Arrow file.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RowGroup {
    /// The rows, if the footer says so.
    n_rows: Option<usize>,
    /// The bytes of all columns, decompressed.
    bytes: u64,
}

impl RowGroup {
    /// The bytes of all columns, for progress.
    pub(crate) fn bytes(self) -> u64 {
        self.bytes
    }

    /// The rows of batches of about this number of bytes.
    pub(crate) fn rows_of(self, bytes: usize) -> usize {
        let Some(n_rows) = self.n_rows else { return 1 << 13 };
        let of_row = (self.bytes / n_rows.max(1) as u64).max(1);
        usize::try_from(bytes as u64 / of_row).unwrap_or(1).clamp(1, 1 << 16)
    }
}

impl ColumnarFile {
    /// Opens a file whose first bytes say that it is columnar; none of a pipe, a compressed file or
    /// text.
    pub(crate) fn open(path: &Path) -> Result<Option<Self>, ReadError> {
        let name = path.display().to_string();
        let io = |source| io_error(&name, source);
        if Compression::of(&name).is_some() || !path.is_file() {
            return Ok(None);
        }
        let file = File::open(path).map_err(io)?;
        let mut head = Vec::new();
        (&file).take(8).read_to_end(&mut head).map_err(io)?;
        if head.starts_with(b"PAR1") {
            Self::parquet(name, path.to_owned(), &file).map(Some)
        } else if head.starts_with(b"ARROW1") {
            Self::arrow(name, path.to_owned(), file).map(Some)
        } else {
            Ok(None)
        }
    }

    fn parquet(name: String, path: PathBuf, file: &File) -> Result<Self, ReadError> {
        let footer = ArrowReaderMetadata::load(file, ArrowReaderOptions::new());
        let footer = footer.map_err(|error| content(&name, &error))?;
        let group = |group: &parquet::file::metadata::RowGroupMetaData| RowGroup {
            n_rows: usize::try_from(group.num_rows()).ok(),
            bytes: u64::try_from(group.total_byte_size()).unwrap_or_default(),
        };
        let groups = footer.metadata().row_groups().iter().map(group).collect();
        let schema = footer.schema().clone();
        Ok(ColumnarFile { name, path, schema, groups, parquet: Some(footer) })
    }

    fn arrow(name: String, path: PathBuf, file: File) -> Result<Self, ReadError> {
        let len = file.metadata().map_or(0, |metadata| metadata.len());
        let reader = FileReader::try_new(BufReader::new(file), None);
        let reader = reader.map_err(|error| content(&name, &error))?;
        let n_groups = reader.num_batches();
        let group = RowGroup { n_rows: None, bytes: len / n_groups.max(1) as u64 };
        let groups = vec![group; n_groups];
        Ok(ColumnarFile { name, path, schema: reader.schema(), groups, parquet: None })
    }

    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    pub(crate) fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    pub(crate) fn groups(&self) -> &[RowGroup] {
        &self.groups
    }

    /// The rows of the row groups before one: of an Arrow file by reading them, for messages.
    #[cold]
    pub(crate) fn rows_before(&self, group: usize) -> u64 {
        let rows = |(at, group): (usize, &RowGroup)| match group.n_rows {
            Some(n_rows) => n_rows as u64,
            None => {
                let batches = self.batches(at, &[], usize::MAX).into_iter().flatten();
                batches.flatten().map(|batch| batch.num_rows() as u64).sum()
            }
        };
        self.groups[..group].iter().enumerate().map(rows).sum()
    }

    /// The error of a schema that is not read.
    #[cold]
    pub(crate) fn refuse(&self, message: String) -> ReadError {
        ReadError::Content { file: self.name.clone(), message }
    }

    /// The batches of some columns of a row group, each of up to `n_rows` rows.
    pub(crate) fn batches(
        &self,
        group: usize,
        projection: &[usize],
        n_rows: usize,
    ) -> Result<GroupBatches, ReadError> {
        let file = File::open(&self.path).map_err(|source| io_error(&self.name, source))?;
        let failed = |error: &dyn std::error::Error| in_group(&self.name, group, error);
        let source = if let Some(footer) = &self.parquet {
            self.check_codecs(footer, group, projection)?;
            let columns = projection.iter().copied();
            let mask = ProjectionMask::roots(footer.parquet_schema(), columns);
            let reader = if has_zstd(footer.metadata().row_group(group)) {
                zstd_pages::batches(file, footer, group, mask, n_rows)
            } else {
                ParquetRecordBatchReaderBuilder::new_with_metadata(file, footer.clone())
                    .with_row_groups(vec![group])
                    .with_projection(mask)
                    .with_batch_size(n_rows)
                    .build()
            };
            Source::Parquet(Box::new(reader.map_err(|error| failed(&error))?))
        } else {
            let file = BufReader::new(file);
            let reader = FileReader::try_new(file, Some(projection.to_vec()));
            let mut reader = reader.map_err(|error| failed(&error))?;
            reader.set_index(group).map_err(|error| failed(&error))?;
            let batch = reader.next().transpose().map_err(|error| failed(&error))?;
            Source::Arrow { batch, n_rows }
        };
        Ok(GroupBatches { name: self.name.clone(), group, source })
    }

    /// Refuses columns whose codec is not read.
    fn check_codecs(
        &self,
        footer: &ArrowReaderMetadata,
        group: usize,
        projection: &[usize],
    ) -> Result<(), ReadError> {
        let schema = footer.parquet_schema();
        let chunks = footer.metadata().row_group(group).columns().iter().enumerate();
        for (leaf, chunk) in chunks {
            let root = schema.get_column_root_idx(leaf);
            if !projection.contains(&root) {
                continue;
            }
            let codec = match chunk.compression() {
                basic::Compression::BROTLI(_) => "brotli",
                basic::Compression::LZO => "lzo",
                _ => continue,
            };
            let (column, data_type) =
                (self.schema.field(root).name(), self.schema.field(root).data_type());
            let message = format!(
                "the column `{column}` of type {data_type} is compressed by {codec} in row group {group}; snappy, gzip, lz4, zstd and no compression are read: write the file by one of these, in polars by `write_parquet(compression=\"snappy\")`, in pandas and pyarrow by `compression=\"snappy\"`"
            );
            return Err(ReadError::Content { file: self.name.clone(), message });
        }
        Ok(())
    }
}

/// The batches of a row group.
pub(crate) struct GroupBatches {
    name: String,
    group: usize,
    source: Source,
}

enum Source {
    Parquet(Box<ParquetRecordBatchReader>),
    /// What is left of a batch, of which pieces have up to `n_rows` rows.
    Arrow {
        batch: Option<RecordBatch>,
        n_rows: usize,
    },
}

impl Iterator for GroupBatches {
    type Item = Result<RecordBatch, ReadError>;

    fn next(&mut self) -> Option<Self::Item> {
        match &mut self.source {
            Source::Parquet(reader) => {
                let batch = reader.next()?;
                Some(batch.map_err(|error| in_group(&self.name, self.group, &error)))
            }
            Source::Arrow { batch, n_rows } => {
                let all = batch.take().filter(|batch| batch.num_rows() > 0)?;
                let n = all.num_rows().min(*n_rows);
                *batch = Some(all.slice(n, all.num_rows() - n));
                Some(Ok(all.slice(0, n)))
            }
        }
    }
}

impl GroupBatches {
    /// The bytes of a batch that is in memory as a whole, however few rows are asked for.
    pub(crate) fn held_bytes(&self) -> usize {
        match &self.source {
            Source::Arrow { batch: Some(batch), .. } => batch.get_array_memory_size(),
            _ => 0,
        }
    }
}

#[cold]
fn content(name: &str, error: &dyn std::error::Error) -> ReadError {
    let message = format!("it cannot be read as the file that its first bytes announce: {error}");
    ReadError::Content { file: name.to_owned(), message }
}

/// The error of a row group.
#[cold]
fn in_group(name: &str, group: usize, error: &dyn std::error::Error) -> ReadError {
    let text = error.to_string();
    let lead = if text.to_lowercase().contains("zstd") {
        ": it is compressed by zstd, which is not read of Arrow files: write it by lz4, or without compression"
    } else {
        ""
    };
    let message = format!("row group {group}: {text}{lead}");
    ReadError::Content { file: name.to_owned(), message }
}

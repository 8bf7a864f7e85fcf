//! Pages that zstd has compressed, decompressed in Rust: polars writes such unless told otherwise.
//!
//! The crate `parquet` has the C library alone. It therefore reads the pages as if they were not
//! compressed, and they are decompressed on the way to the decoders.

use crate::zstd::Frames;
use parquet::arrow::arrow_reader::{ArrowReaderMetadata, ParquetRecordBatchReader, RowGroups};
use parquet::arrow::{ProjectionMask, parquet_to_arrow_field_levels};
use parquet::basic::Compression;
use parquet::column::page::{Page, PageIterator, PageMetadata, PageReader};
use parquet::errors::{ParquetError, Result};
use parquet::file::metadata::{ParquetMetaData, RowGroupMetaData};
use parquet::file::serialized_reader::SerializedPageReader;
use std::fs::File;
use std::io::Read;
use std::sync::Arc;

/// Whether a column of a row group is compressed by zstd.
pub(super) fn has_zstd(group: &RowGroupMetaData) -> bool {
    group.columns().iter().any(|chunk| matches!(chunk.compression(), Compression::ZSTD(_)))
}

/// Batches of some columns of a row group, of which any may be compressed by zstd.
pub(super) fn batches(
    file: File,
    footer: &ArrowReaderMetadata,
    group: usize,
    columns: ProjectionMask,
    n_rows: usize,
) -> Result<ParquetRecordBatchReader> {
    let fields = footer.schema().fields();
    let levels = parquet_to_arrow_field_levels(footer.parquet_schema(), columns, Some(fields))?;
    let group = Group { file: Arc::new(file), footer: footer.clone(), group };
    ParquetRecordBatchReader::try_new_with_row_groups(&levels, &group, n_rows, None)
}

/// A row group of a file.
struct Group {
    file: Arc<File>,
    footer: ArrowReaderMetadata,
    group: usize,
}

impl Group {
    fn of(&self) -> &RowGroupMetaData {
        self.footer.metadata().row_group(self.group)
    }
}

impl RowGroups for Group {
    fn num_rows(&self) -> usize {
        usize::try_from(self.of().num_rows()).unwrap_or_default()
    }

    fn column_chunks(&self, column: usize) -> Result<Box<dyn PageIterator>> {
        let chunk = self.of().column(column);
        let pages =
            |chunk| SerializedPageReader::new(Arc::clone(&self.file), chunk, self.num_rows(), None);
        let reader: Box<dyn PageReader> = match chunk.compression() {
            Compression::ZSTD(_) => {
                let plain = chunk.clone().into_builder();
                let plain = plain.set_compression(Compression::UNCOMPRESSED).build()?;
                let limit = u64::try_from(chunk.uncompressed_size()).unwrap_or_default();
                Box::new(Decompressed { pages: pages(&plain)?, limit })
            }
            _ => Box::new(pages(chunk)?),
        };
        Ok(Box::new(Once(Some(Ok(reader)))))
    }

    fn row_groups(&self) -> Box<dyn Iterator<Item = &RowGroupMetaData> + '_> {
        Box::new(std::iter::once(self.of()))
    }

    fn metadata(&self) -> &ParquetMetaData {
        self.footer.metadata()
    }
}

/// The pages of one row group.
struct Once(Option<Result<Box<dyn PageReader>>>);

impl Iterator for Once {
    type Item = Result<Box<dyn PageReader>>;

    fn next(&mut self) -> Option<Self::Item> {
        self.0.take()
    }
}

impl PageIterator for Once {}

/// Decompresses pages that were read as they are.
struct Decompressed {
    pages: SerializedPageReader<File>,
    /// The bytes of all pages, as the footer says: no page has more.
    limit: u64,
}

impl Decompressed {
    /// A buffer whose first bytes are not compressed.
    fn decompress(&self, buffer: &[u8], plain: usize) -> Result<Vec<u8>> {
        let damaged = || ParquetError::General("a page of zstd is damaged".to_owned());
        let (head, compressed) = buffer.split_at_checked(plain).ok_or_else(damaged)?;
        let mut bytes = head.to_vec();
        // A page of nulls has nothing more.
        if !compressed.is_empty() {
            let frames = Frames::new(compressed).take(self.limit + 1);
            { frames }
                .read_to_end(&mut bytes)
                .map_err(|error| ParquetError::General(error.to_string()))?;
        }
        if bytes.len() as u64 > self.limit {
            return Err(damaged());
        }
        Ok(bytes)
    }
}

impl PageReader for Decompressed {
    fn get_next_page(&mut self) -> Result<Option<Page>> {
        let Some(mut page) = self.pages.get_next_page()? else { return Ok(None) };
        match &mut page {
            Page::DataPage { buf, .. } | Page::DictionaryPage { buf, .. } => {
                *buf = self.decompress(buf, 0)?.into();
            }
            Page::DataPageV2 {
                buf,
                def_levels_byte_len,
                rep_levels_byte_len,
                is_compressed,
                ..
            } => {
                if *is_compressed {
                    let levels = *def_levels_byte_len as usize + *rep_levels_byte_len as usize;
                    *buf = self.decompress(buf, levels)?.into();
                    *is_compressed = false;
                }
            }
        }
        Ok(Some(page))
    }

    fn peek_next_page(&mut self) -> Result<Option<PageMetadata>> {
        self.pages.peek_next_page()
    }

    fn skip_next_page(&mut self) -> Result<()> {
        self.pages.skip_next_page()
    }

    fn at_record_boundary(&mut self) -> Result<bool> {
        self.pages.at_record_boundary()
    }
}

impl Iterator for Decompressed {
    type Item = Result<Page>;

    fn next(&mut self) -> Option<Self::Item> {
        self.get_next_page().transpose()
    }
}

//! Row groups of columnar files in streams: batches in place of text.

use super::super::text::{Chunk, RowFormat};
use super::super::{Place, ReadError};
use super::blocks::Unit;
use super::feed::{Purpose, with_labels};
use super::label_check::LabelCheck;
use super::parsed::Parsed;
use super::{Sizes, Source, SourceFile};
use crate::columnar::{BatchParser, ColumnarFile, parse_batch, place_of};
use arrow_array::RecordBatch;
use sparse_core::element::Float;
use std::path::Path;

/// The row groups of a file, and the columns that are read.
#[derive(Clone)]
pub(in super::super) struct SourceColumns {
    file: ColumnarFile,
    projection: Vec<usize>,
}

impl SourceColumns {
    /// Of a columnar file, if the format reads such.
    pub(super) fn of<T: Float, F: RowFormat<T>>(
        path: &Path,
        format: &F,
    ) -> Result<Option<Self>, ReadError> {
        let Some(file) = ColumnarFile::open(path)? else { return Ok(None) };
        let Some(parser) = format.columnar(file.schema()) else { return Ok(None) };
        let projection = parser.map_err(|message| file.refuse(message))?.projection().to_vec();
        Ok(Some(SourceColumns { file, projection }))
    }

    /// A unit for each row group, with equal shares of the bytes of the file.
    pub(super) fn units(&self, file: usize, len: u64) -> impl Iterator<Item = Unit> {
        let n_groups = self.file.groups().len();
        let start = move |group: usize| len * group as u64 / n_groups.max(1) as u64;
        (0..n_groups).map(move |group| Unit::Group {
            file,
            group,
            bytes: start(group + 1) - start(group),
        })
    }
}

/// Rows of a row group.
pub(super) struct Batch {
    pub(super) unit: usize,
    group: usize,
    is_last: bool,
    /// The rows of the row group before them.
    before: u64,
    rows: RecordBatch,
}

/// Sends the batches of a row group; false if the receiver is gone.
pub(super) fn read_group(
    sizes: Sizes,
    file: &SourceFile,
    (unit, group): (usize, usize),
    send: &mut dyn FnMut(Batch) -> bool,
) -> Result<bool, ReadError> {
    let Some(SourceColumns { file, projection }) = &file.columns else { return Ok(true) };
    let n_rows = file.groups()[group].rows_of(sizes.block);
    let batches = file.batches(group, projection, n_rows)?;
    let (bytes, limit) = (batches.held_bytes(), sizes.line);
    if bytes > limit {
        return Err(file.refuse(format!(
            "record batch {group} takes {bytes} bytes, and a stream with a buffer of {} bytes holds {limit}: give it a larger buffer, or write batches of fewer rows",
            sizes.buffer
        )));
    }
    let (mut before, mut held) = (0, None);
    for rows in batches {
        let rows = rows?;
        let n_rows = rows.num_rows() as u64;
        let next = Batch { unit, group, is_last: false, before, rows };
        before += n_rows;
        if let Some(batch) = held.replace(next)
            && !send(batch)
        {
            return Ok(false);
        }
    }
    Ok(held.is_none_or(|batch| send(Batch { is_last: true, ..batch })))
}

/// The parser of a file of a stream.
pub(super) fn batch_parser<T: Float>(
    source: &Source<T>,
    file: usize,
) -> Option<Box<dyn BatchParser<T>>> {
    // The stream was opened with this schema.
    let columns = source.files[file].columns.as_ref()?;
    source.format.columnar(columns.file.schema())?.ok()
}

pub(super) fn parse_group_batch<T: Float>(
    source: &Source<T>,
    (checks, purpose): (&[LabelCheck], Purpose),
    parser: &mut dyn BatchParser<T>,
    batch: &Batch,
) -> Result<Parsed<T>, ReadError> {
    let file = &source.files[source.units[batch.unit].file()];
    let mut rows = Chunk::new(&source.parsed_layout);
    let faults = parse_batch(parser, &batch.rows, &mut rows, source.on_error());
    // Found by reading what is before, for an error only.
    let first_row = || match &file.columns {
        Some(columns) => columns.file.rows_before(batch.group) + batch.before,
        None => batch.before,
    };
    let skipped: Vec<usize> = faults.iter().map(|fault| fault.row).collect();
    let first = if faults.is_empty() { 0 } else { first_row() };
    let placed = faults.into_iter();
    let faults =
        placed.map(|fault| place_of(&file.name, parser, batch.group, first, fault)).collect();
    let Batch { unit, is_last, .. } = *batch;
    let parsed = Parsed { unit, is_last, rows, faults, written: Vec::new(), is_cached: false };
    with_labels(source, (checks, purpose), parsed, |row| {
        let row = skipped.iter().fold(row, |row, skipped| row + usize::from(*skipped <= row));
        Ok(Place { file: file.name.clone(), line: first_row() + row as u64 + 1, column: 1 })
    })
}

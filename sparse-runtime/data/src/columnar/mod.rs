//! Columnar files: Parquet and Arrow IPC, read by row groups (feature `parquet`).
//!
//! A file is known by its first bytes. [`Delimited`](crate::Delimited) reads flat columns by its
//! schema, [`SparseColumns`] a list of indices and one of values, or the vectors of Spark.

mod batch;
mod cell;
mod file;
mod sparse;
mod sparse_cells;
mod table;
#[cfg(test)]
mod tests;
mod write;
mod zstd_pages;

pub(crate) use batch::{BatchParser, RowFault, parse_batch, place_of};
pub(crate) use cell::{CellType, cell_type};
pub(crate) use file::ColumnarFile;
pub use sparse::SparseColumns;
pub(crate) use table::{Reads, TableColumns, TableParser, each_row_of_file};
pub use write::{WrittenColumn, write_parquet};

use super::text::{OnError, RowFormat, Skips};
use super::{Dataset, ReadError, ReadReport};
use crate::text::Chunk;
use arrow_array::RecordBatch;
use arrow_schema::Schema;
use sparse_core::element::Float;

impl<T: Float> Dataset<T> {
    /// The samples of record batches of Arrow, as [`TextReader`](crate::TextReader) reads those of
    /// a file: a [`Delimited`](crate::Delimited) takes the columns of its schema by name, and
    /// [`SparseColumns`] takes lists. O(cells) or O(non-zeros); the dataset is a copy.
    ///
    /// ```
    /// use arrow_array::{ArrayRef, Float64Array, RecordBatch, StringArray};
    /// use nnz::data::{Dataset, Delimited, Hashing};
    /// use std::sync::Arc;
    ///
    /// let sold: ArrayRef = Arc::new(Float64Array::from(vec![1.0, 0.0]));
    /// let colour: ArrayRef = Arc::new(StringArray::from(vec![Some("red"), None]));
    /// let batch = RecordBatch::try_from_iter([("sold", sold), ("colour", colour)])?;
    /// let format = Delimited::csv(Hashing::new(16)?).label("sold").categorical("colour");
    /// let data: Dataset = Dataset::from_record_batches(&format, [batch])?;
    /// assert_eq!((data.n_rows(), data.features().map(|x| x.nnz())), (2, Some(2)));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`ReadError::Content`] for a column that is missing or of a type that is not read,
    /// [`ReadError::Syntax`] for a cell that does not fit, with batches in place of row groups,
    /// [`ReadError::Empty`] without rows, and [`ReadError::Data`].
    pub fn from_record_batches<F: RowFormat<T>>(
        format: &F,
        batches: impl IntoIterator<Item = RecordBatch>,
    ) -> Result<Self, ReadError> {
        const NAME: &str = "record batches";
        let content = |message| ReadError::Content { file: NAME.to_owned(), message };
        let columns = format.columns();
        let mut rows = Chunk::new(&columns);
        let mut skips = Skips::new(OnError::Fail);
        let mut first_row = 0;
        for (group, batch) in batches.into_iter().enumerate() {
            let mut parser = parser_of(format, batch.schema_ref()).map_err(content)?;
            let projected = batch.project(parser.projection());
            let projected = projected.map_err(|error| content(error.to_string()))?;
            for fault in parse_batch(&mut *parser, &projected, &mut rows, OnError::Fail) {
                let (place, problem) = place_of(NAME, &*parser, group, first_row, fault);
                skips.add(place, problem)?;
            }
            first_row += batch.num_rows() as u64;
        }
        if rows.n_rows == 0 {
            return Err(ReadError::Empty { file: NAME.to_owned() });
        }
        let data = rows.into_dataset(&columns);
        let data = data.map_err(|source| ReadError::Data {
            file: NAME.to_owned(),
            source: Box::new(source),
        })?;
        Ok(data.with_report(ReadReport::of_file(NAME.to_owned())))
    }
}

/// The parser of a format for a schema.
pub(crate) fn parser_of<T: Float, F: RowFormat<T>>(
    format: &F,
    schema: &Schema,
) -> Result<Box<dyn BatchParser<T>>, String> {
    format.columnar(schema).unwrap_or_else(|| {
        Err("this format is one of text: read columns by `Delimited` or `SparseColumns`".to_owned())
    })
}

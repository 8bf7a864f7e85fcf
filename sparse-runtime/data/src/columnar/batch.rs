//! Record batches into samples, and the places of their faults.

use crate::text::{Chunk, OnError};
use crate::{ColumnChunk, Place, Problem};
use arrow_array::RecordBatch;
use arrow_schema::DataType;
use sparse_core::element::Float;

/// Makes samples of the batches of one schema.
#[diagnostic::on_unimplemented(
    message = "`{Self}` does not make rows of `{T}` of record batches",
    note = "the parsers of this library do: formats of one's own are not supported"
)]
pub trait BatchParser<T: Float>: Send {
    /// The positions in the schema of the columns that are read, ascending.
    fn projection(&self) -> &[usize];

    /// The name and the type of a column, by its position in faults.
    fn column(&self, position: usize) -> Option<(&str, &DataType)>;

    /// Appends the samples of a batch of the projected columns. A sample with a fault is left out;
    /// reading ends where `fault` returns false.
    fn parse(
        &mut self,
        batch: &RecordBatch,
        rows: &mut Chunk<T>,
        fault: &mut dyn FnMut(RowFault) -> bool,
    );
}

/// A fault in a row of a batch.
#[derive(Clone, Debug, PartialEq)]
pub struct RowFault {
    /// The row in the batch.
    pub(crate) row: usize,
    /// The position of the column, if one is at fault.
    pub(crate) column: Option<usize>,
    pub(crate) problem: Problem,
}

impl RowFault {
    /// The fault in a row group, of a batch before which the group has so many rows.
    pub(crate) fn after(self, rows: usize) -> Self {
        RowFault { row: self.row + rows, ..self }
    }
}

/// Parses a batch, and goes on after each fault, up to one fault beyond the limit.
pub(crate) fn parse_batch<T: Float>(
    parser: &mut dyn BatchParser<T>,
    batch: &RecordBatch,
    rows: &mut Chunk<T>,
    on_error: OnError,
) -> Vec<RowFault> {
    let mut faults = Vec::new();
    parser.parse(batch, rows, &mut |fault| {
        faults.push(fault);
        faults.len() as u64 <= on_error.limit()
    });
    faults
}

/// The place of a fault: the row of the file and the position of the column, both from one; and the
/// problem with the type of the column and the row group.
#[cold]
pub(crate) fn place_of<T: Float>(
    file: &str,
    parser: &dyn BatchParser<T>,
    row_group: usize,
    first_row: u64,
    fault: RowFault,
) -> (Place, Problem) {
    let RowFault { row, column, problem } = fault;
    let position = column.map_or(1, |column| column as u64 + 1);
    let place = Place { file: file.to_owned(), line: first_row + row as u64 + 1, column: position };
    let problem = Box::new(problem);
    let problem = match column.and_then(|column| parser.column(column)) {
        Some((name, data_type)) => Problem::InColumn {
            problem,
            chunk: Box::new(ColumnChunk {
                column: name.to_owned(),
                data_type: data_type.to_string(),
                row_group,
            }),
        },
        None => Problem::InRowGroup { problem, row_group },
    };
    (place, problem)
}

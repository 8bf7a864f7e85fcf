//! Flat columns under the schema of a [`Delimited`]: the columns of a table by their names.

use super::batch::{BatchParser, RowFault};
use super::cell::{CellType, Cells, cell_type};
use super::file::ColumnarFile;
use crate::blocks::BLOCK_BYTES;
use crate::delimited::Parser;
use crate::delimited::cells::{Cell, RowCells};
use crate::read_error::Fault;
use crate::text::Chunk;
use crate::{Excerpt, Problem, ReadError};
use arrow_array::RecordBatch;
use arrow_schema::{DataType, Schema};
use sparse_core::element::Float;
use std::borrow::Cow;

/// What of a column is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reads {
    /// Nothing: its cells are empty.
    Nothing,
    /// Numbers where they are stored as such, else texts.
    Numbers,
    /// Texts.
    Texts,
    /// Lists of texts, or texts with separators.
    Lists,
}

/// The columns of a schema in a table.
#[derive(Clone, Debug)]
pub(crate) struct TableColumns {
    /// For each column of the schema what is read, and its position among those that are.
    columns: Vec<(Reads, usize)>,
    /// The names and the types.
    fields: Vec<(String, DataType)>,
    projection: Vec<usize>,
}

impl TableColumns {
    /// Finds the columns of a schema by their names, or says which is missing or of another type.
    pub(crate) fn find(
        wanted: impl Iterator<Item = (String, Reads)>,
        schema: &Schema,
    ) -> Result<Self, String> {
        let (mut columns, mut fields, mut projection) = (Vec::new(), Vec::new(), Vec::new());
        for (name, reads) in wanted {
            if reads == Reads::Nothing {
                columns.push((reads, 0));
                fields.push((name, DataType::Null));
                continue;
            }
            let (position, data_type) = find_column(&name, schema)?;
            let is_read = match cell_type(data_type) {
                CellType::Nothing | CellType::Number | CellType::Text => true,
                CellType::List => reads == Reads::Lists,
                CellType::Other => false,
            };
            if !is_read {
                return Err(refusal(&name, data_type));
            }
            columns.push((reads, position));
            fields.push((name, data_type.clone()));
            projection.push(position);
        }
        projection.sort_unstable();
        projection.dedup();
        for (_, position) in &mut columns {
            *position = projection.binary_search(position).unwrap_or_default();
        }
        Ok(TableColumns { columns, fields, projection })
    }

    pub(crate) fn projection(&self) -> &[usize] {
        &self.projection
    }

    /// Calls a function with the cells of each row of a batch, until it returns false.
    pub(crate) fn each_row(
        &self,
        batch: &RecordBatch,
        mut take: impl FnMut(usize, &mut TableRow<'_>) -> bool,
    ) {
        let cells = |(reads, position): &(Reads, usize)| match reads {
            Reads::Nothing => (Reads::Nothing, Cells::Nothing),
            reads => (*reads, Cells::of(batch.column(*position))),
        };
        let columns: Vec<(Reads, Cells<'_>)> = self.columns.iter().map(cells).collect();
        let mut row = TableRow {
            columns: &columns,
            fields: &self.fields,
            row: 0,
            at: 0,
            buffer: String::new(),
        };
        for number in 0..batch.num_rows() {
            (row.row, row.at) = (number, 0);
            if !take(number, &mut row) {
                break;
            }
        }
    }
}

/// The position and the type of a column of a table.
pub(super) fn find_column<'s>(
    name: &str,
    schema: &'s Schema,
) -> Result<(usize, &'s DataType), String> {
    let fields = schema.fields();
    let mut found = fields.iter().enumerate().filter(|(_, field)| field.name().trim() == name);
    match (found.next(), found.next()) {
        (Some((position, field)), None) => Ok((position, field.data_type())),
        (Some(_), Some(_)) => Err(format!("two columns are called `{name}`: rename one")),
        (None, _) => {
            let known: Vec<&str> = fields.iter().map(|field| &field.name()[..]).collect();
            Err(format!("there is no column `{name}`: there are {}", known.join(", ")))
        }
    }
}

/// That a type is not read, and what to do.
#[cold]
fn refusal(name: &str, data_type: &DataType) -> String {
    let lead = match data_type {
        DataType::List(_) | DataType::LargeList(_) | DataType::FixedSizeList(..) => {
            "declare it `list`, or read lists of indices and values by `SparseColumns` (`--format sparse-columns`)"
        }
        DataType::Struct(_) => {
            "take its fields out as columns, or read Spark's vectors by `SparseColumns` (`--format sparse-columns`)"
        }
        _ => "cast it to a number or to text, or declare it `ignore`",
    };
    format!("the column `{name}` has the type {data_type}, which is not read so: {lead}")
}

/// The cells of a row of a table.
pub(crate) struct TableRow<'a> {
    columns: &'a [(Reads, Cells<'a>)],
    fields: &'a [(String, DataType)],
    row: usize,
    at: usize,
    buffer: String,
}

impl RowCells for TableRow<'_> {
    #[inline]
    fn is_done(&self) -> bool {
        self.at == self.columns.len()
    }

    #[inline]
    fn next_cell(&mut self) -> Result<(usize, Cell<'_>), Fault> {
        let at = self.at;
        self.at += 1;
        let Some((reads, cells)) = self.columns.get(at) else {
            return Ok((at, Cell::Text(Cow::Borrowed(b""))));
        };
        let cell = match reads {
            Reads::Nothing => Cell::Text(Cow::Borrowed(b"")),
            Reads::Numbers => cells.number_cell(self.row, &mut self.buffer),
            Reads::Texts => Cell::Text(cells.text(self.row, &mut self.buffer)),
            Reads::Lists => {
                if let Some(element) = cells.divided_element(self.row) {
                    let (column, expected) = (self.fields[at].0.clone(), "categories without `|`");
                    let found = Excerpt::line(element.as_bytes());
                    let problem = Problem::Field { column, expected, found };
                    return Err(Fault { offset: at, problem });
                }
                Cell::Text(cells.text(self.row, &mut self.buffer))
            }
        };
        Ok((at, cell))
    }

    #[cold]
    fn count_fault(&self, expected: usize) -> Fault {
        let problem = Problem::FieldCount { found: self.columns.len(), expected };
        Fault { offset: 0, problem }
    }
}

/// Makes samples of the rows of a table.
#[derive(Debug)]
pub(crate) struct TableParser {
    parser: Parser,
    columns: TableColumns,
}

impl TableParser {
    pub(crate) fn new(parser: Parser, columns: TableColumns) -> Self {
        TableParser { parser, columns }
    }
}

impl<T: Float> BatchParser<T> for TableParser {
    fn projection(&self) -> &[usize] {
        self.columns.projection()
    }

    fn column(&self, position: usize) -> Option<(&str, &DataType)> {
        self.columns.fields.get(position).map(|(name, data_type)| (&name[..], data_type))
    }

    fn parse(
        &mut self,
        batch: &RecordBatch,
        rows: &mut Chunk<T>,
        fault: &mut dyn FnMut(RowFault) -> bool,
    ) {
        let TableParser { parser, columns } = self;
        columns.each_row(batch, |row, cells| {
            let Err(Fault { offset, problem }) = parser.row(cells, rows) else { return true };
            rows.discard_partial();
            let column = matches!(problem, Problem::Field { .. }).then_some(offset);
            fault(RowFault { row, column, problem })
        });
    }
}

/// Calls a function with the cells of each row of a columnar file, until it returns false.
pub(crate) fn each_row_of_file(
    file: &ColumnarFile,
    columns: impl Iterator<Item = (String, Reads)>,
    mut take: impl FnMut(&mut TableRow<'_>) -> bool,
) -> Result<(), ReadError> {
    let columns = TableColumns::find(columns, file.schema());
    let columns = columns.map_err(|message| file.refuse(message))?;
    let mut goes_on = true;
    for (group, size) in file.groups().iter().enumerate() {
        for batch in file.batches(group, columns.projection(), size.rows_of(BLOCK_BYTES))? {
            columns.each_row(&batch?, |_, row| {
                goes_on = take(row);
                goes_on
            });
            if !goes_on {
                return Ok(());
            }
        }
    }
    Ok(())
}

//! Errors of arrays.

use super::{MAX_RANK, Shape};
use crate::kernels::TooManyThreads;
use sparse_core::storage::ElementType;

/// Invalid parts of an array. Every variant names the value, the bound and the place.
#[derive(Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum FormatError {
    /// The number of elements is not the product of the shape.
    #[error("shape {shape} has {expected} elements, but {found} values were given")]
    ValueCount {
        /// The requested shape.
        shape: Shape,
        /// Its number of elements.
        expected: usize,
        /// The values given.
        found: usize,
    },
    /// Two arrays of an operation have shapes that do not fit together.
    #[error("{operation}: {message}")]
    Mismatch {
        /// The operation.
        operation: &'static str,
        /// The fault.
        message: String,
    },
    /// A shape has too many extents.
    #[error("rank {rank} is above the largest, {MAX_RANK}: merge extents before making the array")]
    RankTooHigh {
        /// The number of extents given.
        rank: usize,
    },
    /// An operation is defined for another rank.
    #[error("{operation} needs an array of rank {expected}, but the shape is {shape}: reshape it")]
    Rank {
        /// The operation.
        operation: &'static str,
        /// The rank that it needs.
        expected: usize,
        /// The shape found.
        shape: Shape,
    },
    /// An array would take more bytes than can be addressed.
    #[error(
        "a {element} array of shape {shape} would take more bytes than can be addressed ({}): keep it sparse",
        isize::MAX
    )]
    TooLarge {
        /// The requested shape.
        shape: Shape,
        /// The type of its elements.
        element: ElementType,
    },
    /// The system has no memory for an array that is larger than its source.
    #[error("there is no memory for {what} of an array of shape {shape}, {bytes} bytes")]
    OutOfMemory {
        /// Which part of the array.
        what: &'static str,
        /// The requested shape.
        shape: Shape,
        /// The bytes of that part; `usize::MAX` where they do not fit it.
        bytes: usize,
    },
    /// More threads than exist were requested.
    #[error(transparent)]
    Threads(#[from] TooManyThreads),
    /// A density outside of [0, 1].
    #[error("the density {density} is not between 0 and 1")]
    Density {
        /// The density given.
        density: f64,
    },
    /// A random array has more places than the generator counts.
    #[error("the places of shape {shape} cannot be counted in 64 bits")]
    Uncountable {
        /// The requested shape.
        shape: Shape,
    },
    /// A value cannot be cast exactly.
    #[error(
        "the value {value} (position {position}) is not exactly a number of type {element}: `cast` takes the nearest"
    )]
    Inexact {
        /// The position among the stored values.
        position: usize,
        /// The value, printed.
        value: String,
        /// The requested type.
        element: ElementType,
    },
    /// A value of a pattern is not 1.
    #[error(
        "row {row} stores {value} in column {column} (numbered from 0): every value of a pattern is 1"
    )]
    NotUnit {
        /// The row.
        row: usize,
        /// The column.
        column: usize,
        /// The value, printed.
        value: String,
    },
    /// A row out of the range of the array.
    #[error("row {row} is out of range: the array has {n_rows} rows, numbered from 0")]
    RowOutOfRange {
        /// The row.
        row: usize,
        /// The number of rows.
        n_rows: usize,
    },
    /// A run of rows out of the range of the array.
    #[error("rows {start}..{end} are out of range: the array has {n_rows} rows, numbered from 0")]
    RowRange {
        /// The first row of the run.
        start: usize,
        /// One past the last.
        end: usize,
        /// The number of rows.
        n_rows: usize,
    },
    /// `indptr` has no entries.
    #[error("`indptr` is empty: it has one entry more than the matrix has rows, so at least `[0]`")]
    IndptrEmpty,
    /// The number of entries of `indptr` is not one more than that of rows.
    #[error(
        "`indptr` has {found} entries, but a matrix of {n_rows} rows needs one more than it has rows"
    )]
    IndptrLength {
        /// The entries given.
        found: usize,
        /// The number of rows.
        n_rows: usize,
    },
    /// `indptr` does not start at 0.
    #[error("`indptr[0]` is {found}, but must be 0")]
    IndptrStart {
        /// The first entry.
        found: u64,
    },
    /// `indptr` decreases.
    #[error("`indptr` decreases at row {row}: it starts at {start} and ends at {end}")]
    IndptrDecreasing {
        /// The row that would have a negative length.
        row: usize,
        /// Its start.
        start: u64,
        /// Its end.
        end: u64,
    },
    /// `indptr` does not end at the number of stored entries.
    #[error("the last entry of `indptr` is {found}, but {stored} columns were given")]
    IndptrEnd {
        /// The last entry.
        found: u64,
        /// The columns given.
        stored: usize,
    },
    /// The numbers of values and columns differ.
    #[error("{columns} columns, but {values} values were given: each stored entry has one of both")]
    EntryCount {
        /// The columns given.
        columns: usize,
        /// The values given.
        values: usize,
    },
    /// A column is not below the width.
    #[error(
        "column {column} in row {row} (entry {position}) is out of range: the matrix has {n_cols} columns, numbered from 0"
    )]
    ColumnOutOfRange {
        /// The row.
        row: usize,
        /// The position among all stored entries.
        position: usize,
        /// The column.
        column: u64,
        /// The number of columns.
        n_cols: usize,
    },
    /// The columns of a row do not ascend.
    #[error(
        "column {column} follows column {previous} in row {row} (entry {position}): sort the columns of each row"
    )]
    ColumnUnsorted {
        /// The row.
        row: usize,
        /// The position among all stored entries.
        position: usize,
        /// The column.
        column: u64,
        /// The larger previous column.
        previous: u64,
    },
    /// A column occurs twice in a row.
    #[error(
        "column {column} occurs twice in row {row} (entry {position}): add such entries up, as `from_coo` does"
    )]
    ColumnDuplicate {
        /// The row.
        row: usize,
        /// The position of the second occurrence among all stored entries.
        position: usize,
        /// The column.
        column: u64,
    },
    /// A coordinate is outside of the matrix.
    #[error(
        "entry {position} is at ({row}, {column}), outside of the matrix of {n_rows} rows and {n_cols} columns (numbered from 0)"
    )]
    CoordinateOutOfRange {
        /// The position of the entry in the order given.
        position: usize,
        /// Its row.
        row: usize,
        /// Its column.
        column: usize,
        /// The number of rows.
        n_rows: usize,
        /// The number of columns.
        n_cols: usize,
    },
    /// A number given as an id is negative.
    #[error("id {id} (position {position}) is negative: ids are numbered from 0")]
    NegativeId {
        /// The position in the order given.
        position: usize,
        /// The number.
        id: i64,
    },
    /// A row id is not below the number of rows.
    #[error(
        "row id {row} (position {position}) is out of range: the array has {n_rows} rows, numbered from 0"
    )]
    RowIdOutOfRange {
        /// The position among the stored rows.
        position: usize,
        /// The row id.
        row: u64,
        /// The number of rows.
        n_rows: usize,
    },
    /// The row ids do not ascend.
    #[error(
        "row id {row} follows {previous} (position {position}): sort them, or use `from_unsorted`"
    )]
    RowIdUnsorted {
        /// The position among the stored rows.
        position: usize,
        /// The row id.
        row: u64,
        /// The larger previous row id.
        previous: u64,
    },
    /// A row id occurs twice.
    #[error(
        "row id {row} occurs twice (position {position}): add such rows up, as `from_unsorted` does"
    )]
    RowIdDuplicate {
        /// The position of the second occurrence.
        position: usize,
        /// The row id.
        row: u64,
    },
    /// The number of values of a row_sparse array is not one row for each row id.
    #[error(
        "{stored} stored rows of {row_size} elements (shape {shape}) need {stored} × {row_size} values, but {found} were given"
    )]
    StoredValueCount {
        /// The shape of the array.
        shape: Shape,
        /// The row ids given.
        stored: usize,
        /// The elements of a row.
        row_size: usize,
        /// The values given.
        found: usize,
    },
    /// A foreign array has a layout that cannot be borrowed.
    #[error("cannot borrow {array}: {reason}")]
    Layout {
        /// The foreign array.
        array: &'static str,
        /// The reason, and what to do.
        reason: &'static str,
    },
}

sparse_core::debug_of_errors!(FormatError);

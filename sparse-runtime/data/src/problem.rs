//! What can be wrong at a place of a file of data.

use super::read_error::Excerpt;
use nnz_arrays::escaped::Escaped;
use sparse_core::storage::ElementType;

/// A fault at a place of a text file.
#[derive(Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum Problem {
    /// A sample does not begin with a number.
    #[error("expected a label, found {found}")]
    ExpectedLabel {
        /// The text there.
        found: Excerpt,
    },
    /// A sample begins with its first entry.
    #[error(
        "the row has no label: expected a number before the first `index:value`, found {found}"
    )]
    MissingLabel {
        /// The text there.
        found: Excerpt,
    },
    /// A label is `nan` or infinite.
    #[error("label {found} is not a finite number")]
    LabelNotFinite {
        /// The text there.
        found: Excerpt,
    },
    /// A label is beyond the range of the element type.
    #[error("label {found} is beyond the range of {element}")]
    LabelBeyondRange {
        /// The text there.
        found: Excerpt,
        /// The element type.
        element: ElementType,
    },
    /// A namespace of Vowpal Wabbit's text.
    #[error(
        "{found} is a namespace of Vowpal Wabbit's text: read it as such (`VowpalWabbit`, `--format vw`)"
    )]
    VowpalWabbit {
        /// The text there.
        found: Excerpt,
    },
    /// A part of a sample is not an entry.
    #[error("expected `index:value`, found {found}")]
    ExpectedEntry {
        /// The text there.
        found: Excerpt,
    },
    /// An index is not followed by a colon.
    #[error("expected `:` after the index {index}, found {found}")]
    ExpectedColon {
        /// The index.
        index: u64,
        /// The text there.
        found: Excerpt,
    },
    /// The colon is followed by nothing.
    #[error("the entry of index {index} has no value after `:`")]
    MissingValue {
        /// The index.
        index: u64,
    },
    /// The text after the colon is not a number.
    #[error("expected a number as the value of index {index}, found {found}")]
    ExpectedValue {
        /// The index.
        index: u64,
        /// The text there.
        found: Excerpt,
    },
    /// A value is beyond the range of the element type.
    #[error(
        "the value {found} of index {index} is beyond the range of {element}: scale the feature"
    )]
    ValueBeyondRange {
        /// The index.
        index: u64,
        /// The text there.
        found: Excerpt,
        /// The element type.
        element: ElementType,
    },
    /// A value is `nan` or infinite.
    #[error(
        "the value {found} of index {index} is not a finite number; leave the entry out where a value is missing"
    )]
    ValueNotFinite {
        /// The index.
        index: u64,
        /// The text there.
        found: Excerpt,
    },
    /// Values that are added overflow.
    #[error("the values of index {index} add up to no finite number")]
    SumNotFinite {
        /// The index; for a hashed column the column.
        index: u64,
    },
    /// An index occurs twice in a sample.
    #[error("index {index} occurs twice in the row")]
    DuplicateIndex {
        /// The index.
        index: u64,
    },
    /// An index occurs in two fields of a sample.
    #[error(
        "index {index} is in the fields {first} and {second} of the row: fields have indices of their own, unless values are added (`LibFfm::add_repeated`)"
    )]
    IndexInTwoFields {
        /// The index.
        index: u64,
        /// One field.
        first: u64,
        /// The other.
        second: u64,
    },
    /// The indices of a sample do not ascend.
    #[error("index {index} follows {previous}: the indices of a row must ascend")]
    DescendingIndex {
        /// The index.
        index: u64,
        /// The previous index.
        previous: u64,
    },
    /// Index 0 in a file that is declared to count from one.
    #[error(
        "index 0 in a file read with `IndexBase::One`; read it with `IndexBase::Zero` or `Detect`"
    )]
    IndexZero,
    /// An index of 2⁶³ or more.
    #[error("index {found} is too large: indices must be below 2^63")]
    IndexTooLarge {
        /// The text there.
        found: Excerpt,
    },
    /// An index beyond the declared number of features.
    #[error(
        "index {index} is beyond the {n_features} features declared (indices count from {base})"
    )]
    BeyondDeclared {
        /// The index as written.
        index: u64,
        /// The declared number of features.
        n_features: u64,
        /// The index of the first feature.
        base: u64,
    },
    /// A sample has more or fewer fields than the schema has columns.
    #[error("the row has {found} fields, but the schema has {expected} columns")]
    FieldCount {
        /// The fields of the sample.
        found: usize,
        /// The columns of the schema.
        expected: usize,
    },
    /// A field does not fit its column's declaration.
    #[error("expected {expected} in the column `{}`, found {found}", Escaped(column))]
    Field {
        /// The column.
        column: String,
        /// The declaration.
        expected: &'static str,
        /// The text there.
        found: Excerpt,
    },
    /// The header of a file names other columns than the schema.
    #[error("the header has {found} where the schema has the column `{}`", Escaped(expected))]
    Header {
        /// The column of the schema.
        expected: String,
        /// The text there.
        found: Excerpt,
    },
    /// The first line has the names of the columns, and the file was declared to have no header.
    #[error(
        "the first line is a header, the names of the columns, and no row: say that the file has a `header`"
    )]
    UndeclaredHeader,
    /// The titles of a file of ratings show that it has other columns, or another order.
    #[error(
        "the first line has {n_titles} titles, of which number {position} is {found}: a line begins with the user, the item and the rating; write the file without what stands before them, and in this order"
    )]
    RatingTitles {
        /// The number of titles.
        n_titles: usize,
        /// The position of the title that shows it, from one.
        position: usize,
        /// The title.
        found: Excerpt,
    },
    /// Documents of words that are numbers.
    #[error(
        "{n_documents} documents from here on are numbers, such as {found}, and no words: the file is of another format"
    )]
    NumbersForWords {
        /// The number of documents that were checked.
        n_documents: usize,
        /// The first of them.
        found: Excerpt,
    },
    /// A carriage return within a line.
    #[error(
        "a carriage return (CR) within a line: lines end in LF or CR LF; if they end in CR alone, convert the file, `tr '\\r' '\\n'`"
    )]
    CarriageReturn,
    /// A quoted field that does not end in its line, or that is followed by other text.
    #[error("a quoted field must end with `\"` before the next separator and in the same line")]
    Quote,
    /// A quoted field of a [stream](super::stream) that does not end in its line.
    #[error(
        "a quoted field does not end in its line: in a stream every line end is the end of a sample, so read files with line ends in quotes into memory"
    )]
    QuotedLineEnd,
    /// A byte 0: the file is not text, or in UTF-16.
    #[error("a NUL byte: the file is not text in UTF-8 or ASCII")]
    NulByte,
    /// Text that is not UTF-8.
    #[error("expected text in UTF-8, found {found}")]
    NotUtf8 {
        /// The text there.
        found: Excerpt,
    },
    /// An id that is not in the given map.
    #[error("the {} {found} is not among the {n_known} that are known", Escaped(column))]
    UnknownId {
        /// The column.
        column: String,
        /// The text there.
        found: Excerpt,
        /// The number of known ids.
        n_known: usize,
    },
    /// More distinct ids than can be numbered.
    #[error("the column `{}` has more than 2^32 different ids", Escaped(column))]
    TooManyIds {
        /// The column.
        column: String,
    },
    /// A label is not one of the classes declared.
    #[error("the label {label} is not among the {} classes {known}", known.len())]
    UnknownClass {
        /// The label.
        label: f64,
        /// The classes.
        known: super::Classes,
    },
    /// A label that its loss does not accept.
    #[error("the label {label} is not what `{declared}` is read as: {expected}")]
    Label {
        /// The label.
        label: f64,
        /// The label's name in the model.
        declared: String,
        /// The labels that the loss accepts.
        expected: &'static str,
    },
    /// A fault in a column of a columnar file.
    #[error(
        "{problem} (`{}` is {}; row group {})", Escaped(&chunk.column), chunk.data_type,
        chunk.row_group
    )]
    InColumn {
        /// The fault.
        problem: Box<Problem>,
        /// The column and the row group.
        chunk: Box<ColumnChunk>,
    },
    /// A fault in a row of a columnar file.
    #[error("{problem} (row group {row_group})")]
    InRowGroup {
        /// The fault.
        problem: Box<Problem>,
        /// The row group, or the record batch, counted from 0.
        row_group: usize,
    },
    /// Labels of a binary loss that are written in two ways.
    #[error(
        "the label {label} beside labels that are {other}: `{declared}` is read by a binary loss, for which -1 and 0 are both the negative class; write it in one way, or use a loss of numbers"
    )]
    MixedLabels {
        /// The label.
        label: f64,
        /// The way of the other labels.
        other: &'static str,
        /// The label's name in the model.
        declared: String,
    },
    /// A line that is longer than a stream may hold, or than lines may be.
    #[error(
        "a line of more than {limit} bytes: end lines by `\\n`, or give a stream a larger buffer"
    )]
    LineTooLong {
        /// The most bytes of a line.
        limit: usize,
    },
    /// Other text than the format requires.
    #[error("expected {expected}, found {found}")]
    Expected {
        /// The required text.
        expected: &'static str,
        /// The text there.
        found: Excerpt,
    },
    /// A symmetric MatrixMarket file gives entries on both sides of the diagonal.
    #[error(
        "row {row}, column {column} is on the other side of the diagonal than entries before it: a symmetric file gives one side, of which the other follows; declare it `general` if it gives all entries"
    )]
    BothTriangles {
        /// The row, from one.
        row: u64,
        /// The column, from one.
        column: u64,
    },
    /// A line of a MatrixMarket file is not an entry, or lines are missing.
    #[error("expected `{form}`, both counted from one, and {n_entries} such lines in all")]
    ExpectedCoordinates {
        /// The form of an entry.
        form: &'static str,
        /// The number of entries that the file declares.
        n_entries: usize,
    },
    /// An entry of a MatrixMarket file beyond the size that the file declares.
    #[error(
        "the entry at row {row}, column {column} (counted from one) lies outside of the matrix of {n_rows} rows and {n_cols} columns"
    )]
    EntryOutside {
        /// The row, counted from one.
        row: u64,
        /// The column, counted from one.
        column: u64,
        /// The rows declared.
        n_rows: usize,
        /// The columns declared.
        n_cols: usize,
    },
    /// A skew-symmetric MatrixMarket file gives an entry of the diagonal, which is 0 in such a
    /// matrix.
    #[error(
        "row {row}, column {row} (counted from one) is not 0, as the diagonal of a skew-symmetric matrix is: leave the entry out, or declare the file `general` with all its entries"
    )]
    SkewDiagonal {
        /// The row and the column, counted from one.
        row: u64,
    },
    /// A value of a MatrixMarket file that is `nan`, infinite or too large.
    #[error(
        "the value at row {row}, column {column} (counted from one) is not finite, or beyond the range of the element type"
    )]
    EntryNotFinite {
        /// The row, counted from one.
        row: u64,
        /// The column, counted from one.
        column: u64,
    },
}

sparse_core::debug_of_errors!(Problem);

/// A column of a row group of a columnar file.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ColumnChunk {
    /// The column.
    pub column: String,
    /// Its type.
    pub data_type: String,
    /// The row group, or the record batch, counted from 0.
    pub row_group: usize,
}

//! Errors of data in memory, and of data and a model together.

use super::Classes;
use nnz_arrays::escaped::Escaped;
use nnz_arrays::formats::{FormatError, Shape};
use nnz_step::model::{Extent, InputRole};
use sparse_core::storage::{ElementType, Storage};
use std::fmt;

/// Shorthand for results of this crate.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Anything that can go wrong between a file and a model's batch. Each variant is one part's own
/// error type.
#[derive(thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// Data is not valid, or is not what a model declares.
    #[error(transparent)]
    Data(#[from] DataError),
    /// A file of data cannot be read or written.
    #[error(transparent)]
    Read(#[from] super::ReadError),
    /// An array is not valid, or two do not go together.
    #[error(transparent)]
    Format(#[from] FormatError),
    /// A batch does not fit the model.
    #[error(transparent)]
    Step(#[from] nnz_step::Error),
}

sparse_core::debug_of_errors!(Error);

/// What a batch of data says to the model that asks it.
impl From<DataError> for nnz_step::Error {
    fn from(error: DataError) -> Self {
        nnz_step::Error::Batch(Box::new(error))
    }
}

/// Data is invalid, or does not fit a model's declarations. Samples are counted from zero.
#[derive(Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum DataError {
    /// An invalid weight of a sample.
    #[error("the weight of row {row} is {value}, but must be at least 0 and finite")]
    Weight {
        /// The row.
        row: usize,
        /// The weight.
        value: f64,
    },
    /// A class without a weight.
    #[error("row {row} has class {class}, but there are weights of {known} classes")]
    ClassWeight {
        /// The row.
        row: usize,
        /// The class.
        class: String,
        /// The classes that have weights.
        known: usize,
    },
    /// An array is invalid.
    #[error(transparent)]
    Format(#[from] FormatError),
    /// Two columns have different numbers of samples.
    #[error("{column} has {found} rows, but {first} has {expected}: every row needs both")]
    RowCount {
        /// The column.
        column: ColumnName,
        /// Its samples.
        found: usize,
        /// The first column.
        first: ColumnName,
        /// The samples of the first column.
        expected: usize,
    },
    /// Two columns have one name.
    #[error("two columns are called `{}`", Escaped(name))]
    DuplicateName {
        /// The name.
        name: String,
    },
    /// There is no input.
    #[error("the data has no input: add one with `.input(name, values)`")]
    NoInput,
    /// A [`FrequencyOrder`](crate::FrequencyOrder) for a matrix of another width.
    #[error(
        "{found} columns or rows cannot be put in an order of {expected} columns: it was made of other data"
    )]
    OrderWidth {
        /// The columns of the data, or the rows of the parameter.
        found: usize,
        /// The columns of the order.
        expected: usize,
    },
    /// A label is `nan` or infinite.
    #[error("row {row} of {column} is {value}: labels must be finite numbers")]
    LabelNotFinite {
        /// The column.
        column: ColumnName,
        /// The row.
        row: usize,
        /// The label.
        value: f64,
    },
    /// A number of an input is `nan` or infinite.
    #[error(
        "row {row} of {column} holds {value} in column {position} (rows and columns numbered from 0): values must be finite numbers; leave the row out, or write a number for what is missing"
    )]
    InputNotFinite {
        /// The column of the data.
        column: ColumnName,
        /// The row.
        row: usize,
        /// The column in the row, the feature.
        position: usize,
        /// The value.
        value: f64,
    },
    /// A number of an input is out of the range of its new element type.
    #[error(
        "row {row} of {column} holds a number that is infinite as `{element}`: scale the column, or keep a wider type"
    )]
    BeyondElement {
        /// The column.
        column: ColumnName,
        /// The row.
        row: usize,
        /// The element type.
        element: ElementType,
    },
    /// A label of a binary loss is neither -1 nor in [0, 1].
    #[error(
        "row {row} of {column} is {value}: `{declared}` is read by a binary loss, whose labels are -1 or 0, and 1, or a probability in [0, 1]"
    )]
    LabelNotBinary {
        /// The column.
        column: ColumnName,
        /// The row.
        row: usize,
        /// The label.
        value: f64,
        /// The label's name in the model.
        declared: String,
    },
    /// The labels of a binary loss are written in two ways: -1 and 1, and from 0 to 1.
    #[error(
        "row {row} of {column} is {value}, and row {other_row} is {other}: `{declared}` is read by a binary loss, for which -1 and 0 are both the negative class; write it in one way, or use a loss of numbers"
    )]
    LabelsMixed {
        /// The column.
        column: ColumnName,
        /// The first row whose label is -1.
        row: usize,
        /// The label, -1.
        value: f64,
        /// The first row whose label is from 0 to below 1.
        other_row: usize,
        /// Its label.
        other: f64,
        /// The label's name in the model.
        declared: String,
    },
    /// A label that should be a count or a probability is negative or not a number.
    #[error(
        "row {row} of {column} is {value}: `{declared}` is read by a loss of counts or probabilities, which are not negative"
    )]
    LabelNotCount {
        /// The column.
        column: ColumnName,
        /// The row.
        row: usize,
        /// The label.
        value: f64,
        /// The label's name in the model.
        declared: String,
    },
    /// A label that should be a class id is a real number.
    #[error(
        "`{declared}` is a class id, but {column} holds real numbers: turn them into ids by `data.into_classes()`"
    )]
    LabelNotClass {
        /// The column.
        column: ColumnName,
        /// The label's name in the model.
        declared: String,
    },
    /// A label is not among the known classes.
    #[error("row {row} has the label {label}, which is not among the {} classes {known}", known.len())]
    UnknownClass {
        /// The row.
        row: usize,
        /// The label.
        label: f64,
        /// The classes.
        known: Classes,
    },
    /// Classes were requested for data without a label of real numbers.
    #[error("there is no label of real numbers, one a row, that could be turned into class ids")]
    NothingToClassify,
    /// A declared input or label has no column.
    #[error(
        "the model's {role} `{declared}` has no data: the data has {}; add it by `.{role}(\"{declared}\", values)` of `Dataset::builder()`",
        Escaped(available)
    )]
    Missing {
        /// Input or label.
        role: &'static str,
        /// Its name in the model.
        declared: String,
        /// The columns of the data.
        available: String,
    },
    /// A column has another storage type than the model declares.
    #[error(
        "`{declared}` is declared `{expected}`, but {column} is `{found}`: convert it, or change the declaration"
    )]
    WrongStorage {
        /// Its name in the model.
        declared: String,
        /// The storage type declared.
        expected: Storage,
        /// The column.
        column: ColumnName,
        /// Its storage type.
        found: Storage,
    },
    /// A column has another element type than the model declares.
    #[error(
        "`{declared}` is declared with elements `{expected}`, but {column} has `{found}`: convert it, or change the declaration"
    )]
    WrongElement {
        /// Its name in the model.
        declared: String,
        /// The element type declared.
        expected: ElementType,
        /// The column.
        column: ColumnName,
        /// Its element type.
        found: ElementType,
    },
    /// A column that the model declares as a pattern stores another value than 1.
    #[error(
        "row {row} of {column} stores {value} in column {position} (numbered from 0), but `{declared}` is declared `csr<unit>`, whose values are all 1: leave `<unit>` out, or make every stored value 1 by `csr.cast::<Unit>()`"
    )]
    NotUnit {
        /// The column of the data.
        column: ColumnName,
        /// The row.
        row: usize,
        /// The column in the row, the feature.
        position: usize,
        /// The value, printed.
        value: String,
        /// Its name in the model.
        declared: String,
    },
    /// A column has another shape than the model declares.
    #[error("`{declared}` is declared {}, but {column} has the shape {found}", Extents(expected))]
    WrongShape {
        /// Its name in the model.
        declared: String,
        /// The shape declared.
        expected: Vec<Extent>,
        /// The column.
        column: ColumnName,
        /// Its shape.
        found: Box<Shape>,
    },
    /// A batch was read as an array of another kind.
    #[error(
        "the batch holds no {asked} at position {index}: bind it with the inputs of the model that reads it"
    )]
    WrongPosition {
        /// The position in [`Model::INPUTS`](nnz_step::model::Model::INPUTS).
        index: usize,
        /// The requested kind.
        asked: &'static str,
    },
    /// Batches of no samples.
    #[error("the batch size is 0: a batch has at least one row")]
    ZeroBatchSize,
    /// Padded batches that are larger than the maximum.
    #[error(
        "the batch size is {batch_size}, but a batch that `LastBatch::Pad` fills up has at most {limit} rows: make batches smaller, or use `LastBatch::Short`"
    )]
    PaddedBatchSize {
        /// The samples of a batch.
        batch_size: usize,
        /// The most samples of a padded batch.
        limit: usize,
    },
    /// Rolled-over batches of several epochs that are too large to be listed.
    #[error(
        "the batch size is {batch_size}, but a batch of the rows that `LastBatch::RollOver` hands on has at most {limit} rows: make batches smaller, or use `LastBatch::Short`"
    )]
    RolledBatchSize {
        /// The samples of a batch.
        batch_size: usize,
        /// The most samples of a batch.
        limit: usize,
    },
    /// Samples of a stream that would come first in the next epoch.
    #[error(
        "a stream cannot roll rows over into the next epoch, which may be the first to be read: use `LastBatch::Short`, `Discard` or `Pad`"
    )]
    StreamRollsOver,
    /// A batch beyond the end of its epoch.
    #[error("epoch {epoch} has {n_batches} batches: there is no batch {batch}")]
    BatchOutOfRange {
        /// The epoch.
        epoch: u64,
        /// The batch.
        batch: u64,
        /// The batches of the epoch.
        n_batches: u64,
    },
    /// A fraction that is not between 0 and 1.
    #[error("the fraction {fraction} is not between 0 and 1")]
    Fraction {
        /// The fraction.
        fraction: f64,
    },
    /// Hashing into no columns, or into more than ids can name.
    #[error("{bits} hash bits: between 1 and 32 bits make 2 to 2^32 columns")]
    HashBits {
        /// The bits.
        bits: u32,
    },
    /// An unknown column of the data.
    #[error("there is no column `{}`: the data has {}", Escaped(name), Escaped(available))]
    UnknownColumn {
        /// The name.
        name: String,
        /// The columns of the data.
        available: String,
    },
    /// An invalid description of data.
    #[error("{}", Escaped(message))]
    Schema {
        /// The fault, and what to do.
        message: String,
    },
    /// The data lacks a part that a file format stores.
    #[error(
        "there is no {role} to write: the format stores one label and csr features for each row"
    )]
    NotWritable {
        /// The missing part.
        role: &'static str,
    },
    /// A value or a column that the text of a file format cannot express.
    #[error(
        "row {row} has {value} in column {column}: LibSVM text holds finite numbers, in columns below 2^63 - 1"
    )]
    EntryNotWritable {
        /// The row.
        row: usize,
        /// The column, counted from zero.
        column: usize,
        /// The value.
        value: f64,
    },
    /// Synthetic data cannot be made with these settings.
    #[error("{message}")]
    Synthetic {
        /// The fault.
        message: String,
    },
}

sparse_core::debug_of_errors!(DataError);

impl DataError {
    /// The fault of a column that should be a pattern.
    pub(super) fn not_unit(error: FormatError, column: ColumnName, declared: &str) -> Self {
        match error {
            FormatError::NotUnit { row, column: position, value } => {
                DataError::NotUnit { column, row, position, value, declared: declared.to_owned() }
            }
            other => other.into(),
        }
    }
}

/// A column in a message: its name, or its role and position where it has none.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ColumnName {
    /// Its name.
    pub name: Option<String>,
    /// Input or label.
    pub role: InputRole,
    /// Its position among the columns.
    pub position: usize,
}

/// `` label `y` `` or `the input (column 0)`.
impl fmt::Display for ColumnName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let role = role_name(self.role);
        match &self.name {
            Some(name) => write!(f, "the {role} `{}`", Escaped(name)),
            None => write!(f, "the {role} (column {})", self.position),
        }
    }
}

pub(crate) fn role_name(role: InputRole) -> &'static str {
    match role {
        InputRole::Input => "input",
        InputRole::Label => "label",
    }
}

/// `[n, 3]`.
struct Extents<'a>(&'a [Extent]);

impl fmt::Display for Extents<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("[")?;
        for (i, extent) in self.0.iter().enumerate() {
            let comma = if i > 0 { ", " } else { "" };
            match extent {
                Extent::Constant(extent) => write!(f, "{comma}{extent}")?,
                Extent::Named(name) => write!(f, "{comma}{name}")?,
            }
        }
        f.write_str("]")
    }
}

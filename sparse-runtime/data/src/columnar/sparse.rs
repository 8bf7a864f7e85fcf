//! Sparse rows in columns: lists of indices and of values, or the vectors of Spark.

use super::batch::{BatchParser, RowFault};
use super::sparse_cells::{Entries, LabelCells, SparseRow, is_index, is_value};
use super::table::find_column;
use crate::libsvm::IndexBase;
use crate::read_error::Fault;
use crate::text::{
    Chunk, ColumnKind, ColumnLayout, RowFormat, RowParser, Survey, sealed::Sealed, whole_format,
};
use crate::{Excerpt, Problem, WEIGHT};
use arrow_array::{Array, RecordBatch, StructArray};
use arrow_schema::{DataType, Schema};
use nnz_step::model::InputRole;
use sparse_core::element::Float;

/// Sparse rows in the columns of a Parquet or Arrow file (feature `parquet`): a list of indices and
/// one of values, or a column of Spark's vectors (`struct<type, size, indices, values>`).
///
/// The data is that of the same samples as [LibSVM text](crate::libsvm): one csr input, and a label
/// unless [`without_labels`](Self::without_labels) is called. Where no columns are named, they are
/// found by their types: the one column of vectors, or the one list of integers and the one list of
/// floats. A list that is null is a row without entries. Of Spark's dense vectors the entries that
/// are not 0 are taken.
///
/// | | default |
/// |---|---|
/// | [`label`](Self::label) | the column `label`, of numbers |
/// | [`weight`](Self::weight) | every sample weighs as much |
/// | [`indices_and_values`](Self::indices_and_values), [`vectors`](Self::vectors) | found by their types |
/// | [`index_base`](Self::index_base) | indices count from zero |
/// | [`n_features`](Self::n_features) | the largest index decides, or the size of Spark's vectors |
///
/// ```
/// use arrow_array::types::{Float32Type, UInt32Type};
/// use arrow_array::{ArrayRef, Float32Array, ListArray, RecordBatch};
/// use nnz::data::{Dataset, SparseColumns};
/// use std::sync::Arc;
///
/// let ids = ListArray::from_iter_primitive::<UInt32Type, _, _>([Some([Some(0), Some(4)])]);
/// let values = [Some([Some(0.5), Some(2.0)])];
/// let values = ListArray::from_iter_primitive::<Float32Type, _, _>(values);
/// let columns: [(&str, ArrayRef); 3] = [
///     ("label", Arc::new(Float32Array::from(vec![1.0]))),
///     ("ids", Arc::new(ids)),
///     ("values", Arc::new(values)),
/// ];
/// let batch = RecordBatch::try_from_iter(columns)?;
/// let data: Dataset = Dataset::from_record_batches(&SparseColumns::new(), [batch])?;
/// assert_eq!((data.n_rows(), data.n_features()), (1, 5));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct SparseColumns {
    entries: Named,
    label: Option<String>,
    weight: Option<String>,
    index_base: IndexBase,
    n_features: Option<usize>,
    sorts: bool,
    adds: bool,
    ignores_unknown: bool,
}

/// The columns of the entries, as far as they are named.
#[derive(Clone, Debug, PartialEq)]
enum Named {
    Found,
    Lists(String, String),
    Vectors(String),
}

impl Default for SparseColumns {
    fn default() -> Self {
        Self::new()
    }
}

impl SparseColumns {
    /// Columns that are found by their types, and the label `label`.
    pub fn new() -> Self {
        SparseColumns {
            entries: Named::Found,
            label: Some("label".to_owned()),
            weight: None,
            index_base: IndexBase::Zero,
            n_features: None,
            sorts: false,
            adds: false,
            ignores_unknown: false,
        }
    }

    /// The column of the label, of finite numbers or truth values.
    #[must_use]
    pub fn label(self, name: &str) -> Self {
        SparseColumns { label: Some(name.to_owned()), ..self }
    }

    /// The file has no label, or it is not read: enough to predict.
    #[must_use]
    pub fn without_labels(self) -> Self {
        SparseColumns { label: None, ..self }
    }

    /// The column of the weights of samples, finite numbers of at least 0: the label
    /// [`WEIGHT`](crate::WEIGHT).
    #[must_use]
    pub fn weight(self, name: &str) -> Self {
        SparseColumns { weight: Some(name.to_owned()), ..self }
    }

    /// The columns of the lists, as long as each other in every row.
    #[must_use]
    pub fn indices_and_values(self, indices: &str, values: &str) -> Self {
        SparseColumns { entries: Named::Lists(indices.to_owned(), values.to_owned()), ..self }
    }

    /// The column of Spark's vectors.
    #[must_use]
    pub fn vectors(self, name: &str) -> Self {
        SparseColumns { entries: Named::Vectors(name.to_owned()), ..self }
    }

    /// Whether indices count from zero or from one; [`IndexBase::Detect`] is zero, since no writer
    /// of columns counts from one by itself.
    #[must_use]
    pub fn index_base(self, index_base: IndexBase) -> Self {
        SparseColumns { index_base, ..self }
    }

    /// The number of features; larger indices are errors.
    #[must_use]
    pub fn n_features(self, n_features: impl Into<Option<usize>>) -> Self {
        SparseColumns { n_features: n_features.into(), ..self }
    }

    /// Sorts indices that do not ascend, which are errors else.
    #[must_use]
    pub fn sort_unsorted(self) -> Self {
        SparseColumns { sorts: true, ..self }
    }

    /// Sorts indices and adds the values of those that repeat, which are errors else.
    #[must_use]
    pub fn add_repeated(self) -> Self {
        SparseColumns { sorts: true, adds: true, ..self }
    }

    /// Leaves out entries beyond [`n_features`](Self::n_features), which are errors else.
    #[must_use]
    pub fn ignore_unknown(self) -> Self {
        SparseColumns { ignores_unknown: true, ..self }
    }

    /// Whether a file that can be opened has such columns, found by their types; false for text.
    ///
    /// # Errors
    ///
    /// [`ReadError::Io`](crate::ReadError::Io), and
    /// [`ReadError::Content`](crate::ReadError::Content) for a damaged file.
    pub fn are_in(path: impl AsRef<std::path::Path>) -> Result<bool, crate::ReadError> {
        let file = super::ColumnarFile::open(path.as_ref())?;
        Ok(file.is_some_and(|file| find_by_type(file.schema()).is_ok()))
    }

    fn find(&self, schema: &Schema) -> Result<SparseParser, String> {
        let found = match &self.entries {
            Named::Found => find_by_type(schema)?,
            named => named.clone(),
        };
        let mut names = match found {
            Named::Lists(indices, values) => vec![indices, values],
            Named::Vectors(name) => vec![name],
            Named::Found => Vec::new(),
        };
        let is_vectors = names.len() == 1;
        names.extend(self.label.iter().chain(&self.weight).cloned());
        let mut columns = Vec::new();
        for (at, name) in names.into_iter().enumerate() {
            let (position, data_type) = find_column(&name, schema)?;
            let (is_right, expected) = match at {
                0 if is_vectors => (is_vector(data_type), "struct<type, size, indices, values>"),
                0 => (is_list(data_type, is_index), "list of integers"),
                1 if !is_vectors => (is_list(data_type, is_value), "list of numbers"),
                _ => (is_value(data_type), "number"),
            };
            if !is_right {
                return Err(format!(
                    "the column `{name}` has the type {data_type} where a {expected} is read: name another column, or cast it"
                ));
            }
            columns.push((name, data_type.clone(), position));
        }
        let mut projection: Vec<usize> = columns.iter().map(|(.., position)| *position).collect();
        projection.sort_unstable();
        projection.dedup();
        let at = |(.., position): &(String, DataType, usize)| {
            projection.binary_search(position).unwrap_or_default()
        };
        let positions = columns.iter().map(at).collect();
        Ok(SparseParser { format: self.clone(), is_vectors, columns, positions, projection })
    }
}

/// The columns of entries by the types of a schema.
fn find_by_type(schema: &Schema) -> Result<Named, String> {
    let of = |is: &dyn Fn(&DataType) -> bool| {
        let fields = schema.fields().iter();
        let names: Vec<String> = fields
            .filter(|field| is(field.data_type()))
            .map(|field| field.name().clone())
            .collect();
        names
    };
    let is_floats = |data_type: &DataType| is_list(data_type, DataType::is_floating);
    let (vectors, indices) = (of(&is_vector), of(&|data_type| is_list(data_type, is_index)));
    let values = of(&is_floats);
    match (&vectors[..], &indices[..], &values[..]) {
        ([vectors], ..) => Ok(Named::Vectors(vectors.clone())),
        ([], [indices], [values]) => Ok(Named::Lists(indices.clone(), values.clone())),
        _ => Err(format!(
            "there are {} columns of Spark's vectors, {} lists of integers and {} lists of floats: name the columns of the entries",
            vectors.len(),
            indices.len(),
            values.len()
        )),
    }
}

/// Whether a type is a list of elements of such a type.
fn is_list(data_type: &DataType, is: impl Fn(&DataType) -> bool) -> bool {
    match data_type {
        DataType::List(of) | DataType::LargeList(of) | DataType::FixedSizeList(of, _) => {
            is(of.data_type())
        }
        _ => false,
    }
}

/// Whether a type is that of Spark's vectors.
fn is_vector(data_type: &DataType) -> bool {
    let DataType::Struct(fields) = data_type else { return false };
    let has = |name: &str, is: &dyn Fn(&DataType) -> bool| {
        fields.iter().any(|field| field.name() == name && is(field.data_type()))
    };
    has("type", &is_index)
        && has("size", &is_index)
        && has("indices", &|data_type| is_list(data_type, is_index))
        && has("values", &|data_type| is_list(data_type, is_value))
}

impl Sealed for SparseColumns {}

whole_format!(SparseColumns);

impl<T: Float> RowFormat<T> for SparseColumns {
    type Parser = NoText;

    fn columns(&self) -> Vec<ColumnLayout> {
        let column = |name: Option<&str>, role, kind| ColumnLayout {
            name: name.map(str::to_owned),
            role,
            kind,
        };
        let mut columns = vec![column(None, InputRole::Input, ColumnKind::Csr(self.n_features))];
        if self.label.is_some() {
            columns.push(column(None, InputRole::Label, ColumnKind::Dense(1)));
        }
        if self.weight.is_some() {
            columns.push(column(Some(WEIGHT), InputRole::Label, ColumnKind::Dense(1)));
        }
        columns
    }

    fn parser(&self, _: &[u8]) -> NoText {
        NoText
    }

    fn known_base(&self) -> Option<IndexBase> {
        let is_one = self.index_base == IndexBase::One;
        Some(if is_one { IndexBase::One } else { IndexBase::Zero })
    }

    fn survey_format(&self) -> Option<Self> {
        self.n_features.is_none().then(|| self.clone())
    }

    fn settle(self, survey: &Survey) -> Self {
        let found = survey.largest.map_or(0, |largest| largest as usize + 1);
        SparseColumns { n_features: self.n_features.or(Some(found)), ..self }
    }

    fn columnar(&self, schema: &Schema) -> Option<Result<Box<dyn BatchParser<T>>, String>> {
        let parser = self.find(schema);
        Some(parser.map(|parser| Box::new(parser) as Box<dyn BatchParser<T>>))
    }
}

/// Refuses text, which has no columns.
#[derive(Debug)]
pub struct NoText;

impl<T: Float> RowParser<T> for NoText {
    fn parse(&mut self, text: &[u8], _: &mut Chunk<T>) -> Result<(), Fault> {
        let expected = "a Parquet or Arrow file";
        let problem = Problem::Expected { expected, found: Excerpt::line(text) };
        Err(Fault { offset: 0, problem })
    }
}

/// Makes samples of the rows of some columns.
#[derive(Debug)]
struct SparseParser {
    format: SparseColumns,
    is_vectors: bool,
    /// The columns in the order vectors, or indices and values; label; weight.
    columns: Vec<(String, DataType, usize)>,
    /// Their positions among those that are read.
    positions: Vec<usize>,
    projection: Vec<usize>,
}

impl<T: Float> BatchParser<T> for SparseParser {
    fn projection(&self) -> &[usize] {
        &self.projection
    }

    fn column(&self, position: usize) -> Option<(&str, &DataType)> {
        self.columns.get(position).map(|(name, data_type, _)| (&name[..], data_type))
    }

    fn parse(
        &mut self,
        batch: &RecordBatch,
        rows: &mut Chunk<T>,
        fault: &mut dyn FnMut(RowFault) -> bool,
    ) {
        let array = |at: usize| batch.column(self.positions[at]);
        let entries = if self.is_vectors {
            array(0).as_any().downcast_ref::<StructArray>().and_then(Entries::of_vectors)
        } else {
            Entries::of_lists(array(0), array(1))
        };
        // The types were checked with the schema.
        let Some(mut entries) = entries else { return };
        let n_before = if self.is_vectors { 1 } else { 2 };
        let n_labels = self.columns.len() - n_before;
        let labels: Vec<LabelCells<'_>> =
            (0..n_labels).map(|at| LabelCells::of(array(n_before + at))).collect();
        let SparseColumns { sorts, adds, ignores_unknown, n_features, label, .. } = &self.format;
        let mut of_row = SparseRow {
            one: u64::from(self.format.index_base == IndexBase::One),
            n_features: n_features.map(|n| n as u64),
            size: None,
            sorts: *sorts,
            adds: *adds,
            ignores_unknown: *ignores_unknown,
            unsorted: Vec::new(),
        };
        for row in 0..batch.num_rows() {
            let weight = usize::from(label.is_some());
            let mut added = entries.push(row, &mut of_row, rows.csr(0));
            for (at, cells) in labels.iter().enumerate() {
                let Ok(()) = added else { break };
                added = match cells.number::<T>(row, at == weight) {
                    Ok(value) => {
                        rows.dense(1 + at).push(value);
                        Ok(())
                    }
                    Err((expected, found)) => {
                        let column = self.columns[n_before + at].0.clone();
                        Err((n_before + at, Problem::Field { column, expected, found }))
                    }
                };
            }
            match added {
                Ok(()) => rows.finish_row(),
                Err((column, problem)) => {
                    rows.discard_partial();
                    if !fault(RowFault { row, column: Some(column), problem }) {
                        return;
                    }
                }
            }
        }
    }
}

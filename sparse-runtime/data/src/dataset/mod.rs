//! Datasets in memory: named columns with one value, or one row of values, for each sample.

mod binary;

use super::weights::check_weights;
use super::{Classes, Column, ColumnName, ColumnValues, DataError, IdMap, ReadReport, WEIGHT};
use nnz_arrays::formats::{Csr, Dense, FormatError};
use nnz_arrays::in_library;
use nnz_arrays::kernels::TooManyThreads;
use nnz_step::model::InputRole;
use sparse_core::element::Float;
use sparse_core::storage::Storage;
use std::fmt;

/// Data in memory, with elements of type `T`.
///
/// Invariant: at least one input; all columns have the same number of samples; names are unique;
/// numbers are finite, as every constructor checks.
///
/// ```
/// use nnz::data::Dataset;
/// use nnz::formats::Csr;
///
/// let x = Csr::new(4, vec![0, 2, 3], vec![1u32, 3, 0], vec![2.0f32, 1.5, 4.0])?;
/// let data = Dataset::new(x, vec![1.0, -1.0])?;
/// assert_eq!((data.n_rows(), data.n_features()), (2, 4));
/// println!("{data}");
/// # Ok::<(), nnz::Error>(())
/// ```
#[derive(Clone)]
pub struct Dataset<T: Float = f32> {
    columns: Vec<Column<T>>,
    n_rows: usize,
    classes: Option<Classes>,
    report: Option<ReadReport>,
    /// By the name of the column.
    id_maps: Vec<(String, IdMap)>,
}

impl<T: Float> Dataset<T> {
    /// Features and one label for each sample, both without a name, so that they bind to a model by
    /// their role.
    ///
    /// # Errors
    ///
    /// [`DataError::RowCount`], [`DataError::InputNotFinite`] and [`DataError::LabelNotFinite`].
    pub fn new(features: Csr<T>, labels: Vec<T>) -> Result<Self, DataError> {
        let labels = Dense::new([labels.len()], labels)?;
        Dataset::from_columns(vec![
            Column::new(None, InputRole::Input, ColumnValues::Csr(features)),
            Column::new(None, InputRole::Label, ColumnValues::Dense(labels)),
        ])
    }

    /// Features without labels: enough to predict.
    ///
    /// # Errors
    ///
    /// [`DataError::InputNotFinite`].
    pub fn features_only(features: Csr<T>) -> Result<Self, DataError> {
        let features = ColumnValues::Csr(features);
        Dataset::from_columns(vec![Column::new(None, InputRole::Input, features)])
    }

    /// Data of several named arrays.
    ///
    /// ```
    /// use nnz::data::Dataset;
    /// use nnz::formats::{Csr, Dense};
    ///
    /// let data = Dataset::<f32>::builder()
    ///     .input("words", Csr::<f32>::zeros(3, 1000))
    ///     .input("user", Dense::new([3], vec![7u32, 7, 2])?)
    ///     .label("rating", Dense::new([3], vec![4.0f32, 5.0, 1.0])?)
    ///     .build()?;
    /// assert_eq!(data.n_rows(), 3);
    /// # Ok::<(), nnz::Error>(())
    /// ```
    pub fn builder() -> DatasetBuilder<T> {
        DatasetBuilder { columns: Vec::new() }
    }

    pub(super) fn from_columns(columns: Vec<Column<T>>) -> Result<Self, DataError> {
        let n_rows = columns
            .iter()
            .find(|column| column.role() == InputRole::Input)
            .ok_or(DataError::NoInput)?
            .values()
            .n_rows();
        let dataset = Dataset { columns, n_rows, classes: None, report: None, id_maps: Vec::new() };
        dataset.check()?;
        Ok(dataset)
    }

    fn check(&self) -> Result<(), DataError> {
        let first = &self.columns[0];
        for (position, column) in self.columns.iter().enumerate() {
            let (found, expected) = (column.values().n_rows(), first.values().n_rows());
            if found != expected {
                return Err(DataError::RowCount {
                    column: self.column_name(position),
                    found,
                    first: self.column_name(0),
                    expected,
                });
            }
            let before = &self.columns[..position];
            if let Some(name) = column.name()
                && before.iter().any(|other| other.name() == Some(name))
            {
                return Err(DataError::DuplicateName { name: name.to_owned() });
            }
            if let Some((row, place, value)) = column.values().not_finite() {
                let name = self.column_name(position);
                return Err(match column.role() {
                    InputRole::Label => DataError::LabelNotFinite { column: name, row, value },
                    InputRole::Input => {
                        DataError::InputNotFinite { column: name, row, position: place, value }
                    }
                });
            }
            if let (Some(WEIGHT), InputRole::Label, ColumnValues::Dense(weights)) =
                (column.name(), column.role(), column.values())
            {
                check_weights(weights.values())?;
            }
        }
        Ok(())
    }

    /// The number of samples.
    pub fn n_rows(&self) -> usize {
        self.n_rows
    }

    /// The number of features: the width of the first csr input or, without one, the number of
    /// elements that a sample has in the first input.
    pub fn n_features(&self) -> usize {
        let data = self;
        in_library!(<T> Dataset::<T>::first_width => (data: &Dataset<T>) -> usize)
    }

    fn first_width(&self) -> usize {
        let first = || self.columns_of(InputRole::Input).map(|(_, column)| column.values()).next();
        self.csr_input().or_else(first).map_or(0, |values| values.shape().row_size())
    }

    /// The first csr input, with or without values.
    pub(super) fn csr_input(&self) -> Option<&ColumnValues<T>> {
        let mut inputs = self.columns_of(InputRole::Input).map(|(_, column)| column.values());
        inputs.find(|values| values.storage() == Storage::Csr)
    }

    /// The same data with other entries in place of the [first csr input](Self::csr_input), for the
    /// same number of samples.
    pub(super) fn with_csr_input(mut self, values: ColumnValues<T>) -> Self {
        let is_csr = |column: &&mut Column<T>| {
            column.role() == InputRole::Input && column.values().storage() == Storage::Csr
        };
        if let Some(column) = self.columns.iter_mut().find(is_csr) {
            *column = column.with_values(values);
        }
        self
    }

    /// The first csr input of numbers.
    pub fn features(&self) -> Option<&Csr<T>> {
        self.columns_of(InputRole::Input).find_map(|(_, column)| match column.values() {
            ColumnValues::Csr(features) => Some(features),
            _ => None,
        })
    }

    /// The first label.
    pub fn labels(&self) -> Option<&ColumnValues<T>> {
        self.columns_of(InputRole::Label).map(|(_, column)| column.values()).next()
    }

    /// The classes that the ids of the label stand for, if [`into_classes`](Dataset::into_classes)
    /// or [`with_classes`](Dataset::with_classes) made them.
    pub fn classes(&self) -> Option<&Classes> {
        self.classes.as_ref()
    }

    /// The reader's report on the file of this data.
    pub fn report(&self) -> Option<&ReadReport> {
        self.report.as_ref()
    }

    /// The map of a column's ids, if a reader numbered them.
    pub fn id_map(&self, column: &str) -> Option<&IdMap> {
        self.id_maps.iter().find(|(name, _)| name == column).map(|(_, map)| map)
    }

    /// All id maps, by the names of their columns.
    pub(super) fn id_maps(&self) -> impl Iterator<Item = (&str, &IdMap)> {
        self.id_maps.iter().map(|(name, map)| (&name[..], map))
    }

    /// All columns, in the order given.
    pub fn columns(&self) -> &[Column<T>] {
        &self.columns
    }

    /// The column with this name.
    pub fn column(&self, name: &str) -> Option<&Column<T>> {
        self.columns.iter().find(|column| column.name() == Some(name))
    }

    /// Turns the labels into class ids: 0 for the smallest label, and so on, by the distinct labels
    /// that occur. O(n log n) for n samples.
    ///
    /// # Errors
    ///
    /// [`DataError::NothingToClassify`] without a label of one real number a sample.
    ///
    /// ```
    /// use nnz::data::Dataset;
    /// use nnz::formats::Csr;
    ///
    /// let train = Dataset::new(Csr::<f32>::zeros(3, 1), vec![5.0, 1.0, 5.0])?;
    /// let (train, classes) = train.into_classes()?;
    /// assert_eq!(classes.labels(), [1.0, 5.0]);
    /// let test = Dataset::new(Csr::<f32>::zeros(1, 1), vec![2.0])?;
    /// let error = test.with_classes(&classes).err().unwrap();
    /// let why = error.to_string();
    /// assert_eq!(why, "row 0 has the label 2, which is not among the 2 classes {1, 5}");
    /// # Ok::<(), nnz::Error>(())
    /// ```
    pub fn into_classes(self) -> Result<(Self, Classes), DataError> {
        let (_, labels) = self.real_label().ok_or(DataError::NothingToClassify)?;
        let classes = Classes::of(labels.values().iter().map(|label| label.as_f64()));
        Ok((self.with_classes(&classes)?, classes))
    }

    /// Turns the labels into the ids of known classes, those of the training data.
    ///
    /// # Errors
    ///
    /// [`DataError::UnknownClass`] for a label of another class, and
    /// [`DataError::NothingToClassify`].
    pub fn with_classes(mut self, classes: &Classes) -> Result<Self, DataError> {
        let (position, labels) = self.real_label().ok_or(DataError::NothingToClassify)?;
        let ids = labels
            .values()
            .iter()
            .enumerate()
            .map(|(row, label)| {
                let label = label.as_f64();
                let unknown = || DataError::UnknownClass { row, label, known: classes.clone() };
                classes.id(label).ok_or_else(unknown)
            })
            .collect::<Result<Vec<u32>, _>>()?;
        let ids = ColumnValues::from(ids);
        self.columns[position] = self.columns[position].with_values(ids);
        self.classes = Some(classes.clone());
        Ok(self)
    }

    /// The same data with csr inputs as patterns, without the memory of their values, for models
    /// with `csr<unit>`. O(nnz).
    ///
    /// # Errors
    ///
    /// [`DataError::NotUnit`] for the first value that is not 1.
    ///
    /// ```
    /// use nnz::data::Dataset;
    /// use nnz::formats::Csr;
    ///
    /// let x = Csr::from_rows(1000, [vec![(3, 1.0f32), (70, 1.0)], vec![(999, 1.0)]])?;
    /// let data = Dataset::new(x, vec![1.0, 0.0])?.into_units()?;
    /// assert!(data.to_string().contains("csr unit [2, 1000], 3 non-zeros"));
    /// # Ok::<(), nnz::Error>(())
    /// ```
    pub fn into_units(mut self) -> Result<Self, DataError> {
        for position in 0..self.columns.len() {
            let column = &self.columns[position];
            if let (InputRole::Input, ColumnValues::Csr(csr)) = (column.role(), column.values()) {
                let name = || self.column_name(position);
                let declared = column.name().unwrap_or("x");
                let units = csr.view().units();
                let units = units.map_err(|error| DataError::not_unit(error, name(), declared))?;
                self.columns[position] = column.with_values(ColumnValues::Unit(units.to_owned()));
            }
        }
        Ok(self)
    }

    /// The same data with the csr inputs stored once more, divided by columns among `threads`
    /// threads. In a step on that number of threads each thread then reads only its own entries;
    /// two threads together read half as much. The bits of the step are the same. It takes the
    /// memory of the inputs once more, and a pass over them. It pays for some epochs of large
    /// batches, of at least 512 samples, on several threads
    /// (`Trainer::parallel`).
    ///
    /// Call it last: methods that make other data of these drop the copy. O(nnz) on each thread; at
    /// most 32 of them.
    ///
    /// # Errors
    ///
    /// [`DataError::Format`] if there is not enough memory, or for more threads than
    /// [`MAX_THREADS`](nnz_arrays::kernels::MAX_THREADS).
    ///
    /// ```
    /// use nnz::data::synthetic;
    /// let data = synthetic::click_log(100, 50, 4, 1)?.divided_for(2)?;
    /// assert!(data.to_string().contains("divided for 2 threads"));
    /// # Ok::<(), nnz::Error>(())
    /// ```
    pub fn divided_for(mut self, threads: usize) -> Result<Self, DataError> {
        TooManyThreads::check("divided_for", threads).map_err(FormatError::from)?;
        let is_input = |column: &Column<T>| column.role() == InputRole::Input;
        self.columns = self
            .columns
            .into_iter()
            .map(|column| if is_input(&column) { column.divided_for(threads) } else { Ok(column) })
            .collect::<Result<_, _>>()?;
        Ok(self)
    }

    /// The same inputs with other labels: the features of `labels`, sample by sample, as one csr
    /// label. Use it for labels that are sparse rows, such as tags, in a file of their own. Earlier
    /// labels are dropped.
    ///
    /// # Errors
    ///
    /// [`DataError::NoInput`] if `labels` has no csr input, [`DataError::RowCount`] and
    /// [`DataError::LabelNotFinite`].
    pub fn with_labels_from(self, labels: Dataset<T>) -> Result<Self, DataError> {
        let report = self.report;
        let is_csr = |values: &ColumnValues<T>| values.storage() == Storage::Csr;
        let labels = labels.columns.into_iter();
        let labels = labels
            .filter(|column| column.role() == InputRole::Input)
            .map(Column::into_values)
            .find(is_csr)
            .ok_or(DataError::NoInput)?;
        let mut columns = self.columns;
        columns.retain(|column| column.role() == InputRole::Input);
        columns.push(Column::new(None, InputRole::Label, labels));
        Ok(Dataset { report, id_maps: self.id_maps, ..Dataset::from_columns(columns)? })
    }

    /// The same data with one more column, which replaces one of the same name.
    pub(super) fn with_column(mut self, column: Column<T>) -> Result<Self, DataError> {
        self.columns.retain(|known| column.name().is_none() || known.name() != column.name());
        self.columns.push(column);
        let Dataset { classes, report, id_maps, .. } = self;
        Ok(Dataset { classes, report, id_maps, ..Dataset::from_columns(self.columns)? })
    }

    /// The first label of one real number a sample that is not the weight of samples, and its
    /// position.
    fn real_label(&self) -> Option<(usize, &Dense<T>)> {
        let mut labels =
            self.columns_of(InputRole::Label).filter(|(_, column)| column.name() != Some(WEIGHT));
        labels.find_map(|(position, column)| match column.values() {
            ColumnValues::Dense(labels) if labels.shape().row_size() == 1 => {
                Some((position, labels))
            }
            _ => None,
        })
    }

    fn columns_of(&self, role: InputRole) -> impl Iterator<Item = (usize, &Column<T>)> {
        self.columns.iter().enumerate().filter(move |(_, column)| column.role() == role)
    }

    pub(super) fn column_name(&self, position: usize) -> ColumnName {
        ColumnName {
            name: self.columns[position].name().map(str::to_owned),
            role: self.columns[position].role(),
            position,
        }
    }

    /// The same data for a model of another `dtype`: each number is rounded to the nearest one of
    /// that type; ids and patterns stay. O(stored values).
    ///
    /// # Errors
    ///
    /// [`DataError::LabelNotFinite`] for a label beyond the range of the type,
    /// [`DataError::BeyondElement`] for a finite number of an input beyond it.
    ///
    /// ```
    /// use nnz::data::synthetic;
    /// let data = synthetic::click_log(100, 50, 4, 1)?.cast::<f64>()?;
    /// assert_eq!(data.n_rows(), 100);
    /// # Ok::<(), nnz::Error>(())
    /// ```
    pub fn cast<U: Float>(&self) -> Result<Dataset<U>, DataError> {
        let columns = self.columns.iter().enumerate().map(|(position, column)| {
            let values = match column.values() {
                ColumnValues::Csr(csr) => ColumnValues::Csr(csr.cast()),
                ColumnValues::Unit(csr) => ColumnValues::Unit(csr.clone()),
                ColumnValues::Dense(dense) => ColumnValues::Dense(dense.cast()),
                ColumnValues::Ids(ids) => ColumnValues::Ids(ids.clone()),
            };
            if column.role() == InputRole::Input
                && let Some((row, ..)) = values.not_finite()
            {
                let column = self.column_name(position);
                return Err(DataError::BeyondElement { column, row, element: U::TYPE });
            }
            Ok(Column::new(column.name().map(str::to_owned), column.role(), values))
        });
        Ok(Dataset {
            classes: self.classes.clone(),
            report: self.report.clone(),
            id_maps: self.id_maps.clone(),
            ..Dataset::from_columns(columns.collect::<Result<_, _>>()?)?
        })
    }

    /// The same columns with other values, which all have the same number of samples.
    pub(super) fn map_values(
        &self,
        mut values: impl FnMut(&ColumnValues<T>) -> Result<ColumnValues<T>, DataError>,
    ) -> Result<Self, DataError> {
        let columns = self.columns.iter();
        let columns: Vec<Column<T>> = columns
            .map(|column| Ok(column.with_values(values(column.values())?)))
            .collect::<Result<_, DataError>>()?;
        Ok(Dataset {
            n_rows: columns[0].values().n_rows(),
            columns,
            classes: self.classes.clone(),
            report: self.report.clone(),
            id_maps: self.id_maps.clone(),
        })
    }

    /// Shifts the places of skipped samples by some lines, which are counted only if there are any.
    pub(super) fn move_skipped<E>(
        &mut self,
        lines: impl FnOnce() -> Result<u64, E>,
    ) -> Result<(), E> {
        let skipped = self.report.as_mut().map_or(&mut [][..], |report| &mut report.first_skipped);
        if !skipped.is_empty() {
            let lines = lines()?;
            skipped.iter_mut().for_each(|row| row.place.line += lines);
        }
        Ok(())
    }

    pub(super) fn with_report(self, report: ReadReport) -> Self {
        Dataset { report: Some(report), ..self }
    }

    pub(super) fn with_saved(
        self,
        classes: Option<Classes>,
        id_maps: Vec<(String, IdMap)>,
    ) -> Self {
        Dataset { classes, id_maps, ..self }
    }

    pub(super) fn with_id_maps(self, maps: Vec<(&'static str, IdMap)>) -> Self {
        let id_maps = maps.into_iter().map(|(name, map)| (name.to_owned(), map)).collect();
        Dataset { id_maps, ..self }
    }
}

/// The content, one line a column.
impl<T: Float> fmt::Display for Dataset<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} rows", self.n_rows)?;
        if let Some(report) = &self.report {
            write!(f, " from {report}")?;
        }
        for column in &self.columns {
            write!(f, "\n  {column}")?;
            if let (InputRole::Label, ColumnValues::Ids(_), Some(classes)) =
                (column.role(), column.values(), &self.classes)
            {
                write!(f, " of {} classes {classes}", classes.len())?;
            }
        }
        Ok(())
    }
}

impl<T: Float> fmt::Debug for Dataset<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// Collects named columns; see [`Dataset::builder`].
#[derive(Clone, Debug)]
pub struct DatasetBuilder<T: Float = f32> {
    columns: Vec<Column<T>>,
}

impl<T: Float> DatasetBuilder<T> {
    /// Adds an input.
    #[must_use]
    pub fn input(self, name: impl Into<String>, values: impl Into<ColumnValues<T>>) -> Self {
        self.column(name.into(), InputRole::Input, values.into())
    }

    /// Adds a label.
    #[must_use]
    pub fn label(self, name: impl Into<String>, values: impl Into<ColumnValues<T>>) -> Self {
        self.column(name.into(), InputRole::Label, values.into())
    }

    /// The dataset of these columns.
    ///
    /// # Errors
    ///
    /// [`DataError::NoInput`], [`DataError::RowCount`], [`DataError::DuplicateName`],
    /// [`DataError::InputNotFinite`] and [`DataError::LabelNotFinite`].
    pub fn build(self) -> Result<Dataset<T>, DataError> {
        Dataset::from_columns(self.columns)
    }

    fn column(mut self, name: String, role: InputRole, values: ColumnValues<T>) -> Self {
        self.columns.push(Column::new(Some(name), role, values));
        self
    }
}

#[cfg(test)]
mod tests;

//! Writing a dataset as LibSVM text.

use crate::number::write_number;
use crate::text_file::write_text;
use crate::{ColumnValues, DataError, Dataset, ReadError};
use nnz_arrays::formats::{Csr, Dense, IdsView};
use sparse_core::element::{Float, Stored, Unit};
use std::io::{self, Write};
use std::path::Path;

/// Writes the features and the label as LibSVM text, with indices counted from one. A name that
/// ends in `.gz` is compressed (feature `gzip`); one that ends in `.zst` is refused, since a reader
/// would decompress it. Class ids are written as the labels that they stand for.
///
/// Numbers have the shortest digits that read back to the same bits. The file is replaced
/// atomically: an existing file stays whole until the new one is.
///
/// # Errors
///
/// [`ReadError::Data`] unless the data has a csr input and one label a sample, or for an entry that
/// would not be read back: a value that is not finite, a column of 2⁶³ - 1 or more. Nothing is
/// written then. [`ReadError::Io`], [`ReadError::FeatureDisabled`], and [`ReadError::Content`] for
/// the ending `.zst`.
///
/// ```
/// use nnz::data::libsvm::{self, IndexBase};
/// use nnz::data::Dataset;
/// use nnz::formats::Csr;
///
/// let x = Csr::from_rows(4, [vec![(1, 0.5f32), (3, 1.0)], vec![]])?;
/// let path = std::env::temp_dir().join("nnz-doc-write.svm");
/// libsvm::write(&path, &Dataset::new(x.clone(), vec![1.0, -1.0])?)?;
/// assert_eq!(std::fs::read_to_string(&path).unwrap(), "1 2:0.5 4:1\n-1\n");
/// assert_eq!(libsvm::read(&path, IndexBase::One)?.features(), Some(&x));
/// # std::fs::remove_file(&path).unwrap();
/// # Ok::<(), nnz::Error>(())
/// ```
pub fn write<T: Float>(path: impl AsRef<Path>, dataset: &Dataset<T>) -> Result<(), ReadError> {
    let path = path.as_ref();
    let file = || path.display().to_string();
    let rows = written_columns(dataset)
        .map_err(|source| ReadError::Data { file: file(), source: Box::new(source) })?;
    write_text(path, |writer| rows.write(writer))
}

/// Like [`write()`], to a writer, uncompressed; `name` stands for the file in messages. It writes a
/// number at a time: wrap a file in a buffer.
///
/// # Errors
///
/// [`ReadError::Data`] and [`ReadError::Io`].
pub fn write_to<T: Float>(
    name: &str,
    mut writer: impl Write,
    dataset: &Dataset<T>,
) -> Result<(), ReadError> {
    let file = || name.to_owned();
    written_columns(dataset)
        .map_err(|source| ReadError::Data { file: file(), source: Box::new(source) })?
        .write(&mut writer)
        .map_err(|source| ReadError::Io { file: file(), source })
}

/// The columns that are written.
struct WrittenColumns<'a, T: Float> {
    features: Features<'a, T>,
    labels: Labels<'a, T>,
}

enum Features<'a, T: Float> {
    Numbers(&'a Csr<T>),
    Units(&'a Csr<Unit>),
}

enum Labels<'a, T: Float> {
    Numbers(&'a Dense<T>),
    Ids(IdsView<'a>, &'a [f64]),
}

fn written_columns<T: Float>(dataset: &Dataset<T>) -> Result<WrittenColumns<'_, T>, DataError> {
    let missing = |role| DataError::NotWritable { role };
    let classes = dataset.classes().map_or(&[][..], |classes| classes.labels());
    let labels = dataset.labels().filter(|labels| labels.shape().row_size() == 1);
    let rows = WrittenColumns {
        features: match dataset.csr_input() {
            Some(ColumnValues::Csr(features)) => Features::Numbers(features),
            Some(ColumnValues::Unit(features)) => Features::Units(features),
            _ => return Err(missing("csr input")),
        },
        labels: match labels.ok_or_else(|| missing("label of one number a row"))? {
            ColumnValues::Dense(labels) => Labels::Numbers(labels),
            ColumnValues::Ids(ids) => Labels::Ids(ids.view(), classes),
            ColumnValues::Csr(_) | ColumnValues::Unit(_) => {
                return Err(missing("label of one number a row"));
            }
        },
    };
    match rows.features {
        Features::Numbers(features) => check_entries(features, |value| value.as_f64())?,
        Features::Units(features) => check_entries(features, |_| 1.0)?,
    }
    Ok(rows)
}

/// Refuses entries that a reader would refuse; the dataset has checked its labels.
pub(crate) fn check_entries<V: Stored>(
    features: &Csr<V>,
    number: impl Fn(V) -> f64,
) -> Result<(), DataError> {
    // Counted from one the largest index is 2⁶³ - 1.
    const N_COLUMNS: u64 = (1 << 63) - 1;
    for (row, entries) in features.iter_rows().enumerate() {
        for (column, value) in entries {
            let value = number(value);
            if !value.is_finite() || column as u64 >= N_COLUMNS {
                return Err(DataError::EntryNotWritable { row, column, value });
            }
        }
    }
    Ok(())
}

impl<T: Float> WrittenColumns<'_, T> {
    fn write(&self, writer: &mut dyn Write) -> io::Result<()> {
        match self.features {
            Features::Numbers(features) => self.write_rows(writer, features, |value| value),
            Features::Units(features) => self.write_rows(writer, features, |_| T::one()),
        }
    }

    fn write_rows<V: Stored>(
        &self,
        writer: &mut dyn Write,
        features: &Csr<V>,
        number: impl Fn(V) -> T,
    ) -> io::Result<()> {
        for (i, row) in features.iter_rows().enumerate() {
            match &self.labels {
                Labels::Numbers(labels) => write_number(writer, labels.values()[i])?,
                Labels::Ids(ids, classes) => match ids.get(i).and_then(|id| classes.get(id)) {
                    Some(&label) => write_number(writer, label)?,
                    None => write!(writer, "{}", ids.number(i))?,
                },
            }
            for (column, value) in row {
                write!(writer, " {}:", column as u64 + 1)?;
                write_number(writer, number(value))?;
            }
            writer.write_all(b"\n")?;
        }
        Ok(())
    }
}

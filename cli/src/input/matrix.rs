//! Matrices of other programs: MatrixMarket and SciPy's npz, with labels in a file beside them.

use super::{DataFiles, Format, Known, Reading, Unknown};
use nnz::data::{ColumnValues, DataError, OnError, ReadError, matrix_market, npz};
use nnz::prelude::*;
use std::path::Path;

/// The array of a npz file that holds labels, where no file of labels is named.
const LABELS: &str = "y";

impl Reading {
    /// Reads a matrix, with labels if there are to be some.
    pub(super) fn read_matrix(
        &self,
        files: &DataFiles,
        format: Format,
        known: &Known,
    ) -> Result<Dataset, ReadError> {
        let path = files.first();
        let refuse = |message: String| ReadError::Content { file: files.to_string(), message };
        if files.paths().len() > 1 {
            let message =
                "several matrices are not read as one: stack them, with SciPy by `vstack`";
            return Err(refuse(message.to_owned()));
        }
        let matrix: Csr = match format {
            Format::Npz => npz::read(path)?,
            // Labels would stand beside other rows if rows were left out; entries may be.
            _ => {
                let (matrix, report) = matrix_market::read_with(path, self.on_error())?;
                if report.n_skipped > 0 {
                    eprintln!("{report}");
                }
                matrix
            }
        };
        let matrix = match known.n_features {
            Some(n_features) if n_features != matrix.n_cols() => {
                self.of_width(matrix, n_features, known).map_err(refuse)?
            }
            _ => matrix,
        };
        let data_error = |source: DataError| ReadError::Data {
            file: files.to_string(),
            source: Box::new(source),
        };
        if known.no_labels {
            return Dataset::features_only(matrix).map_err(data_error);
        }
        let labels = match (&self.labels, format) {
            (Some(labels), _) => read_labels(labels)?,
            (None, Format::Npz) => match npz::read_numbers(path, LABELS)? {
                Some(labels) => labels,
                None => return Err(refuse(no_labels("no array `y`"))),
            },
            (None, _) => return Err(refuse(no_labels("no labels"))),
        };
        if labels.len() != matrix.n_rows() {
            let place = self
                .labels
                .as_deref()
                .map_or("array `y`".to_owned(), |path| format!("`{}`", path.display()));
            return Err(refuse(format!(
                "the matrix has {} rows, but {place} has {} labels",
                matrix.n_rows(),
                labels.len()
            )));
        }
        Dataset::new(matrix, labels).map_err(data_error)
    }

    /// The matrix with as many columns as a model has. Entries beyond them are refused, or left
    /// out.
    fn of_width(&self, matrix: Csr, n_features: usize, known: &Known) -> Result<Csr, String> {
        let ignores = self.unknown == Some(Unknown::Ignore);
        for (row, entries) in matrix.iter_rows().enumerate() {
            for (column, _) in entries {
                if column >= n_features && !ignores {
                    let whose = if known.is_of_model { "the model has" } else { "there are" };
                    return Err(format!(
                        "column {} of row {} is unknown: {whose} {n_features} features; --unknown ignore leaves such entries out",
                        column + 1,
                        row + 1
                    ));
                }
            }
        }
        let rows = matrix.iter_rows();
        let rows = rows.map(|entries| entries.filter(move |(column, _)| *column < n_features));
        Csr::from_rows(n_features, rows).map_err(|error| error.to_string())
    }
}

fn no_labels(what: &str) -> String {
    format!(
        "it has {what}: name a file of labels by --labels, an array of NumPy (.npy) or text with a number a line; to score without labels, --no-labels"
    )
}

/// The labels in an array of NumPy, or in text with a number a line.
fn read_labels(path: &Path) -> Result<Vec<f32>, ReadError> {
    if path.extension().is_some_and(|ending| ending == "npy") {
        return npz::read_npy(path);
    }
    // Samples of LibSVM without entries.
    let data = libsvm::Reader::new().on_error(OnError::Fail).read_path(path)?;
    if data.features().is_some_and(|features| features.nnz() > 0) {
        let message = "it is read as labels, a number a line, but its lines go on".to_owned();
        return Err(ReadError::Content { file: path.display().to_string(), message });
    }
    match data.labels() {
        Some(ColumnValues::Dense(labels)) => Ok(labels.values().to_vec()),
        _ => Ok(Vec::new()),
    }
}

//! Matrices of other programs: MatrixMarket and SciPy's npz, with labels in a file beside them.

use super::{DataFiles, Format, Known, Reading, Unknown};
use nnz::data::{ColumnValues, DataError, OnError, ReadError, matrix_market, npz};
use nnz::prelude::*;
use std::path::Path;

/// The array of a npz file that holds labels, where no file of labels is named.
const LABELS: &str = "y";

impl Reading {
    /// Reads matrices as one, their rows one after the other, with labels if there are to be some:
    /// those of a file that is named are of all rows, else each matrix has its own.
    pub(super) fn read_matrices(
        &self,
        files: &DataFiles,
        known: &Known,
    ) -> Result<Dataset, ReadError> {
        let (mut matrices, mut labels) = (Vec::new(), Vec::new());
        for path in files.paths() {
            let (matrix, own) = self.read_matrix(path, known)?;
            if let Some(first) = matrices.first().map(Csr::n_cols)
                && first != matrix.n_cols()
            {
                return Err(content(
                    path,
                    format!(
                        "the matrix has {} columns, but that of `{}` has {first}: say the number of features by --features",
                        matrix.n_cols(),
                        files.first().display()
                    ),
                ));
            }
            matrices.push(matrix);
            labels.extend(own);
        }
        let matrix = match &matrices[..] {
            [_] => matrices.remove(0),
            several => {
                let n_cols = several.first().map_or(0, Csr::n_cols);
                Csr::from_rows(n_cols, several.iter().flat_map(Csr::iter_rows))
                    .map_err(|error| content(files.first(), error.to_string()))?
            }
        };
        let data_error = |source: DataError| ReadError::Data {
            file: files.to_string(),
            source: Box::new(source),
        };
        if known.no_labels {
            return Dataset::features_only(matrix).map_err(data_error);
        }
        if let Some(path) = &self.labels {
            labels = read_labels(path)?;
            check_count(files.first(), &matrix, &format!("`{}`", path.display()), labels.len())?;
        }
        Dataset::new(matrix, labels).map_err(data_error)
    }

    /// A matrix, and the labels that its file has: none where they are not read, or are elsewhere.
    fn read_matrix(&self, path: &Path, known: &Known) -> Result<(Csr, Vec<f32>), ReadError> {
        // A model of one kind of matrix reads the other.
        let format = match (Format::of(path), self.format_of(path)) {
            (found, _) if found.is_matrix() => found,
            (_, said) => said,
        };
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
            Some(n_features) if n_features != matrix.n_cols() => self
                .of_width(matrix, n_features, known)
                .map_err(|message| content(path, message))?,
            _ => matrix,
        };
        if known.no_labels || self.labels.is_some() {
            return Ok((matrix, Vec::new()));
        }
        let labels = match format {
            Format::Npz => match npz::read_numbers(path, LABELS)? {
                Some(labels) => labels,
                None => return Err(content(path, no_labels("no array `y`"))),
            },
            _ => return Err(content(path, no_labels("no labels"))),
        };
        check_count(path, &matrix, "array `y`", labels.len())?;
        Ok((matrix, labels))
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

fn content(path: &Path, message: String) -> ReadError {
    ReadError::Content { file: path.display().to_string(), message }
}

/// Refuses labels that are not as many as rows.
fn check_count(path: &Path, matrix: &Csr, place: &str, n_labels: usize) -> Result<(), ReadError> {
    if n_labels == matrix.n_rows() {
        return Ok(());
    }
    let n_rows = matrix.n_rows();
    Err(content(path, format!("the matrix has {n_rows} rows, but {place} has {n_labels} labels")))
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

//! Errors of reading, with the flags that mend them.

use super::{DataFiles, Format, Known, Reading};
use crate::Failure;
use nnz::data::{Problem, ReadError};
use nnz::prelude::*;
use std::path::Path;

impl Reading {
    /// An error of reading, with the flag that mends it, or with what the file was taken for.
    pub(super) fn explained(&self, error: Error, path: &Path, known: &Known) -> Failure {
        match (self.format, &error) {
            (_, Error::Read(ReadError::Syntax { place, problem }))
                if self.lead(problem, known).is_some() =>
            {
                let lead = self.lead(problem, known).unwrap_or_default();
                format!("{place}: {lead}").into()
            }
            // What its first bytes say is no guess.
            (Some(_), _) | (_, Error::Read(ReadError::OtherFile { .. })) => error.into(),
            (None, _) => format!(
                "{error} (`{}` is read as {}, {}; say another --format if it is not)",
                path.display(),
                Format::of(path).name(),
                Format::reason(path)
            )
            .into(),
        }
    }

    /// A problem of a row that a flag takes, with that flag.
    fn lead(&self, problem: &Problem, known: &Known) -> Option<String> {
        Some(match problem {
            #[cfg(feature = "parquet")]
            Problem::InColumn { problem: within, chunk } => {
                let (column, group) = (&chunk.column, chunk.row_group);
                let lead = self.lead(within, known)?;
                format!("{lead} (column `{column}`, row group {group})")
            }
            Problem::BeyondDeclared { index, n_features, .. } => {
                let whose = if known.is_of_model {
                    format!("the model has {n_features} features")
                } else {
                    format!("--features says {n_features}")
                };
                format!(
                    "index {index} is unknown: {whose}; --unknown ignore leaves such entries out"
                )
            }
            Problem::UnknownId { .. } => {
                let lead = if known.is_scored {
                    "--unknown ignore scores it by what is known"
                } else {
                    "the training data has no such id; --skip leaves such lines out"
                };
                format!("{problem}: {lead}")
            }
            Problem::DuplicateIndex { .. } => format!("{problem}: --repeated add adds the values"),
            Problem::DescendingIndex { .. } => format!("{problem}: --unsorted sort sorts them"),
            _ => return None,
        })
    }
}

/// Reads LibSVM text whose indices a table can have; others are named by line.
pub(super) fn within_reach(
    reader: &libsvm::Reader,
    files: &DataFiles,
) -> Result<Dataset, ReadError> {
    /// More rows of a table of four bytes each are more than any machine has memory for.
    const MOST_FEATURES: usize = 1 << 40;
    let data = reader.read_paths(files.paths())?;
    if data.n_features() <= MOST_FEATURES {
        return Ok(data);
    }
    match reader.clone().n_features(MOST_FEATURES).read_paths(files.paths()) {
        Err(ReadError::Syntax { place, problem: Problem::BeyondDeclared { index, .. } }) => {
            let message = format!(
                "line {}: index {index} is beyond what a table can have, as those of hashes are: fold indices by --hash-bits 22",
                place.line
            );
            Err(ReadError::Content { file: place.file, message })
        }
        // The file has changed since.
        other => other,
    }
}

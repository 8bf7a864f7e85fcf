//! Reports of readers.

use super::SkippedRow;
use super::libsvm::IndexBase;
use std::fmt;

/// A reader's report on a file.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct ReadReport {
    /// The file.
    pub file: String,
    /// The index base, for formats that have one; never [`IndexBase::Detect`].
    pub index_base: Option<IndexBase>,
    /// Whether the base was detected.
    pub detected: bool,
    /// The samples that were skipped under [`OnError::Skip`](super::OnError::Skip).
    pub n_skipped: u64,
    /// The first few of them, with their faults.
    pub first_skipped: Vec<SkippedRow>,
    /// The reason why no [cache](super::Dataset::cached) could be written.
    pub cache_error: Option<String>,
}

impl ReadReport {
    /// For a file of which all samples were read.
    pub(super) fn of_file(file: String) -> Self {
        ReadReport {
            file,
            index_base: None,
            detected: false,
            n_skipped: 0,
            first_skipped: Vec::new(),
            cache_error: None,
        }
    }
}

/// `train.svm, indices from one (detected), 3 rows skipped`.
impl fmt::Display for ReadReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.file)?;
        match self.index_base {
            Some(IndexBase::Zero) => f.write_str(", indices from zero")?,
            Some(IndexBase::One | IndexBase::Detect) => f.write_str(", indices from one")?,
            None => {}
        }
        if self.detected {
            f.write_str(" (detected)")?;
        }
        match self.n_skipped {
            0 => {}
            1 => f.write_str(", 1 row skipped")?,
            n => write!(f, ", {n} rows skipped")?,
        }
        match &self.cache_error {
            Some(error) => write!(f, ", not cached: {error}"),
            None => Ok(()),
        }
    }
}

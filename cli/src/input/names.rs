//! The names of hashed features, by a pass over a file.

use super::{Format, Reading};
use crate::Failure;
use clap::{Args, Command, FromArgMatches};
use nnz::data::{Delimited, FeatureNames, Hashing};
use std::path::Path;

impl Reading {
    /// As of a command line that says nothing.
    pub(crate) fn without_flags() -> Result<Self, Failure> {
        let command = Reading::augment_args(Command::new("reading"));
        Ok(Reading::from_arg_matches(&command.try_get_matches_from(["reading"])?)?)
    }

    /// The names of the features of some columns.
    pub(crate) fn feature_names(
        &self,
        path: &Path,
        columns: Vec<u64>,
    ) -> Result<FeatureNames, Failure> {
        let hashing = Hashing::new(self.hash_bits())?.seed(self.hash_seed());
        Ok(match self.format_of(path) {
            Format::Csv => self.table(path, false)?.feature_names(path, columns)?,
            Format::Criteo => {
                self.crossed(Delimited::criteo(hashing))?.feature_names(path, columns)?
            }
            Format::Vw => self.vowpal_wabbit(hashing)?.feature_names(path, columns)?,
            Format::Words => self.words(hashing)?.feature_names(path, columns)?,
            format => {
                return Err(format!(
                    "--data: the features of {} have numbers and no names: name them by --names",
                    format.name()
                )
                .into());
            }
        })
    }
}

//! The fields of features for field-aware models: columns of a table, or namespaces.

use super::{DataFiles, Format, Reading};
use crate::Failure;
use nnz::data::{Delimited, Hashing, VowpalWabbit};
use std::path::Path;

impl Reading {
    /// Reads the training data for its namespaces, for a model that has them as fields.
    pub(crate) fn find_field_names(&mut self, files: &DataFiles) -> Result<(), Failure> {
        if !self.reads_fields || self.format_of(files.first()) != Format::Vw {
            return Ok(());
        }
        if !files.can_be_read_again() {
            return Err("field-aware-machine: what comes through a pipe is read once, and its fields, the namespaces, are found before: name its file".into());
        }
        let format = VowpalWabbit::new(Hashing::new(self.hash_bits())?);
        self.field_names = format.namespaces(files.paths())?;
        Ok(())
    }

    /// The number of fields of data of this format, where that does not depend on samples.
    pub(crate) fn n_fields(&self, path: &Path) -> nnz::Result<Option<usize>> {
        let hashing = Hashing::new(self.hash_bits())?;
        Ok(match self.format_of(path) {
            _ if !self.reads_fields => None,
            Format::Csv => Some(self.table(path, false)?.n_fields()),
            Format::Criteo => Some(self.crossed(Delimited::criteo(hashing))?.n_fields()),
            Format::Vw => Some(self.vowpal_wabbit(hashing)?.n_fields()),
            _ => None,
        })
    }
}

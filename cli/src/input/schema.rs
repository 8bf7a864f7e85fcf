//! The schema of a csv file: given, read from a file, or inferred; and the scales of its numbers.

use super::{Format, Reading};
use crate::Failure;
use crate::files::check_not_read;
use crate::report::note;
use nnz::data::{DataError, Delimited, Hashing};
use nnz::prelude::*;
use std::path::Path;

impl Reading {
    /// Reads --schema if it is a file, or else infers the schema of the training data from its
    /// label and its first lines, and writes it where it is to be kept.
    pub(crate) fn find_schema(&mut self, path: &Path) -> Result<(), Failure> {
        /// The lines that tell the kinds of columns.
        const FIRST_LINES: usize = 10_000;
        if let Some(file) = self.schema.as_deref().map(Path::new).filter(|file| file.is_file()) {
            let text = std::fs::read_to_string(file)
                .map_err(|error| format!("--schema: `{}`: {error}", file.display()))?;
            self.schema = Some(text.trim().replace('\n', ","));
        }
        if let (Some(label), None) = (&self.label, &self.schema) {
            if path.exists() && !path.is_file() {
                return Err("--label: what comes through a pipe is read once, and the schema is inferred before: say --schema and --header".into());
            }
            let format = self.csv()?.infer(path, label, FIRST_LINES)?;
            note(format_args!("{}: schema {}", path.display(), format.schema()));
            (self.schema, self.header) = (Some(format.schema()), true);
        }
        if let (Some(file), Some(schema)) = (&self.schema_out, &self.schema) {
            check_not_read("--schema-out", file, [path])?;
            std::fs::write(file, format!("{schema}\n"))
                .map_err(|error| format!("--schema-out: `{}`: {error}", file.display()))?;
        }
        Ok(())
    }

    /// Text with fields, whose columns are not declared.
    pub(super) fn csv(&self) -> Result<Delimited> {
        let hashing = Hashing::new(self.hash_bits())?.seed(self.hash_seed());
        let format = Delimited::csv(hashing).header(self.has_header());
        Ok(match self.separator {
            Some(separator) => format.separator(separator as u8),
            None => format,
        })
    }

    /// Reads the training data for the scales of its numeric columns, if it has some and can be
    /// read twice.
    pub(crate) fn measure(&mut self, path: &Path) -> Result<(), Failure> {
        let is_csv = self.format_of(path) == Format::Csv;
        if let Some(schema) = self.schema.as_deref().filter(|_| is_csv && !self.no_scaling)
            && path.is_file()
        {
            let format = self.csv()?.with_schema(schema)?;
            if kinds(schema).any(|kind| kind == "numeric") {
                self.scales = format.measure(path)?;
            }
        }
        Ok(())
    }
}

/// A separator of fields: one byte.
pub(super) fn separator(text: &str) -> Result<char, String> {
    let mut characters = text.chars();
    match (text, characters.next(), characters.next()) {
        ("tab" | "\\t", ..) => Ok('\t'),
        (_, Some(one), None) if one.is_ascii() && !matches!(one, '"' | '\n' | '\r') => Ok(one),
        _ => Err("it is one ASCII character, or `tab`".to_owned()),
    }
}

/// The kinds of the columns of a schema.
fn kinds(schema: &str) -> impl Iterator<Item = &str> {
    schema.split(',').map(|column| column.rsplit(':').next().unwrap_or_default().trim())
}

#[cold]
pub(super) fn no_schema(path: &Path) -> DataError {
    let message = format!(
        "`{}` is read as csv, by its ending or `--format csv`: say which column is the label, `--label NAME` of a file with a header, or what all are, `--schema y:label,age:numeric,…`, or another `--format`",
        path.display()
    );
    DataError::Schema { message }
}

//! The schema of a csv file: given, read from a file, or inferred; and the scales of its numbers.

use super::{DataFiles, Format, Reading, Scaling};
use crate::Failure;
use crate::files::check_not_read;
use crate::report::note;
use nnz::data::{DataError, Delimited, Hashing, OpenQuotes, label_words};
use nnz::prelude::*;
use std::path::{Path, PathBuf};

impl Reading {
    /// Reads --schema if it is a file, or else infers the schema of the training data from its
    /// label and its first lines, and writes it where it is to be kept.
    pub(crate) fn find_schema(&mut self, files: &DataFiles) -> Result<(), Failure> {
        /// The lines that tell the kinds of columns.
        const FIRST_LINES: usize = 10_000;
        if let Some(file) = self.schema.as_deref().map(Path::new).filter(|file| file.is_file()) {
            let text = std::fs::read_to_string(file)
                .map_err(|error| format!("--schema: `{}`: {error}", file.display()))?;
            self.schema = Some(text.trim().replace('\n', ","));
        }
        let is_sparse = self.format_of(files.first()).is_sparse_columns();
        if let (Some(label), None, false) = (&self.label, &self.schema, is_sparse) {
            if !files.can_be_read_again() {
                return Err("--label: what comes through a pipe is read once, and the schema is inferred before: say --schema and --header".into());
            }
            let mut schema = self.csv()?.infer(files.first(), label, FIRST_LINES)?.schema();
            if let Some(weight) = &self.weight {
                schema = with_weight(&schema, weight)?;
            }
            note(format_args!("{files}: schema {schema}"));
            (self.schema, self.header) = (Some(schema), true);
        }
        if self.scaling == Some(Scaling::Buckets) {
            self.schema = self.schema.as_deref().map(in_buckets);
        }
        if let (Some(file), Some(schema)) = (&self.schema_out, &self.schema) {
            let read = files.paths().iter().map(PathBuf::as_path);
            check_not_read("--schema-out", file, read)?;
            std::fs::write(file, format!("{schema}\n"))
                .map_err(|error| format!("--schema-out: `{}`: {error}", file.display()))?;
        }
        Ok(())
    }

    /// Reads the labels of the training data, where classes may be words: their positions in byte
    /// order are the labels then.
    pub(crate) fn find_label_names(&mut self, files: &DataFiles) -> Result<(), Failure> {
        if !files.can_be_read_again() {
            return Ok(());
        }
        let format = self.format_of(files.first());
        if matches!(format, Format::Libsvm | Format::Libffm | Format::Vw) {
            self.label_names = label_words(files.paths())?.unwrap_or_default();
        } else if let Some(schema) = self.schema.as_deref().filter(|_| format == Format::Csv) {
            let format = self.csv()?.with_schema(schema)?;
            self.label_names = format.label_texts_of_paths(files.paths())?.unwrap_or_default();
        }
        Ok(())
    }

    /// What follows the quotes of a csv through a pipe.
    pub(crate) fn open_quotes(&self, path: &Path) -> Result<Option<OpenQuotes>> {
        let is_csv = self.format_of(path) == Format::Csv;
        if is_csv { Ok(Some(self.csv()?.open_quotes())) } else { Ok(None) }
    }

    /// Text with fields, whose columns are not declared.
    pub(super) fn csv(&self) -> Result<Delimited> {
        let hashing = Hashing::new(self.hash_bits())?.seed(self.hash_seed());
        let format = Delimited::csv(hashing).header(self.has_header()).missing(self.na.clone());
        Ok(match self.separator {
            Some(separator) => format.separator(separator as u8),
            None => format,
        })
    }

    /// Reads the training data for the scales of its numeric columns, if it has some and can be
    /// read twice.
    pub(crate) fn measure(&mut self, files: &DataFiles) -> Result<(), Failure> {
        let is_csv = self.format_of(files.first()) == Format::Csv;
        let is_scaled = !self.no_scaling && self.scaling != Some(Scaling::None);
        if let Some(schema) = self.schema.as_deref().filter(|_| is_csv && is_scaled)
            && files.can_be_read_again()
        {
            let format = self.csv()?.with_schema(schema)?;
            if kinds(schema).any(|kind| kind == "numeric") {
                self.scales = format.measure_paths(files.paths())?;
                if self.scaling == Some(Scaling::Deviation) {
                    self.scales.iter_mut().for_each(|scale| scale.mean = 0.0);
                }
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

/// A schema in which one column holds the weights of samples.
fn with_weight(schema: &str, weight: &str) -> Result<String, String> {
    let columns: Vec<&str> = schema.split(',').collect();
    let name = |column: &&str| column.rsplit_once(':').map(|(name, _)| name.to_owned());
    if !columns.iter().any(|column| name(column).as_deref() == Some(weight)) {
        let known: Vec<String> = columns.iter().filter_map(name).collect();
        let known = known.join(", ");
        return Err(format!("--weight: the header has no column `{weight}`: it has {known}"));
    }
    let column = |column: &&str| {
        let is_it = name(column).as_deref() == Some(weight);
        if is_it { format!("{weight}:weight") } else { (*column).to_owned() }
    };
    Ok(columns.iter().map(column).collect::<Vec<_>>().join(","))
}

/// A schema whose numeric columns are kept in buckets.
fn in_buckets(schema: &str) -> String {
    let column = |column: &str| match column.trim().rsplit_once(':') {
        Some((name, "numeric")) => format!("{name}:buckets"),
        _ => column.to_owned(),
    };
    schema.split(',').map(column).collect::<Vec<_>>().join(",")
}

/// The position of the column of ratings, counted from zero, that has this number: one behind user,
/// item and rating.
pub(super) fn weight_of_ratings(number: &str) -> Option<usize> {
    let number: usize = number.parse().ok()?;
    number.checked_sub(1).filter(|position| *position > 2)
}

/// Whether a schema has a column of weights.
pub(super) fn has_weight(schema: &str) -> bool {
    kinds(schema).any(|kind| kind == "weight")
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

//! Opening a file of text by a format: into memory, from a cache, or as a stream.

use super::{DataFiles, Format, Known, Reading};
use crate::files::beside;
use nnz::data::stream::Stream;
use nnz::data::{AnyDataset, ReadError, RowFormat, TextReader, WholeFormat};
use nnz::prelude::*;
use std::path::Path;

/// Files that are about to be read.
pub(super) struct Lines<'a> {
    pub(super) reading: &'a Reading,
    pub(super) files: &'a DataFiles,
    /// Some lines of them, instead of all.
    pub(super) text: Option<&'a [u8]>,
    pub(super) known: &'a Known,
    pub(super) find_classes: bool,
}

impl Lines<'_> {
    pub(super) fn open<F: WholeFormat<f32> + Clone>(&self, format: F) -> Result<AnyDataset> {
        if let (Some(buffer), None) = (self.reading.stream, self.text) {
            return self.stream(format, buffer);
        }
        let reader = TextReader::new(format).on_error(self.reading.on_error());
        let reader = reader.parallel(self.reading.parallel());
        let reader = reader.label_names(self.label_names());
        self.memory(|| match self.text {
            Some(text) => reader.read_bytes(&self.files.to_string(), text),
            None => reader.read_paths(self.files.paths()),
        })
    }

    /// The words that are labels at the beginning of lines. A table's format has its own.
    fn label_names(&self) -> Vec<String> {
        let is_table = self.reading.format_of(self.files.first()) == Format::Csv;
        if is_table { Vec::new() } else { self.reading.words_of_labels(self.known) }
    }

    pub(super) fn memory(
        &self,
        read: impl FnOnce() -> Result<Dataset, ReadError>,
    ) -> Result<AnyDataset> {
        // Ids that are known from elsewhere are not kept.
        let data = if self.reading.cache && self.known.ids.is_none() && self.text.is_none() {
            let way = self.reading.way(self.known);
            let sources = self.files.paths().iter().chain(&self.reading.labels);
            Dataset::cached(beside(self.files.first(), "cache"), sources, &way, read)?
        } else {
            read()?
        };
        if let Some(report) =
            data.report().filter(|report| report.n_skipped > 0 || report.cache_error.is_some())
        {
            eprintln!("{report}");
        }
        Ok(AnyDataset::from(match &self.known.classes {
            _ if self.find_classes => data.into_classes()?.0,
            Some(classes) => data.with_classes(classes)?,
            None => data,
        }))
    }

    pub(super) fn stream<F: RowFormat<f32> + Clone>(
        &self,
        format: F,
        buffer: usize,
    ) -> Result<AnyDataset> {
        let stream = Stream::new(format)
            .files(self.files.paths())
            .buffer(buffer)
            .parallel(self.reading.parallel())
            .on_error(self.reading.on_error())
            .label_names(self.label_names());
        let folder = self.files.first().parent().filter(|folder| !folder.as_os_str().is_empty());
        let stream = if self.reading.cache {
            stream.cache_in(folder.unwrap_or(Path::new(".")))
        } else {
            stream
        };
        let stream = match self.known.classes.clone() {
            _ if self.find_classes => stream.find_classes(),
            Some(classes) => stream.classes(classes),
            None => stream,
        };
        Ok(stream.open()?.into())
    }
}

//! Reading by format: into memory, or as a stream.

use crate::arguments::{Arguments, Base, Format};
use nnz::data::stream::{Stream, StreamedDataset};
use nnz::data::{
    Classes, Delimited, Hashing, LibFfm, OnError, RowFormat, TextReader, WholeFormat, Words,
};
use nnz::kernels::Parallel;
use nnz::prelude::*;
use std::path::Path;

/// What is read, and of which width.
pub(crate) struct Opened {
    pub(crate) n_features: usize,
    pub(crate) classes: Option<Classes>,
    pub(crate) data: Data,
}

pub(crate) enum Data {
    Memory(Dataset),
    Stream(StreamedDataset),
}

/// How the data is opened.
#[derive(Clone, Copy)]
pub(crate) enum Mode<'a> {
    /// The training data; for classification with the classes that occur.
    Train { classifies: bool },
    /// Test data of so many features and these classes.
    Test { n_features: usize, classes: Option<&'a Classes> },
}

/// Opens a file by its format, or by the ending of its name.
pub(crate) fn open(arguments: &Arguments, path: &Path, mode: Mode<'_>) -> Result<Opened> {
    let n_features = match mode {
        Mode::Train { .. } => arguments.features,
        Mode::Test { n_features, .. } => Some(n_features),
    };
    let hashing = Hashing::new(arguments.hash_bits)?.seed(arguments.hash_seed);
    match arguments.format.unwrap_or_else(|| Format::of(path)) {
        Format::Libsvm => {
            let base = match arguments.index_base {
                Base::Detect => IndexBase::Detect,
                Base::Zero => IndexBase::Zero,
                Base::One => IndexBase::One,
            };
            let reader = libsvm::Reader::new().index_base(base).n_features(n_features);
            match arguments.stream {
                Some(_) => stream(arguments, path, reader, mode),
                None => {
                    let reader = reader.on_error(on_error(arguments)).parallel(parallel(arguments));
                    memory(reader.read_path(path)?, mode)
                }
            }
        }
        Format::Libffm => by_lines(arguments, path, LibFfm::new().n_features(n_features), mode),
        Format::Criteo => by_lines(arguments, path, Delimited::criteo(hashing), mode),
        Format::Csv => {
            let schema = arguments.schema.as_deref().unwrap_or_default();
            let format = Delimited::csv(hashing).header(arguments.header).with_schema(schema)?;
            by_lines(arguments, path, format, mode)
        }
        Format::Words => {
            let format = Words::new(hashing).ngrams(1..=arguments.ngrams)?.unit_norm();
            by_lines(arguments, path, format, mode)
        }
    }
}

fn by_lines<F: WholeFormat<f32> + Clone>(
    arguments: &Arguments,
    path: &Path,
    format: F,
    mode: Mode<'_>,
) -> Result<Opened> {
    if arguments.stream.is_some() {
        return stream(arguments, path, format, mode);
    }
    let reader = TextReader::new(format).on_error(on_error(arguments));
    memory(reader.parallel(parallel(arguments)).read_path(path)?, mode)
}

fn memory(data: Dataset, mode: Mode<'_>) -> Result<Opened> {
    if let Some(report) = data.report().filter(|report| report.n_skipped > 0) {
        eprintln!("train: {report}");
    }
    let n_features = data.n_features();
    let (data, classes) = match mode {
        Mode::Train { classifies: true } => {
            let (data, classes) = data.into_classes()?;
            (data, Some(classes))
        }
        Mode::Test { classes: Some(classes), .. } => (data.with_classes(classes)?, None),
        Mode::Train { classifies: false } | Mode::Test { classes: None, .. } => (data, None),
    };
    Ok(Opened { n_features, classes, data: Data::Memory(data) })
}

fn stream<F: RowFormat<f32> + Clone>(
    arguments: &Arguments,
    path: &Path,
    format: F,
    mode: Mode<'_>,
) -> Result<Opened> {
    let stream = Stream::new(format)
        .file(path)
        .buffer(arguments.stream.unwrap_or_default())
        .parallel(parallel(arguments))
        .on_error(on_error(arguments));
    let stream = match mode {
        Mode::Train { classifies: true } => stream.find_classes(),
        Mode::Test { classes: Some(classes), .. } => stream.classes(classes.clone()),
        Mode::Train { classifies: false } | Mode::Test { classes: None, .. } => stream,
    };
    let data = stream.open()?;
    let (n_features, classes) = (data.n_features(), data.classes().cloned());
    Ok(Opened { n_features, classes, data: Data::Stream(data) })
}

fn on_error(arguments: &Arguments) -> OnError {
    arguments.skip.map_or(OnError::Fail, OnError::Skip)
}

fn parallel(arguments: &Arguments) -> Parallel {
    arguments.threads.map_or(Parallel::Sequential, Parallel::Threads)
}

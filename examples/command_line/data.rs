//! Reading by format: into memory, or as a stream.

use clap::{Args, ValueEnum};
use nnz::data::stream::Stream;
use nnz::data::{
    AnyDataset, Classes, Delimited, Hashing, IdMap, LibFfm, OnError, Ratings, ReadError, RowFormat,
    TextReader, WholeFormat, Words,
};
use nnz::kernels::Parallel;
use nnz::prelude::*;
use std::path::{Path, PathBuf};

/// How files are read.
#[derive(Debug, Args)]
pub(crate) struct Reading {
    /// What the files are; by their ending if not said: .ffm, .tsv (criteo), .csv, .txt (words), else libsvm.
    #[arg(long, value_enum)]
    format: Option<Format>,
    /// csv: the columns in order, name:kind; kinds are label, weight, numeric, count, buckets, categorical and ignore.
    #[arg(long)]
    schema: Option<String>,
    /// csv: the first line has the names of the columns.
    #[arg(long)]
    header: bool,
    /// criteo, csv and words: hash into 2^BITS columns.
    #[arg(long, value_name = "BITS", default_value_t = 20)]
    hash_bits: u32,
    /// The seed of that hash.
    #[arg(long, default_value_t = 0)]
    hash_seed: u64,
    /// words: runs of up to so many words.
    #[arg(long, default_value_t = 1)]
    ngrams: usize,
    /// Read the files in every epoch, with a buffer of so many bytes, instead of once into memory.
    #[arg(long, value_name = "BYTES")]
    stream: Option<usize>,
    /// Keep what was parsed of FILE as FILE.cache, and read that as long as FILE and how it is read stay the same.
    #[arg(long, conflicts_with = "stream")]
    cache: bool,
    /// Leave out up to so many rows that cannot be read, and say how many they were.
    #[arg(long, value_name = "ROWS")]
    skip: Option<u64>,
    /// Whether columns are counted from zero or one; found out by default.
    #[arg(long, value_enum, default_value = "detect")]
    index_base: Base,
    /// Threads for reading data and for steps of large batches.
    #[arg(long)]
    pub(crate) threads: Option<usize>,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum Format {
    /// `label index:value …`
    Libsvm,
    /// `label field:index:value …`
    Libffm,
    /// Label, 13 counts and 26 categories, tab separated.
    Criteo,
    /// Comma separated, with a schema.
    Csv,
    /// A label, a tab and a text.
    Words,
    /// User, item and rating.
    Ratings,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum Base {
    Detect,
    Zero,
    One,
}

/// What must be known before a file is read, and what is known after.
#[derive(Clone, Debug, Default)]
pub(crate) struct Known {
    /// The number of features, if not the largest column of the data.
    pub(crate) n_features: Option<usize>,
    /// What class ids stand for.
    pub(crate) classes: Option<Classes>,
    /// What the numbers of users and items stand for.
    pub(crate) ids: Option<(IdMap, IdMap)>,
}

/// The file of ids that belongs to a model's file: `model.safetensors.users`.
pub(crate) fn beside(path: &Path, ending: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(".");
    name.push(ending);
    name.into()
}

impl Reading {
    /// Opens a file by its format, or by the ending of its name; with ids of the classes that occur as its label if these are to be
    /// found. Says on the error stream what was left out.
    pub(crate) fn open(
        &self,
        path: &Path,
        known: &Known,
        find_classes: bool,
    ) -> Result<AnyDataset> {
        let hashing = Hashing::new(self.hash_bits)?.seed(self.hash_seed);
        let lines = Lines { reading: self, path, known, find_classes };
        match self.format.unwrap_or_else(|| Format::of(path)) {
            Format::Libsvm => {
                let base = match self.index_base {
                    Base::Detect => IndexBase::Detect,
                    Base::Zero => IndexBase::Zero,
                    Base::One => IndexBase::One,
                };
                let reader = libsvm::Reader::new().index_base(base).n_features(known.n_features);
                if let Some(buffer) = self.stream {
                    return lines.stream(reader, buffer);
                }
                let reader = reader.on_error(self.on_error()).parallel(self.parallel());
                lines.memory(|| reader.read_path(path))
            }
            Format::Libffm => lines.open(LibFfm::new().n_features(known.n_features)),
            Format::Criteo => lines.open(Delimited::criteo(hashing)),
            Format::Csv => {
                let schema = self.schema.as_deref().unwrap_or_default();
                lines.open(Delimited::csv(hashing).header(self.header).with_schema(schema)?)
            }
            Format::Words => lines.open(Words::new(hashing).ngrams(1..=self.ngrams)?.unit_norm()),
            Format::Ratings => lines.open(match known.ids.clone() {
                Some((users, items)) => Ratings::new().users(users).items(items),
                None => Ratings::new(),
            }),
        }
    }

    /// All that the parsed data depends on, besides the file.
    fn way(&self, known: &Known) -> String {
        let Reading {
            format, schema, header, hash_bits, hash_seed, ngrams, skip, index_base, ..
        } = self;
        let hash = (hash_bits, hash_seed, ngrams);
        format!("{:?}", (format, schema, header, hash, skip, index_base, known.n_features))
    }

    fn on_error(&self) -> OnError {
        self.skip.map_or(OnError::Fail, OnError::Skip)
    }

    /// How many threads may be used: the results do not depend on it.
    pub(crate) fn parallel(&self) -> Parallel {
        self.threads.map_or(Parallel::Sequential, Parallel::Threads)
    }
}

impl Format {
    /// By the ending of a name, that of compression left out.
    fn of(path: &Path) -> Self {
        let name = path.to_string_lossy();
        let name = name.trim_end_matches(".gz").trim_end_matches(".zst");
        match name.rsplit('.').next() {
            Some("ffm") => Format::Libffm,
            Some("tsv") => Format::Criteo,
            Some("csv") => Format::Csv,
            Some("txt") => Format::Words,
            _ => Format::Libsvm,
        }
    }
}

/// A file that is about to be read.
struct Lines<'a> {
    reading: &'a Reading,
    path: &'a Path,
    known: &'a Known,
    find_classes: bool,
}

impl Lines<'_> {
    fn open<F: WholeFormat<f32> + Clone>(&self, format: F) -> Result<AnyDataset> {
        if let Some(buffer) = self.reading.stream {
            return self.stream(format, buffer);
        }
        let reader = TextReader::new(format).on_error(self.reading.on_error());
        let reader = reader.parallel(self.reading.parallel());
        self.memory(|| reader.read_path(self.path))
    }

    fn memory(&self, read: impl FnOnce() -> Result<Dataset, ReadError>) -> Result<AnyDataset> {
        // Ids that are known from elsewhere are not kept.
        let data = match self.reading.cache && self.known.ids.is_none() {
            true => {
                let way = self.reading.way(self.known);
                Dataset::cached(beside(self.path, "cache"), [self.path], &way, read)?
            }
            false => read()?,
        };
        if let Some(report) = data.report().filter(|report| report.n_skipped > 0) {
            eprintln!("{report}");
        }
        Ok(AnyDataset::from(match &self.known.classes {
            _ if self.find_classes => data.into_classes()?.0,
            Some(classes) => data.with_classes(classes)?,
            None => data,
        }))
    }

    fn stream<F: RowFormat<f32> + Clone>(&self, format: F, buffer: usize) -> Result<AnyDataset> {
        let stream = Stream::new(format)
            .file(self.path)
            .buffer(buffer)
            .parallel(self.reading.parallel())
            .on_error(self.reading.on_error());
        let stream = match self.known.classes.clone() {
            _ if self.find_classes => stream.find_classes(),
            Some(classes) => stream.classes(classes),
            None => stream,
        };
        Ok(stream.open()?.into())
    }
}

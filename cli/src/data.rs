//! Reading by format: into memory, or as a stream.

use crate::Failure;
use crate::files::beside;
use clap::builder::RangedU64ValueParser;
use clap::{Args, ValueEnum};
use nnz::data::stream::Stream;
use nnz::data::{
    AnyDataset, Classes, DataError, Delimited, Hashing, IdMap, LibFfm, NumberScale, OnError,
    Ratings, ReadError, RowFormat, TextReader, WholeFormat, Words,
};
use nnz::kernels::{MAX_THREADS, Parallel};
use nnz::prelude::*;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::str::FromStr;

/// How files are read.
#[derive(Clone, Debug, Args)]
pub(crate) struct Reading {
    /// What the files are; by their ending if not said: .ffm, .tsv (criteo), .csv, .txt (words),
    /// else libsvm.
    #[arg(long, value_enum)]
    pub(crate) format: Option<Format>,
    /// csv, which needs it: the columns in order, name:kind; kinds are label, numeric, count,
    /// buckets, categorical and ignore.
    #[arg(long)]
    pub(crate) schema: Option<String>,
    /// csv: the first line has the names of the columns. A model that was trained so reads other
    /// files so too.
    #[arg(long)]
    header: bool,
    /// csv: the file has no header, although that of the training data has one.
    #[arg(long, conflicts_with = "header")]
    no_header: bool,
    /// Of the training data, as the model's file says.
    #[arg(skip)]
    pub(crate) noted_header: bool,
    /// csv: take numeric columns as they are. Else their mean over the training data is subtracted,
    /// and the rest divided by their deviation; the model's file keeps both. What is read from a
    /// pipe is taken as it is.
    #[arg(long)]
    pub(crate) no_scaling: bool,
    /// What numeric columns are scaled by.
    #[arg(skip)]
    pub(crate) scales: Vec<NumberScale>,
    /// criteo, csv and words: hash into 2^BITS columns; 20 if not said.
    #[arg(long, value_name = "BITS")]
    pub(crate) hash_bits: Option<u32>,
    /// The seed of that hash; 0 if not said.
    #[arg(long)]
    pub(crate) hash_seed: Option<u64>,
    /// words: runs of up to so many words; 1 if not said.
    #[arg(long)]
    pub(crate) ngrams: Option<usize>,
    /// Read the files in every epoch, with a buffer of so many bytes, instead of once into memory.
    #[arg(long, value_name = "BYTES")]
    stream: Option<usize>,
    /// Keep what was parsed of FILE as FILE.cache, and read that as long as FILE and how it is read
    /// stay the same; with --stream in a file without a name beside FILE, for the later epochs.
    #[arg(long)]
    cache: bool,
    /// Leave out up to so many rows that cannot be read, and say how many they were.
    #[arg(long, value_name = "ROWS")]
    pub(crate) skip: Option<u64>,
    /// Whether columns are counted from zero or one; found out by default, once for the data that a
    /// model is trained on.
    #[arg(long, value_enum, default_value = "detect")]
    pub(crate) index_base: Base,
    /// Threads for reading data and for steps of large batches.
    #[arg(long, value_parser = RangedU64ValueParser::<usize>::new().range(1..=MAX_THREADS as u64))]
    pub(crate) threads: Option<usize>,
}

#[derive(Clone, Copy, Debug, PartialEq, ValueEnum)]
pub(crate) enum Format {
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

#[derive(Clone, Copy, Debug, PartialEq, ValueEnum)]
pub(crate) enum Base {
    Detect,
    Zero,
    One,
}

/// What must be known before a file is read, and what is known after.
#[derive(Clone, Debug, Default)]
pub(crate) struct Known {
    /// The number of features, if not the largest column of the data.
    pub(crate) n_features: Option<usize>,
    /// From where columns are counted in the text.
    pub(crate) index_base: Option<IndexBase>,
    /// What class ids stand for.
    pub(crate) classes: Option<Classes>,
    /// What the numbers of users and items stand for.
    pub(crate) ids: Option<(IdMap, IdMap)>,
    /// The file has no labels.
    pub(crate) no_labels: bool,
}

impl Known {
    /// What the data that a model is trained on says about the data that it is used on.
    pub(crate) fn of(data: &AnyDataset) -> Self {
        let (ids, index_base) = match data {
            AnyDataset::Memory(data) => (
                data.id_map("user").cloned().zip(data.id_map("item").cloned()),
                data.report().and_then(|report| report.index_base),
            ),
            AnyDataset::Stream(data) => (None, data.report().index_base),
        };
        let n_features = Some(data.n_features());
        Known { n_features, index_base, classes: data.classes().cloned(), ids, no_labels: false }
    }
}

/// Says on the error stream what a pass over a stream has left out.
pub(crate) fn tell_skipped(data: &AnyDataset) {
    if let AnyDataset::Stream(data) = data
        && data.report().n_skipped > 0
    {
        let _ = writeln!(io::stderr(), "{}", data.report());
    }
}

impl Reading {
    /// Refuses what would be said in vain of a file of this format, and a number of features of one
    /// whose columns follow from the hash.
    pub(crate) fn check(&self, path: &Path, n_features: Option<usize>) -> Result<(), String> {
        let format = self.format_of(path);
        let (hashed, words, csv) =
            (format.is_hashed(), format == Format::Words, format == Format::Csv);
        let libsvm = format == Format::Libsvm;
        let (of_hashed, as_they_are) =
            ("criteo, csv and words", "its columns are taken as they are numbered");
        let from_hash = "its columns are as many as --hash-bits says";
        for (flag, is_given, has_meaning, of, why) in [
            ("--hash-bits", self.hash_bits.is_some(), hashed, of_hashed, as_they_are),
            ("--hash-seed", self.hash_seed.is_some(), hashed, of_hashed, as_they_are),
            ("--ngrams", self.ngrams.is_some(), words, "words", "it has no text"),
            ("--schema", self.schema.is_some(), csv, "csv", "it has columns of its own"),
            ("--header", self.header, csv, "csv", "it has no line of names"),
            ("--no-header", self.no_header, csv, "csv", "it has no line of names"),
            ("--no-scaling", self.no_scaling, csv, "csv", "its numbers are taken as they are"),
            (
                "--index-base",
                self.index_base != Base::Detect,
                libsvm,
                "libsvm",
                "it says so itself",
            ),
            (
                "--features",
                n_features.is_some(),
                matches!(format, Format::Libsvm | Format::Libffm),
                "libsvm and libffm",
                if hashed { from_hash } else { "its ids are counted as they come" },
            ),
        ] {
            if is_given && !has_meaning {
                return Err(format!(
                    "{flag} is for {of}, but `{}` is read as {}, by {}: {why}; leave {flag} out, or say another --format",
                    path.display(),
                    format.name(),
                    if self.format.is_some() { "its --format" } else { "its ending" },
                ));
            }
        }
        Ok(())
    }

    pub(crate) fn format_of(&self, path: &Path) -> Format {
        self.format.unwrap_or_else(|| Format::of(path))
    }

    pub(crate) fn hash_bits(&self) -> u32 {
        self.hash_bits.unwrap_or(20)
    }

    pub(crate) fn hash_seed(&self) -> u64 {
        self.hash_seed.unwrap_or(0)
    }

    pub(crate) fn ngrams(&self) -> usize {
        self.ngrams.unwrap_or(1)
    }

    /// Opens a file by its format, or by the ending of its name; with ids of the classes that occur
    /// as its label if these are to be found. Says on the error stream what was left out.
    pub(crate) fn open(
        &self,
        path: &Path,
        known: &Known,
        find_classes: bool,
    ) -> Result<AnyDataset, Failure> {
        self.read(path, known, find_classes).map_err(|error| match self.format {
            Some(_) => error.into(),
            None => format!(
                "{error} (`{}` is read as {}, {}; say another --format if it is not)",
                path.display(),
                Format::of(path).name(),
                Format::reason(path)
            )
            .into(),
        })
    }

    fn read(&self, path: &Path, known: &Known, find_classes: bool) -> Result<AnyDataset> {
        let hashing = Hashing::new(self.hash_bits())?.seed(self.hash_seed());
        let no_labels = known.no_labels;
        let lines = Lines { reading: self, path, known, find_classes };
        match self.format_of(path) {
            Format::Libsvm if no_labels => Err(no_labels_in_libsvm(path).into()),
            Format::Libsvm => {
                let base = match self.index_base {
                    Base::Detect => known.index_base.unwrap_or(IndexBase::Detect),
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
            Format::Libffm => {
                let format = LibFfm::new().n_features(known.n_features);
                lines.open(change_if(no_labels, format, LibFfm::without_labels))
            }
            Format::Criteo => {
                let format = Delimited::criteo(hashing);
                lines.open(change_if(no_labels, format, Delimited::without_labels))
            }
            Format::Csv => {
                let schema = self.schema.as_deref().ok_or_else(|| no_schema(path))?;
                let format = Delimited::csv(hashing).header(self.has_header());
                let format = format.with_schema(schema)?.scaled(self.scales.iter().cloned())?;
                lines.open(change_if(no_labels, format, Delimited::without_labels))
            }
            Format::Words => {
                let format = Words::new(hashing).ngrams(1..=self.ngrams())?.unit_norm();
                // An ending of a name says little.
                let format = change_if(self.format.is_none(), format, Words::expect_letters);
                lines.open(change_if(no_labels, format, Words::without_labels))
            }
            Format::Ratings => {
                let format = match known.ids.clone() {
                    Some((users, items)) => Ratings::new().users(users).items(items),
                    None => Ratings::new(),
                };
                lines.open(change_if(no_labels, format, Ratings::without_labels))
            }
        }
    }

    /// Whether the first line of a csv file is its header.
    pub(crate) fn has_header(&self) -> bool {
        self.header || (self.noted_header && !self.no_header)
    }

    /// Reads the training data for the scales of its numeric columns, if it has some and can be
    /// read twice.
    pub(crate) fn measure(&mut self, path: &Path) -> Result<(), Failure> {
        let is_csv = self.format_of(path) == Format::Csv;
        if let Some(schema) = self.schema.as_deref().filter(|_| is_csv && !self.no_scaling)
            && path.is_file()
        {
            let format = Delimited::csv(Hashing::new(self.hash_bits())?).header(self.has_header());
            let format = format.with_schema(schema)?;
            if kinds(schema).any(|kind| kind == "numeric") {
                self.scales = format.measure(path)?;
            }
        }
        Ok(())
    }

    /// All that the parsed data depends on, besides the file.
    fn way(&self, known: &Known) -> String {
        let Reading { format, schema, skip, index_base, scales, .. } = self;
        let header = (self.has_header(), scales);
        let hash = (self.hash_bits(), self.hash_seed(), self.ngrams());
        let base = (index_base, known.index_base);
        let columns = (known.n_features, known.no_labels);
        format!("{:?}", (format, schema, header, hash, skip, base, columns))
    }

    /// The files that reading these reads, or writes, beside them.
    pub(crate) fn files<'a>(&self, data: impl IntoIterator<Item = &'a PathBuf>) -> Vec<PathBuf> {
        let with_cache = |path: &PathBuf| {
            let is_file = self.cache && self.stream.is_none();
            let cache = is_file.then(|| beside(path, "cache"));
            [Some(path.clone()), cache].into_iter().flatten()
        };
        data.into_iter().flat_map(with_cache).collect()
    }

    fn on_error(&self) -> OnError {
        self.skip.map_or(OnError::Fail, OnError::Skip)
    }

    /// How many threads may be used: the results do not depend on it.
    pub(crate) fn parallel(&self) -> Parallel {
        self.threads.map_or(Parallel::Sequential, Parallel::Threads)
    }
}

/// The kinds of the columns of a schema.
pub(crate) fn kinds(schema: &str) -> impl Iterator<Item = &str> {
    schema.split(',').map(|column| column.rsplit(':').next().unwrap_or_default().trim())
}

fn change_if<F>(condition: bool, format: F, change: fn(F) -> F) -> F {
    if condition { change(format) } else { format }
}

#[cold]
fn no_labels_in_libsvm(path: &Path) -> DataError {
    let message = format!(
        "`{}` is read as libsvm, whose rows begin with a label: write a number before each, such as 0, and leave `--no-labels` out",
        path.display()
    );
    DataError::Schema { message }
}

#[cold]
fn no_schema(path: &Path) -> DataError {
    let message = format!(
        "`{}` is read as csv, by its ending or `--format csv`: say what its columns are, `--schema y:label,age:numeric,…`, or another `--format`",
        path.display()
    );
    DataError::Schema { message }
}

impl Format {
    /// As on the command line.
    pub(crate) fn name(self) -> String {
        self.to_possible_value().map_or_else(String::new, |name| name.get_name().to_owned())
    }

    /// Whether columns are made by hashing.
    pub(crate) fn is_hashed(self) -> bool {
        matches!(self, Format::Criteo | Format::Csv | Format::Words)
    }

    /// By the ending of a name, that of compression left out.
    pub(crate) fn of(path: &Path) -> Self {
        Self::of_ending(path).unwrap_or(Format::Libsvm)
    }

    /// Why it is taken for that format.
    pub(crate) fn reason(path: &Path) -> &'static str {
        match Self::of_ending(path) {
            Some(_) => "by its ending",
            None => "since its ending is of no other format",
        }
    }

    fn of_ending(path: &Path) -> Option<Self> {
        let name = path.to_string_lossy();
        let name = name.trim_end_matches(".gz").trim_end_matches(".zst");
        match name.rsplit('.').next() {
            Some("ffm") => Some(Format::Libffm),
            Some("tsv") => Some(Format::Criteo),
            Some("csv") => Some(Format::Csv),
            Some("txt") => Some(Format::Words),
            _ => None,
        }
    }
}

/// As on the command line.
impl FromStr for Format {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, String> {
        <Format as ValueEnum>::from_str(name, false)
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
        let data = if self.reading.cache && self.known.ids.is_none() {
            let way = self.reading.way(self.known);
            Dataset::cached(beside(self.path, "cache"), [self.path], &way, read)?
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

    fn stream<F: RowFormat<f32> + Clone>(&self, format: F, buffer: usize) -> Result<AnyDataset> {
        let stream = Stream::new(format)
            .file(self.path)
            .buffer(buffer)
            .parallel(self.reading.parallel())
            .on_error(self.reading.on_error());
        let folder = self.path.parent().filter(|folder| !folder.as_os_str().is_empty());
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

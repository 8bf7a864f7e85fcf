//! Files to data: how a file is read, by flags, by its name, and by the notes of a model.

mod check;
mod collisions;
mod crosses;
mod data_files;
mod explained;
mod field_names;
mod format;
mod matrix;
mod names;
mod open;
mod schema;
mod two_labels;
pub(crate) mod unknown_ids;

use crate::Failure;
use crate::files::beside;
use clap::builder::RangedU64ValueParser;
use clap::{Args, ValueEnum};
pub(crate) use collisions::{HashBits, Occupancy};
use crosses::initials;
pub(crate) use data_files::{DASH, DataFiles};
use explained::within_reach;
pub(crate) use format::Format;
#[cfg(feature = "parquet")]
use nnz::data::SparseColumns;
use nnz::data::{
    AnyDataset, Classes, Delimited, Hashing, IdMap, LibFfm, NumberScale, OnError, Ratings,
    ReadError, VowpalWabbit, Words,
};
use nnz::kernels::{MAX_THREADS, Parallel};
use nnz::prelude::*;
use open::Lines;
use schema::{has_weight, no_schema, separator, weight_of_ratings};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
pub(crate) use two_labels::{TwoLabels, listed};

/// How files are read.
#[derive(Clone, Debug, Args)]
pub(crate) struct Reading {
    /// What the files are; by their ending if not said: .ffm, .tsv (criteo), .csv, .txt (words),
    /// .vw, .mtx (matrix-market), .npz, else vw if the first line has a `|`, and libsvm. With the
    /// feature `parquet`, .parquet, .arrow and .feather are csv, or sparse-columns where they have
    /// lists of indices and values.
    #[arg(long, value_enum)]
    pub(crate) format: Option<Format>,
    /// The format is that which the model's file says.
    #[arg(skip)]
    pub(crate) is_format_noted: bool,
    /// matrix-market and npz: the labels of --data, an array of NumPy (.npy) or text with a number
    /// a line; of npz the array `y` in it if not said.
    #[arg(long, value_name = "FILE")]
    pub(crate) labels: Option<PathBuf>,
    /// csv: the columns in order, name:kind, or a file that has them so; kinds are label, weight,
    /// numeric, count, buckets, categorical, list (`a|b|c`) and ignore.
    #[arg(long)]
    pub(crate) schema: Option<String>,
    /// csv: the column of the label, by its name in the first line, where there is no --schema: the
    /// kinds of the other columns are inferred from the first 10,000 lines, and printed.
    /// sparse-columns: the column of the label; `label` if not said.
    #[arg(long, value_name = "NAME", conflicts_with_all = ["schema", "no_header"])]
    pub(crate) label: Option<String>,
    /// csv: the column of the weights of samples, by its name, where there is no --schema. ratings:
    /// the number of that column, from 4 on.
    #[arg(long, value_name = "NAME|NUMBER", conflicts_with = "schema")]
    pub(crate) weight: Option<String>,
    /// csv: write the schema to this file, to be edited and read by --schema.
    #[arg(long, value_name = "FILE")]
    schema_out: Option<PathBuf>,
    /// csv: what separates the fields, a character or `tab`; a comma if not said.
    #[arg(long, value_name = "CHARACTER", value_parser = separator)]
    pub(crate) separator: Option<char>,
    /// csv: a word that stands for a missing number, besides nothing: --na NA --na ?.
    #[arg(long, value_name = "WORD")]
    pub(crate) na: Vec<String>,
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
    /// csv: what becomes of numeric columns, standard if not said; `buckets` makes categories of
    /// numbers.
    #[arg(long, value_enum, conflicts_with = "no_scaling")]
    pub(crate) scaling: Option<Scaling>,
    /// The words that are labels, where they are not numbers.
    #[arg(skip)]
    pub(crate) label_names: Vec<String>,
    /// The model reads the fields of features.
    #[arg(skip)]
    pub(crate) reads_fields: bool,
    /// vw: the namespaces that are fields.
    #[arg(skip)]
    pub(crate) field_names: Vec<String>,
    /// What numeric columns are scaled by.
    #[arg(skip)]
    pub(crate) scales: Vec<NumberScale>,
    /// csv and criteo: cross these columns, vw: these two namespaces: a feature for their values
    /// together.
    #[arg(long, value_name = "A,B")]
    pub(crate) cross: Vec<String>,
    /// vw: cross the namespaces that begin with one letter with those that begin with another; `:`
    /// is any.
    #[arg(long, short = 'q', value_name = "AB", value_parser = initials)]
    pub(crate) quadratic: Vec<String>,
    /// criteo, csv, vw and words: hash into 2^BITS columns; 20 if not said. libsvm and libffm: fold
    /// indices into so many columns, as those of 64 bits that are hashes themselves. `auto` reads
    /// the training data once more: at most 1 % of the features then share a column.
    #[arg(long, short = 'b', value_name = "BITS|auto")]
    pub(crate) hash_bits: Option<HashBits>,
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
    /// libsvm: indices of a row that do not ascend: refuse the row, or sort it.
    #[arg(long, value_enum, default_value = "refuse")]
    unsorted: Unsorted,
    /// libsvm: an index that occurs more than once in a row: refuse the row, or add the values, as
    /// libffm does in any case.
    #[arg(long, value_enum, default_value = "refuse")]
    repeated: Repeated,
    /// libsvm, libffm and matrices: features beyond those of the model, or beyond --features:
    /// refuse the row, as if nothing is said, or leave them out of it. ratings: users and items
    /// that the model does not know: refuse the line, or score it by what is known, as if nothing
    /// is said.
    #[arg(long, value_enum)]
    pub(crate) unknown: Option<Unknown>,
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

/// How numeric columns are scaled.
#[derive(Clone, Copy, Debug, PartialEq, ValueEnum)]
pub(crate) enum Scaling {
    /// Less their mean, and divided by their deviation.
    Standard,
    /// Divided by their deviation alone.
    Deviation,
    /// As categories: small whole numbers, and ranges of larger ones.
    Buckets,
    /// As they are.
    None,
}

/// What becomes of a row whose indices do not ascend.
#[derive(Clone, Copy, Debug, PartialEq, ValueEnum)]
enum Unsorted {
    Refuse,
    Sort,
}

/// What becomes of a row in which an index occurs more than once.
#[derive(Clone, Copy, Debug, PartialEq, ValueEnum)]
enum Repeated {
    Refuse,
    Add,
}

/// What becomes of features that a model does not have.
#[derive(Clone, Copy, Debug, PartialEq, ValueEnum)]
pub(crate) enum Unknown {
    Refuse,
    Ignore,
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
    /// The number of features is that of a saved model.
    pub(crate) is_of_model: bool,
    /// A saved model scores the data, and does not learn from it.
    pub(crate) is_scored: bool,
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
        Known { n_features, index_base, classes: data.classes().cloned(), ids, ..Known::default() }
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
    pub(crate) fn format_of(&self, path: &Path) -> Format {
        self.format.unwrap_or_else(|| Format::of(path))
    }

    /// Whether columns of a file are those of a hash.
    pub(crate) fn is_hashed(&self, path: &Path) -> bool {
        match self.format_of(path) {
            Format::Criteo | Format::Csv | Format::Words | Format::Vw => true,
            Format::Libsvm | Format::Libffm => self.hash_bits.is_some(),
            Format::Ratings | Format::MatrixMarket | Format::Npz => false,
            #[cfg(feature = "parquet")]
            Format::SparseColumns => false,
        }
    }

    pub(crate) fn hash_bits(&self) -> u32 {
        match self.hash_bits {
            Some(HashBits::Bits(bits)) => bits,
            Some(HashBits::Auto) | None => 20,
        }
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
        files: &DataFiles,
        known: &Known,
        find_classes: bool,
    ) -> Result<AnyDataset, Failure> {
        self.read(files, None, known, find_classes)
            .map_err(|error| self.explained(error, files.first(), known))
    }

    /// The samples of some lines of a file or a pipe, of which `lines` were read before.
    pub(crate) fn read_lines(
        &self,
        files: &DataFiles,
        text: &[u8],
        lines: u64,
        known: &Known,
    ) -> Result<AnyDataset, Failure> {
        self.read(files, Some(text), known, false).map_err(|error| {
            let error = match error {
                Error::Read(ReadError::Syntax { mut place, problem }) => {
                    place.line += lines;
                    Error::Read(ReadError::Syntax { place, problem })
                }
                other => other,
            };
            match error {
                // Whoever reads lines goes on after blank ones.
                Error::Read(ReadError::Empty { .. }) => error.into(),
                error => self.explained(error, files.first(), known),
            }
        })
    }

    fn read(
        &self,
        files: &DataFiles,
        text: Option<&[u8]>,
        known: &Known,
        find_classes: bool,
    ) -> Result<AnyDataset> {
        let hashing = Hashing::new(self.hash_bits())?.seed(self.hash_seed());
        let no_labels = known.no_labels;
        let lines = Lines { reading: self, files, text, known, find_classes };
        let path = files.first();
        match self.format_of(path) {
            Format::Libsvm => {
                let base = match self.index_base {
                    Base::Detect => known.index_base.unwrap_or(IndexBase::Detect),
                    Base::Zero => IndexBase::Zero,
                    Base::One => IndexBase::One,
                };
                let reader = libsvm::Reader::new().index_base(base).n_features(known.n_features);
                let reader = self.tolerant(reader, no_labels);
                let reader = reader.label_names(self.words_of_labels(known));
                let reader =
                    change_if(self.hash_bits.is_some(), reader, |reader| reader.hashed(hashing));
                if let (Some(buffer), None) = (self.stream, text) {
                    return lines.stream(reader, buffer);
                }
                let reader = reader.on_error(self.on_error()).parallel(self.parallel());
                lines.memory(|| match text {
                    Some(text) => reader.read_bytes(&files.to_string(), text),
                    None => within_reach(&reader, files),
                })
            }
            Format::Libffm => {
                let format = LibFfm::new().n_features(known.n_features);
                let format = change_if(!self.reads_fields, format, LibFfm::add_repeated);
                let format = change_if(
                    self.unknown == Some(Unknown::Ignore),
                    format,
                    LibFfm::ignore_unknown,
                );
                let format =
                    change_if(self.hash_bits.is_some(), format, |format| format.hashed(hashing));
                lines.open(change_if(no_labels, format, LibFfm::without_labels))
            }
            Format::Criteo => {
                let format = self.crossed(Delimited::criteo(hashing))?;
                lines.open(change_if(no_labels, format, Delimited::without_labels))
            }
            Format::Csv => lines.open(self.table(path, no_labels)?),
            Format::Vw => {
                let format = self.vowpal_wabbit(hashing)?;
                // Whether a stream has importances is not known before its end.
                let is_stream = self.stream.is_some();
                let format = change_if(is_stream, format, VowpalWabbit::without_importance);
                lines.open(change_if(no_labels, format, VowpalWabbit::without_labels))
            }
            Format::Words => {
                let format = self.words(hashing)?;
                // An ending of a name says little.
                let format = change_if(self.format.is_none(), format, Words::expect_letters);
                lines.open(change_if(no_labels, format, Words::without_labels))
            }
            Format::Ratings => {
                let format = match known.ids.clone() {
                    Some((users, items)) => Ratings::new().users(users).items(items),
                    None => Ratings::new(),
                };
                let format = change_if(self.scores_unknown(known), format, Ratings::number_unknown);
                let weight = self.weight_of_ratings();
                let format = weight.into_iter().fold(format, Ratings::weight);
                lines.open(change_if(no_labels, format, Ratings::without_labels))
            }
            Format::MatrixMarket | Format::Npz => {
                if text.is_some() {
                    let message = "a matrix has no lines to be read as they come: name its file";
                    let message = message.to_owned();
                    return Err(ReadError::Content { file: files.to_string(), message }.into());
                }
                lines.memory(|| self.read_matrices(files, known))
            }
            #[cfg(feature = "parquet")]
            Format::SparseColumns => lines.open(self.sparse_columns(known)),
        }
    }

    /// Whether users and items that a model does not know are scored by what is known.
    pub(crate) fn scores_unknown(&self, known: &Known) -> bool {
        known.is_scored && known.ids.is_some() && self.unknown != Some(Unknown::Refuse)
    }

    /// Text as terms.
    fn words(&self, hashing: Hashing) -> Result<Words> {
        Ok(Words::new(hashing).ngrams(1..=self.ngrams())?.unit_norm())
    }

    /// Tables as the schema says.
    pub(crate) fn table(&self, path: &Path, no_labels: bool) -> Result<Delimited> {
        let schema = self.schema.as_deref().ok_or_else(|| no_schema(path))?;
        let format = self.csv()?.with_schema(schema)?.scaled(self.scales.iter().cloned())?;
        let format = self.crossed(format)?.weighs_samples();
        let format = format.label_names(self.label_names.iter().cloned());
        Ok(change_if(no_labels, format, Delimited::without_labels))
    }

    /// Sparse rows in the columns of a columnar file.
    #[cfg(feature = "parquet")]
    fn sparse_columns(&self, known: &Known) -> SparseColumns {
        let format = SparseColumns::new().n_features(known.n_features);
        let format = match &self.label {
            Some(label) => format.label(label),
            None => format,
        };
        let format = match &self.weight {
            Some(weight) if !known.no_labels => format.weight(weight),
            _ => format,
        };
        let format =
            change_if(self.index_base == Base::One, format, |f| f.index_base(IndexBase::One));
        let format =
            change_if(self.unsorted == Unsorted::Sort, format, SparseColumns::sort_unsorted);
        let format = change_if(self.repeated == Repeated::Add, format, SparseColumns::add_repeated);
        let ignores = self.unknown == Some(Unknown::Ignore);
        let format = change_if(ignores, format, SparseColumns::ignore_unknown);
        change_if(known.no_labels, format, SparseColumns::without_labels)
    }

    /// The words that are labels at the beginning of lines, where labels are read.
    pub(super) fn words_of_labels(&self, known: &Known) -> Vec<String> {
        if known.no_labels { Vec::new() } else { self.label_names.clone() }
    }

    /// A reader of LibSVM text that takes what the command line says.
    fn tolerant(&self, reader: libsvm::Reader, no_labels: bool) -> libsvm::Reader {
        use libsvm::Reader;
        let reader = change_if(self.unsorted == Unsorted::Sort, reader, Reader::sort_unsorted);
        let reader = change_if(self.repeated == Repeated::Add, reader, Reader::add_repeated);
        let reader =
            change_if(self.unknown == Some(Unknown::Ignore), reader, Reader::ignore_unknown);
        change_if(no_labels, reader, Reader::without_labels)
    }

    /// Whether the samples have weights.
    pub(crate) fn has_weights(&self) -> bool {
        // Where there is no schema, ratings and sparse rows say which column it is.
        self.schema.as_deref().map_or(self.weight.is_some(), has_weight)
    }

    /// The position of the weights of ratings, which [`check`](Self::check) has found to be one.
    fn weight_of_ratings(&self) -> Option<usize> {
        self.weight.as_deref().and_then(weight_of_ratings)
    }

    /// Whether the first line of a csv file is its header.
    pub(crate) fn has_header(&self) -> bool {
        self.header || (self.noted_header && !self.no_header)
    }

    /// All that the parsed data depends on, besides the file.
    fn way(&self, known: &Known) -> String {
        let Reading { format, schema, skip, index_base, scales, .. } = self;
        let header = (self.has_header(), scales, self.separator, &self.cross, &self.quadratic);
        let named = schema.is_none().then_some((&self.label, &self.weight));
        let header = (header, &self.label_names, &self.na, named);
        let hash = (self.hash_bits(), self.hash_seed(), self.ngrams());
        let base = (index_base, known.index_base);
        let columns = (known.n_features, known.no_labels);
        let columns = (columns, self.unsorted, self.repeated, self.unknown, self.hash_bits);
        let columns = (columns, &self.labels, self.reads_fields, &self.field_names);
        let columns = (columns, self.weight_of_ratings());
        format!("{:?}", (format, schema, header, hash, skip, base, columns))
    }

    /// Goes on after the first lines of a pipe, which had the header.
    pub(crate) fn after_first_lines(&mut self) {
        (self.header, self.no_header) = (false, true);
    }

    /// The files that reading these reads, or writes, beside them.
    pub(crate) fn files<'a>(&self, data: impl IntoIterator<Item = &'a DataFiles>) -> Vec<PathBuf> {
        let with_cache = |files: &DataFiles| {
            let is_file = self.cache && self.stream.is_none();
            let cache = is_file.then(|| beside(files.first(), "cache"));
            files.paths().iter().cloned().chain(cache).collect::<Vec<_>>()
        };
        data.into_iter().flat_map(with_cache).chain(self.labels.clone()).collect()
    }

    fn on_error(&self) -> OnError {
        self.skip.map_or(OnError::Fail, OnError::Skip)
    }

    /// How many threads may be used: the results do not depend on it.
    pub(crate) fn parallel(&self) -> Parallel {
        self.threads.map_or(Parallel::Sequential, Parallel::Threads)
    }
}

fn change_if<F>(condition: bool, format: F, change: impl FnOnce(F) -> F) -> F {
    if condition { change(format) } else { format }
}

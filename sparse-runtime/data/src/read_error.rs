//! Errors of reading and writing data files.

use super::DataError;
use super::problem::Problem;
use nnz_arrays::escaped::Escaped;
use nnz_arrays::formats::FormatError;
use nnz_arrays::kernels::TooManyThreads;
use std::fmt;
use std::io;

/// A file of data cannot be read or written. Names the file and, for text, the line and the column.
#[derive(thiserror::Error)]
#[non_exhaustive]
pub enum ReadError {
    /// The operating system refused an operation.
    #[error("`{file}`: {source}")]
    Io {
        /// The file.
        file: String,
        /// The reason.
        source: io::Error,
    },
    /// Text that does not follow the format.
    #[error("{place}: {problem}")]
    Syntax {
        /// The place.
        place: Place,
        /// The fault.
        problem: Problem,
    },
    /// More samples are unreadable than may be skipped.
    #[error("{place}: {problem} (the {limit} rows that may be skipped were skipped before)")]
    TooManySkipped {
        /// The place of the first sample that was not skipped.
        place: Place,
        /// Its fault.
        problem: Box<Problem>,
        /// The number that may be skipped.
        limit: u64,
    },
    /// More threads than exist were requested.
    #[error(transparent)]
    Threads(#[from] TooManyThreads),
    /// An invalid stream.
    #[error("the stream cannot be opened: {reason}")]
    Stream {
        /// The reason, and what to do.
        reason: String,
    },
    /// The file has no sample.
    #[error("`{file}` has no rows")]
    Empty {
        /// The file.
        file: String,
    },
    /// A part of a file that cannot be read.
    #[error("part {index} of {count} of `{file}`: {reason}")]
    Part {
        /// The file.
        file: String,
        /// The part requested, counted from 0.
        index: usize,
        /// The number of parts.
        count: usize,
        /// The reason, and what to do.
        reason: &'static str,
    },
    /// The file needs a feature of this crate that is not enabled.
    #[error("`{file}` needs the feature `{feature}` of the crate `nnz`: enable it in Cargo.toml")]
    FeatureDisabled {
        /// The file.
        file: String,
        /// The feature.
        feature: &'static str,
    },
    /// A gzip file that ends early, or has bytes after its end mark that begin another gzip stream.
    #[error(
        "`{file}` is truncated: the gzip stream ends before its end mark, or bytes follow it that are no other stream"
    )]
    TruncatedGzip {
        /// The file.
        file: String,
    },
    /// A file that is not text, by its first bytes.
    #[error("`{file}` is {found}: {help}")]
    OtherFile {
        /// The file.
        file: String,
        /// What its first bytes say.
        found: &'static str,
        /// What to do.
        help: &'static str,
    },
    /// A zstd file that ends early or is damaged.
    #[error("`{file}` is not a valid zstd file: {}", Escaped(message))]
    CorruptZstd {
        /// The file.
        file: String,
        /// The message of the decoder.
        message: String,
    },
    /// A file whose name ends in `.gz` and whose bytes are not gzip, or are damaged.
    #[error("`{file}` is not a valid gzip file: {}", Escaped(message))]
    CorruptGzip {
        /// The file.
        file: String,
        /// The message of the decoder.
        message: String,
    },
    /// The system has no memory for the samples of a file.
    #[error(
        "`{file}`: there is no memory for its rows: an array of them takes {bytes} bytes by now: stream the file (`Stream`, `--stream`), or read fewer \
         columns"
    )]
    OutOfMemory {
        /// The file.
        file: String,
        /// The bytes of the array that does not fit.
        bytes: usize,
    },
    /// The system has no memory for arrays whose size a file states.
    #[error(
        "`{file}`: {what} take {bytes} bytes, for which there is no memory: leave out rows that are empty, or read a part of the data; if it has not so many, the file is damaged"
    )]
    ArraysTooLarge {
        /// The file.
        file: String,
        /// The sizes that the file states.
        what: String,
        /// The bytes of these; `usize::MAX` if they cannot be counted.
        bytes: usize,
    },
    /// A file that has changed since its reading began.
    #[error(
        "`{file}` has changed while it was read: {change}: read it again from the beginning, and write new data to another file, or by a rename when nothing reads the old one"
    )]
    Changed {
        /// The file.
        file: String,
        /// The change.
        change: String,
    },
    /// A container of arrays, such as an npz file, with missing or wrong content.
    #[error("`{file}`: {}", Escaped(message))]
    Content {
        /// The file.
        file: String,
        /// The fault, and what to do.
        message: String,
    },
    /// The arrays of the file are not a valid matrix.
    #[error("`{file}`: {source}")]
    Format {
        /// The file.
        file: String,
        /// The reason.
        source: FormatError,
    },
    /// The matrix and labels of the file are not valid data.
    #[error("`{file}`: {source}")]
    Data {
        /// The file.
        file: String,
        /// The reason.
        source: Box<DataError>,
    },
}

sparse_core::debug_of_errors!(ReadError);

/// A place in a file of text, counted from one as editors do; the column counts bytes. In a
/// columnar file the line is the row, and the column the position in the schema.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    /// The file.
    pub file: String,
    /// The line.
    pub line: u64,
    /// The byte in the line.
    pub column: u64,
}

/// `train.svm:12:7`.
impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}:{}", self.file, self.line, self.column)
    }
}

/// A fault at an offset of a text, before its place in the file is known.
#[derive(Clone, Debug, PartialEq)]
pub struct Fault {
    pub(crate) offset: usize,
    pub(crate) problem: Problem,
}

/// A piece of a file, escaped and truncated for a message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Excerpt(String);

impl Excerpt {
    /// All of a line, or as much of it as fits.
    pub(crate) fn line(bytes: &[u8]) -> Self {
        let line = bytes.trim_ascii();
        match line.len() {
            0 => Excerpt("nothing".into()),
            n => Excerpt::cut(line, n),
        }
    }

    /// The most bytes of the file in a message.
    const LONGEST: usize = 24;

    /// The word at the beginning of `bytes`, up to the next blank.
    pub(crate) fn word(bytes: &[u8]) -> Self {
        let blank = |byte: &u8| byte.is_ascii_whitespace();
        let end = bytes.iter().position(blank).unwrap_or(bytes.len());
        match bytes {
            [] | [b'\n', ..] | [b'\r', b'\n', ..] => return Excerpt("the end of the line".into()),
            _ if end == 0 => return Excerpt("a blank".into()),
            _ => {}
        }
        Excerpt::cut(bytes, end)
    }

    fn cut(bytes: &[u8], len: usize) -> Self {
        let shown = len.min(Self::LONGEST);
        let cut = if shown < len { "…" } else { "" };
        Excerpt(format!("`{}`{cut}", bytes[..shown].escape_ascii()))
    }
}

impl fmt::Display for Excerpt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

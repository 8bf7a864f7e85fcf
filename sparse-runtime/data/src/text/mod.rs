//! Text files with a sample a line: the parts that their formats share, and the reader for all of
//! them.
//!
//! A format is a value that names its [columns](RowFormat::columns) and makes
//! [parsers](RowFormat::parser). A parser appends the samples of a run of whole lines to a
//! [`Chunk`]; it knows nothing of files, threads and the handling of faults. The same parser
//! therefore serves data in memory ([`TextReader`]) and streams
//! ([`Stream`](super::stream::Stream)).

mod chunk;
#[cfg(feature = "parquet")]
mod columnar;
mod id_map;
mod label_words;
mod lines;
mod on_error;
mod reader;
#[cfg(test)]
mod tests;

pub use chunk::{Chunk, ChunkColumn, ColumnKind, ColumnLayout, CsrChunk};
pub use id_map::IdMap;
pub use label_words::label_words;
pub(crate) use label_words::{LabelWords, with_positions};
pub(crate) use lines::{
    Lines, check_text, count_joined_lines, count_lines, ends_here, or_carriage_return, place_in,
    place_in_joined, skip_blanks,
};
pub use on_error::{OnError, SkippedRow};
pub(crate) use on_error::{Skips, parse_part, skip_faults};
pub(crate) use reader::{BYTE_ORDER_MARK, read_text, whole_format};
pub use reader::{Listener, ReadOptions, ReadProgress, TextReader, WholeText};

use super::libsvm::IndexBase;
use super::read_error::Fault;
use super::{Dataset, ReadError};
#[cfg(feature = "parquet")]
use crate::columnar::BatchParser;
#[cfg(feature = "parquet")]
use arrow_schema::Schema;
use sparse_core::element::Float;

/// A text format with a sample a line: [`Delimited`](super::Delimited),
/// [`Ratings`](super::Ratings), [`LibFfm`](super::LibFfm), [`VowpalWabbit`](super::VowpalWabbit),
/// [`Words`](super::Words), and [`libsvm::Reader`](super::libsvm::Reader).
///
/// The methods are for readers and may change.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a format of text with a row a line",
    note = "formats are `Delimited`, `Ratings`, `LibFfm`, `VowpalWabbit`, `Words` and `libsvm::Reader`"
)]
pub trait RowFormat<T: Float>: Send + Sync + sealed::Sealed + 'static {
    /// Parses runs of lines.
    #[doc(hidden)]
    type Parser: RowParser<T>;

    /// The columns of the data, in order.
    #[doc(hidden)]
    fn columns(&self) -> Vec<ColumnLayout>;

    /// A parser; `head` is the beginning of the file, enough for its first line unless that is very
    /// long.
    #[doc(hidden)]
    fn parser(&self, head: &[u8]) -> Self::Parser;

    /// The format for a first pass that finds unknown properties ([`Survey`]); `None` if all are
    /// known.
    #[doc(hidden)]
    fn survey_format(&self) -> Option<Self>
    where
        Self: Sized,
    {
        None
    }

    /// The format with the findings of the survey.
    #[doc(hidden)]
    #[must_use]
    fn settle(self, survey: &Survey) -> Self
    where
        Self: Sized,
    {
        let _ = survey;
        self
    }

    /// The index base, if it is known.
    #[doc(hidden)]
    fn known_base(&self) -> Option<IndexBase> {
        None
    }

    /// What separates fields that may be quoted, and then have line ends in them; `None` where a
    /// line end is the end of a line.
    #[doc(hidden)]
    fn quoted_separator(&self) -> Option<u8> {
        None
    }

    /// Whether a sample can be parsed without earlier ones, so that runs of lines may be parsed in
    /// any order. Otherwise the reason, and what to do.
    #[doc(hidden)]
    fn independent_rows(&self) -> Result<(), &'static str> {
        Ok(())
    }

    /// What makes samples of the columns of a schema of Arrow, or the reason why nothing does;
    /// `None` for a format of text alone.
    #[cfg(feature = "parquet")]
    #[doc(hidden)]
    fn columnar(&self, schema: &Schema) -> Option<Result<Box<dyn BatchParser<T>>, String>> {
        let _ = schema;
        None
    }
}

/// A [`RowFormat`] that [`TextReader`](super::TextReader) reads.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a format that `TextReader` reads",
    note = "it reads `Delimited`, `Ratings`, `LibFfm`, `VowpalWabbit` and `Words`; a `libsvm::Reader` reads files itself: `.read_path(path)`"
)]
pub trait WholeFormat<T: Float>: RowFormat<T> {
    /// Reads a text into memory.
    #[doc(hidden)]
    fn read_whole(
        &self,
        text: WholeText<'_>,
        options: &ReadOptions,
    ) -> Result<Dataset<T>, ReadError>;
}

/// Parses runs of whole lines.
#[doc(hidden)]
#[diagnostic::on_unimplemented(
    message = "`{Self}` does not parse lines of text into rows of `{T}`",
    note = "the parsers of this library do: formats of one's own are not supported"
)]
pub trait RowParser<T: Float>: Send + 'static {
    /// The bytes of the header at the beginning of a file: one line, or none.
    fn header(&mut self, text: &[u8]) -> Result<usize, Fault> {
        let _ = text;
        Ok(0)
    }

    /// Appends the samples of whole lines, in order. After a fault the samples before it are
    /// complete, and a part of the faulty one may be there as well.
    fn parse(&mut self, text: &[u8], rows: &mut Chunk<T>) -> Result<(), Fault>;

    /// The maps of the ids that were read, by the name of their column.
    fn id_maps(self) -> Vec<(&'static str, IdMap)>
    where
        Self: Sized,
    {
        Vec::new()
    }
}

impl<T: Float> RowParser<T> for Box<dyn RowParser<T>> {
    fn header(&mut self, text: &[u8]) -> Result<usize, Fault> {
        (**self).header(text)
    }

    fn parse(&mut self, text: &[u8], rows: &mut Chunk<T>) -> Result<(), Fault> {
        (**self).parse(text, rows)
    }
}

/// The findings of a first pass.
#[doc(hidden)]
#[derive(Clone, Debug, Default)]
pub struct Survey {
    pub(crate) n_rows: u64,
    /// The largest column of any sparse array, as written.
    pub(crate) largest: Option<u64>,
    /// Whether column 0 occurs.
    pub(crate) has_zero: bool,
    /// The distinct labels, if they were requested.
    pub(crate) labels: Vec<f64>,
}

impl Survey {
    /// Adds some samples.
    pub(crate) fn widen<T: Float>(&mut self, rows: &Chunk<T>) {
        for column in &rows.columns {
            if let ChunkColumn::Csr(csr) = column {
                let last = csr.n_cols.and_then(|width| width.checked_sub(1));
                self.largest = self.largest.max(csr.largest()).max(last.map(|last| last as u64));
                self.has_zero |= csr.has_zero();
            }
        }
    }
}

pub(crate) mod sealed {
    /// Only formats of this library: the invariants of a parser are not checked.
    pub trait Sealed {}
}

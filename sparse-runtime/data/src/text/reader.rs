//! Reading text of any format from files and bytes into a dataset.

use super::super::blocks::{BLOCK_BYTES, Blocks, open_counted};
use super::super::delimited::JoinedLines;
use super::super::{Dataset, Place, ReadError, ReadReport};
use super::{
    Chunk, LabelWords, OnError, RowFormat, RowParser, Skips, WholeFormat, count_joined_lines,
    count_lines, parse_part, place_in, place_in_joined,
};
use nnz_arrays::kernels::Parallel;
use nnz_device::thread_pool::{self, MAX_PARTS};
use sparse_core::element::Float;
use std::fmt;
use std::io::Read;
use std::marker::PhantomData;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Options of all text readers.
#[derive(Clone, Default)]
pub struct ReadOptions {
    /// The handling of unreadable samples.
    pub on_error: OnError,
    /// The number of threads that may parse. Neither the result nor the reported fault depends on
    /// it.
    pub parallel: Parallel,
    /// Receives the progress.
    pub progress: Option<Listener>,
    /// The words that are labels at the beginning of lines, in byte order; none where labels are
    /// numbers.
    pub label_names: Arc<[String]>,
}

/// A callback for the progress of a reader.
pub type Listener = Arc<dyn Fn(&ReadProgress<'_>) + Send + Sync>;

/// The progress of a reader, reported about once a megabyte.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReadProgress<'a> {
    /// The file.
    pub file: &'a str,
    /// The bytes read of it on disk: for a compressed file, compressed bytes.
    pub bytes: u64,
    /// The bytes of the file, if known.
    pub total: Option<u64>,
}

impl ReadOptions {
    pub(crate) fn n_threads(&self) -> usize {
        self.parallel.n_threads()
    }

    pub(crate) fn tell(&self, file: &str, bytes: u64, total: Option<u64>) {
        if let Some(progress) = &self.progress {
            progress(&ReadProgress { file, bytes, total });
        }
    }
}

impl fmt::Debug for ReadOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ReadOptions")
            .field("on_error", &self.on_error)
            .field("parallel", &self.parallel)
            .field("progress", &self.progress.is_some())
            .field("label_names", &self.label_names)
            .finish()
    }
}

/// Reads text of a format, with a sample a line, into memory.
///
/// ```
/// use nnz::data::{Delimited, Hashing, OnError, TextReader};
///
/// let format = Delimited::csv(Hashing::new(10)?);
/// let format = format.label("click").numeric("age").categorical("city");
/// let text = b"1,34,Bern\n0,17,Oslo\n0,old,Bern\n";
/// let data = TextReader::new(format).on_error(OnError::Skip(1)).read_bytes("clicks.csv", text)?;
/// assert_eq!((data.n_rows(), data.n_features()), (2, 1024));
/// let skipped = &data.report().unwrap().first_skipped[0];
/// assert_eq!(
///     skipped.to_string(),
///     "clicks.csv:3:3: expected a number in the column `age`, found `old`"
/// );
/// # Ok::<(), nnz::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct TextReader<F, T: Float = f32> {
    format: F,
    options: ReadOptions,
    element: PhantomData<T>,
}

impl<F: WholeFormat<f32>> TextReader<F> {
    /// A reader of `f32` on one thread that fails at the first unreadable sample.
    pub fn new(format: F) -> Self {
        TextReader { format, options: ReadOptions::default(), element: PhantomData }
    }
}

impl<T: Float, F> TextReader<F, T> {
    /// Reads numbers as another element type.
    #[must_use]
    pub fn element<U: Float>(self) -> TextReader<F, U> {
        TextReader { format: self.format, options: self.options, element: PhantomData }
    }

    /// The handling of unreadable samples.
    #[must_use]
    pub fn on_error(mut self, on_error: OnError) -> Self {
        self.options.on_error = on_error;
        self
    }

    /// The number of threads that may parse; 1 by default, and at most 32 are used. Reading refuses
    /// more than [`MAX_THREADS`](nnz_arrays::kernels::MAX_THREADS).
    #[must_use]
    pub fn parallel(mut self, parallel: Parallel) -> Self {
        self.options.parallel = parallel;
        self
    }

    /// The labels at the beginning of lines are these words, in byte order: each is read as its
    /// position among them, from zero. Any other is an error. For [`LibFfm`](crate::LibFfm) and
    /// [`VowpalWabbit`](crate::VowpalWabbit); [`label_words`](crate::label_words) finds them.
    #[must_use]
    pub fn label_names(mut self, names: impl IntoIterator<Item = String>) -> Self {
        self.options.label_names = names.into_iter().collect();
        self
    }

    /// Calls `tell` with the progress.
    #[must_use]
    pub fn progress(mut self, tell: impl Fn(&ReadProgress<'_>) + Send + Sync + 'static) -> Self {
        self.options.progress = Some(Arc::new(tell));
        self
    }
}

impl<T: Float, F: WholeFormat<T>> TextReader<F, T> {
    /// Reads a file. A name that ends in `.gz` or `.zst` is decompressed (features `gzip` and
    /// `zstd`). The text is never in memory as a whole.
    ///
    /// # Errors
    ///
    /// [`ReadError::Io`], [`ReadError::Syntax`], [`ReadError::TooManySkipped`],
    /// [`ReadError::Empty`], those of compressed files, and [`ReadError::Data`].
    pub fn read_path(&self, path: impl AsRef<Path>) -> Result<Dataset<T>, ReadError> {
        self.read_paths([path])
    }

    /// Reads files one after the other, as one: each with its own header, if the format has one. A
    /// file may be without samples, as long as another has some. Ids are numbered in the order of
    /// all files, and the limit of [`OnError::Skip`] is for all of them together. Errors name the
    /// file.
    ///
    /// ```
    /// use nnz::data::{Ratings, TextReader};
    /// # let folder = std::env::temp_dir().join(format!("nnz-paths-doc-{}", std::process::id()));
    /// # std::fs::create_dir_all(&folder)?;
    /// # let (monday, tuesday) = (folder.join("1"), folder.join("2"));
    /// # std::fs::write(&monday, "anna,Solaris,5\n")?;
    /// # std::fs::write(&tuesday, "bert,Solaris,3\n")?;
    ///
    /// let data = TextReader::new(Ratings::new()).read_paths([&monday, &tuesday])?;
    /// assert_eq!((data.n_rows(), data.id_map("item").map(|items| items.len())), (2, Some(1)));
    /// # std::fs::remove_dir_all(&folder)?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// As [`read_path`](TextReader::read_path); [`ReadError::Empty`] if no file has samples.
    pub fn read_paths<P: AsRef<Path>>(
        &self,
        paths: impl IntoIterator<Item = P>,
    ) -> Result<Dataset<T>, ReadError> {
        let paths: Vec<PathBuf> = paths.into_iter().map(|path| path.as_ref().to_owned()).collect();
        self.format.read_whole(WholeText::Files(&paths), &self.options)
    }

    /// Reads everything from a reader; `name` stands for the file in messages.
    ///
    /// # Errors
    ///
    /// As [`read_path`](TextReader::read_path).
    pub fn read(&self, name: &str, mut reader: impl Read) -> Result<Dataset<T>, ReadError> {
        self.format.read_whole(WholeText::Reader(name, &mut reader), &self.options)
    }

    /// Reads text in memory; `name` stands for the file in messages.
    ///
    /// # Errors
    ///
    /// As [`read_path`](TextReader::read_path).
    pub fn read_bytes(&self, name: &str, text: &[u8]) -> Result<Dataset<T>, ReadError> {
        self.read(name, text)
    }
}

/// Text that is read as a whole.
#[doc(hidden)]
pub enum WholeText<'t> {
    /// Text of a reader, and what stands for the file in messages.
    Reader(&'t str, &'t mut dyn Read),
    /// Text of files, one after the other.
    Files(&'t [PathBuf]),
}

impl fmt::Debug for WholeText<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            WholeText::Reader(name, _) => f.debug_tuple("Reader").field(name).finish(),
            WholeText::Files(paths) => f.debug_tuple("Files").field(paths).finish(),
        }
    }
}

/// Says that [`TextReader`] reads a format, by functions that the library has for `f32`.
macro_rules! whole_format {
    ($Format:ty) => {
        impl<T: Float> $crate::text::WholeFormat<T> for $Format {
            fn read_whole(
                &self,
                text: $crate::text::WholeText<'_>,
                options: &$crate::text::ReadOptions,
            ) -> Result<$crate::Dataset<T>, $crate::ReadError> {
                let format = self;
                nnz_arrays::in_library!(<T> $crate::text::read_text::<T, $Format> => (
                    format: &$Format,
                    text: $crate::text::WholeText<'_>,
                    options: &$crate::text::ReadOptions,
                ) -> Result<$crate::Dataset<T>, $crate::ReadError>)
            }
        }
    };
}

pub(crate) use whole_format;

/// The samples of a text.
pub(crate) fn read_text<T: Float, F: RowFormat<T>>(
    format: &F,
    text: WholeText<'_>,
    options: &ReadOptions,
) -> Result<Dataset<T>, ReadError> {
    options.parallel.check("TextReader::parallel")?;
    let mut parsing = Parsing::new(format, options);
    match text {
        WholeText::Reader(name, reader) => parsing.text(name, reader, &|| (0, None))?,
        WholeText::Files(paths) => {
            for path in paths {
                #[cfg(feature = "parquet")]
                if parsing.columnar_path(path)? {
                    continue;
                }
                let (mut reader, counter) = open_counted(path)?;
                let position = || (counter.bytes(), Some(counter.total()));
                parsing.text(&path.display().to_string(), &mut *reader, &position)?;
            }
        }
    }
    parsing.finish()
}

/// A byte order mark, which some editors put in front of UTF-8 text.
pub(crate) const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";

/// Files being read: the samples so far, and their end in the file.
pub(super) struct Parsing<'a, T: Float, F: RowFormat<T>> {
    pub(super) format: &'a F,
    pub(super) options: &'a ReadOptions,
    pub(super) n_threads: usize,
    /// The files so far, the one being read last.
    pub(super) names: Vec<String>,
    pub(super) rows: Chunk<T>,
    /// One parser for each thread, once there is text; the first appends to `rows`.
    parsers: Vec<F::Parser>,
    pub(super) more: Vec<Chunk<T>>,
    pub(super) skips: Skips,
    /// Lines of the file before the next block.
    lines: u64,
    /// The bytes of text that have become samples.
    bytes: usize,
}

impl<'a, T: Float, F: RowFormat<T>> Parsing<'a, T, F> {
    fn new(format: &'a F, options: &'a ReadOptions) -> Self {
        let columns = format.columns();
        let n_threads = match format.independent_rows() {
            Ok(()) => options.n_threads().min(MAX_PARTS),
            Err(_) => 1,
        };
        Parsing {
            format,
            options,
            n_threads,
            names: Vec::new(),
            rows: Chunk::new(&columns),
            parsers: Vec::new(),
            more: (1..n_threads).map(|_| Chunk::new(&columns)).collect(),
            skips: Skips::new(options.on_error),
            lines: 0,
            bytes: 0,
        }
    }

    /// Reads the text of a file; `position` says how many of its bytes have been read.
    fn text(
        &mut self,
        name: &str,
        reader: &mut dyn Read,
        position: &dyn Fn() -> (u64, Option<u64>),
    ) -> Result<(), ReadError> {
        self.names.push(name.to_owned());
        self.lines = 0;
        let names = &self.options.label_names;
        let mut with_words;
        let reader: &mut dyn Read = if names.is_empty() {
            reader
        } else {
            with_words = LabelWords::new(reader, Arc::clone(names));
            &mut with_words
        };
        let reader = JoinedLines::new(reader, self.format.quoted_separator());
        let mut blocks = Blocks::with_size(reader, BLOCK_BYTES * self.n_threads);
        let mut is_first = true;
        while let Some(block) = blocks.next().map_err(|error| error.after(name, self.lines))? {
            if std::mem::take(&mut is_first) {
                self.first(block.strip_prefix(BYTE_ORDER_MARK).unwrap_or(block))?;
            } else {
                self.block(block)?;
            }
            let (bytes, total) = position();
            self.options.tell(name, bytes, total);
        }
        Ok(())
    }

    /// The name of the file being read.
    fn name(&self) -> &str {
        self.names.last().map_or("", String::as_str)
    }

    /// Reads the first block of a file.
    fn first(&mut self, text: &[u8]) -> Result<(), ReadError> {
        if self.parsers.is_empty() {
            self.parsers = (0..self.n_threads).map(|_| self.format.parser(text)).collect();
        }
        let header = self.parsers[0].header(text).map_err(|fault| ReadError::Syntax {
            place: self.place(0, text, fault.offset),
            problem: fault.problem,
        })?;
        let (header, rows) = text.split_at(header);
        self.lines += self.count(header);
        self.block(rows)
    }

    /// Reads a block of whole lines, of equal bytes for each thread.
    fn block(&mut self, text: &[u8]) -> Result<(), ReadError> {
        if self.bytes > 0 {
            let grown = self.rows.grow(text.len() as f64 / self.bytes as f64);
            grown
                .map_err(|bytes| ReadError::OutOfMemory { file: self.name().to_owned(), bytes })?;
        }
        self.bytes = self.bytes.saturating_add(text.len());
        // Where there is little left, a thread costs more than it saves.
        let n_parts = (text.len() / (BLOCK_BYTES / 2)).clamp(1, self.parsers.len());
        let mut left = text;
        let parts = (0..n_parts).map(|part| {
            let size = left.len() / (n_parts - part);
            let end = memchr::memchr(b'\n', &left[size..]);
            let end = if part + 1 == n_parts { None } else { end };
            let (head, rest) = left.split_at(end.map_or(left.len(), |end| size + end + 1));
            left = rest;
            head
        });
        let parts: Vec<&[u8]> = parts.collect();
        let on_error = self.options.on_error;
        let mut faults = vec![Vec::new(); n_parts];
        let chunks = std::iter::once(&mut self.rows).chain(&mut self.more);
        let work = self.parsers.iter_mut().zip(chunks).zip(&parts).zip(&mut faults);
        let mut work: Vec<_> = work.collect();
        thread_pool::each(&mut work, |_, (((parser, rows), part), faults)| {
            **faults = parse_part(&mut **parser, part, rows, on_error);
        });
        let mut start = 0;
        for (part, faults) in parts.iter().zip(faults) {
            for fault in faults {
                let place = self.place(self.lines, text, start + fault.offset);
                self.skips.add(place, fault.problem)?;
            }
            start += part.len();
        }
        self.more.iter_mut().for_each(|rows| self.rows.append(rows));
        self.lines += self.count(text);
        Ok(())
    }

    /// The lines of a text of this format.
    fn count(&self, text: &[u8]) -> u64 {
        match self.format.quoted_separator() {
            Some(_) => count_joined_lines(text),
            None => count_lines(text),
        }
    }

    /// The place of an offset in a text of this format.
    fn place(&self, lines: u64, text: &[u8], offset: usize) -> Place {
        match self.format.quoted_separator() {
            Some(_) => place_in_joined(self.name(), lines, text, offset),
            None => place_in(self.name(), lines, text, offset),
        }
    }

    fn finish(self) -> Result<Dataset<T>, ReadError> {
        let file = self.names.join(", ");
        if self.rows.n_rows == 0 {
            return Err(ReadError::Empty { file });
        }
        let columns = self.format.columns();
        let dataset = self
            .rows
            .into_dataset(&columns)
            .map_err(|source| ReadError::Data { file: file.clone(), source: Box::new(source) })?;
        let report = ReadReport {
            index_base: self.format.known_base(),
            n_skipped: self.skips.count,
            first_skipped: self.skips.first,
            ..ReadReport::of_file(file)
        };
        // Formats whose parsers number ids have one parser, and columnar files need none.
        let id_maps = self.parsers.into_iter().next().map(F::Parser::id_maps).unwrap_or_default();
        Ok(dataset.with_report(report).with_id_maps(id_maps))
    }
}

//! Reading text of any format from files and bytes into a dataset.

use super::super::blocks::{BLOCK_BYTES, Blocks, open_counted};
use super::super::delimited::JoinedLines;
use super::super::{Dataset, Place, ReadError, ReadReport};
use super::{
    Chunk, OnError, RowFormat, RowParser, Skips, WholeFormat, count_joined_lines, count_lines,
    parse_part, place_in, place_in_joined,
};
use nnz_arrays::kernels::Parallel;
use nnz_device::thread_pool::{self, MAX_PARTS};
use sparse_core::element::Float;
use std::fmt;
use std::io::Read;
use std::marker::PhantomData;
use std::path::Path;
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
        let path = path.as_ref();
        let (mut reader, counter) = open_counted(path)?;
        let position = || (counter.bytes(), Some(counter.total()));
        let (name, reader) = (&*path.display().to_string(), &mut reader);
        self.format.read_whole(WholeText { name, reader, position: &position }, &self.options)
    }

    /// Reads everything from a reader; `name` stands for the file in messages.
    ///
    /// # Errors
    ///
    /// As [`read_path`](TextReader::read_path).
    pub fn read(&self, name: &str, mut reader: impl Read) -> Result<Dataset<T>, ReadError> {
        let text = WholeText { name, reader: &mut reader, position: &|| (0, None) };
        self.format.read_whole(text, &self.options)
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

/// A text that is read as a whole.
#[doc(hidden)]
pub struct WholeText<'t> {
    /// Stands for the file in messages.
    name: &'t str,
    reader: &'t mut dyn Read,
    /// The bytes read so far, and those of the file, if they are known.
    position: &'t dyn Fn() -> (u64, Option<u64>),
}

impl fmt::Debug for WholeText<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WholeText").field("name", &self.name).finish_non_exhaustive()
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
    WholeText { name, reader, position }: WholeText<'_>,
    options: &ReadOptions,
) -> Result<Dataset<T>, ReadError> {
    options.parallel.check("TextReader::parallel")?;
    let n_threads = match format.independent_rows() {
        Ok(()) => options.n_threads().min(MAX_PARTS),
        Err(_) => 1,
    };
    let reader = JoinedLines::new(reader, format.quoted_separator());
    let mut blocks = Blocks::with_size(reader, BLOCK_BYTES * n_threads);
    let mut parsing: Option<Parsing<'_, T, F>> = None;
    loop {
        let lines = parsing.as_ref().map_or(0, |parsing| parsing.lines);
        let block = blocks.next().map_err(|error| error.after(name, lines))?;
        let Some(block) = block else { break };
        match &mut parsing {
            Some(parsing) => parsing.block(block)?,
            None => {
                let text = block.strip_prefix(BYTE_ORDER_MARK).unwrap_or(block);
                let parsed = Parsing::new(name, (format, options), n_threads, text)?;
                parsing.insert(parsed).first(text)?;
            }
        }
        let (bytes, total) = position();
        options.tell(name, bytes, total);
    }
    match parsing {
        Some(parsing) if parsing.rows.n_rows > 0 => parsing.finish(),
        _ => Err(ReadError::Empty { file: name.to_owned() }),
    }
}

/// A byte order mark, which some editors put in front of UTF-8 text.
pub(crate) const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";

/// A file being read: the samples so far, and their end in the file.
struct Parsing<'a, T: Float, F: RowFormat<T>> {
    name: &'a str,
    format: &'a F,
    options: &'a ReadOptions,
    rows: Chunk<T>,
    /// One parser for each thread; the first appends to `rows`.
    parsers: Vec<F::Parser>,
    more: Vec<Chunk<T>>,
    skips: Skips,
    /// Lines before the next block.
    lines: u64,
    /// The bytes of text that have become samples.
    bytes: usize,
}

impl<'a, T: Float, F: RowFormat<T>> Parsing<'a, T, F> {
    fn new(
        name: &'a str,
        (format, options): (&'a F, &'a ReadOptions),
        n_threads: usize,
        head: &[u8],
    ) -> Result<Self, ReadError> {
        let columns = format.columns();
        Ok(Parsing {
            name,
            format,
            options,
            rows: Chunk::new(&columns),
            parsers: (0..n_threads).map(|_| format.parser(head)).collect(),
            more: (1..n_threads).map(|_| Chunk::new(&columns)).collect(),
            skips: Skips::new(options.on_error),
            lines: 0,
            bytes: 0,
        })
    }

    /// Reads the first block of a file.
    fn first(&mut self, text: &[u8]) -> Result<(), ReadError> {
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
            let file = || self.name.to_owned();
            grown.map_err(|bytes| ReadError::OutOfMemory { file: file(), bytes })?;
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
            Some(_) => place_in_joined(self.name, lines, text, offset),
            None => place_in(self.name, lines, text, offset),
        }
    }

    fn finish(mut self) -> Result<Dataset<T>, ReadError> {
        let file = self.name.to_owned();
        let columns = self.format.columns();
        let dataset = self
            .rows
            .into_dataset(&columns)
            .map_err(|source| ReadError::Data { file: file.clone(), source: Box::new(source) })?;
        let report = ReadReport {
            n_skipped: self.skips.count,
            first_skipped: self.skips.first,
            ..ReadReport::of_file(file)
        };
        // Formats whose parsers number ids have one parser.
        Ok(dataset.with_report(report).with_id_maps(self.parsers.swap_remove(0).id_maps()))
    }
}

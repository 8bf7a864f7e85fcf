//! Reading LibSVM text from files and bytes into a dataset.

use super::super::blocks::{BLOCK_BYTES, Blocks, Compression, io_error, open};
use super::super::read_error::Fault;
use super::super::text::{BYTE_ORDER_MARK, Skips, count_lines, place_in, skip_faults};
use super::super::{Dataset, OnError, Place, ReadError, ReadReport};
use super::file_part::{FilePart, lines_before};
use super::parallel::{Found, Reading, lines_of_piece, n_pieces, read_pieces};
use super::parse::Rules;
use super::parsed_samples::ParsedSamples;
use super::tolerance::Tolerance;
use crate::Problem;
use nnz_arrays::formats::{ColumnIds, Csr};
use nnz_arrays::in_library;
use nnz_arrays::kernels::Parallel;
use nnz_device::thread_pool::MAX_PARTS;
use sparse_core::element::Float;
use std::fs::File;
use std::io::{BufRead, BufReader, Cursor, Read, Seek, SeekFrom};
use std::marker::PhantomData;
use std::path::Path;

/// The index of the first feature in a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum IndexBase {
    /// Features are counted from zero.
    Zero,
    /// Features are counted from one, as LIBSVM itself does.
    One,
    /// From one, unless an index 0 occurs. A test file can lack the index 0 of its training file:
    /// read both with the base that [`ReadReport`](super::super::ReadReport) has of the training
    /// file.
    #[default]
    Detect,
}

/// Reads a LibSVM file of `f32`; see [`Reader`] for more control.
///
/// The largest index gives the number of features. Linear in the size of the file; the text is
/// never in memory as a whole.
///
/// # Errors
///
/// As [`Reader::read_path`].
pub fn read(path: impl AsRef<Path>, index_base: IndexBase) -> Result<Dataset<f32>, ReadError> {
    Reader::new().index_base(index_base).read_path(path)
}

/// Reads LibSVM text.
#[derive(Clone, Debug)]
pub struct Reader<T: Float = f32> {
    pub(super) index_base: IndexBase,
    pub(super) n_features: Option<usize>,
    pub(super) part: Option<FilePart>,
    pub(super) tolerance: Tolerance,
    parallel: Parallel,
    on_error: OnError,
    element: PhantomData<T>,
}

impl Reader {
    /// A reader of `f32` that detects the index base and the number of features.
    pub fn new() -> Self {
        Reader {
            index_base: IndexBase::Detect,
            n_features: None,
            part: None,
            tolerance: Tolerance::default(),
            parallel: Parallel::Sequential,
            on_error: OnError::Fail,
            element: PhantomData,
        }
    }
}

impl Default for Reader {
    fn default() -> Self {
        Reader::new()
    }
}

impl<T: Float> Reader<T> {
    fn n_threads(&self) -> usize {
        self.parallel.n_threads().min(MAX_PARTS)
    }

    /// Sets the index of the first feature.
    #[must_use]
    pub fn index_base(mut self, index_base: IndexBase) -> Self {
        self.index_base = index_base;
        self
    }

    /// Declares the number of features: the matrix gets this width, and an index beyond it is an
    /// error.
    #[must_use]
    pub fn n_features(mut self, n_features: impl Into<Option<usize>>) -> Self {
        self.n_features = n_features.into();
        self
    }

    /// Reads only part `index` of `count`, for one of several processes. Parts are whole lines, of
    /// about equal bytes, and hold every line once. Only that part of the file is read. The index
    /// base and the number of features must be declared, because a part does not show those of the
    /// others.
    ///
    /// ```
    /// use nnz::data::libsvm::{IndexBase, Reader};
    ///
    /// let text = b"1 1:0.5\n-1 2:1\n1 1:2\n";
    /// let reader = Reader::new().index_base(IndexBase::One).n_features(2);
    /// let parts = [0, 1].map(|index| reader.clone().part(index, 2).read_bytes("inline", text));
    /// assert_eq!(parts.map(|part| part.map_or(0, |part| part.n_rows())), [2, 1]);
    /// ```
    #[must_use]
    pub fn part(mut self, index: usize, count: usize) -> Self {
        let part = FilePart { index, count };
        self.part = (part != FilePart { index: 0, count: 1 }).then_some(part);
        self
    }

    /// The number of threads that may parse; 1 by default, and at most 32 are used. Neither the
    /// result nor the reported fault depends on it. Reading refuses more than
    /// [`MAX_THREADS`](nnz_arrays::kernels::MAX_THREADS).
    #[must_use]
    pub fn parallel(mut self, parallel: Parallel) -> Self {
        self.parallel = parallel;
        self
    }

    /// The handling of unreadable samples; by default reading ends with the first.
    #[must_use]
    pub fn on_error(mut self, on_error: OnError) -> Self {
        self.on_error = on_error;
        self
    }

    /// Reads labels and values as another element type.
    #[must_use]
    pub fn element<U: Float>(self) -> Reader<U> {
        Reader {
            index_base: self.index_base,
            n_features: self.n_features,
            part: self.part,
            tolerance: self.tolerance,
            parallel: self.parallel,
            on_error: self.on_error,
            element: PhantomData,
        }
    }

    /// Reads a file. A name that ends in `.gz` or `.zst` is decompressed (features `gzip` and
    /// `zstd`), with any number of members or frames.
    ///
    /// # Errors
    ///
    /// [`ReadError::Io`], [`ReadError::Syntax`], [`ReadError::Empty`]; for gzip files
    /// [`ReadError::TruncatedGzip`], [`ReadError::CorruptGzip`] and [`ReadError::FeatureDisabled`];
    /// [`ReadError::Part`] for a part of a file that cannot be cut, or that has no samples.
    pub fn read_path(&self, path: impl AsRef<Path>) -> Result<Dataset<T>, ReadError> {
        let (reader, path) = (self, path.as_ref());
        in_library!(<T> Reader::<T>::file => (
            reader: &Reader<T>,
            path: &Path,
        ) -> Result<Dataset<T>, ReadError>)
    }

    fn file(&self, path: &Path) -> Result<Dataset<T>, ReadError> {
        let name = path.display().to_string();
        match self.part {
            None => {
                let reader = open(path)?;
                let bytes = match Compression::of(&name) {
                    None => std::fs::metadata(path).map_or(0, |metadata| metadata.len()),
                    Some(_) => 0,
                };
                self.read_lines(&name, true, reader, bytes)
            }
            Some(part) if Compression::of(&name).is_some() => {
                Err(no_part(&name, part, "a compressed file cannot be cut: decompress it first"))
            }
            Some(part) => {
                let file = File::open(path).map_err(|source| io_error(&name, source))?;
                self.read_part(&name, part, BufReader::new(file))
            }
        }
    }

    /// Reads everything from a reader; `name` stands for the file in messages.
    ///
    /// # Errors
    ///
    /// As [`read_path`](Reader::read_path); [`ReadError::Part`] if a part was requested.
    pub fn read(&self, name: &str, reader: impl Read) -> Result<Dataset<T>, ReadError> {
        match self.part {
            None => self.read_lines(name, true, reader, 0),
            Some(part) => Err(no_part(
                name,
                part,
                "a stream cannot be cut: read it from a path or from bytes",
            )),
        }
    }

    /// Reads text in memory; `name` stands for the file in messages.
    ///
    /// # Errors
    ///
    /// [`ReadError::Syntax`], [`ReadError::Empty`] and [`ReadError::Part`].
    pub fn read_bytes(&self, name: &str, text: &[u8]) -> Result<Dataset<T>, ReadError> {
        let reader = self;
        in_library!(<T> Reader::<T>::text => (
            reader: &Reader<T>,
            name: &str,
            text: &[u8],
        ) -> Result<Dataset<T>, ReadError>)
    }

    fn text(&self, name: &str, text: &[u8]) -> Result<Dataset<T>, ReadError> {
        if let Some(part) = self.part {
            return self.read_part(name, part, Cursor::new(text));
        }
        self.parallel.check("libsvm::Reader::parallel")?;
        let mut parsing = Parsing::new(name, self, true, text.len());
        parsing.block(text)?;
        parsing.finish()
    }

    /// `bytes` is the number of bytes to come, if known.
    fn read_lines(
        &self,
        name: &str,
        at_start: bool,
        reader: impl Read,
        bytes: u64,
    ) -> Result<Dataset<T>, ReadError> {
        self.parallel.check("libsvm::Reader::parallel")?;
        let bytes = usize::try_from(bytes).unwrap_or(0);
        let mut parsing = Parsing::new(name, self, at_start, bytes);
        let mut blocks = Blocks::with_size(reader, parsing.block_bytes());
        while let Some(block) =
            blocks.next().map_err(|error| error.after(name, parsing.rows.lines))?
        {
            parsing.block(block)?;
        }
        parsing.finish()
    }

    fn read_part(
        &self,
        name: &str,
        part: FilePart,
        mut file: impl BufRead + Seek,
    ) -> Result<Dataset<T>, ReadError> {
        if let Some(problem) = part.problem() {
            return Err(no_part(name, part, problem));
        }
        if self.index_base == IndexBase::Detect || self.n_features.is_none() {
            let reason =
                "declare `index_base` and `n_features`: a part does not show what the others hold";
            return Err(no_part(name, part, reason));
        }
        let io = |source| io_error(name, source);
        let bytes = part.bytes(&mut file).map_err(io)?;
        file.seek(SeekFrom::Start(bytes.start)).map_err(io)?;
        let lines = (&mut file).take(bytes.end - bytes.start);
        match self.read_lines(name, bytes.start == 0, lines, bytes.end - bytes.start) {
            Err(ReadError::Syntax { mut place, problem }) => {
                place.line += lines_before(&mut file, bytes.start).map_err(io)?;
                Err(ReadError::Syntax { place, problem })
            }
            Err(ReadError::TooManySkipped { mut place, problem, limit }) => {
                place.line += lines_before(&mut file, bytes.start).map_err(io)?;
                Err(ReadError::TooManySkipped { place, problem, limit })
            }
            Err(ReadError::Empty { .. }) => {
                Err(no_part(name, part, "it has no rows: make fewer parts"))
            }
            Ok(mut data) => {
                data.move_skipped(|| lines_before(&mut file, bytes.start)).map_err(io)?;
                Ok(data)
            }
            result => result,
        }
    }
}

#[cold]
fn no_part(file: &str, part: FilePart, reason: &'static str) -> ReadError {
    let FilePart { index, count } = part;
    ReadError::Part { file: file.to_owned(), index, count, reason }
}

/// A file being read: the samples so far and their end in the file.
struct Parsing<'a, T: Float> {
    name: &'a str,
    rules: Rules,
    rows: ParsedSamples<T>,
    n_threads: usize,
    /// Buffers for each of several threads.
    readings: Vec<Reading<T>>,
    /// Whether the next block begins the file.
    at_start: bool,
    /// The bytes of the file, if they are known and not yet reserved.
    bytes: usize,
    /// The first sample that is within the declared width only if indices count from one.
    needs_base_one: Option<Place>,
    on_error: OnError,
    skips: Skips,
}

impl<'a, T: Float> Parsing<'a, T> {
    fn new(name: &'a str, reader: &Reader<T>, at_start: bool, bytes: usize) -> Self {
        Parsing {
            name,
            rules: Rules {
                base: reader.index_base,
                n_features: reader.n_features.map(|n| n as u64),
                tolerance: reader.tolerance,
            },
            rows: ParsedSamples::new(reader.index_base),
            n_threads: reader.n_threads(),
            readings: Vec::new(),
            at_start,
            bytes,
            needs_base_one: None,
            on_error: reader.on_error,
            skips: Skips::new(reader.on_error),
        }
    }

    /// The bytes of one read.
    fn block_bytes(&self) -> usize {
        BLOCK_BYTES * self.n_threads
    }

    /// Reserves memory for the samples of the whole file, estimated from its head.
    fn make_room(&mut self, head: &[u8]) {
        let bytes = std::mem::take(&mut self.bytes);
        if bytes > 0 {
            let (rows, entries) = promised(head, bytes);
            self.rows.reserve(rows, entries);
        }
    }

    /// Reads a block of whole lines.
    fn block(&mut self, block: &[u8]) -> Result<(), ReadError> {
        let text = match block.strip_prefix(BYTE_ORDER_MARK) {
            Some(text) if self.at_start => text,
            _ => block,
        };
        self.at_start = false;
        self.make_room(text);
        let mut rest = text;
        while !rest.is_empty() {
            // A fault is found before all of a long text is read, and its line is counted from near
            // by.
            let head = lines_up_to(rest, 8 * BLOCK_BYTES);
            self.lines_of_threads(head)?;
            rest = &rest[head.len()..];
        }
        Ok(())
    }

    /// Reserves memory for the samples of a text, so that lack of memory is an error.
    fn grow_for(&mut self, text: &[u8]) -> Result<(), ReadError> {
        let (n_rows, n_entries) = promised(text, text.len());
        let grown = self.rows.grow(n_rows, n_entries);
        grown.map_err(|bytes| ReadError::OutOfMemory { file: self.name.to_owned(), bytes })
    }

    /// Reads whole lines.
    fn lines_of_threads(&mut self, text: &[u8]) -> Result<(), ReadError> {
        self.grow_for(text)?;
        // Where there is little, a thread costs more than it saves.
        let n_parts = (text.len() / (BLOCK_BYTES / 2)).clamp(1, self.n_threads);
        if n_parts > 1 {
            return self.lines_in_pieces(text, n_parts);
        }
        let lines = self.rows.lines;
        let faults = parse_part(&mut self.rows, text, self.rules, self.on_error);
        let needs_base_one = self.rows.needs_base_one;
        self.note(text, lines, 0, faults, needs_base_one)
    }

    /// Reads whole lines in pieces, each by a free thread.
    fn lines_in_pieces(&mut self, text: &[u8], n_parts: usize) -> Result<(), ReadError> {
        let (rules, on_error, lines) = (self.rules, self.on_error, self.rows.lines);
        if self.readings.len() < n_parts {
            self.readings.resize_with(n_parts, || Reading::new(rules.base));
        }
        let parse = |rows: &mut ParsedSamples<T>, piece: usize| {
            parse_part(rows, &text[lines_of_piece(text, piece)], rules, on_error)
        };
        let (mut next, n_pieces) = (0, n_pieces(text));
        while next < n_pieces {
            let readings = &mut self.readings[..n_parts];
            let (end, found) = read_pieces(&mut self.rows, readings, next..n_pieces, parse);
            for Found { piece, faults, needs_base_one } in found {
                self.note(text, lines, lines_of_piece(text, piece).start, faults, needs_base_one)?;
            }
            if end < n_pieces {
                // There was no room for it, or it is the first with wide columns: these rows grow,
                // and become wide.
                let start = lines_of_piece(text, end).start;
                self.grow_for(&text[start..])?;
                let faults = parse(&mut self.rows, end);
                let needs_base_one = self.rows.needs_base_one;
                self.note(text, lines, start, faults, needs_base_one)?;
            }
            next = end + 1;
        }
        Ok(())
    }

    /// Records the findings in some lines of a text, from `start` on. `lines` are those before the
    /// text.
    fn note(
        &mut self,
        text: &[u8],
        lines: u64,
        start: usize,
        faults: Vec<Fault>,
        needs_base_one: Option<usize>,
    ) -> Result<(), ReadError> {
        for Fault { offset, problem } in faults {
            let place = self.place(lines, text, start + offset);
            self.skips.add(place, problem)?;
        }
        if let (None, Some(offset)) = (&self.needs_base_one, needs_base_one) {
            self.needs_base_one = Some(self.place(lines, text, start + offset));
        }
        Ok(())
    }

    /// `lines` are those before the block.
    fn place(&self, lines: u64, block: &[u8], offset: usize) -> Place {
        place_in(self.name, lines, block, offset)
    }

    /// Determines the base and the width.
    fn finish(self) -> Result<Dataset<T>, ReadError> {
        let file = || self.name.to_owned();
        let mut rows = self.rows;
        if rows.labels.is_empty() {
            return Err(ReadError::Empty { file: file() });
        }
        let base = match self.rules.base {
            IndexBase::Detect if rows.has_zero => IndexBase::Zero,
            IndexBase::Detect => IndexBase::One,
            known => known,
        };
        if let (IndexBase::Zero, Some(place), Some(n_features)) =
            (base, self.needs_base_one, self.rules.n_features)
        {
            let problem = Problem::BeyondDeclared { index: n_features, n_features, base: 0 };
            return Err(ReadError::Syntax { place, problem });
        }
        let first = u64::from(base == IndexBase::One);
        let n_columns = match (self.rules.n_features, rows.largest) {
            (Some(n_features), _) => n_features,
            (None, Some(largest)) => largest + 1 - first,
            (None, None) => 0,
        };
        let n_columns = usize::try_from(n_columns).map_err(|_| ReadError::Content {
            file: file(),
            message: format!("{n_columns} features are more than this machine can address"),
        })?;
        if self.rules.base == IndexBase::Detect && base == IndexBase::Zero {
            rows.count_from_zero();
        }
        rows.shrink();
        // The parser saw that indices ascend and are within the width.
        let features = match rows.columns {
            ColumnIds::U32(columns) => {
                Csr::from_canonical(n_columns, rows.indptr, columns, rows.values)
            }
            ColumnIds::U64(columns) => {
                Csr::from_canonical(n_columns, rows.indptr, columns, rows.values)
            }
        };
        let dataset = if self.rules.tolerance.any_label {
            Dataset::features_only(features)
        } else {
            Dataset::new(features, rows.labels)
        };
        let dataset =
            dataset.map_err(|source| ReadError::Data { file: file(), source: Box::new(source) })?;
        Ok(dataset.with_report(ReadReport {
            index_base: Some(base),
            detected: self.rules.base == IndexBase::Detect,
            n_skipped: self.skips.count,
            first_skipped: self.skips.first,
            ..ReadReport::of_file(file())
        }))
    }
}

/// Parses whole lines; returns the faults of skippable samples, and one more if there is one.
fn parse_part<T: Float>(
    rows: &mut ParsedSamples<T>,
    part: &[u8],
    rules: Rules,
    on_error: OnError,
) -> Vec<Fault> {
    let (mut needs_base_one, lines) = (None, rows.lines);
    let faults = skip_faults(part, on_error, |text| {
        let result = rows.parse(text, rules);
        let start = part.len() - text.len();
        needs_base_one = needs_base_one.or(rows.needs_base_one.map(|offset| start + offset));
        if result.is_err() {
            rows.discard_partial();
        }
        result
    });
    rows.needs_base_one = needs_base_one;
    if !faults.is_empty() {
        // The end of a line that was skipped was not passed.
        rows.lines = lines + count_lines(part);
    }
    faults
}

/// The first lines of a text: `size` bytes, extended to the end of the line there.
fn lines_up_to(text: &[u8], size: usize) -> &[u8] {
    let end = text.iter().skip(size).position(|&byte| byte == b'\n');
    &text[..end.map_or(text.len(), |end| size + end + 1)]
}

/// The estimated samples and entries of this number of bytes, and a few more.
fn promised(text: &[u8], bytes: usize) -> (usize, usize) {
    /// The bytes that are sampled.
    const HEAD: usize = 1 << 18;
    /// Parts of a file exceed the estimate.
    const MARGIN: f64 = 1.02;
    let head = &text[..text.len().min(HEAD)];
    let times = bytes as f64 / head.len().max(1) as f64 * MARGIN;
    let [rows, entries] = [b'\n', b':'].map(|mark| (count(head, mark) as f64 * times) as usize);
    (rows, entries)
}

fn count(text: &[u8], wanted: u8) -> u64 {
    // Counts of a byte each are added in one register, as many as a byte can hold.
    let found = |chunk: &[u8]| chunk.iter().map(|&byte| u8::from(byte == wanted)).sum::<u8>();
    text.chunks(usize::from(u8::MAX)).map(|chunk| u64::from(found(chunk))).sum()
}

//! Reading LibSVM text from files and bytes into a dataset.

use super::super::blocks::{Compression, io_error, open};
use super::super::{Dataset, OnError, ReadError};
use super::file_part::{FilePart, lines_before};
use super::parsing::Parsing;
use super::tolerance::Tolerance;
use nnz_arrays::in_library;
use nnz_arrays::kernels::Parallel;
use nnz_device::thread_pool::MAX_PARTS;
use serde::{Deserialize, Serialize};
use sparse_core::element::Float;
use std::fs::File;
use std::io::{BufRead, BufReader, Cursor, Read, Seek, SeekFrom};
use std::marker::PhantomData;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The index of the first feature in a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
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
    /// The words that are labels, in byte order; none where labels are numbers.
    pub(super) label_names: Arc<[String]>,
    parallel: Parallel,
    pub(super) on_error: OnError,
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
            label_names: Arc::default(),
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
    pub(super) fn n_threads(&self) -> usize {
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

    /// Labels are these words, in byte order: each is read as its position among them, from zero.
    /// Any other is an error. [`label_words`](crate::label_words) finds them.
    #[must_use]
    pub fn label_names(mut self, names: impl IntoIterator<Item = String>) -> Self {
        self.label_names = names.into_iter().collect();
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
            label_names: self.label_names,
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

    /// Reads files one after the other, as one: the index base and the number of features are those
    /// of all of them. A file may be without samples, as long as another has some. Errors name the
    /// file.
    ///
    /// # Errors
    ///
    /// As [`read_path`](Reader::read_path); [`ReadError::Part`] if a part was requested.
    pub fn read_paths<P: AsRef<Path>>(
        &self,
        paths: impl IntoIterator<Item = P>,
    ) -> Result<Dataset<T>, ReadError> {
        let paths: Vec<PathBuf> = paths.into_iter().map(|path| path.as_ref().to_owned()).collect();
        let (reader, paths) = (self, &paths[..]);
        in_library!(<T> Reader::<T>::files => (
            reader: &Reader<T>,
            paths: &[PathBuf],
        ) -> Result<Dataset<T>, ReadError>)
    }

    fn files(&self, paths: &[PathBuf]) -> Result<Dataset<T>, ReadError> {
        if let Some(part) = self.part {
            let names: Vec<String> = paths.iter().map(|path| path.display().to_string()).collect();
            let reason = "several files are not cut as one: read a part of each";
            return Err(no_part(&names.join(", "), part, reason));
        }
        self.parallel.check("libsvm::Reader::parallel")?;
        // Of a compressed file the bytes of text are not known.
        let plain = paths.iter().filter(|path| {
            let name = path.display().to_string();
            Compression::of(&name).is_none()
        });
        let bytes: u64 =
            plain.map(|path| std::fs::metadata(path).map_or(0, |metadata| metadata.len())).sum();
        let mut parsing = Parsing::new(self, usize::try_from(bytes).unwrap_or(0));
        for path in paths {
            parsing.lines_of(&path.display().to_string(), true, open(path)?)?;
        }
        parsing.finish()
    }

    fn file(&self, path: &Path) -> Result<Dataset<T>, ReadError> {
        let name = path.display().to_string();
        match self.part {
            None => self.files(&[path.to_owned()]),
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
        let mut parsing = Parsing::new(self, text.len());
        if self.label_names.is_empty() {
            parsing.begin(name, true);
            parsing.block(text)?;
        } else {
            parsing.lines_of(name, true, text)?;
        }
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
        let mut parsing = Parsing::new(self, usize::try_from(bytes).unwrap_or(0));
        parsing.lines_of(name, at_start, reader)?;
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

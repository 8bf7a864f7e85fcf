//! Files as blocks of whole lines: bounded memory for text of any size, plain or compressed.

use super::{Place, Problem, ReadError};
use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// The bytes of one read. A longer line makes the buffer grow to its length.
pub(crate) const BLOCK_BYTES: usize = 1 << 20;

/// The longest line, 256 MiB: far beyond any sample. It bounds the memory of a small compressed
/// file whose line does not end.
pub(crate) const LINE_BYTES: usize = 1 << 28;

/// Yields a reader's bytes in blocks that end at the end of a line (the last one may lack it).
pub(crate) struct Blocks<R> {
    reader: R,
    buffer: Vec<u8>,
    /// The filled bytes of `buffer`.
    filled: usize,
    /// The bytes at the front of `buffer` that the last block was.
    taken: usize,
    /// The size of a block.
    size: usize,
    /// The longest line.
    limit: usize,
}

/// The reason why there is no next block.
#[derive(Debug)]
pub(crate) enum BlocksError {
    Io(io::Error),
    LineTooLong { limit: usize },
}

impl BlocksError {
    /// The typed error, for the file `name` after this number of lines.
    pub(crate) fn after(self, name: &str, lines: u64) -> ReadError {
        match self {
            BlocksError::Io(source) => io_error(name, source),
            BlocksError::LineTooLong { limit } => ReadError::Syntax {
                place: Place { file: name.to_owned(), line: lines + 1, column: 1 },
                problem: Problem::LineTooLong { limit },
            },
        }
    }
}

impl<R: Read> Blocks<R> {
    /// With blocks of about this size instead of [`BLOCK_BYTES`].
    pub(crate) fn with_size(reader: R, size: usize) -> Self {
        Blocks { reader, buffer: Vec::new(), filled: 0, taken: 0, size, limit: LINE_BYTES }
    }

    /// With lines of up to this number of bytes instead of [`LINE_BYTES`].
    pub(crate) fn longest_line(self, limit: usize) -> Self {
        Blocks { limit, ..self }
    }

    /// The next block, never empty, or `None` at the end.
    pub(crate) fn next(&mut self) -> Result<Option<&[u8]>, BlocksError> {
        self.buffer.copy_within(self.taken..self.filled, 0);
        self.filled -= self.taken;
        self.taken = 0;
        loop {
            if self.buffer.len() - self.filled < self.size {
                self.buffer.resize(self.filled + self.size, 0);
            }
            let n = match self.reader.read(&mut self.buffer[self.filled..]) {
                Ok(n) => n,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => return Err(BlocksError::Io(error)),
            };
            let new = self.filled..self.filled + n;
            self.filled = new.end;
            if n == 0 {
                self.taken = self.filled;
                break;
            }
            // Only what is new can hold the first end of a line: what was carried over has none.
            if let Some(at) = self.buffer[new.clone()].iter().rposition(|&byte| byte == b'\n') {
                self.taken = new.start + at + 1;
                break;
            }
            if self.filled > self.limit {
                return Err(BlocksError::LineTooLong { limit: self.limit });
            }
        }
        Ok((self.taken > 0).then(|| &self.buffer[..self.taken]))
    }
}

/// Opens a file for reading; a name that ends in `.gz` or `.zst` is decompressed on the way.
pub(crate) fn open(path: &Path) -> Result<Box<dyn Read + Send>, ReadError> {
    Ok(open_counted(path)?.0)
}

/// Like [`open`], with the count of bytes on disk.
pub(crate) fn open_counted(path: &Path) -> Result<(Box<dyn Read + Send>, ByteCount), ReadError> {
    let name = path.display().to_string();
    let mut file = File::open(path).map_err(|source| io_error(&name, source))?;
    let metadata = file.metadata().map_err(|source| io_error(&name, source))?;
    let total = metadata.len();
    // What is read of a pipe is gone.
    if metadata.is_file() && Compression::of(&name).is_none() {
        check_text(&name, &mut file)?;
    }
    let count = ByteCount { bytes: Arc::default(), total };
    let file = Counted { file, bytes: Arc::clone(&count.bytes) };
    let reader = match Compression::of(&name) {
        None => Box::new(file),
        Some(Compression::Gzip) => gunzip(name, file)?,
        Some(Compression::Zstd) => unzstd(name, file)?,
    };
    Ok((reader, count))
}

/// What to do with a columnar file that a format of text cannot read.
#[cfg(feature = "parquet")]
const COLUMNAR: &str = "read its columns as a table, by `Delimited` (`--format csv`), or as sparse rows, by `SparseColumns` (`--format sparse-columns`)";
#[cfg(not(feature = "parquet"))]
const COLUMNAR: &str = "enable the feature `parquet` of `nnz` or of its program (`cargo install nnz-cli --features parquet`) to read it, or write it as csv, with pandas by `to_csv`";

/// The first bytes of files that are not text, what they are, and what to do.
const OTHER_FILES: &[(&[u8], &str, &str)] = &[
    (b"\x1f\x8b", "compressed by gzip", "give it a name that ends in .gz"),
    (b"\x28\xb5\x2f\xfd", "compressed by zstd", "give it a name that ends in .zst"),
    (b"BZh", "compressed by bzip2", "decompress it by `bunzip2`"),
    (b"\xfd7zXZ\0", "compressed by xz", "decompress it by `unxz`"),
    (
        b"PK\x03\x04",
        "a zip archive, as npz files are",
        "take the file out of it by `unzip`; of an npz file of SciPy `nnz::data::npz` reads the matrix",
    ),
    (b"PAR1", "a Parquet file", COLUMNAR),
    (b"ARROW1", "an Arrow file", COLUMNAR),
    (
        b"FEA1",
        "a Feather file of version 1",
        "write it by a newer pyarrow, as version 2, or as csv, with pandas by `to_csv`",
    ),
    (b"\x93NUMPY", "an array of NumPy", "write it as text, or as a sparse matrix by `save_npz`"),
    (b"\x89HDF", "an HDF5 file", "write it as csv, with pandas by `to_csv`"),
    (b"\xff\xfe", "text in UTF-16", "convert it by `iconv -f UTF-16 -t UTF-8`"),
    (b"\xfe\xff", "text in UTF-16", "convert it by `iconv -f UTF-16 -t UTF-8`"),
];

/// Refuses a file whose first bytes say that it is not text, and returns to its beginning.
fn check_text(name: &str, file: &mut File) -> Result<(), ReadError> {
    let io = |source| io_error(name, source);
    let mut head = Vec::new();
    (&mut *file).take(8).read_to_end(&mut head).map_err(io)?;
    file.seek(SeekFrom::Start(0)).map_err(io)?;
    match OTHER_FILES.iter().find(|(magic, ..)| head.starts_with(magic)) {
        Some((_, found, help)) => Err(ReadError::OtherFile { file: name.to_owned(), found, help }),
        None => Ok(()),
    }
}

/// The bytes of a file read so far.
pub(crate) struct ByteCount {
    bytes: Arc<AtomicU64>,
    total: u64,
}

impl ByteCount {
    /// The bytes read so far.
    pub(crate) fn bytes(&self) -> u64 {
        self.bytes.load(Ordering::Relaxed)
    }

    /// The bytes of the file.
    pub(crate) fn total(&self) -> u64 {
        self.total
    }
}

struct Counted {
    file: File,
    bytes: Arc<AtomicU64>,
}

impl Read for Counted {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let n = self.file.read(buffer)?;
        self.bytes.fetch_add(n as u64, Ordering::Relaxed);
        Ok(n)
    }
}

/// The compression of a file, by the ending of its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Compression {
    Gzip,
    Zstd,
}

impl Compression {
    pub(crate) fn of(name: &str) -> Option<Self> {
        match name {
            name if name.ends_with(".gz") => Some(Compression::Gzip),
            name if name.ends_with(".zst") => Some(Compression::Zstd),
            _ => None,
        }
    }
}

#[cfg(feature = "gzip")]
fn gunzip(_: String, file: Counted) -> Result<Box<dyn Read + Send>, ReadError> {
    Ok(Box::new(super::gzip::Members::new(io::BufReader::new(file))))
}

#[cfg(not(feature = "gzip"))]
fn gunzip(file: String, _: Counted) -> Result<Box<dyn Read + Send>, ReadError> {
    Err(ReadError::FeatureDisabled { file, feature: "gzip" })
}

#[cfg(feature = "zstd")]
fn unzstd(_: String, file: Counted) -> Result<Box<dyn Read + Send>, ReadError> {
    Ok(Box::new(super::zstd::Frames::new(file)))
}

#[cfg(not(feature = "zstd"))]
fn unzstd(file: String, _: Counted) -> Result<Box<dyn Read + Send>, ReadError> {
    Err(ReadError::FeatureDisabled { file, feature: "zstd" })
}

/// The typed error for a failed read of the file `name`.
pub(crate) fn io_error(name: &str, source: io::Error) -> ReadError {
    use io::ErrorKind::{InvalidData, InvalidInput, UnexpectedEof};
    let file = name.to_owned();
    // The decoders have no error type of their own, or tell theirs by the kind.
    match (Compression::of(name), source.kind()) {
        (Some(Compression::Gzip), UnexpectedEof) => ReadError::TruncatedGzip { file },
        (Some(Compression::Gzip), InvalidInput | InvalidData) => {
            ReadError::CorruptGzip { file, message: source.to_string() }
        }
        (Some(Compression::Zstd), InvalidData | UnexpectedEof) => {
            ReadError::CorruptZstd { file, message: source.to_string() }
        }
        _ => ReadError::Io { file, source },
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Reads at most `step` bytes at a time.
    struct Slow<'a>(&'a [u8], usize);

    impl Read for Slow<'_> {
        fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
            let n = buffer.len().min(self.1);
            self.0.read(&mut buffer[..n])
        }
    }

    #[test]
    fn a_line_without_an_end_is_not_read_to_the_end_of_the_memory() {
        let endless = "a\nb\n".as_bytes().chain(io::repeat(b'c'));
        let mut blocks = Blocks::with_size(endless, 16).longest_line(1000);
        assert_eq!(blocks.next().unwrap(), Some(&b"a\nb\n"[..]));
        let error = blocks.next().unwrap_err().after("rows.gz", 2).to_string();
        assert!(error.starts_with("rows.gz:3:1: a line of more than 1000 bytes"), "{error}");
        assert!(blocks.buffer.capacity() < 4000);
    }

    #[test]
    fn d20_files_that_are_not_text_are_named_by_their_first_bytes() {
        let path = std::env::temp_dir().join(format!("nnz-d20-{}.svm", std::process::id()));
        for (head, found) in [
            (
                &b"PAR1\x15\x04"[..],
                if cfg!(feature = "parquet") {
                    "is a Parquet file: read its columns as a table, by `Delimited`"
                } else {
                    "is a Parquet file: enable the feature `parquet` of `nnz`"
                },
            ),
            (b"\x1f\x8b\x08", "is compressed by gzip: give it a name that ends in .gz"),
            (b"BZh91AY&SY", "is compressed by bzip2"),
            (b"\xfd7zXZ\0\0", "is compressed by xz"),
            (b"PK\x03\x04\x14", "is a zip archive, as npz files are"),
            (b"\xff\xfe1\0 \0", "is text in UTF-16: convert it by `iconv"),
        ] {
            std::fs::write(&path, head).unwrap();
            let error = open(&path).err().unwrap().to_string();
            assert!(error.contains(found), "{error}");
        }
        std::fs::write(&path, "1 1:1\n0 2:1\n").unwrap();
        let mut text = String::new();
        open(&path).unwrap().read_to_string(&mut text).unwrap();
        assert_eq!(text, "1 1:1\n0 2:1\n");
        std::fs::remove_file(&path).unwrap();
    }

    proptest! {
        #[test]
        fn whole_lines_and_nothing_lost(text in "[ab\n]{0,40}", step in 1usize..9, size in 1usize..9) {
            let mut blocks = Blocks::with_size(Slow(text.as_bytes(), step), size);
            let mut found = Vec::new();
            let mut complete = true;
            while let Some(block) = blocks.next().unwrap() {
                prop_assert!(complete, "a block without an end of line that is not the last");
                prop_assert!(!block.is_empty());
                complete = block.ends_with(b"\n");
                found.extend_from_slice(block);
            }
            prop_assert_eq!(found, text.as_bytes());
            prop_assert!(blocks.next().unwrap().is_none());
        }
    }
}

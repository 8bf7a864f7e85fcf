//! Files as blocks of whole lines: bounded memory for text of any size, plain or compressed.

use super::{Place, Problem, ReadError};
use std::fs::File;
use std::io::{self, Read};
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
    let file = File::open(path).map_err(|source| io_error(&name, source))?;
    let total = file.metadata().map_err(|source| io_error(&name, source))?.len();
    let count = ByteCount { bytes: Arc::default(), total };
    let file = Counted { file, bytes: Arc::clone(&count.bytes) };
    let reader = match Compression::of(&name) {
        None => Box::new(file),
        Some(Compression::Gzip) => gunzip(name, file)?,
        Some(Compression::Zstd) => unzstd(name, file)?,
    };
    Ok((reader, count))
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
    Ok(Box::new(flate2::read::MultiGzDecoder::new(file)))
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

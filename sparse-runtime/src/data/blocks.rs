//! Files as blocks of whole lines: bounded memory for text of any size, plain or gzip.

use super::ReadError;
use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

/// How much is read at once. A line that is longer makes the buffer grow to its length.
pub(crate) const BLOCK_BYTES: usize = 1 << 20;

/// Yields a reader's bytes in blocks that end at the end of a line (the last one may lack it).
pub(crate) struct Blocks<R> {
    reader: R,
    buffer: Vec<u8>,
    /// The bytes of `buffer` that are filled.
    filled: usize,
    /// The bytes at the front of `buffer` that were handed out last.
    taken: usize,
    /// The size of a block.
    size: usize,
}

impl<R: Read> Blocks<R> {
    /// In blocks of about a given size instead of [`BLOCK_BYTES`].
    pub(crate) fn with_size(reader: R, size: usize) -> Self {
        Blocks { reader, buffer: Vec::new(), filled: 0, taken: 0, size }
    }

    /// The next block, never empty, or `None` at the end.
    pub(crate) fn next(&mut self) -> io::Result<Option<&[u8]>> {
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
                Err(error) => return Err(error),
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
        }
        Ok((self.taken > 0).then(|| &self.buffer[..self.taken]))
    }
}

/// Opens a file for reading; a name that ends in `.gz` is decompressed on the way.
pub(crate) fn open(path: &Path) -> Result<Box<dyn Read + Send>, ReadError> {
    let name = path.display().to_string();
    let file = File::open(path).map_err(|source| io_error(&name, source))?;
    if is_gzip(&name) { decompress(name, file) } else { Ok(Box::new(file)) }
}

/// Whether a file of this name is compressed.
pub(crate) fn is_gzip(name: &str) -> bool {
    name.ends_with(".gz")
}

#[cfg(feature = "gzip")]
fn decompress(_: String, file: File) -> Result<Box<dyn Read + Send>, ReadError> {
    Ok(Box::new(flate2::read::MultiGzDecoder::new(file)))
}

#[cfg(not(feature = "gzip"))]
fn decompress(file: String, _: File) -> Result<Box<dyn Read + Send>, ReadError> {
    Err(ReadError::FeatureDisabled { file, feature: "gzip" })
}

/// The typed error for what reading the file `name` gave.
pub(crate) fn io_error(name: &str, source: io::Error) -> ReadError {
    let file = name.to_owned();
    // The decoder has no error type of its own: it tells by the kind.
    match source.kind() {
        io::ErrorKind::UnexpectedEof if is_gzip(name) => ReadError::TruncatedGzip { file },
        io::ErrorKind::InvalidInput | io::ErrorKind::InvalidData if is_gzip(name) => {
            ReadError::CorruptGzip { file, message: source.to_string() }
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

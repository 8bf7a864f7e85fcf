//! Bytes in pieces, each with its length and checksum.

use crate::hashing::xxh64;
use std::io::{self, Read, Write};

/// The largest number of bytes of a piece.
const PIECE: usize = 1 << 20;

/// Writes `length: u32, XXH64: u64, bytes` for each piece, and an empty one in the end.
pub(super) struct PieceWriter<W: Write> {
    writer: W,
    piece: Vec<u8>,
}

impl<W: Write> PieceWriter<W> {
    pub(super) fn new(writer: W) -> Self {
        PieceWriter { writer, piece: Vec::with_capacity(PIECE) }
    }

    /// What is left, and the empty piece.
    pub(super) fn finish(mut self) -> io::Result<()> {
        if !self.piece.is_empty() {
            self.write_piece()?;
        }
        self.write_piece()
    }

    fn write_piece(&mut self) -> io::Result<()> {
        self.writer.write_all(&(self.piece.len() as u32).to_le_bytes())?;
        self.writer.write_all(&xxh64(&self.piece, 0).to_le_bytes())?;
        self.writer.write_all(&self.piece)?;
        self.piece.clear();
        Ok(())
    }
}

impl<W: Write> Write for PieceWriter<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let n = bytes.len().min(PIECE - self.piece.len());
        self.piece.extend_from_slice(&bytes[..n]);
        if self.piece.len() == PIECE {
            self.write_piece()?;
        }
        Ok(n)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.writer.flush()
    }
}

/// Reads the output of [`PieceWriter`]. A piece is checked before any byte of it is used.
pub(super) struct PieceReader<R: Read> {
    reader: R,
    piece: Vec<u8>,
    /// The bytes taken from the piece.
    taken: usize,
    is_over: bool,
}

impl<R: Read> PieceReader<R> {
    pub(super) fn new(reader: R) -> Self {
        PieceReader { reader, piece: Vec::new(), taken: 0, is_over: false }
    }

    /// Checks that nothing is left.
    pub(super) fn finish(mut self) -> io::Result<()> {
        let more =
            || io::Error::new(io::ErrorKind::InvalidData, "there is more than its header says");
        if self.read(&mut [0])? > 0 || self.reader.read(&mut [0])? > 0 {
            return Err(more());
        }
        Ok(())
    }

    fn read_piece(&mut self) -> io::Result<()> {
        let damaged = |message| Err(io::Error::new(io::ErrorKind::InvalidData, message));
        let (mut length, mut sum) = ([0; 4], [0; 8]);
        self.reader.read_exact(&mut length)?;
        self.reader.read_exact(&mut sum)?;
        let length = u32::from_le_bytes(length) as usize;
        if length > PIECE {
            return damaged("a piece of it is longer than pieces are: it is damaged");
        }
        self.piece.resize(length, 0);
        self.taken = 0;
        self.reader.read_exact(&mut self.piece)?;
        if xxh64(&self.piece, 0) != u64::from_le_bytes(sum) {
            return damaged("a checksum is wrong: it is damaged");
        }
        self.is_over = length == 0;
        Ok(())
    }
}

impl<R: Read> Read for PieceReader<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.taken == self.piece.len() && !self.is_over {
            self.read_piece()?;
        }
        let left = &self.piece[self.taken..];
        let n = left.len().min(buffer.len());
        buffer[..n].copy_from_slice(&left[..n]);
        self.taken += n;
        Ok(n)
    }
}

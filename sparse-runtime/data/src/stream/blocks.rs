//! Units of a file that can be read independently.

use super::super::ReadError;
use super::super::blocks::{Compression, io_error};
use super::SourceFile;
use std::fs::File;
use std::io::{Read, Seek, SeekFrom};

/// A part that can be read without earlier text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Unit {
    /// The lines that begin in a run of bytes.
    Lines { file: usize, start: u64, end: u64 },
    /// A whole compressed file, in blocks.
    Whole { file: usize },
    /// A row group of a columnar file, in batches; and its share of the bytes of the file.
    #[cfg(feature = "parquet")]
    Group { file: usize, group: usize, bytes: u64 },
}

impl Unit {
    pub(super) fn file(self) -> usize {
        match self {
            Unit::Lines { file, .. } | Unit::Whole { file } => file,
            #[cfg(feature = "parquet")]
            Unit::Group { file, .. } => file,
        }
    }

    /// Its bytes of the file, which has `len`.
    pub(super) fn bytes(self, len: u64) -> u64 {
        match self {
            Unit::Lines { start, end, .. } => end - start,
            Unit::Whole { .. } => len,
            #[cfg(feature = "parquet")]
            Unit::Group { bytes, .. } => bytes,
        }
    }
}

/// The units of some files, in order.
pub(super) fn units(files: &[SourceFile], block: usize) -> Vec<Unit> {
    let mut units = Vec::new();
    for (index, file) in files.iter().enumerate() {
        #[cfg(feature = "parquet")]
        if let Some(columns) = &file.columns {
            units.extend(columns.units(index, file.len));
            continue;
        }
        if Compression::of(&file.name).is_some() {
            units.push(Unit::Whole { file: index });
            continue;
        }
        let starts = (0..file.len).step_by(block);
        units.extend(starts.map(|start| Unit::Lines {
            file: index,
            start,
            end: file.len.min(start + block as u64),
        }));
    }
    units
}

/// The reason why the lines of a block could not be read.
pub(super) enum BlockFault {
    Read(ReadError),
    /// A line that begins here is longer than the limit.
    LongLine(u64),
}

/// Reads the lines that begin in `start..end` into `text`, and returns the start of the first of
/// them.
///
/// A line begins at the start of the file and after each `\n`. A block therefore holds exactly its
/// own lines, independently of the blocks around it.
pub(super) fn read_lines(
    name: &str,
    file: &mut File,
    (start, end): (u64, u64),
    limit: usize,
    text: &mut Vec<u8>,
) -> Result<u64, BlockFault> {
    /// The bytes of one read beyond the end: enough for the rest of most lines.
    const BEYOND: u64 = 4096;
    let io = |source| BlockFault::Read(io_error(name, source));
    text.clear();
    // The line end before the first byte counts.
    let from = start.saturating_sub(1);
    file.seek(SeekFrom::Start(from)).map_err(io)?;
    file.by_ref().take(end - from + BEYOND).read_to_end(text).map_err(io)?;
    let first = match start {
        0 => 0,
        _ => match memchr::memchr(b'\n', text) {
            Some(at) if from + (at as u64) + 1 < end => at + 1,
            _ => {
                text.clear();
                return Ok(end);
            }
        },
    };
    // The last line that begins before the end goes on to the first line end at or after `end - 1`.
    let mut seen = (end - 1 - from) as usize;
    loop {
        if let Some(at) = text.get(seen..).and_then(|rest| memchr::memchr(b'\n', rest)) {
            text.truncate(seen + at + 1);
            break;
        }
        seen = text.len();
        let last_line = memchr::memrchr(b'\n', &text[first..]).map_or(first, |at| first + at + 1);
        if seen - last_line > limit {
            return Err(BlockFault::LongLine(from + last_line as u64));
        }
        if file.by_ref().take(1 << 16).read_to_end(text).map_err(io)? == 0 {
            break;
        }
    }
    text.drain(..first);
    Ok(from + first as u64)
}

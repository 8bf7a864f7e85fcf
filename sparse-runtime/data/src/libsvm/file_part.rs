//! Parts of a file of lines, for several processes.

use super::super::text::count_lines;
use std::io::{self, BufRead, Read, Seek, SeekFrom};
use std::ops::Range;

/// One of several parts of a file of lines.
///
/// The bytes are cut into `count` runs of equal length. A part is the lines that follow a line end
/// in its run; the first part begins with the first line. So each line is in exactly one part, and
/// a part is found without reading the others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct FilePart {
    pub(super) index: usize,
    pub(super) count: usize,
}

impl FilePart {
    /// The fault of its numbers.
    pub(super) fn problem(self) -> Option<&'static str> {
        (self.index >= self.count).then_some("parts are numbered from 0 and below their number")
    }

    /// The bytes of its lines. Reads two lines at most, and leaves the file anywhere.
    pub(super) fn bytes(self, file: &mut (impl BufRead + Seek)) -> io::Result<Range<u64>> {
        let len = file.seek(SeekFrom::End(0))?;
        let run = len.div_ceil(self.count as u64);
        let start = run.saturating_mul(self.index as u64).min(len);
        let end = start.saturating_add(run).min(len);
        let start = if self.index == 0 { 0 } else { line_after(file, start, len)? };
        Ok(start..line_after(file, end, len)?.max(start))
    }
}

/// The start of the line after the first line end at `position` or later.
fn line_after(file: &mut (impl BufRead + Seek), position: u64, len: u64) -> io::Result<u64> {
    if position >= len {
        return Ok(len);
    }
    file.seek(SeekFrom::Start(position))?;
    Ok(position + file.skip_until(b'\n')? as u64)
}

/// The line ends before `position`.
pub(crate) fn lines_before(file: &mut (impl BufRead + Seek), position: u64) -> io::Result<u64> {
    file.seek(SeekFrom::Start(0))?;
    let mut before = file.take(position);
    let mut lines = 0;
    loop {
        let block = before.fill_buf()?;
        if block.is_empty() {
            return Ok(lines);
        }
        lines += count_lines(block);
        let n = block.len();
        before.consume(n);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::io::Cursor;

    fn parts(text: &str, count: usize) -> Vec<&str> {
        (0..count)
            .map(|index| {
                let bytes = FilePart { index, count }.bytes(&mut Cursor::new(text)).unwrap();
                &text[bytes.start as usize..bytes.end as usize]
            })
            .collect()
    }

    #[test]
    fn a_line_is_where_the_line_before_it_ends() {
        assert_eq!(parts("a\nb\nc\nd\n", 1), ["a\nb\nc\nd\n"]);
        assert_eq!(parts("a\nb\nc\nd\n", 2), ["a\nb\nc\n", "d\n"]);
        assert_eq!(parts("a\nb\nc\nd", 2), ["a\nb\nc\n", "d"]);
        assert_eq!(parts("a long line\nb\n", 3), ["a long line\n", "", "b\n"]);
        assert_eq!(parts("a", 3), ["a", "", ""]);
        assert_eq!(parts("", 2), ["", ""]);
    }

    proptest! {
        #[test]
        fn every_line_once(text in "[ab\n]{0,30}", count in 1usize..9) {
            let parts = parts(&text, count);
            prop_assert_eq!(parts.concat(), &text[..]);
            let mut seen = 0;
            for part in parts {
                prop_assert!(seen == 0 || seen == text.len() || text[..seen].ends_with('\n'));
                let lines = lines_before(&mut Cursor::new(&text), seen as u64).unwrap();
                prop_assert_eq!(lines as usize, text[..seen].matches('\n').count());
                seen += part.len();
            }
        }
    }
}

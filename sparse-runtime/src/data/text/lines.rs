//! Lines of text: where they begin, and what no line of text holds.

use super::super::read_error::Fault;
use super::super::{Place, Problem};

/// The lines of a text without their ends, `\n` or `\r\n`, each with its offset.
pub(crate) struct Lines<'a> {
    text: &'a [u8],
    next: usize,
}

impl<'a> Lines<'a> {
    pub(crate) fn new(text: &'a [u8]) -> Self {
        Lines { text, next: 0 }
    }
}

impl<'a> Iterator for Lines<'a> {
    type Item = (usize, &'a [u8]);

    #[inline]
    fn next(&mut self) -> Option<(usize, &'a [u8])> {
        let start = self.next;
        let rest = self.text.get(start..).filter(|rest| !rest.is_empty())?;
        let end = memchr::memchr(b'\n', rest);
        self.next = start + end.map_or(rest.len(), |end| end + 1);
        let line = &rest[..end.unwrap_or(rest.len())];
        Some((start, line.strip_suffix(b"\r").unwrap_or(line)))
    }
}

/// Text has no byte 0.
#[inline]
pub(crate) fn check_text(line: &[u8], offset: usize) -> Result<(), Fault> {
    match memchr::memchr(0, line) {
        Some(at) => Err(Fault { offset: offset + at, problem: Problem::NulByte }),
        None => Ok(()),
    }
}

/// True where a number may end, in the formats whose entries blanks separate and `#` ends.
#[inline(always)]
pub(crate) fn ends_here(rest: &[u8]) -> bool {
    matches!(rest, [] | [b' ' | b'\n' | b'\t' | b'\r' | b'#', ..])
}

/// What follows the blanks at the beginning, but for line ends.
#[inline(always)]
pub(crate) fn skip_blanks(mut rest: &[u8]) -> &[u8] {
    while let [b' ' | b'\t' | b'\r', after @ ..] = rest {
        rest = after;
    }
    rest
}

/// The line ends in a text.
pub(crate) fn count_lines(text: &[u8]) -> u64 {
    memchr::memchr_iter(b'\n', text).count() as u64
}

/// The place of an offset in a text before which the file has so many lines.
pub(crate) fn place_in(file: &str, lines_before: u64, text: &[u8], offset: usize) -> Place {
    let before = &text[..offset.min(text.len())];
    let line_start = memchr::memrchr(b'\n', before).map_or(0, |at| at + 1);
    Place {
        file: file.to_owned(),
        line: lines_before + count_lines(before) + 1,
        column: (before.len() - line_start + 1) as u64,
    }
}

//! Lines of text: where they begin, and what no line of text holds.

use super::super::delimited::LINE_END;
use super::super::read_error::Fault;
use super::super::{Place, Problem};
use super::reader::BYTE_ORDER_MARK;

/// The lines of a text, each with its offset, without their ends (`\n`, `\r\n`) and without a byte
/// order mark before them: files that were concatenated have one within.
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
        let mut line = &rest[..end.unwrap_or(rest.len())];
        while let [before @ .., b'\r'] = line {
            line = before;
        }
        match line.strip_prefix(BYTE_ORDER_MARK) {
            Some(line) => Some((start + BYTE_ORDER_MARK.len(), line)),
            None => Some((start, line)),
        }
    }
}

/// A line of text has no byte 0, and no carriage return: where lines end in `\r` alone, all of them
/// are one.
#[inline]
pub(crate) fn check_text(line: &[u8], offset: usize) -> Result<(), Fault> {
    match memchr::memchr2(0, b'\r', line) {
        Some(at) => {
            let problem = if line[at] == 0 { Problem::NulByte } else { Problem::CarriageReturn };
            Err(Fault { offset: offset + at, problem })
        }
        None => Ok(()),
    }
}

/// The problem at an offset of a text, or that lines end in `\r` alone where one stands before what
/// was read there.
#[cold]
pub(crate) fn or_carriage_return(text: &[u8], offset: usize, problem: Problem) -> Problem {
    let is_read = |byte: &&u8| byte.is_ascii_digit() || matches!(byte, b' ' | b'\t');
    match text[..offset.min(text.len())].iter().rev().find(|byte| !is_read(byte)) {
        Some(b'\r') => Problem::CarriageReturn,
        _ => problem,
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

/// The line ends in a text whose quoted ones are [joined](super::super::delimited::JoinedLines).
pub(crate) fn count_joined_lines(text: &[u8]) -> u64 {
    memchr::memchr2_iter(b'\n', LINE_END, text).count() as u64
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

/// [`place_in`], in a text whose quoted line ends are joined.
pub(crate) fn place_in_joined(file: &str, lines_before: u64, text: &[u8], offset: usize) -> Place {
    let before = &text[..offset.min(text.len())];
    let line_start = memchr::memrchr2(b'\n', LINE_END, before).map_or(0, |at| at + 1);
    Place {
        file: file.to_owned(),
        line: lines_before + count_joined_lines(before) + 1,
        column: (before.len() - line_start + 1) as u64,
    }
}

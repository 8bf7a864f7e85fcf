//! The cells of a row: those that columns are made of, whether of a line of text or of a table.

use super::super::Problem;
use super::super::read_error::Fault;
use super::LINE_END;
use std::borrow::Cow;

/// A cell, as a line of text would have it.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Cell<'a> {
    /// Its text; nothing where it is missing.
    Text(Cow<'a, [u8]>),
    /// A finite number, that of its shortest text: of a column of numbers.
    #[cfg_attr(
        not(feature = "parquet"),
        expect(dead_code, reason = "only columnar files have them")
    )]
    Number(f64),
}

impl Cell<'_> {
    /// Its text, that of a number the shortest one.
    pub(crate) fn text(&self) -> Cow<'_, [u8]> {
        match self {
            Cell::Text(text) => Cow::Borrowed(text),
            Cell::Number(value) => Cow::Owned(value.to_string().into_bytes()),
        }
    }
}

/// The cells of a row, in the order of the schema.
pub(crate) trait RowCells {
    /// Whether there is no further cell.
    fn is_done(&self) -> bool;

    /// The next cell and its offset in the row, for messages.
    fn next_cell(&mut self) -> Result<(usize, Cell<'_>), Fault>;

    /// That the row has another number of cells than the schema has columns.
    fn count_fault(&self, expected: usize) -> Fault;
}

impl RowCells for Fields<'_> {
    #[inline]
    fn is_done(&self) -> bool {
        self.next.is_none()
    }

    #[inline]
    fn next_cell(&mut self) -> Result<(usize, Cell<'_>), Fault> {
        match self.next() {
            Some(found) => found.map(|(offset, text)| (offset, Cell::Text(text))),
            None => Ok((self.line.len(), Cell::Text(Cow::Borrowed(b"")))),
        }
    }

    #[cold]
    fn count_fault(&self, expected: usize) -> Fault {
        let found = Fields::new(self.line, self.separator, self.quotes).count();
        Fault { offset: 0, problem: Problem::FieldCount { found, expected } }
    }
}

/// The fields of a line, each with its offset.
pub(crate) struct Fields<'a> {
    line: &'a [u8],
    /// Where the next one begins, if there is one.
    next: Option<usize>,
    separator: u8,
    quotes: bool,
}

impl<'a> Iterator for Fields<'a> {
    type Item = Result<(usize, Cow<'a, [u8]>), Fault>;

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        let start = self.next?;
        let rest = &self.line[start..];
        if self.quotes && rest.first() == Some(&b'"') {
            return Some(self.quoted(start));
        }
        let end = rest.iter().position(|&byte| byte == self.separator);
        self.next = end.map(|end| start + end + 1);
        Some(Ok((start, Cow::Borrowed(&rest[..end.unwrap_or(rest.len())]))))
    }
}

impl<'a> Fields<'a> {
    pub(crate) fn new(line: &'a [u8], separator: u8, quotes: bool) -> Self {
        Fields { line, next: Some(0), separator, quotes }
    }

    #[cold]
    fn quoted(&mut self, start: usize) -> Result<(usize, Cow<'a, [u8]>), Fault> {
        let mut text = Vec::new();
        let mut at = start + 1;
        self.next = None;
        loop {
            let rest = &self.line[at..];
            let Some(end) = memchr::memchr(b'"', rest) else {
                return Err(Fault { offset: start, problem: Problem::Quote });
            };
            text.extend_from_slice(&rest[..end]);
            at += end + 1;
            match self.line.get(at) {
                Some(b'"') => {
                    text.push(b'"');
                    at += 1;
                }
                None => break,
                Some(&byte) if byte == self.separator => {
                    self.next = Some(at + 1);
                    break;
                }
                Some(_) => return Err(Fault { offset: at, problem: Problem::Quote }),
            }
        }
        for byte in text.iter_mut().filter(|byte| **byte == LINE_END) {
            *byte = b'\n';
        }
        Ok((start, Cow::Owned(text)))
    }
}

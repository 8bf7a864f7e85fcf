//! Quoted fields with line ends in them: a filter before text is cut into lines.
//!
//! The filter writes [`LINE_END`] for each line end within quotes, so that blocks, threads and
//! parsers may cut text at any `\n`. The parser of fields writes the line end back.

use std::io::{self, Read};

/// The byte for a line end within quotes: no byte of UTF-8.
pub(crate) const LINE_END: u8 = 0xff;

/// The last byte of a byte order mark, and where it ends.
const MARK: (u8, u64) = (0xbf, 3);

/// Text in which the lines of a quoted field are joined.
#[derive(Debug)]
pub(crate) struct JoinedLines<R> {
    reader: R,
    /// What separates fields; `None` where nothing is quoted.
    separator: Option<u8>,
    is_quoted: bool,
    /// Whether the byte before was the `"` at the end of a field; another one is then a `"` in it.
    is_closed: bool,
    /// The byte before, and how many there were.
    before: u8,
    n_bytes: u64,
}

impl<R> JoinedLines<R> {
    /// Text with quoted fields between these separators, or without quoted fields.
    pub(crate) fn new(reader: R, separator: Option<u8>) -> Self {
        JoinedLines {
            reader,
            separator,
            is_quoted: false,
            is_closed: false,
            before: b'\n',
            n_bytes: 0,
        }
    }

    /// Joins the lines of fields in the next bytes.
    fn join(&mut self, bytes: &mut [u8], separator: u8) {
        let mut at = 0;
        while at < bytes.len() {
            if self.is_quoted {
                match memchr::memchr2(b'"', b'\n', &bytes[at..]) {
                    None => break,
                    Some(found) => {
                        at += found;
                        if bytes[at] == b'"' {
                            (self.is_quoted, self.is_closed) = (false, true);
                        } else {
                            bytes[at] = LINE_END;
                        }
                    }
                }
            } else if std::mem::take(&mut self.is_closed) && bytes[at] == b'"' {
                self.is_quoted = true;
            } else {
                let Some(found) = memchr::memchr(b'"', &bytes[at..]) else { break };
                at += found;
                let before = if at == 0 { self.before } else { bytes[at - 1] };
                let is_marked = (before, self.n_bytes + at as u64) == MARK;
                self.is_quoted = before == separator || before == b'\n' || is_marked;
            }
            at += 1;
        }
        if let Some(last) = bytes.last() {
            self.before = *last;
        }
        self.n_bytes += bytes.len() as u64;
    }
}

/// Follows the quotes of lines as they come, as through a pipe;
/// [`Delimited::open_quotes`](super::Delimited::open_quotes) makes it.
#[derive(Debug)]
pub struct OpenQuotes {
    lines: JoinedLines<io::Empty>,
    scratch: Vec<u8>,
}

impl OpenQuotes {
    pub(super) fn new(separator: Option<u8>) -> Self {
        OpenQuotes { lines: JoinedLines::new(io::empty(), separator), scratch: Vec::new() }
    }

    /// Goes on with more text; whether it ends within a quoted field, so that the next line belongs
    /// to the same sample. O(bytes).
    pub fn follow(&mut self, text: &[u8]) -> bool {
        if let Some(separator) = self.lines.separator {
            self.scratch.clear();
            self.scratch.extend_from_slice(text);
            self.lines.join(&mut self.scratch, separator);
        }
        self.lines.is_quoted
    }
}

impl<R: Read> Read for JoinedLines<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let n = self.reader.read(buffer)?;
        if let Some(separator) = self.separator {
            if memchr::memchr(LINE_END, &buffer[..n]).is_some() {
                let message = "it has a byte 0xff, which no text in UTF-8 has: convert it";
                return Err(io::Error::new(io::ErrorKind::InvalidData, message));
            }
            self.join(&mut buffer[..n], separator);
        }
        Ok(n)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Reads so many bytes at a time.
    fn joined(text: &str, at_once: usize) -> Vec<u8> {
        let mut reader = JoinedLines::new(text.as_bytes(), Some(b','));
        let (mut joined, mut buffer) = (Vec::new(), vec![0; at_once]);
        loop {
            match reader.read(&mut buffer).unwrap() {
                0 => return joined,
                n => joined.extend_from_slice(&buffer[..n]),
            }
        }
    }

    #[test]
    fn a_byte_that_stands_for_a_line_end_is_refused_in_text() {
        let text = &b"a,\"b\xff\"\n"[..];
        let read = |separator| JoinedLines::new(text, separator).read(&mut [0; 100]);
        assert_eq!(read(Some(b',')).unwrap_err().kind(), io::ErrorKind::InvalidData);
        assert_eq!(read(None).unwrap(), text.len());
    }

    #[test]
    fn quotes_are_followed_from_line_to_line() {
        let mut quotes = OpenQuotes::new(Some(b','));
        let lines = ["a,b\n", "\"c\n", "\"\"d\n", "e\",1\n", "5\" disk\n", "\"x\""];
        let found = lines.map(|line| quotes.follow(line.as_bytes()));
        assert_eq!(found, [false, true, true, false, false, false]);
        assert!(!OpenQuotes::new(None).follow(b"\"a\n"));
    }

    #[test]
    fn line_ends_in_quotes_are_joined_wherever_the_text_is_cut() {
        for (text, expected) in [
            ("a,\"b\nc\"\n\"\n\",d\n", "a,\"b|c\"\n\"|\",d\n"),
            ("\"a\"\"\n\"\"\n\",1\n2\n", "\"a\"\"|\"\"|\",1\n2\n"),
            // A quote within a field is one.
            ("5\" disk\n\"x\"\ny\"\n\"\"\n", "5\" disk\n\"x\"\ny\"\n\"\"\n"),
            ("\u{feff}\"a\nb\"\n", "\u{feff}\"a|b\"\n"),
        ] {
            for at_once in [1, 2, 3, 100] {
                let found = joined(text, at_once);
                let found: Vec<u8> =
                    found.iter().map(|byte| if *byte == LINE_END { b'|' } else { *byte }).collect();
                assert_eq!(String::from_utf8(found).unwrap(), expected, "{at_once}");
            }
        }
    }
}

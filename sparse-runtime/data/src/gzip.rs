//! Gzip: members one after the other, and the zeros with which tapes and block devices fill the
//! rest, as `gzip` reads them.

use flate2::bufread::GzDecoder;
use std::io::{self, BufRead, Read};

/// The content of all members.
pub(crate) struct Members<R> {
    /// The member being read; none at the end.
    member: Option<GzDecoder<R>>,
}

impl<R: BufRead> Members<R> {
    pub(crate) fn new(reader: R) -> Self {
        Members { member: Some(GzDecoder::new(reader)) }
    }
}

impl<R: BufRead> Read for Members<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        while let Some(mut member) = self.member.take() {
            let read = member.read(buffer);
            if buffer.is_empty() || !matches!(read, Ok(0)) {
                self.member = Some(member);
                return read;
            }
            let mut rest = member.into_inner();
            if skip_zeros(&mut rest)? {
                self.member = Some(GzDecoder::new(rest));
            }
        }
        Ok(0)
    }
}

/// Skips zeros; returns whether anything follows.
fn skip_zeros(reader: &mut impl BufRead) -> io::Result<bool> {
    loop {
        let bytes = reader.fill_buf()?;
        if bytes.is_empty() {
            return Ok(false);
        }
        let zeros = bytes.iter().take_while(|byte| **byte == 0).count();
        let is_end = zeros < bytes.len();
        reader.consume(zeros);
        if is_end {
            return Ok(true);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use flate2::Compression;
    use flate2::write::GzEncoder;
    use std::io::Write;

    fn gzip(text: &str) -> Vec<u8> {
        let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
        encoder.write_all(text.as_bytes()).unwrap();
        encoder.finish().unwrap()
    }

    fn read(bytes: &[u8]) -> io::Result<String> {
        let mut text = String::new();
        Members::new(bytes).read_to_string(&mut text).map(|_| text)
    }

    #[test]
    fn d20_zeros_after_a_member_are_skipped_as_gzip_does() {
        let zeros = vec![0; 70_000];
        let members = [&gzip("a\n")[..], &zeros, &gzip("b\n"), &zeros];
        assert_eq!(read(&members.concat()).unwrap(), "a\nb\n");
        assert_eq!(read(&[gzip("a\n"), gzip("b\n")].concat()).unwrap(), "a\nb\n");
        // What is neither a member nor zeros is no end.
        assert!(read(&[&gzip("a\n")[..], &[0, 7, 7]].concat()).is_err());
        let whole = gzip("a\n");
        assert!(read(&whole[..whole.len() - 3]).is_err());
        assert!(read(b"").is_err());
    }
}

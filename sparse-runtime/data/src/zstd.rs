//! Files of zstd frames, one after the other, as one stream.

use ruzstd::decoding::errors::{FrameDecoderError, ReadFrameHeaderError};
use ruzstd::decoding::{BlockDecodingStrategy, FrameDecoder};
use std::io::{self, BufRead, BufReader, Read};

/// Decompresses all frames of a reader; skippable frames are skipped, and checksums compared if a
/// frame has one.
pub(super) struct Frames<R: Read> {
    reader: BufReader<R>,
    decoder: FrameDecoder,
    /// Whether a frame has begun and not ended.
    within: bool,
}

impl<R: Read> Frames<R> {
    pub(super) fn new(reader: R) -> Self {
        let reader = BufReader::with_capacity(1 << 16, reader);
        Frames { reader, decoder: FrameDecoder::new(), within: false }
    }

    /// Begins the next frame; false at the end of the file.
    fn begin(&mut self) -> io::Result<bool> {
        loop {
            if self.reader.fill_buf()?.is_empty() {
                return Ok(false);
            }
            match self.decoder.init(&mut self.reader) {
                Ok(()) => {
                    self.within = true;
                    return Ok(true);
                }
                Err(FrameDecoderError::ReadFrameHeaderError(ReadFrameHeaderError::SkipFrame {
                    length,
                    ..
                })) => {
                    let skipped = (&mut self.reader).take(length.into());
                    if io::copy(&mut { skipped }, &mut io::sink())? < length.into() {
                        return Err(invalid("it ends within a frame"));
                    }
                }
                Err(error) => return Err(invalid(error)),
            }
        }
    }

    /// After the last byte of a frame.
    fn end(&mut self) -> io::Result<()> {
        self.within = false;
        let stored = self.decoder.get_checksum_from_data();
        let found = self.decoder.get_calculated_checksum();
        if stored.is_some() && stored != found {
            return Err(invalid("the checksum of a frame is not that of its content"));
        }
        Ok(())
    }
}

impl<R: Read> Read for Frames<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        loop {
            if !self.within && !self.begin()? {
                return Ok(0);
            }
            let n = self.decoder.read(buffer)?;
            if n > 0 || buffer.is_empty() {
                return Ok(n);
            }
            if self.decoder.is_finished() {
                self.end()?;
            } else {
                let strategy = BlockDecodingStrategy::UptoBytes(buffer.len());
                self.decoder.decode_blocks(&mut self.reader, strategy).map_err(invalid)?;
            }
        }
    }
}

fn invalid(error: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, error)
}

#[cfg(test)]
mod tests {
    use super::*;
    use ruzstd::encoding::{CompressionLevel, compress_to_vec};

    fn read(bytes: &[u8]) -> io::Result<Vec<u8>> {
        let mut text = Vec::new();
        Frames::new(bytes).read_to_end(&mut text).map(|_| text)
    }

    #[test]
    fn frames_truncation_and_damage() {
        let first: Vec<u8> =
            (0..100_000u32).flat_map(|i| (i % 1000).to_string().into_bytes()).collect();
        let one = compress_to_vec(&first[..], CompressionLevel::Fastest);
        let two = compress_to_vec(&b"the second\n"[..], CompressionLevel::Fastest);
        let skippable = [&0x184d_2a50u32.to_le_bytes()[..], &3u32.to_le_bytes(), b"abc"].concat();
        let all = [&one[..], &skippable, &two].concat();
        assert_eq!(read(&all).unwrap(), [&first[..], b"the second\n"].concat());
        assert_eq!(read(b"").unwrap(), b"");
        for cut in [1, 5, one.len() / 2, one.len() - 1, one.len() + 9, all.len() - 1] {
            let error = read(&all[..cut]).unwrap_err();
            assert_eq!(error.kind(), io::ErrorKind::InvalidData, "{cut}: {error}");
        }
        assert_eq!(read(b"label,1,2\n").unwrap_err().kind(), io::ErrorKind::InvalidData);
        let mut damaged = two.clone();
        let at = damaged.len() - 8;
        damaged[at] ^= 1;
        assert!(read(&damaged).is_err());
    }
}

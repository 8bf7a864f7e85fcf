//! Values as little-endian bytes, a piece at a time, and their checksum.

use sparse_core::element::Float;
#[cfg(feature = "half")]
use sparse_core::element::{bf16, f16};
use sparse_core::storage::ElementType;
use std::fmt;
use std::io::{self, Read};
use xxhash_rust::xxh3::Xxh3Default;

/// Elements of one piece: small enough for the cache.
pub const PIECE: usize = 4096;

/// Appends the bytes of `values`.
#[inline]
pub fn append<T: Float>(values: &[T], bytes: &mut Vec<u8>) {
    match T::TYPE {
        // To `f64` and back is the identity on every narrower type.
        ElementType::F32 => append_as(values, bytes, |value| (value.as_f64() as f32).to_le_bytes()),
        #[cfg(feature = "half")]
        ElementType::F16 => append_as(values, bytes, |value| f16::of(value.as_f64()).to_le_bytes()),
        #[cfg(feature = "half")]
        ElementType::BF16 => {
            append_as(values, bytes, |value| bf16::of(value.as_f64()).to_le_bytes());
        }
        _ => append_as(values, bytes, |value| value.as_f64().to_le_bytes()),
    }
}

#[inline(always)]
fn append_as<T: Float, const N: usize>(
    values: &[T],
    bytes: &mut Vec<u8>,
    bytes_of: impl Fn(T) -> [u8; N],
) {
    let start = bytes.len();
    bytes.resize(start + N * values.len(), 0);
    let (places, _) = bytes[start..].as_chunks_mut();
    places.iter_mut().zip(values).for_each(|(place, value)| *place = bytes_of(*value));
}

/// The values that [`append`] wrote, as an iterator in `$body`; bytes after the last whole one are
/// left out.
macro_rules! values_in {
    ($T:ty, $bytes:expr, |$values:ident| $body:expr) => {{
        macro_rules! of_type {
            ($stored:ty, |$value:ident| $wide:expr) => {{
                let $values = $bytes.as_chunks().0.iter().map(|bytes| {
                    let $value = <$stored>::from_le_bytes(*bytes);
                    <$T>::of($wide)
                });
                $body
            }};
        }
        match <$T>::TYPE {
            ElementType::F32 => of_type!(f32, |value| f64::from(value)),
            #[cfg(feature = "half")]
            ElementType::F16 => of_type!(f16, |value| value.as_f64()),
            #[cfg(feature = "half")]
            ElementType::BF16 => of_type!(bf16, |value| value.as_f64()),
            _ => of_type!(f64, |value| value),
        }
    }};
}

/// Hands the values that [`append`] wrote to `take`, one by one.
#[inline]
pub fn for_each<T: Float>(bytes: &[u8], take: impl FnMut(T)) {
    values_in!(T, bytes, |values| values.for_each(take));
}

/// Appends the values that [`append`] wrote.
#[inline]
pub fn append_values<T: Float>(bytes: &[u8], all: &mut Vec<T>) {
    values_in!(T, bytes, |values| all.extend(values));
}

/// Writes the values that [`append`] wrote over those of a slice, as many as there are of both.
#[inline]
pub fn copy_values<T: Float>(bytes: &[u8], places: &mut [T]) {
    values_in!(T, bytes, |values| {
        places.iter_mut().zip(values).for_each(|(place, value)| *place = value);
    });
}

/// Hands the bytes of `values` to `take`, in pieces of a few kilobytes.
pub fn encode<T: Float>(
    values: &[T],
    mut take: impl FnMut(&[u8]) -> io::Result<()>,
) -> io::Result<()> {
    let mut bytes = Vec::with_capacity(PIECE * T::TYPE.bytes() as usize);
    for piece in values.chunks(PIECE) {
        bytes.clear();
        append(piece, &mut bytes);
        take(&bytes)?;
    }
    Ok(())
}

/// Reads `count` values of type `T` and hands them to `take`, one by one, with the bytes of each
/// piece to `look` before.
pub fn decode<T: Float>(
    reader: &mut impl Read,
    count: usize,
    mut look: impl FnMut(&[u8]),
    mut take: impl FnMut(T),
) -> io::Result<()> {
    let width = T::TYPE.bytes() as usize;
    let mut buffer = vec![0; PIECE.min(count) * width];
    let mut left = count;
    while left > 0 {
        let bytes = &mut buffer[..left.min(PIECE) * width];
        reader.read_exact(bytes)?;
        look(bytes);
        for_each(bytes, &mut take);
        left -= left.min(PIECE);
    }
    Ok(())
}

/// Hands all that is left to read to `look`, in pieces of a few kilobytes, all but the last of them
/// whole words.
pub fn visit(reader: &mut impl Read, mut look: impl FnMut(&[u8])) -> io::Result<()> {
    let mut buffer = vec![0; 4 * PIECE];
    loop {
        let mut filled = 0;
        while filled < buffer.len() {
            match reader.read(&mut buffer[filled..]) {
                Ok(0) => break,
                Ok(n) => filled += n,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        if filled == 0 {
            return Ok(());
        }
        look(&buffer[..filled]);
    }
}

/// A checksum of values: against damage, not against malice. It is XXH3 of 64 bits; files of the
/// first format of checkpoints have [another](Self::of_words).
#[derive(Clone, Debug)]
pub struct Checksum(Kind);

// A sum lives on the stack for the time of a pass over a file.
#[allow(clippy::large_enum_variant)]
#[derive(Clone)]
enum Kind {
    Xxh3(Xxh3Default),
    Words(u64),
}

impl fmt::Debug for Kind {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Kind::Xxh3(sum) => write!(formatter, "Xxh3({:016x})", sum.digest()),
            Kind::Words(sum) => write!(formatter, "Words({sum:016x})"),
        }
    }
}

impl Default for Checksum {
    fn default() -> Self {
        Checksum::new()
    }
}

impl Checksum {
    /// Of nothing.
    pub fn new() -> Self {
        Checksum(Kind::Xxh3(Xxh3Default::new()))
    }

    /// The checksum of the first format of checkpoints, of nothing.
    ///
    /// Over the bytes as little-endian words of 32 bits: `h ← rotate((h ⊕ word) · p, 29)`, which is
    /// a bijection of `h` for each word, so that any one damaged word changes the sum.
    pub fn of_words() -> Self {
        Checksum(Kind::Words(0x6e6e_7a00_0000_0001))
    }

    /// Takes in bytes. In a sum of words an odd half at the end of a parameter is a word with
    /// zeros, so that all but the last bytes must be whole words.
    pub fn add(&mut self, bytes: &[u8]) {
        match &mut self.0 {
            Kind::Xxh3(sum) => sum.update(bytes),
            Kind::Words(sum) => {
                let (words, rest) = bytes.as_chunks();
                let mut last = [0; 4];
                last[..rest.len()].copy_from_slice(rest);
                for word in words.iter().chain((!rest.is_empty()).then_some(&last)) {
                    let word = u64::from(u32::from_le_bytes(*word));
                    *sum = (*sum ^ word).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(29);
                }
            }
        }
    }

    /// The sum.
    pub fn value(&self) -> u64 {
        match &self.0 {
            Kind::Xxh3(sum) => sum.digest(),
            Kind::Words(sum) => *sum,
        }
    }

    /// Of values in memory.
    pub fn of<T: Float>(values: &[T]) -> u64 {
        let mut sum = Checksum::new();
        let added = encode(values, |bytes| {
            sum.add(bytes);
            Ok(())
        });
        debug_assert!(added.is_ok());
        sum.value()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Values of the package `xxhash` of Python; the bytes arrive in pieces of every size.
    #[test]
    fn a_checksum_is_xxh3() {
        let text: Vec<u8> = (0..300u32).map(|position| (position * 37 + 11) as u8).collect();
        let known = [
            (0, 0x2d06_8005_38d3_94c2),
            (4, 0x3f68_89ef_166b_4ad1),
            (100, 0x5e0b_e2de_8640_a64c),
            (300, 0x7cd9_08f5_507d_97b3),
        ];
        for (len, expected) in known {
            for piece in [1, 7, 64, 300] {
                let mut sum = Checksum::new();
                text[..len].chunks(piece).for_each(|bytes| sum.add(bytes));
                assert_eq!(sum.value(), expected, "{len} bytes in pieces of {piece}");
            }
        }
    }
}

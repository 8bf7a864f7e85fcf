//! One array of an npz file: its header, numbers and text.

use nnz_device::memory::is_there_for;
use std::io::{self, Read};

/// The most bytes before the elements: magic, version, a length of 16 bits, and as long a header.
/// Those that are longer are of records.
const LONGEST_HEADER: u64 = 12 + (1 << 16);

/// Why an array is not read.
pub(super) enum Refusal {
    /// What is wrong with it.
    Message(String),
    /// There is no memory for so many elements, which take so many bytes.
    NoMemory { n_elements: usize, bytes: usize },
}

impl From<String> for Refusal {
    fn from(message: String) -> Self {
        Refusal::Message(message)
    }
}

/// The bytes of an npy file with a checked header.
pub(super) struct Npy {
    bytes: Vec<u8>,
    /// The type of an element as numpy writes it, such as `<f4`: byte order, kind and width.
    descr: String,
    /// Where the elements begin.
    start: usize,
    n_dimensions: usize,
}

/// A number or boolean as numpy stores it.
pub(super) trait Number: Sized {
    /// The number in as many bytes as the type has; none for bytes that stand for no number.
    fn decode(bytes: &[u8], is_big_endian: bool) -> Option<Self>;
}

macro_rules! numbers {
    ($($number:ty),*) => {
        $(impl Number for $number {
            fn decode(bytes: &[u8], is_big_endian: bool) -> Option<Self> {
                let bytes = bytes.try_into().ok()?;
                let decode = if is_big_endian { <$number>::from_be_bytes } else { <$number>::from_le_bytes };
                Some(decode(bytes))
            }
        })*
    };
}
numbers!(u8, u16, u32, u64, i8, i16, i32, i64, f32, f64);

impl Number for bool {
    fn decode(bytes: &[u8], _: bool) -> Option<Self> {
        match bytes {
            [0] => Some(false),
            [1] => Some(true),
            _ => None,
        }
    }
}

impl Npy {
    /// Reads an array of at most so many elements: no more of it than its header says, and nothing
    /// beyond the header of one that says more.
    pub(super) fn read(reader: impl Read, most: u64) -> Result<Self, Refusal> {
        Npy::read_elements(reader, most, None)
    }

    /// Reads the first elements of an array that has at least so many.
    pub(super) fn read_first(reader: impl Read, n_elements: u64) -> Result<Self, Refusal> {
        Npy::read_elements(reader, u64::MAX, Some(n_elements))
    }

    fn read_elements(
        mut reader: impl Read,
        most: u64,
        wanted: Option<u64>,
    ) -> Result<Self, Refusal> {
        let read = |error: io::Error| error.to_string();
        let mut bytes = Vec::new();
        (&mut reader).take(LONGEST_HEADER).read_to_end(&mut bytes).map_err(read)?;
        let Header { start, descr, n_elements, n_dimensions } = header(&bytes)?;
        if n_elements as u64 > most {
            return Err(Refusal::Message(format!(
                "it has {n_elements} elements, but the arrays before it allow {most}"
            )));
        }
        // Fewer than wanted are for the caller to refuse.
        let n_wanted = wanted.and_then(|wanted| usize::try_from(wanted).ok());
        let spare = n_elements.saturating_sub(n_wanted.unwrap_or(usize::MAX));
        let n_elements = n_elements - spare;
        let mut npy = Npy { bytes, descr, start, n_dimensions };
        npy.check_memory(n_elements)?;
        let expected =
            n_elements.checked_mul(npy.element_bytes()).and_then(|n| n.checked_add(start));
        if let (1.., Some(expected)) = (spare, expected) {
            npy.bytes.truncate(expected);
        }
        // One more shows that there is more, where nothing is spare.
        let one = u64::from(spare == 0);
        let more = expected.map_or(0, |expected| (expected as u64).saturating_add(one));
        let more = more.saturating_sub(npy.bytes.len() as u64);
        reader.take(more).read_to_end(&mut npy.bytes).map_err(read)?;
        if expected != Some(npy.bytes.len()) {
            let (found, descr) = (npy.bytes.len().saturating_sub(start), &npy.descr);
            let message =
                format!("its {n_elements} elements of type `{}` do not take {found} bytes", descr);
            return Err(damaged(&message).into());
        }
        Ok(npy)
    }

    /// Refuses elements for which there is no memory: their bytes, what is decoded of them, and
    /// what that is converted to.
    fn check_memory(&self, n_elements: usize) -> Result<(), Refusal> {
        let each = self.element_bytes().saturating_mul(2).saturating_add(size_of::<u64>());
        let bytes = n_elements.saturating_mul(each);
        if is_there_for::<u8>(bytes) {
            Ok(())
        } else {
            Err(Refusal::NoMemory { n_elements, bytes })
        }
    }

    /// Kind and width of an element, such as `f4`.
    pub(super) fn element(&self) -> &str {
        self.descr.trim_start_matches(['<', '>', '|', '='])
    }

    /// Bytes of an element; 0 for a type that is not understood.
    fn element_bytes(&self) -> usize {
        let width = self.element().get(1..).and_then(|width| width.parse().ok());
        let unit = if self.element().starts_with('U') { 4 } else { 1 };
        width.and_then(|width: usize| width.checked_mul(unit)).unwrap_or(0)
    }

    /// The elements of a one-dimensional array, whose [`element`](Self::element) is the type `E`.
    pub(super) fn numbers<E: Number>(&self) -> Result<Vec<E>, String> {
        if self.n_dimensions != 1 {
            return Err(format!("it has {} dimensions, not one", self.n_dimensions));
        }
        let is_big_endian = match self.descr.as_bytes().first() {
            Some(b'<') => false,
            Some(b'>') => true,
            _ if size_of::<E>() == 1 => false,
            _ => return Err(format!("elements of type `{}` have no byte order", self.descr)),
        };
        let elements = self.bytes[self.start..].chunks_exact(size_of::<E>()).enumerate();
        let decode = |(at, bytes)| {
            let invalid = || format!("entry {at} is not of the type `{}`", self.descr);
            E::decode(bytes, is_big_endian).ok_or_else(invalid)
        };
        elements.map(decode).collect()
    }

    /// The one element of an array of strings: bytes, or characters of four bytes each.
    pub(super) fn text(&self) -> Result<String, String> {
        let bytes = &self.bytes[self.start..];
        let text: String = match (self.element().as_bytes().first(), self.descr.starts_with('>')) {
            (Some(b'S'), _) => bytes.iter().map(|&byte| char::from(byte)).collect(),
            (Some(b'U'), big) => bytes
                .chunks_exact(4)
                .filter_map(|c| {
                    let c = [c[0], c[1], c[2], c[3]];
                    let code = if big { u32::from_be_bytes(c) } else { u32::from_le_bytes(c) };
                    char::from_u32(code)
                })
                .collect(),
            _ => return Err(format!("elements of type `{}` are not text", self.descr)),
        };
        Ok(text.trim_end_matches('\0').to_owned())
    }
}

fn damaged(what: &str) -> String {
    format!("this is not an npy array, or is damaged: {what}")
}

/// What a header says.
struct Header {
    /// Where the elements begin.
    start: usize,
    /// Their type.
    descr: String,
    n_elements: usize,
    n_dimensions: usize,
}

/// Parses a header.
///
/// The format is described in numpy's documentation of `numpy.lib.format`: magic, version, the
/// length of a header, the header as a dictionary in Python's syntax, elements.
fn header(bytes: &[u8]) -> Result<Header, String> {
    let (length, header) = match bytes {
        [0x93, b'N', b'U', b'M', b'P', b'Y', 1, _, a, b, rest @ ..] => {
            (usize::from(u16::from_le_bytes([*a, *b])), rest)
        }
        [0x93, b'N', b'U', b'M', b'P', b'Y', 2 | 3, _, a, b, c, d, rest @ ..] => {
            (u32::from_le_bytes([*a, *b, *c, *d]) as usize, rest)
        }
        _ => return Err(damaged("it does not begin as one")),
    };
    let start = bytes.len() - header.len() + length;
    let header = header.get(..length).ok_or_else(|| damaged("the header is cut off"))?;
    let header = String::from_utf8_lossy(header).into_owned();
    let descr = after(&header, "'descr':")
        .and_then(|rest| rest.strip_prefix('\''))
        .and_then(|rest| rest.split_once('\''))
        .ok_or_else(|| damaged("the header has no simple element type"))?
        .0
        .to_owned();
    let shape = after(&header, "'shape':")
        .and_then(|rest| rest.strip_prefix('('))
        .and_then(|rest| rest.split_once(')'))
        .ok_or_else(|| damaged("the header has no shape"))?
        .0;
    let extents = shape.split(',').map(str::trim).filter(|extent| !extent.is_empty());
    let n_dimensions = extents.clone().count();
    let n_elements = extents
        .map(|extent| extent.parse::<usize>().ok())
        .try_fold(1usize, |size, extent| size.checked_mul(extent?))
        .ok_or_else(|| damaged("the shape is not one"))?;
    Ok(Header { start, descr, n_elements, n_dimensions })
}

/// What follows a key of the header.
fn after<'a>(header: &'a str, key: &str) -> Option<&'a str> {
    header.split_once(key).map(|(_, rest)| rest.trim_start())
}

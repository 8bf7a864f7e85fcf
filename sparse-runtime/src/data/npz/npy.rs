//! One array of an npz file.
//!
//! `ndarray-npy` decodes the numbers. The header is looked at here first: an array of strings is unknown to that
//! crate, and it would reserve the memory that a damaged header asks for, however much that is.

use ndarray::Array1;
use ndarray_npy::{ReadNpyExt, ReadableElement};

/// The bytes of an npy file with a checked header.
pub(super) struct Npy {
    bytes: Vec<u8>,
    /// The type of an element as numpy writes it, such as `<f4`: byte order, kind and width.
    descr: String,
    /// Where the elements begin.
    start: usize,
}

impl Npy {
    /// The format is described in numpy's documentation of `numpy.lib.format`: magic, version, the length of a
    /// header, the header as a dictionary in Python's syntax, elements.
    pub(super) fn new(bytes: Vec<u8>) -> Result<Self, String> {
        let damaged = |what: &str| format!("this is not an npy array, or is damaged: {what}");
        let (length, header) = match &bytes[..] {
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
        let n_elements = extents
            .map(|extent| extent.parse::<usize>().ok())
            .try_fold(1usize, |size, extent| size.checked_mul(extent?))
            .ok_or_else(|| damaged("the shape is not one"))?;
        let npy = Npy { bytes, descr, start };
        let expected = n_elements.checked_mul(npy.element_bytes());
        let found = npy.bytes.len() - start;
        if expected != Some(found) {
            let message =
                format!("the shape ({shape}) of `{}` does not take {found} bytes", npy.descr);
            return Err(damaged(&message));
        }
        Ok(npy)
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

    /// The elements of a one-dimensional array of numbers.
    pub(super) fn numbers<E: ReadableElement>(&self) -> Result<Vec<E>, String> {
        Array1::<E>::read_npy(&self.bytes[..])
            .map(|array| array.into_raw_vec_and_offset().0)
            .map_err(|error| error.to_string())
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

/// What follows a key of the header.
fn after<'a>(header: &'a str, key: &str) -> Option<&'a str> {
    header.split_once(key).map(|(_, rest)| rest.trim_start())
}

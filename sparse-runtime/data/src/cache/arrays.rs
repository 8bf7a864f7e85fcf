//! Arrays as little-endian bytes.

use super::super::ColumnValues;
use nnz_arrays::bytes::{decode, encode};
use nnz_arrays::formats::{
    ColumnIds, ColumnIdsView, Csr, CsrParts, Dense, FormatError, Ids, IdsView, Shape,
};
use nnz_device::memory;
use serde::{Deserialize, Serialize};
use sparse_core::element::{Float, Stored, Unit};
use std::io::{self, Read, Write};

/// The description of an array, without its elements.
#[derive(Serialize, Deserialize)]
pub(super) enum ArrayHeader {
    Csr {
        n_rows: usize,
        n_cols: usize,
        nnz: usize,
        id_bytes: u8,
    },
    /// A csr without values.
    Unit {
        n_rows: usize,
        n_cols: usize,
        nnz: usize,
        id_bytes: u8,
    },
    Dense {
        shape: Vec<usize>,
    },
    U32 {
        shape: Vec<usize>,
    },
    U64 {
        shape: Vec<usize>,
    },
    I64 {
        shape: Vec<usize>,
    },
}

impl ArrayHeader {
    pub(super) fn of<T: Float>(values: &ColumnValues<T>) -> Self {
        let shape = values.shape().to_vec();
        match values {
            ColumnValues::Csr(csr) => {
                let (n_rows, n_cols, nnz) = (csr.n_rows(), csr.n_cols(), csr.nnz());
                ArrayHeader::Csr { n_rows, n_cols, nnz, id_bytes: id_bytes(csr) }
            }
            ColumnValues::Unit(csr) => {
                let (n_rows, n_cols, nnz) = (csr.n_rows(), csr.n_cols(), csr.nnz());
                ArrayHeader::Unit { n_rows, n_cols, nnz, id_bytes: id_bytes(csr) }
            }
            ColumnValues::Dense(_) => ArrayHeader::Dense { shape },
            ColumnValues::Ids(Ids::U32(_)) => ArrayHeader::U32 { shape },
            ColumnValues::Ids(Ids::U64(_)) => ArrayHeader::U64 { shape },
            ColumnValues::Ids(Ids::I64(_)) => ArrayHeader::I64 { shape },
        }
    }
}

/// Writes the elements.
pub(super) fn write<T: Float>(writer: &mut impl Write, values: &ColumnValues<T>) -> io::Result<()> {
    match values {
        ColumnValues::Csr(csr) => {
            write_pattern(writer, csr)?;
            encode(csr.values(), |bytes| writer.write_all(bytes))
        }
        ColumnValues::Unit(csr) => write_pattern(writer, csr),
        ColumnValues::Dense(dense) => encode(dense.values(), |bytes| writer.write_all(bytes)),
        ColumnValues::Ids(ids) => match ids.view() {
            IdsView::U32(ids) => write_each(writer, ids.values(), |id| id.to_le_bytes()),
            IdsView::U64(ids) => write_each(writer, ids.values(), |id| id.to_le_bytes()),
            IdsView::I64(ids) => write_each(writer, ids.values(), |id| id.to_le_bytes()),
        },
    }
}

/// Reads the elements; the array is checked.
pub(super) fn read<T: Float>(
    reader: &mut impl Read,
    header: &ArrayHeader,
) -> io::Result<Result<ColumnValues<T>, FormatError>> {
    Ok(match header {
        &ArrayHeader::Csr { n_rows, n_cols, nnz, id_bytes } => {
            let (indptr, columns) = read_pattern(reader, n_rows, nnz, id_bytes)?;
            let values = read_floats(reader, nnz)?;
            Csr::from_parts(CsrParts { n_cols, indptr, columns, values }).map(ColumnValues::Csr)
        }
        &ArrayHeader::Unit { n_rows, n_cols, nnz, id_bytes } => {
            let (indptr, columns) = read_pattern(reader, n_rows, nnz, id_bytes)?;
            let values = vec![Unit; nnz];
            Csr::from_parts(CsrParts { n_cols, indptr, columns, values }).map(ColumnValues::Unit)
        }
        ArrayHeader::Dense { shape } => {
            let values = read_floats(reader, size(shape))?;
            Shape::try_new(shape)
                .and_then(|shape| Dense::new(shape, values))
                .map(ColumnValues::Dense)
        }
        ArrayHeader::U32 { shape } => {
            let ids = read_each(reader, size(shape), u32::from_le_bytes)?;
            Shape::try_new(shape).and_then(|shape| Dense::new(shape, ids)).map(ColumnValues::from)
        }
        ArrayHeader::U64 { shape } => {
            let ids = read_each(reader, size(shape), u64::from_le_bytes)?;
            Shape::try_new(shape).and_then(|shape| Dense::new(shape, ids)).map(ColumnValues::from)
        }
        ArrayHeader::I64 { shape } => {
            let ids = read_each(reader, size(shape), i64::from_le_bytes)?;
            Shape::try_new(shape).and_then(|shape| Dense::new(shape, ids)).map(ColumnValues::from)
        }
    })
}

fn id_bytes<V: Stored>(csr: &Csr<V>) -> u8 {
    match csr.columns() {
        ColumnIdsView::U32(_) => 4,
        ColumnIdsView::U64(_) => 8,
    }
}

fn write_pattern<V: Stored>(writer: &mut impl Write, csr: &Csr<V>) -> io::Result<()> {
    write_each(writer, csr.indptr(), |end| end.to_le_bytes())?;
    match csr.columns() {
        ColumnIdsView::U32(ids) => write_each(writer, ids, |id| id.to_le_bytes()),
        ColumnIdsView::U64(ids) => write_each(writer, ids, |id| id.to_le_bytes()),
    }
}

fn read_pattern(
    reader: &mut impl Read,
    n_rows: usize,
    nnz: usize,
    id_bytes: u8,
) -> io::Result<(Vec<u64>, ColumnIds)> {
    let indptr = read_each(reader, n_rows.saturating_add(1), u64::from_le_bytes)?;
    let columns = match id_bytes {
        4 => ColumnIds::U32(read_each(reader, nnz, u32::from_le_bytes)?),
        _ => ColumnIds::U64(read_each(reader, nnz, u64::from_le_bytes)?),
    };
    Ok((indptr, columns))
}

pub(super) fn read_u64(reader: &mut impl Read) -> io::Result<u64> {
    let mut bytes = [0; 8];
    reader.read_exact(&mut bytes).map(|()| u64::from_le_bytes(bytes))
}

/// The number of elements of a shape; more than there can be if they cannot be counted.
fn size(shape: &[usize]) -> usize {
    shape.iter().fold(1, |size: usize, &extent| size.saturating_mul(extent))
}

/// Elements at a time.
const PIECE: usize = 4096;

fn write_each<E: Copy, const N: usize>(
    writer: &mut impl Write,
    elements: &[E],
    bytes: impl Fn(E) -> [u8; N],
) -> io::Result<()> {
    let mut buffer = Vec::with_capacity(PIECE * N);
    for piece in elements.chunks(PIECE) {
        buffer.clear();
        buffer.extend(piece.iter().flat_map(|&element| bytes(element)));
        writer.write_all(&buffer)?;
    }
    Ok(())
}

/// There is no memory for an array of a file, which takes this number of bytes so far.
#[derive(Debug, thiserror::Error)]
#[error("an array of {n_elements} elements takes {bytes} bytes, for which there is no memory")]
pub(super) struct NoMemory {
    pub(super) n_elements: usize,
    pub(super) bytes: usize,
}

/// Reserves memory for a piece of an array of `n_elements` elements.
fn make_room<E>(elements: &mut Vec<E>, piece: usize, n_elements: usize) -> io::Result<()> {
    memory::make_room(elements, piece)
        .map_err(|bytes| io::Error::new(io::ErrorKind::OutOfMemory, NoMemory { n_elements, bytes }))
}

/// Memory grows with the bytes read: a header that promises too much reaches the end of the file
/// first.
fn read_each<E, const N: usize>(
    reader: &mut impl Read,
    count: usize,
    element: impl Fn([u8; N]) -> E,
) -> io::Result<Vec<E>> {
    let mut elements = Vec::new();
    let mut buffer = vec![0; PIECE * N];
    let mut left = count;
    while left > 0 {
        let piece = &mut buffer[..left.min(PIECE) * N];
        reader.read_exact(piece)?;
        make_room(&mut elements, left.min(PIECE), count)?;
        elements.extend(piece.as_chunks().0.iter().map(|&bytes| element(bytes)));
        left -= left.min(PIECE);
    }
    Ok(elements)
}

fn read_floats<T: Float>(reader: &mut impl Read, count: usize) -> io::Result<Vec<T>> {
    let mut values = Vec::new();
    let mut left = count;
    while left > 0 {
        let piece = left.min(PIECE);
        make_room(&mut values, piece, count)?;
        decode(reader, piece, |_| {}, |value| values.push(value))?;
        left -= piece;
    }
    Ok(values)
}

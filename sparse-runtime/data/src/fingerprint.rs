//! Fingerprints that distinguish data from other data of the same size, at bounded cost: a hash of
//! names and shapes, of the lengths of arrays or files, and of pieces of these that are spread
//! evenly from the first element to the last.
//!
//! The pieces of a short array or file are all of it. In a longer one a difference between two
//! pieces is not seen; data that was generated again, shuffled, scaled or cut otherwise differs
//! everywhere.
//!
//! It is XXH64 of little-endian bytes: the same on every machine, as long as this file stays as it
//! is.

use super::blocks::io_error;
use super::hashing::xxh64;
use super::{ColumnValues, Dataset, ReadError};
use nnz_arrays::bytes;
use nnz_arrays::formats::Csr;
use nnz_arrays::in_library;
use nnz_step::model::InputRole;
use sparse_core::element::{Float, Stored};
use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::ops::Range;
use std::path::Path;

/// The sizes and distances of pieces.
#[derive(Clone, Copy)]
struct Sample {
    n_pieces: u64,
    /// The elements, or bytes, of a piece.
    piece: u64,
}

/// For an array: a piece is a few cache lines.
const OF_ARRAY: Sample = Sample { n_pieces: 1024, piece: 64 };

/// For a file: each piece may be a disk seek.
const OF_FILE: Sample = Sample { n_pieces: 16, piece: 4096 };

impl Sample {
    /// The pieces of this number of elements, ascending: the first begins at the first element, the
    /// last ends at the last.
    fn pieces(self, len: u64) -> impl Iterator<Item = Range<u64>> {
        let is_whole = len <= self.n_pieces * self.piece;
        let (n_pieces, piece) = if is_whole { (1, len) } else { (self.n_pieces, self.piece) };
        (0..n_pieces).map(move |index| {
            // Below `len`, which is a `u64`, but not on the way there.
            let start =
                u128::from(index) * u128::from(len - piece) / u128::from(n_pieces.max(2) - 1);
            start as u64..start as u64 + piece
        })
    }
}

/// A fingerprint in progress. The additions matter, and so do their order and their ends.
pub(super) struct Fingerprint(u64);

impl Fingerprint {
    /// For a kind of data: equal contents of two kinds have other fingerprints, because epochs of
    /// each have an order of their own.
    pub(super) fn new(kind: &str) -> Self {
        Fingerprint(xxh64(kind.as_bytes(), 0))
    }

    pub(super) fn finish(self) -> u64 {
        self.0
    }

    pub(super) fn bytes(&mut self, bytes: &[u8]) {
        self.0 = xxh64(bytes, self.0);
    }

    pub(super) fn number(&mut self, number: u64) {
        self.bytes(&number.to_le_bytes());
    }

    /// The description of a column: its name, its role and further numbers.
    pub(super) fn column(&mut self, name: Option<&str>, role: InputRole, numbers: &[u64]) {
        self.number(u64::from(name.is_some()));
        self.bytes(name.unwrap_or_default().as_bytes());
        self.number(u64::from(role == InputRole::Label));
        self.number(numbers.len() as u64);
        numbers.iter().for_each(|number| self.number(*number));
    }

    /// The length of an array and pieces of it; `append` appends the bytes of some elements.
    fn array(&mut self, len: usize, mut append: impl FnMut(Range<usize>, &mut Vec<u8>)) {
        self.number(len as u64);
        let mut bytes = Vec::new();
        for piece in OF_ARRAY.pieces(len as u64) {
            append(piece.start as usize..piece.end as usize, &mut bytes);
        }
        self.bytes(&bytes);
    }

    fn floats<T: Float>(&mut self, values: &[T]) {
        self.array(values.len(), |piece, bytes| bytes::append(&values[piece], bytes));
    }

    /// Where rows end, and the columns of their entries, of whichever integers.
    fn pattern<V: Stored>(&mut self, csr: &Csr<V>) {
        let (ends, columns) = (csr.indptr(), csr.columns());
        self.array(ends.len(), |piece, bytes| {
            bytes.extend(ends[piece].iter().flat_map(|end| end.to_le_bytes()));
        });
        self.array(columns.len(), |piece, bytes| {
            let columns = piece.map(|position| columns.get(position).unwrap_or(usize::MAX) as u64);
            bytes.extend(columns.flat_map(u64::to_le_bytes));
        });
    }

    /// The length of a file and pieces of it, as they are now.
    pub(super) fn file(&mut self, path: &Path) -> Result<(), ReadError> {
        let io = |source| io_error(&path.display().to_string(), source);
        let len = path.metadata().map_err(io)?.len();
        self.number(len);
        // What has no length, as a pipe, is nothing that could be read twice.
        if len == 0 {
            return Ok(());
        }
        let mut file = File::open(path).map_err(io)?;
        let mut bytes = Vec::new();
        for piece in OF_FILE.pieces(len) {
            file.seek(SeekFrom::Start(piece.start)).map_err(io)?;
            let n_bytes = piece.end - piece.start;
            file.by_ref().take(n_bytes).read_to_end(&mut bytes).map_err(io)?;
        }
        self.bytes(&bytes);
        Ok(())
    }
}

/// That of data in memory.
pub(super) fn of_dataset<T: Float>(data: &Dataset<T>) -> u64 {
    in_library!(<T> of_columns::<T> => (data: &Dataset<T>) -> u64)
}

fn of_columns<T: Float>(data: &Dataset<T>) -> u64 {
    let mut made = Fingerprint::new("in memory");
    made.number(data.columns().len() as u64);
    for column in data.columns() {
        let values = column.values();
        let shape: Vec<u64> = values.shape().iter().map(|extent| *extent as u64).collect();
        made.column(column.name(), column.role(), &shape);
        match values {
            ColumnValues::Csr(csr) => {
                made.pattern(csr);
                made.floats(csr.values());
            }
            ColumnValues::Unit(csr) => made.pattern(csr),
            ColumnValues::Dense(dense) => made.floats(dense.values()),
            ColumnValues::Ids(ids) => {
                let ids = ids.view();
                made.array(ids.len(), |piece, bytes| {
                    bytes.extend(piece.flat_map(|position| ids.number(position).to_le_bytes()));
                });
            }
        }
    }
    made.finish()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn pieces_are_spread_from_the_first_element_to_the_last(
            len in prop_oneof![0u64..200, any::<u64>()],
            n_pieces in 1u64..9,
            piece in 1u64..9,
        ) {
            let pieces: Vec<_> = Sample { n_pieces, piece }.pieces(len).collect();
            prop_assert_eq!(pieces[0].start, 0);
            if len <= n_pieces * piece {
                prop_assert_eq!((pieces.len(), pieces[0].end), (1, len));
            } else if n_pieces > 1 {
                prop_assert_eq!(pieces.last().map(|last| last.end), Some(len));
                let gap = |pair: &[Range<u64>]| pair[1].start.checked_sub(pair[0].end);
                let gaps: Option<Vec<u64>> = pieces.windows(2).map(gap).collect();
                let gaps = gaps.unwrap();
                let (least, most) = (gaps.iter().min().unwrap(), gaps.iter().max().unwrap());
                prop_assert!(most - least <= 1, "{:?}", pieces);
            }
            prop_assert!(pieces.iter().all(|found| found.end - found.start <= piece.max(len)));
        }
    }

    /// A file of 2⁴⁰ bytes that are not there: to read them all would take minutes.
    #[test]
    fn the_cost_of_a_file_does_not_grow_with_it() {
        let path = std::env::temp_dir().join(format!("nnz-long-{}", std::process::id()));
        let of_length = |len| {
            File::create(&path).and_then(|file| file.set_len(len)).unwrap();
            let began = std::time::Instant::now();
            let mut made = Fingerprint::new("file");
            made.file(&path).unwrap();
            assert!(began.elapsed().as_secs() < 10);
            made.finish()
        };
        assert_ne!(of_length(1 << 40), of_length((1 << 40) + 1));
        std::fs::remove_file(&path).unwrap();
    }

    /// A column of another name, role or shape is another one, whatever it holds.
    #[test]
    fn columns_are_told_apart() {
        let of = |name, role, numbers: &[u64]| {
            let mut made = Fingerprint::new("columns");
            made.column(name, role, numbers);
            made.finish()
        };
        let all = [
            of(None, InputRole::Input, &[3]),
            of(Some(""), InputRole::Input, &[3]),
            of(Some("x"), InputRole::Input, &[3]),
            of(Some("x"), InputRole::Label, &[3]),
            of(Some("x"), InputRole::Label, &[3, 1]),
        ];
        for (index, one) in all.iter().enumerate() {
            assert!(all[index + 1..].iter().all(|other| other != one), "{index}");
        }
    }
}

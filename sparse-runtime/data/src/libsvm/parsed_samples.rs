//! Samples of LibSVM text, in memory.

use super::IndexBase;
use nnz_arrays::formats::ColumnIds;
use nnz_device::huge_pages::reserve_large;
use nnz_device::memory::make_room;
use sparse_core::element::Float;

/// Numbers of samples and entries.
#[derive(Clone, Copy, Default)]
pub(super) struct SampleCounts {
    pub(super) rows: usize,
    pub(super) entries: usize,
}

/// The samples read so far.
#[derive(Debug)]
pub(super) struct ParsedSamples<T> {
    pub(super) labels: Vec<T>,
    pub(super) indptr: Vec<u64>,
    /// Indices as written, less `first`: index 0 of a file that was assumed to count from one wraps
    /// around.
    pub(super) columns: ColumnIds,
    pub(super) values: Vec<T>,
    /// The index of the first feature, known or assumed.
    pub(super) first: u64,
    /// The line ends passed.
    pub(super) lines: u64,
    /// The largest index as written.
    pub(super) largest: Option<u64>,
    /// Whether index 0 occurs.
    pub(super) has_zero: bool,
    /// The offset, in the last block, of the first sample whose largest index is valid only if
    /// indices count from one, which is not known yet.
    pub(super) needs_base_one: Option<usize>,
}

impl<T: Float> ParsedSamples<T> {
    pub(super) fn new(base: IndexBase) -> Self {
        ParsedSamples {
            labels: Vec::new(),
            indptr: vec![0],
            columns: ColumnIds::U32(Vec::new()),
            values: Vec::new(),
            first: largest_base(base),
            lines: 0,
            largest: None,
            has_zero: false,
            needs_base_one: None,
        }
    }

    /// Reserves memory for this number of further samples and entries.
    pub(super) fn reserve(&mut self, rows: usize, entries: usize) {
        reserve_large(&mut self.labels, rows);
        reserve_large(&mut self.indptr, rows);
        reserve_large(&mut self.values, entries);
        match &mut self.columns {
            ColumnIds::U32(columns) => reserve_large(columns, entries),
            ColumnIds::U64(columns) => reserve_large(columns, entries),
        }
    }

    /// Reserves memory for this number of further ones, plus half of the present ones: copies are
    /// then rare in the long run.
    ///
    /// # Errors
    ///
    /// The bytes of an array for which there is no memory.
    pub(super) fn grow(&mut self, rows: usize, entries: usize) -> Result<(), usize> {
        make_room(&mut self.labels, rows)?;
        make_room(&mut self.indptr, rows)?;
        make_room(&mut self.values, entries)?;
        match &mut self.columns {
            ColumnIds::U32(columns) => make_room(columns, entries),
            ColumnIds::U64(columns) => make_room(columns, entries),
        }
    }

    /// Releases unused memory.
    pub(super) fn shrink(&mut self) {
        self.labels.shrink_to_fit();
        self.indptr.shrink_to_fit();
        self.values.shrink_to_fit();
        match &mut self.columns {
            ColumnIds::U32(columns) => columns.shrink_to_fit(),
            ColumnIds::U64(columns) => columns.shrink_to_fit(),
        }
    }

    /// The numbers of samples and entries.
    pub(super) fn size(&self) -> SampleCounts {
        SampleCounts { rows: self.labels.len(), entries: self.values.len() }
    }

    /// Clears all samples; the memory is kept, and the width of columns.
    pub(super) fn clear(&mut self) {
        self.labels.clear();
        self.indptr.truncate(1);
        self.values.clear();
        match &mut self.columns {
            ColumnIds::U32(columns) => columns.clear(),
            ColumnIds::U64(columns) => columns.clear(),
        }
        (self.lines, self.largest, self.has_zero, self.needs_base_one) = (0, None, false, None);
    }

    /// Indices count from zero after all.
    pub(super) fn count_from_zero(&mut self) {
        let first = std::mem::take(&mut self.first);
        match &mut self.columns {
            ColumnIds::U32(columns) => {
                columns.iter_mut().for_each(|column| *column = column.wrapping_add(first as u32))
            }
            ColumnIds::U64(columns) => {
                columns.iter_mut().for_each(|column| *column = column.wrapping_add(first));
            }
        }
    }

    /// Drops the started part of a faulty sample.
    pub(super) fn discard_partial(&mut self) {
        self.labels.truncate(self.indptr.len() - 1);
        let nnz = self.indptr[self.indptr.len() - 1] as usize;
        self.values.truncate(nnz);
        match &mut self.columns {
            ColumnIds::U32(columns) => columns.truncate(nnz),
            ColumnIds::U64(columns) => columns.truncate(nnz),
        }
    }
}

/// An index less the first, in 64 bits: one that wrapped around does so again.
pub(super) fn widened(column: u32, first: u64) -> u64 {
    u64::from(column.wrapping_add(first as u32)).wrapping_sub(first)
}

/// The index of the first feature; the larger one until it is known.
pub(super) fn largest_base(base: IndexBase) -> u64 {
    u64::from(base != IndexBase::Zero)
}

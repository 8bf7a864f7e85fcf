//! Uninitialised output behind the samples read so far, which several threads divide and fill.

use super::parsed_samples::{ParsedSamples, SampleCounts, widened};
use nnz_arrays::formats::ColumnIds;
use nnz_device::huge_pages::{LARGE_PAGE, map};
use sparse_core::element::Float;
use std::mem::MaybeUninit;
use std::ops::Range;

/// Memory for samples.
pub(super) struct UninitOutput<'a, T> {
    labels: &'a mut [MaybeUninit<T>],
    /// The ends of samples.
    indptr: &'a mut [MaybeUninit<u64>],
    columns: Columns<'a>,
    values: &'a mut [MaybeUninit<T>],
    /// The number of entries of all earlier samples.
    entries_before: usize,
    /// The index of the first feature, known or assumed.
    first: u64,
}

enum Columns<'a> {
    U32(&'a mut [MaybeUninit<u32>]),
    U64(&'a mut [MaybeUninit<u64>]),
}

impl<T: Float> ParsedSamples<T> {
    /// All memory without growth.
    pub(super) fn uninit_output(&mut self) -> UninitOutput<'_, T> {
        UninitOutput {
            labels: self.labels.spare_capacity_mut(),
            indptr: self.indptr.spare_capacity_mut(),
            columns: match &mut self.columns {
                ColumnIds::U32(columns) => Columns::U32(columns.spare_capacity_mut()),
                ColumnIds::U64(columns) => Columns::U64(columns.spare_capacity_mut()),
            },
            entries_before: self.values.len(),
            values: self.values.spare_capacity_mut(),
            first: self.first,
        }
    }

    /// Makes the written part of the memory a part of the samples.
    ///
    /// # Safety
    ///
    /// The memory has this number of samples and entries, all of them
    /// [written](UninitOutput::fill).
    pub(super) unsafe fn assume_written(&mut self, taken: SampleCounts) {
        let SampleCounts { rows, entries } = taken;
        // SAFETY: as the caller says.
        unsafe {
            self.labels.set_len(self.labels.len() + rows);
            self.indptr.set_len(self.indptr.len() + rows);
            self.values.set_len(self.values.len() + entries);
            match &mut self.columns {
                ColumnIds::U32(columns) => columns.set_len(columns.len() + entries),
                ColumnIds::U64(columns) => columns.set_len(columns.len() + entries),
            }
        }
    }
}

/// The pages of the memory, mapped ahead of the threads that fill it.
pub(super) struct OutputPages([Array; 4]);

/// One array of the memory.
struct Array {
    /// The addresses that are not mapped.
    rest: Range<usize>,
    start: usize,
    element: usize,
    is_of_entries: bool,
}

impl OutputPages {
    /// Maps the pages after the taken part.
    pub(super) fn map_behind(&mut self, taken: SampleCounts) {
        for array in &mut self.0 {
            let n = if array.is_of_entries { taken.entries } else { taken.rows };
            let wanted = array.start + n * array.element + LARGE_PAGE;
            if wanted > array.rest.start && !array.rest.is_empty() {
                let end = (wanted + LARGE_PAGE).min(array.rest.end);
                map(array.rest.start..end);
                array.rest.start = end;
            }
        }
    }
}

impl<'a, T: Float> UninitOutput<'a, T> {
    /// All pages of the memory.
    pub(super) fn pages(&self) -> OutputPages {
        fn array<U>(output: &[U], is_of_entries: bool) -> Array {
            let start = output.as_ptr().addr();
            let rest = start..start + size_of_val(output);
            Array { rest, start, element: size_of::<U>(), is_of_entries }
        }
        let columns = match &self.columns {
            Columns::U32(columns) => array(columns, true),
            Columns::U64(columns) => array(columns, true),
        };
        OutputPages([
            array(self.labels, false),
            array(self.indptr, false),
            columns,
            array(self.values, true),
        ])
    }

    /// The samples and entries that fit.
    fn size(&self) -> SampleCounts {
        let columns = match &self.columns {
            Columns::U32(columns) => columns.len(),
            Columns::U64(columns) => columns.len(),
        };
        SampleCounts {
            rows: self.labels.len().min(self.indptr.len()),
            entries: self.values.len().min(columns),
        }
    }

    /// Takes memory for some samples from the start. `None` if it is too small, or its columns too
    /// narrow.
    pub(super) fn take_for(
        &mut self,
        rows: &ParsedSamples<T>,
    ) -> Option<(UninitOutput<'a, T>, SampleCounts)> {
        let (size, taken) = (self.size(), rows.size());
        if taken.rows > size.rows || taken.entries > size.entries {
            return None;
        }
        if let (Columns::U32(_), ColumnIds::U64(_)) = (&self.columns, &rows.columns) {
            return None;
        }
        let output = UninitOutput {
            labels: split(&mut self.labels, taken.rows),
            indptr: split(&mut self.indptr, taken.rows),
            columns: match &mut self.columns {
                Columns::U32(columns) => Columns::U32(split(columns, taken.entries)),
                Columns::U64(columns) => Columns::U64(split(columns, taken.entries)),
            },
            values: split(&mut self.values, taken.entries),
            entries_before: self.entries_before,
            first: self.first,
        };
        self.entries_before += taken.entries;
        Some((output, taken))
    }

    /// Writes the samples for which this was [taken](UninitOutput::take_for), and empties them.
    ///
    /// # Panics
    ///
    /// If they have another size.
    pub(super) fn fill(self, rows: &mut ParsedSamples<T>) {
        copy(self.labels, &rows.labels);
        assert_eq!(self.indptr.len() + 1, rows.indptr.len(), "room for as many rows");
        for (end, own) in self.indptr.iter_mut().zip(&rows.indptr[1..]) {
            end.write(self.entries_before as u64 + own);
        }
        copy(self.values, &rows.values);
        match (self.columns, &rows.columns) {
            (Columns::U32(output), ColumnIds::U32(columns)) => copy(output, columns),
            (Columns::U64(output), ColumnIds::U64(columns)) => copy(output, columns),
            (Columns::U64(output), ColumnIds::U32(columns)) => {
                assert_eq!(output.len(), columns.len(), "room for as many columns");
                for (to, column) in output.iter_mut().zip(columns) {
                    to.write(widened(*column, self.first));
                }
            }
            (Columns::U32(_), ColumnIds::U64(_)) => unreachable!("no room was taken for these"),
        }
        rows.clear();
    }
}

/// Takes `len` elements from the start.
fn split<'a, U>(rest: &mut &'a mut [U], len: usize) -> &'a mut [U] {
    let (head, tail) = std::mem::take(rest).split_at_mut(len);
    *rest = tail;
    head
}

fn copy<U: Copy>(output: &mut [MaybeUninit<U>], elements: &[U]) {
    assert_eq!(output.len(), elements.len(), "room for as many elements");
    for (to, element) in output.iter_mut().zip(elements) {
        to.write(*element);
    }
}

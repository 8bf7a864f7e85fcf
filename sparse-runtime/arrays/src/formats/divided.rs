//! Divided csr: the entries of a csr stored once more, by columns, so that those of one thread lie
//! together.
//!
//! A thread that updates some of a parameter's table rows reads its entries of each sample, which
//! lie between those of other threads. It waits for whole cache lines of which it needs a part,
//! twice in a step. With divided data two threads each read half as much.

use super::column_shares;
use super::memory::make_room;
use super::{ColumnId, ColumnIds, CsrArrays, CsrView, FormatError};
use crate::kernels::TooManyThreads;
use crate::kernels::parallel::below;
use crate::with_column_ids;
use nnz_device::thread_pool;
use sparse_core::element::Stored;
use std::any::Any;
use std::ops::Range;

/// A csr whose entries are stored once more, divided by columns among threads, from
/// [`CsrView::divided_for`].
#[derive(Clone, Debug)]
pub struct DividedCsr<'a, T: Stored = f32> {
    matrix: CsrView<'a, T>,
    entries: DividedEntries<T>,
}

impl<'a, T: Stored> DividedCsr<'a, T> {
    /// The matrix. Kernels and steps on this number of threads read each thread's own entries.
    pub fn view(&self) -> CsrView<'_, T> {
        let matrix: CsrArrays<'_, T> = self.matrix.arrays();
        matrix.view().with_divided(self.entries.rows(0..self.matrix.n_rows()))
    }
}

impl<'a, T: Stored> CsrView<'a, T> {
    /// The same matrix, whose entries lie in memory once more, divided by columns among so many
    /// threads, 32 at most: what `Dataset::divided_for` does for a dataset. Each of them has about
    /// as many. Results have the same bits. O(nnz) on each thread.
    ///
    /// # Errors
    ///
    /// [`FormatError::OutOfMemory`]; [`FormatError::Threads`] for more than
    /// [`MAX_THREADS`](crate::kernels::MAX_THREADS).
    ///
    /// ```
    /// use nnz::formats::Csr;
    /// let x = Csr::from_rows(100, [vec![(3, 1.0f32), (70, 2.0)], vec![(70, 4.0)]])?;
    /// let divided = x.view().divided_for(2)?;
    /// assert_eq!(divided.view(), x.view());
    /// # Ok::<(), nnz::formats::FormatError>(())
    /// ```
    pub fn divided_for(self, threads: usize) -> Result<DividedCsr<'a, T>, FormatError> {
        TooManyThreads::check("divided_for", threads)?;
        Ok(DividedCsr { matrix: self, entries: column_shares::divide(self, threads)? })
    }
}

/// The entries of a csr, in parts of neighbouring columns; each part has all rows.
///
/// Invariants: `firsts` ascend, and there is one part more than `firsts`; each part has as many
/// rows as the csr, and its entries of a row are those of the csr in its columns.
#[derive(Clone, Debug)]
pub struct DividedEntries<T> {
    n_cols: usize,
    /// The first column of each part but the first.
    firsts: Vec<usize>,
    parts: Vec<ColumnPart<T>>,
}

/// Invariant: as that of a csr, but that the first row begins after [`BEFORE`] entries that are of
/// none, unless the csr has no entries.
#[derive(Clone, Debug)]
struct ColumnPart<T> {
    indptr: Vec<u64>,
    columns: ColumnIds,
    values: Vec<T>,
    /// For each row the place of its first entry among [`LANES`]: how many entries are of earlier
    /// parts.
    lanes: Vec<u8>,
}

/// Who sums terms by their place in a row has so many sums, and takes them in turn.
pub const LANES: usize = 4;

/// Entries before those of the first row of a part: vector loads begin up to this number before a
/// row.
const BEFORE: usize = LANES - 1;

impl<T: Stored> DividedEntries<T> {
    /// Copies the entries, a part on each thread. O(nnz) for each.
    ///
    /// # Errors
    ///
    /// [`FormatError::OutOfMemory`].
    ///
    /// # Panics
    ///
    /// If the first columns do not ascend, or are more than the parts that threads can have.
    pub(crate) fn of(x: CsrView<'_, T>, firsts: Vec<usize>) -> Result<Self, FormatError> {
        assert!(firsts.is_sorted() && firsts.len() < thread_pool::MAX_PARTS, "{firsts:?}");
        let mut parts = [const { Ok(None) }; thread_pool::MAX_PARTS];
        let parts = &mut parts[..=firsts.len()];
        thread_pool::each(parts, |place, part| {
            let first = place.checked_sub(1).map(|before| firsts[before]);
            *part = ColumnPart::of(x, first, firsts.get(place).copied()).map(Some);
        });
        let mut all = Vec::with_capacity(parts.len());
        for part in parts {
            all.extend(std::mem::replace(part, Ok(None))?);
        }
        Ok(DividedEntries { n_cols: x.n_cols(), firsts, parts: all })
    }

    /// The parts.
    pub fn n_parts(&self) -> usize {
        self.parts.len()
    }

    /// A run of rows, which there are.
    pub fn rows(&self, rows: Range<usize>) -> DividedRows<'_, T> {
        debug_assert!(rows.end < self.parts[0].indptr.len());
        DividedRows { entries: self, rows: WhichRows::Run { first: rows.start, len: rows.len() } }
    }

    /// Rows that lie anywhere, which were [gathered](GatheredBounds::gather).
    pub fn gathered<'a>(&'a self, bounds: &'a GatheredBounds) -> DividedRows<'a, T> {
        debug_assert_eq!(bounds.lanes.len(), bounds.n_rows * self.n_parts());
        DividedRows { entries: self, rows: WhichRows::Gathered(bounds) }
    }
}

impl<T: Stored> ColumnPart<T> {
    /// The entries from one column on and before another.
    fn of(
        x: CsrView<'_, T>,
        first: Option<usize>,
        end: Option<usize>,
    ) -> Result<Self, FormatError> {
        const WHAT: &str = "the divided entries";
        let shape = [x.n_rows(), x.n_cols()].into();
        with_column_ids!(x.columns(), |ids| {
            let own = |row: usize| {
                let (start, end_of_row) = (x.starts()[row] as usize, x.ends()[row] as usize);
                let at = |bound: usize| start + below(&ids[start..end_of_row], bound);
                first.map_or(start, at)..end.map_or(end_of_row, at)
            };
            let (mut indptr, mut columns, mut values) = (Vec::new(), Vec::new(), Vec::new());
            let mut lanes = Vec::new();
            make_room(&mut indptr, x.n_rows() + 1, WHAT, shape)?;
            make_room(&mut lanes, x.n_rows(), WHAT, shape)?;
            // These are never read: a csr without entries has nothing to read.
            let before = if ids.is_empty() { 0 } else { BEFORE };
            let mut end = before;
            indptr.push(end as u64);
            for row in 0..x.n_rows() {
                let entries = own(row);
                end += entries.len();
                indptr.push(end as u64);
                lanes.push(((entries.start - x.starts()[row] as usize) % LANES) as u8);
            }
            make_room(&mut columns, end, WHAT, shape)?;
            make_room(&mut values, end, WHAT, shape)?;
            columns.extend(ids.iter().take(1).cycle().take(before));
            values.extend(x.values().iter().take(1).cycle().take(before));
            for entries in (0..x.n_rows()).map(own) {
                columns.extend_from_slice(&ids[entries.clone()]);
                values.extend_from_slice(&x.values()[entries]);
            }
            Ok(ColumnPart { indptr, columns: ColumnId::into_ids(columns), values, lanes })
        })
    }
}

/// The bounds of gathered rows in each part.
#[derive(Clone, Debug, Default)]
pub struct GatheredBounds {
    n_rows: usize,
    /// Of each part where its rows begin, and where they end.
    bounds: Vec<u64>,
    lanes: Vec<u8>,
}

impl GatheredBounds {
    /// Looks up rows, which there are. O(rows · parts).
    pub fn gather<T: Stored>(&mut self, entries: &DividedEntries<T>, rows: &[usize]) {
        self.n_rows = rows.len();
        self.bounds.resize(2 * rows.len() * entries.n_parts(), 0);
        self.lanes.resize(rows.len() * entries.n_parts(), 0);
        let mut bounds = self.bounds.chunks_exact_mut(rows.len().max(1));
        let lanes = self.lanes.chunks_exact_mut(rows.len().max(1));
        for (part, lanes) in entries.parts.iter().zip(lanes) {
            let (Some(starts), Some(ends)) = (bounds.next(), bounds.next()) else { return };
            let places = starts.iter_mut().zip(ends).zip(lanes);
            for (((start, end), lane), &row) in places.zip(rows) {
                (*start, *end) = (part.indptr[row], part.indptr[row + 1]);
                *lane = part.lanes[row];
            }
        }
    }
}

/// The divided entries of the rows of a view.
///
/// Invariant: the rows are among those of the entries.
#[derive(Clone, Copy, Debug)]
pub struct DividedRows<'a, T> {
    entries: &'a DividedEntries<T>,
    rows: WhichRows<'a>,
}

#[derive(Clone, Copy, Debug)]
enum WhichRows<'a> {
    /// Neighbours.
    Run {
        first: usize,
        len: usize,
    },
    Gathered(&'a GatheredBounds),
}

impl<'a, T: Stored> DividedRows<'a, T> {
    /// The same, under another name of the type of its values; `None` for another type.
    pub(super) fn of_type<U: Stored>(self) -> Option<DividedRows<'a, U>> {
        let entries = (self.entries as &dyn Any).downcast_ref()?;
        Some(DividedRows { entries, rows: self.rows })
    }

    /// The part that has these columns and no others, if there is one.
    pub(crate) fn part_of(self, columns: &Range<usize>) -> Option<CsrView<'a, T>> {
        let DividedEntries { n_cols, firsts, .. } = self.entries;
        let first = |part: usize| part.checked_sub(1).map_or(0, |before| firsts[before]);
        let is_it = |part: &usize| {
            first(*part) == columns.start && firsts.get(*part).unwrap_or(n_cols) == &columns.end
        };
        (0..self.n_parts()).find(is_it).map(|part| self.part(part))
    }

    /// Those of all rows.
    pub fn entries(&self) -> &'a DividedEntries<T> {
        self.entries
    }

    /// The parts.
    pub(crate) fn n_parts(&self) -> usize {
        self.entries.n_parts()
    }

    /// The first column of each part but the first.
    pub fn firsts(&self) -> &'a [usize] {
        &self.entries.firsts
    }

    /// The entries of one part, as rows as many as the view has.
    pub fn part(self, part: usize) -> CsrView<'a, T> {
        let ColumnPart { indptr, columns, values, .. } = &self.entries.parts[part];
        let (starts, ends) = match self.rows {
            WhichRows::Run { first, len } => {
                let indptr = &indptr[first..=first + len];
                (&indptr[..len], &indptr[1..])
            }
            WhichRows::Gathered(GatheredBounds { n_rows, bounds, .. }) => {
                bounds[2 * part * n_rows..][..2 * n_rows].split_at(*n_rows)
            }
        };
        let (n_cols, columns) = (self.entries.n_cols, columns.view());
        CsrView { n_cols, starts, ends, columns, values, upcoming: (0, 0), divided: None }
    }

    /// For each row the place of a part's first entry of it among [`LANES`].
    pub fn lanes(&self, part: usize) -> &'a [u8] {
        match self.rows {
            WhichRows::Run { first, len } => &self.entries.parts[part].lanes[first..first + len],
            WhichRows::Gathered(GatheredBounds { n_rows, lanes, .. }) => {
                &lanes[part * n_rows..][..*n_rows]
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::formats::Csr;

    /// Rows of 0 to 40 entries; the last columns have none.
    fn matrix() -> Csr {
        let row = |row: usize| (0..row * 7 % 41).map(move |k| (k * 2 + row % 3, k as f32));
        Csr::from_rows(120, (0..50).map(|index| row(index).collect::<Vec<_>>())).unwrap()
    }

    #[test]
    fn each_entry_is_in_one_part_in_its_row() {
        let x = matrix();
        for firsts in [vec![], vec![0], vec![30], vec![10, 10, 60], vec![100, 120]] {
            let divided = DividedEntries::of(x.view(), firsts.clone()).unwrap();
            assert_eq!(divided.n_parts(), firsts.len() + 1);
            let order: Vec<usize> = (0..50).map(|k| k * 37 % 50).chain([3, 3]).collect();
            let mut bounds = GatheredBounds::default();
            bounds.gather(&divided, &[3, 1]);
            bounds.gather(&divided, &order);
            for (rows, of) in [
                (divided.rows(0..50), (0..50).collect::<Vec<_>>()),
                (divided.rows(7..31), (7..31).collect()),
                (divided.rows(50..50), vec![]),
                (divided.gathered(&bounds), order.clone()),
            ] {
                assert_eq!(rows.firsts(), firsts);
                for (place, &row) in of.iter().enumerate() {
                    let mut found = Vec::new();
                    for part in 0..rows.n_parts() {
                        assert_eq!(usize::from(rows.lanes(part)[place]), found.len() % LANES);
                        let of_part = rows.part(part);
                        assert_eq!((of_part.n_rows(), of_part.n_cols()), (of.len(), 120));
                        let first = part.checked_sub(1).map_or(0, |before| firsts[before]);
                        let columns = first..firsts.get(part).copied().unwrap_or(120);
                        for entry in of_part.iter_rows().nth(place).unwrap() {
                            assert!(columns.contains(&entry.0));
                            found.push(entry);
                        }
                    }
                    assert!(x.iter_rows().nth(row).unwrap().eq(found), "{firsts:?} row {row}");
                }
            }
        }
    }

    #[test]
    fn there_may_be_nothing() {
        let nothing = DividedEntries::of(Csr::<f32>::zeros(0, 0).view(), vec![0]).unwrap();
        let rows = nothing.rows(0..0);
        assert_eq!((rows.part(0).n_rows(), rows.part(1).nnz()), (0, 0));
    }
}

//! The gradient of a batch by rows: a persistent map from rows to slots, no sorting, no hashing.

use crate::formats::ColumnId;
use crate::prefetch::prefetch;
use crate::table::Aligned;
use sparse_core::element::{Factor, Float};

/// Sums the gradient of a `row_sparse` parameter over a batch.
///
/// A table from row to slot (4 bytes a row, mapped by the system only where batches touch it), the list of
/// rows touched, and one row of values a slot. Adding costs O(1), clearing costs O(rows touched). Nothing is
/// allocated once the largest batch has been seen.
#[derive(Clone, Debug)]
pub struct RowAccumulator<T> {
    /// Row → slot + 1, or 0 where the batch has not touched the row. Invariant: `slots[row]` is 0 or at
    /// most `rows.len()`.
    slots: Aligned<u32>,
    /// The rows touched, in the order of their slots. Invariant: each is below `slots.len()`.
    rows: Vec<usize>,
    /// Invariant: `rows.len() * row_size` values.
    values: Vec<T>,
    n_rows: usize,
    row_size: usize,
}

impl<T: Float> RowAccumulator<T> {
    /// For a table of `n_rows` rows of `row_size` elements. Allocates the map at the first use.
    pub fn new(n_rows: usize, row_size: usize) -> Self {
        RowAccumulator {
            slots: Aligned::new(0, 0),
            rows: Vec::new(),
            values: Vec::new(),
            n_rows,
            row_size,
        }
    }

    /// The number of rows of the table.
    #[inline(always)]
    pub fn n_rows(&self) -> usize {
        self.n_rows
    }

    /// The elements of a row.
    #[inline(always)]
    pub fn row_size(&self) -> usize {
        self.row_size
    }

    /// The sum for the row that was touched as number `slot`, from 0.
    ///
    /// # Panics
    ///
    /// If there is no such slot.
    #[inline(always)]
    pub fn sums(&self, slot: usize) -> &[T] {
        &self.values[slot * self.row_size..(slot + 1) * self.row_size]
    }

    /// The rows touched since the last [`clear`](Self::clear), in the order of the first touch.
    #[inline]
    pub fn rows(&self) -> &[usize] {
        &self.rows
    }

    /// The sums: one row for each of [`rows`](Self::rows), in that order.
    #[inline]
    pub fn values(&self) -> &[T] {
        &self.values
    }

    /// The sum for one row, zero at its first touch, to be added to.
    ///
    /// # Panics
    ///
    /// If there is no such row.
    #[inline(always)]
    pub fn row_mut(&mut self, row: usize) -> &mut [T] {
        assert!(row < self.n_rows, "row {row} of {}", self.n_rows);
        // SAFETY: checked above.
        unsafe { self.row_mut_unchecked(row) }
    }

    /// [`row_mut`](Self::row_mut) without a check.
    ///
    /// # Safety
    ///
    /// `row` is below the number of rows given to [`new`](Self::new).
    #[inline(always)]
    pub unsafe fn row_mut_unchecked(&mut self, row: usize) -> &mut [T] {
        if self.slots.is_empty() {
            self.allocate();
        }
        // SAFETY: `slots` has `n_rows` entries, and the caller promises `row < n_rows`.
        let mut slot = unsafe { *self.slots.get_unchecked(row) };
        if slot == 0 {
            slot = self.new_slot(row);
        }
        let start = (slot as usize - 1) * self.row_size;
        // SAFETY: a slot in use is at most `rows.len()`, and `values` has `row_size` elements for each.
        unsafe { self.values.get_unchecked_mut(start..start + self.row_size) }
    }

    /// Forgets the sums, in O(rows touched).
    pub fn clear(&mut self) {
        for &row in &self.rows {
            self.slots[row] = 0;
        }
        self.rows.clear();
        self.values.clear();
    }

    /// Asks for the slots of some rows ahead of their use. Any will do: those outside are ignored.
    #[inline(always)]
    pub(crate) fn prefetch_each<I: ColumnId>(&self, ids: &[I]) {
        ids.iter().for_each(|id| self.prefetch(id.at()));
    }

    /// [`prefetch_each`](Self::prefetch_each) of one row.
    #[inline(always)]
    pub(crate) fn prefetch(&self, row: usize) {
        prefetch(&self.slots, row);
    }

    /// Adds the value of each id times `gradient` to the row of that id. O(ids · row size).
    ///
    /// # Safety
    ///
    /// The ids are below `n_rows`, and `gradient` has `row_size` elements.
    #[inline(always)]
    pub(crate) unsafe fn add_outer<I: ColumnId, F: Float<Accumulator = T>, V: Factor<F>>(
        &mut self,
        entries: impl ExactSizeIterator<Item = (I, V)>,
        gradient: &[T],
    ) {
        // SAFETY: promised by the caller.
        unsafe {
            self.add_each(entries, gradient.len(), |sums, value| {
                for (sum, gradient) in sums.iter_mut().zip(gradient) {
                    *sum += value.times(*gradient);
                }
            });
        }
    }

    /// Calls `add` with the sums of each id, zeros at the first touch of its row, and its value. O(ids · row size).
    ///
    /// # Safety
    ///
    /// The ids are below `n_rows`, there are no more entries than their iterator says, and `row_size` is that of the sums: given again,
    /// so that the compiler may know it.
    #[inline(always)]
    pub(crate) unsafe fn add_each<I: ColumnId, V: Copy>(
        &mut self,
        entries: impl ExactSizeIterator<Item = (I, V)>,
        row_size: usize,
        mut add: impl FnMut(&mut [T], V),
    ) {
        debug_assert_eq!(row_size, self.row_size);
        if self.slots.is_empty() {
            self.allocate();
        }
        self.make_room(entries.len());
        let slots = self.slots.as_mut_ptr();
        let (rows, sums) = (self.rows.as_mut_ptr(), self.values.as_mut_ptr());
        let mut len = self.rows.len();
        for (id, value) in entries {
            // SAFETY: `slots` has `n_rows` entries, and the caller promises that ids are below it; a slot in use is at
            // most `len`, and there is room for as many rows more as there are ids. What a new row's sums point to is
            // written before it is read.
            unsafe {
                let slot = &mut *slots.add(id.at());
                if *slot == 0 {
                    *rows.add(len) = id.at();
                    sums.add(len * row_size).write_bytes(0, row_size);
                    len += 1;
                    // Fits: `make_room` has seen to it.
                    *slot = len as u32;
                }
                let first = sums.add((*slot as usize - 1) * row_size);
                add(std::slice::from_raw_parts_mut(first, row_size), value);
            }
        }
        // SAFETY: written above, within the room that was made.
        unsafe {
            self.rows.set_len(len);
            self.values.set_len(len * row_size);
        }
    }

    /// Room for some rows more.
    #[inline(always)]
    fn make_room(&mut self, rows: usize) {
        let size = self.row_size;
        if self.rows.capacity() - self.rows.len() < rows
            || self.values.capacity() - self.values.len() < rows * size
            || self.rows.len() + rows > u32::MAX as usize
        {
            self.grow(rows);
        }
    }

    #[cold]
    #[inline(never)]
    fn grow(&mut self, rows: usize) {
        self.rows.reserve(rows);
        self.values.reserve(rows.saturating_mul(self.row_size));
        // A batch holds fewer than 2³² rows of a table: their sums alone would take 16 GiB.
        assert!(
            u32::try_from(self.rows.len() + rows).is_ok(),
            "more than 2^32 - 1 rows in one batch"
        );
    }

    #[cold]
    #[inline(never)]
    fn allocate(&mut self) {
        self.slots = Aligned::new(0, self.n_rows);
    }

    #[inline(never)]
    fn new_slot(&mut self, row: usize) -> u32 {
        self.rows.push(row);
        self.values.resize(self.rows.len() * self.row_size, T::zero());
        // A batch holds fewer than 2³² rows of a table: their sums alone would take 16 GiB.
        let slot = self.rows.len() as u32;
        assert!(slot != 0, "more than 2^32 - 1 rows in one batch");
        self.slots[row] = slot;
        slot
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sums_by_row_in_the_order_of_the_first_touch() {
        let mut sums = RowAccumulator::<f64>::new(5, 2);
        for (row, value) in [(4, 1.0), (0, 2.0), (4, 4.0)] {
            for (sum, factor) in sums.row_mut(row).iter_mut().zip([1.0, 10.0]) {
                *sum += factor * value;
            }
        }
        assert_eq!(sums.rows(), [4, 0]);
        assert_eq!(sums.values(), [5.0, 50.0, 2.0, 20.0]);
        sums.clear();
        assert!(sums.rows().is_empty() && sums.values().is_empty());
        sums.row_mut(4)[1] += 1.0;
        assert_eq!((sums.rows(), sums.values()), (&[4][..], &[0.0, 1.0][..]));
    }

    #[test]
    #[should_panic(expected = "row 5 of 5")]
    fn a_row_outside_the_table_is_refused() {
        RowAccumulator::<f32>::new(5, 1).row_mut(5);
    }

    #[test]
    fn rows_without_elements() {
        let mut sums = RowAccumulator::<f32>::new(3, 0);
        assert!(sums.row_mut(1).is_empty());
        assert_eq!(sums.rows(), [1]);
    }
}

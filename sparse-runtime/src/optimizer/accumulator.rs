//! The gradient of a batch by rows: a persistent map from rows to slots, no sorting, no hashing.

use sparse_core::element::Float;

/// Sums the gradient of a `row_sparse` parameter over a batch.
///
/// A table from row to slot (4 bytes a row, mapped by the system only where batches touch it), the list of
/// rows touched, and one row of values a slot. Adding costs O(1), clearing costs O(rows touched). Nothing is
/// allocated once the largest batch has been seen.
#[derive(Clone, Debug)]
pub struct RowAccumulator<T> {
    /// Row → slot + 1, or 0 where the batch has not touched the row. Invariant: `slots[row]` is 0 or at
    /// most `rows.len()`.
    slots: Vec<u32>,
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
        RowAccumulator { slots: Vec::new(), rows: Vec::new(), values: Vec::new(), n_rows, row_size }
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

    #[cold]
    #[inline(never)]
    fn allocate(&mut self) {
        self.slots = vec![0; self.n_rows];
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

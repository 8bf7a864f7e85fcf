//! The gradient of a batch by table rows: a persistent map from rows to slots, no sorting, no
//! hashing.
//!
//! Sums are `f64`, whatever the element: the sum of a column that a million samples share would
//! lose the terms of the last ones in `f32`.

#[cfg(target_arch = "x86_64")]
mod own;

use nnz_arrays::formats::ColumnId;
use nnz_arrays::parameter_memory::Aligned;
use nnz_device::prefetch::{is_far, prefetch_at};
use sparse_core::element::{Factor, Float};
use std::marker::PhantomData;

/// Sums the gradient of a `row_sparse` parameter over a batch.
///
/// A table from row to slot (4 bytes a row, mapped by the system only where batches touch it), the
/// list of rows touched, and one row of values a slot. Adding and clearing cost O(1). Nothing is
/// allocated once the largest batch has been seen, but for a new map each time that 2³¹ rows were
/// touched.
#[derive(Clone, Debug)]
pub struct RowAccumulator {
    /// Row → `first` + its slot where the batch has touched the row, else less than `first`: what
    /// earlier batches left there, so that nobody goes back to take it away.
    slots: Aligned<u32>,
    /// Grows by the number of slots from batch to batch. At least 1.
    first: u32,
    /// The rows touched, in the order of their slots, at most `MOST_ROWS`. Invariant: each is below
    /// `slots.len()`.
    rows: Vec<usize>,
    /// Invariant: `rows.len() * row_size` values.
    values: Vec<f64>,
    n_rows: usize,
    row_size: usize,
}

/// Where the slots of rows are, one a row: those of a [`RowAccumulator`], or others that lie beside
/// the weights.
///
/// Invariant: from `slots` on there is a `u32` for each of `n_rows` rows, `stride` bytes from row
/// to row, which nobody has a reference to for `'a`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Slots<'a> {
    slots: *mut u8,
    stride: usize,
    n_rows: usize,
    /// What stands for the first sum: rows that have none have less than this, or more than for all
    /// sums.
    number: u32,
    rows: PhantomData<&'a mut [u32]>,
}

// SAFETY: whoever reads or writes a slot promises that no other thread does meanwhile.
unsafe impl Send for Slots<'_> {}
// SAFETY: as above.
unsafe impl Sync for Slots<'_> {}

impl Slots<'_> {
    /// Slots that lie apart, of which `number` and what comes after it means none.
    ///
    /// # Safety
    ///
    /// There is a `u32` for each of `n_rows` rows, `stride` bytes from row to row, which nobody has
    /// a reference to as long as these are used.
    #[inline(always)]
    pub(crate) unsafe fn beside(first: *mut u8, stride: usize, n_rows: usize, number: u32) -> Self {
        Slots { slots: first, stride, n_rows, number, rows: PhantomData }
    }

    /// The slot of a row, or where it would be.
    #[inline(always)]
    fn at(self, row: usize) -> *mut u32 {
        self.slots.wrapping_add(row.wrapping_mul(self.stride)).cast()
    }

    /// Whether asking for slots ahead of their use pays.
    #[inline(always)]
    pub(crate) fn are_far(self) -> bool {
        is_far(self.n_rows * self.stride)
    }

    /// Whether asking for them is another thing than asking for the weights of the rows.
    #[inline(always)]
    pub(crate) fn are_apart(self) -> bool {
        self.stride == size_of::<u32>()
    }

    /// Asks for the slots of some rows ahead of their use. Any will do: those outside are ignored.
    #[inline(always)]
    pub(crate) fn prefetch_each<I: ColumnId>(self, ids: &[I]) {
        ids.iter().for_each(|id| prefetch_at(self.at(id.at()).cast_const()));
    }

    /// The entries as they are, each of which asks for the slot of one of some rows ahead of its
    /// use, the last of them again where there are fewer; for what is left where there are more,
    /// this asks at once. Of many at once most wait for each other.
    #[inline(always)]
    pub(crate) fn prefetch_with<I: ColumnId, E: ExactSizeIterator>(
        self,
        ahead: &[I],
        entries: E,
    ) -> impl ExactSizeIterator<Item = E::Item> {
        let (with_each, rest) = ahead.split_at(ahead.len().min(entries.len()));
        self.prefetch_each(rest);
        // Where none is ahead, the first row, which nobody waits for.
        let (last, none) = (with_each.len().saturating_sub(1), self.at(0));
        entries.enumerate().map(
            #[inline(always)]
            move |(place, entry)| {
                let id = with_each.get(place.min(last));
                prefetch_at(id.map_or(none, |id| self.at(id.at())).cast_const());
                entry
            },
        )
    }
}

/// The product of a value and a factor, as it is added to a sum: exact where both are of 24 bits or
/// fewer.
#[inline(always)]
pub(crate) fn term<T: Float, V: Factor<T>>(value: V, factor: T::Accumulator) -> f64 {
    if V::IS_UNIT { factor.as_f64() } else { value.number().as_f64() * factor.as_f64() }
}

/// The rows that a batch may touch: their sums alone would take 16 GiB.
const MOST_ROWS: usize = (1 << 31) - 1;

impl RowAccumulator {
    /// For a table of `n_rows` rows of `row_size` elements. Allocates the map at the first use.
    pub fn new(n_rows: usize, row_size: usize) -> Self {
        RowAccumulator {
            slots: Aligned::new(0, 0),
            first: 1,
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
    pub fn sums(&self, slot: usize) -> &[f64] {
        &self.values[slot * self.row_size..(slot + 1) * self.row_size]
    }

    /// The slot of a row that was touched since the last [`clear`](Self::clear), by its own map.
    #[inline(always)]
    pub(crate) fn slot_of(&self, row: usize) -> usize {
        self.slots[row].wrapping_sub(self.first) as usize
    }

    /// The rows touched since the last [`clear`](Self::clear), in the order of the first touch.
    #[inline]
    pub fn rows(&self) -> &[usize] {
        &self.rows
    }

    /// The sums: one row for each of [`rows`](Self::rows), in that order.
    #[inline]
    pub fn values(&self) -> &[f64] {
        &self.values
    }

    /// The [sums](Self::values), to be changed.
    pub(crate) fn values_mut(&mut self) -> &mut [f64] {
        &mut self.values
    }

    /// The sum for one row, zero at its first touch, to be added to.
    ///
    /// # Panics
    ///
    /// If there is no such row.
    #[inline(always)]
    pub fn row_mut(&mut self, row: usize) -> &mut [f64] {
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
    pub unsafe fn row_mut_unchecked(&mut self, row: usize) -> &mut [f64] {
        if self.slots.is_empty() {
            self.allocate();
        }
        // SAFETY: `slots` has `n_rows` entries, and the caller promises `row < n_rows`.
        let mut slot = unsafe { *self.slots.get_unchecked(row) }.wrapping_sub(self.first) as usize;
        if slot >= self.rows.len() {
            slot = self.new_slot(row);
        }
        let start = slot * self.row_size;
        // SAFETY: a slot in use is below `rows.len()`, and `values` has `row_size` elements for
        // each.
        unsafe { self.values.get_unchecked_mut(start..start + self.row_size) }
    }

    /// Forgets the sums, in O(1).
    pub fn clear(&mut self) {
        // Fits: `first` was at most, and so many rows are.
        self.first += self.rows.len() as u32;
        if self.first as usize > MOST_ROWS {
            self.start_again();
        }
        self.rows.clear();
        self.values.clear();
    }

    /// The slots of the map that is here. O(1), but for the first time.
    #[inline(always)]
    pub(crate) fn own_slots<'s>(&mut self) -> Slots<'s> {
        if self.slots.is_empty() {
            self.allocate();
        }
        let (slots, rows) = (self.slots.as_mut_ptr().cast(), PhantomData);
        Slots { slots, stride: size_of::<u32>(), n_rows: self.n_rows, number: self.first, rows }
    }

    /// Adds the value of each id times `gradient` to the row of that id. O(ids · row size).
    ///
    /// # Safety
    ///
    /// As for [`add_each`](Self::add_each), and `gradient` has `row_size` elements.
    #[inline(always)]
    pub(crate) unsafe fn add_outer<I: ColumnId, T: Float, V: Factor<T>>(
        &mut self,
        slots: Slots<'_>,
        entries: impl ExactSizeIterator<Item = (I, V)>,
        gradient: &[T::Accumulator],
    ) {
        // SAFETY: promised by the caller.
        unsafe {
            self.add_each(slots, entries, gradient.len(), |sums, value| {
                for (sum, gradient) in sums.iter_mut().zip(gradient) {
                    *sum += term::<T, V>(value, *gradient);
                }
            });
        }
    }

    /// Calls `add` with the sums of each id, zeros at the first touch of its row, and its value.
    /// O(ids · row size).
    ///
    /// # Safety
    ///
    /// The ids are below `n_rows`, for as many rows there are `slots`, the same for all entries
    /// since the last [`clear`](Self::clear), there are no more entries than their iterator says,
    /// and `row_size` is that of the sums: given again, so that the compiler may know it.
    #[inline(always)]
    pub(crate) unsafe fn add_each<I: ColumnId, V: Copy>(
        &mut self,
        slots: Slots<'_>,
        entries: impl ExactSizeIterator<Item = (I, V)>,
        row_size: usize,
        mut add: impl FnMut(&mut [f64], V),
    ) {
        /// Elements of a row that are written as if it were new, whether it is or not: beyond the
        /// last row they mean nothing, and the number stays what it was. Which rows are new is
        /// chance, and a processor that guesses waits for a cache line to learn that it was wrong.
        const FEW: usize = 4;
        debug_assert_eq!(row_size, self.row_size);
        debug_assert_eq!(slots.n_rows, self.n_rows);
        self.make_room(entries.len());
        let first = slots.number;
        let (rows, sums) = (self.rows.as_mut_ptr(), self.values.as_mut_ptr());
        let mut len = self.rows.len();
        for (id, value) in entries {
            // SAFETY: the caller promises slots, and that ids are below their number; a slot in use
            // is below `len`, and there is room for as many rows more as there are ids. What a new
            // row's sums point to is written before it is read.
            unsafe {
                let number = &mut *slots.at(id.at());
                let mut slot = number.wrapping_sub(first) as usize;
                if row_size <= FEW || slot >= len {
                    // The next one where the row is new.
                    slot = slot.min(len);
                    *rows.add(len) = id.at();
                    sums.add(len * row_size).write_bytes(0, row_size);
                    // Fits: `make_room` has seen to it.
                    *number = first + slot as u32;
                    len += usize::from(slot == len);
                }
                add(std::slice::from_raw_parts_mut(sums.add(slot * row_size), row_size), value);
            }
        }
        // SAFETY: written above, within the room that was made.
        unsafe {
            self.rows.set_len(len);
            self.values.set_len(len * row_size);
        }
    }

    /// Finds the sums of rows, zeros at the first touch: `places` becomes where the sums of each id
    /// begin among the [values](Self::values_mut). O(ids + elements of new rows).
    ///
    /// # Safety
    ///
    /// As for [`add_each`](Self::add_each).
    #[inline(always)]
    pub(crate) unsafe fn find_each<I: ColumnId>(
        &mut self,
        slots: Slots<'_>,
        ids: &[I],
        places: &mut Vec<usize>,
    ) {
        debug_assert_eq!(slots.n_rows, self.n_rows);
        self.make_room(ids.len());
        places.clear();
        places.reserve(ids.len());
        let (first, row_size) = (slots.number, self.row_size);
        let (rows, sums) = (self.rows.as_mut_ptr(), self.values.as_mut_ptr());
        let mut len = self.rows.len();
        let found = ids.iter().map(|id| {
            // SAFETY: as in `add_each`.
            unsafe {
                let number = &mut *slots.at(id.at());
                let mut slot = number.wrapping_sub(first) as usize;
                if slot >= len {
                    slot = len;
                    *rows.add(len) = id.at();
                    sums.add(len * row_size).write_bytes(0, row_size);
                    // Fits: `make_room` has seen to it.
                    *number = first + slot as u32;
                    len += 1;
                }
                slot * row_size
            }
        });
        places.extend(found);
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
            || self.rows.len() + rows > MOST_ROWS
        {
            self.grow(rows);
        }
    }

    #[cold]
    #[inline(never)]
    fn grow(&mut self, rows: usize) {
        self.rows.reserve(rows);
        self.values.reserve(rows.saturating_mul(self.row_size));
        assert!(self.rows.len() + rows <= MOST_ROWS, "2^31 rows in one batch");
    }

    #[cold]
    #[inline(never)]
    fn allocate(&mut self) {
        self.slots = Aligned::new(0, self.n_rows);
    }

    /// Lets go of the numbers that earlier batches left: once in so many rows touched that it
    /// counts for nothing.
    #[cold]
    #[inline(never)]
    fn start_again(&mut self) {
        self.slots = Aligned::new(0, 0);
        self.first = 1;
    }

    #[inline(never)]
    fn new_slot(&mut self, row: usize) -> usize {
        let slot = self.rows.len();
        assert!(slot < MOST_ROWS, "2^31 rows in one batch");
        self.rows.push(row);
        self.values.resize(self.rows.len() * self.row_size, 0.0);
        self.slots[row] = self.first + slot as u32;
        slot
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sums_by_row_in_the_order_of_the_first_touch() {
        let mut sums = RowAccumulator::new(5, 2);
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

    /// Through the batch after which numbers start again.
    #[test]
    fn what_earlier_batches_left_is_not_read() {
        let mut sums = RowAccumulator::new(4, 1);
        sums.first = MOST_ROWS as u32 - 3;
        for batch in 0..4 {
            let slots = sums.own_slots();
            for row in [batch % 4, 3, 3] {
                // SAFETY: there are 4 rows of 1.
                unsafe {
                    sums.add_each(slots, std::iter::once((row as u32, ())), 1, |sum, ()| {
                        sum[0] += 1.0
                    })
                };
            }
            let expected: (&[usize], &[f64]) = match batch {
                3 => (&[3], &[3.0]),
                batch => (&[batch, 3], &[1.0, 2.0]),
            };
            assert_eq!((sums.rows(), sums.values()), expected);
            sums.clear();
        }
        assert!(sums.first < 10);
    }

    #[test]
    fn sums_that_are_found_are_those_that_are_added_to() {
        let mut sums = RowAccumulator::new(6, 3);
        let (slots, mut places) = (sums.own_slots(), Vec::new());
        for (ids, expected) in [(&[4u32, 1, 4][..], &[0, 3, 0][..]), (&[5, 1], &[6, 3])] {
            // SAFETY: there are 6 rows of 3.
            unsafe { sums.find_each(slots, ids, &mut places) };
            assert_eq!(places, expected);
            places.iter().for_each(|place| sums.values_mut()[place + 1] += 2.0);
        }
        assert_eq!(sums.rows(), [4, 1, 5]);
        assert_eq!(sums.values(), [0.0, 4.0, 0.0, 0.0, 4.0, 0.0, 0.0, 2.0, 0.0]);
        // SAFETY: as above.
        unsafe {
            let one = std::iter::once((1u32, ()));
            sums.add_each(slots, one, 3, |sums, ()| sums[2] += 1.0);
        }
        assert_eq!(sums.sums(1), [0.0, 4.0, 1.0]);
    }

    #[test]
    #[should_panic(expected = "row 5 of 5")]
    fn a_row_outside_the_table_is_refused() {
        RowAccumulator::new(5, 1).row_mut(5);
    }

    #[test]
    fn rows_without_elements() {
        let mut sums = RowAccumulator::new(3, 0);
        assert!(sums.row_mut(1).is_empty());
        assert_eq!(sums.rows(), [1]);
    }
}

//! The rows of a parameter, shared by several threads at once.

use super::accumulator::RowAccumulator;
use super::catch_up::CatchUp;
use super::cursor::{ReadRows, RowCursor, SumsOfRows};
use super::last_steps::LastSteps;
use super::missed::{Gap, Missed};
use super::rows::RowUpdater;
use super::update_kind::{IdleOf, UpdateKind};
use nnz_arrays::formats::ColumnId;
use nnz_device::prefetch::prefetch_row;
use nnz_optim::{IdleMap, UpdateRule};
use sparse_core::element::Float;
use std::marker::PhantomData;
use std::slice;

/// What a [`RowUpdater`] does, of rows that the calling thread alone settles and updates meanwhile.
///
/// Invariant: `cursor` and `last` are those of `n_rows` rows which the `RowUpdater` that gave this
/// has borrowed for `'a`.
pub(crate) struct SharedRows<'a, R: UpdateRule, T: Float, K> {
    pub(super) cursor: RowCursor<'a, R, T, K>,
    /// As [`CatchUp::last`].
    pub(super) last: LastSteps<'a>,
    pub(super) missed: Missed<'a, R, T>,
}

// SAFETY: what the addresses lead to may be sent to another thread, and whoever calls the methods
// that read or write there promises that no other thread writes the same row meanwhile.
unsafe impl<R: UpdateRule, T: Float, K: UpdateKind> Sync for SharedRows<'_, R, T, K> {}

impl<'a, R: UpdateRule, T: Float, K: UpdateKind> RowUpdater<'a, R, T, K> {
    /// The rows for several threads, of a size that the compiler may know.
    ///
    /// # Panics
    ///
    /// If `row_size` is not that of the parameter.
    pub(crate) fn shared(&mut self, row_size: usize) -> SharedRows<'_, R, T, K> {
        let (cursor, catch_up) = self.split(row_size);
        let CatchUp { last, missed, .. } = catch_up;
        SharedRows { cursor, last, missed }
    }

    /// The weights alone. Nothing may write them while they are read.
    pub(crate) fn weights_to_read(&mut self) -> RowWeights<'_, T> {
        let row_size = self.row_size();
        self.cursor(row_size).weights()
    }

    /// The weights alone, for as long as the rows are lent.
    ///
    /// # Safety
    ///
    /// No row is written while it is read, by this or anything else.
    pub(crate) unsafe fn weights_meanwhile(&mut self) -> RowWeights<'a, T> {
        let places = self.memory.places(self.memory.row_size());
        RowWeights {
            first: places.weights_wrapping(0).cast_mut(),
            stride: places.stride,
            row_size: places.row_size,
            rows: PhantomData,
        }
    }

    /// The sums of gradients by rows, and the weights.
    pub(crate) fn sums_and_weights(&mut self) -> (&mut RowAccumulator, RowWeights<'_, T>) {
        // SAFETY: both are borrowed from this, so that nothing of it writes a row meanwhile.
        let weights = unsafe { self.weights_meanwhile() };
        (&mut *self.sums, weights)
    }

    /// Whether rows must be settled before they are read.
    pub(crate) fn settles(&self) -> bool {
        !K::PLAIN && self.catch_up.settles
    }

    /// Takes notice of rows that were settled for the first time, by [`SharedRows::settle_each`].
    ///
    /// # Panics
    ///
    /// If there is no such row.
    pub(crate) fn add_touched(&mut self, rows: &[usize]) {
        rows.iter().for_each(|row| self.catch_up.touched.add(*row));
    }
}

impl<'a, R: UpdateRule, T: Float, K: UpdateKind> SharedRows<'a, R, T, K> {
    /// The weights alone.
    pub(crate) fn weights(&self) -> RowWeights<'_, T> {
        self.cursor.weights()
    }

    /// The rows, of which the calling thread may update its own.
    pub(crate) fn cursor(&self) -> RowCursor<'_, R, T, K> {
        self.cursor
    }

    /// [`cursor`](Self::cursor), of rows of a size that the compiler may know.
    ///
    /// # Panics
    ///
    /// If `row_size` is not that of the parameter.
    #[inline(always)]
    pub(crate) fn cursor_of_size(&self, row_size: usize) -> RowCursor<'_, R, T, K> {
        assert_eq!(row_size, self.cursor.places.row_size, "the elements of a row");
        let mut cursor = self.cursor;
        cursor.places.row_size = row_size;
        cursor
    }

    /// Settles a row. If it is so for the first time in its life, it is added to `first`.
    ///
    /// # Safety
    ///
    /// The rows [settle](RowUpdater::settles), `row < n_rows`, and no other thread reads or writes
    /// it meanwhile.
    #[inline(always)]
    pub(crate) unsafe fn settle(&self, row: usize, first: &mut Vec<usize>) {
        if IdleOf::<R, T>::FORGETS {
            // SAFETY: promised by the caller.
            return unsafe { self.missed.settle_by_all(self.cursor, row) };
        }
        // SAFETY: where rows settle and the rule does not forget, `last` is of `n_rows` rows;
        // promised by the caller.
        let last = unsafe { self.last.at(row) };
        let before = std::mem::replace(last, self.missed.now);
        // SAFETY: as above.
        match unsafe { self.missed.settle(self.cursor, row, before) } {
            Gap::Short => {}
            Gap::None => *last = before,
            Gap::Long if before == 0 => first.push(row),
            Gap::Long => {}
        }
    }

    /// Asks for what [`settle`](Self::settle) reads of a row. Any will do.
    pub(crate) fn prefetch(&self, row: usize) {
        self.cursor.prefetch(row);
        self.last.prefetch(row);
    }

    /// Updates each row that was summed with its sum.
    ///
    /// # Safety
    ///
    /// The sums are of as many rows as the parameter has, of as many elements, and no other thread
    /// reads or writes those that were summed.
    pub(crate) unsafe fn update_summed(&self, sums: &RowAccumulator) {
        // SAFETY: promised by the caller.
        unsafe {
            self.cursor.update_rows(sums.row_size(), SumsOfRows::of_all(sums));
            self.mark_rows(sums.rows());
        }
    }

    /// Notes that some rows were updated in this step.
    ///
    /// # Safety
    ///
    /// Each is below `n_rows`, and no other thread reads or writes it meanwhile.
    pub(crate) unsafe fn mark_rows(&self, rows: &[usize]) {
        if !K::PLAIN && !self.last.is_empty() {
            // SAFETY: where not of none, `last` is of `n_rows` rows; promised by the caller.
            rows.iter().for_each(|row| unsafe { *self.last.at(*row) = self.missed.now + 1 });
        }
    }
}

impl<'a, R: UpdateRule, T: Float, K> RowCursor<'a, R, T, K> {
    /// The weights.
    pub(crate) fn weights(self) -> RowWeights<'a, T> {
        RowWeights {
            first: self.places.weights_wrapping(0).cast_mut(),
            stride: self.places.stride,
            row_size: self.places.row_size,
            rows: PhantomData,
        }
    }
}

/// Weights of rows, whatever the rule: loops over these are compiled once for all rules.
///
/// Invariant: from `first` on there are the weights of `n_rows` rows, `row_size` each, `stride`
/// bytes from row to row, borrowed for `'a`.
pub(crate) struct RowWeights<'a, T> {
    first: *mut u8,
    stride: usize,
    row_size: usize,
    rows: PhantomData<&'a mut [T]>,
}

impl<T> Clone for RowWeights<'_, T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for RowWeights<'_, T> {}

// SAFETY: as of `SharedRows`.
unsafe impl<T: Float> Sync for RowWeights<'_, T> {}

impl<'a, T: Float> RowWeights<'a, T> {
    /// Rows of values that lie one behind the other.
    pub(crate) fn of_values(values: &'a [T], row_size: usize) -> Self {
        RowWeights {
            first: values.as_ptr().cast_mut().cast(),
            stride: row_size * size_of::<T>(),
            row_size,
            rows: PhantomData,
        }
    }
}

impl<T: Float> RowWeights<'_, T> {
    #[inline(always)]
    fn at(self, row: usize) -> *mut T {
        self.first.wrapping_add(row.wrapping_mul(self.stride)).cast()
    }

    /// Where the first weight lies, and how many bytes there are from row to row.
    pub(crate) fn addresses(self) -> (*const T, usize) {
        (self.first.cast_const().cast(), self.stride)
    }

    /// The same, of a row size that the compiler may know.
    ///
    /// # Panics
    ///
    /// If `row_size` is not that of the parameter.
    #[inline(always)]
    pub(crate) fn of_size(self, row_size: usize) -> Self {
        assert_eq!(row_size, self.row_size, "the elements of a row");
        RowWeights { row_size, ..self }
    }

    /// Asks for the memory of some rows ahead of their use. Any will do.
    #[inline(always)]
    pub(crate) fn prefetch_each<I: ColumnId>(self, ids: &[I]) {
        ids.iter().for_each(|id| self.prefetch(id.at()));
    }

    /// Asks for the memory of a row ahead of its use. Any will do.
    #[inline(always)]
    pub(crate) fn prefetch(self, row: usize) {
        prefetch_row(self.at(row).cast(), self.row_size * size_of::<T>());
    }
}

impl<'a, T: Float> ReadRows<'a, T> for RowWeights<'a, T> {
    #[inline(always)]
    unsafe fn row(self, row: usize) -> &'a [T] {
        // SAFETY: promised by the caller; the invariant.
        unsafe { slice::from_raw_parts(self.at(row), self.row_size) }
    }

    #[inline(always)]
    unsafe fn value(self, row: usize, column: usize) -> T {
        // SAFETY: promised by the caller; the invariant.
        unsafe { *self.at(row).add(column) }
    }
}

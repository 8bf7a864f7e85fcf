//! Sums of entries that are found in vectors.

use super::{MOST_ROWS, RowAccumulator};
use nnz_arrays::kernels::column_entries::{ColumnEntries, Target, numbers_of, places_of};
use nnz_device::prefetch::prefetch_at;
use sparse_core::element::{Float, Stored};
use std::arch::x86_64::*;

impl RowAccumulator {
    /// Adds each entry to the sum of its column. O(entries + rows of data).
    ///
    /// # Panics
    ///
    /// If rows have other than one element.
    ///
    /// # Safety
    ///
    /// The columns are below `n_rows`.
    pub(crate) unsafe fn add_own<V: Stored, A: Float>(
        &mut self,
        own: &ColumnEntries<'_, '_, V, A>,
    ) {
        assert_eq!(self.row_size, 1, "sums of one element");
        let Some(any) = own.any_column() else { return };
        // What is masked is added to the first sum, so that there is to be one: 0, as a new one is.
        // SAFETY: promised by the caller.
        unsafe { self.row_mut_unchecked(any) };
        let mut nowhere = self.first;
        let mut target = Sums {
            slots: self.slots.as_mut_ptr(),
            rows: self.rows.as_mut_ptr(),
            values: self.values.as_mut_ptr(),
            first: self.first,
            len: self.rows.len(),
            room: 0,
            nowhere: &raw mut nowhere,
            sums: self,
        };
        // SAFETY: promised by the caller.
        unsafe { own.add_to::<_, false>(&mut target) };
    }
}

/// Sums that grow. Where they are is known here as well, in one place, so that the compiler keeps
/// it in registers.
struct Sums<'a> {
    slots: *mut u32,
    rows: *mut usize,
    values: *mut f64,
    /// That of the sums.
    first: u32,
    /// So many rows have been touched.
    len: usize,
    /// There is room for so many.
    room: usize,
    /// A number that stands for the first sum, and keeps doing so.
    nowhere: *mut u32,
    sums: &'a mut RowAccumulator,
}

impl Sums<'_> {
    /// Adds to the sum that a number stands for, of the row of an id; a new one if there is none.
    ///
    /// # Safety
    ///
    /// There is room for a row more.
    #[inline(always)]
    unsafe fn add_at(&mut self, number: *mut u32, id: u32, term: f64) {
        // SAFETY: as in `add_each`: what is beyond the last row means nothing, and a sum in use is
        // below `len`.
        unsafe {
            let slot = ((*number).wrapping_sub(self.first) as usize).min(self.len);
            *self.rows.add(self.len) = id as usize;
            *self.values.add(self.len) = 0.0;
            // Fits: `make_room` has seen to it.
            *number = self.first + slot as u32;
            self.len += usize::from(slot == self.len);
            *self.values.add(slot) += term;
        }
    }

    fn set_len(&mut self) {
        // SAFETY: so many rows were written, within the room that was made.
        unsafe {
            self.sums.rows.set_len(self.len);
            self.sums.values.set_len(self.len);
        }
    }

    #[cold]
    fn grow(&mut self, rows: usize) {
        self.set_len();
        self.sums.make_room(rows);
        (self.rows, self.values) = (self.sums.rows.as_mut_ptr(), self.sums.values.as_mut_ptr());
        self.room = self.sums.rows.capacity().min(self.sums.values.capacity()).min(MOST_ROWS);
    }
}

impl Target for Sums<'_> {
    const ASKS: bool = true;

    #[inline(always)]
    fn begin_row(&mut self, n_entries: usize) {
        // One more is written beyond the last.
        if self.len + n_entries + 1 > self.room {
            self.grow(n_entries + 1);
        }
    }

    #[inline(always)]
    fn ask(&self, id: u32) {
        prefetch_at(self.slots.wrapping_add(id as usize).cast_const());
    }

    #[inline]
    #[target_feature(enable = "avx512f,avx512vl")]
    unsafe fn ask_some(&self, ids: __m256i, own: u8) {
        let nowhere = _mm512_set1_epi64(self.nowhere as i64);
        for number in places_of(ids, own, self.slots, nowhere) {
            prefetch_at(number.cast_const());
        }
    }

    #[inline(always)]
    unsafe fn add(&mut self, id: u32, term: f64) {
        let number = self.slots.wrapping_add(id as usize);
        // SAFETY: promised by the caller; `begin_row` has made room.
        unsafe { self.add_at(number, id, term) };
    }

    #[inline]
    #[target_feature(enable = "avx512f,avx512vl")]
    unsafe fn add_some(&mut self, ids: __m256i, own: u8, terms: __m512d) {
        let nowhere = _mm512_set1_epi64(self.nowhere as i64);
        let numbers = places_of(ids, own, self.slots, nowhere);
        // A sum is never -0, as it begins at 0: to add 0 leaves it as it is.
        let terms = numbers_of(_mm512_maskz_mov_pd(own, terms));
        let mut all = [0; 8];
        // SAFETY: there are eight ids. Numbers are those of columns, or stand for the first sum;
        // `begin_row` has made room.
        unsafe {
            _mm256_storeu_epi32(all.as_mut_ptr().cast(), ids);
            for (number, (id, term)) in numbers.into_iter().zip(all.into_iter().zip(terms)) {
                self.add_at(number, id, term);
            }
        }
    }
}

impl Drop for Sums<'_> {
    fn drop(&mut self) {
        self.set_len();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use nnz_arrays::formats::Csr;
    use nnz_arrays::kernels::column_entries::are_added;

    #[test]
    fn sums_are_those_of_entries_one_by_one() {
        const N_COLS: usize = 120;
        let columns = |row: usize| (row * 7 % 50..N_COLS).step_by(1 + row % 4).take(row % 29);
        let entries = |row: usize| columns(row).map(move |column| (column, (row + column) as f32));
        let x = Csr::<f32>::from_rows(N_COLS, (0..60).map(entries)).unwrap();
        let factors: Vec<f32> = (0..60).map(|row| [0.1, -3.0, 0.0, -0.0][row % 4]).collect();
        let Some(all) = ColumnEntries::of(x.view(), &factors) else {
            assert!(!are_added(), "f32 and u32");
            return;
        };
        let [mut found, mut expected] = [(); 2].map(|()| RowAccumulator::new(N_COLS, 1));
        for columns in [0..60, 60..N_COLS, 30..90, 119..N_COLS, 0..0, 0..N_COLS] {
            for (row, factor) in factors.iter().enumerate() {
                for (column, value) in entries(row).filter(|(column, _)| columns.contains(column)) {
                    expected.row_mut(column)[0] += f64::from(value) * f64::from(*factor);
                }
            }
            // SAFETY: there are as many columns.
            unsafe { found.add_own(&all.in_columns(columns.clone())) };
            let sorted = |sums: &RowAccumulator| {
                let sums = sums.rows().iter().zip(sums.values());
                let mut sums: Vec<_> = sums.map(|(row, sum)| (*row, sum.to_bits())).collect();
                sums.sort_unstable();
                sums
            };
            assert_eq!(sorted(&found), sorted(&expected), "{columns:?}");
            found.clear();
            expected.clear();
        }
    }
}

//! The sums of one thread, for a parameter of one column: over its entries in their order, of any
//! sample.
//!
//! A thread has about half of a row's entries, or fewer, and how many is chance: a loop over those
//! of one row ends where the processor does not foresee it. So ids and terms are copied, whole
//! vectors at a time, one row's behind those of the one before, and summed in one loop over many
//! rows.

use super::super::range_of;
use crate::optimizer::{RowAccumulator, Slots, term};
use nnz_arrays::formats::{ColumnId, CsrView};
use nnz_arrays::with_column_ids;
use sparse_core::element::{Factor, Float};
use std::ops::Range;

/// Terms that are summed together: with their ids they are in the core's first cache.
const TOGETHER: usize = 1024;

/// Entries that are copied at once.
const WIDE: usize = 16;

/// Terms between asking for the slot of one and adding it. With 32 a batch takes longer, with 96 as
/// long.
const ASKED: usize = 64;

/// Sums the gradients of the rows of one thread, given its entries of the rows of data, in the
/// order of these, and a gradient for each row of data.
///
/// # Safety
///
/// The sums are for the columns of `own`, of one element, and so many have slots.
#[inline(never)]
pub(super) unsafe fn accumulate<T: Float, V: Factor<T>>(
    own: CsrView<'_, V>,
    sums: (&mut RowAccumulator, Slots<'_>),
    gradients: &[T::Accumulator],
) {
    with_column_ids!(own.columns(), |ids| {
        let mut waiting = Waiting::new(sums);
        for (row, gradient) in (0..own.n_rows()).zip(gradients) {
            let mut range = range_of(own, row);
            while !range.is_empty() {
                waiting.copy::<T, V>(ids, own.values(), &mut range, *gradient);
                if waiting.len == TOGETHER {
                    // SAFETY: promised by the caller.
                    unsafe { waiting.add(TOGETHER - ASKED) };
                }
            }
        }
        // SAFETY: as above.
        unsafe { waiting.add(waiting.len) };
    });
}

/// Terms that are to be added, and where.
struct Waiting<'s, I> {
    ids: [I; TOGETHER + WIDE],
    terms: [f64; TOGETHER + WIDE],
    len: usize,
    sums: &'s mut RowAccumulator,
    slots: Slots<'s>,
    are_far: bool,
}

impl<'s, I: ColumnId> Waiting<'s, I> {
    fn new((sums, slots): (&'s mut RowAccumulator, Slots<'s>)) -> Self {
        let (ids, terms) = ([I::from_index(0); TOGETHER + WIDE], [0.0; TOGETHER + WIDE]);
        Waiting { ids, terms, len: 0, sums, slots, are_far: slots.are_far() }
    }

    /// Copies entries of a row of data from the beginning of a range, for which there is room.
    #[inline(always)]
    fn copy<T: Float, V: Factor<T>>(
        &mut self,
        ids: &[I],
        values: &[V],
        range: &mut Range<usize>,
        gradient: T::Accumulator,
    ) {
        let count = range.len().min(TOGETHER - self.len);
        let (to_ids, to_terms) = (&mut self.ids[self.len..], &mut self.terms[self.len..]);
        let end = range.start + count.next_multiple_of(WIDE);
        match (ids.get(range.start..end), values.get(range.start..end)) {
            // What is beyond the row is overwritten by the next one, or never read.
            (Some(ids), Some(values)) => {
                let from = ids.as_chunks::<WIDE>().0.iter().zip(values.as_chunks::<WIDE>().0);
                let to_terms = to_terms.as_chunks_mut::<WIDE>().0;
                let to = to_ids.as_chunks_mut::<WIDE>().0.iter_mut().zip(to_terms);
                for ((to_ids, to_terms), (ids, values)) in to.zip(from) {
                    *to_ids = *ids;
                    *to_terms = values.map(|value| term::<T, V>(value, gradient));
                }
            }
            // At the end of the matrix.
            _ => {
                let from = ids[range.clone()].iter().zip(&values[range.clone()]);
                let to = to_ids.iter_mut().zip(to_terms).take(count);
                for ((to_id, to_term), (id, value)) in to.zip(from) {
                    (*to_id, *to_term) = (*id, term::<T, V>(*value, gradient));
                }
            }
        }
        self.len += count;
        range.start += count;
    }

    /// Adds the first of the terms, so many; the others wait.
    ///
    /// # Safety
    ///
    /// The sums are for as many rows as there are slots, of one element, and the ids are below
    /// their number.
    #[inline(always)]
    unsafe fn add(&mut self, count: usize) {
        let Waiting { ids, terms, len, sums, slots, are_far } = self;
        let entries = ids[..count].iter().zip(&terms[..count]).enumerate().map(
            #[inline(always)]
            |(place, (id, term))| {
                // One each time: of many at once most wait for each other.
                if let (true, Some(id)) = (*are_far, ids.get(place + ASKED)) {
                    slots.prefetch_each(&[*id]);
                }
                (*id, *term)
            },
        );
        // SAFETY: promised by the caller.
        unsafe { sums.add_each(*slots, entries, 1, |sums, term| sums[0] += term) };
        self.ids.copy_within(count..*len, 0);
        self.terms.copy_within(count..*len, 0);
        self.len -= count;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use nnz_arrays::formats::Csr;
    use sparse_core::element::Unit;

    /// Rows of these numbers of entries, in a matrix of so many columns.
    fn rows(counts: &[usize], n_cols: usize) -> Csr<f32> {
        let entries = counts.iter().enumerate().map(|(row, count)| {
            let first = row * 7 % (n_cols - count + 1);
            (0..*count).map(move |k| (first + k, (row + k % 5) as f32 - 3.0)).collect::<Vec<_>>()
        });
        Csr::from_rows(n_cols, entries).unwrap()
    }

    fn hold<V: Factor<f32>>(own: CsrView<'_, V>, gradients: &[f32]) {
        let mut sums = RowAccumulator::new(own.n_cols(), 1);
        let slots = sums.own_slots();
        // SAFETY: made for the columns.
        unsafe { accumulate::<f32, V>(own, (&mut sums, slots), gradients) };
        let mut expected = RowAccumulator::new(own.n_cols(), 1);
        for (row, gradient) in gradients.iter().enumerate() {
            let (ids, values) = own.row(row).unwrap();
            for (at, value) in values.iter().enumerate() {
                expected.row_mut(ids.get(at).unwrap())[0] += term::<f32, V>(*value, *gradient);
            }
        }
        assert_eq!(sums.rows(), expected.rows());
        assert_eq!(sums.values(), expected.values());
    }

    #[test]
    fn terms_are_added_in_the_order_of_the_rows() {
        let all: [&[usize]; 6] = [
            &[],
            &[0, 0, 3],
            &[16, 0, 1, 15, 17, 32],
            &[TOGETHER, 1, TOGETHER - 1],
            &[3, 3 * TOGETHER + 5, 0, 40],
            &[21; 300],
        ];
        for counts in all {
            let x = rows(counts, 4 * TOGETHER);
            let gradients: Vec<f32> = (0..counts.len()).map(|k| 0.1 * k as f32 - 1.0).collect();
            hold(x.view(), &gradients);
            let ones = counts.iter().map(|count| (0..*count).map(|k| (k, 1.0f32)));
            let ones = Csr::from_rows(4 * TOGETHER, ones).unwrap();
            hold::<Unit>(ones.view().units().unwrap(), &gradients);
            // A part of each row, as a thread has.
            let [starts, ends] = [0, 1].map(|at| {
                let bounds = x.view().starts().iter().zip(x.view().ends());
                bounds.map(move |(s, e)| s + (e - s) * (1 + at) / 3).collect::<Vec<u64>>()
            });
            hold(x.view().with_rows(&starts, &ends), &gradients);
        }
    }
}

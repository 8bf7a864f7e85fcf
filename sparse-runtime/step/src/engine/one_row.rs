//! Tables of which a sample names one row, by an id.
//!
//! A sample of a few ids takes some tens of nanoseconds, in which each question counts: what is
//! known of such a table is found once for a call, and the loop over samples has it in line.

use super::program::{Pool, Read, Refs};
use super::table_reads::{Place, TableFacts};
use crate::error::Result;
use crate::model::ModelError;
use crate::optimizer::{CatchUp, ReadRows as _, RowAccumulator, RowCursor, RowUpdater, UpdateKind};
use nnz_arrays::formats::{ColumnId as _, IdsView};
use nnz_optim::UpdateRule;
use sparse_core::element::Float;

/// A table of which a sample names one row.
pub(super) struct OneRow<'b, 'r, R: UpdateRule, T: Float, K> {
    /// The row of each sample.
    ids: &'b [u32],
    n_rows: usize,
    row_size: usize,
    /// The first of its numbers among those of a sample.
    numbers: usize,
    /// The first of their gradients, if there are any.
    gradients: Option<usize>,
    prefetches: bool,
    catches_up: bool,
    /// Each row that is read is updated before the next one.
    updated: bool,
    cursor: RowCursor<'r, R, T, K>,
    settling: CatchUp<'r, R, T>,
    sums: &'r mut RowAccumulator,
}

/// The ids, if the reads of a table are one, of one id a sample.
pub(super) fn ids_of<'b, T: Float>(reads: &[Read<'b, '_, T>]) -> Option<&'b [u32]> {
    match reads {
        [Read { refs: Refs::Ids(IdsView::U32(ids), 1), pool: Pool::Rows, .. }] => {
            Some(ids.values())
        }
        _ => None,
    }
}

impl<'b, 'r, R: UpdateRule, T: Float<Accumulator = T>, K: UpdateKind> OneRow<'b, 'r, R, T, K> {
    pub(super) fn new(
        ids: &'b [u32],
        has_gradient: bool,
        updated: bool,
        place: &Place,
        facts: TableFacts,
        rows: &'r mut RowUpdater<'_, R, T, K>,
    ) -> Self {
        // A row is read at once, so that a sample waits for each that is not in the first cache.
        const FIRST_CACHE: usize = 1 << 15;
        let prefetches = rows.bytes() > FIRST_CACHE;
        let (cursor, settling, sums) = rows.split_with_sums(facts.row_size);
        OneRow {
            ids,
            n_rows: facts.n_rows,
            row_size: facts.row_size,
            numbers: place.numbers,
            gradients: has_gradient.then_some(place.gradients),
            prefetches,
            catches_up: facts.catches_up,
            updated,
            cursor,
            settling,
            sums,
        }
    }

    /// Catches up the row that a sample names, and copies it. The row of sample `later` is
    /// prefetched.
    #[inline]
    pub(super) fn read(&mut self, sample: usize, later: usize, numbers: &mut [T]) -> Result<()> {
        let id = self.id(sample)?;
        if self.prefetches
            && let Some(later) = self.ids.get(later)
        {
            self.cursor.prefetch(later.at());
            self.settling.prefetch_each::<K, _>(&[*later]);
        }
        if self.catches_up {
            // SAFETY: `id` has compared it.
            unsafe { self.settling.settle(self.cursor, id, self.updated) };
        }
        let numbers = &mut numbers[self.numbers..][..self.row_size];
        // SAFETY: as above.
        unsafe {
            match numbers {
                [number] => *number = self.cursor.value(id, 0),
                numbers => copy(self.cursor.row(id), numbers),
            }
        }
        Ok(())
    }

    /// Updates the row that a sample names, and goes on to the next step.
    ///
    /// # Safety
    ///
    /// The sample was [read](Self::read).
    #[inline]
    pub(super) unsafe fn update(&mut self, sample: usize, gradients: &[T]) {
        let Some(first) = self.gradients else { return self.settling.advance::<K>() };
        let gradient = &gradients[first..][..self.row_size];
        let (cursor, id) = (self.cursor, self.ids[sample].at());
        // SAFETY: the sample was read, which has compared the id; a row has as many elements as its
        // gradient.
        unsafe {
            if let [gradient] = gradient {
                cursor.of_one_weight().update(id, 0, *gradient);
            } else if let Ok(gradient) = <[T; 16]>::try_from(gradient) {
                // A copy, to which no other pointer leads, so that the compiler makes vectors.
                update_row(cursor.of_size(16), id, &gradient);
            } else {
                update_row(cursor, id, gradient);
            }
        }
        self.settling.mark_unsettled::<K, _>(&[id as u64]);
        self.settling.advance::<K>();
    }

    /// Adds the gradient of the row that a sample names to its sum.
    ///
    /// # Safety
    ///
    /// The sample was [read](Self::read).
    #[inline]
    pub(super) unsafe fn add(&mut self, sample: usize, gradients: &[T]) {
        let Some(first) = self.gradients else { return };
        let gradient = &gradients[first..][..self.row_size];
        // SAFETY: the sample was read, which has compared the id.
        let sums = unsafe { self.sums.row_mut_unchecked(self.ids[sample].at()) };
        if let (Some(sums), Some(gradient), 16) =
            (sums.first_chunk_mut::<16>(), gradient.first_chunk::<16>(), self.row_size)
        {
            sums.iter_mut().zip(gradient).for_each(|(sum, gradient)| *sum += gradient.as_f64());
        } else {
            sums.iter_mut().zip(gradient).for_each(|(sum, gradient)| *sum += gradient.as_f64());
        }
    }

    /// The row that a sample names.
    #[inline(always)]
    fn id(&self, sample: usize) -> Result<usize> {
        #[cold]
        #[inline(never)]
        fn refusal(row: usize, id: usize, n_rows: usize) -> crate::Error {
            ModelError::Lookup { row, id, n_rows }.into()
        }
        let id = self.ids.get(sample).map_or(usize::MAX, |id| id.at());
        if id < self.n_rows { Ok(id) } else { Err(refusal(sample, id, self.n_rows)) }
    }
}

/// A copy of a row, in line.
#[inline(always)]
fn copy<T: Copy>(row: &[T], numbers: &mut [T]) {
    let ((rows, rest), (to, to_rest)) = (row.as_chunks::<8>(), numbers.as_chunks_mut::<8>());
    to.iter_mut().zip(rows).for_each(|(to, from)| *to = *from);
    to_rest.iter_mut().zip(rest).for_each(|(to, from)| *to = *from);
}

/// Updates one row.
///
/// # Safety
///
/// There is such a row, with as many elements as the gradient.
#[inline(always)]
unsafe fn update_row<R: UpdateRule, T: Float<Accumulator = T>, K: UpdateKind>(
    rows: RowCursor<'_, R, T, K>,
    row: usize,
    gradient: &[T],
) {
    // SAFETY: promised by the caller.
    unsafe {
        match rows.plain_factor() {
            Some(factor) => rows.add_row(row, gradient, |gradient| factor * gradient),
            None => rows.update_row_in_eights(row, gradient, |gradient, _| gradient),
        }
    }
}

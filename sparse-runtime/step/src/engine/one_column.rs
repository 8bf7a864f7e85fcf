//! Tables of one column, of which a sample names rows by the columns of a csr: linear models.
//!
//! What is known of such a table is found once for a call, and the loop over samples has it in
//! line: an entry takes a few nanoseconds.

use super::program::{Pool, Read, Refs};
use super::table_reads::{Place, TableFacts};
use crate::linear::{entries, prefetch_data, row_ahead_by, row_of, scatter, settled_product};
use crate::optimizer::{CatchUp, RowAccumulator, RowCursor, RowUpdater, Slots, UpdateKind};
use nnz_arrays::formats::{ColumnId as _, ColumnIdsView, CsrView};
use nnz_device::prefetch::LINES_AHEAD;
use nnz_device::simd::Fixed;
use nnz_optim::UpdateRule;
use sparse_core::element::{Factor, Float, Stored, Unit};

/// A table of one column, with the csr whose columns name its rows.
pub(super) struct OneColumn<'b, 'r, R: UpdateRule, T: Float, K> {
    entries: Entries<'b, T>,
    /// The place of its number among those of a sample.
    number: usize,
    /// The place of its gradient, if there is one.
    gradient: Option<usize>,
    prefetches_entries: bool,
    prefetches_rows: bool,
    /// Each row that is read is updated before the next one.
    updated: bool,
    cursor: RowCursor<'r, R, T, K>,
    settling: CatchUp<'r, R, T>,
    sums: &'r mut RowAccumulator,
    /// Where the sums of rows are found.
    slots: Option<Slots<'r>>,
    prefetches_slots: bool,
}

/// A csr, and its columns.
#[derive(Clone, Copy)]
pub(super) enum Entries<'b, T: Float> {
    /// With values.
    Each(CsrView<'b, T>, &'b [u32]),
    /// All values are 1.
    Ones(CsrView<'b, Unit>, &'b [u32]),
}

/// The entries, if the reads of a table with rows of this size are one product with a table of one
/// column.
pub(super) fn entries_of<'b, T: Float>(
    reads: &[Read<'b, '_, T>],
    row_size: usize,
) -> Option<Entries<'b, T>> {
    fn ids_of<'b, V: Stored>(csr: CsrView<'b, V>) -> Option<&'b [u32]> {
        match csr.columns() {
            ColumnIdsView::U32(ids) => Some(ids),
            ColumnIdsView::U64(_) => None,
        }
    }
    let [Read { refs, pool: Pool::Product, .. }] = reads else { return None };
    match refs {
        Refs::Csr(csr) if row_size == 1 => Some(Entries::Each(*csr, ids_of(*csr)?)),
        Refs::Units(csr) if row_size == 1 => Some(Entries::Ones(*csr, ids_of(*csr)?)),
        _ => None,
    }
}

impl<'b, 'r, R: UpdateRule, T: Float<Accumulator = T>, K: UpdateKind> OneColumn<'b, 'r, R, T, K> {
    /// The csr has as many columns as the table has rows.
    pub(super) fn new(
        entries: Entries<'b, T>,
        has_gradient: bool,
        updated: bool,
        place: &Place,
        facts: TableFacts,
        rows: &'r mut RowUpdater<'_, R, T, K>,
    ) -> Self {
        let beside = rows.slots();
        let (cursor, settling, sums) = rows.split_with_sums(1);
        let slots = (!updated).then(|| beside.unwrap_or_else(|| sums.own_slots()));
        OneColumn {
            entries,
            number: place.numbers,
            gradient: has_gradient.then_some(place.gradients),
            prefetches_entries: place.is_far,
            prefetches_rows: facts.is_large,
            updated,
            cursor,
            settling,
            sums,
            slots,
            prefetches_slots: beside.is_none() && slots.is_some_and(Slots::are_far),
        }
    }

    /// Catches up the rows that a sample names, and sums them, each times its value. Rows of a
    /// later sample are prefetched.
    #[inline(always)]
    pub(super) fn read(&mut self, sample: usize, numbers: &mut [T]) {
        let numbers = &mut numbers[self.number..=self.number];
        match self.entries {
            Entries::Each(csr, ids) => self.read_of(csr, ids, sample, numbers),
            Entries::Ones(csr, ids) => self.read_of(csr, ids, sample, numbers),
        }
    }

    #[inline(never)]
    fn read_of<V: Factor<T>>(
        &mut self,
        csr: CsrView<'b, V>,
        ids: &'b [u32],
        sample: usize,
        numbers: &mut [T],
    ) {
        if self.prefetches_entries {
            prefetch_data(csr, ids, sample);
        }
        let cursor = self.cursor.of_size(1);
        if self.prefetches_rows {
            // Of short rows a cache holds one sample more.
            let later = row_ahead_by(LINES_AHEAD + 1, csr, ids, sample);
            later.iter().for_each(|id| cursor.prefetch(id.at()));
            self.settling.prefetch_each::<K, _>(later);
            if let Some(slots) = self.slots.filter(|_| self.prefetches_slots) {
                slots.prefetch_each(later);
            }
        }
        let (ids, values) = row_of(csr, ids, sample);
        let (updated, width) = (self.updated, Fixed::<1>);
        // SAFETY: columns are below the rows, as many as which the csr has; rows have one element.
        unsafe {
            settled_product(ids, values, cursor, &mut self.settling, updated, width, numbers);
        }
    }

    /// Updates the rows that a sample names, and goes on to the next step.
    #[inline(always)]
    pub(super) fn update(&mut self, sample: usize, gradients: &mut [T]) {
        if let Some(place) = self.gradient {
            let gradient = &mut gradients[place..=place];
            match self.entries {
                Entries::Each(csr, ids) => self.update_by(csr, ids, sample, gradient),
                Entries::Ones(csr, ids) => self.update_by(csr, ids, sample, gradient),
            }
        }
        self.settling.advance::<K>();
    }

    #[inline(never)]
    fn update_by<V: Factor<T>>(
        &mut self,
        csr: CsrView<'b, V>,
        ids: &'b [u32],
        sample: usize,
        gradient: &mut [T],
    ) {
        let (ids, values) = row_of(csr, ids, sample);
        let cursor = self.cursor.of_size(1);
        // SAFETY: as above; a csr names each column of a row once.
        unsafe {
            match cursor.without_options() {
                Some(cursor) => scatter(ids, values, cursor, Fixed::<1>, gradient),
                None => scatter(ids, values, cursor, Fixed::<1>, gradient),
            }
        }
        self.settling.mark_unsettled::<K, _>(ids);
    }

    /// Adds the gradients of the rows that a sample names to their sums.
    #[inline(always)]
    pub(super) fn add(&mut self, sample: usize, gradients: &[T]) {
        let Some(place) = self.gradient else { return };
        let gradient = &gradients[place..=place];
        match self.entries {
            Entries::Each(csr, ids) => self.add_of(csr, ids, sample, gradient),
            Entries::Ones(csr, ids) => self.add_of(csr, ids, sample, gradient),
        }
    }

    #[inline(never)]
    fn add_of<V: Factor<T>>(
        &mut self,
        csr: CsrView<'b, V>,
        ids: &'b [u32],
        sample: usize,
        gradient: &[T],
    ) {
        let Some(slots) = self.slots else { return };
        let (ids, values) = row_of(csr, ids, sample);
        let Some(gradient) = gradient.first_chunk::<1>() else { return };
        // SAFETY: columns are below the rows, for which there are sums and slots.
        unsafe { self.sums.add_outer::<_, T, _>(slots, entries(ids, values), gradient) };
    }
}

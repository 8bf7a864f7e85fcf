//! The memory of a parameter: weights alone, or beside the states of an update rule.

mod aligned;
mod blocks;
mod runs_in_use;
mod states;
mod tenant;
mod zeros;

pub use zeros::Norms;

pub use aligned::Aligned;
pub use blocks::{Layout, StatesMut};
pub use runs_in_use::{RecordId, Recorder, Run};
pub use tenant::{Owner, Tenant};

use crate::in_library;
use blocks::Blocks;
use runs_in_use::RunsInUse;
use sparse_core::element::Element;
use std::fmt;
use std::sync::{Mutex, OnceLock, PoisonError};
use zeros::{are_zero, in_either, mapped_runs, rows_of_run};

/// All rows of a parameter, as weights alone or with the state of an update rule beside each row.
///
/// A fused training step reads a weight and writes its state a moment later: in one cache line that
/// is one miss, not two. A table therefore has two forms. *Values* are the weights, row major.
/// *Blocks* are rows of weights with the state of one updater beside them. The step uses blocks,
/// all other code uses values. The form that was written last counts, and the other is made from it
/// on request, in O(values), so no reader sees an old weight. Blocks have slots as well if a batch
/// requests them.
///
/// Unwritten memory is not mapped, in either form.
pub struct Table<T: Element> {
    n_rows: usize,
    row_size: usize,
    /// Set unless the blocks are newer.
    values: OnceLock<Aligned<T>>,
    /// The memory of `values` while the blocks are newer, so that alternating between the forms
    /// allocates nothing.
    spare: Mutex<Option<Aligned<T>>>,
    /// The last updater.
    blocks: Option<Blocks>,
    /// Other updaters that still exist: their states count, their weights do not.
    parked: Vec<Blocks>,
    /// Whether the weights in `blocks` are the newest: then `values` is unset or equal to them.
    blocks_count: bool,
    written: Written,
    runs_in_use: RunsInUse,
    /// The entries of batches that [requested slots](Self::slots_pay) since the form last changed
    /// for slots.
    entries: usize,
    /// Whether it ever changed.
    had_slots: bool,
    /// The token of this table and its copies.
    identity: Tenant,
}

/// The writers of a table that was zero.
#[derive(Clone, Debug)]
enum Written {
    /// None: there is nothing to copy.
    Nobody,
    /// One updater, and its copies, alone.
    By(Owner),
    /// Anybody.
    Freely,
}

impl<T: Element> Table<T> {
    /// Zeros, of which no page is mapped. O(1).
    ///
    /// # Panics
    ///
    /// If the table cannot be addressed or allocated, as `Vec` does.
    pub fn zeros(n_rows: usize, row_size: usize) -> Self {
        Table {
            n_rows,
            row_size,
            values: Aligned::new(T::default(), n_rows.saturating_mul(row_size)).into(),
            spare: Mutex::default(),
            blocks: None,
            parked: Vec::new(),
            blocks_count: false,
            written: Written::Nobody,
            runs_in_use: RunsInUse::of_zeros(),
            entries: 0,
            had_slots: false,
            identity: Tenant::default(),
        }
    }

    /// [`zeros`](Self::zeros) in pages of the usual size: for a table with few written rows that is
    /// soon dropped.
    ///
    /// # Panics
    ///
    /// As there.
    pub fn zeros_on_small_pages(n_rows: usize, row_size: usize) -> Self {
        let values = Aligned::on_small_pages(T::default(), n_rows.saturating_mul(row_size));
        Table { n_rows, values: values.into(), ..Table::zeros(0, row_size) }
    }

    /// The rows of a slice of values, row major; values after the last whole row are left out.
    /// O(values).
    ///
    /// # Panics
    ///
    /// If the table cannot be allocated, as `Vec` does.
    pub fn from_values(row_size: usize, values: &[T]) -> Self {
        let mut table = Table::zeros(values.len() / row_size.max(1), row_size);
        let len = table.len();
        table.values_mut().copy_from_slice(&values[..len]);
        table
    }

    /// A table of values, as many as `n_rows · row_size`.
    pub fn of_run(n_rows: usize, row_size: usize, values: Aligned<T>) -> Self {
        debug_assert_eq!(values.len(), n_rows * row_size);
        let mut table = Table::zeros(0, row_size);
        (table.n_rows, table.values, table.written) = (n_rows, values.into(), Written::Freely);
        table.runs_in_use = RunsInUse::unknown();
        table
    }

    /// The weights alone, in memory that clones share until one of them is written. States are left
    /// behind. O(1), after a step that wrote blocks O(values).
    pub fn take_shared(&mut self) -> Self {
        self.values();
        let values = self.values.take().unwrap_or_else(|| Aligned::new(T::default(), 0));
        let mut shared = Table::of_run(self.n_rows, self.row_size, values.into_shared());
        shared.identity = self.identity.clone();
        *self = shared.clone();
        shared
    }

    /// The number of rows.
    #[inline(always)]
    pub fn n_rows(&self) -> usize {
        self.n_rows
    }

    /// The elements of a row.
    #[inline(always)]
    pub fn row_size(&self) -> usize {
        self.row_size
    }

    /// The number of weights.
    #[inline(always)]
    pub fn len(&self) -> usize {
        self.n_rows * self.row_size
    }

    /// True of a table without weights.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The weights, row major. O(1), after a step that wrote blocks O(values).
    #[inline]
    pub fn values(&self) -> &[T] {
        self.newest()
    }

    #[inline(always)]
    fn newest(&self) -> &Aligned<T> {
        match self.values.get() {
            Some(values) => values,
            None => self.gathered(),
        }
    }

    #[cold]
    #[inline(never)]
    fn gathered(&self) -> &Aligned<T> {
        let table = self;
        in_library!(<T> Table::<T>::gather_once => (table: &Table<T>) -> &Aligned<T>)
    }

    fn gather_once(&self) -> &Aligned<T> {
        self.values.get_or_init(|| self.gather())
    }

    /// The weights, row major, for writing. Cost as for [`values`](Self::values).
    pub fn values_mut(&mut self) -> &mut [T] {
        if !matches!(self.written, Written::Freely) {
            self.written = Written::Freely;
        }
        self.runs_in_use.note_write(Recorder::NONE);
        self.newest_values()
    }

    /// [`values_mut`](Self::values_mut), for an updater to write, which adds the rows to a record.
    #[inline(always)]
    pub fn values_mut_by(&mut self, tenant: &Tenant, recorder: Recorder) -> &mut [T] {
        self.note_writer(tenant);
        self.runs_in_use.note_write(recorder);
        self.newest_values()
    }

    #[inline(always)]
    fn newest_values(&mut self) -> &mut [T] {
        self.values();
        self.blocks_count = false;
        self.values.get_mut().map_or(&mut [], |values| &mut values[..])
    }

    /// The token of this table and its copies.
    #[inline(always)]
    pub fn identity(&self) -> &Tenant {
        &self.identity
    }

    /// True if all rows are zero except those that this updater has written.
    pub fn is_zero_but_for(&self, tenant: &Tenant) -> bool {
        match &self.written {
            Written::Nobody => true,
            Written::By(writer) => writer.is(tenant),
            Written::Freely => false,
        }
    }

    /// Takes what a record has, as ascending runs: then norms cost what these rows do, until the
    /// next write. Nothing where rows were written that the record does not have. O(runs).
    pub fn set_recorded(&mut self, recorder: Recorder, recorded: impl Iterator<Item = Run>) {
        self.runs_in_use.set_recorded(recorder, self.n_rows, recorded);
    }

    /// The runs of rows that norms visit, if they are known: for tests of updaters.
    #[doc(hidden)]
    pub fn known_runs(&self) -> Option<&[Run]> {
        self.runs_in_use.known()
    }

    #[inline(always)]
    fn note_writer(&mut self, tenant: &Tenant) {
        match self.written {
            Written::Freely => {}
            Written::By(ref writer) if writer.is(tenant) => {}
            _ => self.note_new_writer(tenant),
        }
    }

    #[cold]
    #[inline(never)]
    fn note_new_writer(&mut self, tenant: &Tenant) {
        self.written = match self.written {
            Written::Nobody => Written::By(tenant.as_owner()),
            _ => Written::Freely,
        };
    }

    /// The weights of one row, in either form: O(row).
    ///
    /// # Panics
    ///
    /// If there is no such row.
    pub fn row(&self, row: usize) -> &[T] {
        assert!(row < self.n_rows, "row {row} of {}", self.n_rows);
        match (&self.blocks, self.values.get()) {
            (Some(blocks), None) => blocks.row(row, self.row_size),
            _ => &self.values()[row * self.row_size..(row + 1) * self.row_size],
        }
    }

    /// The weights from the blocks.
    #[cold]
    fn gather(&self) -> Aligned<T> {
        let spare = self.spare.lock().unwrap_or_else(PoisonError::into_inner).take();
        let is_new = spare.is_none();
        let mut values = spare.unwrap_or_else(|| Aligned::new(T::default(), self.len()));
        if let (Some(blocks), true) = (&self.blocks, self.row_size > 0) {
            let runs =
                in_either(blocks.mapped_runs(self.n_rows), mapped_runs(&values, self.row_size));
            for rows in runs.flatten().map(|run| rows_of_run(run, self.n_rows)) {
                let weights = rows.start * self.row_size..rows.end * self.row_size;
                // What nobody has written stays unmapped.
                if blocks.are_zero(rows.clone()) && (is_new || are_zero(&values[weights.clone()])) {
                    continue;
                }
                let weights = &mut values[weights];
                for (row, weights) in rows.zip(weights.chunks_exact_mut(self.row_size)) {
                    weights.copy_from_slice(blocks.row(row, self.row_size));
                }
            }
        }
        values
    }

    /// The rows as blocks with the tenant's states, `n_states` a row, zero at first, to be written
    /// by the tenant, which adds the rows to a record. O(1), after a change of form or tenant
    /// O(values).
    #[inline(always)]
    pub fn blocks<S: Copy>(
        &mut self,
        tenant: &Tenant,
        recorder: Recorder,
        n_states: usize,
    ) -> *mut u8 {
        self.turn_into_blocks::<S>(tenant, n_states);
        self.runs_in_use.note_write(recorder);
        self.blocks.as_mut().map_or(std::ptr::null_mut(), Blocks::as_mut_ptr)
    }

    /// Gives the rows the form of [`blocks`](Self::blocks), with the same weights. O(1), after a
    /// change of form or tenant O(values).
    #[inline(always)]
    pub fn turn_into_blocks<S: Copy>(&mut self, tenant: &Tenant, n_states: usize) {
        if !self.are_blocks_of(tenant, n_states, false) {
            self.make_blocks(Layout::of::<T, S>(self.row_size, n_states), tenant);
        }
    }

    /// The same with a slot a row, and the first of `count` slots that no row has, fewer than 2³¹.
    #[inline(always)]
    pub fn blocks_with_slots<S: Copy>(
        &mut self,
        tenant: &Tenant,
        recorder: Recorder,
        n_states: usize,
        count: u32,
    ) -> (*mut u8, u32) {
        if !self.are_blocks_of(tenant, n_states, true) {
            self.make_blocks(Layout::with_slots::<T, S>(self.row_size, n_states), tenant);
        }
        self.runs_in_use.note_write(recorder);
        let n_rows = self.n_rows;
        self.blocks.as_mut().map_or((std::ptr::null_mut(), 1), |blocks| {
            let first = blocks.take_slots(n_rows, count);
            (blocks.as_mut_ptr(), first)
        })
    }

    /// Whether the rows are blocks of this kind, with the newest weights.
    #[inline(always)]
    fn are_blocks_of(&self, tenant: &Tenant, n_states: usize, with_slots: bool) -> bool {
        let are_those = |blocks: &Blocks| {
            let Layout { n_states: states, slot, .. } = blocks.layout();
            blocks.belong_to(tenant) && states == n_states && slot.is_some() == with_slots
        };
        self.blocks_count
            && self.values.get().is_none()
            && self.blocks.as_ref().is_some_and(are_those)
    }

    /// Whether a tenant's blocks have slots, and the newest weights, so that they are there at
    /// once.
    #[inline(always)]
    pub fn has_newest_slots(&self, tenant: &Tenant) -> bool {
        let are_those =
            |blocks: &Blocks| blocks.belong_to(tenant) && blocks.layout().slot.is_some();
        self.blocks_count && self.blocks.as_ref().is_some_and(are_those)
    }

    /// Whether a tenant's blocks have slots.
    #[inline(always)]
    pub fn has_slots(&self, tenant: &Tenant) -> bool {
        self.blocks_of(tenant).is_some_and(|blocks| blocks.layout().slot.is_some())
    }

    /// Whether [slots](Self::blocks_with_slots) are there at once, for a batch of so many entries,
    /// or worth it: to change the form of a table is O(values), so that it is done once for as many
    /// entries as there are rows, and where it costs nothing, or not again. Then it allocates
    /// nothing, if not at the first batch.
    #[inline(always)]
    pub fn slots_pay<S: Copy>(&mut self, tenant: &Tenant, n_states: usize, entries: usize) -> bool {
        self.entries = self.entries.saturating_add(entries);
        self.has_newest_slots(tenant) || self.change_pays::<S>(tenant, n_states)
    }

    #[cold]
    #[inline(never)]
    fn change_pays<S: Copy>(&mut self, tenant: &Tenant, n_states: usize) -> bool {
        let pays = match (n_states, self.blocks_of(tenant)) {
            (0, _) if matches!(self.written, Written::Nobody) => true,
            // Without states there were none to be made: they are, and wait.
            (0, None) => {
                self.put_blocks(Layout::with_slots::<T, S>(self.row_size, 0), tenant);
                false
            }
            // They are made in any case.
            (1.., None) => true,
            (1.., Some(blocks)) if blocks.layout().slot.is_some() => true,
            (1.., Some(_)) => !self.had_slots,
            (0, Some(_)) => false,
        };
        let pays = pays || self.entries >= self.n_rows;
        if pays {
            self.entries = 0;
            self.had_slots = true;
        }
        pays
    }

    /// Puts a tenant's blocks in place, in whatever layout they are, new ones in this one: whether
    /// these are zeros that nobody has written. If they were not, their weights do not count.
    fn put_blocks(&mut self, layout: Layout, tenant: &Tenant) -> bool {
        let belong = |blocks: &Blocks| blocks.belong_to(tenant);
        if self.blocks.as_ref().is_some_and(belong) {
            return false;
        }
        self.values();
        self.blocks_count = false;
        self.parked.extend(self.blocks.take());
        self.parked.retain(Blocks::are_wanted);
        let known = self.parked.iter().position(belong);
        self.blocks = Some(match known {
            Some(position) => self.parked.swap_remove(position),
            None => Blocks::new(self.n_rows, layout, tenant),
        });
        known.is_none()
    }

    #[cold]
    #[inline(never)]
    fn make_blocks(&mut self, layout: Layout, tenant: &Tenant) {
        let is_new = self.put_blocks(layout, tenant);
        if let Some(blocks) = self.blocks.as_mut().filter(|blocks| blocks.layout() != layout) {
            *blocks = blocks.in_layout(self.n_rows, layout, tenant);
        }
        let values = self.values.take();
        let has_values = !matches!(self.written, Written::Nobody);
        if let (Some(values), Some(blocks), false) = (&values, &mut self.blocks, self.blocks_count)
            && self.row_size > 0
            && has_values
        {
            let runs =
                in_either(mapped_runs(values, self.row_size), blocks.mapped_runs(self.n_rows));
            for rows in runs.flatten().map(|run| rows_of_run(run, self.n_rows)) {
                let newest = &values[rows.start * self.row_size..rows.end * self.row_size];
                // As in `gather`: rows that are zero, and were, are not written.
                if are_zero(newest) && (is_new || blocks.are_zero(rows.clone())) {
                    continue;
                }
                for (row, newest) in rows.zip(newest.chunks_exact(self.row_size)) {
                    blocks.row_mut(row, self.row_size).copy_from_slice(newest);
                }
            }
        }
        if let Some(values) = values.filter(|_| has_values) {
            *self.spare.get_mut().unwrap_or_else(PoisonError::into_inner) = Some(values);
        }
        self.blocks_count = true;
        self.note_writer(tenant);
    }
}

impl<T: Element> Clone for Table<T> {
    fn clone(&self) -> Self {
        let table = self;
        in_library!(<T> Table::<T>::copied => (table: &Table<T>) -> Table<T>)
    }
}

impl<T: Element> Table<T> {
    fn copied(&self) -> Self {
        Table {
            n_rows: self.n_rows,
            row_size: self.row_size,
            values: self.values.clone(),
            spare: Mutex::default(),
            blocks: self.blocks.clone(),
            parked: self.parked.clone(),
            blocks_count: self.blocks_count,
            written: self.written.clone(),
            runs_in_use: self.runs_in_use.clone(),
            entries: self.entries,
            had_slots: self.had_slots,
            identity: self.identity.clone(),
        }
    }
}

/// The extents.
impl<T: Element> fmt::Debug for Table<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Table [{}, {}]", self.n_rows, self.row_size)
    }
}

#[cfg(test)]
mod tests;

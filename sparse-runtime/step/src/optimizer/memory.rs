//! The memory of weights and states of table rows during a step.

use super::accumulator::Slots;
use super::last_steps::LastSteps;
use super::update_kind::UpdateKind;
use nnz_arrays::parameter_memory::{Layout, Recorder, Table, Tenant};
use nnz_optim::StateBlock;
use sparse_core::element::{Element, Float};
use std::marker::PhantomData;

/// The weights that an [`Updater`](super::Updater) works on: the table of a model's parameter, or
/// any slice of as many values, row major.
///
/// A fused step may keep the rule's state in the table, beside the weights; from then on the
/// updater takes that parameter as a table only.
#[derive(Debug)]
pub enum Weights<'a, T: Element> {
    /// A slice.
    Values(&'a mut [T]),
    /// The memory of a parameter.
    Table(&'a mut Table<T>),
}

impl<T: Element> Weights<'_, T> {
    /// The number of weights.
    #[inline(always)]
    pub fn len(&self) -> usize {
        match self {
            Weights::Values(values) => values.len(),
            Weights::Table(table) => table.len(),
        }
    }

    /// True of a slice of the size of these rows, and of a table of their form.
    #[inline(always)]
    pub(super) fn are_rows(&self, n_rows: usize, row_size: usize) -> bool {
        match self {
            Weights::Values(values) => n_rows.checked_mul(row_size) == Some(values.len()),
            Weights::Table(table) => (table.n_rows(), table.row_size()) == (n_rows, row_size),
        }
    }

    /// True where there is none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The same for a shorter time.
    #[inline(always)]
    pub fn reborrow(&mut self) -> Weights<'_, T> {
        match self {
            Weights::Values(values) => Weights::Values(values),
            Weights::Table(table) => Weights::Table(table),
        }
    }
}

impl<'a, T: Element> From<&'a mut [T]> for Weights<'a, T> {
    #[inline(always)]
    fn from(values: &'a mut [T]) -> Self {
        Weights::Values(values)
    }
}

impl<'a, T: Element, const N: usize> From<&'a mut [T; N]> for Weights<'a, T> {
    fn from(values: &'a mut [T; N]) -> Self {
        Weights::Values(values)
    }
}

impl<'a, T: Element> From<&'a mut Vec<T>> for Weights<'a, T> {
    fn from(values: &'a mut Vec<T>) -> Self {
        Weights::Values(values)
    }
}

impl<'a, T: Element> From<&'a mut Table<T>> for Weights<'a, T> {
    #[inline(always)]
    fn from(table: &'a mut Table<T>) -> Self {
        Weights::Table(table)
    }
}

/// The rows, as `K` says: states beside the weights in blocks, or in an array of their own.
///
/// Invariants: [`IN_BLOCKS`](Self::IN_BLOCKS): `blocks` points to `n_rows` rows laid out as
/// [`layout(row_size)`](Self::layout) says, borrowed for `'a`, where `n_rows` is that of the handle
/// which holds this. Otherwise `values` has `n_rows · row_size` elements and `states` as many, one
/// for each row where they are of rows, or none.
#[derive(Debug)]
pub(super) struct Memory<'a, T, S, K> {
    values: &'a mut [T],
    states: &'a mut [S],
    blocks: *mut u8,
    /// The first slot that no row has, where rows have slots.
    first_slot: u32,
    row_size: usize,
    kind: PhantomData<K>,
}

/// The states of a row: one for each weight, or one for all.
#[inline(always)]
pub(super) const fn states_of_row<A, S: StateBlock<A>>(row_size: usize) -> usize {
    if S::BY_ROW { 1 } else { row_size }
}

/// How blocks lie of rows of a kind.
#[inline(always)]
const fn layout_of<T: Float, S: StateBlock<T::Accumulator>, K: UpdateKind>(
    row_size: usize,
) -> Layout {
    let n_states = states_of_row::<T::Accumulator, S>(row_size);
    match (K::BESIDE, K::SLOTS) {
        (true, true) => Layout::with_slots::<T, S>(row_size, n_states),
        (false, true) => Layout::with_slots::<T, S>(row_size, 0),
        _ => Layout::of::<T, S>(row_size, n_states),
    }
}

/// Whether a row of blocks has room for the step up to which it is settled.
pub(super) const fn has_last_beside<T: Float, S: StateBlock<T::Accumulator>>(
    row_size: usize,
) -> bool {
    Layout::of::<T, S>(row_size, states_of_row::<T::Accumulator, S>(row_size)).last.is_some()
}

impl<'a, T: Float, S: StateBlock<T::Accumulator>, K: UpdateKind> Memory<'a, T, S, K> {
    /// Whether weights are not one behind the other.
    const IN_BLOCKS: bool = K::BESIDE || K::SLOTS;

    /// Of weights that have as many rows as `states`, unless these are empty; `K::BESIDE` and
    /// `K::SLOTS` are for tables. Of the latter there are `n_slots`, fewer than 2³¹. Every row that
    /// is written is added to the record of `recorder`, if there is one.
    #[inline(always)]
    pub(super) fn of(
        weights: Weights<'a, T>,
        states: &'a mut [S],
        row_size: usize,
        (tenant, recorder): (&Tenant, Recorder),
        n_slots: u32,
    ) -> Self {
        match weights {
            Weights::Table(table) if K::SLOTS => {
                let n_states = Self::n_states(row_size);
                let blocks = table.blocks_with_slots::<S>(tenant, recorder, n_states, n_slots);
                Memory::in_blocks(blocks, row_size)
            }
            Weights::Table(table) if K::BESIDE => {
                let blocks = table.blocks::<S>(tenant, recorder, Self::n_states(row_size));
                Memory::in_blocks((blocks, 0), row_size)
            }
            // Nobody asks what was written by a rule that only adds.
            Weights::Table(table) if K::PLAIN => {
                Memory::apart(table.values_mut(), states, row_size)
            }
            Weights::Table(table) => {
                Memory::apart(table.values_mut_by(tenant, recorder), states, row_size)
            }
            Weights::Values(values) => Memory::apart(values, states, row_size),
        }
    }

    /// Weights and states apart; states may be empty.
    #[inline(always)]
    fn apart(values: &'a mut [T], states: &'a mut [S], row_size: usize) -> Self {
        debug_assert!(
            !Self::IN_BLOCKS && (S::BY_ROW || states.is_empty() || states.len() == values.len())
        );
        let (blocks, kind) = (std::ptr::null_mut(), PhantomData);
        Memory { values, states, blocks, first_slot: 0, row_size, kind }
    }

    /// Blocks of a table, borrowed as it is, and their first slot.
    #[inline(always)]
    fn in_blocks((blocks, first_slot): (*mut u8, u32), row_size: usize) -> Self {
        debug_assert!(Self::IN_BLOCKS);
        Memory { values: &mut [], states: &mut [], blocks, first_slot, row_size, kind: PhantomData }
    }

    /// In blocks none where the rule has none.
    #[inline(always)]
    const fn n_states(row_size: usize) -> usize {
        if Self::IN_BLOCKS && !K::BESIDE { 0 } else { states_of_row::<T::Accumulator, S>(row_size) }
    }

    #[inline(always)]
    const fn layout(row_size: usize) -> Layout {
        layout_of::<T, S, K>(row_size)
    }

    /// Where the slots lie, where rows have some.
    #[inline(always)]
    pub(super) fn slots(&self, n_rows: usize) -> Option<Slots<'a>> {
        // Rows of one weight are lent with slots, and of these the compiler knows how they lie.
        let Layout { slot: Some(slot), stride, .. } = Self::layout(1) else {
            return None;
        };
        if self.row_size != 1 {
            return None;
        }
        // SAFETY: the invariant: `n_rows` blocks, each of which has a slot there. Those of blocks
        // are below `first_slot`, as the table says.
        unsafe {
            Some(Slots::beside(self.blocks.wrapping_add(slot), stride, n_rows, self.first_slot))
        }
    }

    /// Where `last` steps of rows lie, which `apart` has unless they lie in the blocks.
    #[inline(always)]
    pub(super) fn last_steps(&mut self, apart: &'a mut [u32], n_rows: usize) -> LastSteps<'a> {
        match Self::layout(self.row_size) {
            Layout { last: Some(last), stride, .. } if K::BESIDE => {
                // SAFETY: the invariant; of rows without elements there is nothing, or nothing is
                // read.
                unsafe { LastSteps::beside(self.blocks.wrapping_add(last), stride, n_rows) }
            }
            _ => LastSteps::apart(apart),
        }
    }

    /// The [last steps](Self::last_steps), of rows of a size that the compiler may know: then it
    /// knows how far each lies from the row's weights.
    #[inline(always)]
    pub(super) fn known_last_steps<'l>(
        &self,
        row_size: usize,
        last: LastSteps<'l>,
    ) -> LastSteps<'l> {
        match Self::layout(row_size) {
            Layout { last: Some(offset), stride, .. } if K::BESIDE => {
                last.known_to_lie(self.blocks.wrapping_add(offset), stride)
            }
            _ => last.known_to_be_apart(size_of::<u32>()),
        }
    }

    #[inline(always)]
    pub(super) fn row_size(&self) -> usize {
        self.row_size
    }

    /// Where everything lies, of rows of `row_size` elements, which the caller has compared with
    /// [`row_size`](Self::row_size).
    #[inline(always)]
    pub(super) fn places(&mut self, row_size: usize) -> Places<T, S> {
        debug_assert_eq!(row_size, self.row_size);
        let of = PhantomData;
        if Self::IN_BLOCKS {
            let Layout { states, stride, .. } = Self::layout(row_size);
            let (first, first_state) = (self.blocks, self.blocks.wrapping_add(states));
            let (state_stride, has_states) = (stride, K::BESIDE);
            return Places { first, stride, first_state, state_stride, row_size, has_states, of };
        }
        Places {
            first: self.values.as_mut_ptr().cast(),
            stride: row_size * size_of::<T>(),
            first_state: self.states.as_mut_ptr().cast(),
            state_stride: Self::n_states(row_size) * size_of::<S>(),
            row_size,
            has_states: !self.states.is_empty(),
            of,
        }
    }

    /// Bytes from one row to the next.
    #[inline(always)]
    pub(super) fn stride(&self) -> usize {
        if Self::IN_BLOCKS {
            Self::layout(self.row_size).stride
        } else {
            self.row_size * size_of::<T>()
        }
    }

    /// The weights of a row.
    ///
    /// # Safety
    ///
    /// `row < n_rows`.
    #[inline(always)]
    pub(super) unsafe fn weights(&self, row: usize) -> &[T] {
        if Self::IN_BLOCKS {
            // SAFETY: the invariant; the caller promises the row.
            unsafe { std::slice::from_raw_parts(self.block(row).0.cast_const(), self.row_size) }
        } else {
            let start = row * self.row_size;
            // SAFETY: as above.
            unsafe { self.values.get_unchecked(start..start + self.row_size) }
        }
    }

    /// Weights and states of a row; no states where they are empty.
    ///
    /// # Safety
    ///
    /// `row < n_rows`.
    #[inline(always)]
    pub(super) unsafe fn parts(&mut self, row: usize) -> (&mut [T], &mut [S]) {
        if Self::IN_BLOCKS {
            // SAFETY: the invariant; the caller promises the row. Weights and states do not
            // overlap, and both are borrowed as `self` is.
            unsafe {
                let (weights, states) = self.block(row);
                (
                    std::slice::from_raw_parts_mut(weights, self.row_size),
                    std::slice::from_raw_parts_mut(states, Self::n_states(self.row_size)),
                )
            }
        } else {
            let range = |size: usize| row * size..(row + 1) * size;
            // SAFETY: as above.
            unsafe {
                let states = if self.states.is_empty() {
                    &mut [][..]
                } else {
                    self.states.get_unchecked_mut(range(Self::n_states(self.row_size)))
                };
                (self.values.get_unchecked_mut(range(self.row_size)), states)
            }
        }
    }

    /// Where weights and states of a row start.
    ///
    /// # Safety
    ///
    /// `row < n_rows`, and the rows are blocks.
    #[inline(always)]
    unsafe fn block(&self, row: usize) -> (*mut T, *mut S) {
        let layout = Self::layout(self.row_size);
        // SAFETY: the invariant.
        unsafe {
            let start = self.blocks.add(row * layout.stride);
            (start.cast(), start.add(layout.states).cast())
        }
    }
}

/// Addresses of weights and states.
///
/// Invariant, of those that [`Memory::places`] gives: for `row < n_rows`, `weights(row)` and, where
/// `has_states`, `states(row)` have `row_size` elements each, or the latter one where states are of
/// rows.
#[derive(Debug)]
pub(super) struct Places<T, S> {
    first: *mut u8,
    pub(super) stride: usize,
    first_state: *mut u8,
    pub(super) state_stride: usize,
    pub(super) row_size: usize,
    pub(super) has_states: bool,
    of: PhantomData<(T, S)>,
}

impl<T, S> Clone for Places<T, S> {
    #[inline(always)]
    fn clone(&self) -> Self {
        *self
    }
}

impl<T, S> Copy for Places<T, S> {}

impl<T: Float, S: StateBlock<T::Accumulator>> Places<T, S> {
    /// The same, of blocks for rows of `row_size` weights, so that the compiler knows how they lie
    /// if it knows that.
    #[inline(always)]
    pub(super) fn known_to_lie<K: UpdateKind>(self, row_size: usize) -> Self {
        let Layout { states, stride, .. } = layout_of::<T, S, K>(row_size);
        debug_assert_eq!(
            (row_size, stride, stride),
            (self.row_size, self.stride, self.state_stride)
        );
        let first_state = self.first.wrapping_add(states);
        debug_assert_eq!(first_state, self.first_state);
        Places { stride, first_state, state_stride: stride, row_size, has_states: true, ..self }
    }
}

impl<T, S> Places<T, S> {
    /// The weights of a row.
    ///
    /// # Safety
    ///
    /// `row < n_rows`.
    #[inline(always)]
    pub(super) unsafe fn weights(self, row: usize) -> *mut T {
        // SAFETY: inside the memory, which starts at a multiple of `T`'s alignment, as every stride
        // is one.
        unsafe { self.first.add(row * self.stride).cast() }
    }

    /// The same, of rows that are known to be `stride` bytes apart.
    #[cfg(target_arch = "x86_64")]
    #[inline(always)]
    pub(super) fn known_to_be_apart(self, stride: usize) -> Self {
        debug_assert_eq!(self.stride, stride);
        Places { stride, ..self }
    }

    /// The states of a row.
    ///
    /// # Safety
    ///
    /// `row < n_rows`, and `has_states`.
    #[inline(always)]
    pub(super) unsafe fn states(self, row: usize) -> *mut S {
        // SAFETY: as in `weights`.
        unsafe { self.first_state.add(row * self.state_stride).cast() }
    }

    /// Where the weights of a row would be, of any row.
    #[inline(always)]
    pub(super) fn weights_wrapping(self, row: usize) -> *const u8 {
        self.first.wrapping_add(row.wrapping_mul(self.stride))
    }

    /// Where the states of a row would be, of any row.
    #[inline(always)]
    pub(super) fn states_wrapping(self, row: usize) -> *const u8 {
        self.first_state.wrapping_add(row.wrapping_mul(self.state_stride))
    }
}

//! Where the weights and states of a parameter's rows lie during a step.

use super::rows::UpdateKind;
use crate::prefetch::prefetch_at;
use crate::table::{Layout, Table, Tenant};
use sparse_core::element::Element;
use std::marker::PhantomData;

/// The weights that an [`Updater`](super::Updater) works on: the table of a model's parameter, or any slice of as many
/// values, row major.
///
/// A fused step may keep the rule's state in the table, beside the weights; from then on the updater takes that parameter
/// as a table only.
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
/// Invariants: `K::BESIDE`: `blocks` points to `n_rows` rows laid out as [`Layout::of::<T, S>(row_size)`](Layout::of)
/// says, borrowed for `'a`, where `n_rows` is that of the handle which holds this. Otherwise `values` has `n_rows ·
/// row_size` elements and `states` as many or none.
#[derive(Debug)]
pub(super) struct Memory<'a, T, S, K> {
    values: &'a mut [T],
    states: &'a mut [S],
    blocks: *mut u8,
    row_size: usize,
    kind: PhantomData<K>,
}

impl<'a, T: Element, S: Copy + 'static, K: UpdateKind> Memory<'a, T, S, K> {
    /// Of weights that were found to be as many as `states`, unless these are empty; `K::BESIDE` is for tables.
    #[inline(always)]
    pub(super) fn of(
        weights: Weights<'a, T>,
        states: &'a mut [S],
        row_size: usize,
        tenant: &Tenant,
    ) -> Self {
        match weights {
            Weights::Table(table) if K::BESIDE => {
                Memory::beside(table.blocks::<S>(tenant), row_size)
            }
            Weights::Table(table) => Memory::apart(table.values_mut(), states, row_size),
            Weights::Values(values) => Memory::apart(values, states, row_size),
        }
    }

    /// Weights and states apart; states may be empty.
    #[inline(always)]
    fn apart(values: &'a mut [T], states: &'a mut [S], row_size: usize) -> Self {
        debug_assert!(!K::BESIDE && (states.is_empty() || states.len() == values.len()));
        Memory { values, states, blocks: std::ptr::null_mut(), row_size, kind: PhantomData }
    }

    /// Blocks of a table, borrowed as it is.
    #[inline(always)]
    fn beside(blocks: *mut u8, row_size: usize) -> Self {
        debug_assert!(K::BESIDE);
        Memory { values: &mut [], states: &mut [], blocks, row_size, kind: PhantomData }
    }

    #[inline(always)]
    pub(super) fn row_size(&self) -> usize {
        self.row_size
    }

    /// Bytes from one row to the next.
    #[inline(always)]
    pub(super) fn stride(&self) -> usize {
        match K::BESIDE {
            true => Layout::of::<T, S>(self.row_size).stride,
            false => self.row_size * size_of::<T>(),
        }
    }

    /// Tells the compiler the row size, which the caller has compared with the real one.
    #[inline(always)]
    pub(super) fn assume_row_size(&mut self, row_size: usize) {
        debug_assert_eq!(self.row_size, row_size);
        self.row_size = row_size;
    }

    /// The weights of a row.
    ///
    /// # Safety
    ///
    /// `row < n_rows`.
    #[inline(always)]
    pub(super) unsafe fn weights(&self, row: usize) -> &[T] {
        if K::BESIDE {
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
        if K::BESIDE {
            // SAFETY: the invariant; the caller promises the row. Weights and states do not overlap, and both are borrowed
            // as `self` is.
            unsafe {
                let (weights, states) = self.block(row);
                (
                    std::slice::from_raw_parts_mut(weights, self.row_size),
                    std::slice::from_raw_parts_mut(states, self.row_size),
                )
            }
        } else {
            let range = row * self.row_size..(row + 1) * self.row_size;
            // SAFETY: as above.
            unsafe {
                let states = match self.states.is_empty() {
                    true => &mut [][..],
                    false => self.states.get_unchecked_mut(range.clone()),
                };
                (self.values.get_unchecked_mut(range), states)
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
        let layout = Layout::of::<T, S>(self.row_size);
        // SAFETY: the invariant.
        unsafe {
            let start = self.blocks.add(row * layout.stride);
            (start.cast(), start.add(layout.states).cast())
        }
    }

    /// Asks for the first line of a row's weights and states. Any row will do.
    #[inline(always)]
    pub(super) fn prefetch(&self, row: usize) {
        if K::BESIDE {
            let stride = self.stride();
            let start = self.blocks.wrapping_add(row.wrapping_mul(stride));
            prefetch_at(start);
            if stride > 64 {
                prefetch_at(start.wrapping_add(Layout::of::<T, S>(self.row_size).states));
            }
        } else {
            let first = row.wrapping_mul(self.row_size);
            prefetch_at(self.values.as_ptr().wrapping_add(first));
            if !K::PLAIN && !self.states.is_empty() {
                prefetch_at(self.states.as_ptr().wrapping_add(first));
            }
        }
    }
}

//! The idle steps that rows have missed, made up for as each is read.

use super::cursor::RowCursor;
use super::rows::{IdleOf, UpdateKind};
use super::touched::TouchedRows;
use crate::formats::ColumnId;
use crate::prefetch::prefetch;
use sparse_core::element::Float;
use sparse_core::update_rules::{IdleHistory, IdleMap, UpdateRule};

/// Up to which step each row of a parameter is settled, during a step. By value, as [`RowCursor`] is: a loop keeps in registers what it
/// asks for every row.
///
/// Invariant: `last` is empty, or has an entry for each row of the parameter; the latter where `settles`, unless the maps
/// [forget](IdleMap::FORGETS).
#[derive(Debug)]
pub(crate) struct Settling<'a, R: UpdateRule, T: Float> {
    /// One a row, or empty where nobody asks. Exact: 0 for a row that no batch has touched, which is settled up to step
    /// `base`; else 1 more than the steps from there up to which the row is settled. Dense: 1 for a row updated in this step.
    pub(super) last: &'a mut [u32],
    /// Exact: the rows of which `last` is not 0.
    pub(super) touched: &'a mut TouchedRows,
    pub(super) history: &'a IdleHistory<IdleOf<R, T>>,
    /// The first powers of the newest run of equal maps, which begins `first` steps after `base`.
    pub(super) known: &'a [IdleOf<R, T>],
    pub(super) first: u32,
    /// The step that `last <= 1` stands for.
    pub(super) base: u64,
    /// What `last` is of a row that is settled up to this step.
    pub(super) now: u32,
    /// What `last` becomes when a row is updated.
    pub(super) mark: u32,
    /// Exact, and idle steps change rows.
    pub(super) settles: bool,
}

impl<R: UpdateRule, T: Float> Settling<'_, R, T> {
    /// The same for a shorter time.
    #[inline(always)]
    pub(super) fn reborrow(&mut self) -> Settling<'_, R, T> {
        Settling { last: &mut *self.last, touched: &mut *self.touched, ..*self }
    }

    /// Brings a row up to date and notes that it is, or that it is updated as well, if `updated`: of a row that is updated before
    /// anything else is asked of it.
    ///
    /// # Safety
    ///
    /// The row is one of the parameter's, over which `cursor` is.
    #[inline(always)]
    pub(super) unsafe fn settle<K: UpdateKind>(
        &mut self,
        cursor: RowCursor<'_, R, T, K>,
        row: usize,
        updated: bool,
    ) {
        if K::PLAIN || !self.settles {
            return;
        }
        let steps = self.now - 1;
        if IdleOf::<R, T>::FORGETS {
            let map = over(self.history, self.base, steps);
            // SAFETY: promised by the caller.
            return unsafe { cursor.idle(row, &map) };
        }
        let becomes = if updated { self.mark } else { self.now };
        // SAFETY: the invariant, and what the caller promises.
        let last = unsafe { self.last.get_unchecked_mut(row) };
        let before = *last;
        if before >= self.now {
            *last = before.max(becomes);
            return;
        }
        *last = becomes;
        if before == 0 {
            self.touched.add(row);
        }
        let settled = before.saturating_sub(1);
        let power = (steps.wrapping_sub(settled) as usize).wrapping_sub(1);
        match self.known.get(power).filter(|_| settled >= self.first) {
            // The map is used where it lies: a copy would be put together, and waited for.
            // SAFETY: promised by the caller.
            Some(map) => unsafe { cursor.idle(row, map) },
            None => {
                let map = over(self.history, self.base + u64::from(settled), steps - settled);
                // SAFETY: promised by the caller.
                unsafe { cursor.idle(row, &map) };
            }
        }
    }

    /// [`settle`](Self::settle) of some rows.
    ///
    /// # Safety
    ///
    /// As there.
    #[inline(always)]
    pub(crate) unsafe fn settle_each<K: UpdateKind, I: ColumnId>(
        &mut self,
        cursor: RowCursor<'_, R, T, K>,
        ids: &[I],
        updated: bool,
    ) {
        if !K::PLAIN && self.settles {
            for id in ids {
                // SAFETY: promised by the caller.
                unsafe { self.settle(cursor, id.at(), updated) };
            }
        }
    }

    /// Notes that a row was updated, where anybody asks.
    ///
    /// # Safety
    ///
    /// The row is one of the parameter's.
    #[inline(always)]
    pub(super) unsafe fn mark(&mut self, row: usize) {
        if !self.last.is_empty() {
            debug_assert!(row < self.last.len());
            // SAFETY: the invariant, and what the caller promises.
            unsafe { *self.last.get_unchecked_mut(row) = self.mark };
        }
    }

    /// [`mark`](Self::mark) of rows that were not settled as updated ones.
    ///
    /// # Safety
    ///
    /// As there.
    #[inline(always)]
    pub(crate) unsafe fn mark_unsettled<K: UpdateKind, I: ColumnId>(&mut self, ids: &[I]) {
        if !K::PLAIN && !self.settles && !self.last.is_empty() {
            for id in ids {
                // SAFETY: promised by the caller.
                unsafe { self.mark(id.at()) };
            }
        }
    }

    /// Asks for what is known of some rows, ahead of their use. Any will do: those outside are ignored.
    #[inline(always)]
    pub(crate) fn prefetch_each<K: UpdateKind, I: ColumnId>(&self, ids: &[I]) {
        if !K::PLAIN && !self.last.is_empty() {
            for id in ids {
                prefetch(self.last, id.at());
            }
        }
    }

    /// Goes on to the next of several steps that were begun together, by
    /// [`begin_steps`](super::Updater::begin_steps).
    #[inline(always)]
    pub(crate) fn advance<K: UpdateKind>(&mut self) {
        if !K::PLAIN && self.settles {
            self.now += 1;
            self.mark += 1;
        }
    }
}

/// The map of `steps` idle steps from step `from` on. What calls it keeps its own variables to itself, and so in registers.
#[inline(never)]
pub(super) fn over<M: IdleMap>(history: &IdleHistory<M>, from: u64, steps: u32) -> M {
    history.between(from, from + u64::from(steps))
}

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
    pub(super) missed: Missed<'a, IdleOf<R, T>>,
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
    pub(crate) unsafe fn settle<K: UpdateKind>(
        &mut self,
        cursor: RowCursor<'_, R, T, K>,
        row: usize,
        updated: bool,
    ) {
        if !self.settles::<K>() {
            return;
        }
        // SAFETY: promised by the caller.
        unsafe { self.settle_by(self.missed, cursor, row, updated) };
    }

    /// [`settle`](Self::settle) where rows settle, by maps that the caller may know more of.
    ///
    /// # Safety
    ///
    /// As there.
    #[inline(always)]
    unsafe fn settle_by<K: UpdateKind>(
        &mut self,
        missed: Missed<'_, IdleOf<R, T>>,
        cursor: RowCursor<'_, R, T, K>,
        row: usize,
        updated: bool,
    ) {
        if IdleOf::<R, T>::FORGETS {
            // SAFETY: promised by the caller.
            return missed.by_all(|map| unsafe { cursor.idle(row, map) });
        }
        // SAFETY: the invariant, and what the caller promises.
        let last = unsafe { self.last.get_unchecked_mut(row) };
        let before = *last;
        *last = missed.now + u32::from(updated);
        let is_short = missed.shortly(
            before,
            #[inline(always)]
            // SAFETY: promised by the caller.
            |map| unsafe { cursor.idle(row, map) },
        );
        if is_short {
            return;
        }
        if before >= missed.now {
            *last = before.max(*last);
            return;
        }
        if before == 0 {
            self.touched.add(row);
        }
        let map = missed.lately(before);
        // SAFETY: promised by the caller.
        unsafe { cursor.idle(row, &map) };
    }

    /// The same where rows are to be settled, so that the compiler knows it.
    #[inline(always)]
    pub(crate) fn known_to_settle(self) -> Option<Self> {
        self.settles.then_some(Settling { settles: true, ..self })
    }

    /// Whether rows are to be settled before they are read.
    #[inline(always)]
    pub(crate) fn settles<K: UpdateKind>(&self) -> bool {
        !K::PLAIN && self.settles
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
        if !self.settles::<K>() {
            return;
        }
        if let [id] = ids {
            // SAFETY: promised by the caller.
            return unsafe { self.settle(cursor, id.at(), updated) };
        }
        if IdleOf::<R, T>::HAS_SCALARS && !self.missed.scalars.is_empty() {
            // Asked once, and the loop is as short as it can be.
            let scalars = Missed { known: &[], ..self.missed };
            for id in ids {
                // SAFETY: promised by the caller.
                unsafe { self.settle_by(scalars, cursor, id.at(), updated) };
            }
            return;
        }
        let known = Missed { scalars: &[], ..self.missed };
        for id in ids {
            // SAFETY: promised by the caller.
            unsafe { self.settle_by(known, cursor, id.at(), updated) };
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
            unsafe { *self.last.get_unchecked_mut(row) = self.missed.now + 1 };
        }
    }

    /// [`mark`](Self::mark) of rows that were not settled as updated ones.
    ///
    /// # Panics
    ///
    /// If there is no such row.
    #[inline(always)]
    pub(crate) fn mark_unsettled<K: UpdateKind, I: ColumnId>(&mut self, ids: &[I]) {
        /// Only where each step touches every row anyway.
        #[cold]
        #[inline(never)]
        fn mark_each<I: ColumnId>(last: &mut [u32], mark: u32, ids: &[I]) {
            ids.iter().for_each(|id| last[id.at()] = mark);
        }
        if !K::PLAIN && !self.settles && !self.last.is_empty() {
            mark_each(self.last, self.missed.now + 1, ids);
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
        if !K::PLAIN {
            self.missed.now += 1;
        }
    }
}

/// The idle steps that rows have missed, and the maps of them.
#[derive(Clone, Copy, Debug)]
pub(super) struct Missed<'a, M> {
    history: &'a IdleHistory<M>,
    /// The first powers of the newest run of equal maps, which begins `first` steps after `base`.
    known: &'a [M],
    /// The same of [scalar](IdleMap::scalar) maps, and then more of them.
    scalars: &'a [[f64; 2]],
    /// These change nothing, as where a mean gradient is gathered.
    rests: bool,
    first: u32,
    /// The step that a `last` of 0 or 1 stands for.
    base: u64,
    /// What `last` is of a row that is settled up to this step; at least 1 where rows settle.
    pub(super) now: u32,
}

/// How many steps a row has missed.
pub(super) enum Gap {
    None,
    /// So few that their map is tabulated.
    Short,
    /// Any number. So is that of a row that was never settled.
    Long,
}

impl<'a, M: IdleMap> Missed<'a, M> {
    #[inline(always)]
    pub(super) fn new(history: &'a IdleHistory<M>, base: u64, now: u32) -> Self {
        let (start, known) = history.newest_powers().unwrap_or_default();
        let scalars = history.newest_scalars();
        let known = if scalars.is_empty() { known } else { &[] };
        let first = u32::try_from(start.saturating_sub(base)).unwrap_or(u32::MAX);
        let rests = scalars.first().is_some_and(|first| Some(*first) == M::IDENTITY.scalar());
        Missed { history, known, scalars, rests, first, base, now }
    }

    /// Calls `apply` with the map of the steps that a row has missed of which this is `last`, where it is tabulated.
    #[inline(always)]
    fn shortly(self, last: u32, apply: impl FnOnce(&M)) -> bool {
        // 1 less than the steps missed: no power where there are none.
        let power = (self.now - 1).wrapping_sub(last) as usize;
        if last <= self.first {
            return false;
        }
        // The map is used where it lies: a copy would be put together, and waited for.
        if let Some(map) = self.known.get(power) {
            apply(map);
            return true;
        }
        if M::HAS_SCALARS
            && let Some(scalar) = self.scalars.get(power)
        {
            if !self.rests {
                apply(&M::of_scalar(*scalar));
            }
            return true;
        }
        false
    }

    /// Calls `apply` with the map of the steps that a row has missed of which this is `last`, unless it has missed none.
    #[inline(always)]
    pub(super) fn since(self, last: u32, mut apply: impl FnMut(&M)) -> Gap {
        if self.shortly(last, &mut apply) {
            return Gap::Short;
        }
        if last >= self.now {
            return Gap::None;
        }
        apply(&self.lately(last));
        Gap::Long
    }

    /// The map of the steps that a row has missed of which this is `last`, one of them at least.
    #[inline(always)]
    fn lately(self, last: u32) -> M {
        let settled = last.saturating_sub(1);
        self.over(settled, self.now - 1 - settled)
    }

    /// Calls `apply` with the map of all steps, of maps that [forget](IdleMap::FORGETS).
    #[inline(always)]
    pub(super) fn by_all(self, apply: impl FnOnce(&M)) {
        apply(&self.over(0, self.now - 1));
    }

    /// The map of `steps` idle steps, `settled` steps after `base`.
    #[inline(always)]
    fn over(self, settled: u32, steps: u32) -> M {
        /// What calls it keeps its own variables to itself, and so in registers.
        #[inline(never)]
        fn between<M: IdleMap>(history: &IdleHistory<M>, from: u64, steps: u32) -> M {
            history.between(from, from + u64::from(steps))
        }
        between(self.history, self.base + u64::from(settled), steps)
    }
}

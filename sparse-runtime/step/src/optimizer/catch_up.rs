//! Catch-up of table rows as a step reads them: the idle steps that each has missed.

use super::cursor::{ReadRows, RowCursor};
use super::last_steps::LastSteps;
use super::memory::has_last_beside;
use super::missed::{Gap, Missed};
use super::touched::TouchedRows;
use super::update_kind::{IdleOf, StateOf, UpdateKind};
use nnz_arrays::formats::ColumnId;
use nnz_optim::{IdleMap, UpdateRule};
use sparse_core::element::Float;

/// The catch-up of the table rows of a parameter during a step: the last step of each row, and the
/// maps of the steps since. By value, as [`RowCursor`] is, so that a loop keeps it in registers.
///
/// Invariant: `last` is of no row, or of each row of the parameter; the latter where `settles`,
/// unless the maps [forget](IdleMap::FORGETS).
#[derive(Debug)]
pub(crate) struct CatchUp<'a, R: UpdateRule, T: Float> {
    /// Those of each row, or of none where nobody asks. Exact: 0 for a row that no batch has
    /// touched, which is settled up to step `base`; else 1 more than the steps from there up to
    /// which the row is settled. Dense: 1 for a row updated in this step.
    pub(super) last: LastSteps<'a>,
    /// Exact: the rows of which `last` is not 0.
    pub(super) touched: &'a mut TouchedRows,
    pub(super) missed: Missed<'a, R, T>,
    /// Exact, and idle steps change rows.
    pub(super) settles: bool,
}

impl<'a, R: UpdateRule, T: Float> CatchUp<'a, R, T> {
    /// Whether idle steps of the rule are two numbers, by which weights can be settled.
    pub(crate) const HAS_SCALARS: bool = IdleOf::<R, T>::HAS_SCALARS;

    /// The same for a shorter time.
    #[inline(always)]
    pub(super) fn reborrow(&mut self) -> CatchUp<'_, R, T> {
        CatchUp { touched: &mut *self.touched, ..*self }
    }

    /// Brings a row up to date and notes that it is, or that it is updated as well, if `updated`:
    /// of a row that is updated before anything else is asked of it.
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
        if IdleOf::<R, T>::HAS_RUNS {
            // SAFETY: promised by the caller.
            return unsafe { self.settle_apart(cursor, row, updated) };
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
        missed: Missed<'_, R, T>,
        cursor: RowCursor<'_, R, T, K>,
        row: usize,
        updated: bool,
    ) {
        if IdleOf::<R, T>::FORGETS {
            // SAFETY: promised by the caller.
            return unsafe { missed.settle_by_all(cursor, row) };
        }
        // SAFETY: the invariant, and what the caller promises.
        let last = unsafe { self.last.at(row) };
        let before = *last;
        *last = missed.now + u32::from(updated);
        // SAFETY: promised by the caller.
        match unsafe { missed.settle(cursor, row, before) } {
            Gap::None => *last = before.max(*last),
            Gap::Long if before == 0 => self.touched.add(row),
            Gap::Short | Gap::Long => {}
        }
    }

    /// Whether rows are settled, each of its weights by two numbers: then
    /// [`settled_weight`](Self::settled_weight) may be asked for.
    #[inline(always)]
    pub(crate) fn settles_by_scalars<K: UpdateKind>(&self) -> bool {
        Self::HAS_SCALARS && self.settles::<K>() && !self.missed.scalars.is_empty()
    }

    /// [`settle`](Self::settle) of a row of one weight, which is given; `None`, and nothing done,
    /// of a row that is settled for the first time, or has missed steps of which no map is
    /// tabulated: these are to be settled the other way. Nothing is handed on to functions that are
    /// not inlined, so that a loop keeps all of it in registers. `scalars` are
    /// [those of this step](Self::scalars).
    ///
    /// # Safety
    ///
    /// As there, and rows [settle by scalars](Self::settles_by_scalars).
    #[inline(always)]
    pub(crate) unsafe fn settled_weight<K: UpdateKind>(
        &mut self,
        scalars: &[[T::Accumulator; 2]],
        cursor: RowCursor<'_, R, T, K>,
        row: usize,
        updated: bool,
    ) -> Option<T> {
        if self.missed.all_rest() {
            // SAFETY: promised by the caller.
            let was_touched = unsafe { self.was_touched::<K>(row) };
            // SAFETY: as above.
            return was_touched.then(|| unsafe { cursor.value(row, 0) });
        }
        // SAFETY: the invariant, and what the caller promises.
        let last = unsafe { self.last.at(row) };
        let scalar = *scalars.get(self.missed.now.wrapping_sub(*last) as usize)?;
        if self.missed.rests {
            // SAFETY: promised by the caller.
            return Some(unsafe { cursor.value(row, 0) });
        }
        *last = self.missed.now + u32::from(updated);
        // SAFETY: promised by the caller.
        Some(unsafe { cursor.idle_weight(row, 0, scalar) })
    }

    /// [Settles](Self::settle) a row of one weight, which is given, and makes the first part of an
    /// update of it, which [follows](RowCursor::follow). `scalars` are
    /// [those of this step](Self::scalars).
    ///
    /// # Safety
    ///
    /// As [`settle`](Self::settle); rows [settle by scalars](Self::settles_by_scalars), and have a
    /// [first part](RowCursor::HAS_TWO_PARTS).
    #[inline(always)]
    pub(crate) unsafe fn begin_weight<K: UpdateKind>(
        &mut self,
        scalars: &[[T::Accumulator; 2]],
        cursor: RowCursor<'_, R, T, K>,
        row: usize,
    ) -> T {
        // SAFETY: the invariant, and what the caller promises.
        let last = unsafe { self.last.at(row) };
        let scalar = match scalars.get(self.missed.now.wrapping_sub(*last) as usize) {
            Some(scalar) => {
                *last = self.missed.now + 1;
                Some(*scalar)
            }
            None => {
                // SAFETY: promised by the caller.
                unsafe { self.reborrow().settle_updated(cursor, row) };
                None
            }
        };
        // SAFETY: promised by the caller.
        unsafe { cursor.begin_weight(row, scalar) }
    }

    /// Whether every row of the data that gradients are gathered over was touched before.
    #[inline(always)]
    pub(crate) fn knows_rows(&self) -> bool {
        self.touched.has_all()
    }

    /// Notes of each of some rows that it is updated for the first time, if it is: all that there
    /// is to do where rows [rest](Self::known_to_rest), and nothing where they are
    /// [known](Self::knows_rows).
    ///
    /// # Safety
    ///
    /// As [`settle`](Self::settle), of rows of one weight.
    #[inline(never)]
    pub(crate) unsafe fn note_each<K: UpdateKind, I: ColumnId>(
        &mut self,
        cursor: RowCursor<'_, R, T, K>,
        ids: &[I],
    ) {
        for id in ids {
            // SAFETY: promised by the caller.
            if !unsafe { self.was_touched::<K>(id.at()) } {
                // SAFETY: as above.
                unsafe { self.reborrow().settle_updated(cursor, id.at()) };
            }
        }
    }

    /// Whether a row of one weight was ever settled. What is known of rows is not read where it
    /// would take a line of the cache for each.
    ///
    /// # Safety
    ///
    /// As [`settle`](Self::settle).
    #[inline(always)]
    unsafe fn was_touched<K: UpdateKind>(&self, row: usize) -> bool {
        if K::BESIDE && has_last_beside::<T, StateOf<R, T>>(1) {
            // SAFETY: the invariant, and what the caller promises; rows have one weight.
            unsafe { *self.last.at(row) != 0 }
        } else {
            self.touched.contains(row)
        }
    }

    /// [`settle`](Self::settle) of a row that is updated as well, by value: what a loop keeps in
    /// registers is not put down for it.
    ///
    /// # Safety
    ///
    /// As there, of rows that settle.
    #[cold]
    #[inline(never)]
    unsafe fn settle_updated<K: UpdateKind>(mut self, cursor: RowCursor<'_, R, T, K>, row: usize) {
        // SAFETY: promised by the caller.
        unsafe { self.settle_by(self.missed, cursor, row, true) };
    }

    /// [`settle`](Self::settle), out of the way of a loop that seldom has to.
    ///
    /// # Safety
    ///
    /// As there, of rows that settle.
    #[inline(never)]
    pub(super) unsafe fn settle_apart<K: UpdateKind>(
        &mut self,
        cursor: RowCursor<'_, R, T, K>,
        row: usize,
        updated: bool,
    ) {
        // SAFETY: promised by the caller.
        unsafe { self.settle_by(self.missed, cursor, row, updated) };
    }

    /// What [`settled_weight`](Self::settled_weight) asks in this step.
    #[inline(always)]
    pub(crate) fn scalars(&self) -> &'a [[T::Accumulator; 2]] {
        self.missed.scalars_now()
    }

    /// The same where rows are to be settled, so that the compiler knows it, and by the usual maps
    /// of the type: not by scalars where these are the exception.
    #[inline(always)]
    pub(crate) fn known_to_settle(self) -> Option<Self> {
        if !self.settles {
            return None;
        }
        if IdleOf::<R, T>::MOSTLY_SCALARS {
            let missed = self.missed.without_rest()?;
            return Some(CatchUp { missed, settles: true, ..self });
        }
        let missed = self.missed.without_scalars()?;
        Some(CatchUp { missed, settles: true, ..self })
    }

    /// The same where no row has anything to make up for, so that the compiler knows it, and rows
    /// are only to be noted when they are first touched.
    #[inline(always)]
    pub(crate) fn known_to_rest(self) -> Option<Self> {
        if !self.settles || !self.missed.all_rest() {
            return None;
        }
        let missed = self.missed.known_to_rest();
        Some(CatchUp { missed, settles: true, ..self })
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
        if IdleOf::<R, T>::HAS_RUNS {
            // SAFETY: promised by the caller.
            return unsafe { self.reborrow().settle_each_apart(cursor, ids, updated) };
        }
        if let [id] = ids {
            // SAFETY: promised by the caller.
            return unsafe { self.settle(cursor, id.at(), updated) };
        }
        if IdleOf::<R, T>::HAS_SCALARS && !self.missed.scalars.is_empty() {
            // Asked once, and the loop is as short as it can be.
            let scalars = self.missed.by_scalars();
            for id in ids {
                // SAFETY: promised by the caller.
                unsafe { self.settle_by(scalars, cursor, id.at(), updated) };
            }
            return;
        }
        let known = self.missed.by_maps();
        for id in ids {
            // SAFETY: promised by the caller.
            unsafe { self.settle_by(known, cursor, id.at(), updated) };
        }
    }

    /// [`settle_each`](Self::settle_each) by [runs](IdleMap::run), by value and not in line: a loop
    /// whose rows miss nothing keeps its registers and its vectors.
    ///
    /// # Safety
    ///
    /// As there, of rows that settle.
    #[inline(never)]
    unsafe fn settle_each_apart<K: UpdateKind, I: ColumnId>(
        mut self,
        cursor: RowCursor<'_, R, T, K>,
        ids: &[I],
        updated: bool,
    ) {
        #[cfg(target_arch = "x86_64")]
        // SAFETY: promised by the caller.
        let done = unsafe { self.settle_by_avx512(cursor, ids, updated) };
        #[cfg(not(target_arch = "x86_64"))]
        let done = 0;
        for id in &ids[done..] {
            // SAFETY: promised by the caller.
            unsafe { self.settle_by(self.missed, cursor, id.at(), updated) };
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
            // SAFETY: the invariant, and what the caller promises.
            unsafe { *self.last.at(row) = self.missed.now + 1 };
        }
    }

    /// [`mark`](Self::mark) of rows that were not settled as updated ones.
    #[inline(always)]
    pub(crate) fn mark_unsettled<K: UpdateKind, I: ColumnId>(&mut self, ids: &[I]) {
        /// Only where each step touches every row anyway.
        #[cold]
        #[inline(never)]
        fn mark_each<I: ColumnId>(mut last: LastSteps<'_>, mark: u32, ids: &[I]) {
            for id in ids {
                if let Some(last) = last.get_mut(id.at()) {
                    *last = mark;
                }
            }
        }
        if !K::PLAIN && !self.settles && !self.last.is_empty() {
            mark_each(self.last, self.missed.now + 1, ids);
        }
    }

    /// Asks for what is known of some rows, ahead of their use. Any will do: those outside are
    /// ignored.
    #[inline(always)]
    pub(crate) fn prefetch_each<K: UpdateKind, I: ColumnId>(&self, ids: &[I]) {
        if !K::PLAIN && !self.last.is_empty() && !self.missed.all_rest() {
            ids.iter().for_each(|id| self.last.prefetch(id.at()));
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

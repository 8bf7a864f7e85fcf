//! The idle steps that rows have missed, made up for as each is read.

use super::cursor::{ReadRows, RowCursor};
use super::last_steps::LastSteps;
use super::memory::has_last_beside;
use super::rows::{HistoryOf, IdleOf, StateOf, StepOf, UpdateKind};
use super::touched::TouchedRows;
use crate::formats::ColumnId;
use sparse_core::element::Float;
use sparse_core::update_rules::{IdleHistory, IdleMap, MeanRun, Runs, Step, UpdateRule};

/// Up to which step each row of a parameter is settled, during a step. By value, as [`RowCursor`] is: a loop keeps in registers what it
/// asks for every row.
///
/// Invariant: `last` is of no row, or of each row of the parameter; the latter where `settles`, unless the maps
/// [forget](IdleMap::FORGETS).
#[derive(Debug)]
pub(crate) struct Settling<'a, R: UpdateRule, T: Float> {
    /// Those of each row, or of none where nobody asks. Exact: 0 for a row that no batch has touched, which is settled up to step
    /// `base`; else 1 more than the steps from there up to which the row is settled. Dense: 1 for a row updated in this step.
    pub(super) last: LastSteps<'a>,
    /// Exact: the rows of which `last` is not 0.
    pub(super) touched: &'a mut TouchedRows,
    pub(super) missed: Missed<'a, R, T>,
    /// Exact, and idle steps change rows.
    pub(super) settles: bool,
}

impl<'a, R: UpdateRule, T: Float> Settling<'a, R, T> {
    /// Whether idle steps of the rule are two numbers, by which weights can be settled.
    pub(crate) const HAS_SCALARS: bool = IdleOf::<R, T>::HAS_SCALARS;

    /// The same for a shorter time.
    #[inline(always)]
    pub(super) fn reborrow(&mut self) -> Settling<'_, R, T> {
        Settling { touched: &mut *self.touched, ..*self }
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

    /// Whether rows are settled, each of its weights by two numbers: then [`settled_weight`](Self::settled_weight) may be asked for.
    #[inline(always)]
    pub(crate) fn settles_by_scalars<K: UpdateKind>(&self) -> bool {
        Self::HAS_SCALARS && self.settles::<K>() && !self.missed.scalars.is_empty()
    }

    /// [`settle`](Self::settle) of a row of one weight, which is given; `None`, and nothing done, of a row that is settled for the first time, or
    /// has missed steps of which no map is tabulated: these are to be settled the other way. Nothing is handed on to functions that are not
    /// inlined, so that a loop keeps all of it in registers. `scalars` are [those of this step](Self::scalars).
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

    /// [Settles](Self::settle) a row of one weight, which is given, and makes the first part of an update of it, which
    /// [follows](RowCursor::follow). `scalars` are [those of this step](Self::scalars).
    ///
    /// # Safety
    ///
    /// As [`settle`](Self::settle); rows [settle by scalars](Self::settles_by_scalars), and have a [first part](RowCursor::HAS_TWO_PARTS).
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

    /// Notes of each of some rows that it is updated for the first time, if it is: all that there is to do where rows
    /// [rest](Self::known_to_rest), and nothing where they are [known](Self::knows_rows).
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

    /// Whether a row of one weight was ever settled. What is known of rows is not read where it would take a line of the cache for each.
    ///
    /// # Safety
    ///
    /// As [`settle`](Self::settle).
    #[inline(always)]
    unsafe fn was_touched<K: UpdateKind>(&self, row: usize) -> bool {
        match K::BESIDE && has_last_beside::<T, StateOf<R, T>>(1) {
            // SAFETY: the invariant, and what the caller promises; rows have one weight.
            true => unsafe { *self.last.at(row) != 0 },
            false => self.touched.contains(row),
        }
    }

    /// [`settle`](Self::settle) of a row that is updated as well, by value: what a loop keeps in registers is not put down for it.
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

    /// The same where rows are to be settled, so that the compiler knows it, and by the usual maps of the type: not by scalars where these are the
    /// exception.
    #[inline(always)]
    pub(crate) fn known_to_settle(self) -> Option<Self> {
        if !self.settles {
            return None;
        }
        if IdleOf::<R, T>::MOSTLY_SCALARS {
            let missed = self.missed.without_rest()?;
            return Some(Settling { missed, settles: true, ..self });
        }
        let missed = self.missed.without_scalars()?;
        Some(Settling { missed, settles: true, ..self })
    }

    /// The same where no row has anything to make up for, so that the compiler knows it, and rows are only to be noted when they are first touched.
    #[inline(always)]
    pub(crate) fn known_to_rest(self) -> Option<Self> {
        if !self.settles || !self.missed.all_rest() {
            return None;
        }
        let missed = Missed { rests: true, first: 0, ..self.missed };
        Some(Settling { missed, settles: true, ..self })
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
        let done = unsafe { self.settle_sixteens(cursor, ids, updated) };
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

    /// Asks for what is known of some rows, ahead of their use. Any will do: those outside are ignored.
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

/// The idle steps that rows have missed, and the maps of them.
#[derive(Debug)]
pub(super) struct Missed<'a, R: UpdateRule, T: Float> {
    history: &'a HistoryOf<R, T>,
    /// The first powers of the newest run of equal maps, which begins `first` steps after `base`.
    known: &'a [IdleOf<R, T>],
    /// The same as [runs](IdleMap::run), from the power 0 on.
    runs: &'a [MeanRun<T::Accumulator>],
    /// The same of [scalar](IdleMap::scalar) maps, from the power 0 on, and more of them.
    scalars: &'a [[T::Accumulator; 2]],
    /// These change nothing, as where a mean gradient is gathered.
    rests: bool,
    first: u32,
    /// The step that a `last` of 0 or 1 stands for.
    base: u64,
    /// What `last` is of a row that is settled up to this step; at least 1 where rows settle.
    pub(super) now: u32,
}

impl<R: UpdateRule, T: Float> Clone for Missed<'_, R, T> {
    #[inline(always)]
    fn clone(&self) -> Self {
        *self
    }
}

impl<R: UpdateRule, T: Float> Copy for Missed<'_, R, T> {}

/// How many steps a row has missed.
pub(super) enum Gap {
    None,
    /// So few that their map is tabulated.
    Short,
    /// Any number. So is that of a row that was never settled.
    Long,
}

impl<'a, R: UpdateRule, T: Float> Missed<'a, R, T> {
    #[inline(always)]
    pub(super) fn new(history: &'a HistoryOf<R, T>, base: u64, now: u32) -> Self {
        let (start, known) = history.newest_powers().unwrap_or_default();
        let scalars = history.newest_scalars();
        // Not by the scalars: a power that is rounded to 1 is not that of a map that changes
        // nothing.
        let rests = !scalars.is_empty() && known.first() == Some(&IdleMap::IDENTITY);
        let runs = history.newest_runs().first;
        let known = if scalars.is_empty() && runs.is_empty() { known } else { &[] };
        let first = u32::try_from(start.saturating_sub(base)).unwrap_or(u32::MAX);
        Missed { history, known, runs, scalars, rests, first, base, now }
    }

    /// The same where no maps are tabulated as scalars, so that the compiler knows it.
    #[inline(always)]
    pub(super) fn without_scalars(self) -> Option<Self> {
        self.scalars.is_empty().then_some(Missed { scalars: &[], rests: false, ..self })
    }

    /// The same where idle steps of the newest run change rows, so that the compiler knows it.
    #[inline(always)]
    fn without_rest(self) -> Option<Self> {
        (!self.rests).then_some(Missed { rests: false, ..self })
    }

    /// Whether no idle step has changed anything since the one up to which all rows are settled.
    #[inline(always)]
    fn all_rest(self) -> bool {
        self.rests && self.first == 0
    }

    /// The tabulated scalar maps of as many steps as rows may have missed within the newest run, by their number. A row with any other gap has
    /// more: one that was settled before that run, never, or beyond this step, by a number that wraps around.
    #[inline(always)]
    fn scalars_now(self) -> &'a [[T::Accumulator; 2]] {
        let in_run = self.now.saturating_sub(self.first) as usize;
        &self.scalars[..self.scalars.len().min(in_run)]
    }

    /// The map of the steps that a row has missed of which this is `last`, where it is a tabulated scalar.
    #[inline(always)]
    fn scalar(self, last: u32) -> Option<[T::Accumulator; 2]> {
        // Of a row that is ahead of this step, more than are tabulated.
        let missed = self.now.wrapping_sub(last) as usize;
        if IdleOf::<R, T>::MOSTLY_SCALARS {
            return self.scalars_now().get(missed).copied();
        }
        // Two comparisons with what is known anyway: the end of the range takes a register of loops
        // that settle by other maps too.
        if last <= self.first {
            return None;
        }
        self.scalars.get(missed).copied()
    }

    /// Brings a row up to date of which this is `last`.
    ///
    /// # Safety
    ///
    /// The row is one of those that `cursor` is over.
    #[inline(always)]
    pub(super) unsafe fn settle<K: UpdateKind>(
        self,
        cursor: RowCursor<'_, R, T, K>,
        row: usize,
        last: u32,
    ) -> Gap {
        if IdleOf::<R, T>::HAS_SCALARS
            && let Some(scalar) = self.scalar(last)
        {
            if !self.rests {
                // SAFETY: promised by the caller.
                unsafe { cursor.idle_by_scalar(row, scalar) };
            }
            return Gap::Short;
        }
        if IdleOf::<R, T>::HAS_RUNS && last > self.first {
            // SAFETY: promised by the caller.
            if let Some(gap) = unsafe { self.settle_by_run(cursor, row, last) } {
                return gap;
            }
        }
        // 1 less than the steps missed: no power where there are none.
        let power = (self.now - 1).wrapping_sub(last) as usize;
        // The map is used where it lies: a copy would be put together, and waited for.
        if last > self.first
            && let Some(map) = self.known.get(power)
        {
            // SAFETY: promised by the caller.
            unsafe { self.make(cursor, row, map, last - 1) };
            return Gap::Short;
        }
        if last >= self.now {
            return Gap::None;
        }
        if IdleOf::<R, T>::HAS_SCALARS && self.all_rest() {
            return Gap::Long;
        }
        let settled = last.saturating_sub(1);
        let map = self.over(settled, self.now - 1 - settled);
        // SAFETY: promised by the caller.
        unsafe { self.make(cursor, row, &map, settled) };
        Gap::Long
    }

    /// [`settle`](Self::settle) by a [run](IdleMap::run) of the newest steps; `None`, and nothing
    /// done, where none is known.
    ///
    /// # Safety
    ///
    /// As there; `last` is above that of the newest run's first step.
    #[inline(always)]
    unsafe fn settle_by_run<K: UpdateKind>(
        self,
        cursor: RowCursor<'_, R, T, K>,
        row: usize,
        last: u32,
    ) -> Option<Gap> {
        if last >= self.now {
            return Some(Gap::None);
        }
        let long;
        let run = match self.tabulated_run(last) {
            Some(run) => run,
            None => {
                long = self.spent_run(last)?;
                &long
            }
        };
        // SAFETY: promised by the caller.
        unsafe {
            cursor.idle_by_run(row, run, |weight, state| {
                self.make_one(&cursor.step, last - 1, weight, state);
            });
        }
        Some(Gap::Short)
    }

    /// The [run](IdleMap::run) of the steps that a row has missed of which this is `last`, where it
    /// is tabulated.
    #[inline(always)]
    pub(super) fn tabulated_run(self, last: u32) -> Option<&'a MeanRun<T::Accumulator>> {
        // Of a row that is ahead of this step, more than are tabulated.
        let missed = self.now.wrapping_sub(last) as usize;
        if last <= self.first {
            return None;
        }
        self.runs.get(missed)
    }

    /// The same of more steps than are tabulated.
    #[inline(always)]
    pub(super) fn spent_run(self, last: u32) -> Option<MeanRun<T::Accumulator>> {
        if last <= self.first || last >= self.now {
            return None;
        }
        self.history.newest_spent_run(u64::from(self.now - last))
    }

    /// The runs of the newest steps, and the `last` of a row above which it may have missed none
    /// but those.
    #[inline(always)]
    pub(super) fn runs(self) -> (Runs<'a, T::Accumulator>, u32) {
        (self.history.newest_runs(), self.first)
    }

    /// Makes on a row the idle steps from `settled` steps after `base` on, of which this is the map.
    ///
    /// # Safety
    ///
    /// As [`settle`](Self::settle).
    #[inline(always)]
    unsafe fn make<K: UpdateKind>(
        self,
        cursor: RowCursor<'_, R, T, K>,
        row: usize,
        map: &IdleOf<R, T>,
        settled: u32,
    ) {
        let steps = (self.base + u64::from(settled), self.base + u64::from(self.now) - 1);
        // SAFETY: promised by the caller.
        unsafe {
            cursor.idle(row, map, |weight, state| {
                cursor.step.idle_in_pieces(self.history, steps, weight, state);
            });
        }
    }

    /// [`make`](Self::make) of a weight that a run is not right for.
    #[cold]
    #[inline(never)]
    fn make_one(
        self,
        step: &StepOf<R, T>,
        settled: u32,
        weight: &mut T::Accumulator,
        state: &mut StateOf<R, T>,
    ) {
        let map = self.over(settled, self.now - 1 - settled);
        if !step.try_idle(&map, weight, state) {
            let steps = (self.base + u64::from(settled), self.base + u64::from(self.now) - 1);
            step.idle_in_pieces(self.history, steps, weight, state);
        }
    }

    /// Brings a row up to date by the map of all steps, of maps that [forget](IdleMap::FORGETS).
    ///
    /// # Safety
    ///
    /// As [`settle`](Self::settle).
    #[inline(always)]
    pub(super) unsafe fn settle_by_all<K: UpdateKind>(
        self,
        cursor: RowCursor<'_, R, T, K>,
        row: usize,
    ) {
        // SAFETY: promised by the caller.
        unsafe { self.make(cursor, row, &self.over(0, self.now - 1), 0) };
    }

    /// The map of `steps` idle steps, `settled` steps after `base`.
    #[inline(always)]
    fn over(self, settled: u32, steps: u32) -> IdleOf<R, T> {
        /// What calls it keeps its own variables to itself, and so in registers.
        #[inline(never)]
        fn between<M: IdleMap, A: Float>(history: &IdleHistory<M, A>, from: u64, steps: u32) -> M {
            history.between(from, from + u64::from(steps))
        }
        between(self.history, self.base + u64::from(settled), steps)
    }
}

//! The idle steps that rows have missed, as maps.

use super::cursor::RowCursor;
use super::update_kind::{HistoryOf, IdleOf, StateOf, StepOf, UpdateKind};
use nnz_optim::{IdleHistory, IdleMap, MeanRun, Runs, Step, UpdateRule};
use sparse_core::element::Float;

/// The idle steps that rows have missed, and the maps of them.
#[derive(Debug)]
pub(super) struct Missed<'a, R: UpdateRule, T: Float> {
    history: &'a HistoryOf<R, T>,
    /// The first powers of the newest run of equal maps, which begins `first` steps after `base`.
    known: &'a [IdleOf<R, T>],
    /// The same as [runs](IdleMap::run), from the power 0 on.
    runs: &'a [MeanRun<T::Accumulator>],
    /// The same of [scalar](IdleMap::scalar) maps, from the power 0 on, and more of them.
    pub(super) scalars: &'a [[T::Accumulator; 2]],
    /// These change nothing, as where a mean gradient is gathered.
    pub(super) rests: bool,
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
    pub(super) fn without_rest(self) -> Option<Self> {
        (!self.rests).then_some(Missed { rests: false, ..self })
    }

    /// The same where [no idle step](Self::all_rest) has changed anything, so that the compiler
    /// knows it.
    #[inline(always)]
    pub(super) fn known_to_rest(self) -> Self {
        Missed { rests: true, first: 0, ..self }
    }

    /// The same, to make up for steps by the tabulated scalars alone.
    #[inline(always)]
    pub(super) fn by_scalars(self) -> Self {
        Missed { known: &[], ..self }
    }

    /// The same, to make up for steps by the tabulated maps alone.
    #[inline(always)]
    pub(super) fn by_maps(self) -> Self {
        Missed { scalars: &[], ..self }
    }

    /// Whether no idle step has changed anything since the one up to which all rows are settled.
    #[inline(always)]
    pub(super) fn all_rest(self) -> bool {
        self.rests && self.first == 0
    }

    /// The tabulated scalar maps of as many steps as rows may have missed within the newest run, by
    /// their number. A row with any other gap has more: one that was settled before that run,
    /// never, or beyond this step, by a number that wraps around.
    #[inline(always)]
    pub(super) fn scalars_now(self) -> &'a [[T::Accumulator; 2]] {
        let in_run = self.now.saturating_sub(self.first) as usize;
        &self.scalars[..self.scalars.len().min(in_run)]
    }

    /// The map of the steps that a row has missed of which this is `last`, where it is a tabulated
    /// scalar.
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

    /// Makes on a row the idle steps from `settled` steps after `base` on, of which this is the
    /// map.
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

//! A step's access to the rows of one parameter, for every non-zero of fused loops.

use super::accumulator::{RowAccumulator, Slots};
use super::catch_up::CatchUp;
use super::cursor::{RowCursor, SumsOfRows};
use super::error::OptimizerError;
use super::memory::Memory;
use super::norms::end_by_norms;
use super::update_kind::{General, StateOf, StepOf, UpdateKind};
use nnz_arrays::formats::ColumnId;
use nnz_optim::{Step, UpdateRule};
use sparse_core::element::Float;
use std::marker::PhantomData;

/// The rows of one parameter during one step, from [`Updater::rows`](super::Updater::rows).
///
/// A row is [settled](Self::settle) before it is first read in a step, then read, then updated
/// *once*, every element of it; a step that has updated its rows calls [`finish`](Self::finish).
/// Everything that does not depend on the row was computed when the handle was made, so that the
/// methods are a few instructions in the caller's loop. `row_size()` is a plain field: a caller
/// that tests `row_size() == 1` once gets loops compiled for that width.
///
/// The `…_unchecked` methods are for loops over the columns of a `csr` batch whose width was
/// compared with `n_rows()` beforehand.
#[derive(Debug)]
pub struct RowUpdater<'a, R: UpdateRule, T: Float, K: UpdateKind = General> {
    pub(super) memory: Memory<'a, T, StateOf<R, T>, K>,
    pub(super) catch_up: CatchUp<'a, R, T>,
    pub(super) sums: &'a mut RowAccumulator,
    pub(super) finished: &'a mut bool,
    pub(super) step: StepOf<R, T>,
    /// Of a `Plain` rule, else 0.
    pub(super) factor: T::Accumulator,
    pub(super) n_rows: usize,
    /// Dense, and idle steps change rows.
    pub(super) sweeps: bool,
}

impl<'a, R: UpdateRule, T: Float, K: UpdateKind> RowUpdater<'a, R, T, K> {
    /// The rows of the parameter.
    #[inline(always)]
    pub fn n_rows(&self) -> usize {
        self.n_rows
    }

    /// The elements of a row.
    #[inline(always)]
    pub fn row_size(&self) -> usize {
        self.memory.row_size()
    }

    /// True where an update is `weight += factor · grad`.
    #[inline(always)]
    pub(crate) fn is_plain(&self) -> bool {
        K::PLAIN
    }

    /// Bytes of the whole table, with the states that lie beside the weights and what is kept of
    /// each row.
    #[inline(always)]
    pub fn bytes(&self) -> usize {
        self.n_rows * self.memory.stride() + self.catch_up.last.bytes_apart()
    }

    /// One row.
    ///
    /// # Panics
    ///
    /// If there is no such row.
    #[inline(always)]
    pub fn row(&self, row: usize) -> &[T] {
        assert!(row < self.n_rows, "row {row} of {}", self.n_rows);
        // SAFETY: checked above.
        unsafe { self.row_unchecked(row) }
    }

    /// [`row`](Self::row) without a check.
    ///
    /// # Safety
    ///
    /// `row < self.n_rows()`.
    #[inline(always)]
    pub unsafe fn row_unchecked(&self, row: usize) -> &[T] {
        // SAFETY: promised by the caller.
        unsafe { self.memory.weights(row) }
    }

    /// The same rows for an innermost loop, whose row size the compiler knows if it knows
    /// `row_size`.
    ///
    /// # Panics
    ///
    /// If `row_size` is not that of the parameter.
    #[inline(always)]
    pub(crate) fn cursor(&mut self, row_size: usize) -> RowCursor<'_, R, T, K> {
        self.split(row_size).0
    }

    /// All that an innermost loop needs, by value: [the rows](Self::cursor), and up to which step
    /// they are settled.
    ///
    /// # Panics
    ///
    /// As [`cursor`](Self::cursor).
    #[inline(always)]
    pub(crate) fn split(&mut self, row_size: usize) -> (RowCursor<'_, R, T, K>, CatchUp<'_, R, T>) {
        assert!(row_size == self.row_size(), "rows of {}, not {row_size}", self.row_size());
        let places = self.memory.places(row_size);
        let cursor = RowCursor { places, step: self.step, factor: self.factor, rows: PhantomData };
        let last = self.memory.known_last_steps(row_size, self.catch_up.last);
        (cursor, CatchUp { last, ..self.catch_up.reborrow() })
    }

    /// [`split`](Self::split), and the sums of gradients by rows.
    ///
    /// # Panics
    ///
    /// As [`cursor`](Self::cursor).
    pub(crate) fn split_with_sums(
        &mut self,
        row_size: usize,
    ) -> (RowCursor<'_, R, T, K>, CatchUp<'_, R, T>, &mut RowAccumulator) {
        assert!(row_size == self.row_size(), "rows of {}, not {row_size}", self.row_size());
        let places = self.memory.places(row_size);
        let cursor = RowCursor { places, step: self.step, factor: self.factor, rows: PhantomData };
        let last = self.memory.known_last_steps(row_size, self.catch_up.last);
        (cursor, CatchUp { last, ..self.catch_up.reborrow() }, &mut *self.sums)
    }

    /// Asks for the memory of a row ahead of its use. Any row will do: one outside is ignored.
    #[inline(always)]
    pub fn prefetch(&mut self, row: usize) {
        self.prefetch_each(self.row_size(), &[row as u64]);
    }

    /// Asks for the memory of some rows ahead of their use. Any will do: those outside are ignored.
    #[inline(always)]
    pub(crate) fn prefetch_each<I: ColumnId>(&mut self, row_size: usize, ids: &[I]) {
        let cursor = self.cursor(row_size);
        for id in ids {
            cursor.prefetch(id.at());
        }
        self.catch_up.prefetch_each::<K, _>(ids);
    }

    /// [Settles](Self::settle) some rows, of a size that the compiler may know, without a check.
    ///
    /// # Safety
    ///
    /// Each is below `self.n_rows()`.
    #[inline(always)]
    pub(crate) unsafe fn settle_each<I: ColumnId>(&mut self, row_size: usize, ids: &[I]) {
        let (cursor, mut catch_up) = self.split(row_size);
        // SAFETY: promised by the caller.
        unsafe { catch_up.settle_each(cursor, ids, false) };
    }

    /// Notes that some rows were updated in this step, through a [cursor](Self::cursor).
    ///
    /// # Safety
    ///
    /// Each is below `self.n_rows()`.
    #[inline(always)]
    pub(crate) unsafe fn mark_each<I: ColumnId>(&mut self, ids: &[I]) {
        if !K::PLAIN {
            for id in ids {
                // SAFETY: promised by the caller.
                unsafe { self.catch_up.mark(id.at()) };
            }
        }
    }

    /// [`mark_each`](Self::mark_each) of rows that are given as they are.
    ///
    /// # Safety
    ///
    /// Each is below `self.n_rows()`.
    #[inline(always)]
    pub(crate) unsafe fn mark_rows(&mut self, rows: &[usize]) {
        if !K::PLAIN {
            for row in rows {
                // SAFETY: promised by the caller.
                unsafe { self.catch_up.mark(*row) };
            }
        }
    }

    /// The sums of the batch's gradients by rows.
    #[inline(always)]
    pub(crate) fn sums_mut(&mut self) -> &mut RowAccumulator {
        self.sums
    }

    /// Where the slots of rows are that lie beside the weights, as `K` says: fresh ones since these
    /// rows were lent, for one batch. `None` of other kinds.
    #[inline(always)]
    pub(crate) fn slots(&self) -> Option<Slots<'a>> {
        self.memory.slots(self.n_rows)
    }

    /// Brings a row up to date: the steps that it missed, in closed form. To be called before the
    /// row is first read in a step; calling it again costs a comparison. Does nothing unless idle
    /// steps change rows and the mode is
    /// [`LazyUpdate::Exact`](nnz_optim::LazyUpdate::Exact).
    ///
    /// # Panics
    ///
    /// If there is no such row.
    #[inline(always)]
    pub fn settle(&mut self, row: usize) {
        if K::PLAIN {
            return;
        }
        assert!(row < self.n_rows, "row {row} of {}", self.n_rows);
        // SAFETY: checked above.
        unsafe { self.settle_unchecked(row) }
    }

    /// [`settle`](Self::settle) without a check.
    ///
    /// # Safety
    ///
    /// `row < self.n_rows()`.
    #[inline(always)]
    pub unsafe fn settle_unchecked(&mut self, row: usize) {
        let (cursor, mut catch_up) = self.split(self.row_size());
        // SAFETY: promised by the caller.
        unsafe { catch_up.settle(cursor, row, false) };
    }

    /// Updates one element of a row that was settled in this step. Every element of the row has its
    /// turn.
    ///
    /// # Panics
    ///
    /// If there is no such row or column.
    #[inline(always)]
    pub fn update(&mut self, row: usize, column: usize, grad: T::Accumulator) {
        assert!(
            row < self.n_rows && column < self.row_size(),
            "element [{row}, {column}] of [{}, {}]",
            self.n_rows,
            self.row_size()
        );
        // SAFETY: checked above.
        unsafe { self.update_unchecked(row, column, grad) }
    }

    /// [`update`](Self::update) without a check.
    ///
    /// # Safety
    ///
    /// `row < self.n_rows()` and `column < self.row_size()`.
    #[inline(always)]
    pub unsafe fn update_unchecked(&mut self, row: usize, column: usize, grad: T::Accumulator) {
        // SAFETY: both promised by the caller.
        unsafe { self.cursor(self.row_size()).update(row, column, grad) };
        // SAFETY: as above.
        unsafe { self.catch_up.mark(row) };
    }

    /// Updates a whole row that was settled in this step.
    ///
    /// # Panics
    ///
    /// If there is no such row, or `grad` has not `row_size()` elements.
    #[inline(always)]
    pub fn update_row(&mut self, row: usize, grad: &[T]) {
        assert!(
            row < self.n_rows && grad.len() == self.row_size(),
            "{} elements for row {row} of [{}, {}]",
            grad.len(),
            self.n_rows,
            self.row_size()
        );
        // SAFETY: checked above.
        unsafe { self.update_row_unchecked(row, grad) }
    }

    /// [`update_row`](Self::update_row) without a check, with a gradient of `row_size()` elements
    /// in the accumulator.
    ///
    /// # Safety
    ///
    /// `row < self.n_rows()`.
    #[inline(always)]
    pub unsafe fn update_row_unchecked<V: Float<Accumulator = T::Accumulator>>(
        &mut self,
        row: usize,
        grad: &[V],
    ) {
        // SAFETY: promised by the caller.
        unsafe { self.cursor(self.row_size()).update_row_by(row, grad, |grad, _| grad.widen()) };
        // SAFETY: as above.
        unsafe { self.catch_up.mark(row) };
    }

    /// Updates a whole row that was settled in this step, with a gradient that depends on the
    /// weights: `grad(given, weight)` for each element of the row and of `given`.
    ///
    /// # Safety
    ///
    /// `row < self.n_rows()`, and `given` has `row_size()` elements.
    #[inline(always)]
    pub unsafe fn update_row_by<V: Copy>(
        &mut self,
        row: usize,
        given: &[V],
        grad: impl FnMut(V, T::Accumulator) -> T::Accumulator,
    ) {
        // SAFETY: promised by the caller.
        unsafe { self.cursor(self.row_size()).update_row_by(row, given, grad) };
        // SAFETY: as above.
        unsafe { self.catch_up.mark(row) };
    }

    /// The gradient of a row summed so far in this step, zero at its first touch, to be added to:
    /// for batches in which several rows of data touch one row of the parameter.
    ///
    /// # Panics
    ///
    /// If there is no such row.
    #[inline(always)]
    pub fn accumulate(&mut self, row: usize) -> &mut [f64] {
        self.sums.row_mut(row)
    }

    /// [`accumulate`](Self::accumulate) without a check.
    ///
    /// # Safety
    ///
    /// `row < self.n_rows()`.
    #[inline(always)]
    pub unsafe fn accumulate_unchecked(&mut self, row: usize) -> &mut [f64] {
        // SAFETY: the accumulator was made for `n_rows` rows.
        unsafe { self.sums.row_mut_unchecked(row) }
    }

    /// Settles and updates each accumulated row once, with its sum, and forgets the sums.
    pub fn apply_accumulated(&mut self) {
        if !K::PLAIN && self.catch_up.settles {
            // Out of `self` while its rows are settled; the stand-in allocates nothing.
            let sums = std::mem::replace(self.sums, RowAccumulator::new(0, 0));
            // SAFETY: the accumulator was made for `n_rows` rows, so that its rows are below
            // `n_rows`.
            sums.rows().iter().for_each(|row| unsafe { self.settle_unchecked(*row) });
            *self.sums = sums;
        }
        self.apply_settled();
    }

    /// [`apply_accumulated`](Self::apply_accumulated) of rows that were all settled in this step.
    pub(crate) fn apply_settled(&mut self) {
        // As above.
        let mut sums = std::mem::replace(self.sums, RowAccumulator::new(0, 0));
        // SAFETY: the accumulator was made for `n_rows` rows, so that its rows are below `n_rows`;
        // the sums are of rows of this size, one each.
        unsafe {
            self.apply(SumsOfRows::of_all(&sums));
        }
        sums.clear();
        *self.sums = sums;
    }

    /// Updates some rows, each by its sum. They were settled in this step.
    ///
    /// # Safety
    ///
    /// Each row is below `self.n_rows()` and named once, and each has a sum of as many elements as
    /// it has.
    pub(crate) unsafe fn apply(&mut self, sums: SumsOfRows<'_>) {
        let row_size = self.row_size();
        // SAFETY: promised by the caller.
        unsafe {
            self.cursor(row_size).update_rows(row_size, sums);
            self.mark_rows(sums.rows);
        }
    }

    /// Goes on to the next of several steps that were begun together, by
    /// [`begin_steps`](super::Updater::begin_steps).
    #[inline(always)]
    pub(crate) fn advance(&mut self) {
        self.catch_up.advance::<K>();
    }

    /// Ends the step for this parameter. In
    /// [`LazyUpdate::Dense`](nnz_optim::LazyUpdate::Dense) this updates all rows
    /// that had no gradient, and moves all by norms of the whole parameter under a rule that needs
    /// them, O(rows); otherwise it does nothing.
    #[inline(always)]
    pub fn finish(mut self) {
        *self.finished = true;
        // Nothing that a plain rule does is done to a row without a gradient.
        if !K::PLAIN && self.sweeps {
            self.sweep();
        }
        if StepOf::<R, T>::BY_NORMS {
            self.end_by_norms();
        }
    }

    #[cold]
    #[inline(never)]
    fn end_by_norms(&mut self) {
        let RowUpdater { memory, step, n_rows, .. } = self;
        end_by_norms(step, |visit| {
            for row in 0..*n_rows {
                // SAFETY: `row < n_rows`.
                let (weights, states) = unsafe { memory.parts(row) };
                weights.iter_mut().zip(states).for_each(|(weight, state)| visit(weight, state));
            }
        });
    }

    #[cold]
    #[inline(never)]
    fn sweep(&mut self) {
        for row in 0..self.n_rows {
            if self.catch_up.last.get_mut(row).is_some_and(|last| std::mem::take(last) != 0) {
                continue;
            }
            let none = T::zero().widen();
            let row_size = self.row_size();
            let cursor = self.cursor(row_size);
            // SAFETY: `row < n_rows`.
            (0..row_size).for_each(|column| unsafe { cursor.update(row, column, none) });
        }
    }

    /// Refuses rows outside the table.
    pub(super) fn check_row(&self, name: &str, row: usize) -> Result<(), OptimizerError> {
        if row < self.n_rows {
            return Ok(());
        }
        Err(OptimizerError::RowOutOfRange { parameter: name.to_owned(), row, n_rows: self.n_rows })
    }
}

//! A step's access to the rows of one parameter: what fused loops call for every non-zero.

use super::accumulator::RowAccumulator;
use super::error::OptimizerError;
use crate::prefetch::prefetch;
use sparse_core::element::Float;
use sparse_core::update_rules::{IdleHistory, Step, UpdateRule};
use std::marker::PhantomData;

/// What a weight carries from step to step under rule `R`, in the accumulator of `T`.
pub type StateOf<R, T> = <StepOf<R, T> as Step<<T as Float>::Accumulator>>::State;

/// One step of rule `R` on a weight of type `T`: arithmetic and state are in its accumulator.
pub(super) type StepOf<R, T> = <R as UpdateRule>::Step<<T as Float>::Accumulator>;

/// What idle steps of rule `R` do to a weight of type `T`.
pub(super) type IdleOf<R, T> = <StepOf<R, T> as Step<<T as Float>::Accumulator>>::Idle;

/// `change` on a weight in the accumulator, rounded once.
#[inline(always)]
pub(super) fn on_weight<T: Float>(weight: &mut T, change: impl FnOnce(&mut T::Accumulator)) {
    let mut wide = weight.widen();
    change(&mut wide);
    *weight = T::narrow(wide);
}

/// How much a [`RowUpdater`] can be asked to do, known to the compiler: [`General`] or [`Plain`].
pub trait UpdateKind: sealed::Sealed + Copy + 'static {
    /// True where an update is `weight += factor · grad` and rows never need settling.
    const PLAIN: bool;
}

/// Any rule: settles rows where that is needed, carries state.
#[derive(Clone, Copy, Debug)]
pub struct General;

/// A rule that is just `weight += factor · grad` (SGD without momentum, decay and clipping): a load, a
/// multiplication, an addition and a store for each weight.
#[derive(Clone, Copy, Debug)]
pub struct Plain;

impl UpdateKind for General {
    const PLAIN: bool = false;
}

impl UpdateKind for Plain {
    const PLAIN: bool = true;
}

mod sealed {
    pub trait Sealed {}
    impl Sealed for super::General {}
    impl Sealed for super::Plain {}
}

/// The rows of one parameter during one step, from [`Updater::rows`](super::Updater::rows).
///
/// A row is [settled](Self::settle) before it is first read in a step, then read, then updated *once*, every
/// element of it; a step that has updated its rows calls [`finish`](Self::finish). Everything that does not
/// depend on the row was computed when the handle was made, so that the methods are a few instructions in
/// the caller's loop. `row_size()` is a plain field: a caller that tests `row_size() == 1` once gets loops
/// compiled for that width.
///
/// The `…_unchecked` methods are for loops over the columns of a `csr` batch whose width was compared with
/// `n_rows()` beforehand.
#[derive(Debug)]
pub struct RowUpdater<'a, R: UpdateRule, T: Float, K: UpdateKind = General> {
    pub(super) values: &'a mut [T],
    /// One a value, or empty where the rule uses none.
    pub(super) states: &'a mut [StateOf<R, T>],
    /// One a row, or empty where nobody asks. Exact: the step up to which the row is settled, counted from
    /// `base`. Dense: 1 for a row updated in this step.
    pub(super) last: &'a mut [u32],
    pub(super) sums: &'a mut RowAccumulator<T::Accumulator>,
    pub(super) finished: &'a mut bool,
    pub(super) history: &'a IdleHistory<IdleOf<R, T>>,
    pub(super) step: StepOf<R, T>,
    /// Of a `Plain` rule, else 0.
    pub(super) factor: T::Accumulator,
    pub(super) n_rows: usize,
    pub(super) row_size: usize,
    /// The step that `last == 0` stands for.
    pub(super) base: u64,
    /// This step, counted from `base`.
    pub(super) now: u32,
    /// What `last` becomes when a row is updated.
    pub(super) mark: u32,
    /// Exact, and idle steps change rows.
    pub(super) settles: bool,
    /// Dense, and idle steps change rows.
    pub(super) sweeps: bool,
    pub(super) kind: PhantomData<K>,
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
        self.row_size
    }

    /// All values, row major. Only settled rows are up to date.
    #[inline(always)]
    pub fn values(&self) -> &[T] {
        self.values
    }

    /// One row.
    ///
    /// # Panics
    ///
    /// If there is no such row.
    #[inline(always)]
    pub fn row(&self, row: usize) -> &[T] {
        &self.values[row * self.row_size..(row + 1) * self.row_size]
    }

    /// [`row`](Self::row) without a check.
    ///
    /// # Safety
    ///
    /// `row < self.n_rows()`.
    #[inline(always)]
    pub unsafe fn row_unchecked(&self, row: usize) -> &[T] {
        let start = row * self.row_size;
        // SAFETY: `values` has `n_rows * row_size` elements (checked when the handle was made) and the
        // caller promises `row < n_rows`.
        unsafe { self.values.get_unchecked(start..start + self.row_size) }
    }

    /// One value, without a check.
    ///
    /// # Safety
    ///
    /// `row < self.n_rows()` and `column < self.row_size()`.
    #[inline(always)]
    pub unsafe fn value_unchecked(&self, row: usize, column: usize) -> T {
        // SAFETY: as in `row_unchecked`; the caller promises both bounds.
        unsafe { *self.values.get_unchecked(row * self.row_size + column) }
    }

    /// Asks for the memory of a row ahead of its use. Any row will do: one outside is ignored.
    #[inline(always)]
    pub fn prefetch(&self, row: usize) {
        prefetch(self.values, row * self.row_size);
        if !K::PLAIN {
            prefetch(self.states, row * self.row_size);
            prefetch(self.last, row);
        }
    }

    /// Brings a row up to date: the steps that it missed, in closed form. To be called before the row is
    /// first read in a step; calling it again costs a comparison. Does nothing unless idle steps change
    /// rows and the mode is [`LazyUpdate::Exact`](sparse_core::update_rules::LazyUpdate::Exact).
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
        if K::PLAIN || !self.settles {
            return;
        }
        // SAFETY: where `settles`, `last` has `n_rows` entries (`Updater::rows` allocates them), and the
        // caller promises `row < n_rows`.
        let last = unsafe { self.last.get_unchecked_mut(row) };
        if *last < self.now {
            let map = self.history.since(self.base + u64::from(*last));
            *last = self.now;
            let range = row * self.row_size..(row + 1) * self.row_size;
            // SAFETY: `values` has `n_rows * row_size` elements, and so has `states` unless it is empty.
            let values = unsafe { self.values.get_unchecked_mut(range.clone()) };
            if self.states.is_empty() {
                for weight in values {
                    on_weight(weight, |weight| {
                        self.step.apply_idle(&map, weight, &mut Default::default());
                    });
                }
            } else {
                // SAFETY: as above.
                let states = unsafe { self.states.get_unchecked_mut(range) };
                for (weight, state) in values.iter_mut().zip(states) {
                    on_weight(weight, |weight| self.step.apply_idle(&map, weight, state));
                }
            }
        }
    }

    /// Updates one element of a row that was settled in this step. Every element of the row has its turn.
    ///
    /// # Panics
    ///
    /// If there is no such row or column.
    #[inline(always)]
    pub fn update(&mut self, row: usize, column: usize, grad: T::Accumulator) {
        assert!(
            row < self.n_rows && column < self.row_size,
            "element [{row}, {column}] of [{}, {}]",
            self.n_rows,
            self.row_size
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
        let index = row * self.row_size + column;
        // SAFETY: `values` has `n_rows * row_size` elements and the caller promises both bounds.
        let weight = unsafe { self.values.get_unchecked_mut(index) };
        if K::PLAIN {
            on_weight(weight, |weight| *weight += self.factor * grad);
            return;
        }
        if self.states.is_empty() {
            on_weight(weight, |weight| self.step.update(weight, &mut Default::default(), grad));
        } else {
            // SAFETY: where not empty, `states` is as long as `values`.
            let state = unsafe { self.states.get_unchecked_mut(index) };
            on_weight(weight, |weight| self.step.update(weight, state, grad));
        }
        if !self.last.is_empty() {
            // SAFETY: where not empty, `last` has `n_rows` entries.
            unsafe { *self.last.get_unchecked_mut(row) = self.mark };
        }
    }

    /// Of a [`Plain`] rule, what its updates multiply the gradient with: a loop can do so once for a row of data, and
    /// then only [add](Self::add_unchecked). `None` of any other.
    #[inline(always)]
    pub fn plain_factor(&self) -> Option<T::Accumulator> {
        K::PLAIN.then_some(self.factor)
    }

    /// `weight += change` for one element, in place of an update whose gradient, times
    /// [`plain_factor`](Self::plain_factor), is `change`.
    ///
    /// # Safety
    ///
    /// `row < self.n_rows()` and `column < self.row_size()`.
    #[inline(always)]
    pub unsafe fn add_unchecked(&mut self, row: usize, column: usize, change: T::Accumulator) {
        debug_assert!(K::PLAIN, "the rule does more than to add");
        let index = row * self.row_size + column;
        // SAFETY: `values` has `n_rows * row_size` elements and the caller promises both bounds.
        let weight = unsafe { self.values.get_unchecked_mut(index) };
        on_weight(weight, |weight| *weight += change);
    }

    /// Updates a whole row that was settled in this step.
    ///
    /// # Panics
    ///
    /// If there is no such row, or `grad` has not `row_size()` elements.
    #[inline(always)]
    pub fn update_row(&mut self, row: usize, grad: &[T]) {
        assert!(
            row < self.n_rows && grad.len() == self.row_size,
            "{} elements for row {row} of [{}, {}]",
            grad.len(),
            self.n_rows,
            self.row_size
        );
        // SAFETY: checked above.
        unsafe { self.update_row_unchecked(row, grad.iter().map(|grad| grad.widen())) }
    }

    /// [`update_row`](Self::update_row) without a check, with a gradient of `row_size()` elements in the accumulator.
    ///
    /// # Safety
    ///
    /// `row < self.n_rows()`.
    #[inline(always)]
    pub unsafe fn update_row_unchecked(
        &mut self,
        row: usize,
        grad: impl Iterator<Item = T::Accumulator>,
    ) {
        let range = row * self.row_size..(row + 1) * self.row_size;
        // SAFETY: `values` has `n_rows * row_size` elements and the caller promises `row < n_rows`.
        let values = unsafe { self.values.get_unchecked_mut(range.clone()) };
        if K::PLAIN {
            for (weight, grad) in values.iter_mut().zip(grad) {
                on_weight(weight, |weight| *weight += self.factor * grad);
            }
            return;
        }
        if self.states.is_empty() {
            for (weight, grad) in values.iter_mut().zip(grad) {
                on_weight(weight, |weight| {
                    self.step.update(weight, &mut Default::default(), grad);
                });
            }
        } else {
            // SAFETY: where not empty, `states` is as long as `values`.
            let states = unsafe { self.states.get_unchecked_mut(range) };
            for ((weight, state), grad) in values.iter_mut().zip(states).zip(grad) {
                on_weight(weight, |weight| self.step.update(weight, state, grad));
            }
        }
        if !self.last.is_empty() {
            // SAFETY: where not empty, `last` has `n_rows` entries.
            unsafe { *self.last.get_unchecked_mut(row) = self.mark };
        }
    }

    /// The gradient of a row summed so far in this step, zero at its first touch, to be added to: for
    /// batches in which several rows of data touch one row of the parameter.
    ///
    /// # Panics
    ///
    /// If there is no such row.
    #[inline(always)]
    pub fn accumulate(&mut self, row: usize) -> &mut [T::Accumulator] {
        self.sums.row_mut(row)
    }

    /// [`accumulate`](Self::accumulate) without a check.
    ///
    /// # Safety
    ///
    /// `row < self.n_rows()`.
    #[inline(always)]
    pub unsafe fn accumulate_unchecked(&mut self, row: usize) -> &mut [T::Accumulator] {
        // SAFETY: the accumulator was made for `n_rows` rows.
        unsafe { self.sums.row_mut_unchecked(row) }
    }

    /// Settles and updates each accumulated row once, with its sum, and forgets the sums.
    pub fn apply_accumulated(&mut self) {
        // Out of `self` while its rows are updated; the stand-in allocates nothing.
        let mut sums = std::mem::replace(self.sums, RowAccumulator::new(0, 0));
        for (slot, &row) in sums.rows().iter().enumerate() {
            let grad = &sums.values()[slot * self.row_size..][..self.row_size];
            // SAFETY: the accumulator was made for `n_rows` rows, so that its rows are below `n_rows`.
            unsafe {
                self.settle_unchecked(row);
                self.update_row_unchecked(row, grad.iter().copied());
            }
        }
        sums.clear();
        *self.sums = sums;
    }

    /// Ends the step for this parameter. In
    /// [`LazyUpdate::Dense`](sparse_core::update_rules::LazyUpdate::Dense) this updates all rows that had no
    /// gradient, O(rows); otherwise it does nothing.
    #[inline(always)]
    pub fn finish(self) {
        *self.finished = true;
        // Nothing that a plain rule does is done to a row without a gradient.
        if !K::PLAIN && self.sweeps {
            self.sweep();
        }
    }

    #[inline(never)]
    fn sweep(self) {
        for row in 0..self.n_rows {
            if std::mem::take(&mut self.last[row]) != 0 {
                continue;
            }
            let range = row * self.row_size..(row + 1) * self.row_size;
            for index in range {
                let weight = &mut self.values[index];
                let (step, none) = (self.step, T::zero().widen());
                on_weight(weight, |weight| match self.states.get_mut(index) {
                    Some(state) => step.update(weight, state, none),
                    None => step.update(weight, &mut Default::default(), none),
                });
            }
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

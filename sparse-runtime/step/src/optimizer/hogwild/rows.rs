//! Shared rows during a step of one thread.

use super::shared_table::{Layout, SharedTable};
use crate::optimizer::hot_rows::HotSlots;
use crate::optimizer::numbers::{load, load_state, store, store_state};
use crate::optimizer::update_kind::{StateOf, StepOf};
use nnz_device::prefetch::AHEAD;
use nnz_device::prefetch::prefetch_at;
use nnz_optim::{Step, UpdateRule};
use sparse_core::element::Float;
use std::hint::select_unpredictable;
use std::marker::PhantomData;

/// What a step reads and updates of shared rows.
///
/// Invariant: `own` are the copies that a [`Racer`](super::Racer) has of rows of `shared`, and is
/// borrowed for `'a`.
pub(crate) struct HogwildRows<'a, R: UpdateRule, T: Float> {
    pub(super) step: StepOf<R, T>,
    /// Of a rule that only adds.
    pub(super) factor: Option<T::Accumulator>,
    pub(super) shared: &'a SharedTable<T>,
    pub(super) own: *mut u8,
    pub(super) ahead: &'a mut AddressesAhead,
}

/// Where the rows lie that a row of data and those after it name.
pub(crate) type AddressesAhead = [Vec<RowAddress>; AHEAD + 1];

/// Where a row lies that a thread reads and updates: the shared one, or its own copy.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RowAddress(*mut u8);

// SAFETY: an address, and nothing more: who reads or writes there says why it may.
unsafe impl Send for RowAddress {}
// SAFETY: as above.
unsafe impl Sync for RowAddress {}

impl<'a, R: UpdateRule, T: Float> HogwildRows<'a, R, T> {
    /// The rows of the table.
    pub(crate) fn n_rows(&self) -> usize {
        self.shared.table.n_rows()
    }

    /// The elements of a row.
    pub(crate) fn row_size(&self) -> usize {
        self.shared.layout.row_size
    }

    /// Whether the rule only adds a multiple of the gradient.
    pub(crate) fn is_plain(&self) -> bool {
        self.factor.is_some()
    }

    /// Whether this thread has copies of rows.
    pub(crate) fn has_copies(&self) -> bool {
        self.shared.hot.n_slots() > 0
    }

    /// The rows for an innermost loop, of a size that the compiler may know, which knows as well
    /// whether the rule [only adds](Self::is_plain) and whether there are
    /// [copies](Self::has_copies); and memory for the places that it has looked up.
    ///
    /// # Panics
    ///
    /// If any of these is not so.
    #[inline(always)]
    pub(crate) fn cursor<const PLAIN: bool, const COPIES: bool>(
        self,
        row_size: usize,
    ) -> (HogwildCursor<'a, R, T, PLAIN, COPIES>, &'a mut AddressesAhead) {
        let SharedTable { first, layout: shared, hot, .. } = self.shared;
        let optional = StepOf::<R, T>::OPTIONAL_STATE;
        let layout = Layout::of::<R, T>(row_size, !PLAIN && (!optional || shared.n_numbers > 0));
        assert!(layout == *shared && PLAIN == self.is_plain() && COPIES == self.has_copies());
        let cursor = HogwildCursor {
            step: self.step,
            factor: self.factor.unwrap_or(T::zero().widen()),
            first: *first,
            layout,
            hot: hot.slots(),
            own: self.own,
            rows: PhantomData,
        };
        (cursor, self.ahead)
    }
}

/// Shared rows as the innermost loop has them: by value, so that they are in registers.
///
/// Invariant: as [`HogwildRows`].
pub(crate) struct HogwildCursor<'a, R: UpdateRule, T: Float, const PLAIN: bool, const COPIES: bool>
{
    step: StepOf<R, T>,
    factor: T::Accumulator,
    first: *mut u8,
    layout: Layout,
    hot: HotSlots<'a>,
    own: *mut u8,
    rows: PhantomData<&'a mut [T]>,
}

impl<R: UpdateRule, T: Float, const PLAIN: bool, const COPIES: bool> Clone
    for HogwildCursor<'_, R, T, PLAIN, COPIES>
{
    #[inline(always)]
    fn clone(&self) -> Self {
        *self
    }
}

impl<R: UpdateRule, T: Float, const PLAIN: bool, const COPIES: bool> Copy
    for HogwildCursor<'_, R, T, PLAIN, COPIES>
{
}

impl<R: UpdateRule, T: Float, const PLAIN: bool, const COPIES: bool>
    HogwildCursor<'_, R, T, PLAIN, COPIES>
{
    /// Where a row lies, or this thread's copy of it.
    #[inline(always)]
    pub(crate) fn place(self, row: usize) -> RowAddress {
        let shared = self.first.wrapping_add(row.wrapping_mul(self.layout.stride));
        if !COPIES {
            return RowAddress(shared);
        }
        let (is_hot, slot) = self.hot.find(row);
        let own = self.own.wrapping_add(slot.wrapping_mul(self.layout.stride));
        // Many rows are hot, in no order that a processor could foresee.
        RowAddress(select_unpredictable(is_hot, own, shared))
    }

    /// Asks for the memory at a place ahead of its use.
    #[inline(always)]
    pub(crate) fn prefetch(self, place: RowAddress) {
        prefetch_at(place.0);
    }

    /// One weight.
    ///
    /// # Safety
    ///
    /// The place is [that](Self::place) of a row that is there, and `column < row_size`.
    #[inline(always)]
    pub(crate) unsafe fn value(self, place: RowAddress, column: usize) -> T::Accumulator {
        // SAFETY: promised by the caller; the invariant.
        unsafe { load(place.0.cast::<T>().add(column)) }.widen()
    }

    /// One update of one element.
    ///
    /// # Safety
    ///
    /// As for [`value`](Self::value).
    #[inline(always)]
    pub(crate) unsafe fn update(self, place: RowAddress, column: usize, grad: T::Accumulator) {
        // SAFETY: promised by the caller; the invariant.
        unsafe {
            let at = place.0.cast::<T>().add(column);
            let mut weight = load(at).widen();
            if PLAIN {
                weight += self.factor * grad;
            } else if self.layout.n_numbers == 0 {
                self.step.update(&mut weight, &mut Default::default(), grad);
            } else {
                let states = place.0.add(self.layout.states).cast::<StateOf<R, T>>().add(column);
                let mut state = load_state::<_, T::Accumulator>(states);
                self.step.update(&mut weight, &mut state, grad);
                store_state::<_, T::Accumulator>(states, state);
            }
            store(at, T::narrow(weight));
        }
    }
}

/// Shared rows whatever the rule's options are: the kinds of a [`HogwildCursor`], of which each
/// call chooses one. For samples whose reads are a list.
pub(crate) enum AnyHogwildRows<'a, R: UpdateRule, T: Float> {
    Plain(HogwildCursor<'a, R, T, true, false>),
    PlainWithCopies(HogwildCursor<'a, R, T, true, true>),
    General(HogwildCursor<'a, R, T, false, false>),
    GeneralWithCopies(HogwildCursor<'a, R, T, false, true>),
}

/// Calls `$body` with the cursor.
macro_rules! with_cursor {
    ($rows:expr, |$cursor:ident| $body:expr) => {
        match $rows {
            AnyHogwildRows::Plain($cursor) => $body,
            AnyHogwildRows::PlainWithCopies($cursor) => $body,
            AnyHogwildRows::General($cursor) => $body,
            AnyHogwildRows::GeneralWithCopies($cursor) => $body,
        }
    };
}

impl<'a, R: UpdateRule, T: Float> AnyHogwildRows<'a, R, T> {
    pub(crate) fn of(rows: HogwildRows<'a, R, T>) -> Self {
        let row_size = rows.row_size();
        match (rows.is_plain(), rows.has_copies()) {
            (true, false) => AnyHogwildRows::Plain(rows.cursor(row_size).0),
            (true, true) => AnyHogwildRows::PlainWithCopies(rows.cursor(row_size).0),
            (false, false) => AnyHogwildRows::General(rows.cursor(row_size).0),
            (false, true) => AnyHogwildRows::GeneralWithCopies(rows.cursor(row_size).0),
        }
    }

    /// Asks for the memory of a row ahead of its use. Any row will do.
    #[inline]
    pub(crate) fn prefetch(&self, row: usize) {
        with_cursor!(self, |cursor| cursor.prefetch(cursor.place(row)));
    }

    /// Copies a row.
    ///
    /// # Safety
    ///
    /// There is such a row, with as many elements as `copy` has.
    #[inline]
    pub(crate) unsafe fn read(&self, row: usize, copy: &mut [T::Accumulator]) {
        with_cursor!(self, |cursor| {
            let place = cursor.place(row);
            for (column, copy) in copy.iter_mut().enumerate() {
                // SAFETY: promised by the caller.
                *copy = unsafe { cursor.value(place, column) };
            }
        });
    }

    /// One update of a row.
    ///
    /// # Safety
    ///
    /// There is such a row, with as many elements as `gradient` has.
    #[inline]
    pub(crate) unsafe fn update(&self, row: usize, gradient: &[T::Accumulator]) {
        with_cursor!(self, |cursor| {
            let place = cursor.place(row);
            for (column, gradient) in gradient.iter().enumerate() {
                // SAFETY: promised by the caller.
                unsafe { cursor.update(place, column, *gradient) };
            }
        });
    }
}

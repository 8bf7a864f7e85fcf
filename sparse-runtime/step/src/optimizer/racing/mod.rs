//! Hogwild: table rows that several threads read and update at once, without locks.
//!
//! Every access to what threads share is a relaxed atomic load or store of one number, which
//! compiles to a plain move. So no thread sees half a number, and what another one adds meanwhile
//! may be lost. Rows that most rows of data name would go from cache to cache with every step: each
//! thread may keep copies of those, whose changes are added up now and then.

use super::error::OptimizerError;
use super::hot_rows::{HotRows, HotSlots};
use super::numbers::{load, load_state, store, store_state};
use super::rows::{StateOf, StepOf};
use super::spec::ParameterSpec;
use super::updater::Updater;
use crate::error::Result;
use crate::model::Model;
use nnz_arrays::parameter_memory::{self, Aligned, Table};
use nnz_device::prefetch::AHEAD;
use nnz_device::prefetch::prefetch_at;
use nnz_optim::{LazyUpdate, StateBlock, Step, UpdateRule};
use num_traits::Zero;
use sparse_core::element::Float;
use sparse_core::storage::Storage;
use std::hint::select_unpredictable;
use std::marker::PhantomData;
use std::slice;
use std::sync::{Arc, Mutex, PoisonError};

/// Why threads cannot share the weights and states of a rule, where they cannot; with copies of
/// rows, if `copies`.
pub fn why_not_racing<R: UpdateRule, T: Float>(rule: &R, copies: bool) -> Option<&'static str> {
    type State<R, T> = StateOf<R, T>;
    let step = rule.step::<T::Accumulator>(rule.learning_rate(), 1.0, 0);
    let has_states = !StepOf::<R, T>::OPTIONAL_STATE || step.uses_state();
    // Numbers and nothing else: no padding.
    let n_numbers = State::<R, T>::default().values().count();
    let is_numbers = size_of::<State<R, T>>() == n_numbers * size_of::<T::Accumulator>();
    if R::CORRECTS {
        Some("a mean gradient belongs to steps that are made one after the other")
    } else if StepOf::<R, T>::BY_NORMS {
        Some("a step depends on norms of the whole parameter; use a rule such as `AdaGrad`")
    } else if State::<R, T>::BY_ROW || !is_numbers {
        Some("its state is not that of one weight; use a rule such as `AdaGrad`")
    } else if rule.lazy_update() != LazyUpdate::Touched && step.idle().changes() {
        Some(
            "steps change rows that they do not touch, of which threads do not tell each other; choose `LazyUpdate::Touched`",
        )
    } else if copies && has_states && !StepOf::<R, T>::CHANGES_ADD {
        Some("changes of its state cannot be added up; choose `hot_rows(0)`")
    } else {
        None
    }
}

/// Where the rows of a table lie.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Layout {
    row_size: usize,
    /// Bytes from one row to the next.
    stride: usize,
    /// Bytes from a row's weights to its states.
    states: usize,
    /// The numbers that a weight's state is made of; 0 where the rule keeps none.
    n_numbers: usize,
}

impl Layout {
    /// Of a table of rows of `row_size` elements: with the states of rule `R` beside them, or
    /// weights alone.
    #[inline(always)]
    const fn of<R: UpdateRule, T: Float>(row_size: usize, has_states: bool) -> Layout {
        if has_states {
            let blocks = parameter_memory::Layout::of::<T, StateOf<R, T>>(row_size, row_size);
            let n_numbers = size_of::<StateOf<R, T>>() / size_of::<T::Accumulator>();
            return Layout { row_size, stride: blocks.stride, states: blocks.states, n_numbers };
        }
        let stride = row_size * size_of::<T>();
        Layout { row_size, stride, states: stride, n_numbers: 0 }
    }

    /// The weights and the numbers of the states of a row.
    fn numbers_of_row(self) -> usize {
        self.row_size * (1 + self.n_numbers)
    }

    /// Whether rows are the [numbers](Self::get) of the first, then those of the second, and so on,
    /// all of them accumulators.
    fn is_run_of<T: Float>(self) -> bool {
        let size = size_of::<T::Accumulator>();
        size_of::<T>() == size && self.stride == self.numbers_of_row() * size
    }

    /// Number `number` of a row that starts at `row`.
    ///
    /// # Safety
    ///
    /// A row lies there as this says, with such a number, and other threads access it by [`load`]
    /// and [`store`] only.
    unsafe fn get<T: Float>(self, row: *mut u8, number: usize) -> T::Accumulator {
        // SAFETY: promised by the caller.
        unsafe {
            match number.checked_sub(self.row_size) {
                None => load(row.cast::<T>().add(number)).widen(),
                Some(number) => load(row.add(self.states).cast::<T::Accumulator>().add(number)),
            }
        }
    }

    /// Sets what [`get`](Self::get) gives.
    ///
    /// # Safety
    ///
    /// As there.
    unsafe fn set<T: Float>(self, row: *mut u8, number: usize, value: T::Accumulator) {
        // SAFETY: promised by the caller.
        unsafe {
            match number.checked_sub(self.row_size) {
                None => store(row.cast::<T>().add(number), T::narrow(value)),
                Some(number) => {
                    store(row.add(self.states).cast::<T::Accumulator>().add(number), value)
                }
            }
        }
    }
}

/// What threads share: a table, which is theirs alone, and what their copies of rows and of dense
/// parameters have come to.
///
/// Invariant: the rows of `table` lie from `first` on, as `layout` says; `hot` are rows of it.
pub struct Shared<T: Float> {
    table: Table<T>,
    first: *mut u8,
    layout: Layout,
    hot: HotRows,
    merged: Mutex<Merged<T>>,
}

// SAFETY: what `first` leads to is accessed by `load` and `store` alone while several threads have
// this, and `table` not at all.
unsafe impl<T: Float> Sync for Shared<T> {}
// SAFETY: `first` leads into memory of `table`, which may be sent.
unsafe impl<T: Float> Send for Shared<T> {}

struct Merged<T: Float> {
    /// The numbers of the hot rows by slot; zeros where none is.
    hot: Vec<T::Accumulator>,
    /// The parameters with dense gradients.
    dense: Vec<T>,
}

impl<T: Float> Shared<T> {
    /// A table for the threads of an epoch, given by the updater that keeps its states there, and
    /// the present values of the model's parameters with dense gradients. O(numbers of the hot
    /// rows), in the first epoch O(values).
    pub fn new<R: UpdateRule, M: Model<Element = T>>(
        updater: &Updater<R, T>,
        parameter: usize,
        mut table: Table<T>,
        model: &mut M,
        hot: HotRows,
    ) -> Self {
        let blocks = updater.blocks_of(parameter, &mut table);
        let layout = Layout::of::<R, T>(table.row_size(), blocks.is_some());
        let first = blocks.unwrap_or_else(|| table.values_mut().as_mut_ptr().cast());
        let n_numbers = layout.numbers_of_row();
        let zero = T::zero().widen();
        let mut merged = Merged { hot: vec![zero; hot.n_slots() * n_numbers], dense: Vec::new() };
        visit_dense(model, |value| merged.dense.push(*value));
        for (slot, row) in hot.rows() {
            for (number, value) in
                merged.hot[slot * n_numbers..][..n_numbers].iter_mut().enumerate()
            {
                // SAFETY: the rows lie there, and no other thread has the table yet.
                *value = unsafe { layout.get::<T>(first.add(row * layout.stride), number) };
            }
        }
        let step = updater.groups[updater.parameters[parameter].group].step;
        for row in merged.hot.chunks_exact_mut(n_numbers.max(1)) {
            imply_states::<R, T>(&step, row.split_at_mut(layout.row_size), layout.n_numbers);
        }
        Shared { table, first, layout, hot, merged: Mutex::new(merged) }
    }

    /// The table with what the threads made of it, and the hot rows for the next epoch; the model
    /// gets what they made of its dense parameters.
    pub fn end<M: Model<Element = T>>(self, model: &mut M) -> (Table<T>, HotRows) {
        let merged = self.merged.into_inner().unwrap_or_else(PoisonError::into_inner);
        let mut dense = merged.dense.iter();
        visit_dense(model, |value| {
            if let Some(merged) = dense.next() {
                *value = *merged;
            }
        });
        let (layout, n_numbers) = (self.layout, self.layout.numbers_of_row());
        for (slot, row) in self.hot.rows() {
            for (number, value) in merged.hot[slot * n_numbers..][..n_numbers].iter().enumerate() {
                // SAFETY: the rows lie there, and no other thread has the table any more.
                unsafe { layout.set::<T>(self.first.add(row * layout.stride), number, *value) };
            }
        }
        (self.table, self.hot)
    }
}

/// Writes the [implied](Step::implied_state) states of weights that have none yet: changes from
/// them add up, while each of several threads would make them by itself. A weight has a state of so
/// many numbers.
fn imply_states<R: UpdateRule, T: Float>(
    step: &StepOf<R, T>,
    (weights, states): (&mut [T::Accumulator], &mut [T::Accumulator]),
    n_numbers: usize,
) {
    for (weight, state) in weights.iter().zip(states.chunks_exact_mut(n_numbers.max(1))) {
        if state.iter().all(Zero::is_zero)
            && let Some(implied) = step.implied_state(*weight)
        {
            state.iter_mut().zip(implied.values()).for_each(|(to, from)| *to = from);
        }
    }
}

/// Calls `visit` with each value of the parameters with dense gradients, in order.
fn visit_dense<M: Model>(model: &mut M, mut visit: impl FnMut(&mut M::Element)) {
    for (parameter, info) in model.parameters_mut().into_iter().zip(M::PARAMETERS) {
        if info.gradient == Some(Storage::Dense) {
            parameter.table.values_mut().iter_mut().for_each(&mut visit);
        }
    }
}

/// One thread's part in a [`Shared`] table: with its copies of hot rows.
///
/// Invariant: `own` has room for a row in each slot, of the layout shared.
#[derive(Clone)]
pub struct Racer<T: Float> {
    parameter: usize,
    shared: Arc<Shared<T>>,
    own: Aligned<u64>,
    ahead: PlacesAhead,
    /// What the copies were when they were last merged: of hot rows, and of parameters with dense
    /// gradients.
    hot_before: Vec<T::Accumulator>,
    dense_before: Vec<T>,
}

impl<T: Float> Racer<T> {
    /// With copies as the parameters are.
    pub fn new<M: Model<Element = T>>(
        parameter: usize,
        shared: &Arc<Shared<T>>,
        model: &mut M,
    ) -> Self {
        let bytes = shared.hot.n_slots() * shared.layout.stride;
        let mut racer = Racer {
            parameter,
            shared: Arc::clone(shared),
            own: Aligned::new(0, bytes.div_ceil(size_of::<u64>())),
            ahead: PlacesAhead::default(),
            hot_before: Vec::new(),
            dense_before: Vec::new(),
        };
        visit_dense(model, |_| racer.dense_before.push(T::zero()));
        visit_dense(model, |value| *value = T::zero());
        racer
            .hot_before
            .resize(shared.hot.n_slots() * shared.layout.numbers_of_row(), T::zero().widen());
        // Zeros that were merged before, so that the others' numbers are all that this finds.
        racer.merge(model);
        racer
    }

    /// Whether there is anything to be merged.
    pub fn merges(&self) -> bool {
        !self.hot_before.is_empty() || !self.dense_before.is_empty()
    }

    /// Adds what this thread has changed in its copies to what all have come to, and copies that.
    /// Waits for a thread that is at it: copies that are not merged grow old, and the changes of
    /// all threads would be added up as if each had been the only one. O(numbers of hot rows and of
    /// parameters with dense gradients).
    pub fn merge<M: Model<Element = T>>(&mut self, model: &mut M) {
        let shared = &*self.shared;
        let mut merged = shared.merged.lock().unwrap_or_else(PoisonError::into_inner);
        let Merged { hot, dense } = &mut *merged;
        let (layout, own) = (shared.layout, self.own.as_mut_ptr().cast::<u8>());
        let n_all = self.hot_before.len();
        let numbers = hot.iter_mut().zip(&mut self.hot_before);
        if layout.is_run_of::<T>() {
            // SAFETY: there is a copy for each slot, which is this thread's; they are accumulators,
            // one after the other, written by
            // `store` or zero.
            let own = unsafe { slice::from_raw_parts_mut(own.cast::<T::Accumulator>(), n_all) };
            for (own, (merged, before)) in own.iter_mut().zip(numbers) {
                *own = add_change(*own, merged, before);
            }
        } else {
            let n_numbers = layout.numbers_of_row();
            for (place, (merged, before)) in numbers.enumerate() {
                let (slot, number) = (place / n_numbers, place % n_numbers);
                // SAFETY: there is a copy for each slot, which is this thread's.
                unsafe {
                    let row = own.add(slot * layout.stride);
                    let all = add_change(layout.get::<T>(row, number), merged, before);
                    layout.set::<T>(row, number, all);
                }
            }
        }
        let mut dense = dense.iter_mut().zip(&mut self.dense_before);
        visit_dense(model, |value| {
            if let Some((merged, before)) = dense.next() {
                *value = add_change(*value, merged, before);
            }
        });
    }
}

/// Adds what a number has changed since it was merged `before` to what all have come to, and gives
/// that.
#[inline(always)]
fn add_change<F: Float>(own: F, merged: &mut F, before: &mut F) -> F {
    *merged += own - *before;
    *before = *merged;
    *merged
}

impl<T: Float> std::fmt::Debug for Racer<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (table, hot_rows) = (&self.shared.table, self.shared.hot.rows().count());
        f.debug_struct("Racer").field("table", table).field("hot_rows", &hot_rows).finish()
    }
}

impl<R: UpdateRule, T: Float> Updater<R, T> {
    /// Gives the steps that follow a part in a shared table, or takes it from them.
    pub fn set_racer(&mut self, racer: Option<Racer<T>>) {
        self.racer = racer;
    }

    /// The part in a shared table that steps have.
    pub fn racer_mut(&mut self) -> Option<&mut Racer<T>> {
        self.racer.as_mut()
    }

    /// The shared rows of a parameter during this step.
    ///
    /// # Errors
    ///
    /// [`OptimizerError::NotShared`] of any parameter but that of the [`Racer`].
    pub(crate) fn racing_rows(&mut self, parameter: usize) -> Result<RacingRows<'_, R, T>> {
        let record = self.record(parameter)?;
        let step = self.groups[record.group].step;
        let factor = step.gradient_factor().filter(|_| self.is_plain(parameter));
        let racer = self.racer.as_mut().filter(|racer| racer.parameter == parameter);
        let Some(Racer { shared, own, ahead, .. }) = racer else {
            return Err(not_shared::<R>(&self.parameters[parameter].spec));
        };
        Ok(RacingRows { step, factor, shared, own: own.as_mut_ptr().cast(), ahead })
    }
}

#[cold]
pub(super) fn not_shared<R: UpdateRule>(parameter: &ParameterSpec) -> crate::Error {
    OptimizerError::NotShared { parameter: parameter.name.to_string(), rule: R::NAME }.into()
}

/// What a step reads and updates of shared rows.
///
/// Invariant: `own` are the copies of a [`Racer`] of `shared`, which is borrowed for `'a`.
pub(crate) struct RacingRows<'a, R: UpdateRule, T: Float> {
    step: StepOf<R, T>,
    /// Of a rule that only adds.
    factor: Option<T::Accumulator>,
    shared: &'a Shared<T>,
    own: *mut u8,
    ahead: &'a mut PlacesAhead,
}

/// Where the rows lie that a row of data and those after it name.
pub(crate) type PlacesAhead = [Vec<Place>; AHEAD + 1];

/// Where a row lies that a thread reads and updates: the shared one, or its own copy.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Place(*mut u8);

// SAFETY: an address, and nothing more: who reads or writes there says why it may.
unsafe impl Send for Place {}
// SAFETY: as above.
unsafe impl Sync for Place {}

impl<'a, R: UpdateRule, T: Float> RacingRows<'a, R, T> {
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
    ) -> (RacingCursor<'a, R, T, PLAIN, COPIES>, &'a mut PlacesAhead) {
        let Shared { first, layout: shared, hot, .. } = self.shared;
        let optional = StepOf::<R, T>::OPTIONAL_STATE;
        let layout = Layout::of::<R, T>(row_size, !PLAIN && (!optional || shared.n_numbers > 0));
        assert!(layout == *shared && PLAIN == self.is_plain() && COPIES == self.has_copies());
        let cursor = RacingCursor {
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
/// Invariant: as [`RacingRows`].
pub(crate) struct RacingCursor<'a, R: UpdateRule, T: Float, const PLAIN: bool, const COPIES: bool> {
    step: StepOf<R, T>,
    factor: T::Accumulator,
    first: *mut u8,
    layout: Layout,
    hot: HotSlots<'a>,
    own: *mut u8,
    rows: PhantomData<&'a mut [T]>,
}

impl<R: UpdateRule, T: Float, const PLAIN: bool, const COPIES: bool> Clone
    for RacingCursor<'_, R, T, PLAIN, COPIES>
{
    #[inline(always)]
    fn clone(&self) -> Self {
        *self
    }
}

impl<R: UpdateRule, T: Float, const PLAIN: bool, const COPIES: bool> Copy
    for RacingCursor<'_, R, T, PLAIN, COPIES>
{
}

impl<R: UpdateRule, T: Float, const PLAIN: bool, const COPIES: bool>
    RacingCursor<'_, R, T, PLAIN, COPIES>
{
    /// Where a row lies, or this thread's copy of it.
    #[inline(always)]
    pub(crate) fn place(self, row: usize) -> Place {
        let shared = self.first.wrapping_add(row.wrapping_mul(self.layout.stride));
        if !COPIES {
            return Place(shared);
        }
        let (is_hot, slot) = self.hot.find(row);
        let own = self.own.wrapping_add(slot.wrapping_mul(self.layout.stride));
        // Many rows are hot, in no order that a processor could foresee.
        Place(select_unpredictable(is_hot, own, shared))
    }

    /// Asks for the memory at a place ahead of its use.
    #[inline(always)]
    pub(crate) fn prefetch(self, place: Place) {
        prefetch_at(place.0);
    }

    /// One weight.
    ///
    /// # Safety
    ///
    /// The place is [that](Self::place) of a row that is there, and `column < row_size`.
    #[inline(always)]
    pub(crate) unsafe fn value(self, place: Place, column: usize) -> T::Accumulator {
        // SAFETY: promised by the caller; the invariant.
        unsafe { load(place.0.cast::<T>().add(column)) }.widen()
    }

    /// One update of one element.
    ///
    /// # Safety
    ///
    /// As for [`value`](Self::value).
    #[inline(always)]
    pub(crate) unsafe fn update(self, place: Place, column: usize, grad: T::Accumulator) {
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

#[cfg(test)]
mod tests;

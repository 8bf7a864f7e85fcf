//! Rows that several threads read and update at once, without locks: Hogwild.
//!
//! Every access to what threads share is a relaxed atomic load or store of one number, which compiles to a plain move. So no thread sees
//! half a number, and what another one adds meanwhile may be lost. Rows that most rows of data name would go from cache to cache with
//! every step: each thread may keep copies of those, whose changes are added up now and then.

use super::error::OptimizerError;
use super::hot_rows::{HotRows, HotSlots};
use super::numbers::{load, load_state, store, store_state};
use super::rows::{StateOf, StepOf};
use super::updater::Updater;
use crate::error::Result;
use crate::formats::ColumnId;
use crate::model::Model;
use crate::prefetch::prefetch_at;
use crate::table::{self, Aligned, Table};
use sparse_core::element::Float;
use sparse_core::storage::Storage;
use sparse_core::update_rules::{LazyUpdate, StateBlock, Step, UpdateRule};
use std::hint::select_unpredictable;
use std::marker::PhantomData;
use std::sync::{Arc, Mutex, PoisonError};

/// Why threads cannot share the weights and states of a rule, where they cannot; with copies of rows, if `copies`.
pub(crate) fn why_not_racing<R: UpdateRule, T: Float>(
    rule: &R,
    copies: bool,
) -> Option<&'static str> {
    type State<R, T> = StateOf<R, T>;
    let step = rule.step::<T::Accumulator>(rule.learning_rate(), 1.0, 0);
    let has_states = !StepOf::<R, T>::OPTIONAL_STATE || step.uses_state();
    // Numbers and nothing else: no padding.
    let n_numbers = State::<R, T>::default().values().count();
    let is_numbers = size_of::<State<R, T>>() == n_numbers * size_of::<T::Accumulator>();
    if R::CORRECTS {
        Some("a mean gradient belongs to steps that are made one after the other")
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
    /// Of a table of rows of `row_size` elements: with the states of rule `R` beside them, or weights alone.
    #[inline(always)]
    const fn of<R: UpdateRule, T: Float>(row_size: usize, has_states: bool) -> Layout {
        if has_states {
            let blocks = table::Layout::of::<T, StateOf<R, T>>(row_size, row_size);
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

    /// Number `number` of a row that starts at `row`.
    ///
    /// # Safety
    ///
    /// A row lies there as this says, with such a number, and other threads access it by [`load`] and [`store`] only.
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

/// What threads share: a table, which is theirs alone, and what their copies of rows and of dense parameters have come to.
///
/// Invariant: the rows of `table` lie from `first` on, as `layout` says; `hot` are rows of it.
pub(crate) struct Shared<T: Float> {
    table: Table<T>,
    first: *mut u8,
    layout: Layout,
    hot: HotRows,
    merged: Mutex<Merged<T>>,
}

// SAFETY: what `first` leads to is accessed by `load` and `store` alone while several threads have this, and `table` not at all.
unsafe impl<T: Float> Sync for Shared<T> {}
// SAFETY: `first` leads into memory of `table`, which may be sent.
unsafe impl<T: Float> Send for Shared<T> {}

struct Merged<T: Float> {
    /// The numbers of the hot rows.
    hot: Vec<T::Accumulator>,
    /// The parameters with dense gradients.
    dense: Vec<T>,
}

impl<T: Float> Shared<T> {
    /// A table for the threads of an epoch, given by the updater that keeps its states there, and the present values of the model's parameters
    /// with dense gradients. O(numbers of the hot rows), in the first epoch O(values).
    pub(crate) fn new<R: UpdateRule, M: Model<Element = T>>(
        updater: &Updater<R, T>,
        parameter: usize,
        mut table: Table<T>,
        model: &mut M,
        hot: HotRows,
    ) -> Self {
        let blocks = updater.blocks_of(parameter, &mut table);
        let layout = Layout::of::<R, T>(table.row_size(), blocks.is_some());
        let first = blocks.unwrap_or_else(|| table.values_mut().as_mut_ptr().cast());
        let mut merged = Merged { hot: Vec::new(), dense: Vec::new() };
        visit_dense(model, |value| merged.dense.push(*value));
        for row in hot.rows() {
            // SAFETY: the rows lie there, and no other thread has the table yet.
            let numbers = (0..layout.numbers_of_row())
                .map(|number| unsafe { layout.get::<T>(first.add(row * layout.stride), number) });
            merged.hot.extend(numbers);
        }
        Shared { table, first, layout, hot, merged: Mutex::new(merged) }
    }

    /// The table with what the threads made of it, and the hot rows for the next epoch; the model gets what they made of its dense parameters.
    pub(crate) fn end<M: Model<Element = T>>(self, model: &mut M) -> (Table<T>, HotRows) {
        let merged = self.merged.into_inner().unwrap_or_else(PoisonError::into_inner);
        let mut dense = merged.dense.iter();
        visit_dense(model, |value| {
            if let Some(merged) = dense.next() {
                *value = *merged;
            }
        });
        let layout = self.layout;
        let numbers = merged.hot.chunks_exact(layout.numbers_of_row().max(1));
        for (row, numbers) in self.hot.rows().iter().zip(numbers) {
            for (number, value) in numbers.iter().enumerate() {
                // SAFETY: the rows lie there, and no other thread has the table any more.
                unsafe { layout.set::<T>(self.first.add(row * layout.stride), number, *value) };
            }
        }
        (self.table, self.hot)
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
/// Invariant: `own` has room for as many rows as are hot, of the layout shared.
#[derive(Clone)]
pub(crate) struct Racer<T: Float> {
    parameter: usize,
    shared: Arc<Shared<T>>,
    own: Aligned<u64>,
    /// What the copies were when they were last merged: of hot rows, and of parameters with dense gradients.
    hot_before: Vec<T::Accumulator>,
    dense_before: Vec<T>,
}

impl<T: Float> Racer<T> {
    /// With copies as the parameters are.
    pub(crate) fn new<M: Model<Element = T>>(
        parameter: usize,
        shared: &Arc<Shared<T>>,
        model: &mut M,
    ) -> Self {
        let bytes = shared.hot.rows().len() * shared.layout.stride;
        let mut racer = Racer {
            parameter,
            shared: Arc::clone(shared),
            own: Aligned::new(0, bytes.div_ceil(size_of::<u64>())),
            hot_before: Vec::new(),
            dense_before: Vec::new(),
        };
        visit_dense(model, |_| racer.dense_before.push(T::zero()));
        visit_dense(model, |value| *value = T::zero());
        racer
            .hot_before
            .resize(shared.hot.rows().len() * shared.layout.numbers_of_row(), T::zero().widen());
        // Zeros that were merged before, so that the others' numbers are all that this finds.
        racer.merge(model);
        racer
    }

    /// Whether there is anything to be merged.
    pub(crate) fn merges(&self) -> bool {
        !self.hot_before.is_empty() || !self.dense_before.is_empty()
    }

    /// Adds what this thread has changed in its copies to what all have come to, and copies that. Waits for a thread that is at it: copies that
    /// are not merged grow old, and the changes of all threads would be added up as if each had been the only one. O(numbers of hot
    /// rows and of parameters with dense gradients).
    pub(crate) fn merge<M: Model<Element = T>>(&mut self, model: &mut M) {
        let shared = &*self.shared;
        let mut merged = shared.merged.lock().unwrap_or_else(PoisonError::into_inner);
        let Merged { hot, dense } = &mut *merged;
        let (layout, own) = (shared.layout, self.own.as_mut_ptr().cast::<u8>());
        let n_numbers = layout.numbers_of_row().max(1);
        let rows = hot.chunks_exact_mut(n_numbers).zip(self.hot_before.chunks_exact_mut(n_numbers));
        for (place, (merged, before)) in rows.enumerate() {
            for (number, (merged, before)) in merged.iter_mut().zip(before).enumerate() {
                // SAFETY: there is a copy for each hot row; it is this thread's.
                unsafe {
                    let row = own.add(place * layout.stride);
                    *merged += layout.get::<T>(row, number) - *before;
                    *before = *merged;
                    layout.set::<T>(row, number, *merged);
                }
            }
        }
        let mut dense = dense.iter_mut().zip(&mut self.dense_before);
        visit_dense(model, |value| {
            if let Some((merged, before)) = dense.next() {
                *merged += *value - *before;
                *before = *merged;
                *value = *merged;
            }
        });
    }
}

impl<T: Float> std::fmt::Debug for Racer<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (table, hot_rows) = (&self.shared.table, self.shared.hot.rows().len());
        f.debug_struct("Racer").field("table", table).field("hot_rows", &hot_rows).finish()
    }
}

impl<R: UpdateRule, T: Float> Updater<R, T> {
    /// Gives the steps that follow a part in a shared table, or takes it from them.
    pub(crate) fn set_racer(&mut self, racer: Option<Racer<T>>) {
        self.racer = racer;
    }

    /// The part in a shared table that steps have.
    pub(crate) fn racer_mut(&mut self) -> Option<&mut Racer<T>> {
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
        let own = match &mut self.racer {
            Some(racer) if racer.parameter == parameter => racer.own.as_mut_ptr().cast(),
            _ => return Err(self.not_shared(parameter)),
        };
        let Some(racer) = &self.racer else { return Err(self.not_shared(parameter)) };
        Ok(RacingRows { step, factor, shared: &racer.shared, own })
    }

    #[cold]
    pub(super) fn not_shared(&self, parameter: usize) -> crate::Error {
        let parameter = self.parameters[parameter].spec.name.to_string();
        OptimizerError::NotShared { parameter, rule: R::NAME }.into()
    }
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
}

impl<'a, R: UpdateRule, T: Float> RacingRows<'a, R, T> {
    /// The rows of the table.
    pub(crate) fn n_rows(&self) -> usize {
        self.shared.table.n_rows()
    }

    /// The elements of a row.
    pub(crate) fn row_size(&self) -> usize {
        self.shared.layout.row_size
    }

    /// Bytes of the table.
    pub(crate) fn bytes(&self) -> usize {
        self.n_rows() * self.shared.layout.stride
    }

    /// Whether the rule only adds a multiple of the gradient.
    pub(crate) fn is_plain(&self) -> bool {
        self.factor.is_some()
    }

    /// Whether this thread has copies of rows.
    pub(crate) fn has_copies(&self) -> bool {
        !self.shared.hot.rows().is_empty()
    }

    /// The rows for an innermost loop, of a size that the compiler may know, which knows as well whether the rule [only adds](Self::is_plain)
    /// and whether there are [copies](Self::has_copies).
    ///
    /// # Panics
    ///
    /// If any of these is not so.
    #[inline(always)]
    pub(crate) fn cursor<const PLAIN: bool, const COPIES: bool>(
        &self,
        row_size: usize,
    ) -> RacingCursor<'a, R, T, PLAIN, COPIES> {
        let Shared { first, layout: shared, hot, .. } = self.shared;
        let optional = StepOf::<R, T>::OPTIONAL_STATE;
        let layout = Layout::of::<R, T>(row_size, !PLAIN && (!optional || shared.n_numbers > 0));
        assert!(layout == *shared && PLAIN == self.is_plain() && COPIES == self.has_copies());
        RacingCursor {
            step: self.step,
            factor: self.factor.unwrap_or(T::zero().widen()),
            first: *first,
            layout,
            hot: hot.slots(),
            own: self.own,
            rows: PhantomData,
        }
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
    /// Asks for the memory of some rows ahead of their use. Any will do.
    #[inline(always)]
    pub(crate) fn prefetch_each<I: ColumnId>(self, ids: &[I]) {
        for id in ids {
            prefetch_at(self.first.wrapping_add(id.at().wrapping_mul(self.layout.stride)));
        }
    }

    /// Where a row starts, or this thread's copy.
    #[inline(always)]
    fn row(self, row: usize) -> *mut u8 {
        let shared = self.first.wrapping_add(row.wrapping_mul(self.layout.stride));
        if !COPIES {
            return shared;
        }
        let (is_hot, place) = self.hot.place(row);
        let own = self.own.wrapping_add(place.wrapping_mul(self.layout.stride));
        // Many rows are hot, in no order that a processor could foresee.
        select_unpredictable(is_hot, own, shared)
    }

    /// One weight.
    ///
    /// # Safety
    ///
    /// `row < n_rows` and `column < row_size`.
    #[inline(always)]
    pub(crate) unsafe fn value(self, row: usize, column: usize) -> T::Accumulator {
        // SAFETY: promised by the caller; the invariant.
        unsafe { load(self.row(row).cast::<T>().add(column)) }.widen()
    }

    /// One update of one element.
    ///
    /// # Safety
    ///
    /// `row < n_rows` and `column < row_size`.
    #[inline(always)]
    pub(crate) unsafe fn update(self, row: usize, column: usize, grad: T::Accumulator) {
        let row = self.row(row);
        // SAFETY: promised by the caller; the invariant.
        unsafe {
            let at = row.cast::<T>().add(column);
            let mut weight = load(at).widen();
            if PLAIN {
                weight += self.factor * grad;
            } else if self.layout.n_numbers == 0 {
                self.step.update(&mut weight, &mut Default::default(), grad);
            } else {
                let states = row.add(self.layout.states).cast::<StateOf<R, T>>().add(column);
                let mut state = load_state::<_, T::Accumulator>(states);
                self.step.update(&mut weight, &mut state, grad);
                store_state::<_, T::Accumulator>(states, state);
            }
            store(at, T::narrow(weight));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use sparse_core::update_rules::{AdaGrad, Adam, Ftrl, GroupAdaGrad, Sgd, Svrg};

    #[test]
    fn rules_that_threads_cannot_share() {
        fn shares<R: UpdateRule>(rule: R, copies: bool) -> bool {
            why_not_racing::<R, f32>(&rule, copies).is_none()
        }
        let momentum = Sgd { momentum: 0.9, ..Sgd::default() };
        let touched = Sgd { lazy_update: LazyUpdate::Touched, ..momentum.clone() };
        let penalised = AdaGrad { l1: 0.1, ..AdaGrad::default() };
        let adam = Adam { lazy_update: LazyUpdate::Touched, ..Adam::default() };
        let leader = Ftrl { lazy_update: LazyUpdate::Touched, ..Ftrl::default() };
        for copies in [false, true] {
            assert!(shares(Sgd::default(), copies) && shares(AdaGrad::default(), copies));
            assert!(shares(leader.clone(), copies));
            assert!(!shares(momentum.clone(), copies) && !shares(penalised.clone(), copies));
            assert!(
                !shares(Svrg::<Sgd>::default(), copies) && !shares(GroupAdaGrad::default(), copies)
            );
            // Momentum and decaying means do not add up.
            assert_eq!(
                (shares(touched.clone(), copies), shares(adam.clone(), copies)),
                (!copies, !copies)
            );
        }
    }
}

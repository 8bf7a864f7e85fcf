//! Row cursors: table rows for the innermost loops.

use super::accumulator::RowAccumulator;
use super::memory::Places;
use super::update_kind::{StateOf, StepOf, UpdateKind, on_weight};
use nnz_device::prefetch::prefetch_row;
use nnz_device::simd;
use nnz_optim::{StateBlock, Step, UpdateRule};
use sparse_core::element::Float;
use std::marker::PhantomData;
use std::slice;

/// Addresses and a step, by value: nothing here has an address of its own that a store to a weight
/// might change, so that a loop over rows keeps all of it in registers. It neither settles rows nor
/// notes that they were updated: that is its [`RowUpdater`](super::RowUpdater)'s to do, before and
/// after the loop.
///
/// Invariant: `places` are those of `n_rows` rows which the `RowUpdater` that gave this has
/// borrowed for `'a`.
pub(crate) struct RowCursor<'a, R: UpdateRule, T: Float, K> {
    pub(super) places: Places<T, StateOf<R, T>>,
    pub(super) step: StepOf<R, T>,
    pub(super) factor: T::Accumulator,
    pub(super) rows: PhantomData<(&'a mut [T], K)>,
}

/// Elements of a row: weights, states, and what is given for each.
type Elements<'r, T, S, V> = (&'r mut [T], &'r mut [S], &'r [V]);

/// What a product reads of rows.
pub(crate) trait ReadRows<'a, T>: Copy {
    /// The weights of a row, until it is written.
    ///
    /// # Safety
    ///
    /// `row < n_rows`, and the row is not written while the slice is there.
    unsafe fn row(self, row: usize) -> &'a [T];

    /// One weight.
    ///
    /// # Safety
    ///
    /// `row < n_rows` and `column < row_size`.
    unsafe fn value(self, row: usize, column: usize) -> T;
}

impl<R: UpdateRule, T: Float, K> Clone for RowCursor<'_, R, T, K> {
    #[inline(always)]
    fn clone(&self) -> Self {
        *self
    }
}

impl<R: UpdateRule, T: Float, K> Copy for RowCursor<'_, R, T, K> {}

impl<'a, R: UpdateRule, T: Float, K: UpdateKind> ReadRows<'a, T> for RowCursor<'a, R, T, K> {
    #[inline(always)]
    unsafe fn row(self, row: usize) -> &'a [T] {
        // SAFETY: promised by the caller; the invariant.
        unsafe { slice::from_raw_parts(self.places.weights(row), self.places.row_size) }
    }

    #[inline(always)]
    unsafe fn value(self, row: usize, column: usize) -> T {
        // SAFETY: promised by the caller; the invariant.
        unsafe { *self.places.weights(row).add(column) }
    }
}

impl<R: UpdateRule, T: Float, K: UpdateKind> RowCursor<'_, R, T, K> {
    /// True where a row has one state, so that it is to be updated as a whole.
    pub(crate) const BY_ROW: bool = <StateOf<R, T> as StateBlock<T::Accumulator>>::BY_ROW;

    /// Asks for the memory of a row ahead of its use. Any row will do: one outside is ignored.
    #[inline(always)]
    pub(crate) fn prefetch(self, row: usize) {
        prefetch_row(self.places.weights_wrapping(row), self.places.stride);
        if !K::PLAIN && !K::BESIDE && self.places.has_states {
            prefetch_row(self.places.states_wrapping(row), self.places.state_stride);
        }
    }

    /// The same rows for a loop that asks for none of the rule's options, where the step makes use
    /// of none.
    #[inline(always)]
    pub(crate) fn without_options(self) -> Option<Self> {
        if !K::BESIDE || !StepOf::<R, T>::HAS_OPTIONS {
            return None;
        }
        Some(RowCursor { step: self.step.without_options()?, ..self })
    }

    /// The same rows, of one weight each, so that the compiler knows how they lie where the states
    /// lie beside the weights.
    #[inline(always)]
    pub(crate) fn of_one_weight(self) -> Self {
        if K::BESIDE {
            RowCursor { places: self.places.known_to_lie::<K>(1), ..self }
        } else {
            self
        }
    }

    /// The same rows, of a size that the compiler may know, and with it how they lie if the states
    /// lie beside the weights.
    ///
    /// # Panics
    ///
    /// If `row_size` is not that of the parameter.
    #[inline(always)]
    pub(crate) fn of_size(self, row_size: usize) -> Self {
        assert_eq!(row_size, self.places.row_size, "the elements of a row");
        let mut places = self.places;
        if K::BESIDE {
            places = places.known_to_lie::<K>(row_size);
        }
        places.row_size = row_size;
        RowCursor { places, ..self }
    }

    /// The same rows for a loop that only gathers gradients, where the step does.
    #[inline(always)]
    pub(crate) fn only_gathers(self) -> Option<Self> {
        if !K::BESIDE || !R::CORRECTS {
            return None;
        }
        Some(RowCursor { step: self.step.only_gathers()?, ..self })
    }

    /// Of a [`Plain`](super::Plain) rule, what its updates multiply the gradient with: a loop can
    /// do so once for a row of data, and then only [add](Self::add_row). `None` of any other.
    #[inline(always)]
    pub(crate) fn plain_factor(self) -> Option<T::Accumulator> {
        K::PLAIN.then_some(self.factor)
    }

    /// `weight += change(given)` for each element of a row and of `given`, in place of an update
    /// whose gradient, times [`plain_factor`](Self::plain_factor), is the change.
    ///
    /// # Safety
    ///
    /// `row < n_rows`, and `given` has `row_size` elements.
    #[inline(always)]
    pub(crate) unsafe fn add_row(
        self,
        row: usize,
        given: &[T::Accumulator],
        change: impl Fn(T::Accumulator) -> T::Accumulator,
    ) {
        // SAFETY: promised by the caller.
        add_each(unsafe { self.weights_to_add_to(row, given.len()) }, given, change);
    }

    /// The weights of a row of so many, of a rule that only adds to them.
    ///
    /// # Safety
    ///
    /// `row < n_rows`, and nothing else refers to the row while the slice is there.
    #[inline(always)]
    unsafe fn weights_to_add_to<'w>(self, row: usize, row_size: usize) -> &'w mut [T] {
        debug_assert!(K::PLAIN, "the rule does more than to add");
        debug_assert_eq!(row_size, self.places.row_size);
        // SAFETY: promised by the caller; the invariant.
        unsafe { slice::from_raw_parts_mut(self.places.weights(row), self.places.row_size) }
    }

    /// One update of one element.
    ///
    /// # Safety
    ///
    /// `row < n_rows` and `column < row_size`.
    #[inline(always)]
    pub(crate) unsafe fn update(self, row: usize, column: usize, grad: T::Accumulator) {
        // SAFETY: promised by the caller.
        unsafe { self.update_by(row, column, |_| grad) };
    }

    /// [`update`](Self::update) of one element with a gradient that depends on the weight. To the
    /// state of a row the gradients of its other elements count as 0.
    ///
    /// # Safety
    ///
    /// `row < n_rows` and `column < row_size`.
    #[inline(always)]
    pub(crate) unsafe fn update_by(
        self,
        row: usize,
        column: usize,
        grad: impl FnOnce(T::Accumulator) -> T::Accumulator,
    ) {
        // SAFETY: promised by the caller; the invariant. The only references to these two, for the
        // length of this call.
        unsafe {
            let weight = &mut *self.places.weights(row).add(column);
            if Self::BY_ROW {
                let state = &mut *self.places.states(row);
                let row_size = T::Accumulator::of(self.places.row_size as f64);
                return on_weight(weight, |weight| {
                    let grad = grad(*weight);
                    self.step.begin_row(state, self.step.row_term(grad) / row_size);
                    self.step.update(weight, state, grad);
                });
            }
            if K::PLAIN {
                on_weight(weight, |weight| *weight += self.factor * grad(*weight));
            } else if K::BESIDE || self.places.has_states {
                let state = &mut *self.places.states(row).add(column);
                on_weight(weight, |weight| {
                    let grad = grad(*weight);
                    self.step.update(weight, state, grad);
                });
            } else {
                on_weight(weight, |weight| {
                    let grad = grad(*weight);
                    self.step.update(weight, &mut Default::default(), grad);
                });
            }
        }
    }

    /// Updates rows of one weight, each with its gradient: `row` and `grad` of each place.
    ///
    /// # Safety
    ///
    /// The rows of all places below `n_places` are below `n_rows`, and no two are the same.
    #[inline(always)]
    pub(crate) unsafe fn update_each(
        self,
        n_places: usize,
        row: impl Fn(usize) -> usize,
        grad: impl Fn(usize) -> T::Accumulator,
    ) {
        debug_assert_eq!(self.places.row_size, 1);
        #[cfg(target_arch = "x86_64")]
        // SAFETY: promised by the caller.
        let done = unsafe { self.update_by_avx512(n_places, &row, &grad) };
        #[cfg(not(target_arch = "x86_64"))]
        let done = 0;
        // A copy that no reference leads to stays in registers.
        let rows = self.of_one_weight();
        for place in done..n_places {
            // SAFETY: promised by the caller.
            unsafe { rows.update(row(place), 0, grad(place)) };
        }
    }

    /// Updates a whole row, with `grad(given, weight)` for each element of the row and of `given`.
    ///
    /// # Safety
    ///
    /// `row < n_rows`, and `given` has `row_size` elements.
    #[inline(always)]
    pub(crate) unsafe fn update_row_by<V: Copy>(
        self,
        row: usize,
        given: &[V],
        mut grad: impl FnMut(V, T::Accumulator) -> T::Accumulator,
    ) {
        let size = self.places.row_size;
        debug_assert_eq!(given.len(), size);
        // SAFETY: promised by the caller; the invariant. Weights and states do not overlap, and
        // nothing else refers to them for the length of this call.
        unsafe {
            let weights = slice::from_raw_parts_mut(self.places.weights(row), size);
            if Self::BY_ROW {
                let state = &mut *self.places.states(row);
                return by_row(&self.step, weights, state, given, grad);
            }
            if K::PLAIN {
                for (weight, given) in weights.iter_mut().zip(given) {
                    on_weight(weight, |weight| *weight += self.factor * grad(*given, *weight));
                }
            } else if K::BESIDE || self.places.has_states {
                let states = slice::from_raw_parts_mut(self.places.states(row), size);
                for ((weight, state), given) in weights.iter_mut().zip(states).zip(given) {
                    on_weight(weight, |weight| {
                        let grad = grad(*given, *weight);
                        self.step.update(weight, state, grad);
                    });
                }
            } else {
                for (weight, given) in weights.iter_mut().zip(given) {
                    on_weight(weight, |weight| {
                        let grad = grad(*given, *weight);
                        self.step.update(weight, &mut Default::default(), grad);
                    });
                }
            }
        }
    }
}

impl<R: UpdateRule, T: Float, K: UpdateKind> RowCursor<'_, R, T, K> {
    /// [`update_row_by`](Self::update_row_by), of eight elements at a time. No other pointer leads
    /// to the copies that are updated, so that the compiler makes vectors of them. For rows that
    /// were not written just before: they would be waited for as a whole.
    ///
    /// # Safety
    ///
    /// As there.
    #[inline(always)]
    pub(crate) unsafe fn update_row_in_eights<V: Copy>(
        self,
        row: usize,
        given: &[V],
        mut grad: impl FnMut(V, T::Accumulator) -> T::Accumulator,
    ) {
        // SAFETY: promised by the caller.
        unsafe { self.update_row_in_vectors::<false, V>(row, given, &mut grad) };
    }

    /// The same, as many sixteens of it as there are before: for a loop that
    /// [has vectors of them](nnz_device::simd::in_sixteens).
    ///
    /// # Safety
    ///
    /// As there.
    #[inline(always)]
    pub(crate) unsafe fn update_row_in_sixteens<V: Copy>(
        self,
        row: usize,
        given: &[V],
        mut grad: impl FnMut(V, T::Accumulator) -> T::Accumulator,
    ) {
        // SAFETY: promised by the caller.
        unsafe { self.update_row_in_vectors::<true, V>(row, given, &mut grad) };
    }

    /// # Safety
    ///
    /// As for [`update_row_in_eights`](Self::update_row_in_eights).
    #[inline(always)]
    unsafe fn update_row_in_vectors<const SIXTEENS: bool, V: Copy>(
        self,
        row: usize,
        given: &[V],
        grad: &mut impl FnMut(V, T::Accumulator) -> T::Accumulator,
    ) {
        if K::PLAIN && self.places.row_size >= 8 {
            // SAFETY: promised by the caller.
            let weights = unsafe { self.weights_to_add_to(row, given.len()) };
            let rest = self.add_chunks::<8, V>((weights, given), grad);
            self.add_chunks::<1, V>(rest, grad);
            return;
        }
        if Self::BY_ROW || !K::BESIDE || self.places.row_size < 8 {
            // SAFETY: promised by the caller.
            return unsafe { self.update_row_by(row, given, grad) };
        }
        // SAFETY: promised by the caller; nothing else refers to the row for the length of this
        // call.
        let mut rest = unsafe { self.elements(row, given) };
        if SIXTEENS {
            rest = self.update_chunks::<16, V>(rest, grad);
        }
        let rest = self.update_chunks::<8, V>(rest, grad);
        let rest = self.update_chunks::<4, V>(rest, grad);
        self.update_chunks::<1, V>(rest, grad);
    }

    /// Updates elements by a rule that only adds, `CHUNK` at a time, and gives what is left
    /// over.
    #[inline(always)]
    fn add_chunks<'r, const CHUNK: usize, V: Copy>(
        &self,
        (weights, given): (&'r mut [T], &'r [V]),
        grad: &mut impl FnMut(V, T::Accumulator) -> T::Accumulator,
    ) -> (&'r mut [T], &'r [V]) {
        let (weights, weights_rest) = weights.as_chunks_mut::<CHUNK>();
        let (given, given_rest) = given.as_chunks::<CHUNK>();
        for (weights, given) in weights.iter_mut().zip(given) {
            let (mut new_weights, given) = (*weights, *given);
            for (weight, given) in new_weights.iter_mut().zip(given) {
                on_weight(weight, |weight| *weight += self.factor * grad(given, *weight));
            }
            *weights = new_weights;
        }
        (weights_rest, given_rest)
    }

    /// The weights and states of a row, with what is given for each.
    ///
    /// # Safety
    ///
    /// The row is below `n_rows`, nothing else refers to it, states lie beside weights, and `given`
    /// has as many elements.
    #[inline(always)]
    unsafe fn elements<'r, V>(
        self,
        row: usize,
        given: &'r [V],
    ) -> Elements<'r, T, StateOf<R, T>, V> {
        let size = self.places.row_size;
        debug_assert_eq!(given.len(), size);
        // SAFETY: promised by the caller; the invariant. Weights and states do not overlap.
        unsafe {
            let states = slice::from_raw_parts_mut(self.places.states(row), size);
            (slice::from_raw_parts_mut(self.places.weights(row), size), states, given)
        }
    }

    /// Updates elements, `CHUNK` at a time, and gives what is left over.
    #[inline(always)]
    fn update_chunks<'r, const CHUNK: usize, V: Copy>(
        self,
        (weights, states, given): Elements<'r, T, StateOf<R, T>, V>,
        grad: &mut impl FnMut(V, T::Accumulator) -> T::Accumulator,
    ) -> Elements<'r, T, StateOf<R, T>, V> {
        let (weights, weights_rest) = weights.as_chunks_mut::<CHUNK>();
        let (states, states_rest) = states.as_chunks_mut::<CHUNK>();
        let (given, given_rest) = given.as_chunks::<CHUNK>();
        for ((weights, states), given) in weights.iter_mut().zip(states).zip(given) {
            let (mut new_weights, mut new_states, given) = (*weights, *states, *given);
            for place in 0..CHUNK {
                on_weight(&mut new_weights[place], |weight| {
                    let grad = grad(given[place], *weight);
                    self.step.update(weight, &mut new_states[place], grad);
                });
            }
            (*weights, *states) = (new_weights, new_states);
        }
        (weights_rest, states_rest, given_rest)
    }

    /// Updates some rows, each with its sum, which is rounded once. In one copy for a rule, whoever
    /// has summed gradients.
    ///
    /// # Safety
    ///
    /// Each row is below `n_rows` and named once, `row_size` is that of the rows, and there are so
    /// many sums.
    #[inline(never)]
    pub(super) unsafe fn update_rows(self, row_size: usize, sums: SumsOfRows<'_>) {
        /// Rows that are updated while the memory of as many more is asked for.
        const ROWS_AHEAD: usize = 32;
        let rows = sums.rows;
        if row_size == 1 {
            // One is asked for as another one is updated: of many at once, most wait for each
            // other.
            // SAFETY: promised by the caller; places are below the number of both.
            unsafe {
                self.update_each(
                    rows.len(),
                    #[inline(always)]
                    |place| {
                        if let Some(row) = rows.get(place + ROWS_AHEAD) {
                            self.of_one_weight().prefetch(*row);
                        }
                        *rows.get_unchecked(place)
                    },
                    #[inline(always)]
                    |place| T::Accumulator::of(sums.of(place, 1)[0]),
                );
            }
            return;
        }
        simd::wide(
            #[inline(always)]
            || {
                for chunk in (0..rows.len()).step_by(ROWS_AHEAD) {
                    let end = rows.len().min(chunk + ROWS_AHEAD);
                    // Not by `for_each`, which may be a call.
                    for row in &rows[end..rows.len().min(end + ROWS_AHEAD)] {
                        self.prefetch(*row);
                    }
                    for (place, row) in rows.iter().enumerate().take(end).skip(chunk) {
                        // SAFETY: promised by the caller.
                        unsafe {
                            let grad = sums.of(place, row_size);
                            self.update_row_in_eights(*row, grad, |grad, _| {
                                T::Accumulator::of(grad)
                            });
                        }
                    }
                }
            },
        );
    }
}

/// The sums of some rows, which may lie among other numbers.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SumsOfRows<'s> {
    pub(crate) rows: &'s [usize],
    /// The sum of the first row begins here.
    pub(crate) sums: &'s [f64],
    /// The numbers from the sum of a row to that of the next one.
    pub(crate) stride: usize,
}

impl<'s> SumsOfRows<'s> {
    /// The sums of all rows of an accumulator.
    pub(super) fn of_all(sums: &'s RowAccumulator) -> Self {
        SumsOfRows { rows: sums.rows(), sums: sums.values(), stride: sums.row_size() }
    }

    /// The sum of a row.
    ///
    /// # Safety
    ///
    /// There is a row of this place, with as many elements.
    #[inline(always)]
    unsafe fn of(&self, place: usize, row_size: usize) -> &'s [f64] {
        let first = place * self.stride;
        debug_assert!(place < self.rows.len() && first + row_size <= self.sums.len());
        // SAFETY: promised by the caller.
        unsafe { self.sums.get_unchecked(first..first + row_size) }
    }
}

/// `weight += change(given)`, for each.
#[inline(always)]
fn add_each<T: Float>(
    weights: &mut [T],
    given: &[T::Accumulator],
    change: impl Fn(T::Accumulator) -> T::Accumulator,
) {
    for (weight, given) in weights.iter_mut().zip(given) {
        on_weight(weight, |weight| *weight += change(*given));
    }
}

/// A step of a row of weights that have one state, with `grad(given, weight)` for each.
#[inline(always)]
pub(super) fn by_row<T: Float, S: Step<T::Accumulator>, V: Copy>(
    step: &S,
    weights: &mut [T],
    state: &mut S::State,
    given: &[V],
    mut grad: impl FnMut(V, T::Accumulator) -> T::Accumulator,
) {
    let mut sum = T::zero().widen();
    for (weight, given) in weights.iter().zip(given) {
        sum += step.row_term(grad(*given, weight.widen()));
    }
    // Of a row without elements there is nothing to be had.
    if !weights.is_empty() {
        step.begin_row(state, sum / T::Accumulator::of(weights.len() as f64));
    }
    for (weight, given) in weights.iter_mut().zip(given) {
        on_weight(weight, |weight| {
            let grad = grad(*given, *weight);
            step.update(weight, state, grad);
        });
    }
}

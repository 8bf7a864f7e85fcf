//! Idle steps of table rows, and updates that begin with one.

use super::cursor::RowCursor;
use super::update_kind::{IdleOf, StateOf, StepOf, UpdateKind, on_weight};
use nnz_optim::{MeanRun, Step, UpdateRule};
use sparse_core::element::Float;
use std::slice;

/// Weights that are changed at once.
const WEIGHTS_PER_CHUNK: usize = 8;

impl<R: UpdateRule, T: Float, K: UpdateKind> RowCursor<'_, R, T, K> {
    /// True where an update of the [usual](Self::without_options) step may be made in
    /// [two parts](Step::begin), each of which stores a weight without rounding it more.
    pub(crate) const HAS_TWO_PARTS: bool =
        K::BESIDE && StepOf::<R, T>::HAS_TWO_PARTS && size_of::<T>() == size_of::<T::Accumulator>();

    /// What idle steps do to a row, as one map; `in_pieces` makes them on a weight whose step
    /// [refuses](Step::try_idle) it.
    ///
    /// # Safety
    ///
    /// `row < n_rows`.
    #[inline(always)]
    pub(super) unsafe fn idle(
        self,
        row: usize,
        map: &IdleOf<R, T>,
        in_pieces: impl Fn(&mut T::Accumulator, &mut StateOf<R, T>),
    ) {
        let idle = |weight: &mut T::Accumulator, state: &mut StateOf<R, T>| {
            if !self.step.try_idle(map, weight, state) {
                in_pieces(weight, state);
            }
        };
        // SAFETY: promised by the caller.
        unsafe { self.change_each(row, idle) };
    }

    /// What idle steps do to a row, as a [run](nnz_optim::IdleMap::run);
    /// `otherwise` makes them on a weight that this is not right for.
    ///
    /// # Safety
    ///
    /// `row < n_rows`.
    #[inline(always)]
    pub(super) unsafe fn idle_by_run(
        self,
        row: usize,
        run: &MeanRun<T::Accumulator>,
        otherwise: impl Fn(&mut T::Accumulator, &mut StateOf<R, T>),
    ) {
        let idle = |weight: &mut T::Accumulator, state: &mut StateOf<R, T>| {
            if !self.step.try_run(run, weight, state) {
                otherwise(weight, state);
            }
        };
        if !K::BESIDE || Self::BY_ROW || self.places.row_size < WEIGHTS_PER_CHUNK {
            // SAFETY: promised by the caller.
            return unsafe { self.change_each(row, idle) };
        }
        let size = self.places.row_size;
        // SAFETY: promised by the caller; the invariant. Weights and states do not overlap, and
        // nothing else refers to them for the length of this call.
        let (weights, states) = unsafe {
            let states = slice::from_raw_parts_mut(self.places.states(row), size);
            (slice::from_raw_parts_mut(self.places.weights(row), size), states)
        };
        let (weights, last_weights) = weights.as_chunks_mut::<WEIGHTS_PER_CHUNK>();
        let (states, last_states) = states.as_chunks_mut::<WEIGHTS_PER_CHUNK>();
        for (weights, states) in weights.iter_mut().zip(states) {
            // Copies, which are vectors.
            let (mut new_weights, mut new_states, mut right) = (*weights, *states, true);
            for place in 0..WEIGHTS_PER_CHUNK {
                on_weight(&mut new_weights[place], |weight| {
                    right &= self.step.try_run(run, weight, &mut new_states[place]);
                });
            }
            if right {
                (*weights, *states) = (new_weights, new_states);
            } else {
                for (weight, state) in weights.iter_mut().zip(states) {
                    on_weight(weight, |weight| idle(weight, state));
                }
            }
        }
        for (weight, state) in last_weights.iter_mut().zip(last_states) {
            on_weight(weight, |weight| idle(weight, state));
        }
    }

    /// Changes each weight of a row, with its state.
    ///
    /// # Safety
    ///
    /// `row < n_rows`.
    #[inline(always)]
    unsafe fn change_each(
        self,
        row: usize,
        change: impl Fn(&mut T::Accumulator, &mut StateOf<R, T>),
    ) {
        let size = self.places.row_size;
        // SAFETY: promised by the caller; the invariant. Weights and states do not overlap, and
        // nothing else refers to them for the length of this call.
        unsafe {
            let weights = slice::from_raw_parts_mut(self.places.weights(row), size);
            if K::BESIDE || self.places.has_states {
                let states = slice::from_raw_parts_mut(self.places.states(row), size);
                for (weight, state) in weights.iter_mut().zip(states) {
                    on_weight(weight, |weight| change(weight, state));
                }
            } else {
                for weight in weights {
                    on_weight(weight, |weight| change(weight, &mut Default::default()));
                }
            }
        }
    }

    /// What idle steps do to a row, as a [scalar](nnz_optim::IdleMap::scalar) map.
    ///
    /// # Safety
    ///
    /// `row < n_rows`.
    #[inline(always)]
    pub(super) unsafe fn idle_by_scalar(self, row: usize, scalar: [T::Accumulator; 2]) {
        for column in 0..self.places.row_size {
            // SAFETY: promised by the caller.
            unsafe { self.idle_weight(row, column, scalar) };
        }
    }

    /// [`idle_by_scalar`](Self::idle_by_scalar) for one weight, which is given.
    ///
    /// # Safety
    ///
    /// `row < n_rows` and `column < row_size`.
    #[inline(always)]
    pub(super) unsafe fn idle_weight(
        self,
        row: usize,
        column: usize,
        scalar: [T::Accumulator; 2],
    ) -> T {
        let mut none = StateOf::<R, T>::default();
        // SAFETY: promised by the caller; the invariant. The only references to these two, for the
        // length of this call.
        unsafe {
            let weight = &mut *self.places.weights(row).add(column);
            let state = if K::BESIDE || self.places.has_states {
                &mut *self.places.states(row).add(column)
            } else {
                &mut none
            };
            let mut idle = *weight;
            on_weight(&mut idle, |weight| self.step.apply_scalar(scalar, weight, state));
            *weight = idle;
            idle
        }
    }

    /// The [first part](Step::begin) of an update of a row of one weight, after the idle steps that
    /// the scalar stands for. Gives the weight as it is between the two.
    ///
    /// # Safety
    ///
    /// `row < n_rows`, and rows [have](Self::HAS_TWO_PARTS) such a part.
    #[inline(always)]
    pub(super) unsafe fn begin_weight(self, row: usize, scalar: Option<[T::Accumulator; 2]>) -> T {
        // SAFETY: promised by the caller; the invariant. The only references to these two, for the
        // length of this call.
        let (place, state) =
            unsafe { (&mut *self.places.weights(row), &mut *self.places.states(row)) };
        let mut weight = place.widen();
        if let Some(scalar) = scalar {
            self.step.apply_scalar(scalar, &mut weight, state);
        }
        let settled = T::narrow(weight);
        self.step.begin(&mut weight, state);
        *place = T::narrow(weight);
        settled
    }

    /// The [second part](Step::follow) of the updates of rows of one weight, each with its
    /// gradient: `row` and `grad` of each place.
    ///
    /// # Safety
    ///
    /// The rows of all places below `n_places` are below `n_rows`, and the first part was made.
    #[inline(always)]
    pub(crate) unsafe fn follow_each(
        self,
        n_places: usize,
        row: impl Fn(usize) -> usize,
        grad: impl Fn(usize) -> T::Accumulator,
    ) {
        /// Places whose code is written out: how fast a loop of one runs depends on where in memory
        /// it happens to lie.
        const UNROLLED: usize = 4;
        let follow = |place: usize| {
            let row = row(place);
            // SAFETY: promised by the caller; the invariant. The only references to these two, for
            // the length of this turn.
            unsafe {
                let state = &mut *self.places.states(row);
                on_weight(&mut *self.places.weights(row), |weight| {
                    self.step.follow(weight, state, grad(place));
                });
            }
        };
        let mut first = 0;
        while first + UNROLLED <= n_places {
            for place in 0..UNROLLED {
                follow(first + place);
            }
            first += UNROLLED;
        }
        for place in first..n_places {
            follow(place);
        }
    }
}

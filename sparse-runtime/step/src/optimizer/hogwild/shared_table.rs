//! Tables that threads share, and the numbers that their copies have come to.

use crate::model::Model;
use crate::optimizer::hot_rows::HotRows;
use crate::optimizer::numbers::{load, store};
use crate::optimizer::update_kind::{StateOf, StepOf};
use nnz_arrays::parameter_memory::{self, Table};
use nnz_optim::{StateBlock, Step, UpdateRule};
use num_traits::Zero;
use sparse_core::element::Float;
use sparse_core::storage::Storage;
use std::fmt;
use std::sync::{Mutex, PoisonError};

/// Where the rows of a table lie.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Layout {
    pub(super) row_size: usize,
    /// Bytes from one row to the next.
    pub(super) stride: usize,
    /// Bytes from a row's weights to its states.
    pub(super) states: usize,
    /// The numbers that a weight's state is made of; 0 where the rule keeps none.
    pub(super) n_numbers: usize,
}

impl Layout {
    /// Of a table of rows of `row_size` elements: with the states of rule `R` beside them, or
    /// weights alone.
    #[inline(always)]
    pub(super) const fn of<R: UpdateRule, T: Float>(row_size: usize, has_states: bool) -> Layout {
        if has_states {
            let blocks = parameter_memory::Layout::of::<T, StateOf<R, T>>(row_size, row_size);
            let n_numbers = size_of::<StateOf<R, T>>() / size_of::<T::Accumulator>();
            return Layout { row_size, stride: blocks.stride, states: blocks.states, n_numbers };
        }
        let stride = row_size * size_of::<T>();
        Layout { row_size, stride, states: stride, n_numbers: 0 }
    }

    /// The weights and the numbers of the states of a row.
    pub(super) fn numbers_of_row(self) -> usize {
        self.row_size * (1 + self.n_numbers)
    }

    /// Whether rows are the [numbers](Self::get) of the first, then those of the second, and so on,
    /// all of them accumulators.
    pub(super) fn is_run_of<T: Float>(self) -> bool {
        let size = size_of::<T::Accumulator>();
        size_of::<T>() == size && self.stride == self.numbers_of_row() * size
    }

    /// Number `number` of a row that starts at `row`.
    ///
    /// # Safety
    ///
    /// A row lies there as this says, with such a number, and other threads access it by [`load`]
    /// and [`store`] only.
    pub(super) unsafe fn get<T: Float>(self, row: *mut u8, number: usize) -> T::Accumulator {
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
    pub(super) unsafe fn set<T: Float>(self, row: *mut u8, number: usize, value: T::Accumulator) {
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

/// A table that threads share, which is theirs alone.
///
/// Invariant: the rows of `table` lie from `first` on, as `layout` says; `hot` are rows of it.
pub(super) struct SharedTable<T: Float> {
    /// Its number.
    pub(super) parameter: usize,
    pub(super) table: Table<T>,
    pub(super) first: *mut u8,
    pub(super) layout: Layout,
    pub(super) hot: HotRows,
}

// SAFETY: what `first` leads to is accessed by `load` and `store` alone while several threads have
// this, and `table` not at all.
unsafe impl<T: Float> Sync for SharedTable<T> {}
// SAFETY: `first` leads into memory of `table`, which may be sent.
unsafe impl<T: Float> Send for SharedTable<T> {}

/// What threads share: tables, and what their copies of rows and of dense parameters have come to.
pub struct Shared<T: Float> {
    pub(super) tables: Vec<SharedTable<T>>,
    pub(super) merged: Mutex<Merged<T>>,
}

impl<T: Float> fmt::Debug for Shared<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let parameters = self.tables.iter().map(|table| table.parameter);
        f.debug_struct("Shared").field("parameters", &parameters.collect::<Vec<_>>()).finish()
    }
}

pub(super) struct Merged<T: Float> {
    /// The numbers of the hot rows of each table by slot; zeros where none is.
    pub(super) hot: Vec<Vec<T::Accumulator>>,
    /// The parameters with dense gradients.
    pub(super) dense: Vec<T>,
}

/// A parameter's number, its table, and the rows that threads keep copies of.
pub type OwnTable<T> = (usize, Table<T>, HotRows);

impl<T: Float> SharedTable<T> {
    /// The table with what the threads made of it: of hot rows, what their copies have come to.
    fn end(mut self, merged: &[T::Accumulator]) -> OwnTable<T> {
        let n_numbers = self.layout.numbers_of_row();
        let SharedTable { parameter, table, first, layout, hot } = &mut self;
        for (slot, row) in hot.rows() {
            for (number, value) in merged[slot * n_numbers..][..n_numbers].iter().enumerate() {
                // SAFETY: the rows lie there, and no other thread has the table any more.
                unsafe { layout.set::<T>(first.add(row * layout.stride), number, *value) };
            }
        }
        let table = std::mem::replace(table, Table::zeros(0, 0));
        (*parameter, table, std::mem::take(hot))
    }
}

impl<T: Float> Shared<T> {
    /// The tables with what the threads made of them, and the hot rows for the next epoch; the
    /// model gets what they made of its dense parameters.
    pub fn end<M: Model<Element = T>>(self, model: &mut M) -> Vec<OwnTable<T>> {
        let merged = self.merged.into_inner().unwrap_or_else(PoisonError::into_inner);
        let mut dense = merged.dense.iter();
        visit_dense(model, |value| {
            if let Some(merged) = dense.next() {
                *value = *merged;
            }
        });
        self.tables.into_iter().zip(&merged.hot).map(|(table, hot)| table.end(hot)).collect()
    }
}

/// Writes the [implied](Step::implied_state) states of weights that have none yet: changes from
/// them add up, while each of several threads would make them by itself. A weight has a state of so
/// many numbers.
pub(super) fn imply_states<R: UpdateRule, T: Float>(
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
pub(super) fn visit_dense<M: Model>(model: &mut M, mut visit: impl FnMut(&mut M::Element)) {
    for (parameter, info) in model.parameters_mut().into_iter().zip(M::PARAMETERS) {
        if info.gradient == Some(Storage::Dense) {
            parameter.table.values_mut().iter_mut().for_each(&mut visit);
        }
    }
}

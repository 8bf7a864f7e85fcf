//! One thread's part in shared tables: its copies of hot rows and dense parameters.

use super::rows::AddressesAhead;
use super::shared_table::{Merged, Shared, SharedTable, visit_dense};
use crate::model::Model;
use nnz_arrays::parameter_memory::Aligned;
use sparse_core::element::Float;
use std::slice;
use std::sync::{Arc, PoisonError};

/// One thread's part in [`Shared`] tables: with its copies of hot rows.
///
/// Invariant: copies of each table, in the order of the shared ones.
#[derive(Clone)]
pub struct Racer<T: Float> {
    shared: Arc<Shared<T>>,
    copies: Vec<Copies<T>>,
    /// What the parameters with dense gradients were when they were last merged.
    dense_before: Vec<T>,
}

/// A thread's copies of the hot rows of one table.
///
/// Invariant: `own` has room for a row in each slot, of the layout shared.
#[derive(Clone)]
pub(super) struct Copies<T: Float> {
    pub(super) own: Aligned<u64>,
    pub(super) ahead: AddressesAhead,
    /// What the copies were when they were last merged.
    before: Vec<T::Accumulator>,
}

impl<T: Float> Racer<T> {
    /// With copies as the parameters are.
    pub fn new<M: Model<Element = T>>(shared: &Arc<Shared<T>>, model: &mut M) -> Self {
        let copies = shared.tables.iter().map(Copies::of).collect();
        let mut racer = Racer { shared: Arc::clone(shared), copies, dense_before: Vec::new() };
        visit_dense(model, |_| racer.dense_before.push(T::zero()));
        visit_dense(model, |value| *value = T::zero());
        // Zeros that were merged before, so that the others' numbers are all that this finds.
        racer.merge(model);
        racer
    }

    /// Whether there is anything to be merged.
    pub fn merges(&self) -> bool {
        !self.dense_before.is_empty() || self.copies.iter().any(|it| !it.before.is_empty())
    }

    /// Adds what this thread has changed in its copies to what all have come to, and copies that.
    /// Waits for a thread that is at it: copies that are not merged grow old, and the changes of
    /// all threads would be added up as if each had been the only one. O(numbers of hot rows and of
    /// parameters with dense gradients).
    pub fn merge<M: Model<Element = T>>(&mut self, model: &mut M) {
        let shared = &*self.shared;
        let mut merged = shared.merged.lock().unwrap_or_else(PoisonError::into_inner);
        let Merged { hot, dense } = &mut *merged;
        for ((table, copies), hot) in shared.tables.iter().zip(&mut self.copies).zip(hot) {
            copies.merge(table, hot);
        }
        let mut dense = dense.iter_mut().zip(&mut self.dense_before);
        visit_dense(model, |value| {
            if let Some((merged, before)) = dense.next() {
                *value = add_change(*value, merged, before);
            }
        });
    }

    /// The tables, each with this thread's copies, in the order of their parameters.
    pub(super) fn tables_mut(&mut self) -> impl Iterator<Item = (&SharedTable<T>, &mut Copies<T>)> {
        self.shared.tables.iter().zip(&mut self.copies)
    }
}

impl<T: Float> Copies<T> {
    /// Zeros.
    fn of(shared: &SharedTable<T>) -> Self {
        let SharedTable { layout, hot, .. } = shared;
        Copies {
            own: Aligned::new(0, (hot.n_slots() * layout.stride).div_ceil(size_of::<u64>())),
            ahead: AddressesAhead::default(),
            before: vec![T::zero().widen(); hot.n_slots() * layout.numbers_of_row()],
        }
    }

    fn merge(&mut self, shared: &SharedTable<T>, hot: &mut [T::Accumulator]) {
        let (layout, own) = (shared.layout, self.own.as_mut_ptr().cast::<u8>());
        let n_all = self.before.len();
        let numbers = hot.iter_mut().zip(&mut self.before);
        if layout.is_run_of::<T>() {
            // SAFETY: there is a copy for each slot, which is this thread's; they are accumulators,
            // one after the other, written by `store` or zero.
            let own = unsafe { slice::from_raw_parts_mut(own.cast::<T::Accumulator>(), n_all) };
            for (own, (merged, before)) in own.iter_mut().zip(numbers) {
                *own = add_change(*own, merged, before);
            }
            return;
        }
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
        let tables = self.shared.tables.iter().map(|it| (it.parameter, it.hot.rows().count()));
        f.debug_struct("Racer").field("hot_rows", &tables.collect::<Vec<_>>()).finish()
    }
}

//! One thread's part in a shared table: its copies of hot rows and dense parameters.

use super::rows::AddressesAhead;
use super::shared_table::{Merged, Shared, visit_dense};
use crate::model::Model;
use nnz_arrays::parameter_memory::Aligned;
use sparse_core::element::Float;
use std::slice;
use std::sync::{Arc, PoisonError};

/// One thread's part in a [`Shared`] table: with its copies of hot rows.
///
/// Invariant: `own` has room for a row in each slot, of the layout shared.
#[derive(Clone)]
pub struct Racer<T: Float> {
    pub(super) parameter: usize,
    pub(super) shared: Arc<Shared<T>>,
    pub(super) own: Aligned<u64>,
    pub(super) ahead: AddressesAhead,
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
            ahead: AddressesAhead::default(),
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

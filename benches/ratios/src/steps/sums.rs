//! Sums of the gradients of a batch by table row, by hand: each table row has one update a batch.

use super::hand::{Lines, is_far, prefetch};
use crate::workload::Error;

/// Sums of `N` numbers for each table row that a batch touches, in `f64` as those of the library.
pub struct Sums<const N: usize> {
    /// Table row → `first` + place in `rows`; less than `first` for one that the batch has not
    /// touched.
    slots: Lines<u32>,
    slots_are_far: bool,
    first: u32,
    rows: Vec<u32>,
    sums: Vec<[f64; N]>,
}

impl<const N: usize> Sums<N> {
    /// Of a table with `n_rows` rows.
    pub fn new(n_rows: usize) -> Result<Self, Error> {
        let slots = Lines::zeros(n_rows)?;
        let slots_are_far = is_far(slots.get());
        Ok(Sums { slots, slots_are_far, first: 1, rows: Vec::new(), sums: Vec::new() })
    }

    /// Asks for the slots of some table rows.
    #[inline(always)]
    pub fn ask(&self, rows: &[u32]) {
        if self.slots_are_far {
            rows.iter().for_each(|row| prefetch(self.slots.get(), *row as usize));
        }
    }

    /// Adds to the sum of a table row, which lies in registers meanwhile: no other pointer leads
    /// there.
    #[inline(always)]
    pub fn add(&mut self, row: u32, add: impl FnOnce(&mut [f64; N])) {
        // SAFETY: callers have rows from data that is held below the width for which the slots
        // were made.
        let slot = unsafe { self.slots.get_mut().get_unchecked_mut(row as usize) };
        let mut place = slot.wrapping_sub(self.first) as usize;
        if place >= self.rows.len() {
            place = self.rows.len();
            *slot = self.first + place as u32;
            self.rows.push(row);
            self.sums.push([0.0; N]);
        }
        let mut sum = self.sums[place];
        add(&mut sum);
        self.sums[place] = sum;
    }

    /// Calls `ask` with each touched table row some places before `update` with it and its sum,
    /// and starts anew.
    #[inline(always)]
    pub fn take(&mut self, ask: impl Fn(u32), mut update: impl FnMut(u32, &[f32; N])) {
        const AHEAD: usize = 16;
        for (place, (&row, sum)) in self.rows.iter().zip(&self.sums).enumerate() {
            if let Some(&ahead) = self.rows.get(place + AHEAD) {
                ask(ahead);
            }
            update(row, &sum.map(|sum| sum as f32));
        }
        self.first += self.rows.len() as u32;
        self.rows.clear();
        self.sums.clear();
    }
}

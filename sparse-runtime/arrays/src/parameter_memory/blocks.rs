//! Rows of weights, each with the state of an update rule beside it, or with the slot of its sum in
//! a batch, or both.

use super::aligned::Aligned;
use super::tenant::{Owner, Tenant};
use super::zeros::{ROWS_PER_RUN, are_zero, rows_of_run, runs_of_bytes};
use std::marker::PhantomData;
use std::ops::Range;

/// Where things lie in a row of blocks, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Layout {
    /// Of the first state; the first weight is at 0.
    pub states: usize,
    /// From one row to the next.
    pub stride: usize,
    /// The states of a row, in numbers.
    pub n_states: usize,
    /// Of the step up to which the row is settled, a `u32`; `None` where a row has no room for it
    /// that would be left empty without.
    pub last: Option<usize>,
    /// Of the [slot](Layout::with_slots) of the row's sum, a `u32`.
    pub slot: Option<usize>,
}

impl Layout {
    /// Of rows of `row_size` weights `T` with `n_states` states `S`: one for each, or one for all.
    #[inline(always)]
    pub const fn of<T, S>(row_size: usize, n_states: usize) -> Layout {
        let states = (row_size * size_of::<T>()).next_multiple_of(align_of::<S>());
        let used = states + n_states * size_of::<S>();
        let stride = stride_of::<T, S>(used);
        let last = used.next_multiple_of(align_of::<u32>());
        let has_room =
            last + size_of::<u32>() <= stride && stride.is_multiple_of(align_of::<u32>());
        let last = if has_room { Some(last) } else { None };
        Layout { states, stride, n_states, last, slot: None }
    }

    /// The same with a slot for each row, at which a batch finds the sum of the row's gradients:
    /// then the line of the cache that has the weight has that as well. Rows are larger by it, or
    /// it is where the last step would be, which such rows have elsewhere.
    #[inline(always)]
    pub const fn with_slots<T, S>(row_size: usize, n_states: usize) -> Layout {
        let Layout { states, .. } = Layout::of::<T, S>(row_size, n_states);
        let slot = (states + n_states * size_of::<S>()).next_multiple_of(align_of::<u32>());
        let used = slot + size_of::<u32>();
        // Weights and states of half precision may lie at any two bytes.
        let stride = stride_of::<T, S>(used).next_multiple_of(align_of::<u32>());
        Layout { states, stride, n_states, last: None, slot: Some(slot) }
    }
}

/// The bytes from row to row where each has so many: a power of two where that costs at most a
/// third more, so that a row lies in as few cache lines as it can.
#[inline(always)]
const fn stride_of<T, S>(used: usize) -> usize {
    let (power, of_weights, of_states) =
        (used.next_power_of_two(), align_of::<T>(), align_of::<S>());
    if 3 * power <= 4 * used {
        power
    } else {
        used.next_multiple_of(if of_states > of_weights { of_states } else { of_weights })
    }
}

/// The rows, and whose state lies in them.
///
/// Invariant: `memory` has room for `n_rows` strides, rounded up.
#[derive(Clone, Debug)]
pub struct Blocks {
    memory: Aligned<u64>,
    layout: Layout,
    owner: Owner,
    /// Where rows have slots: more than any of them says. At least 1.
    next_slot: u32,
}

/// The slots that are given out before all of them are set back.
const MOST_SLOTS: u32 = 1 << 31;

impl Blocks {
    /// Zeros, of which nothing is mapped yet. The caller has seen that `n_rows` strides can be
    /// addressed.
    pub fn new(n_rows: usize, layout: Layout, tenant: &Tenant) -> Self {
        let bytes = n_rows.saturating_mul(layout.stride);
        let memory = Aligned::new(0u64, bytes.div_ceil(size_of::<u64>()));
        Blocks { memory, layout, owner: tenant.as_owner(), next_slot: 1 }
    }

    /// The same rows in another layout, of as many states or of none. O(rows written).
    pub fn in_layout(&self, n_rows: usize, layout: Layout, tenant: &Tenant) -> Self {
        let mut blocks = Blocks::new(n_rows, layout, tenant);
        let (from, to) = (self.layout, layout);
        // The last step or the slot lies behind what both have: what it says in one means nothing
        // in the other.
        let end = |layout: Layout| layout.slot.or(layout.last).unwrap_or(layout.stride);
        let used = end(from).min(end(to)).min(from.stride).min(to.stride);
        for run in self.mapped_runs(n_rows).flatten() {
            let rows = rows_of_run(run, n_rows);
            if self.are_zero(rows.clone()) {
                continue;
            }
            for row in rows {
                let bytes: &[u8] = self.part(row * from.stride, used);
                blocks.part_mut(row * to.stride, used).copy_from_slice(bytes);
            }
        }
        blocks
    }

    /// Slots for `count` rows that no row has yet: the first of them. O(1), but once in so many
    /// slots that it counts for nothing.
    pub fn take_slots(&mut self, n_rows: usize, count: u32) -> u32 {
        if MOST_SLOTS - self.next_slot < count {
            self.set_back_slots(n_rows);
        }
        let first = self.next_slot;
        self.next_slot += count;
        first
    }

    #[cold]
    #[inline(never)]
    fn set_back_slots(&mut self, n_rows: usize) {
        let Some(offset) = self.layout.slot else { return };
        for row in 0..n_rows {
            let start = row * self.layout.stride + offset;
            // Memory that nobody has written stays unmapped.
            if self.part::<u32>(start, 1) != [0] {
                self.part_mut::<u32>(start, 1).fill(0);
            }
        }
        self.next_slot = 1;
    }

    #[inline(always)]
    pub fn belong_to(&self, tenant: &Tenant) -> bool {
        self.owner.is(tenant)
    }

    /// False once the updater and its copies are gone.
    pub fn are_wanted(&self) -> bool {
        self.owner.is_there()
    }

    pub fn layout(&self) -> Layout {
        self.layout
    }

    #[inline(always)]
    pub fn as_mut_ptr(&mut self) -> *mut u8 {
        self.memory.as_mut_ptr().cast()
    }

    /// Whether every bit of some rows is zero. (A weight of -0 is not.)
    pub(super) fn are_zero(&self, rows: Range<usize>) -> bool {
        let Range { start, end } = rows;
        let words = start * self.layout.stride / 8..(end * self.layout.stride).div_ceil(8);
        are_zero(&self.memory[words])
    }

    /// The runs of rows outside of which [every bit is zero](Aligned::mapped_bytes), of `n_rows`.
    pub(super) fn mapped_runs(&self, n_rows: usize) -> impl Iterator<Item = Range<usize>> + use<> {
        let n_runs = n_rows.div_ceil(ROWS_PER_RUN);
        runs_of_bytes(self.memory.mapped_bytes(), self.layout.stride, n_runs)
    }

    /// The weights of a row.
    pub(super) fn row<T: Copy>(&self, row: usize, row_size: usize) -> &[T] {
        self.part(row * self.layout.stride, row_size)
    }

    /// The weights of a row, to be written.
    pub fn row_mut<T: Copy>(&mut self, row: usize, row_size: usize) -> &mut [T] {
        self.part_mut(row * self.layout.stride, row_size)
    }

    /// The states of a row, to be written.
    ///
    /// # Panics
    ///
    /// If there is no such row.
    #[inline]
    pub fn states_mut<S: Copy>(&mut self, row: usize) -> &mut [S] {
        self.part_mut(row * self.layout.stride + self.layout.states, self.layout.n_states)
    }

    /// The states of all rows.
    pub fn all_states_mut<S: Copy>(&mut self) -> StatesMut<'_, S> {
        StatesMut { memory: &mut self.memory, layout: self.layout, of: PhantomData }
    }

    /// The states of a row.
    pub fn states<S: Copy>(&self, row: usize) -> &[S] {
        self.part(row * self.layout.stride + self.layout.states, self.layout.n_states)
    }

    /// Up to which step a row is settled, where blocks have [room](Layout::last) for it.
    pub fn last(&self, row: usize) -> Option<u32> {
        let offset = self.layout.last?;
        self.part(row * self.layout.stride + offset, 1).first().copied()
    }

    /// The same, to be written.
    pub fn last_mut(&mut self, row: usize) -> Option<&mut u32> {
        let offset = self.layout.last?;
        self.part_mut(row * self.layout.stride + offset, 1).first_mut()
    }

    fn part<V: Copy>(&self, start: usize, len: usize) -> &[V] {
        let bytes = size_of_val(&self.memory[..]);
        assert!(start + len * size_of::<V>() <= bytes, "byte {start} of a table of blocks");
        let memory = self.memory.as_ptr().cast::<u8>();
        // SAFETY: inside `memory` (checked above), which is aligned to a line, strides and parts to
        // `V`; `V` is a float, an array of them or a `u32`, for which all bits are valid; borrowed
        // as `self` is.
        unsafe { std::slice::from_raw_parts(memory.add(start).cast(), len) }
    }

    #[inline]
    fn part_mut<V: Copy>(&mut self, start: usize, len: usize) -> &mut [V] {
        part_mut(&mut self.memory, start, len)
    }
}

#[inline(always)]
fn part_mut<V: Copy>(memory: &mut [u64], start: usize, len: usize) -> &mut [V] {
    let bytes = size_of_val(memory);
    assert!(start + len * size_of::<V>() <= bytes, "byte {start} of a table of blocks");
    // SAFETY: as in `Blocks::part`.
    unsafe {
        std::slice::from_raw_parts_mut(memory.as_mut_ptr().cast::<u8>().add(start).cast(), len)
    }
}

/// The states of rows, to be written: for loops over many, which ask once where they lie.
#[derive(Debug)]
pub struct StatesMut<'a, S> {
    memory: &'a mut [u64],
    layout: Layout,
    of: PhantomData<S>,
}

impl<S: Copy> StatesMut<'_, S> {
    /// The same where rows lie so, and the compiler may know how; as they are where not.
    #[inline(always)]
    pub fn known_to_lie(self, layout: Layout) -> Result<Self, Self> {
        if self.layout == layout { Ok(StatesMut { layout, ..self }) } else { Err(self) }
    }

    /// Those of a row.
    ///
    /// # Panics
    ///
    /// If there is no such row.
    #[inline(always)]
    pub fn row(&mut self, row: usize) -> &mut [S] {
        let start = row * self.layout.stride + self.layout.states;
        part_mut(self.memory, start, self.layout.n_states)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slots_lie_behind_the_states() {
        let check = |layout: Layout, states, stride, slot| {
            let found = (layout.states, layout.stride, layout.last, layout.slot);
            assert_eq!(found, (states, stride, None, Some(slot)));
        };
        check(Layout::with_slots::<f32, [f32; 1]>(1, 0), 4, 8, 4);
        check(Layout::with_slots::<f32, [f32; 1]>(1, 1), 4, 16, 8);
        check(Layout::with_slots::<f32, [f32; 2]>(1, 1), 4, 16, 12);
        check(Layout::with_slots::<f32, [f32; 3]>(1, 1), 4, 20, 16);
        check(Layout::with_slots::<f64, [f64; 1]>(1, 0), 8, 16, 8);
        check(Layout::with_slots::<f64, [f64; 1]>(1, 1), 8, 24, 16);
        check(Layout::with_slots::<u16, [f32; 1]>(1, 1), 4, 16, 8);
        check(Layout::with_slots::<u16, ()>(1, 0), 2, 8, 4);
    }

    #[test]
    fn slots_begin_again_before_they_overflow() {
        let layout = Layout::with_slots::<f32, ()>(1, 0);
        let mut blocks = Blocks::new(10, layout, &Tenant::default());
        blocks.next_slot = MOST_SLOTS - 10;
        let first = blocks.take_slots(10, 10);
        assert_eq!(first, MOST_SLOTS - 10);
        let place = 7 * layout.stride + 4;
        blocks.part_mut::<u32>(place, 1)[0] = first + 9;
        blocks.row_mut::<f32>(7, 1)[0] = 2.0;
        assert_eq!(blocks.take_slots(10, 1), 1);
        assert_eq!((blocks.part::<u32>(place, 1), blocks.row::<f32>(7, 1)), (&[0][..], &[2.0][..]));
    }

    #[test]
    fn rows_lie_in_few_lines() {
        type Places = (usize, usize, Option<usize>);
        fn check<T, S>(row_size: usize, n_states: usize, (states, stride, last): Places) {
            let expected = Layout { states, stride, n_states, last, slot: None };
            assert_eq!(Layout::of::<T, S>(row_size, n_states), expected);
        }
        check::<f32, [f32; 1]>(1, 1, (4, 8, None));
        check::<f32, [f32; 2]>(1, 1, (4, 16, Some(12)));
        check::<f32, [f32; 1]>(16, 16, (64, 128, None));
        check::<f32, [f32; 1]>(10, 10, (40, 80, None));
        check::<f32, [f32; 2]>(10, 10, (40, 128, Some(120)));
        check::<f64, [f64; 2]>(1, 1, (8, 32, Some(24)));
        check::<u16, [f32; 1]>(3, 3, (8, 20, None));
        check::<u16, ()>(3, 3, (6, 8, None));
        check::<f32, ()>(5, 5, (20, 20, None));
        check::<f32, [f32; 1]>(15, 1, (60, 64, None));
    }
}

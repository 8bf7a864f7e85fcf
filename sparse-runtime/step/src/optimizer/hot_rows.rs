//! Hot rows: table rows that most samples name.

/// The rows that threads keep copies of, each in a slot that its number leads to.
#[derive(Clone, Debug, Default)]
pub struct HotRows {
    /// The row of each slot; of one that is free a number that leads to another, so that no row is
    /// found there.
    slots: Vec<u32>,
    shift: u32,
}

impl HotRows {
    /// The most that there can be.
    pub const MOST: usize = 1 << Self::MOST_BITS;

    const MOST_BITS: u32 = 24;

    /// Of some rows the first ones, at most so many and [`MOST`](Self::MOST), that no earlier row
    /// has taken the slot of: so a look-up is one comparison,
    /// and the slots, which it reads at random, stay in the nearest cache.
    pub fn new(rows: impl Iterator<Item = usize>, at_most: usize) -> Self {
        if at_most == 0 {
            return HotRows::default();
        }
        let bits = at_most.min(Self::MOST).next_power_of_two().ilog2().max(1);
        let mut hot = HotRows { slots: vec![0; 1 << bits], shift: u32::BITS - bits };
        // 0 leads here, and 1 does not.
        hot.slots[0] = 1;
        let mut left = at_most;
        for row in rows {
            let Ok(number) = u32::try_from(row) else { continue };
            let slot = slot_of(row, hot.shift);
            if !hot.is_taken(slot) {
                hot.slots[slot] = number;
                left -= 1;
            }
            if left == 0 {
                break;
            }
        }
        hot
    }

    fn is_taken(&self, slot: usize) -> bool {
        slot_of(self.slots[slot] as usize, self.shift) == slot
    }

    /// The number of slots; none where no row is hot.
    pub(crate) fn n_slots(&self) -> usize {
        self.slots.len()
    }

    /// Slots that have a row, each with it.
    pub(crate) fn rows(&self) -> impl Iterator<Item = (usize, usize)> {
        let taken = (0..self.slots.len()).filter(|slot| self.is_taken(*slot));
        taken.map(|slot| (slot, self.slots[slot] as usize))
    }

    /// What finds the slot of a row.
    #[inline(always)]
    pub(crate) fn slots(&self) -> HotSlots<'_> {
        HotSlots { slots: &self.slots, shift: self.shift }
    }
}

/// What finds the slots of [`HotRows`], by value, so that a loop has it in registers.
#[derive(Clone, Copy, Debug)]
pub(crate) struct HotSlots<'a> {
    slots: &'a [u32],
    shift: u32,
}

impl HotSlots<'_> {
    /// Whether a row is hot, and its slot if it is.
    #[inline(always)]
    pub(crate) fn find(self, row: usize) -> (bool, usize) {
        let slot = slot_of(row, self.shift);
        (self.slots.get(slot).is_some_and(|number| *number as usize == row), slot)
    }
}

/// Fibonacci hashing: the first bits of a multiple.
#[inline(always)]
fn slot_of(row: usize, shift: u32) -> usize {
    ((row as u32).wrapping_mul(0x9e37_79b9) >> shift) as usize
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hot_row_is_found_by_one_comparison() {
        let all = || (0..1000).map(|k| k * 977);
        let hot = HotRows::new(all(), 500);
        let rows: Vec<(usize, usize)> = hot.rows().collect();
        assert!(rows.len() > 300 && rows.len() <= 500, "{}", rows.len());
        for row in 0..1000 * 977 {
            let (is_hot, slot) = hot.slots().find(row);
            assert_eq!(is_hot, rows.contains(&(slot, row)), "{row}");
        }
        // The first of those that one slot is for.
        for (slot, row) in rows {
            assert_eq!(all().find(|row| hot.slots().find(*row).1 == slot), Some(row));
        }
    }

    #[test]
    fn there_may_be_none() {
        assert_eq!(HotRows::new(0..10, 0).n_slots(), 0);
        assert!(!HotRows::default().slots().find(0).0);
        let beyond = HotRows::new(std::iter::once(1 << 32), 4);
        assert_eq!(beyond.rows().count(), 0);
        for row in [0, 1, 2, 3, u32::MAX as usize, 1 << 32, usize::MAX] {
            assert!(!beyond.slots().find(row).0, "{row}");
        }
    }
}

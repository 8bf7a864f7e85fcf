//! Rows that most rows of data name.

/// The rows that threads keep copies of.
#[derive(Clone, Debug, Default)]
pub(crate) struct HotRows {
    rows: Vec<usize>,
    /// By a hash of the row, `row << PLACE_BITS | place in rows`, or `NONE`.
    slots: Vec<u64>,
    shift: u32,
}

const PLACE_BITS: u32 = 24;
const NONE: u64 = u64::MAX;

impl HotRows {
    /// The first of these rows, at most so many and 2²⁴. A row whose slot another one has taken is left out: a look-up is one comparison.
    pub(crate) fn new(rows: impl Iterator<Item = usize>, at_most: usize) -> Self {
        /// Slots for each row: with four, one row in nine is left out.
        const SPACE: usize = 4;
        let at_most = at_most.min(1 << PLACE_BITS);
        if at_most == 0 {
            return HotRows::default();
        }
        let n_slots = (SPACE * at_most).next_power_of_two();
        let mut hot = HotRows {
            rows: Vec::new(),
            slots: vec![NONE; n_slots],
            shift: u64::BITS - n_slots.ilog2(),
        };
        for row in rows.take(at_most).filter(|row| (*row as u64) < NONE >> PLACE_BITS) {
            let slot = &mut hot.slots[hash(row, hot.shift)];
            if *slot == NONE {
                *slot = (row as u64) << PLACE_BITS | hot.rows.len() as u64;
                hot.rows.push(row);
            }
        }
        hot
    }

    /// The rows, each of which has its place here.
    pub(crate) fn rows(&self) -> &[usize] {
        &self.rows
    }

    /// What finds the place of a row.
    #[inline(always)]
    pub(crate) fn slots(&self) -> HotSlots<'_> {
        HotSlots { slots: &self.slots, shift: self.shift }
    }
}

/// What finds the places of [`HotRows`], by value, so that a loop has it in registers.
///
/// Invariant: there are `2^(64 - shift)` slots, or none.
#[derive(Clone, Copy, Debug)]
pub(crate) struct HotSlots<'a> {
    slots: &'a [u64],
    shift: u32,
}

impl HotSlots<'_> {
    /// Whether a row is hot, and its place if it is.
    #[inline(always)]
    pub(crate) fn place(self, row: usize) -> (bool, usize) {
        let Some(slot) = self.slots.get(hash(row, self.shift)) else { return (false, 0) };
        (*slot >> PLACE_BITS == row as u64, (*slot & ((1 << PLACE_BITS) - 1)) as usize)
    }
}

/// Fibonacci hashing: the first bits of a multiple.
#[inline(always)]
fn hash(row: usize, shift: u32) -> usize {
    ((row as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> shift) as usize
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hot_row_is_found_by_one_comparison() {
        let hot = HotRows::new((0..1000).map(|k| k * 977), 500);
        assert!(hot.rows.len() > 400 && hot.rows.len() <= 500);
        let place = |row: usize| {
            let (is_hot, place) = hot.slots().place(row);
            is_hot.then_some(place)
        };
        for row in 0..600 * 977 {
            let known = row % 977 == 0 && hot.rows.contains(&row);
            assert_eq!(place(row).is_some(), known, "{row}");
        }
        for (expected, row) in hot.rows.iter().enumerate() {
            assert_eq!(place(*row), Some(expected));
        }
        assert!(HotRows::new(0..10, 0).slots.is_empty());
    }
}

//! The set of table rows that a rule has ever touched.

use nnz_arrays::in_library;
use nnz_arrays::parameter_memory::{RecordId, Recorder, Run, Table};
use sparse_core::element::Element;

/// Rows, or words of rows, in one word.
const BITS: usize = u64::BITS as usize;

/// A set of rows as a bitmap of two levels: adding costs O(1), going through it O(rows in it + rows
/// of the table / 4096).
///
/// A bit a row, mapped by the system only where rows were added.
#[derive(Clone, Debug, Default)]
pub(super) struct TouchedRows {
    /// A bit a row.
    rows: Vec<u64>,
    /// A bit a word of `rows` that is not 0.
    words: Vec<u64>,
    /// Rows may have been touched that were not added.
    incomplete: bool,
    /// Every row of the data that gradients are gathered over was added.
    has_all: bool,
    id: RecordId,
}

impl TouchedRows {
    /// Reserves memory for rows below `n_rows`.
    pub(super) fn reserve(&mut self, n_rows: usize) {
        let n_words = n_rows.div_ceil(BITS);
        self.rows.resize(n_words, 0);
        self.words.resize(n_words.div_ceil(BITS), 0);
    }

    /// Adds a row below the reserved number: once in the life of most.
    #[cold]
    #[inline(never)]
    pub(super) fn add(&mut self, row: usize) {
        let word = row / BITS;
        self.rows[word] |= 1 << (row % BITS);
        self.words[word / BITS] |= 1 << (word % BITS);
    }

    /// Whether a row was added.
    #[inline(always)]
    pub(super) fn contains(&self, row: usize) -> bool {
        self.rows.get(row / BITS).is_some_and(|word| word >> (row % BITS) & 1 != 0)
    }

    /// Makes the set incomplete from now on.
    pub(super) fn give_up(&mut self) {
        self.incomplete = true;
    }

    /// From now on, or from now on no longer, gradients are gathered over data of which every row
    /// was added.
    pub(crate) fn set_has_all(&mut self, has_all: bool) {
        self.has_all = has_all;
    }

    /// True where the rows of the data that gradients are gathered over need not be added.
    #[inline(always)]
    pub(super) fn has_all(&self) -> bool {
        self.has_all
    }

    /// True where every row that was touched was added.
    pub(super) fn is_complete(&self) -> bool {
        !self.incomplete
    }

    /// Names this set to the tables that it is of. A clone has another name.
    #[inline(always)]
    pub(super) fn recorder(&self) -> Recorder {
        self.id.as_recorder()
    }

    /// Tells a table which rows may not be zero, where it was written by those alone who add rows
    /// here. O(rows added + rows of the table / 4096).
    pub(super) fn tell<T: Element>(&self, table: &mut Table<T>) {
        let touched = self;
        in_library!(<T> TouchedRows::tell_runs::<T> => (
            touched: &TouchedRows,
            table: &mut Table<T>,
        ) -> ())
    }

    fn tell_runs<T: Element>(&self, table: &mut Table<T>) {
        let runs = bits(&self.words).map(|run| Run { run, rows: self.rows[run] });
        table.set_recorded(self.recorder(), runs);
    }

    /// Calls `visit` with each row, ascending. Inlined, so that what `visit` knows stays in
    /// registers.
    #[inline(always)]
    pub(super) fn for_each(&self, mut visit: impl FnMut(usize)) {
        for_each_bit(
            &self.words,
            #[inline(always)]
            |word| {
                for_each_bit(
                    &self.rows[word..=word],
                    #[inline(always)]
                    |bit| visit(word * BITS + bit),
                );
            },
        );
    }
}

/// Calls `visit` with the number of each bit that is set.
#[inline(always)]
fn for_each_bit(words: &[u64], mut visit: impl FnMut(usize)) {
    for (index, word) in words.iter().enumerate() {
        let mut rest = *word;
        while rest != 0 {
            visit(index * BITS + rest.trailing_zeros() as usize);
            rest &= rest - 1;
        }
    }
}

/// The number of each bit that is set.
fn bits(words: &[u64]) -> impl Iterator<Item = usize> {
    words.iter().enumerate().flat_map(|(index, word)| {
        let mut rest = *word;
        std::iter::from_fn(move || {
            let bit = (rest != 0).then(|| rest.trailing_zeros() as usize)?;
            rest &= rest - 1;
            Some(index * BITS + bit)
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_come_back_in_order_and_once() {
        for n_rows in [1, 63, 64, 65, 4096, 4097, 10_000] {
            let mut touched = TouchedRows::default();
            touched.reserve(n_rows);
            let mut expected: Vec<_> = (0..40).map(|i| i * i * 7919 % n_rows).collect();
            for row in expected.iter().chain([&0, &(n_rows - 1)]) {
                touched.add(*row);
            }
            expected.extend([0, n_rows - 1]);
            expected.sort_unstable();
            expected.dedup();
            let mut found = Vec::new();
            touched.for_each(|row| found.push(row));
            assert_eq!(found, expected, "{n_rows}");
            found.retain(|row| touched.contains(*row));
            assert_eq!(found, expected, "{n_rows}");
            let outside = (0..2 * n_rows).filter(|row| !expected.contains(row));
            assert!(!outside.into_iter().any(|row| touched.contains(row)), "{n_rows}");
        }
    }
}

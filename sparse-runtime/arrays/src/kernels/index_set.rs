//! Which rows of a wide table occur in a batch, in ascending order, without sorting.

/// Above this width ids are sorted instead of marked: the marks would take the better part of a
/// gibibyte.
const LARGEST_MARKED: usize = 1 << 32;

/// A set of indices below some width, with the rank of each.
///
/// A bit an index, and above the words of bits a tree of summaries with one bit for each word that
/// is not zero, so that reading the members in order visits only words that hold some. Inserting
/// costs O(1) amortised, reading and clearing O(members), ranks O(1): nothing depends on the width
/// but the memory, a fifth of a byte an index, which the system maps only where batches touch it.
/// This is smaller than a map from index to position by a factor of 20, and there is nothing to
/// sort.
#[derive(Clone, Debug, Default)]
pub struct IndexSet {
    words: Vec<u64>,
    /// The number of members in the words before each, of those that hold some. (Not beside the
    /// words, which more of would be in a cache then while members come.)
    before: Vec<u32>,
    /// Level 0 has a bit for each of `words`, level i + 1 for each word of level i; the last has
    /// one word.
    summaries: Vec<Vec<u64>>,
    /// The words that hold members, ascending; complete after `finish`.
    occupied: Vec<usize>,
    /// Scratch of `finish`.
    parents: Vec<usize>,
    /// The members, for widths above [`LARGEST_MARKED`] and for whoever wants them as a list.
    sorted: Vec<u64>,
    wide: bool,
    /// The words that `finish` is to look at, all, where so many members come that this costs less
    /// than summaries.
    scanned: Option<usize>,
    /// Between `begin` and `finish`, when `occupied` does not know all words that hold something.
    filling: bool,
}

/// Marks a word of a level as not zero in the levels above it.
#[cold]
fn summarize(levels: &mut [Vec<u64>], mut word: usize) {
    for level in levels {
        let summary = &mut level[word / 64];
        let was_empty = *summary == 0;
        *summary |= 1 << (word % 64);
        if !was_empty {
            return;
        }
        word /= 64;
    }
}

impl IndexSet {
    /// Empties the set and makes room for indices below `width`.
    pub fn begin(&mut self, width: usize) {
        self.begin_with(width, 0);
    }

    /// The same, where so many are about to be inserted.
    pub fn begin_with(&mut self, width: usize, n_insertions: usize) {
        /// Insertions for each word from which on all words are looked at in the end.
        const MANY: usize = 8;
        if std::mem::replace(&mut self.filling, true) {
            // Somebody panicked between `begin` and `finish`.
            *self = IndexSet { filling: true, ..IndexSet::default() };
        }
        for word in self.occupied.drain(..) {
            self.words[word] = 0;
        }
        self.sorted.clear();
        self.wide = width > LARGEST_MARKED;
        if self.wide {
            return;
        }
        let mut n_words = width.div_ceil(64);
        self.scanned = (n_insertions / MANY >= n_words).then_some(n_words);
        if self.words.len() < n_words {
            // All is zero now, so that nothing has to be copied, and new zeros are mapped lazily.
            self.words = vec![0; n_words];
            self.before = vec![0; n_words];
            // Addresses and no memory: room for any batch, so that none allocates later.
            self.occupied = Vec::with_capacity(n_words);
            self.parents = Vec::with_capacity(n_words);
            self.summaries.clear();
            while n_words > 1 || self.summaries.is_empty() {
                n_words = n_words.div_ceil(64);
                self.summaries.push(vec![0; n_words]);
            }
        }
    }

    /// Adds an index below the width; one that is in the set stays.
    #[inline(always)]
    pub fn insert(&mut self, index: usize) {
        self.insert_all([index]);
    }

    /// Adds indices below the width.
    #[inline(always)]
    pub fn insert_all(&mut self, indices: impl IntoIterator<Item = usize>) {
        if self.wide {
            self.sorted.extend(indices.into_iter().map(|index| index as u64));
            return;
        }
        let words = &mut self.words[..];
        if self.scanned.is_some() {
            for index in indices {
                words[index / 64] |= 1 << (index % 64);
            }
            return;
        }
        let Some((first, others)) = self.summaries.split_first_mut() else { return };
        let first = &mut first[..];
        for index in indices {
            // Whether an index, or one near it, is there already, nothing foretells; of 4096 of
            // them one soon is.
            let (word, summary) = (index / 64, index / 4096);
            words[word] |= 1 << (index % 64);
            let was_empty = first[summary] == 0;
            first[summary] |= 1 << (word % 64);
            if was_empty {
                summarize(others, summary);
            }
        }
    }

    /// Ends the insertions: visits the members in ascending order and makes their ranks known.
    pub fn finish(&mut self, mut visit: impl FnMut(usize)) {
        self.find_members(&mut visit);
        self.filling = false;
    }

    /// [`finish`](IndexSet::finish), which a visitor that panics leaves undone.
    fn find_members(&mut self, visit: &mut impl FnMut(usize)) {
        if self.wide {
            self.sorted.sort_unstable();
            self.sorted.dedup();
            self.sorted.iter().for_each(|&index| visit(index as usize));
            return;
        }
        let mut n_members = 0u32;
        let mut enter = |position: usize, word: u64, before: &mut u32| {
            *before = n_members;
            for_each_bit(word, |bit| {
                visit(position * 64 + bit);
                n_members = n_members.wrapping_add(1);
            });
        };
        if let Some(n_words) = self.scanned {
            for (position, &word) in self.words[..n_words].iter().enumerate() {
                if word != 0 {
                    self.occupied.push(position);
                    enter(position, word, &mut self.before[position]);
                }
            }
            return;
        }
        // From the one word at the top down to the words of members.
        self.occupied.push(0);
        for level in self.summaries.iter_mut().rev() {
            std::mem::swap(&mut self.parents, &mut self.occupied);
            self.occupied.clear();
            for &parent in &self.parents {
                let bits = std::mem::take(&mut level[parent]);
                for_each_bit(bits, |bit| self.occupied.push(parent * 64 + bit));
            }
        }
        if self.words.is_empty() {
            self.occupied.clear();
        }
        for &position in &self.occupied {
            enter(position, self.words[position], &mut self.before[position]);
        }
    }

    /// [`finish`](IndexSet::finish), with the members in memory of the set.
    pub(crate) fn finish_in_order(&mut self) -> &[u64] {
        if self.wide {
            self.finish(|_| {});
        } else {
            let mut members = std::mem::take(&mut self.sorted);
            self.finish(|index| members.push(index as u64));
            self.sorted = members;
        }
        &self.sorted
    }

    /// The number of members below an index: the position of a member. Of another index only if
    /// there is a member among its 64, as ranks of words that hold none are not written.
    #[inline(always)]
    pub(crate) fn rank(&self, index: usize) -> usize {
        if self.wide {
            return self.sorted.partition_point(|&id| id < index as u64);
        }
        debug_assert!(self.words[index / 64] != 0, "{index} is near no member");
        let below = self.words[index / 64] & ((1 << (index % 64)) - 1);
        (self.before[index / 64] + below.count_ones()) as usize
    }

    /// The position of an index if it is a member.
    #[inline(always)]
    pub(crate) fn find(&self, index: usize) -> Option<usize> {
        if self.wide {
            return self.sorted.binary_search(&(index as u64)).ok();
        }
        let member = self.words[index / 64] >> (index % 64) & 1 == 1;
        member.then(|| self.rank(index))
    }
}

/// Calls `visit` with the positions of the ones, ascending.
#[inline(always)]
pub(crate) fn for_each_bit(mut bits: u64, mut visit: impl FnMut(usize)) {
    while bits != 0 {
        visit(bits.trailing_zeros() as usize);
        bits &= bits - 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    fn members(set: &mut IndexSet, width: usize, indices: &[usize]) -> Vec<usize> {
        set.begin(width);
        indices.iter().for_each(|&index| set.insert(index));
        let mut found = Vec::new();
        set.finish(|index| found.push(index));
        if width < 1 << 24 {
            // As many as make all words be looked at.
            set.begin_with(width, width);
            set.insert_all(indices.iter().copied());
            let mut scanned = Vec::new();
            set.finish(|index| scanned.push(index));
            assert_eq!(scanned, found);
            found.iter().enumerate().for_each(|(rank, index)| assert_eq!(set.rank(*index), rank));
        }
        set.begin(width);
        indices.iter().for_each(|&index| set.insert(index));
        assert!(
            set.finish_in_order().iter().map(|&index| index as usize).eq(found.iter().copied())
        );
        found
    }

    #[test]
    fn widths_at_the_borders_of_words_and_levels() {
        let mut set = IndexSet::default();
        for width in [0, 1, 63, 64, 65, 4096, 4097, 262_145, 1 << 33] {
            let all: Vec<usize> = [0, 1, 62, 63, 64, 4095, 4096, 262_144, (1 << 33) - 1]
                .into_iter()
                .filter(|&index| index < width)
                .collect();
            let backwards: Vec<usize> = all.iter().chain(&all).rev().copied().collect();
            assert_eq!(members(&mut set, width, &backwards), all, "{width}");
            for (position, &index) in all.iter().enumerate() {
                assert_eq!(set.rank(index), position, "{width}");
            }
            assert_eq!(members(&mut set, width, &[]), [0usize; 0]);
        }
    }

    #[test]
    fn an_abandoned_set_is_emptied() {
        let mut set = IndexSet::default();
        set.begin(1000);
        set.insert(999);
        assert_eq!(members(&mut set, 1000, &[3]), [3]);
        set.begin_with(1000, 1000);
        set.insert_all([1, 999]);
        let finish = std::panic::AssertUnwindSafe(|| set.finish(|index| assert!(index > 1)));
        assert!(std::panic::catch_unwind(finish).is_err());
        assert_eq!(members(&mut set, 1000, &[3]), [3]);
    }

    proptest! {
        #[test]
        fn behaves_as_an_ordered_set(
            batches in prop::collection::vec(
                (1usize..20_000, prop::collection::vec(any::<prop::sample::Index>(), 0..80)), 1..6)
        ) {
            let mut set = IndexSet::default();
            for (width, indices) in batches {
                let indices: Vec<usize> = indices.iter().map(|index| index.index(width)).collect();
                let expected: BTreeSet<usize> = indices.iter().copied().collect();
                prop_assert_eq!(members(&mut set, width, &indices), expected.iter().copied().collect::<Vec<_>>());
                for index in 0..width {
                    let position = expected.iter().position(|&member| member == index);
                    prop_assert_eq!(set.find(index), position);
                }
            }
        }
    }
}

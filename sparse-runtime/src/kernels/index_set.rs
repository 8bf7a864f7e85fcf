//! Which rows of a wide table occur in a batch, in ascending order, without sorting.

/// Above this width ids are sorted instead of marked: the marks would take a gibibyte.
const LARGEST_MARKED: usize = 1 << 32;

/// A set of indices below some width, with the rank of each.
///
/// A bit an index, and above the words of bits a tree of summaries with one bit for each word that is not zero, so
/// that reading the members in order visits only words that hold some. Inserting costs O(1) amortised, reading
/// and clearing O(members), ranks O(1): nothing depends on the width but the memory, a quarter of a byte an
/// index, which the system maps only where batches touch it. This is smaller than a map from index to position
/// by a factor of 16, and there is nothing to sort.
#[derive(Clone, Debug, Default)]
pub(crate) struct IndexSet {
    words: Vec<Word>,
    /// Level 0 has a bit for each of `words`, level i + 1 for each word of level i; the last has one word.
    summaries: Vec<Vec<u64>>,
    /// The words that hold members, ascending; complete after `finish`.
    occupied: Vec<usize>,
    /// Scratch of `finish`.
    parents: Vec<usize>,
    /// The members, for widths above [`LARGEST_MARKED`] and for whoever wants them as a list.
    sorted: Vec<u64>,
    wide: bool,
    /// Between `begin` and `finish`, when `occupied` does not know all words that hold something.
    filling: bool,
}

/// Marks a word of the first level as not zero in the levels above it.
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

#[derive(Clone, Copy, Debug, Default)]
struct Word {
    bits: u64,
    /// The number of members in the words before.
    before: u64,
}

impl IndexSet {
    /// Empties the set and makes room for indices below `width`.
    pub(crate) fn begin(&mut self, width: usize) {
        if std::mem::replace(&mut self.filling, true) {
            // Somebody panicked between `begin` and `finish`.
            *self = IndexSet { filling: true, ..IndexSet::default() };
        }
        for word in self.occupied.drain(..) {
            self.words[word] = Word::default();
        }
        self.sorted.clear();
        self.wide = width > LARGEST_MARKED;
        if self.wide {
            return;
        }
        let mut n_words = width.div_ceil(64);
        if self.words.len() < n_words {
            // All is zero now, so that nothing has to be copied, and new zeros are mapped lazily.
            self.words = vec![Word::default(); n_words];
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
    pub(crate) fn insert(&mut self, index: usize) {
        self.insert_all([index]);
    }

    /// Adds indices below the width.
    #[inline(always)]
    pub(crate) fn insert_all(&mut self, indices: impl IntoIterator<Item = usize>) {
        if self.wide {
            self.sorted.extend(indices.into_iter().map(|index| index as u64));
            return;
        }
        let words = &mut self.words[..];
        let Some((first, others)) = self.summaries.split_first_mut() else { return };
        let first = &mut first[..];
        for index in indices {
            // Whether an index, or one near it, is there already, nothing foretells; of 4096 of them one soon is.
            let (word, summary) = (index / 64, index / 4096);
            words[word].bits |= 1 << (index % 64);
            let was_empty = first[summary] == 0;
            first[summary] |= 1 << (word % 64);
            if was_empty {
                summarize(others, summary);
            }
        }
    }

    /// Ends the insertions: visits the members in ascending order and makes their ranks known.
    pub(crate) fn finish(&mut self, mut visit: impl FnMut(usize)) {
        self.filling = false;
        if self.wide {
            self.sorted.sort_unstable();
            self.sorted.dedup();
            self.sorted.iter().for_each(|&index| visit(index as usize));
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
        let mut before = 0;
        for &position in &self.occupied {
            let word = &mut self.words[position];
            word.before = before;
            before += u64::from(word.bits.count_ones());
            for_each_bit(word.bits, |bit| visit(position * 64 + bit));
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

    /// The number of members below an index: the position of a member.
    #[inline(always)]
    pub(crate) fn rank(&self, index: usize) -> usize {
        if self.wide {
            return self.sorted.partition_point(|&id| id < index as u64);
        }
        let word = self.words[index / 64];
        let below = word.bits & ((1 << (index % 64)) - 1);
        (word.before + u64::from(below.count_ones())) as usize
    }

    /// The position of an index if it is a member.
    #[inline(always)]
    pub(crate) fn find(&self, index: usize) -> Option<usize> {
        if self.wide {
            return self.sorted.binary_search(&(index as u64)).ok();
        }
        let member = self.words[index / 64].bits >> (index % 64) & 1 == 1;
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

//! Products of the newest maps of a growing sequence.

use super::maps::IdleMap;

/// A growing sequence of maps, of which the product of any suffix takes O(log₁₆ length) products:
/// all that a history is asked for ends at the present.
///
/// Appending costs some 8 products on average and the memory of 16/15 maps.
#[derive(Clone, Debug)]
pub struct Suffixes<M> {
    /// `levels[k][i]`, for block `i` of `FAN^k` maps: the product from its start to the end of the
    /// block of `FAN^(k+1)` maps that it is in, or of the level, whichever comes first.
    levels: Vec<Vec<M>>,
    /// `tails[k]`: the product of the maps after the last block of level `k`.
    tails: Vec<M>,
}

impl<M> Default for Suffixes<M> {
    fn default() -> Self {
        Suffixes { levels: Vec::new(), tails: Vec::new() }
    }
}

impl<M> Suffixes<M> {
    /// Maps in one block of the level below.
    pub const FAN: usize = 16;
}

impl<M: IdleMap> Suffixes<M> {
    /// The number of maps.
    pub fn len(&self) -> usize {
        self.levels.first().map_or(0, Vec::len)
    }

    /// True where there is none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The products from each block of a level on, of `FAN` blocks of the level below: to the end
    /// of the block of the level above that it is in, or of the level, whichever comes first.
    /// Blocks of level 0 are the maps. Those of a finished block of the level above stay as they
    /// are.
    pub fn level(&self, level: usize) -> &[M] {
        self.levels.get(level).map_or(&[], Vec::as_slice)
    }

    /// The product of the maps after the last block of a level.
    pub fn tail(&self, level: usize) -> M {
        self.tails.get(level).copied().unwrap_or(M::IDENTITY)
    }

    /// Forgets everything.
    pub fn clear(&mut self) {
        self.levels.clear();
        self.tails.clear();
    }

    /// Appends a map.
    pub fn push(&mut self, map: M) {
        let mut block = map;
        for level in 0.. {
            if self.levels.len() == level {
                self.levels.push(Vec::new());
                self.tails.push(M::IDENTITY);
            }
            let entries = &mut self.levels[level];
            let first = entries.len() - entries.len() % Self::FAN;
            for entry in &mut entries[first..] {
                *entry = block.after(entry);
            }
            entries.push(block);
            if !entries.len().is_multiple_of(Self::FAN) {
                break;
            }
            block = entries[first];
        }
        for level in 1..self.levels.len() {
            let below = &self.levels[level - 1];
            self.tails[level] = match below.len() % Self::FAN {
                0 => self.tails[level - 1],
                open => self.tails[level - 1].after(&below[below.len() - open]),
            };
        }
    }

    /// The product of all maps from number `first` on, in order.
    pub fn since(&self, first: usize) -> M {
        let mut result = M::IDENTITY;
        let mut index = first;
        for (entries, tail) in self.levels.iter().zip(&self.tails) {
            if let Some(entry) = entries.get(index) {
                result = entry.after(&result);
            }
            let next = index / Self::FAN + 1;
            if index >= entries.len() || next * Self::FAN > entries.len() {
                return tail.after(&result);
            }
            index = next;
        }
        result
    }
}

#[cfg(test)]
mod tests {
    use super::super::maps::MatrixMap;
    use super::*;

    /// Maps that do not commute, so that an exchanged pair would show.
    fn map(i: usize) -> MatrixMap {
        let x = (i as f64 * 0.7).sin() * 0.1;
        MatrixMap::of_rows([1.0 - x, 0.3 + x], [-x, 0.9 + x * x])
    }

    #[test]
    fn every_suffix_is_the_product_one_by_one() {
        let mut suffixes = Suffixes::default();
        assert_eq!(suffixes.since(0), MatrixMap::IDENTITY);
        let lengths = [1, 15, 16, 17, 31, 33, 255, 256, 257, 272, 273, 511, 700, 4096, 4113];
        for length in 1..=4113 {
            suffixes.push(map(length - 1));
            if !lengths.contains(&length) {
                continue;
            }
            let mut slow = MatrixMap::IDENTITY;
            for first in (0..=length).rev() {
                if first < length {
                    // The product that begins one map earlier.
                    slow = slow.after(&map(first));
                }
                let fast = suffixes.since(first);
                for (a, b) in fast.0.iter().flatten().zip(slow.0.iter().flatten()) {
                    assert!((a - b).abs() <= 1e-12 * (1.0 + b.abs()), "{first} of {length}");
                }
            }
        }
    }
}

//! Short lists of integers, of which entries may be left open.

use std::fmt;

/// A short list of integers, held inline; an entry may be left open (`_`).
///
/// ```
/// # mod nnz { pub use sparse_core as core; }
/// use nnz::core::ir::List;
/// let begin = List::new(&[Some(0), None]);
/// assert_eq!((begin.len(), begin.get(1), begin.to_string()), (2, None, "[0, _]".to_owned()));
/// assert_eq!(List::from([0, 1]).values().collect::<Vec<_>>(), [0, 1]);
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct List {
    items: [Option<i64>; List::LONGEST],
    len: usize,
}

impl List {
    /// The largest number of entries: the largest rank of an array.
    pub const LONGEST: usize = 6;

    /// A list; entries beyond the [longest](List::LONGEST) are left out, as no array has such axes.
    pub const fn new(entries: &[Option<i64>]) -> Self {
        let mut list = List { items: [None; List::LONGEST], len: 0 };
        while list.len < entries.len() && list.len < List::LONGEST {
            list.items[list.len] = entries[list.len];
            list.len += 1;
        }
        list
    }

    /// The number of entries.
    pub const fn len(&self) -> usize {
        self.len
    }

    /// True without entries.
    pub const fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// An entry; `None` where it is left open, and beyond the end.
    pub fn get(&self, index: usize) -> Option<i64> {
        self.entries().get(index).copied().flatten()
    }

    /// The entries.
    pub fn entries(&self) -> &[Option<i64>] {
        &self.items[..self.len]
    }

    /// The entries that are not left open.
    pub fn values(&self) -> impl Iterator<Item = i64> + '_ {
        self.entries().iter().copied().flatten()
    }
}

impl<const N: usize> From<[i64; N]> for List {
    fn from(entries: [i64; N]) -> Self {
        List::new(&entries.map(Some))
    }
}

impl From<&[i64]> for List {
    fn from(entries: &[i64]) -> Self {
        let entries: Vec<Option<i64>> = entries.iter().copied().map(Some).collect();
        List::new(&entries)
    }
}

impl fmt::Display for List {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("[")?;
        for (index, entry) in self.entries().iter().enumerate() {
            f.write_str(if index > 0 { ", " } else { "" })?;
            match entry {
                Some(value) => write!(f, "{value}")?,
                None => f.write_str("_")?,
            }
        }
        f.write_str("]")
    }
}

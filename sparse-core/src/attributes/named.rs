//! Numbers that the compiler does not see: constants of Rust, by their names.

use super::List;
use std::collections::BTreeSet;
use std::fmt;
use std::sync::{Mutex, PoisonError};

/// The one copy of a name that is kept as long as the program runs: an attribute is copied, and
/// holds a reference to it. A program has few names of constants.
pub(crate) fn interned(name: &str) -> &'static str {
    static NAMES: Mutex<BTreeSet<&'static str>> = Mutex::new(BTreeSet::new());
    let mut names = NAMES.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(known) = names.get(name) {
        return known;
    }
    let kept: &'static str = Box::leak(name.to_owned().into_boxed_str());
    names.insert(kept);
    kept
}

/// An entry of a list.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Entry {
    /// An integer.
    Integer(i64),
    /// A constant of Rust, which is a `usize`.
    Named(&'static str),
}

impl Entry {
    /// A constant of Rust.
    pub fn named(name: &str) -> Self {
        Entry::Named(interned(name))
    }
}

/// A short list of integers and constants of Rust; an entry may be left open (`_`).
///
/// ```
/// # mod nnz { pub use sparse_core as core; }
/// use nnz::core::ir::{Entry, NamedList};
/// let shape = NamedList::new(&[Some(Entry::Integer(0)), Some(Entry::named("FIELDS")), None]);
/// assert_eq!(shape.to_string(), "[0, FIELDS, _]");
/// assert_eq!(shape.integers(), None);
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct NamedList {
    /// The integers, open where a constant stands.
    integers: List,
    names: [Option<&'static str>; List::LONGEST],
}

impl NamedList {
    /// A list; entries beyond the [longest](List::LONGEST) are left out.
    pub fn new(entries: &[Option<Entry>]) -> Self {
        let integers: Vec<Option<i64>> = entries
            .iter()
            .map(|entry| match entry {
                Some(Entry::Integer(integer)) => Some(*integer),
                _ => None,
            })
            .collect();
        let mut list = NamedList { integers: List::new(&integers), ..NamedList::default() };
        for (place, entry) in list.names.iter_mut().zip(entries) {
            if let Some(Entry::Named(name)) = entry {
                *place = Some(name);
            }
        }
        list
    }

    /// A list of one constant.
    pub(super) fn named(name: &'static str) -> Self {
        NamedList::new(&[Some(Entry::Named(name))])
    }

    /// The number of entries.
    pub fn len(&self) -> usize {
        self.integers.len()
    }

    /// True without entries.
    pub fn is_empty(&self) -> bool {
        self.integers.is_empty()
    }

    /// An entry; `None` where it is left open, and beyond the end.
    pub fn get(&self, index: usize) -> Option<Entry> {
        let name = self.names.get(index).copied().flatten();
        name.map(Entry::Named).or_else(|| self.integers.get(index).map(Entry::Integer))
    }

    /// The entries.
    pub fn entries(&self) -> impl Iterator<Item = Option<Entry>> + '_ {
        (0..self.len()).map(|index| self.get(index))
    }

    /// The list where no entry is a constant.
    pub fn integers(&self) -> Option<List> {
        self.names.iter().all(Option::is_none).then_some(self.integers)
    }

    /// The list with integers in place of constants.
    ///
    /// # Errors
    ///
    /// The name of a constant that `value` does not know.
    pub fn with_values(&self, value: impl Fn(&str) -> Option<i64>) -> Result<List, &'static str> {
        let entries = self.entries().map(|entry| match entry {
            Some(Entry::Named(name)) => value(name).map(Some).ok_or(name),
            Some(Entry::Integer(integer)) => Ok(Some(integer)),
            None => Ok(None),
        });
        Ok(List::new(&entries.collect::<Result<Vec<_>, _>>()?))
    }
}

impl From<List> for NamedList {
    fn from(integers: List) -> Self {
        NamedList { integers, ..NamedList::default() }
    }
}

impl fmt::Display for Entry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Entry::Integer(integer) => write!(f, "{integer}"),
            Entry::Named(name) => f.write_str(name),
        }
    }
}

impl fmt::Display for NamedList {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("[")?;
        for (index, entry) in self.entries().enumerate() {
            f.write_str(if index > 0 { ", " } else { "" })?;
            match entry {
                Some(entry) => write!(f, "{entry}")?,
                None => f.write_str("_")?,
            }
        }
        f.write_str("]")
    }
}

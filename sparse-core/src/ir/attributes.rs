//! Attributes of an operator application.

use super::named::{NamedList, interned};
use crate::storage::Storage;
use std::fmt;
use std::hash::{Hash, Hasher};

/// The value of an attribute.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum AttributeValue {
    /// `true` or `false`.
    Flag(bool),
    /// An integer, such as an axis.
    Integer(i64),
    /// A number.
    Number(Number),
    /// A list of integers, such as axes or extents.
    List(List),
    /// A storage type.
    Storage(Storage),
    /// A number or an integer that is a constant of Rust, by its name: the compiler does not see
    /// which it is.
    Named(&'static str),
    /// A list in which some integers are constants of Rust.
    NamedList(NamedList),
}

impl AttributeValue {
    /// A constant of Rust.
    pub fn named(name: &str) -> Self {
        AttributeValue::Named(interned(name))
    }
}

/// A number as an attribute: equal where the bits are.
#[derive(Clone, Copy, Debug)]
pub struct Number(pub f64);

impl PartialEq for Number {
    fn eq(&self, other: &Self) -> bool {
        self.0.to_bits() == other.0.to_bits()
    }
}

impl Eq for Number {}

impl Hash for Number {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.0.to_bits().hash(state);
    }
}

/// A short list of integers, held inline; an entry may be left open (`_`).
///
/// ```
/// use sparse_core::ir::List;
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

/// Axes of an array, negative ones from the end; or all of them, which is the default.
///
/// ```
/// use sparse_core::ir::Axes;
/// let last: Axes = (-1).into();
/// assert_eq!((last.places(2), Axes::all().places(2)), (Some(vec![1]), Some(vec![0, 1])));
/// assert_eq!(Axes::from([0, 1, 5]).places(2), None);
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Axes(pub Option<List>);

impl Axes {
    /// All axes.
    pub const fn all() -> Self {
        Axes(None)
    }

    /// Which axes of an array of a rank these are, ascending, once each; `None` where one is beyond the rank.
    pub fn places(&self, rank: usize) -> Option<Vec<usize>> {
        let Some(list) = &self.0 else { return Some((0..rank).collect()) };
        let mut places = (list.values())
            .map(|axis| crate::shapes::place_of(axis, rank))
            .collect::<Option<Vec<_>>>()?;
        places.sort_unstable();
        places.dedup();
        Some(places)
    }

    /// Whether an axis, given by its place, is one of these in an array of a rank.
    pub fn contain(&self, place: usize, rank: usize) -> bool {
        match &self.0 {
            None => place < rank,
            Some(list) => {
                list.values().any(|axis| crate::shapes::place_of(axis, rank) == Some(place))
            }
        }
    }
}

impl From<i64> for Axes {
    fn from(axis: i64) -> Self {
        Axes(Some([axis].into()))
    }
}

impl From<Option<i64>> for Axes {
    fn from(axis: Option<i64>) -> Self {
        axis.map_or(Axes::all(), Axes::from)
    }
}

impl<const N: usize> From<[i64; N]> for Axes {
    fn from(axes: [i64; N]) -> Self {
        Axes(Some(axes.into()))
    }
}

impl fmt::Display for AttributeValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            AttributeValue::Flag(flag) => write!(f, "{flag}"),
            AttributeValue::Integer(integer) => write!(f, "{integer}"),
            AttributeValue::Number(number) => write!(f, "{}", number.0),
            AttributeValue::List(list) => write!(f, "{list}"),
            AttributeValue::Storage(storage) => write!(f, "{storage}"),
            AttributeValue::Named(name) => f.write_str(name),
            AttributeValue::NamedList(list) => write!(f, "{list}"),
        }
    }
}

/// The attributes given, by name. One that is not given has the default that its row states.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Attributes(Vec<(&'static str, AttributeValue)>);

impl Attributes {
    /// A flag; false where it is not given.
    pub fn flag(&self, name: &str) -> bool {
        self.get(name) == Some(AttributeValue::Flag(true))
    }

    /// An integer, if given.
    pub fn integer(&self, name: &str) -> Option<i64> {
        match self.get(name) {
            Some(AttributeValue::Integer(integer)) => Some(integer),
            _ => None,
        }
    }

    /// A number, if given; an integer is one too.
    pub fn number(&self, name: &str) -> Option<f64> {
        match self.get(name) {
            Some(AttributeValue::Number(number)) => Some(number.0),
            Some(AttributeValue::Integer(integer)) => Some(integer as f64),
            _ => None,
        }
    }

    /// A list, if given; an integer is a list of one.
    pub fn list(&self, name: &str) -> Option<List> {
        match self.get(name) {
            Some(AttributeValue::List(list)) => Some(list),
            Some(AttributeValue::Integer(integer)) => Some([integer].into()),
            _ => None,
        }
    }

    /// A list, if given, of which entries may be constants of Rust; an integer is a list of one.
    pub fn entries(&self, name: &str) -> Option<NamedList> {
        match self.get(name) {
            Some(AttributeValue::NamedList(list)) => Some(list),
            Some(AttributeValue::Named(name)) => Some(NamedList::named(name)),
            _ => self.list(name).map(NamedList::from),
        }
    }

    /// The constant of Rust that an attribute is, if it is one.
    pub fn name(&self, name: &str) -> Option<&'static str> {
        match self.get(name) {
            Some(AttributeValue::Named(name)) => Some(name),
            _ => None,
        }
    }

    /// The attributes with numbers in place of constants of Rust, where `value` knows them.
    ///
    /// # Errors
    ///
    /// The name of a constant that it does not know.
    pub fn with_values(&self, value: impl Fn(&str) -> Option<f64>) -> Result<Self, &'static str> {
        let mut attributes = Attributes::default();
        for (attribute, given) in self.iter() {
            let given = match given {
                AttributeValue::Named(name) => match value(name).ok_or(name)? {
                    number if number.fract() == 0.0 => AttributeValue::Integer(number as i64),
                    number => AttributeValue::Number(Number(number)),
                },
                AttributeValue::NamedList(list) => {
                    AttributeValue::List(list.with_values(|name| Some(value(name)? as i64))?)
                }
                given => given,
            };
            attributes.set(attribute, given);
        }
        Ok(attributes)
    }

    /// Axes; all of them where none are given.
    pub fn axes(&self, name: &str) -> Axes {
        Axes(self.list(name))
    }

    /// The storage asked for, if any.
    pub fn storage(&self, name: &str) -> Option<Storage> {
        match self.get(name) {
            Some(AttributeValue::Storage(storage)) => Some(storage),
            _ => None,
        }
    }

    /// Any attribute.
    pub fn get(&self, name: &str) -> Option<AttributeValue> {
        self.0.iter().find(|(known, _)| *known == name).map(|(_, value)| *value)
    }

    /// Sets an attribute. A flag set to false is the same as one not given.
    pub fn set(&mut self, name: &'static str, value: AttributeValue) {
        self.0.retain(|(known, _)| *known != name);
        if value != AttributeValue::Flag(false) {
            self.0.push((name, value));
            self.0.sort_by_key(|(name, _)| *name);
        }
    }

    /// Turns a flag over.
    pub fn flip(&mut self, name: &'static str) {
        self.set(name, AttributeValue::Flag(!self.flag(name)));
    }

    /// Names and values, by name.
    pub fn iter(&self) -> impl Iterator<Item = (&'static str, AttributeValue)> {
        self.0.iter().copied()
    }
}

impl From<&[(&'static str, AttributeValue)]> for Attributes {
    fn from(given: &[(&'static str, AttributeValue)]) -> Self {
        let mut attributes = Attributes::default();
        for (name, value) in given {
            attributes.set(name, *value);
        }
        attributes
    }
}

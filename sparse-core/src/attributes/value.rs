//! Values of attributes, and the attributes that a call gives.

use super::{Axes, List, NamedList, interned};
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

//! Attributes of an operator application.

use crate::storage::Storage;
use std::fmt;

/// The value of an attribute.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum AttributeValue {
    /// `true` or `false`.
    Flag(bool),
    /// An axis.
    Axis(i64),
    /// A storage type.
    Storage(Storage),
}

impl fmt::Display for AttributeValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            AttributeValue::Flag(flag) => write!(f, "{flag}"),
            AttributeValue::Axis(axis) => write!(f, "{axis}"),
            AttributeValue::Storage(storage) => write!(f, "{storage}"),
        }
    }
}

/// The attributes given, by name. One that is not given has its default: false, all axes, the rule's storage.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Attributes(Vec<(&'static str, AttributeValue)>);

impl Attributes {
    /// A flag; false where it is not given.
    pub fn flag(&self, name: &str) -> bool {
        self.get(name) == Some(AttributeValue::Flag(true))
    }

    /// An axis, if given.
    pub fn axis(&self, name: &str) -> Option<i64> {
        match self.get(name) {
            Some(AttributeValue::Axis(axis)) => Some(axis),
            _ => None,
        }
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

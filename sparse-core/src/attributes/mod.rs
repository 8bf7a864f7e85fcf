//! Attributes of operators: flags, numbers, axes, lists and storage types, known at compile time.
//!
//! A number that is a constant of Rust is kept by its name: the compiler does not see its value.

mod axes;
mod list;
mod named;
mod value;

pub use axes::{Axes, place_of};
pub use list::List;
pub(crate) use named::interned;
pub use named::{Entry, NamedList};
pub use value::{AttributeValue, Attributes, Number};

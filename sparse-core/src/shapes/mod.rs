//! Shapes: extents that are known, named or inferred, and what follows from them.
//!
//! [`shape_rules`](crate::shape_rules) infers the shape of an operator's result.

mod derived;
mod dim;
mod error;
mod notation;
mod span;
mod substitution;

pub use crate::attributes::place_of;
pub use derived::{Bound, Derived};
pub use dim::{Dim, Dims, show, size_formula};
pub use error::{Fault, ShapeError};
pub(crate) use notation::{names_of, terms};
pub use span::Span;
pub use substitution::{Assumed, Relation, Substitution};

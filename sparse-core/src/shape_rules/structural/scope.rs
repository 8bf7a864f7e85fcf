//! Arguments of a shape rule, and its errors.

use crate::attributes::{Attributes, Entry, NamedList, place_of};
use crate::operators::Operator;
use crate::shapes::{Bound, Dim, Dims, Fault, ShapeError, Substitution};

/// What a rule may read and unify.
pub(super) struct Scope<'a> {
    pub(super) operator: &'a Operator,
    pub(super) attributes: &'a Attributes,
    pub(super) operands: &'a [Dims],
    pub(super) unify: &'a mut Substitution,
}

impl Scope<'_> {
    /// The extents of an operand, as far as they are known.
    pub(super) fn dims(&self, operand: usize) -> Dims {
        self.unify.resolve_all(&self.operands[operand])
    }

    /// The list that an attribute is; an empty one where it is not given.
    pub(super) fn entries(&self, name: &str) -> NamedList {
        self.attributes.entries(name).unwrap_or_default()
    }

    /// The extent that an attribute is: an integer, its default, or a constant of Rust.
    pub(super) fn integer(&self, name: &str) -> Entry {
        let named = self.attributes.name(name).map(Entry::Named);
        named.unwrap_or_else(|| {
            Entry::Integer(self.operator.integer(self.attributes, name).unwrap_or_default())
        })
    }

    /// An entry as an extent; the integer where that is negative.
    pub(super) fn extent(&self, entry: Entry) -> Result<Dim, i64> {
        match entry {
            Entry::Integer(integer) => u64::try_from(integer).map(Dim::Size).map_err(|_| integer),
            Entry::Named(name) => Ok(self.unify.resolve(&Dim::Named(name.to_owned()))),
        }
    }

    /// An entry as a bound of a part.
    pub(super) fn bound(&self, entry: Entry) -> Bound {
        match entry {
            Entry::Integer(integer) => Bound::Number(integer),
            Entry::Named(name) => Bound::Extent(Dim::Named(name.to_owned())),
        }
    }

    /// The position of the attribute `axis` among the axes of an operand.
    pub(super) fn axis(&self, operand: usize) -> Result<usize, ShapeError> {
        let axis = self.operator.integer(self.attributes, "axis").unwrap_or_default();
        self.place(axis, &self.dims(operand))
    }

    pub(super) fn place(&self, axis: i64, dims: &Dims) -> Result<usize, ShapeError> {
        place_of(axis, dims.len()).ok_or_else(|| ShapeError::Axis { axis, found: dims.clone() })
    }

    /// The operands' rank, which must be one.
    pub(super) fn same_rank(&self) -> Result<usize, ShapeError> {
        let expected = self.operands[0].len();
        match self.operands.iter().position(|dims| dims.len() != expected) {
            None => Ok(expected),
            Some(operand) => Err(ShapeError::Rank { operand, expected, found: self.dims(operand) }),
        }
    }
}

/// An attribute that does not fit the operands.
pub(super) fn refuse<T>(message: impl Into<String>) -> Result<T, ShapeError> {
    Err(ShapeError::Attribute { fault: Fault::Fit, message: message.into() })
}

/// A value that an attribute cannot have.
pub(super) fn senseless<T>(message: impl Into<String>) -> Result<T, ShapeError> {
    Err(ShapeError::Attribute { fault: Fault::Value, message: message.into() })
}

/// A result that is no array.
pub(super) fn too_large<T>(message: impl Into<String>) -> Result<T, ShapeError> {
    Err(ShapeError::Attribute { fault: Fault::TooLarge, message: message.into() })
}

/// What cannot be done with an extent that is known only with the model or a batch.
pub(super) fn unknown<T>(
    what: &str,
    dim: &Dim,
    operand: usize,
    axis: usize,
) -> Result<T, ShapeError> {
    let message = format!(
        "{what} needs to know the extent `{dim}` (dimension {axis} of `{{{operand}}}`): declare it as a number or a constant"
    );
    Err(ShapeError::Attribute { fault: Fault::NamedExtent, message })
}

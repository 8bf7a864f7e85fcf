//! Shape errors, and their words.

use super::{Dim, Dims, show};

/// Operands' shapes do not fit the operator's rule.
#[derive(Clone, Debug, PartialEq)]
pub enum ShapeError {
    /// An operand has the wrong rank.
    Rank {
        /// The operand's position.
        operand: usize,
        /// The rank that the rule asks for.
        expected: usize,
        /// The shape it has.
        found: Dims,
    },
    /// Two extents must be equal and are not.
    Mismatch {
        /// Position and axis (of the operand as declared) of the first extent, and the extent.
        first: (usize, usize, Dim),
        /// The same for the second.
        second: (usize, usize, Dim),
    },
    /// An extent must be a number that it is not.
    Extent {
        /// The operand's position.
        operand: usize,
        /// The axis of the operand as declared.
        axis: usize,
        /// The number.
        wanted: u64,
        /// What it is.
        found: Dim,
    },
    /// Something about an attribute, or about extents that it asks for.
    Attribute {
        /// What about it.
        fault: Fault,
        /// What is wrong, in words; operands are written as `{0}`, `{1}`.
        message: String,
    },
    /// An axis is beyond the operand's rank.
    Axis {
        /// The axis given.
        axis: i64,
        /// The operand's shape.
        found: Dims,
    },
}

/// What is wrong with an attribute.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// It cannot have this value, whatever the operands are.
    Value,
    /// It does not fit the operands.
    Fit,
    /// It asks for arithmetic on an extent that has a name, not a number.
    NamedExtent,
    /// The result would have more elements than an array can have.
    TooLarge,
}

impl ShapeError {
    /// The error in words, the operands by the names given.
    pub fn describe(&self, operands: &[&str]) -> String {
        match self {
            ShapeError::Rank { operand, expected, found } => format!(
                "`{}` has shape {}, but {expected} dimension{} {} needed",
                operands[*operand],
                show(found),
                if *expected == 1 { "" } else { "s" },
                if *expected == 1 { "is" } else { "are" },
            ),
            ShapeError::Mismatch { first, second } => format!(
                "`{}` (dimension {} of `{}`) and `{}` (dimension {} of `{}`) must be equal",
                first.2, first.1, operands[first.0], second.2, second.1, operands[second.0],
            ),
            ShapeError::Extent { operand, axis, wanted, found } => format!(
                "`{}` must have extent {wanted} in dimension {axis}, but has `{found}`",
                operands[*operand]
            ),
            ShapeError::Attribute { message, .. } => {
                operands.iter().enumerate().fold(message.clone(), |text, (index, name)| {
                    text.replace(&format!("{{{index}}}"), name)
                })
            }
            ShapeError::Axis { axis, found } => {
                format!("axis {axis} is beyond the shape {} of `{}`", show(found), operands[0])
            }
        }
    }
}

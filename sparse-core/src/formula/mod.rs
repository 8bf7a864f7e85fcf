//! Formulas of the operator table: their grammar, their functions, and their values.
//!
//! Gradients are formulas over operators (`dot(grad, rhs, transpose_rhs = !transpose_rhs)`);
//! element-wise functions are formulas over scalars (`1 / (1 + exp(-x))`). Both have one grammar;
//! the reader of a formula decides what a call means.

mod expression;
mod fold;
mod parser;
pub mod scalar;
pub mod special;

pub use expression::{AttributeFormula, BinaryOperator, Formula, sign_of};
pub use parser::parse;

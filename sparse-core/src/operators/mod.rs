//! The operator table: everything about an operator is stated in its spec, one row of the table.
//!
//! Inference, the gradient's storage, the kernel's name, the traits of the macro-free API, the
//! documentation and the tests follow from the spec. Only the kernel is written elsewhere. A pass
//! that needs to know something about an operator reads a column; no code compares its name.

mod columns;
mod conditions;
mod facts;
mod kind;
mod on_gpu;
mod operator;
mod rows;
mod rule;
mod table;
mod values;
mod write;

pub mod declared;
mod declared_rows;
mod dot;
mod elementwise;
mod layers;
mod layout;
mod loss;
mod order;
mod parts;
mod reduce;
mod selection;
mod storage_casts;
mod structure;
mod unary;

pub use crate::formula::{scalar, special};
pub use columns::{
    CsrPattern, IdsBelow, KernelModule, Link, MatrixProduct, Placement, RowNames, RowUse, RowsRead,
    Scaling, Weights,
};
pub use conditions::AtZero;
pub use kind::{
    BinaryFamily, Combine, DeclaredKernel, ElementLoss, Kind, LossLabel, Reduction, Total,
};
pub use on_gpu::GpuFamily;
pub use operator::{
    Attribute, AttributeKind, Condition, Given, Gradient, Operator, ResultRows, Rule,
};
pub use rule::{Pattern, Signature};
pub use table::{all, families, find};

#[cfg(test)]
mod tests;

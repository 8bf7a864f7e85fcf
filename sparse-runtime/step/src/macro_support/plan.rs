//! Constructors for the constant `PLAN` of a model: one function a kind of value, and the variants
//! under their own names. All of it is the table of [`sparse_core::inspect`].

pub use core::option::Option::{None, Some};
pub use sparse_core::inspect::Extent::{Constant, Named};
pub use sparse_core::inspect::Operand::{Shape, Value};
pub use sparse_core::inspect::Part::{
    Forward, Frozen, Gradient, Input, Label, Loss, Parameter, State, Unused, Update,
};
pub use sparse_core::inspect::PlanRowSet::Columns;
pub use sparse_core::inspect::Stored::{All, AllRows, As, Distinct};
pub use sparse_core::inspect::Written::{Buffer, Output, Within};
pub use sparse_core::inspect::{PlanPool, PlanRowSet, PlanRows, PlanStep, PlanTable, Written};
pub use sparse_core::ir::AttributeValue::{self, Flag, Integer};
pub use sparse_core::storage::ElementType::{BF16, F16, F32, F64, I64, U32, U64, Unit};
pub use sparse_core::storage::Storage::{Csr, Dense, RowSparse};

use sparse_core::inspect::{
    Computed, Extent, Operand, Part, PlanLookup, PlanLookupRead, PlanNamedRow, PlanRead, PlanValue,
    Stored,
};
use sparse_core::storage::{ElementType, Storage};

/// An input, a label or a parameter, and the position of its gradient.
#[expect(clippy::too_many_arguments, reason = "a line of a table, written by the macro")]
pub const fn declared(
    name: &'static str,
    number: u32,
    part: Part,
    storage: Storage,
    element: ElementType,
    shape: &'static [Extent<'static>],
    stored: Stored<'static>,
    gradient: Option<u32>,
) -> PlanValue<'static> {
    PlanValue {
        name,
        number,
        part,
        storage,
        element,
        shape,
        stored,
        gradient,
        computed: None,
        written: None,
    }
}

/// A value that a kernel computes.
#[expect(clippy::too_many_arguments, reason = "a line of a table, written by the macro")]
pub const fn computed(
    name: &'static str,
    number: u32,
    part: Part,
    storage: Storage,
    element: ElementType,
    shape: &'static [Extent<'static>],
    stored: Stored<'static>,
    operator: &'static str,
    kernel: &'static str,
    on_gpu: Option<&'static str>,
    operands: &'static [Operand],
    attributes: &'static [(&'static str, AttributeValue)],
    fused: bool,
    fallback: bool,
    written: Option<Written<'static>>,
) -> PlanValue<'static> {
    let computed =
        Some(Computed { operator, kernel, on_gpu, operands, attributes, fused, fallback });
    let declared = declared(name, number, part, storage, element, shape, stored, None);
    PlanValue { computed, written, ..declared }
}

/// A parameter and the ids that name its rows.
pub const fn named(table: u32, ids: u32) -> PlanNamedRow {
    PlanNamedRow { table, ids }
}

/// A number that a row of data reads: a row of one element.
pub const fn element(value: u32, gradient: u32, row: PlanNamedRow) -> PlanLookup {
    PlanLookup { value, gradient, read: PlanLookupRead::Element(row) }
}

/// The same: an inner product, or the mean of what that sums.
pub const fn inner(
    value: u32,
    gradient: u32,
    left: PlanNamedRow,
    right: PlanNamedRow,
    mean: bool,
) -> PlanLookup {
    PlanLookup { value, gradient, read: PlanLookupRead::Inner { left, right, mean } }
}

/// An attribute that is a number, by its bits.
pub const fn real(bits: u64) -> AttributeValue {
    AttributeValue::Number(sparse_core::ir::Number(f64::from_bits(bits)))
}

/// An attribute that is a number, of a constant of Rust.
pub const fn real_number(number: f64) -> AttributeValue {
    AttributeValue::Number(sparse_core::ir::Number(number))
}

/// A number that is known with the batch: a formula, and the values of the constants in it.
pub const fn named_number(
    text: &'static str,
    constants: &'static [(&'static str, f64)],
) -> Operand {
    Operand::Named { text, constants }
}

/// An attribute that is a list.
pub const fn list(entries: &[Option<i64>]) -> AttributeValue {
    AttributeValue::List(sparse_core::ir::List::new(entries))
}

/// A number by its bits: not every one has a literal.
pub const fn number(bits: u64) -> Operand {
    Operand::Number(f64::from_bits(bits))
}

/// Table rows that a sample reads.
pub const fn read(table: u32, by: u32, pool: PlanPool) -> PlanRead {
    PlanRead { table, by, pool }
}

//! What the kernels of a GPU share: their context, the text that all of them are compiled with, and formulas as CUDA C++.

mod context;
mod formula;
pub mod loss;
pub(crate) mod occurrences;
mod results;
pub mod rows;
mod scalar_function;
mod units;

pub use context::CudaContext;
pub(crate) use formula::{formula, recurrence, row_recurrence};
pub use loss::{LossFunction, LossOperands};
pub use results::{Pattern, Rows};
pub(crate) use scalar_function::Numbers;
pub use scalar_function::ScalarFunction;
pub use units::for_each_unit;

use sparse_core::element::Float;

/// An element type that kernels of a GPU compute in.
#[diagnostic::on_unimplemented(
    message = "kernels of a GPU do not compute in `{Self}`",
    note = "they compute in `f32` and `f64`; arrays of other types can be there, and are cast on the host"
)]
pub trait GpuFloat: Float<Accumulator = Self> {}

impl GpuFloat for f32 {}
impl GpuFloat for f64 {}

/// In front of every text of kernels.
pub(crate) const PRELUDE: &str = include_str!("prelude.cuh");

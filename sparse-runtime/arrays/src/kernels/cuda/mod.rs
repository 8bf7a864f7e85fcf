//! What the kernels of a GPU share: their context, and what each of them is given.

mod context;
pub(crate) mod csr_rows;
pub mod loss;
pub mod occurrences;
mod results;
pub(crate) mod row_lists;
mod scalar_function;
pub mod table;
mod units;

pub use context::CudaContext;
pub use loss::{Labels, LossFunction, LossOperands};
pub use results::{Pattern, Rows};
pub use scalar_function::Numbers;
pub use scalar_function::ScalarFunction;
pub use table::call_kernel;
pub use units::for_each_unit;

use sparse_core::element::Float;
use sparse_core::operators::Operator;
use table::GpuKernel;

/// An element type that kernels of a GPU compute in.
#[diagnostic::on_unimplemented(
    message = "kernels of a GPU do not compute in `{Self}`",
    note = "they compute in `f32` and `f64`; arrays of other types can be there, and are cast on the host"
)]
pub trait GpuFloat: Float<Accumulator = Self> {
    /// The kernel of a name, compiled in the library and not where a model is.
    #[doc(hidden)]
    fn kernel(operator: &'static Operator, name: &str) -> Option<GpuKernel<Self>>;
}

impl GpuFloat for f32 {
    fn kernel(operator: &'static Operator, name: &str) -> Option<GpuKernel<f32>> {
        table::kernel(operator, name)
    }
}

impl GpuFloat for f64 {
    fn kernel(operator: &'static Operator, name: &str) -> Option<GpuKernel<f64>> {
        table::kernel(operator, name)
    }
}

/// How many lanes of a warp go over the columns of a row, a power of two.
pub fn lanes(width: usize) -> usize {
    width.clamp(1, 32).next_power_of_two()
}

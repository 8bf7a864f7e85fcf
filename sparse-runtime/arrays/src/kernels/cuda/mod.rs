//! What the kernels of a GPU share: their context, and what each of them is given.

mod array;
mod context;
pub(crate) mod csr_rows;
pub mod loss;
pub mod occurrences;
mod results;
pub(crate) mod row_lists;
mod scalar_function;
pub mod table;
mod units;

pub use array::GpuFloat;
pub use context::CudaContext;
pub use loss::{Labels, LossFunction, LossOperands};
pub use results::{Pattern, Rows};
pub use scalar_function::Numbers;
pub use scalar_function::ScalarFunction;
pub use table::call_kernel;
pub use units::for_each_unit;

/// How many lanes of a warp go over the columns of a row, a power of two.
pub fn lanes(width: usize) -> usize {
    width.clamp(1, 32).next_power_of_two()
}

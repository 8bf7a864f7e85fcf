//! What the kernels of a GPU share: their context, the text that all of them are compiled with, and formulas as CUDA C++.

mod context;
mod formula;
pub(crate) mod occurrences;
mod scalar_function;

pub use context::CudaContext;
pub(crate) use formula::formula;
pub(crate) use scalar_function::Numbers;
pub use scalar_function::ScalarFunction;

/// In front of every text of kernels.
pub(crate) const PRELUDE: &str = include_str!("prelude.cuh");

//! The gradient of sums of rows of a table. O(nnz · k), and of a dense result its size.

pub mod cpu;
#[cfg(feature = "cuda")]
pub mod cuda;

//! The rows of a table that the columns of a csr name. O(nnz + values kept).

pub mod cpu;
#[cfg(feature = "cuda")]
pub mod cuda;

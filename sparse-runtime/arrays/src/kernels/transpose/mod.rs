//! Rows and columns exchanged. Dense O(size), in square tiles; csr O(nnz + columns), by counting.

pub mod cpu;
#[cfg(feature = "cuda")]
pub mod cuda;

//! Zeros in the shape of an array. Of a sparse one nothing is stored: O(rows) for csr, O(1) for row_sparse.

pub mod cpu;
#[cfg(feature = "cuda")]
pub mod cuda;

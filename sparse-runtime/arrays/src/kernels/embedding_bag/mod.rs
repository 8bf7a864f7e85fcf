//! Sums of rows of a table, a bag of them for each row of a csr. O(nnz · k).

pub mod cpu;
#[cfg(feature = "cuda")]
pub mod cuda;

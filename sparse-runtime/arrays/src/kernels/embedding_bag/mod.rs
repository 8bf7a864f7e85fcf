//! Sums of rows of a table, a bag of them for each row of a csr, and the gradient of that. O(nnz ·
//! k), and of a dense gradient its size.

pub mod cpu;
#[cfg(feature = "cuda")]
pub mod cuda;

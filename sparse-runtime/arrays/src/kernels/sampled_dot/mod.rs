//! The product of two matrices at the places that a csr stores. O(nnz · k).

pub mod cpu;
#[cfg(feature = "cuda")]
pub mod cuda;

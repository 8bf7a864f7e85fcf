//! Repetition to a larger shape at the places that a csr stores. O(nnz).

pub mod cpu;
#[cfg(feature = "cuda")]
pub mod cuda;

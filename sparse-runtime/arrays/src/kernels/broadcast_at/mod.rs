//! Repetition to a larger shape at the places that a csr or a row_sparse array stores. O(stored
//! elements).

pub mod cpu;
#[cfg(feature = "cuda")]
pub mod cuda;

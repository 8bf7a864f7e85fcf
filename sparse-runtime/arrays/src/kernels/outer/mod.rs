//! The products of all elements of two vectors: O(size of the result), of which a row_sparse left
//! side stores some rows.

pub mod cpu;
#[cfg(feature = "cuda")]
pub mod cuda;

//! Rows of a table by ids. O(ids · size of a row).

pub mod cpu;
#[cfg(feature = "cuda")]
pub mod cuda;

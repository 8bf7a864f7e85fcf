//! The cast to dense. O(size of the array).

pub mod cpu;
#[cfg(feature = "cuda")]
pub mod cuda;

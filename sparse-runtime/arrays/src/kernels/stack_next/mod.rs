//! One more array at the end of a stack: O(size).

pub mod cpu;
#[cfg(feature = "cuda")]
pub mod cuda;

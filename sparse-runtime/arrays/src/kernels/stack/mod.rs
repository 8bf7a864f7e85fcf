//! Arrays one after the other along a new axis: O(size).

pub mod cpu;
#[cfg(feature = "cuda")]
pub mod cuda;

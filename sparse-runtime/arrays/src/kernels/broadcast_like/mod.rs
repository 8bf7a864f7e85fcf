//! Repeats an array to a larger shape: the gradient of reductions. O(size of the result).

pub mod cpu;
#[cfg(feature = "cuda")]
pub mod cuda;

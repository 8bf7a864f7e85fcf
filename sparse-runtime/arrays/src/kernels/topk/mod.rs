//! The first elements in order along an axis: O(size + size of the result · log k).

pub mod cpu;
#[cfg(feature = "cuda")]
pub mod cuda;

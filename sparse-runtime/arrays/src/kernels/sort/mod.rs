//! Elements in order along an axis: O(size · log of its extent), no memory but one axis of scratch.

pub mod cpu;
#[cfg(feature = "cuda")]
pub mod cuda;

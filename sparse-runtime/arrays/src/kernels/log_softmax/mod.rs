//! The logarithm of the softmax along an axis. O(size); the largest score is subtracted first, so that nothing overflows.

pub mod cpu;
#[cfg(feature = "cuda")]
pub mod cuda;

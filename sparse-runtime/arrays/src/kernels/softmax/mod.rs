//! Softmax along an axis, its logarithm and its gradient, and the logarithm of sums of
//! exponentials. O(size); the largest score is subtracted first, so that nothing overflows.

pub mod cpu;
#[cfg(feature = "cuda")]
pub mod cuda;

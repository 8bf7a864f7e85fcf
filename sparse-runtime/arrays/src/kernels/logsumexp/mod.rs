//! The logarithm of a row's sum of exponentials, without overflow.
//!
//! O(size). The largest element of a row is taken out of the sum, so that the largest term is 1.

pub mod cpu;
#[cfg(feature = "cuda")]
pub mod cuda;

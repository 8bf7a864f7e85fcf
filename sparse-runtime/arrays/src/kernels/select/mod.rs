//! One of two arrays, by a condition.

pub mod cpu;
#[cfg(feature = "cuda")]
pub mod cuda;

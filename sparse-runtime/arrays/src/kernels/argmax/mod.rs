//! The position of the largest element.

pub mod cpu;
#[cfg(feature = "cuda")]
pub mod cuda;

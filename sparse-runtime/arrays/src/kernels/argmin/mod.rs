//! The position of the smallest element.

pub mod cpu;
#[cfg(feature = "cuda")]
pub mod cuda;

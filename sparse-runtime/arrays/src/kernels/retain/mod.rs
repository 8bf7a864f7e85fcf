//! The rows of a list.

pub mod cpu;
#[cfg(feature = "cuda")]
pub mod cuda;

//! How many elements are stored.

pub mod cpu;
#[cfg(feature = "cuda")]
pub mod cuda;

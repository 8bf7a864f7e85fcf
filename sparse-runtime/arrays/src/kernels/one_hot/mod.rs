//! Ids as rows with a single 1.

pub mod cpu;
#[cfg(feature = "cuda")]
pub mod cuda;
